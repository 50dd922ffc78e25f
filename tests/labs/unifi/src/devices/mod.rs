//! Devices: what a read shows of one, and what a write to one does.

mod hardware;
mod ports;
mod radios;
mod writing;

use serde_json::{Value, json};

use crate::console::{Console, duration};
use crate::row::{Row, flag, number, object, objects, put, put_default, shown, text, uuid};
use crate::store::GLOBAL;

pub(crate) use hardware::Hardware;
pub(crate) use ports::{is_enabled, lags, official_ports, power_cycle, profile_of};
pub(crate) use radios::official_radios;
pub(crate) use writing::write;

/// The record of a device as a read shows it: its configuration, its state and its counters.
pub(crate) fn full(own: &Console, site: &str, device: &Row) -> Row {
    let mut row = shown(device);
    // A read shows a write a moment later.
    if let Some(old) = object(device, "~old") {
        for (name, value) in old {
            if value.is_null() {
                row.remove(name)
            } else {
                row.insert(name.clone(), value.clone())
            };
        }
    }
    state(own, device, &mut row);
    let uplink = uplink(own, site, device);
    let neighbours = neighbours(own, site, device);
    let mut ports = ports::table(own, site, device);
    for port in ports.as_array_mut().into_iter().flatten() {
        let mut all = neighbours.as_array().into_iter().flatten();
        if let Some(neighbour) = all.find(|one| one["local_port_idx"] == port["port_idx"]) {
            port["lldp_table"] = heard(own, site, neighbour);
        }
    }
    put(&mut row, "port_table", ports);
    put(&mut row, "lldp_table", neighbours);
    put(&mut row, "downlink_table", downlinks(own, site, device));
    if let Some(uplink) = uplink {
        put(&mut row, "uplink", uplink);
    }
    radios::fill(own, site, device, &mut row);
    if is_gateway(device) {
        gateway(own, site, device, &mut row);
    }
    row
}

/// What `stat/device-basic` shows.
pub(crate) fn basic(device: &Row) -> Row {
    let names = ["_id", "mac", "name", "model", "type", "state", "adopted", "disabled", "ip", "version"];
    shown(device).into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect()
}

pub(crate) fn is_gateway(device: &Row) -> bool {
    matches!(text(device, "type"), "udm" | "ugw" | "uxg")
}

/// Whether a device, and each one between it and the root, is connected.
pub(crate) fn is_reached(own: &Console, site: &str, mac: &str) -> bool {
    let mut mac = mac.to_owned();
    for _ in 0..8 {
        let Some(device) = own.store.having(site, "device", "mac", &mac) else { return false };
        if !matches!(number(device, "state"), Some(1 | 5)) {
            return false;
        }
        let Some(uplink) = object(device, "~uplink") else { return true };
        text(uplink, "mac").clone_into(&mut mac);
    }
    true
}

