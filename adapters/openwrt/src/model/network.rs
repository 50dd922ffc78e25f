//! Interfaces, ports, VLANs and routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use heddle_sdk::{ModelObject, Origin, crud, json as sdk_json};
use serde_json::{Value, json};

use super::live::Live;
use super::{Fields, natively, object};

/// Most VLANs that a port can have.
const VLAN_MAX: u64 = 4094;

/// Interfaces of the configuration with the device below, and devices that no interface is on.
pub(super) fn interfaces(live: &Live) -> Vec<ModelObject> {
    let identity = live.identity();
    let mut out = Vec::new();
    for (name, device) in live.devices() {
        let own = live.interface_on(name);
        let fields = of_device(live, name, device).with("addresses", own.map(addresses));
        let fields = fields.with("role", own.and_then(role));
        let label = own.and_then(|own| sdk_json::text(own, "/interface")).unwrap_or(name);
        out.push(natively("network.device", name, object(name, label, Some(&identity), fields)));
    }
    // An interface without a device of its own, such as one that is down or that a tunnel makes.
    for own in live.interfaces() {
        let device =
            sdk_json::text(own, "/l3_device").or_else(|| sdk_json::text(own, "/device")).unwrap_or_default();
        let is_shown = live.devices().any(|(name, _)| name == device);
        let Some(name) = sdk_json::text(own, "/interface").filter(|_| !is_shown) else { continue };
        let is_up = own.get("up").and_then(Value::as_bool);
        let fields = Fields::default()
            .with("name", Some(name))
            .with("type", Some("unknown"))
            .with("link", is_up.map(link))
            .with("addresses", Some(addresses(own)));
        let key = format!("interface:{name}");
        out.push(natively("network.interface", name, object(&key, name, Some(&identity), fields)));
    }
    out
}

fn link(is_up: bool) -> &'static str {
    if is_up { "up" } else { "down" }
}

fn of_device(live: &Live, name: &str, device: &Value) -> Fields {
    let flag = |place: &str| device.pointer(place).and_then(Value::as_bool);
    let mac =
        sdk_json::text(device, "/macaddr").filter(|mac| *mac != "00:00:00:00:00:00").and_then(crud::mac);
    // `br-lan.10` is a VLAN of `br-lan`.
    let tagged = name.split_once('.').and_then(|(lower, id)| Some((lower, id.parse::<u64>().ok()?)));
    let kind = match sdk_json::text(device, "/type") {
        _ if tagged.is_some() => "vlan",
        Some("bridge") => "bridge",
        Some("ethernet" | "dsa" | "Network device") => "physical",
        Some("bonding") => "bond",
        Some("loopback") => "loopback",
        Some("wlan" | "ieee80211") => "wireless",
        Some("tunnel" | "wireguard" | "vxlan") => "tunnel",
        _ => "unknown",
    };
    Fields::default()
        .with("name", Some(name))
        .with("type", Some(kind))
        .with("mac", mac)
        .with("mtu", sdk_json::number(device, "/mtu"))
        .with("enabled", flag("/up"))
        .with("link", flag("/carrier").map(link))
        .with("speed_mbps", speed(device))
        .with("vlan_id", tagged.map(|(_, id)| id).filter(|id| (1..=VLAN_MAX).contains(id)))
        .with("lower", tagged.map(|(lower, _)| lower))
        .with("master", master(live, name))
        .with("counters", counters(device))
}

/// `1000F`: megabits per second, and whether both sides send at a time.
fn speed(device: &Value) -> Option<u64> {
    let text = sdk_json::text(device, "/speed")?;
    text.trim_end_matches(['F', 'H']).parse().ok().filter(|speed| *speed > 0)
}

fn master<'l>(live: &'l Live, name: &str) -> Option<&'l str> {
    let has = |device: &Value| sdk_json::items(device, "/bridge-members").iter().any(|member| member == name);
    live.devices().find(|(_, device)| has(device)).map(|(master, _)| master)
}

/// Counters as the interface sees them.
fn counters(device: &Value) -> Option<Value> {
    let names = [
        ("rx_bytes", "rx_bytes"),
        ("tx_bytes", "tx_bytes"),
        ("rx_packets", "rx_packets"),
        ("tx_packets", "tx_packets"),
        ("rx_errors", "rx_errors"),
        ("tx_errors", "tx_errors"),
        ("rx_dropped", "rx_drops"),
        ("tx_dropped", "tx_drops"),
    ];
    let statistics = device.get("statistics")?;
    let known =
        names.iter().filter_map(|(from, to)| Some(((*to).to_owned(), statistics.get(*from)?.as_u64()?)));
    let fields: serde_json::Map<_, _> = known.map(|(name, count)| (name, json!(count))).collect();
    (!fields.is_empty()).then_some(Value::Object(fields))
}

