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

use heddle_adapter_kit::Least;

heddle_adapter_kit::program!(grammar::make, Least { writes: 930, reads: 820 });
