//! Settings: what the vendor gives a new site, and what an administrator has added.

use serde_json::{Value, json};

use crate::controller::Omada;
use crate::store::GLOBAL;
use crate::timeline::{ALERTS, EVENTS};

pub(super) fn plant_global(controller: &mut Omada) {
    for (number, name) in ["Owner", "Administrator", "Viewer"].iter().enumerate() {
        put(
            controller,
            GLOBAL,
            "system.role",
            json!({"name": name, "type": number, "defaultRole": true}),
            "id",
        );
    }
}

pub(super) fn furnish(controller: &mut Omada, site: &str) {
    let network = json!({
        "name": "Default", "purpose": 1, "vlan": 1, "vlanType": 0, "application": 0,
        "interfaceIds": ["2_lan1"],
        "gatewaySubnet": "10.4.0.1/24", "igmpSnoopEnable": false, "mldSnoopEnable": false, "primary": true,
        "allLan": true,
        "dhcpSettingsVO": {
            "enable": true, "ipRangePool": [{"ipaddrStart": "10.4.0.50", "ipaddrEnd": "10.4.0.254"}],
            "dhcpns": "auto", "leasetime": 120, "gateway": "10.4.0.1", "options": [],
        },
        "lanNetworkIpv6Config": {"proto": 0, "enable": 0},
    });
    put(controller, site, "switch.network", network, "id");
    for (name, flag) in [("All", 0), ("Disable", 1), ("Default", 2)] {
        let profile = json!({
            "name": name, "flag": flag, "type": i32::from(flag == 2), "poe": 2, "dot1x": 1,
            "portIsolationEnable": false,
            "lldpMedEnable": true, "bandWidthCtrlType": 0, "spanningTreeEnable": false,
            "loopbackDetectEnable": true,
            "eeeEnable": false, "flowControlEnable": false, "prohibitModify": flag != 2,
        });
        put(controller, site, "switch.port-profile", profile, "id");
    }
    put(controller, site, "wifi.wlan-group", json!({"name": "Default", "primary": true}), "wlanId");
    let any = json!({"groupId": "IPGroup_Any", "id": "IPGroup_Any", "name": "IPGroup_Any", "type": 0,
    "buildIn": true, "ipList": []});
    controller.store.rows_mut(site, "profiles.group").push(any);
}

pub(super) fn plant(controller: &mut Omada, site: &str, number: usize) {
    let octet = number % 200 + 4;
    plant_networks(controller, site, octet);
    plant_wireless(controller, site);
    plant_rules(controller, site, octet);
    plant_profiles(controller, site);
    plant_vpn(controller, site);
}

fn plant_networks(controller: &mut Omada, site: &str, octet: usize) {
    if let Some(default) = controller.store.find_mut(site, "switch.network", "name", "Default") {
        default["gatewaySubnet"] = json!(format!("10.{octet}.0.1/24"));
        default["dhcpSettingsVO"]["gateway"] = json!(format!("10.{octet}.0.1"));
        default["dhcpSettingsVO"]["ipRangePool"] = json!([
            {"ipaddrStart": format!("10.{octet}.0.50"), "ipaddrEnd": format!("10.{octet}.0.254")},
        ]);
    }
    for (name, vlan) in [("Staff", 20), ("Things", 30), ("Guests", 40)] {
        let network = json!({
            "name": name, "purpose": 1, "vlan": vlan, "vlanType": 0, "application": 0,
            "interfaceIds": ["2_lan1"],
            "gatewaySubnet": format!("10.{octet}.{vlan}.1/24"), "igmpSnoopEnable": false,
            "mldSnoopEnable": false, "allLan": true,
            "dhcpSettingsVO": {
                "enable": true, "dhcpns": "auto", "leasetime": 120, "options": [],
                "ipRangePool": [
                    {
                        "ipaddrStart": format!("10.{octet}.{vlan}.50"),
                        "ipaddrEnd": format!("10.{octet}.{vlan}.254"),
                    },
                ],
            },
            "lanNetworkIpv6Config": {"proto": 0, "enable": 0},
        });
        put(controller, site, "switch.network", network, "id");
    }
    let id_of = |name: &str| id_of(controller, site, name);
    let trunk = json!({
        "name": "Access point", "flag": 2, "type": 1, "poe": 2, "dot1x": 1,
        "nativeNetworkId": id_of("Default"),
        "tagNetworkIds": [id_of("Staff"), id_of("Guests")], "untagNetworkIds": [],
        "portIsolationEnable": false,
    });
    put(controller, site, "switch.port-profile", trunk, "id");
}

/// The id of a network.
fn id_of(controller: &Omada, site: &str, name: &str) -> Value {
    controller.store.find(site, "switch.network", "name", name).map_or(Value::Null, |row| row["id"].clone())
}