/// What has a default route leads outside.
fn role(own: &Value) -> Option<&'static str> {
    let is_default = |route: &Value| sdk_json::number(route, "/mask") == Some(0);
    if sdk_json::text(own, "/interface") == Some("loopback") {
        return None;
    }
    let has_route = sdk_json::items(own, "/route").iter().any(is_default);
    let has_address = !addresses(own).is_empty();
    if has_route { Some("wan") } else { has_address.then_some("lan") }
}

/// Addresses with the lengths of their prefixes.
fn addresses(own: &Value) -> Vec<String> {
    let one = |entry: &Value| {
        let address = sdk_json::text(entry, "/address")?;
        Some(
            sdk_json::number(entry, "/mask")
                .map_or_else(|| address.to_owned(), |mask| format!("{address}/{mask}")),
        )
    };
    let direct = ["/ipv4-address", "/ipv6-address"]
        .into_iter()
        .flat_map(|list| sdk_json::items(own, list))
        .filter_map(one);
    let assigned = sdk_json::items(own, "/ipv6-prefix-assignment").iter();
    direct.chain(assigned.filter_map(|entry| one(entry.get("local-address")?))).collect()
}

/// Ports of the box: real ones that are in a bridge or lead outside.
pub(super) fn ports(live: &Live) -> Vec<ModelObject> {
    let identity = live.identity();
    let is_port = |device: &Value| {
        matches!(sdk_json::text(device, "/type"), Some("ethernet" | "dsa" | "Network device"))
    };
    let mut out = Vec::new();
    for (name, device) in live.devices().filter(|(name, device)| is_port(device) && !name.contains('.')) {
        let flag = |place: &str| device.pointer(place).and_then(Value::as_bool);
        let number = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().ok();
        let duplex = sdk_json::text(device, "/speed").and_then(|text| match text.chars().last() {
            Some('F') => Some("full"),
            Some('H') => Some("half"),
            _ => None,
        });
        let is_uplink = live.interface_on(name).map(|own| role(own) == Some("wan"));
        let fields = Fields::default()
            .with("number", number.filter(|number| *number <= 100_000))
            .with("enabled", flag("/up"))
            .with("link", flag("/carrier").map(link))
            .with("speed_mbps", speed(device))
            .with("duplex", duplex)
            .with("uplink", is_uplink)
            .with("counters", counters(device));
        let fields = of_vlans(live, name, fields);
        out.push(natively("network.device", name, object(name, name, Some(&identity), fields)));
    }
    out
}

/// VLANs of a port, where its bridge has any. `lan1:t` has a tag, `lan1:u*` has none and is the native one.
fn of_vlans(live: &Live, name: &str, fields: Fields) -> Fields {
    let (mut native, mut tagged, mut is_known) = (None, Vec::new(), false);
    for vlan in live.devices().flat_map(|(_, device)| sdk_json::items(device, "/bridge-vlans")) {
        let Some(id) = sdk_json::number(vlan, "/id").filter(|id| (1..=VLAN_MAX).contains(id)) else {
            continue;
        };
        for (port, has_tag, is_native) in members(vlan) {
            if port != name {
                continue;
            }
            is_known = true;
            if has_tag {
                tagged.push(id);
            }
            if is_native {
                native = Some(id);
            }
        }
    }
    let mode = if tagged.is_empty() { "none" } else { "list" };
    let fields = fields.with("native_vlan", native).with("tagged_mode", is_known.then_some(mode));
    fields.with("tagged_vlans", is_known.then_some(tagged))
}

/// Ports of a VLAN, each with whether it has a tag and whether packets without one belong to it. The state has objects
/// or the words of the configuration.
fn members(vlan: &Value) -> Vec<(&str, bool, bool)> {
    let one = |port: &Value| {
        if let Some(word) = port.as_str() {
            let marks = word.split_once(':').map_or("", |(_, marks)| marks);
            return (marks.contains('t'), marks.contains('*') || marks.is_empty() || marks == "u");
        }
        let flag = |place: &str| port.pointer(place) == Some(&json!(true));
        (!flag("/untagged"), flag("/pvid"))
    };
    let ports = sdk_json::items(vlan, "/ports").iter();
    let named = |port| {
        let (has_tag, is_native) = one(port);
        let word = port.as_str().or_else(|| sdk_json::text(port, "/ifname"))?;
        Some((word.split(':').next().unwrap_or(word), has_tag, is_native))
    };
    ports.filter_map(named).collect()
}