fn state(own: &Console, device: &Row, row: &mut Row) {
    let booted = number(device, "~booted").and_then(|at| u64::try_from(at).ok()).unwrap_or(own.now);
    let is_on = matches!(number(device, "state"), Some(1 | 5 | 4 | 6));
    let uptime = own.now.saturating_sub(booted) / 1000;
    let seen = if is_on { own.now / 1000 } else { booted / 1000 };
    let generation = number(device, "~generation").unwrap_or_default();
    let mac = text(device, "mac");
    put(row, "device_id", text(device, "_id"));
    put(row, "displayable_version", text(device, "version"));
    put(row, "upgradable", device.contains_key("~next"));
    if let Some(next) = device.get("~next") {
        put(row, "upgrade_to_firmware", next.clone());
    }
    put(row, "uptime", if is_on { uptime } else { 0 });
    put(row, "_uptime", if is_on { uptime } else { 0 });
    put(row, "last_seen", seen);
    put(row, "connected_at", booted / 1000);
    put(row, "provisioned_at", number(device, "~provisioned").unwrap_or_default() / 1000);
    put(row, "cfgversion", configuration(mac, generation));
    put(row, "known_cfgversion", configuration(mac, generation));
    put(row, "inform_url", "http://192.168.1.1:8080/inform");
    put(row, "inform_ip", "192.168.1.1");
    put(row, "locating", flag(device, "~locating"));
    put(row, "rollupgrade", flag(device, "~rolling"));
    put(row, "unsupported", false);
    put(row, "model_in_lts", false);
    put(row, "model_in_eol", false);
    put(row, "license_state", "registered");
    put(row, "required_version", "4.0.0");
    put(row, "x_authkey", uuid("auth", mac).replace('-', ""));
    put(row, "x_inform_authkey", uuid("inform", mac).replace('-', ""));
    put(row, "x_has_ssh_hostkey", true);
    put(row, "system-stats", json!({ "cpu": "7.4", "mem": "38.1", "uptime": uptime.to_string() }));
    put(
        row,
        "sys_stats",
        json!({
            "loadavg_1": "0.31", "loadavg_5": "0.28", "loadavg_15": "0.24", "mem_total": 1_010_000_000_u64,
            "mem_used": 385_000_000_u64,
        }),
    );
    put(row, "bytes", uptime * 91_000);
    put(row, "tx_bytes", uptime * 52_000);
    put(row, "rx_bytes", uptime * 39_000);
    put(row, "satisfaction", 98);
    if text(device, "type") == "usw" {
        put(row, "has_temperature", true);
        put(row, "general_temperature", if is_on { 47 } else { 0 });
    }
    put_default(row, "port_overrides", json!([]));
    if device.contains_key("~outlets") {
        put(row, "outlet_table", outlets(device));
    }
}

/// The outlets, as they are told to be.
fn outlets(device: &Row) -> Value {
    let told = objects(device, "outlet_overrides");
    let rows = objects(device, "~outlets").into_iter().map(|outlet| {
        let mut row = outlet.clone();
        put_default(&mut row, "relay_state", json!(true));
        put_default(&mut row, "cycle_enabled", json!(false));
        let own = told.iter().find(|entry| number(entry, "index") == number(outlet, "index"));
        own.into_iter().for_each(|entry| row.extend((*entry).clone()));
        Value::Object(row)
    });
    Value::Array(rows.collect())
}

/// The number of a delivered configuration.
pub(crate) fn configuration(mac: &str, generation: i64) -> String {
    uuid("configuration", &format!("{mac} {generation}")).replace('-', "")[..16].to_owned()
}

fn uplink(own: &Console, site: &str, device: &Row) -> Option<Value> {
    let uplink = object(device, "~uplink")?;
    let mac = text(uplink, "mac");
    let name = own.store.having(site, "device", "mac", mac).map(|row| text(row, "name"));
    if flag(uplink, "wireless") {
        return Some(json!({
            "type": "wireless", "uplink_mac": mac, "uplink_device_name": name, "up": true, "radio": "na",
            "channel": 36,
            "rssi": 48, "signal": -58, "mac": text(device, "mac"), "uplink_source": "legacy",
        }));
    }
    let speed = number(uplink, "speed").unwrap_or(1000);
    Some(json!({
        "type": "wire", "uplink_mac": mac, "uplink_device_name": name, "up": true, "speed": speed,
        "full_duplex": true,
        "uplink_remote_port": number(uplink, "remote_port"), "port_idx": number(uplink, "port"),
        "max_speed": speed,
        "mac": text(device, "mac"), "media": "GE", "name": "eth0", "uplink_source": "legacy",
    }))
}

/// The devices whose uplink is this one.
fn children<'a>(own: &'a Console, site: &str, mac: &'a str) -> impl Iterator<Item = (&'a Row, &'a Row)> {
    let rows = own.store.rows(site, "device").iter();
    rows.filter_map(move |row| object(row, "~uplink").filter(|up| text(up, "mac") == mac).map(|up| (row, up)))
}

fn downlinks(own: &Console, site: &str, device: &Row) -> Value {
    let rows = children(own, site, text(device, "mac")).map(|(row, uplink)| {
        json!({
            "mac": text(row, "mac"), "port_idx": number(uplink, "remote_port"), "full_duplex": true,
            "speed": number(uplink, "speed").unwrap_or(1000),
            "type": if flag(uplink, "wireless") { "wireless" } else { "wire" },
        })
    });
    Value::Array(rows.collect())
}

