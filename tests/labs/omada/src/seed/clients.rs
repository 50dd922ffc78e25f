//! Clients of a site: two of three on the air, the rest at ports; every tenth is offline.

use serde_json::{Value, json};

use super::devices::mac;
use crate::controller::Omada;
use crate::timeline::CLIENTS;

const NAMES: [&str; 8] = ["laptop", "phone", "printer", "camera", "tablet", "tv", "sensor", "desk-phone"];

pub(super) fn plant(controller: &mut Omada, site: &str, number: usize, count: usize) {
    let now = controller.now;
    let networks = controller.store.rows(site, "switch.network").clone();
    let rows = (0..count).map(|place| {
        // The first networks are those that clients use: default, staff, things.
        let network = &networks[place % networks.len().clamp(1, 3)];
        client(now, number, place, network)
    });
    let rows: Vec<Value> = rows.collect();
    controller.store.rows_mut(site, CLIENTS).extend(rows);
}

fn client(now: u64, site: usize, place: usize, network: &Value) -> Value {
    let kind = NAMES[place % NAMES.len()];
    let name = format!("{kind}-{:03}", place + 1);
    let is_wireless = place % 3 != 2;
    let is_active = place % 10 != 9;
    let vid = network["vlan"].as_u64().unwrap_or(1);
    // The default network, VLAN 1, is the one whose third part is 0.
    let third = (if vid == 1 { 0 } else { vid }) % 200;
    // More clients than a network has addresses live in another block.
    let block = match place / 600 {
        0 => format!("10.{}", site % 200 + 4),
        more => format!("172.{}", 16 + more % 240),
    };
    let since = now.saturating_sub(600_000 + place as u64 % 500 * 61_000);
    let mut row = json!({
        "id": format!("66b0{site:08x}{place:012x}"), "name": name, "hostName": name, "vendor": "Example",
        "mac": format!("A4-2B-{:02X}-{:02X}-{:02X}-{:02X}", site % 256, place / 65_536 % 256,
        place / 256 % 256, place % 256),
        "deviceType": kind, "deviceCategory": "other", "osName": "",
        "ip": format!("{block}.{third}.{}", 50 + place / 3 % 200), "ipv6List": [],
        "vid": vid, "networkName": network["name"], "guest": false, "wireless": is_wireless,
        "active": is_active,
        "blocked": false, "manager": false, "connectedAt": since, "lastSeen": now.saturating_sub(900_000),
        "trafficDown": 1_200_000 * (place as u64 + 1), "trafficUp": 310_000 * (place as u64 + 1),
        "activity": 1200,
        "downPacket": 1900 * place, "upPacket": 800 * place, "authStatus": 0,
        "healthScore": if is_active { 8 } else { 0 },
        "rateLimit": {"enable": false}, "clientLockToApSetting": {"enable": false, "aps": []},
    });
    let own = if is_wireless {
        let ap = [(0x30, "AP lobby"), (0x31, "AP office"), (0x32, "AP warehouse")][place % 3];
        json!({
            "connectType": 1, "connectDevType": "ap", "apMac": mac(site, ap.0), "apName": ap.1,
            "ssid": "Office",
            "radioId": place % 2, "channel": if place.is_multiple_of(2) { 6 } else { 36 }, "wifiMode": 6,
            "rssi": -48 - i64::from(u8::try_from(place % 30).unwrap_or_default()),
            "snr": 35, "signalLevel": 78, "signalRank": 4, "rxRate": 866_000, "txRate": 866_000,
            "powerSave": false,
        })
    } else {
        json!({
            "connectType": 2, "connectDevType": "switch", "switchMac": mac(site, 0x20),
            "switchName": "Core switch",
            "port": 5 + place % 7, "standardPort": format!("1/0/{}", 5 + place % 7),
        })
    };
    crate::shape::lay_over(&mut row, &own);
    row
}
