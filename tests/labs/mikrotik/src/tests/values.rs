//! Values as they come back.

use super::*;

#[tokio::test]
async fn every_value_of_every_answer_is_a_string() {
    let peer = Peer::new().await;
    for path in
        ["interface", "ip/address", "ip/route", "system/resource", "ip/dhcp-server/lease", FILTER, "log"]
    {
        let answer = peer.get(path).await;
        let rows = answer.as_array().cloned().unwrap_or_else(|| vec![answer.clone()]);
        assert!(!rows.is_empty(), "{path}");
        for row in rows {
            assert!(row.as_object().unwrap().values().all(Value::is_string), "{path} {row}");
        }
    }
}

/// Checks how a field of a new row reads.
async fn check(cases: &[(&str, Value, &str, &str)]) {
    let peer = Peer::new().await;
    for (path, body, field, shown) in cases {
        let row = peer.add(path, body.clone()).await;
        assert_eq!(row[*field], *shown, "{body}");
    }
}

#[tokio::test]
async fn values_are_rewritten_in_the_form_of_the_router() {
    check(&[
        ("ip/dhcp-server", json!({ "interface": "ether3", "lease-time": "90s" }), "lease-time", "1m30s"),
        ("ip/dhcp-server", json!({ "interface": "ether4", "lease-time": "14d" }), "lease-time", "2w"),
        (FILTER, json!({ "chain": "a", "src-address": "10.0.0.1/32" }), "src-address", "10.0.0.1"),
        (
            FILTER,
            json!({ "chain": "a", "src-address": "!10.0.0.0-10.0.0.255" }),
            "src-address",
            "!10.0.0.0/24",
        ),
        (
            FILTER,
            json!({ "chain": "a", "connection-state": "related,established" }),
            "connection-state",
            "established,related",
        ),
        (
            FILTER,
            json!({ "chain": "a", "protocol": "tcp", "dst-port": "8291,22,1000-2000,80" }),
            "dst-port",
            "8291,22,1000-2000,80",
        ),
        (
            FILTER,
            json!({ "chain": "a", "protocol": "tcp", "tcp-flags": "ack,!syn,fin" }),
            "tcp-flags",
            "fin,ack,!syn",
        ),
        ("ip/address", json!({ "address": "10.3.0.1", "interface": "bridge" }), "address", "10.3.0.1/32"),
        (
            "ip/address",
            json!({ "address": "10.4.0.9/255.255.255.0", "interface": "bridge" }),
            "network",
            "10.4.0.0",
        ),
        (
            "ip/arp",
            json!({ "interface": "bridge", "address": "10.0.0.9", "mac-address": "02:aa:bb:cc:dd:ee" }),
            "mac-address",
            "02:AA:BB:CC:DD:EE",
        ),
    ])
    .await;
}

#[tokio::test]
async fn rates_flags_and_sets_are_rewritten_too() {
    check(&[
        (
            "queue/simple",
            json!({ "target": "10.20.0.7", "max-limit": "20M/100M" }),
            "max-limit",
            "20000000/100000000",
        ),
        ("queue/simple", json!({ "target": "10.20.0.8", "priority": "3" }), "priority", "3/3"),
        ("queue/simple", json!({ "target": "10.20.0.9" }), "target", "10.20.0.9/32"),
        ("interface/bridge", json!({ "priority": "0x7000" }), "priority", "0x7000"),
        ("interface/bridge", json!({ "vlan-filtering": true }), "vlan-filtering", "true"),
        ("interface/bridge", json!({ "igmp-snooping": "yes" }), "igmp-snooping", "true"),
        ("interface/vlan", json!({ "interface": "bridge", "vlan-id": 77 }), "vlan-id", "77"),
        ("ip/dns/static", json!({ "name": "Upper.LAN", "address": "10.0.0.1" }), "name", "upper.lan"),
        (
            "ip/firewall/address-list",
            json!({ "list": "x", "address": "10.9.0.0-10.9.0.15" }),
            "address",
            "10.9.0.0/28",
        ),
        (
            "system/logging",
            json!({ "topics": "system,!debug,firewall,!info" }),
            "topics",
            "firewall,system,!debug,!info",
        ),
    ])
    .await;
}

#[tokio::test]
async fn tcp_flags_of_a_row_change_only_by_the_half_that_is_named() {
    let peer = Peer::new().await;
    let row = peer.add(FILTER, json!({ "chain": "a", "protocol": "tcp", "tcp-flags": "fin,ack,!syn" })).await;
    let changed = peer.change(FILTER, id(&row), json!({ "tcp-flags": "psh" })).await;
    assert_eq!(changed["tcp-flags"], "psh,!syn");
    let changed = peer.change(FILTER, id(&row), json!({ "tcp-flags": "!rst" })).await;
    assert_eq!(changed["tcp-flags"], "psh,!rst");
}