/// What the device hears of its neighbours.
fn neighbours(own: &Console, site: &str, device: &Row) -> Value {
    let own_mac = text(device, "mac");
    let mut rows: Vec<Value> = children(own, site, own_mac)
        .filter(|(row, uplink)| !flag(uplink, "wireless") && is_reached(own, site, text(row, "mac")))
        .map(|(row, uplink)| {
            let port = number(uplink, "remote_port");
            json!({
                "local_port_idx": port, "local_port_name": format!("Port {}", port.unwrap_or_default()),
                "chassis_id": text(row, "mac"),
                "port_id": format!("Port {}", number(uplink, "port").unwrap_or(1)),
                "is_wired": true,
            })
        })
        .collect();
    if let Some(uplink) = object(device, "~uplink").filter(|uplink| !flag(uplink, "wireless")) {
        let port = number(uplink, "port").unwrap_or(1);
        rows.push(json!({
            "local_port_idx": port, "local_port_name": format!("Port {port}"),
            "chassis_id": text(uplink, "mac"),
            "port_id": format!("Port {}", number(uplink, "remote_port").unwrap_or_default()),
            "is_wired": true,
        }));
    }
    Value::Array(rows)
}

/// The same where the port stands that heard it, with the name that the neighbour tells.
fn heard(own: &Console, site: &str, neighbour: &Value) -> Value {
    let mac = neighbour["chassis_id"].as_str().unwrap_or_default();
    let name = own.store.having(site, "device", "mac", mac).map(|row| text(row, "name"));
    json!([{ "lldp_chassis_id": mac, "lldp_port_id": neighbour["port_id"], "lldp_system_name": name }])
}

/// Addresses and lines of a gateway.
fn gateway(own: &Console, site: &str, device: &Row, row: &mut Row) {
    let networks = own.store.rows(site, "networkconf");
    let table = networks.iter().filter(|network| !text(network, "ip_subnet").is_empty()).map(|network| {
        json!({
            "_id": network["_id"], "name": text(network, "name"), "ip_subnet": text(network, "ip_subnet"),
            "ip": text(network, "ip_subnet").split('/').next(), "mac": text(device, "mac"), "up": "true",
            "purpose": text(network, "purpose"), "num_sta": crate::clients::count_of(own, site, network),
            "vlan": network.get("vlan").cloned().unwrap_or_default(),
        })
    });
    put(row, "network_table", Value::Array(table.collect()));
    let seconds = own.now / 1000 % 1_000_000;
    for (place, wan) in networks.iter().filter(|network| text(network, "purpose") == "wan").enumerate() {
        let address = if place == 0 { "203.0.113.17" } else { "198.51.100.42" };
        let ip = Some(text(wan, "wan_ip")).filter(|ip| !ip.is_empty()).unwrap_or(address);
        put(
            row,
            &format!("wan{}", place + 1),
            json!({
                "ip": ip, "ifname": format!("eth{}", 8 + place), "name": text(wan, "name"), "up": place == 0,
                "enable": true,
                "is_uplink": place == 0, "speed": 1000, "full_duplex": true, "type": "wire",
                "mac": text(device, "mac"),
                "gateway": "203.0.113.1", "netmask": "255.255.255.0", "port_idx": 9 + place, "latency": 9,
                "rx_bytes": seconds * 41_000, "tx_bytes": seconds * 9_000,
                "rx_packets": seconds * 38, "tx_packets": seconds * 21,
                "rx_errors": 0, "tx_errors": 0, "rx_dropped": 0, "tx_dropped": 0,
                "availability": if place == 0 { 99.9 } else { 0.0 },
            }),
        );
    }
    put(row, "ethernet_table", json!([{ "name": "eth0", "mac": text(device, "mac"), "num_port": 8 }]));
    put(
        row,
        "speedtest-status",
        json!({ "latency": 9, "xput_download": 486.2, "xput_upload": 212.4, "status_summary": 2 }),
    );
    put(
        row,
        "uplink",
        json!({
            "type": "wire", "up": true, "name": "eth8", "ip": "203.0.113.17", "speed": 1000,
            "full_duplex": true,
            "port_idx": 9, "mac": text(device, "mac"),
        }),
    );
}

