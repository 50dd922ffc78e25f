//! Makes `description.json` from `facts.json` and `overlay.json`.

mod actions;
mod facts;
mod fields;
mod grammar;
mod items;
mod overlay;
mod reads;
mod shown;

heddle_adapter_kit::program!(grammar::make, facts::surface, writes: 970, reads: 940);