/// VLANs of bridges, and devices with a tag on a port.
pub(super) fn vlans(live: &Live) -> Vec<ModelObject> {
    let identity = live.identity();
    let mut out = Vec::new();
    for (bridge, device) in live.devices() {
        for vlan in sdk_json::items(device, "/bridge-vlans") {
            let Some(id) = sdk_json::number(vlan, "/id").filter(|id| (1..=VLAN_MAX).contains(id)) else {
                continue;
            };
            let own = live.interface_on(&format!("{bridge}.{id}"));
            let name = own.and_then(|own| sdk_json::text(own, "/interface"));
            let listed: Vec<Value> = members(vlan)
                .into_iter()
                .map(|(port, has_tag, _)| json!({ "port": port, "tagged": has_tag }))
                .collect();
            let prefixes = own
                .map(addresses)
                .map(|all| all.iter().filter_map(|one| network_of(one)).collect::<Vec<_>>());
            let gateway = own.map(addresses).and_then(|all| Some(all.first()?.split('/').next()?.to_owned()));
            let fields = Fields::default()
                .with("vlan_id", Some(id))
                .with("name", name)
                .with("subnets", prefixes)
                .with("gateway", gateway)
                .with("interface", name)
                .with("members", Some(listed));
            let key = format!("{bridge}:{id}");
            let label = name.map_or_else(|| format!("VLAN {id}"), str::to_owned);
            out.push(natively("network.vlan", &key, object(&key, &label, Some(&identity), fields)));
        }
    }
    out
}

/// The prefix that an address is in.
fn network_of(own: &str) -> Option<String> {
    let (address, bits) = own.split_once('/')?;
    let bits: u8 = bits.parse().ok()?;
    let network: IpAddr = match address.parse().ok()? {
        IpAddr::V4(own) => {
            let mask = u32::MAX.checked_shl(u32::from(32_u8.saturating_sub(bits))).unwrap_or(0);
            Ipv4Addr::from(u32::from(own) & mask).into()
        }
        IpAddr::V6(own) => {
            let mask = u128::MAX.checked_shl(u32::from(128_u8.saturating_sub(bits))).unwrap_or(0);
            Ipv6Addr::from(u128::from(own) & mask).into()
        }
    };
    Some(format!("{network}/{bits}"))
}

/// Routes of interfaces, and the networks that they are connected to.
pub(super) fn routes(live: &Live) -> Vec<ModelObject> {
    let identity = live.identity();
    let mut out: Vec<ModelObject> = Vec::new();
    let mut add = |key: String, fields: Fields, label: &str| {
        if !out.iter().any(|known| known.key == key) {
            out.push(ModelObject { origin: Origin::Derived, ..object(&key, label, Some(&identity), fields) });
        }
    };
    for own in live.interfaces() {
        let Some(name) = sdk_json::text(own, "/interface").filter(|name| *name != "loopback") else {
            continue;
        };
        let is_static = sdk_json::text(own, "/proto") == Some("static");
        let metric = sdk_json::number(own, "/metric").filter(|metric| u32::try_from(*metric).is_ok());
        for route in sdk_json::items(own, "/route") {
            let (Some(target), Some(mask)) =
                (sdk_json::text(route, "/target"), sdk_json::number(route, "/mask"))
            else {
                continue;
            };
            let destination = format!("{target}/{mask}");
            let hop = sdk_json::text(route, "/nexthop").filter(|hop| !["0.0.0.0", "::"].contains(hop));
            let fields = Fields::default()
                .with("destination", Some(destination.as_str()))
                .with("type", Some("unicast"))
                .with("next_hop", hop)
                .with("interface", Some(name))
                .with("metric", sdk_json::number(route, "/metric").or(metric))
                .with("origin_type", Some(if is_static { "static" } else { "dynamic" }));
            add(format!("{name}:{destination}:{}", hop.unwrap_or_default()), fields, &destination);
        }
        for prefix in addresses(own).iter().filter_map(|own| network_of(own)) {
            let fields = Fields::default()
                .with("destination", Some(prefix.as_str()))
                .with("type", Some("unicast"))
                .with("interface", Some(name))
                .with("origin_type", Some("connected"));
            add(format!("{name}:{prefix}:"), fields, &prefix);
        }
    }
    out
}