/// The words of the official interface for a state of the older ones.
pub(crate) fn official_state(state: Option<i64>) -> &'static str {
    match state {
        Some(1) => "ONLINE",
        Some(2) => "PENDING_ADOPTION",
        Some(4) => "UPDATING",
        Some(5) => "GETTING_READY",
        Some(7) => "ADOPTING",
        Some(8) => "DELETING",
        Some(6) => "CONNECTION_INTERRUPTED",
        Some(11) => "ISOLATED",
        _ => "OFFLINE",
    }
}

fn features(device: &Row) -> Vec<&'static str> {
    let mut found = Vec::new();
    if objects(device, "~ports").len() > 1 {
        found.push("switching");
    }
    if !objects(device, "~radios").is_empty() {
        found.push("accessPoint");
    }
    found
}

fn interfaces(device: &Row) -> Vec<&'static str> {
    let mut found = vec!["ports"];
    if !objects(device, "~radios").is_empty() {
        found.push("radios");
    }
    found
}

/// A row of the official list; a gateway does not name itself one there.
pub(crate) fn official_row(device: &Row) -> Value {
    json!({
        "id": text(device, "~uuid"), "macAddress": text(device, "mac"), "ipAddress": text(device, "ip"),
        "name": text(device, "name"), "model": text(device, "~name"),
        "state": official_state(number(device, "state")),
        "supported": true,
        "firmwareVersion": text(device, "version").split('.').take(3).collect::<Vec<_>>().join("."),
        "firmwareUpdatable": device.contains_key("~next"), "features": features(device),
        "interfaces": interfaces(device),
    })
}

/// One device in the official interface.
pub(crate) fn official_detail(own: &Console, site: &str, device: &Row) -> Value {
    let mut row = official_row(device);
    let at = |name: &str| number(device, name).and_then(|at| u64::try_from(at).ok()).unwrap_or_default();
    row["adoptedAt"] = crate::row::moment(at("~adopted"));
    row["provisionedAt"] = crate::row::moment(at("~provisioned"));
    row["configurationId"] =
        json!(configuration(text(device, "mac"), number(device, "~generation").unwrap_or_default()));
    if let Some(uplink) = object(device, "~uplink") {
        let above = own.store.having(site, "device", "mac", text(uplink, "mac"));
        row["uplink"] = json!({ "deviceId": above.map(|row| text(row, "~uuid")) });
    }
    let mut kinds = json!({});
    for feature in features(device) {
        kinds[feature] =
            if feature == "switching" { json!({ "lags": ports::lags(device) }) } else { json!({}) };
    }
    row["features"] = kinds;
    row["interfaces"] = json!({ "ports": official_ports(own, site, device) });
    let radios = official_radios(device);
    if !radios.is_empty() {
        row["interfaces"]["radios"] = json!(radios);
    }
    row
}

/// The latest counters of a device.
pub(crate) fn statistics(own: &Console, device: &Row) -> Value {
    let booted = number(device, "~booted").and_then(|at| u64::try_from(at).ok()).unwrap_or(own.now);
    let sync = duration(own.settings.sync);
    let radios = objects(device, "~radios")
        .into_iter()
        .map(|radio| json!({ "frequencyGHz": radios::frequency(text(radio, "radio")), "txRetriesPct": 3.2 }));
    let radios: Vec<Value> = radios.collect();
    let interfaces = if radios.is_empty() { json!({}) } else { json!({ "radios": radios }) };
    json!({
        "uptimeSec": own.now.saturating_sub(booted) / 1000, "lastHeartbeatAt": crate::row::moment(own.now),
        "nextHeartbeatAt": crate::row::moment(own.now + sync), "loadAverage1Min": 0.31,
        "loadAverage5Min": 0.28,
        "loadAverage15Min": 0.24, "cpuUtilizationPct": 7.4, "memoryUtilizationPct": 38.1,
        "uplink": { "txRateBps": 184_000, "rxRateBps": 921_000 }, "interfaces": interfaces,
    })
}

/// The record of a device of the site, or of one that waits to be adopted.
pub(crate) fn any<'a>(own: &'a Console, site: &str, mac: &str) -> Option<&'a Row> {
    let found = own.store.having(site, "device", "mac", mac);
    found.or_else(|| own.store.having(GLOBAL, "pending", "mac", mac))
}
