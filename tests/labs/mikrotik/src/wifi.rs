//! Radios of both driver stacks: what interfaces tell, who is connected, and scans.

use crate::call::{Answered, Call, Done};
use crate::device::Router;
use crate::refusal::Refusal;
use crate::store::{Record, Row};

pub(crate) const CLIENTS: &str = "interface/wifi/registration-table";

/// The profile value behind an interface: its own, or that of the profile that it names.
fn effective(router: &Router, row: &Row, group: &str, field: &str) -> String {
    let own = row.text(&format!("{group}.{field}"));
    if !own.is_empty() {
        return own.to_owned();
    }
    let configuration = row.links("configuration").next().and_then(|(menu, id)| router.store.find(menu, id));
    let named = row.links(group).next().and_then(|(menu, id)| router.store.find(menu, id));
    let value = named.map(|profile| profile.text(field).to_owned()).filter(|text| !text.is_empty());
    let inherited = || {
        let profile = configuration?;
        if group == "configuration" {
            return Some(profile.text(field).to_owned());
        }
        let dotted = profile.text(&format!("{group}.{field}")).to_owned();
        let linked = profile.links(group).next().and_then(|(menu, id)| router.store.find(menu, id));
        Some(if dotted.is_empty() {
            linked.map_or_else(String::new, |row| row.text(field).to_owned())
        } else {
            dotted
        })
    };
    value.or_else(inherited).unwrap_or_default()
}

/// What the list of interfaces shows of the profiles in effect.
pub(crate) fn fill(router: &Router, row: &Row, out: &mut Record) {
    for (group, field) in [
        ("configuration", "ssid"),
        ("configuration", "mode"),
        ("configuration", "country"),
        ("configuration", "hide-ssid"),
        ("security", "authentication-types"),
        ("channel", "band"),
        ("channel", "frequency"),
        ("channel", "width"),
        ("datapath", "vlan-id"),
        ("datapath", "client-isolation"),
        ("datapath", "bridge"),
    ] {
        let value = effective(router, row, group, field);
        if !value.is_empty() {
            out.entry(format!("{group}.{field}")).or_insert(value);
        }
    }
    out.entry("disabled".to_owned()).or_insert_with(|| "false".to_owned());
    let is_off = row.is_disabled();
    out.insert("inactive".to_owned(), is_off.to_string());
    out.insert("bound".to_owned(), (!is_off).to_string());
    out.insert("master".to_owned(), row.links("master-interface").next().is_none().to_string());
}

/// A name is drawn from the interface for old drivers, too: a client counts while its interface is on.
fn clients(router: &Router, interface: u64) -> usize {
    let rows = router.store.rows(CLIENTS).iter();
    rows.filter(|row| row.links("interface").any(|(_, id)| id == interface)).count()
}

pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    let bounded = ["once", "duration", "count"].iter().any(|name| call.has(name));
    Some(match (call.path, call.command) {
        ("interface/wifi" | "interface/wireless", "monitor") => {
            if bounded {
                monitor(router, call)
            } else {
                Ok(Done::endless())
            }
        }
        ("interface/wifi" | "interface/wireless", "scan") => {
            if bounded {
                Ok(Done::rows(neighbours()))
            } else {
                Ok(Done::endless())
            }
        }
        (
            "interface/wifi/radio"
            | "interface/wifi/capsman/remote-cap"
            | "caps-man/radio"
            | "caps-man/remote-cap",
            "provision",
        ) => call.ids(router).map(|_| Done::nothing()),
        ("interface/wifi" | "interface/wireless", "reset-mac-address") => {
            call.ids(router).map(|_| Done::nothing())
        }
        _ => return None,
    })
}

fn monitor(router: &Router, call: &Call) -> Answered {
    let rows = call.ids(router)?.into_iter().map(|id| {
        let row = router.store.find(call.path, id).ok_or(Refusal::NoSuchItem)?;
        let mut out = Record::new();
        let mut put = |name: &str, value: String| drop(out.insert(name.to_owned(), value));
        if row.is_disabled() {
            put("state", "disabled".to_owned());
            return Ok(out);
        }
        put("state", "running".to_owned());
        let is_low = row.text("default-name").ends_with('2');
        if call.path == "interface/wifi" {
            put("channel", if is_low { "2437/ax" } else { "5180/ax/Ceee" }.to_owned());
            put("registered-peers", clients(router, id).to_string());
            put("authorized-peers", clients(router, id).to_string());
            put("tx-power", if is_low { "17" } else { "22" }.to_owned());
        } else {
            put("channel", "2412/20-Ce/gn(17dBm)".to_owned());
            put("registered-clients", "1".to_owned());
            put("current-tx-powers", "6Mbps:17(17/20)".to_owned());
            put("noise-floor", "-109".to_owned());
        }
        Ok(out)
    });
    Ok(Done::rows(rows.collect::<Result<_, Refusal>>()?))
}

/// Networks of others that a scan finds.
fn neighbours() -> Vec<Record> {
    let found = [
        ("02:10:AA:00:20:01", "Neighbours", "2412/g/n", "-71"),
        ("02:10:AA:00:20:02", "Cafe", "5240/ac/Ceee", "-83"),
    ];
    let rows = found.into_iter().map(|(mac, ssid, channel, signal)| {
        let pairs = [("address", mac), ("ssid", ssid), ("channel", channel), ("signal", signal)];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    });
    rows.collect()
}
