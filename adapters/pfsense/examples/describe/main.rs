//! Makes `description.json` from `facts.json` and `overlay.json`.

mod actions;
mod facts;
mod fields;
mod grammar;
mod items;
mod overlay;
mod reads;
mod routes;

heddle_adapter_kit::program!(grammar::make, facts::surface, writes: 950, reads: 950);
