//! Devices of a site: a gateway, switches with ports, access points with radios, and two that wait for
//! adoption.

use serde_json::{Value, json};

use crate::controller::Omada;
use crate::shape::lay_over;
use crate::special::change_port;
use crate::timeline::{DEVICES, PENDING};

struct Model {
    kind: &'static str,
    name: &'static str,
    version: &'static str,
    firmware: &'static str,
    offered: &'static str,
    ports: u64,
    poe_ports: u64,
    budget: Option<u64>,
}

const GATEWAY: Model = Model {
    kind: "gateway",
    name: "ER7206",
    version: "2.0",
    firmware: "2.1.2 Build 20240324 Rel.42799",
    offered: "2.2.0 Build 20250905 Rel.50121",
    ports: 6,
    poe_ports: 0,
    budget: None,
};
const SWITCH: Model = Model {
    kind: "switch",
    name: "SG3428MP",
    version: "4.20",
    firmware: "4.20.5 Build 20250110 Rel.40112",
    offered: "4.20.9 Build 20250811 Rel.61213",
    ports: 28,
    poe_ports: 24,
    budget: Some(384),
};
const EASY_SWITCH: Model = Model {
    kind: "switch",
    name: "ES210GMP",
    version: "1.0",
    firmware: "1.0.2 Build 20250301 Rel.10211",
    offered: "1.0.2 Build 20250301 Rel.10211",
    ports: 10,
    poe_ports: 8,
    budget: Some(123),
};
const ACCESS_POINT: Model = Model {
    kind: "ap",
    name: "EAP670",
    version: "1.0",
    firmware: "1.0.14 Build 20240903 Rel.73127",
    offered: "1.1.0 Build 20250722 Rel.11298",
    ports: 1,
    poe_ports: 0,
    budget: None,
};

/// The address of a device: site and place in the site.
pub(super) fn mac(site: usize, place: usize) -> String {
    format!("3C-6A-D2-{:02X}-{:02X}-{place:02X}", site / 256 % 256, site % 256 + 1)
}

pub(super) fn plant(controller: &mut Omada, site: &str, number: usize) {
    let rows = [
        (0x10, "Gateway", &GATEWAY, None),
        (0x20, "Core switch", &SWITCH, Some((0x10, "2"))),
        (0x21, "Desk switch", &EASY_SWITCH, Some((0x20, "24"))),
        (0x30, "AP lobby", &ACCESS_POINT, Some((0x20, "2"))),
        (0x31, "AP office", &ACCESS_POINT, Some((0x20, "3"))),
        (0x32, "AP warehouse", &ACCESS_POINT, Some((0x20, "4"))),
    ];
    for (place, name, model, uplink) in rows {
        let mut device = device(controller.now, number, place, name, model);
        if let Some((above, port)) = uplink {
            let above_name = rows.iter().find(|row| row.0 == above).map(|row| row.1);
            device["uplinkDeviceMac"] = json!(mac(number, above));
            device["uplinkDeviceName"] = json!(above_name);
            device["uplinkDevicePort"] = json!(port);
        }
        controller.store.rows_mut(site, DEVICES).push(device);
        controller.add_parts(site, &mac(number, place));
    }
    for (place, model, account) in [(0x40, &ACCESS_POINT, None), (0x41, &SWITCH, Some("admin:old-password"))]
    {
        let mut device = device(controller.now, number, place, &mac(number, place), model);
        device["detailStatus"] = json!(20);
        device["uplinkDeviceMac"] = json!(mac(number, 0x20));
        device["uplinkDevicePort"] = json!(if account.is_none() { "5" } else { "6" });
        if let Some(account) = account {
            device["account"] = json!(account);
        }
        controller.store.rows_mut(site, PENDING).push(device);
    }
}

fn device(now: u64, site: usize, place: usize, name: &str, model: &Model) -> Value {
    let day = 86_400_000;
    let mut device = json!({
        "mac": mac(site, place), "name": name, "type": model.kind, "model": model.name,
        "modelName": model.name,
        "showModel": format!("{} v{}", model.name, model.version), "modelVersion": model.version,
        "compoundModel": format!("{}({})", model.name, model.version), "hwVersion": model.version,
        "firmwareVersion": model.firmware, "version": model.firmware.split(' ').next(),
        "offered": model.offered,
        "needUpgrade": model.firmware != model.offered, "fwDownload": false, "ip": format!("10.{}.0.{place}",
        site + 4),
        "detailStatus": 14, "bootedAt": now.saturating_sub(12 * day + 11_000_000), "cpuUtil": 9,
        "memUtil": 41,
        "memoryUtil": 41, "lastSeen": now, "sn": format!("22{site:04}{place:06}"), "licenseStatus": 0,
        "deviceSeriesType": 0, "linkSpeed": 3, "duplex": 2, "portNum": model.ports, "active": true,
        "publicIp": format!("203.0.113.{}", site % 200 + 10), "ports": model.ports,
        "poePorts": model.poe_ports,
    });
    if model.kind == "switch" {
        device["subtype"] = json!(if model.name.starts_with("ES") { "es" } else { "smart" });
    }
    if let Some(budget) = model.budget {
        device["poeBudget"] = json!(budget);
    }
    device
}