#[tokio::test]
async fn absent_empty_and_default_are_three_things() {
    let peer = Peer::new().await;
    let rule = peer.add(FILTER, json!({ "chain": "input" })).await;
    let expected = json!({ ".id": rule[".id"], "action": "accept", "bytes": "0", "chain": "input", "dynamic": "false",
        "invalid": "false", "packets": "0" });
    assert_eq!(rule, expected);
    // What somebody wrote once is there from then on.
    let off = peer.change(FILTER, id(&rule), json!({ "disabled": "yes" })).await;
    assert_eq!(off["disabled"], "true");
    let on = peer.change(FILTER, id(&rule), json!({ "disabled": "no" })).await;
    assert_eq!(on["disabled"], "false");
    let logs = peer.add(FILTER, json!({ "chain": "input", "log": "no", "log-prefix": "" })).await;
    assert_eq!((&logs["log"], &logs["log-prefix"]), (&json!("false"), &json!("")));
    let bridge = peer.row("interface/bridge", "name", "bridge").await;
    assert_eq!((&bridge["disabled"], &bridge["ageing-time"]), (&json!("false"), &json!("5m")));
}

#[tokio::test]
async fn comment_is_absent_when_it_is_empty_and_fields_are_cleared_in_three_ways() {
    let peer = Peer::new().await;
    let rule = peer.add(FILTER, json!({ "chain": "a", "comment": "c", "src-address": "10.0.0.1", "protocol": "tcp", "dst-port": "80" })).await;
    let changed = peer.change(FILTER, id(&rule), json!({ "comment": "" })).await;
    assert!(changed.get("comment").is_none());
    let changed = peer.change(FILTER, id(&rule), json!({ "src-address": null })).await;
    assert!(changed.get("src-address").is_none());
    let unset = json!({ ".id": id(&rule), "value-name": "dst-port" });
    assert_eq!(peer.post("ip/firewall/filter/unset", unset).await, json!([]));
    peer.post("ip/firewall/filter/set", json!({ ".id": id(&rule), "!protocol": "" })).await;
    let row = peer.get(&format!("{FILTER}/{}", id(&rule))).await;
    assert!(row.get("dst-port").is_none() && row.get("protocol").is_none());
    let refused = json!({ ".id": id(&rule), "value-name": "chain" });
    peer.refused("POST", "ip/firewall/filter/unset", refused).await;
}

#[tokio::test]
async fn proplist_limits_fields_and_always_has_the_id() {
    let peer = Peer::new().await;
    let rows = peer.rows("interface?type=ether&.proplist=name").await;
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[0], json!({ ".id": rows[0][".id"], "name": "ether1" }));
    let identity = peer.post("system/identity/print", json!({})).await;
    assert_eq!(identity, json!({ "name": "lab-router" }));
}

#[tokio::test]
async fn query_is_a_stack() {
    let peer = Peer::new().await;
    let cases = [
        (json!(["type=ether", "type=vlan", "#|"]), 6),
        (json!(["type=ether", "#!"]), peer.rows("interface").await.len() - 5),
        (json!(["type=ether", "name=ether1"]), 1),
        (json!(["type=ether", "name=ether1", "#&"]), 1),
        (json!(["default-name", "type=ether"]), 5),
        (json!(["-default-name", "type=vlan"]), 1),
        (json!([">actual-mtu=1500", "type=loopback"]), 1),
    ];
    for (query, count) in cases {
        let rows =
            peer.post("interface/print", json!({ ".query": query, ".proplist": ["name", "type"] })).await;
        assert_eq!(rows.as_array().unwrap().len(), count, "{query} {rows}");
    }
    // A query in the path does nothing.
    assert_eq!(peer.rows("interface?.query=type=ether").await.len(), peer.rows("interface").await.len());
}

#[tokio::test]
async fn control_characters_stand_as_they_are() {
    let peer = Peer::new().await;
    let body = json!({ "list": "x", "address": "10.0.0.1", "comment": "a\u{1b}b\nc" });
    assert_eq!(peer.send("PUT", "ip/firewall/address-list", body).await.status(), 201);
    let response = peer.request("GET", "ip/firewall/address-list?list=x").send().await.unwrap();
    let bytes = response.bytes().await.unwrap();
    assert!(serde_json::from_slice::<Value>(&bytes).is_err());
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(text.contains("a\u{1b}b\\nc"), "{text}");
}

#[tokio::test]
async fn times_have_the_form_of_the_router() {
    let peer = Peer::new().await;
    let row = peer.add("ip/firewall/address-list", json!({ "list": "x", "address": "10.0.0.1" })).await;
    assert_eq!(row["creation-time"], "2026-01-01 00:00:00");
    let uptime = peer.get("system/resource").await["uptime"].as_str().unwrap().to_owned();
    assert_eq!(uptime, "2d2h11m9s");
}
