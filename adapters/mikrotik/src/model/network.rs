//! Interfaces, ports, VLANs, and devices that announce themselves.

use heddle_sdk::crud::Modelled;
use serde_json::{Value, json};

use super::{items, put, several, text};

/// Names of interface lists that the vendor's own set-up has, and their roles.
const ROLES: [(&str, &str); 3] = [("WAN", "wan"), ("LAN", "lan"), ("MGMT", "management")];
/// Most VLANs that a port is told to carry.
const VLANS_MAX: usize = 4_094;

pub(super) fn interface(row: &Value, object: &mut Modelled) {
    put(object, "addresses", Some(addresses(row)));
    let lists: Vec<&str> = several(row, "lists").iter().filter_map(|member| text(member, "list")).collect();
    let role = ROLES.iter().find(|(list, _)| lists.contains(list)).map(|(_, role)| *role);
    put(object, "role", role);
    if object.fields.get("enabled").is_some_and(|is_on| is_on == false) {
        put(object, "link", Some("down"));
    }
}

/// The addresses of a row's interface, with their prefix lengths. One that is off is none.
pub(super) fn addresses(row: &Value) -> Vec<String> {
    let all = several(row, "addresses").iter().chain(several(row, "addresses6"));
    let is_used = |own: &&Value| !super::is_on(own, "disabled") && !super::is_on(own, "invalid");
    all.filter(is_used).filter_map(|own| text(own, "address")).map(str::to_owned).collect()
}

pub(super) fn port(row: &Value, object: &mut Modelled) {
    let digits = |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().ok();
    put(object, "number", text(row, "default-name").and_then(digits));
    let tagged = tagged(row);
    let is_bridged = super::beside(row, "bridge").is_some();
    if is_bridged {
        put(object, "tagged_mode", Some(if tagged.is_empty() { "none" } else { "list" }));
        put(object, "tagged_vlans", Some(tagged));
    }
    if let Some(poe) = super::beside(row, "poe") {
        let mut power = json!({ "supported": true });
        if let Some(mode) = text(poe, "poe-out") {
            power["enabled"] = json!(mode != "off");
        }
        put(object, "poe", Some(power));
    }
}

/// The VLANs whose rows name the port as tagged.
pub(super) fn tagged(row: &Value) -> Vec<u16> {
    let rows = several(row, "tagged").iter().filter(|vlan| !super::is_on(vlan, "disabled"));
    let mut all: Vec<u16> = rows.flat_map(|vlan| vlans(text(vlan, "vlan-ids").unwrap_or_default())).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The numbers of `10,20-30`.
pub(super) fn vlans(text: &str) -> Vec<u16> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<u16>().ok()?..=to.trim().parse::<u16>().ok()?)
    };
    text.split(',').filter_map(range).flatten().take(VLANS_MAX).collect()
}

/// A VLAN with an interface of its own, or one of a bridge alone. A row of a bridge that stands for several is not one.
pub(super) fn vlan(row: &Value, object: &mut Modelled) -> bool {
    if let Some(carrier) = text(row, "interface") {
        put(object, "members", Some(json!([{ "port": carrier, "tagged": true }])));
        let own = addresses(row);
        let subnets: Vec<String> = own.iter().filter_map(|own| super::addressing::network_of(own)).collect();
        let gateway = own.iter().find(|own| !own.contains(':')).or(own.first());
        let gateway = gateway.and_then(|own| own.split('/').next()).map(str::to_owned);
        if !own.is_empty() {
            put(object, "subnets", Some(subnets));
            put(object, "gateway", gateway);
        }
        let serves = |name: &str| super::beside(row, name).is_some_and(|row| !super::is_on(row, "disabled"));
        let dhcp = match () {
            () if serves("server") => "server",
            () if serves("relay") => "relay",
            () => "none",
        };
        put(object, "dhcp", Some(dhcp));
        return true;
    }
    // What is configured, and what the router adds by itself for ports with this VLAN as their own.
    let member = |name: &str, is_tagged: bool| -> Vec<Value> {
        let ports = items(row, name).into_iter();
        ports.map(|port| json!({ "port": port, "tagged": is_tagged })).collect()
    };
    let mut members = member("tagged", true);
    members.extend(member("untagged", false));
    let current = member("current-untagged", false);
    let is_new = |one: &Value| !members.iter().any(|known| known["port"] == one["port"]);
    let added: Vec<Value> = current.into_iter().filter(is_new).collect();
    members.extend(added);
    put(object, "members", Some(members));
    object.fields.contains_key("vlan_id")
}

/// A neighbour may be heard in several ways.
pub(super) fn neighbour(row: &Value, object: &mut Modelled) {
    let ways = items(row, "discovered-by");
    let has = |way: &str| ways.iter().any(|known| known == way);
    let protocol = match () {
        () if has("lldp") => "lldp",
        () if has("cdp") => "cdp",
        () if ways.is_empty() => "unknown",
        () => "other",
    };
    put(object, "protocol", Some(protocol));
}