impl Omada {
    /// Makes what belongs to one device: ports of a switch, radios of an access point, ports of a gateway.
    pub(crate) fn add_parts(&mut self, site: &str, mac: &str) {
        let Some(device) = self.store.find(site, DEVICES, "mac", mac).cloned() else { return };
        match device["type"].as_str() {
            Some("switch") => {
                let ports = device["ports"].as_u64().unwrap_or_default();
                for port in 1..=ports {
                    let row = self.port(site, &device, port);
                    self.store.rows_mut(site, "switch.port").push(row);
                }
            }
            Some("ap") => self.store.set_document(site, &format!("wifi.ap-radio|{mac}"), radios()),
            _ => {
                let ports: Vec<Value> = (1..=device["ports"].as_u64().unwrap_or_default())
                    .map(|port| {
                        json!({"port": port, "linkSpeed": 0, "duplex": 0,
                    "status": i32::from(port < 3), "pvid": 1})
                    })
                    .collect();
                if let Some(device) = self.store.find_mut(site, DEVICES, "mac", mac) {
                    device["portConfigs"] = json!(ports);
                }
            }
        }
    }

    fn port(&mut self, site: &str, device: &Value, port: u64) -> Value {
        let profile = self.store.rows(site, "switch.port-profile").first().cloned().unwrap_or_default();
        let network = self.store.rows(site, "switch.network").first().cloned().unwrap_or_default();
        let has_poe = port <= device["poePorts"].as_u64().unwrap_or_default();
        let is_core = device["subtype"] == "smart";
        let has_peer = port < 12 || port == 24 && is_core;
        let name = format!("Port{port}");
        let mut row = json!({
            "id": self.store.new_id(), "port": port, "name": name, "portName": name, "unit": 1, "tagIds": [],
            "standardPort": {"unit": 1, "slot": 0, "port": port}, "switchMac": device["mac"],
            "switchName": device["name"], "Site": site, "switchStatusCategory": 1, "switchType": 0,
            "switchSupportPoe": i32::from(has_poe), "type": if has_poe { 1 } else { 3 }, "maxSpeed": 3,
            "hasPeer": has_peer,
        });
        let settings = json!({
            "profileId": profile["id"], "profileName": profile["name"], "profileOverrideEnable": false,
            "operation": "switching", "linkSpeed": 0, "duplex": 0, "dot1x": 1, "poe": i32::from(has_poe),
            "poeMode": i32::from(has_poe), "supportPoe": has_poe,
            "poeDisplayType": if has_poe { 4 } else { -1 },
            "disable": false, "status": 1, "lagPort": false, "bandWidthCtrlType": 0,
            "spanningTreeEnable": true,
            "nativeNetworkId": network["id"], "networkTagsSetting": 0, "tagNetworkIds": [],
            "untagNetworkIds": [],
        });
        lay_over(&mut row, &settings);
        lay_over(&mut row, &counters(port));
        if has_poe && is_core && (2..=4).contains(&port) {
            row["draws"] = json!(11.5);
        }
        change_port(&mut row, &serde_json::Map::new());
        row
    }
}

fn counters(port: u64) -> Value {
    let (rx, tx) = (port * 81_920_000, port * 40_960_000);
    json!({
        "pdClass": "Class 4", "voltage": 53.5, "rxBytes": rx, "txBytes": tx, "rxFrames": rx / 900,
        "txFrames": tx / 900,
        "rxErrors": 0, "txErrors": 0, "rxBroadcast": 12, "txBroadcast": 40, "rxMulticast": 30,
        "txMulticast": 90,
        "portStatus": {
            "port": port, "linkStatus": 0, "linkSpeed": 3, "duplex": 2, "poe": false, "poePower": 0.0,
            "rx": rx, "tx": tx,
            "rxRate": 120, "txRate": 80, "stpDiscarding": false, "stp": "Forwarding",
        },
    })
}

fn radios() -> Value {
    let radio = |width: &str, power: u64, mode: i64| {
        json!({
            "radioEnable": true, "channelWidth": width, "channel": "0", "txPower": power, "txPowerLevel": 4,
            "channelLimitEnable": false, "freq": 0, "wirelessMode": mode, "channelRange": [],
        })
    };
    json!({"radioSetting2g": radio("2", 20, 16), "radioSetting5g": radio("5", 26, 17)})
}
