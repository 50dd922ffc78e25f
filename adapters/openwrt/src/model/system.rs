//! The router itself.

use heddle_sdk::{ModelObject, json as sdk_json};

use super::live::Live;
use super::{Fields, natively, object};

/// The key of the one system, and of its software.
const SYSTEM: &str = "router";

pub(super) fn system(live: &Live) -> Vec<ModelObject> {
    let (board, info, identity) = (live.board(), live.info(), live.identity());
    let name = sdk_json::text(board, "/hostname");
    let total = sdk_json::number(info, "/memory/total");
    let used =
        total.zip(sdk_json::number(info, "/memory/available")).map(|(all, free)| all.saturating_sub(free));
    let fields = Fields::default()
        .with("role", Some("router"))
        .text("name", name)
        .text("version", sdk_json::text(board, "/release/version"))
        .text("model", sdk_json::text(board, "/model"))
        .with("state", Some("online"))
        .with("uptime_s", sdk_json::number(info, "/uptime"))
        .with("memory_bytes", total)
        .with("memory_used_bytes", used);
    vec![natively("system", "system", object(SYSTEM, name.unwrap_or(SYSTEM), Some(&identity), fields))]
}

/// What runs; the device does not know of newer software.
pub(super) fn firmware(live: &Live) -> Vec<ModelObject> {
    let Some(version) = sdk_json::text(live.board(), "/release/version") else { return Vec::new() };
    let fields = Fields::default().with("current", Some(version));
    let label = sdk_json::text(live.board(), "/release/description").unwrap_or(version);
    vec![object(SYSTEM, label, Some(&live.identity()), fields)]
}
