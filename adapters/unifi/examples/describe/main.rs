//! Makes `description.json` from `facts.json` and `overlay.json`.

mod actions;
mod facts;
mod fields;
mod grammar;
mod items;
mod overlay;
mod reads;

heddle_adapter_kit::program!(grammar::make, facts::surface, writes: 920, reads: 930);
