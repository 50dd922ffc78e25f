//! Bridges: ports, VLANs in effect, learned addresses, and what monitors of interfaces tell.

use std::collections::BTreeSet;

use crate::call::{Answered, Call, Done};
use crate::device::Router;
use crate::dhcp::expanded;
use crate::interfaces;
use crate::refusal::Refusal;
use crate::store::{Record, Row, Store, shown_id};

const PORTS: &str = "interface/bridge/port";
pub(crate) const VLANS: &str = "interface/bridge/vlan";

/// The ports of a bridge that are on, with the VLAN of their untagged frames.
fn ports(store: &Store, bridge: u64) -> Vec<(u64, u32)> {
    let rows = store
        .rows(PORTS)
        .iter()
        .filter(|row| !row.is_disabled() && row.links("bridge").any(|(_, id)| id == bridge));
    rows.filter_map(|row| Some((row.links("interface").next()?.1, row.text("pvid").parse().unwrap_or(1))))
        .collect()
}

fn pvid_of(bridge: &Row) -> u32 {
    bridge.text("pvid").parse().unwrap_or(1)
}

fn names(store: &Store, ids: impl IntoIterator<Item = u64>) -> String {
    let names = ids.into_iter().filter_map(|id| store.name_of("interface", id));
    names.collect::<Vec<_>>().join(",")
}

/// Members of a row in effect: those that are up, on a bridge that filters.
pub(crate) fn fill_vlan(router: &Router, row: &Row, out: &mut Record) {
    let store = &router.store;
    let up = |field: &str| {
        let ids = row.links(field).map(|(_, id)| id);
        let ids = ids.filter(|id| {
            interfaces::find(store, *id).is_some_and(|(menu, row)| interfaces::is_running(store, menu, row))
        });
        ids.collect::<Vec<_>>()
    };
    let filters = row.links("bridge").any(|(_, id)| is_filtering(store, id));
    let (tagged, mut untagged) = (up("tagged"), up("untagged"));
    if let Some((_, bridge)) = row.links("bridge").next() {
        let vlans = expanded(row.text("vlan-ids"));
        untagged.extend(by_pvid(router, bridge, &vlans).into_iter().filter(|id| !tagged.contains(id)));
    }
    let seen: BTreeSet<u64> = untagged.iter().copied().collect();
    let shown = |ids: Vec<u64>| if filters { names(store, ids) } else { String::new() };
    out.insert("current-tagged".to_owned(), shown(tagged));
    out.insert("current-untagged".to_owned(), shown(seen.into_iter().collect()));
    for field in ["tagged", "untagged"] {
        out.entry(field.to_owned()).or_default();
    }
}

pub(crate) fn is_filtering(store: &Store, bridge: u64) -> bool {
    store
        .find("interface/bridge", bridge)
        .is_some_and(|row| row.text("vlan-filtering") == "true" && !row.is_disabled())
}

/// Interfaces whose untagged frames are of one of the VLANs.
fn by_pvid(router: &Router, bridge: u64, vlans: &[u32]) -> Vec<u64> {
    let store = &router.store;
    let own =
        store.find("interface/bridge", bridge).filter(|row| vlans.contains(&pvid_of(row))).map(|row| row.id);
    let ports = ports(store, bridge).into_iter().filter(|(id, pvid)| {
        let is_up =
            interfaces::find(store, *id).is_some_and(|(menu, row)| interfaces::is_running(store, menu, row));
        vlans.contains(pvid) && is_up
    });
    own.into_iter().chain(ports.map(|(id, _)| id)).collect()
}

