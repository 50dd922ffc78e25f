//! Makes `description.json` from `facts.json` and `overlay.json`.

mod actions;
mod collect;
mod fields;
mod grammar;
mod items;
mod overlay;
mod places;
mod reads;
mod routes;

heddle_adapter_kit::program!(grammar::make, overlay::surface, writes: 970, reads: 980);
