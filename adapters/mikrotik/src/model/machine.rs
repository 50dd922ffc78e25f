//! The router as a machine: load, storage, backups, versions, and the servers that it asks.

use heddle_sdk::crud::Modelled;
use serde_json::{Value, json};

use super::{items, number, put, text};

/// The key of the one system.
pub(super) const SYSTEM: &str = "router";

pub(super) fn system(row: &Value, object: &mut Modelled) {
    SYSTEM.clone_into(&mut object.key);
    let used = number(row, "total-memory").zip(number(row, "free-memory")).map(|(all, free)| all - free);
    put(object, "memory_used_bytes", used.filter(|used| *used >= 0));
}

pub(super) fn volume(row: &Value, object: &mut Modelled) {
    let used = number(row, "size").zip(number(row, "free")).map(|(all, free)| all - free);
    put(object, "used_bytes", used.filter(|used| *used >= 0));
}

pub(super) fn backup(object: &mut Modelled) {
    put(object, "of", Some(json!({ "kind": "system", "key": SYSTEM })));
}

/// The system, or the boot loader, which is written by itself.
pub(super) fn firmware(row: &Value, object: &mut Modelled) {
    let (key, label, newer) = match text(row, "installed-version") {
        Some(_) => (SYSTEM, "RouterOS", text(row, "latest-version")),
        None => ("boot-loader", "RouterBOOT", text(row, "upgrade-firmware")),
    };
    key.clone_into(&mut object.key);
    label.clone_into(&mut object.label);
    let current = super::field(object, "current");
    let is_newer = newer.is_some() && newer != current.as_deref();
    let status = text(row, "status").unwrap_or_default().to_lowercase();
    let state = match () {
        () if status.contains("downloading") || status.contains("installing") => "installing",
        () if status.contains("error") || status.contains("fail") => "failed",
        () if is_newer => "available",
        () if newer.is_some() => "current",
        () => "unknown",
    };
    put(object, "available", newer.filter(|_| is_newer));
    put(object, "state", Some(state));
    put(object, "needs_reboot", status.contains("reboot").then_some(true));
}

/// One server; a service that is listed is asked of it.
pub(super) fn radius(row: &Value, object: &mut Modelled) {
    let port = number(row, "authentication-port");
    let mut server =
        json!({ "address": text(row, "address"), "accounting": !items(row, "service").is_empty() });
    if let Some(port) = port {
        server["port"] = json!(port);
    }
    put(object, "servers", Some(json!([server])));
}