/// Rows that the router makes for the VLANs of untagged frames that no row names.
pub(crate) fn dynamic_vlans(router: &Router) -> Vec<Record> {
    let store = &router.store;
    let mut out = Vec::new();
    for bridge in store.rows("interface/bridge").iter().filter(|bridge| is_filtering(store, bridge.id)) {
        let rows = store
            .rows(VLANS)
            .iter()
            .filter(|row| !row.is_disabled() && row.links("bridge").any(|(_, id)| id == bridge.id));
        let known: BTreeSet<u32> = rows.flat_map(|row| expanded(row.text("vlan-ids"))).collect();
        let pvids = ports(store, bridge.id).into_iter().map(|(_, pvid)| pvid).chain([pvid_of(bridge)]);
        let wanted: BTreeSet<u32> = pvids.filter(|pvid| !known.contains(pvid)).collect();
        for vlan in wanted {
            let members = names(store, by_pvid(router, bridge.id, &[vlan]));
            let pairs = [
                (".id", shown_id(0x8000_0000 + bridge.id * 0x1000 + u64::from(vlan))),
                ("bridge", bridge.text("name").to_owned()),
                ("vlan-ids", vlan.to_string()),
                ("tagged", String::new()),
                ("untagged", String::new()),
                ("current-tagged", String::new()),
                ("current-untagged", members),
                ("dynamic", "true".to_owned()),
                ("disabled", "false".to_owned()),
            ];
            out.push(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
        }
    }
    out
}

/// The state of a port of a bridge.
pub(crate) fn fill_port(router: &Router, row: &Row, out: &mut Record) {
    let store = &router.store;
    let interface = row.links("interface").next().and_then(|(_, id)| interfaces::find(store, id));
    let is_up =
        !row.is_disabled() && interface.is_some_and(|(menu, row)| interfaces::is_running(store, menu, row));
    let mut put = |name: &str, value: &str| drop(out.insert(name.to_owned(), value.to_owned()));
    put("inactive", if is_up { "false" } else { "true" });
    put("status", if is_up { "in-bridge" } else { "inactive" });
    put("role", if is_up { "designated-port" } else { "disabled-port" });
    put("forwarding", if is_up { "true" } else { "false" });
    put("learning", if is_up { "true" } else { "false" });
    put("hw-offload", if is_up && !router.settings.is_virtual { "true" } else { "false" });
}

/// Whether frames of the first access port reach the bridge itself.
pub(crate) fn reaches(store: &Store, port: u64) -> bool {
    let mut rows = store.rows(PORTS).iter().filter(|row| !row.is_disabled());
    let Some(row) = rows.find(|row| row.links("interface").any(|(_, id)| id == port)) else {
        return false;
    };
    let Some(bridge) = row.links("bridge").next().and_then(|(_, id)| store.find("interface/bridge", id))
    else {
        return false;
    };
    if bridge.is_disabled() {
        return false;
    }
    let only_tagged = row.text("frame-types") == "admit-only-vlan-tagged";
    let pvid: u32 = row.text("pvid").parse().unwrap_or(1);
    let admits = bridge.text("frame-types") != "admit-only-vlan-tagged";
    !is_filtering(store, bridge.id) || (!only_tagged && pvid == pvid_of(bridge) && admits)
}

/// What monitors of ports and bridges tell.
pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    let bounded = call.has("once") || call.has("duration");
    Some(match (call.path, call.command) {
        ("interface" | "interface/ethernet", "monitor-traffic" | "monitor")
        | ("interface/bridge" | PORTS, "monitor") => {
            if bounded {
                monitor(router, call)
            } else {
                Ok(Done::endless())
            }
        }
        ("interface/ethernet/poe", "monitor") => {
            if bounded {
                poe(router, call)
            } else {
                Ok(Done::endless())
            }
        }
        ("interface/ethernet", "reset-mac-address") => call.ids(router).map(|ids| {
            for id in ids {
                let original = router
                    .store
                    .find("interface/ethernet", id)
                    .map(|row| row.text("orig-mac-address").to_owned());
                if let Some(mac) = original.filter(|mac| !mac.is_empty()) {
                    router.store.set("interface/ethernet", id, "mac-address", mac);
                }
            }
            Done::nothing()
        }),
        _ => return None,
    })
}

