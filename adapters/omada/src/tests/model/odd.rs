//! Answers that are odd or large, and how many requests a reading takes.

use heddle_sdk::Origin;
use heddle_sdk::crud::{Modelled, Vendor as _};
use heddle_sdk::testing::{FakeHost, json_response};
use serde_json::json;

use super::*;
use crate::Vendor;

#[test]
fn few_requests_read_a_kind_and_only_parts_of_devices_and_networks_grow() {
    let device = controller();
    // A request for the controller's id goes before each list; a real host knows it from its login. The site has six
    // devices, of which two are switches and three access points, five networks and three SSIDs.
    for (kind, expected) in [
        ("address-group", 2),
        ("backup", 2),
        ("certificate", 2),
        ("client", 6),
        ("dhcp-lease", 2),
        ("dhcp-pool", 2),
        ("dhcp-reservation", 2),
        ("dns-record", 8),
        ("firewall-rule", 20),
        ("firmware", 10),
        ("gateway", 3),
        ("interface", 10),
        ("nat-rule", 4),
        ("neighbour", 4),
        ("port", 14),
        ("radio", 10),
        ("radius-profile", 2),
        ("radius-user", 2),
        ("route", 2),
        ("ssid", 8),
        ("system", 2),
        ("vlan", 6),
        ("vpn-peer", 8),
        ("vpn-session", 2),
        ("vpn-tunnel", 14),
    ] {
        assert_eq!(read(&device, kind).1, expected, "{kind}");
    }
    assert_eq!(filled().len(), 25);
}

#[test]
fn three_thousand_clients_are_read_in_few_requests() {
    let device = Device::with(Seed { sites: 1, clients: 3_000, ..Seed::default() }, "lab-secret");
    let (clients, requests, is_complete) = read(&device, "client");
    assert_eq!((clients.len(), is_complete), (3_000, true));
    assert!(requests <= 100, "{requests}");
}

/// A host that answers everything with this result.
fn odd(result: &Value) -> FakeHost<'static> {
    let answer = json!({ "errorCode": 0, "result": result });
    let mut host = FakeHost::new(move |request, _| {
        let info = json!({ "errorCode": 0, "result": { "omadacId": "c" } });
        Ok(json_response(200, if request.path == "/api/info" { &info } else { &answer }))
    })
    .describing(description());
    host.settings = json!({ "site": "66a078dde6c4000000000004" });
    host
}

#[test]
fn odd_answers_make_no_object_that_does_not_fit() {
    let rows = json!([
        {}, 7, null, "text", [], { "mac": 7, "id": {}, "name": [], "port": "x", "status": "?", "index": 0 },
        { "mac": "3C-6A", "name": "n", "uptime": "soon", "cpuUtil": "much", "vlan": 9_000, "purpose": 1, "vid": 0 },
        { "mac": "3C-6A-D2-00-01-20", "wlanId": "w", "name": "n", "band": "3", "security": {}, "vlanEnable": true },
        { "id": "a", "switchMac": "x", "portStatus": [], "lagSetting": 3, "networkTagsSetting": 9, "mode": 0 },
        { "id": "b", "direction": 7, "protocols": [{}, "x"], "sourceType": 99, "sourceIds": "x", "ipList": [7, {}] },
        { "id": "c", "destinations": [{}, null, 7], "ipAddresses": {}, "cname": 7, "authServer": [{}, 3], "domain": [] },
        { "userName": "u", "vpnId": 1, "userId": {}, "remoteIp": "", "expiredOn": "soon", "fileName": "f" },
    ]);
    let whole =
        json!({ "data": rows, "portList": rows, "fileList": rows, "totalRows": 8, "radioSetting2g": rows });
    for result in
        [rows.clone(), whole, json!([]), json!({}), json!(null), json!("text"), json!({ "data": 7 })]
    {
        let host = odd(&result);
        for kind in filled().keys() {
            let schema = model::find(kind).unwrap();
            let Ok(page) = Omada::list_model(&host, kind, None, None) else { continue };
            for object in &page.items {
                assert!(!object.key.is_empty(), "{kind}: {}", object.fields);
                assert_eq!(schema.problem(&fields(object)), None, "{kind}: {}", object.fields);
            }
        }
    }
}

#[test]
fn hook_takes_any_row() {
    for row in [json!(null), json!({}), json!([1]), json!({ "&": 7, "$": [], "^": "x", "@": {} }), json!("é")]
    {
        for kind in filled().keys() {
            let mut object = Modelled {
                key: "é".repeat(20),
                label: "l".to_owned(),
                origin: Origin::Own,
                device: None,
                fields: json!({ "remote_chassis": "é", "tagged_mode": 7, "band": [] })
                    .as_object()
                    .unwrap()
                    .clone(),
            };
            Vendor.modelled(kind, &row, &mut object);
        }
    }
}

#[test]
fn five_thousand_rows_are_read_without_a_trap() {
    let rows: Vec<Value> = (0..5_000)
        .map(|n| {
            json!({ "mac": "3C-6A-D2-00-01-20", "name": format!("n{n}"), "id": format!("i{n}"), "type": 0, "vlan": 7,
                    "sourceIds": [format!("i{n}")], "portLagNetworkInfo": { "tagPorts": [n], "vlan": 7 }, "port": n })
        })
        .collect();
    let host = odd(&json!({ "data": rows, "totalRows": 5_000 }));
    // A controller that gives more rows than it is asked for.
    for (kind, seen) in [("vlan", 5_000), ("nat-rule", 5_000), ("certificate", 5_000), ("dhcp-pool", 0)] {
        let page = Omada::list_model(&host, kind, None, None).unwrap();
        assert_eq!(page.items.len(), seen, "{kind}");
    }
}