fn plant_rules(controller: &mut Omada, site: &str, octet: usize) {
    let group = json!({
        "name": "Servers", "type": 0, "count": 1, "buildIn": false,
        "ipList": [{"ip": format!("10.{octet}.20.10"), "mask": 32, "description": "files"}],
    });
    let group = put(controller, site, "profiles.group", group, "groupId");
    let acl = json!({
        "index": 1, "description": "things-to-servers", "status": true, "policy": 0, "protocols": [256],
        "sourceType": 0, "sourceIds": [id_of(controller, site, "Things")], "destinationType": 1,
        "destinationIds": [group],
        "direction": {"lanToWan": false, "lanToLan": true, "wanInIds": [], "vpnInIds": []},
        "stateMode": 0, "syslog": false,
    });
    put(controller, site, "firewall.gateway-acl", acl, "id");
    let forward = json!({
        "name": "web", "status": true, "from": 0, "interfaceWanPortId": [WAN_PORT], "externalPort": "8443",
        "forwardIp": format!("10.{octet}.20.10"), "forwardPort": "443", "protocol": 1, "dMZ": false,
    });
    put(controller, site, "routing.port-forward", forward, "id");
    let route = json!({
        "name": "lab", "status": true, "destinations": ["192.168.77.0/24"], "routeType": 0,
        "nextHopIp": format!("10.{octet}.20.2"), "metric": 0,
    });
    put(controller, site, "routing.static-route", route, "id");
    let wan = json!({"wanPortsConfig": [{
        "portId": WAN_PORT, "portName": "WAN/LAN1", "portDescription": "",
        "wanPortIpv4Setting": {"protoType": 1, "vlanId": 0, "qosTag": false, "ipv4Dhcp": {}},
        "wanPortIpv6Setting": {"enable": false, "protoType": 0},
        "wanPortMacSetting": {"method": 0, "mac": ""},
    }]});
    controller.store.set_document(site, "routing.wan", wan);
}

fn plant_profiles(controller: &mut Omada, site: &str) {
    let radius = json!({
        "name": "Office RADIUS",
        "authServer": [{"radiusServerIp": "10.4.20.5", "radiusPort": 1812, "radiusPwd": "radius-secret"}],
        "radiusAccountingEnable": false, "wirelessVlanAssignment": true, "coaEnable": false,
        "builtInServer": false,
    });
    put(controller, site, "profiles.radius", radius, "radiusProfileId");
    let day = json!({"dayType": 0, "startTimeH": 8, "startTimeM": 0, "endTimeH": 18, "endTimeM": 0});
    let hours = json!({"name": "Office hours", "dayMode": 0, "timeList": [day]});
    put(controller, site, "profiles.time-range", hours, "profileId");
    let limit = json!({
        "name": "Guests 10M", "downLimitEnable": true, "downLimit": 10, "downLimitType": 1,
        "upLimitEnable": true, "upLimit": 2, "upLimitType": 1,
    });
    put(controller, site, "profiles.rate-limit", limit, "profileId");
}

fn plant_vpn(controller: &mut Omada, site: &str) {
    let wireguard = json!({
        "name": "wg-remote", "status": true, "mtu": 1420, "listenPort": 51820,
        "privateKey": "yAnzLZ7r0C9mRrX2r0xQWmG4C7Z1Yq2sJr1oX0c9bXQ=",
        "publicKey": "2b8eC7Z1Yq2sJr1oX0c9bXQyAnzLZ7r0C9mRrX2r0x4=", "localIp": "10.88.0.1",
    });
    let interface = put(controller, site, "vpn.wireguard", wireguard, "id");
    let peer = json!({
        "name": "laptop", "status": true, "interfaceId": interface, "interfaceName": "wg-remote",
        "keepAlive": 25,
        "publicKey": "rX2r0xQWmG4C7Z1Yq2sJr1oX0c9bXQyAnzLZ7r0C9m8=", "allowAddress": ["10.88.0.2/32"],
    });
    put(controller, site, "vpn.wireguard-peer", peer, "id");
}

/// The WAN port as ports are named in bodies: a number and an opaque text.
const WAN_PORT: &str = "1_0c41f6b8d2e94a7f8f5f7a3b1c2d4e6f";

fn plant_wireless(controller: &mut Omada, site: &str) {
    let group =
        controller.store.rows(site, "wifi.wlan-group")[0]["wlanId"].as_str().unwrap_or_default().to_owned();
    for (name, vlan, guest, security) in [("Office", 20, false, 3), ("Guests", 40, true, 0)] {
        let mut ssid = json!({
            "name": name, "deviceType": 1, "band": 3, "guestNetEnable": guest, "security": security,
            "oweEnable": false,
            "broadcast": true, "vlanEnable": true, "vlanId": vlan, "hidePwd": false, "mloEnable": false,
            "pmfMode": 3,
            "enable11r": false,
            "vlanSetting": {"mode": 1, "customConfig": {"customMode": 1, "vlanPoolIds": vlan.to_string()}},
        });
        if security == 3 {
            ssid["pskSetting"] = json!({
                "securityKey": "correct-horse-battery", "versionPsk": 2, "encryptionPsk": 3,
                "gikRekeyPskEnable": false,
            });
        }
        crate::shape::lay_over(&mut ssid, &crate::special::ssid_blocks());
        put(controller, site, &format!("wifi.ssid|{group}"), ssid, "ssidId");
    }
}

/// Lines of the last day.
pub(super) fn plant_logs(controller: &mut Omada, site: &str) {
    let now = controller.now;
    for hour in 0..24 {
        let at = now.saturating_sub(hour * 3_600_000 + 60_000);
        controller.log(
            site,
            EVENTS,
            "Client",
            &format!("laptop-{:03} connected to AP office.", hour + 1),
            at,
        );
        if hour % 6 == 0 {
            controller.log(site, ALERTS, "Device", "AP warehouse missed its heartbeat.", at);
        }
    }
}

/// Stores a row under a new id, and gives the id.
fn put(controller: &mut Omada, site: &str, collection: &str, mut row: Value, id_field: &str) -> String {
    let id = controller.store.new_id();
    row["id"] = json!(id);
    row[id_field] = json!(id);
    controller.store.rows_mut(site, collection).push(row);
    id
}