/// The rows that a monitor names, by id or name.
fn chosen<'r>(router: &'r Router, call: &Call) -> Result<Vec<(&'static str, &'r Row)>, Refusal> {
    let text = call.named().or_else(|| call.args.get("interface").map(String::as_str));
    let text =
        text.ok_or_else(|| Refusal::missing(if call.path == "interface" { "interface" } else { "numbers" }))?;
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let ids = parts.map(|part| crate::call::id_of(router, call.path, part));
    let rows = ids.map(|id| {
        let id = id?;
        let found = match call.path {
            PORTS => router.store.find(PORTS, id).map(|row| (PORTS, &**row)),
            _ => interfaces::find(&router.store, id),
        };
        found.ok_or(Refusal::NoSuchItem)
    });
    rows.collect()
}

fn monitor(router: &Router, call: &Call) -> Answered {
    let rows = chosen(router, call)?.into_iter().map(|(menu, row)| match call.path {
        "interface" => traffic(router, menu, row),
        "interface/ethernet" => link(router, row),
        "interface/bridge" => bridge_state(router, row),
        _ => {
            let mut out = Record::new();
            fill_port(router, row, &mut out);
            out.insert("interface".to_owned(), router.store.value(row, "interface"));
            out
        }
    });
    Ok(Done::rows(rows.collect()))
}

fn traffic(router: &Router, menu: &str, row: &Row) -> Record {
    let pace = if interfaces::is_running(&router.store, menu, row) { 40 + row.id % 13 } else { 0 };
    let numbers = [
        ("rx-packets-per-second", pace),
        ("rx-bits-per-second", pace * 620 * 8),
        ("rx-drops-per-second", 0),
        ("rx-errors-per-second", 0),
        ("tx-packets-per-second", pace),
        ("tx-bits-per-second", pace * 910 * 8),
        ("tx-drops-per-second", 0),
        ("tx-errors-per-second", 0),
    ];
    let mut out: Record =
        numbers.into_iter().map(|(name, number)| (name.to_owned(), number.to_string())).collect();
    out.insert("name".to_owned(), row.text("name").to_owned());
    out
}

fn link(router: &Router, row: &Row) -> Record {
    let is_up = interfaces::is_running(&router.store, "interface/ethernet", row);
    let mut out = Record::new();
    let mut put = |name: &str, value: &str| drop(out.insert(name.to_owned(), value.to_owned()));
    put("name", row.text("name"));
    put("status", if is_up { "link-ok" } else { "no-link" });
    put("auto-negotiation", if is_up { "done" } else { "incomplete" });
    if is_up {
        let rate = if row.text("default-name") == "ether1" { "2.5Gbps" } else { "1Gbps" };
        put("rate", rate);
        put("full-duplex", "true");
        put("tx-flow-control", "false");
        put("rx-flow-control", "false");
    }
    out
}

fn bridge_state(router: &Router, row: &Row) -> Record {
    let is_up = interfaces::is_running(&router.store, "interface/bridge", row);
    let mac = interfaces::mac_of(&router.store, "interface/bridge", row).unwrap_or_default();
    let pairs = [
        ("state", if is_up { "enabled" } else { "disabled" }.to_owned()),
        ("current-mac-address", mac.clone()),
        ("root-bridge", "true".to_owned()),
        ("bridge-id", format!("0x8000.{mac}")),
        ("port-count", ports(&router.store, row.id).len().to_string()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn poe(router: &Router, call: &Call) -> Answered {
    let rows = call.ids(router)?.into_iter().filter_map(|id| {
        let row = router.store.find("interface/ethernet/poe", id)?;
        let is_on = row.text("poe-out") != "off";
        let mut out = Record::new();
        out.insert("name".to_owned(), row.text("name").to_owned());
        out.insert("poe-out".to_owned(), row.text("poe-out").to_owned());
        let status = if is_on { "powered-on" } else { "disabled" };
        out.insert("poe-out-status".to_owned(), status.to_owned());
        if is_on {
            out.insert("poe-out-voltage".to_owned(), "24.1V".to_owned());
            out.insert("poe-out-current".to_owned(), "180mA".to_owned());
            out.insert("poe-out-power".to_owned(), "4.3W".to_owned());
        }
        Some(out)
    });
    Ok(Done::rows(rows.collect()))
}
