//! The plugin of the bench as an author writes it for Extism.

#[path = "../../heddle/src/work.rs"]
mod work;

use extism_pdk::{FnResult, Json, plugin_fn};

#[plugin_fn]
pub fn echo(Json(said): Json<work::Said>) -> FnResult<Json<work::Said>> {
    Ok(Json(work::echo(said)))
}

#[plugin_fn]
pub fn inventory(Json(listing): Json<work::Listing>) -> FnResult<Json<work::Inventory>> {
    Ok(Json(work::inventory(listing)))
}
