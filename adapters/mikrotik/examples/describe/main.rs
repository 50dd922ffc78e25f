//! Makes `description.json` from `facts.json` and `overlay.json`.

mod actions;
mod fields;
mod grammar;
mod items;
mod overlay;
mod reads;
mod routes;

heddle_adapter_kit::program!(grammar::make, overlay::surface, writes: 950, reads: 950);
