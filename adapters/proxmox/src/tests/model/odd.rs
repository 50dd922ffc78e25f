//! Answers that are odd or large, and how many requests a reading takes.

use heddle_lab_proxmox::Setup;
use heddle_sdk::crud::{Modelled, Vendor as _};
use heddle_sdk::testing::FakeHost;
use heddle_sdk::{Origin, Response};
use serde_json::json;

use super::*;
use crate::Vendor;

#[test]
fn few_requests_read_a_kind_and_only_guests_rules_and_snapshots_grow_with_guests() {
    let device = cluster();
    // Two nodes, seven guests, three networks, two sets and three storages of each node.
    for (kind, expected) in [
        ("address-group", 4),
        ("backup", 12),
        ("certificate", 3),
        ("dhcp-pool", 5),
        ("dhcp-reservation", 1),
        ("disk", 3),
        ("firewall-rule", 19),
        ("firmware", 3),
        ("gateway", 6),
        ("guest", 9),
        ("interface", 6),
        ("route", 6),
        ("service", 3),
        ("snapshot", 9),
        ("system", 4),
        ("vlan", 6),
        ("volume", 5),
    ] {
        assert_eq!(read(&device, kind).1, expected, "{kind}");
    }
    assert_eq!(filled().len(), 17);
}

#[test]
fn five_hundred_guests_are_read_in_pages() {
    let device = Device::of(Setup { guests: 500, ..Setup::default() });
    let (guests, requests, is_complete) = read(&device, "guest");
    assert_eq!((guests.len(), is_complete), (507, true));
    // One for each guest, and one for the list of each page of forty.
    assert_eq!(requests, 507 + 10 + 4);
    let (volumes, requests, _) = read(&device, "volume");
    assert_eq!((volumes.len(), requests), (5, 6));
}

/// A host that answers everything with this content.
fn odd(content: &Value) -> FakeHost<'static> {
    let body = json!({ "data": content }).to_string().into_bytes();
    FakeHost::new(move |_, _| {
        Ok(Response { status: 200, reason: None, headers: Vec::new(), body: body.clone(), elapsed_ms: 1 })
    })
    .describing(description())
}

#[test]
fn odd_answers_make_no_object_that_does_not_fit() {
    let rows = json!([
        {}, 7, null, "text", [], { "type": 7, "id": {}, "node": [], "vmid": {}, "pos": "x", "iface": null },
        { "type": "qemu", "vmid": 101, "node": "n", "cpu": "much", "maxmem": "x", "name": "", "net0": ",,=", "tags": ";" },
        { "type": "storage", "storage": "s", "node": "n", "shared": "1", "maxdisk": "x", "status": 3 },
        { "node": "n", "vnet": "v", "zone": "z", "tag": 0, "cidr": "", "dhcp-range": [{}, 7], "ip": "a", "mac": "b" },
        { "Package": "pve-manager", "OldVersion": null, "Version": "1" },
        { "volid": "v", "content": "backup", "ctime": 0, "size": "x", "storage": "s", "vmid": "" },
        { "devpath": "d", "serial": "unknown", "model": "unknown", "size": {}, "filename": "f", "notafter": "soon" },
        { "name": "n", "comment": "c", "type": "group", "action": "g".repeat(300), "iface": ",", "sport": "," },
    ]);
    for content in [rows, json!([]), json!({}), json!(null), json!("text"), json!(7), json!({ "a": [1] })] {
        let host = odd(&content);
        for kind in filled().keys() {
            let schema = model::find(kind).unwrap();
            let Ok(page) = Proxmox::list_model(&host, kind, None, None) else { continue };
            for object in &page.items {
                assert!(!object.key.is_empty(), "{kind}: {}", object.fields);
                assert_eq!(schema.problem(&fields(object)), None, "{kind}: {}", object.fields);
            }
        }
    }
}

#[test]
fn hook_takes_any_row() {
    let vendor = Vendor::of(&odd(&json!(null)));
    for row in
        [json!(null), json!({}), json!([1]), json!({ "&": 7, "$": [], "^": "x" }), json!("é".repeat(5_000))]
    {
        for kind in filled().keys() {
            let mut object = Modelled {
                key: "k".to_owned(),
                label: "l".to_owned(),
                origin: Origin::Own,
                device: Some("node/".to_owned()),
                fields: json!({ "scope": { "key": "qemu/" }, "cpu_percent": 1e300 })
                    .as_object()
                    .unwrap()
                    .clone(),
            };
            vendor.modelled(kind, &row, &mut object);
        }
    }
}

#[test]
fn five_thousand_rows_are_read_without_a_trap() {
    let rows: Vec<Value> = (0..5_000)
        .map(|n| {
            json!({ "type": "storage", "storage": format!("s{n}"), "node": "n", "vnet": format!("v{n}"), "zone": "z",
                    "pos": n, "action": "ACCEPT", "name": format!("n{n}"), "cidr": "10.0.0.0/8" })
        })
        .collect();
    let host = odd(&json!(rows));
    for kind in ["volume", "address-group"] {
        let (mut seen, mut cursor) = (0, None::<String>);
        for _ in 0..12 {
            let page = Proxmox::list_model(&host, kind, None, cursor.as_deref()).unwrap();
            seen += page.items.len();
            cursor = page.next;
            if cursor.is_none() || kind == "address-group" {
                break;
            }
        }
        assert!(seen >= 500, "{kind}: {seen}");
    }
}
