//! Makes `description.json` from `facts.json` and `overlay.json`.

mod actions;
mod fields;
mod grammar;
mod items;
mod judged;
mod overlay;
mod reads;
mod routes;

// Reads that answer no JSON are left out: the host hands none of them on.
heddle_adapter_kit::program!(grammar::make, writes: 950, reads: 930);
