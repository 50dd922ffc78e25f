//! The router itself and its clients.

use std::collections::BTreeSet;

use heddle_sdk::{Completeness, Device, DevicePage, Fault, Host, Status, json as sdk_json};
use serde_json::{Map, Value, json};

use super::{Survey, clients, leases, lower_mac, plain, wireless_names};

/// Places of the reads that make the identity of the router: its interfaces and its devices. Where one of them fails,
/// another identity would be another router.
pub(crate) const IDENTIFYING: [usize; 2] = [2, 3];

/// Everything in two requests; one page.
pub(crate) fn list(host: &dyn Host) -> Result<DevicePage, Fault> {
    let mut reads = vec![
        plain("system", "board"),
        plain("system", "info"),
        plain("network.interface", "dump"),
        plain("network.device", "status"),
        plain("network.wireless", "status"),
    ];
    reads.push(plain("luci-rpc", "getHostHints"));
    reads.extend(leases::reads());
    let survey = Survey::take(host, &reads)?;
    if let Some(fault) = IDENTIFYING.iter().find_map(|index| survey.failure(*index)) {
        return Err(fault);
    }
    let stations = clients::stations(host, &wireless_names(survey.answer(4)))?;
    let leases = leases::gather(host, survey.result(6), survey.result(7))?;
    let mut clients = clients::gather(&leases.all, survey.answer(5));
    for (mac, facts) in &stations.all {
        clients.entry(mac.clone()).or_default().wireless = Some(facts.clone());
    }
    let own = own_macs(survey.answer(3));
    let mut items = vec![router(&survey, &stations, &leases)];
    items.extend(
        clients
            .into_iter()
            .filter(|(mac, _)| !own.contains(mac))
            .map(|(mac, client)| clients::device(&mac, client)),
    );
    let is_denied = leases.is_denied || !survey.denied.is_empty() || !stations.denied.is_empty();
    // Leases have their own way to tell: they are in several places.
    let has_failed = (1..6).any(|index| survey.failure(index).is_some());
    let complete = if is_denied {
        Completeness::RightsLimited
    } else if stations.is_blind || stations.is_cut || !leases.failures.is_empty() || has_failed {
        Completeness::Partial
    } else {
        Completeness::Complete
    };
    Ok(DevicePage { items, next: None, complete })
}

fn own_macs(devices: &Value) -> BTreeSet<String> {
    devices
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, device)| sdk_json::text(device, "/macaddr").map(lower_mac))
        .collect()
}

/// The MAC of the LAN device: it survives renames and new addresses.
fn identity_mac(devices: &Value, interfaces: &Value) -> Option<String> {
    let lan = sdk_json::items(interfaces, "/interface")
        .iter()
        .find(|interface| interface.get("interface") == Some(&json!("lan")));
    let device =
        lan.and_then(|lan| sdk_json::text(lan, "/l3_device").or_else(|| sdk_json::text(lan, "/device")));
    // A VLAN of the bridge has the bridge's address.
    let of = |name: &str| {
        devices
            .get(name)
            .and_then(|device| sdk_json::text(device, "/macaddr"))
            .filter(|mac| *mac != "00:00:00:00:00:00")
    };
    device
        .and_then(of)
        .or_else(|| of("br-lan"))
        .or_else(|| of("eth0"))
        .or_else(|| {
            devices
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(name, _)| *name != "lo")
                .find_map(|(name, _)| of(name))
        })
        .map(lower_mac)
}

fn hostname(board: &Value) -> &str {
    sdk_json::text(board, "/hostname").unwrap_or("router")
}

/// The identity of the router: its address, else its board and name.
pub(crate) fn identity(board: &Value, devices: &Value, dump: &Value) -> String {
    let hostname = hostname(board);
    let named = || sdk_json::text(board, "/board_name").map(|board| format!("{board}/{hostname}"));
    identity_mac(devices, dump).or_else(named).unwrap_or_else(|| hostname.to_owned())
}

