//! Tables of the packet filter: which fields go together, and counters.

use crate::device::Router;
use crate::refusal::Refusal;
use crate::store::{Record, Row};

/// Protocols that have ports.
const WITH_PORTS: [&str; 9] = ["tcp", "udp", "udp-lite", "dccp", "sctp", "6", "17", "33", "132"];
/// Actions by the chains that may hold them.
const OF_SOURCE: [&str; 2] = ["masquerade", "src-nat"];
const OF_DESTINATION: [&str; 2] = ["dst-nat", "redirect"];

pub(crate) fn is_table(path: &str) -> bool {
    let names = ["filter", "nat", "mangle", "raw"];
    path.split_once("/firewall/").is_some_and(|(_, table)| names.contains(&table))
}

pub(crate) fn complete(path: &str, row: &mut Row) -> Result<(), Refusal> {
    if row.text("action").is_empty() {
        row.values.insert("action".to_owned(), "accept".into());
    }
    let (chain, action) = (row.text("chain").to_owned(), row.text("action").to_owned());
    if chain.is_empty() {
        return Err(Refusal::missing("chain"));
    }
    let has_ports = ["src-port", "dst-port", "port"].iter().any(|field| !row.text(field).is_empty());
    if has_ports && !WITH_PORTS.contains(&row.text("protocol")) {
        return Err(Refusal::failure("ports can be specified if proto is tcp,udp,udp-lite,dccp,sctp"));
    }
    if action == "jump" && row.text("jump-target").is_empty() {
        return Err(Refusal::failure("jump action requires jump-target"));
    }
    if path.ends_with("/nat") && ["srcnat", "dstnat", "input", "output"].contains(&chain.as_str()) {
        let is_source = ["srcnat", "input"].contains(&chain.as_str());
        if OF_SOURCE.contains(&action.as_str()) && !is_source {
            return Err(Refusal::failure("src-nat/masquerade action must be in srcnat/input chains"));
        }
        if OF_DESTINATION.contains(&action.as_str()) && is_source {
            return Err(Refusal::failure("dst-nat/redirect action must be in dstnat/output chains"));
        }
    }
    if action.starts_with("add-") && row.text("address-list").is_empty() {
        return Err(Refusal::failure("address-list not specified"));
    }
    Ok(())
}

/// Counters of a rule; a rule that is off counts nothing since it was last reset.
pub(crate) fn fill(router: &Router, path: &'static str, row: &Row, out: &mut Record) {
    let secs = if row.is_disabled() { 0 } else { router.counted_secs(path, row.id) };
    let packets = secs * (1 + row.id % 5);
    out.insert("packets".to_owned(), packets.to_string());
    out.insert("bytes".to_owned(), (packets * 84).to_string());
}