fn router(survey: &Survey, stations: &clients::Stations, leases: &leases::Leases) -> Device {
    let (board, info, dump, devices, wireless) =
        (survey.answer(0), survey.answer(1), survey.answer(2), survey.answer(3), survey.answer(4));
    let say = |pointer: &str| sdk_json::text(board, pointer).map(str::to_owned);
    let mac = identity_mac(devices, dump);
    let hostname = hostname(board).to_owned();
    let identity = identity(board, devices, dump);
    let mut absent: Vec<&String> =
        survey.absent.iter().chain(&stations.absent).chain(&leases.failures).collect();
    absent.dedup();
    let denied: Vec<&String> = survey.denied.iter().chain(&stations.denied).collect();
    let attributes = json!({
        "interfaces": without(interfaces(dump), "uptime"),
        "ports": without_each(ports(devices), "statistics"),
        "radios": radios(wireless),
        "kernel": board.get("kernel"),
        "target": board.pointer("/release/target"),
        "unavailable": absent,
        "denied": denied,
    });
    let measurements = json!({
        "uptime_secs": info.get("uptime"),
        "load": load(info),
        "memory_bytes": info.get("memory"),
        "ports": only(devices, "statistics"),
    });
    Device {
        identity,
        name: hostname,
        kind: "router".to_owned(),
        status: Status::Online,
        model: say("/model"),
        firmware: say("/release/version"),
        mac,
        addresses: addresses(dump),
        attributes: attributes.to_string(),
        measurements: measurements.to_string(),
        ..Device::named("")
    }
}

fn without(mut items: Vec<Value>, field: &str) -> Vec<Value> {
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.remove(field);
    }
    items
}

fn without_each(mut items: Map<String, Value>, field: &str) -> Map<String, Value> {
    for item in items.values_mut().filter_map(Value::as_object_mut) {
        item.remove(field);
    }
    items
}

/// One field of each device, by the device's name.
fn only(devices: &Value, field: &str) -> Map<String, Value> {
    let devices = devices.as_object().into_iter().flatten();
    devices.filter_map(|(name, device)| Some((name.clone(), device.get(field)?.clone()))).collect()
}

/// The device gives fixed point, 65536 to one; kept as hundredths to stay exact.
fn load(info: &Value) -> Vec<String> {
    let hundredths = |raw: u64| raw * 100 / 65_536;
    sdk_json::items(info, "/load")
        .iter()
        .filter_map(Value::as_u64)
        .map(hundredths)
        .map(|h| format!("{}.{:02}", h / 100, h % 100))
        .collect()
}

fn addresses(dump: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for interface in sdk_json::items(dump, "/interface")
        .iter()
        .filter(|interface| interface.get("interface") != Some(&json!("loopback")))
    {
        for list in ["/ipv4-address", "/ipv6-address"] {
            for address in sdk_json::items(interface, list)
                .iter()
                .filter_map(|address| sdk_json::text(address, "/address"))
            {
                if !found.iter().any(|known| known == address) {
                    found.push(address.to_owned());
                }
            }
        }
    }
    found
}

/// Layer 3 interfaces, without the secrets that `data` may hold.
pub(crate) fn interfaces(dump: &Value) -> Vec<Value> {
    let keep = [
        "interface",
        "up",
        "proto",
        "device",
        "l3_device",
        "uptime",
        "ipv4-address",
        "ipv6-address",
        "ipv6-prefix-assignment",
        "route",
        "dns-server",
        "errors",
    ];
    sdk_json::items(dump, "/interface").iter().map(|interface| picked(interface, &keep)).collect()
}

/// Devices by name with their counters, members and VLANs.
pub(crate) fn ports(devices: &Value) -> Map<String, Value> {
    let keep =
        ["type", "up", "carrier", "macaddr", "mtu", "speed", "bridge-members", "bridge-vlans", "statistics"];
    devices
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, device)| (name.clone(), picked(device, &keep)))
        .collect()
}

fn radios(wireless: &Value) -> Map<String, Value> {
    let interface = |interface: &Value| {
        let config = interface.get("config").cloned().unwrap_or_default();
        json!({"ifname": interface.get("ifname"), "ssid": config.get("ssid"), "mode": config.get("mode"), "encryption": config.get("encryption"), "network": config.get("network")})
    };
    let radio = |radio: &Value| {
        let interfaces: Vec<Value> = sdk_json::items(radio, "/interfaces").iter().map(interface).collect();
        json!({"up": radio.get("up"), "disabled": radio.get("disabled"), "band": radio.pointer("/config/band"), "channel": radio.pointer("/config/channel"), "interfaces": interfaces})
    };
    wireless.as_object().into_iter().flatten().map(|(name, body)| (name.clone(), radio(body))).collect()
}

fn picked(value: &Value, keep: &[&str]) -> Value {
    keep.iter()
        .filter_map(|name| Some(((*name).to_owned(), value.get(*name)?.clone())))
        .collect::<Map<_, _>>()
        .into()
}
