//! Refusals with the router's texts.

use super::*;

#[tokio::test]
async fn unknown_path_names_the_part_that_is_unknown() {
    let peer = Peer::new().await;
    let (status, body) = told(peer.request("GET", "nonexistent/path").send().await.unwrap()).await;
    assert_eq!(status, 400);
    let expected = json!({ "detail": "no such command or directory (nonexistent)", "error": 400, "message": "Bad Request" });
    assert_eq!(body, expected);
    let (_, body) = told(peer.request("GET", "ip/nothing").send().await.unwrap()).await;
    assert_eq!(body["detail"], "no such command or directory (nothing)");
}

#[tokio::test]
async fn command_is_no_resource() {
    let peer = Peer::new().await;
    for path in ["ip/firewall/filter/print", "ip/firewall", "system/reboot", "log/error"] {
        let (status, body) = told(peer.request("GET", path).send().await.unwrap()).await;
        assert_eq!((status, &body["detail"]), (400, &json!("no such command")), "{path}");
    }
    assert_eq!(peer.refused("POST", "ip/address", json!({})).await, "no such command");
}

#[tokio::test]
async fn unknown_id_is_404_without_a_detail() {
    let peer = Peer::new().await;
    let (status, body) = told(peer.request("GET", "ip/firewall/filter/*FFFF").send().await.unwrap()).await;
    assert_eq!((status, body), (404, json!({ "error": 404, "message": "Not Found" })));
    assert_eq!(peer.ask("PATCH", "ip/firewall/filter/*FFFF", json!({ "comment": "x" })).await.0, 404);
    assert_eq!(peer.delete(FILTER, "*FFFF").await, 404);
    let moved = peer.ask("POST", "ip/firewall/filter/move", json!({ "numbers": "*FFFF" })).await;
    assert_eq!(moved.0, 404);
}

#[tokio::test]
async fn name_finds_rows_only_where_rows_have_names() {
    let peer = Peer::new().await;
    assert_eq!(peer.get("user/admin").await["group"], "full");
    assert_eq!(peer.get("interface/ether1").await["type"], "ether");
    let (_, body) = told(peer.request("GET", "ip/firewall/filter/some-name").send().await.unwrap()).await;
    assert_eq!(body["detail"], "no such command prefix");
    let rows = peer.rows("ip/address").await;
    let encoded = format!("ip/address/%2A{}", id(&rows[0]).trim_start_matches('*'));
    let (status, body) = told(peer.request("GET", &encoded).send().await.unwrap()).await;
    assert_eq!((status, &body["detail"]), (400, &json!("no such command prefix")));
}

#[tokio::test]
async fn parameters_are_judged_by_name_then_by_value() {
    let peer = Peer::new().await;
    let cases = [
        (
            "interface/vrrp",
            json!({ "interface": "bridge", "address": "10.0.0.1" }),
            "unknown parameter address",
        ),
        (
            "interface/vrrp",
            json!({ "interface": "bridge", "priority": "255" }),
            "value of priority out of range (1..254)",
        ),
        ("interface/vlan", json!({ "interface": "bridge" }), "missing =vlan-id="),
        (
            "interface/vlan",
            json!({ "interface": "ether9", "vlan-id": "5" }),
            "input does not match any value of interface",
        ),
        (
            "interface/vlan",
            json!({ "interface": "bridge", "vlan-id": "five" }),
            "invalid value for argument vlan-id",
        ),
        (
            "interface/vlan",
            json!({ "interface": "bridge", "vlan-id": 1e3 }),
            "invalid value for argument vlan-id",
        ),
        (FILTER, json!({ "chain": "input", "action": "allow" }), "input does not match any value of action"),
        (
            FILTER,
            json!({ "chain": "input", "in-interface-list": "DMZ" }),
            "input does not match any value of in-interface-list",
        ),
        (
            FILTER,
            json!({ "chain": "input", "connection-state": "established,!related" }),
            "invalid value for argument connection-state",
        ),
        (
            FILTER,
            json!({ "chain": "input", "src-address": "10.0.0.300" }),
            "invalid value for argument src-address",
        ),
        (
            FILTER,
            json!({ "chain": "input", "dst-port": "80" }),
            "failure: ports can be specified if proto is tcp,udp,udp-lite,dccp,sctp",
        ),
        (
            "ip/address",
            json!({ "address": "10.0.0.1/33", "interface": "bridge" }),
            "invalid value for argument address",
        ),
        ("ip/dhcp-server/network", json!({ "address": "10.0.0.1/24" }), "invalid value for argument address"),
        ("ip/pool", json!({ "name": "p" }), "missing =ranges="),
        ("user", json!({ "name": "u", "group": "nobody" }), "input does not match any value of group"),
    ];
    for (path, body, detail) in cases {
        assert_eq!(peer.refused("PUT", path, body.clone()).await, detail, "{body}");
    }
}

#[tokio::test]
async fn duplicates_are_refused() {
    let peer = Peer::new().await;
    let cases = [
        (
            "ip/firewall/address-list",
            json!({ "list": "managers", "address": "192.168.88.10" }),
            "failure: already have such entry",
        ),
        (
            "ip/dhcp-server/network",
            json!({ "address": "192.168.88.0/24" }),
            "failure: such network already exists",
        ),
        (
            "ip/dhcp-server/lease",
            json!({ "address": "192.168.88.60", "mac-address": "02:10:aa:00:10:50", "server": "defconf" }),
            "failure: already have static lease for this client",
        ),
        (
            "ip/dns/static",
            json!({ "name": "router.lan", "address": "192.168.88.1" }),
            "failure: entry already exists",
        ),
        (
            "interface/bridge/port",
            json!({ "bridge": "bridge", "interface": "ether2" }),
            "failure: device already added as bridge port",
        ),
        (
            "interface/vlan",
            json!({ "name": "bridge", "interface": "ether1", "vlan-id": "7" }),
            "failure: already have interface with such name",
        ),
        (
            "interface/bridge/vlan",
            json!({ "bridge": "bridge", "vlan-ids": "10-30" }),
            "failure: vlan already added",
        ),
    ];
    for (path, body, detail) in cases {
        assert_eq!(peer.refused("PUT", path, body.clone()).await, detail, "{body}");
    }
    // A row that is off does not count.
    let off = json!({ "list": "managers", "address": "192.168.88.10", "disabled": "yes" });
    let row = peer.add("ip/firewall/address-list", off).await;
    peer.refused("PATCH", &format!("ip/firewall/address-list/{}", id(&row)), json!({ "disabled": "no" }))
        .await;
}

#[tokio::test]
async fn patch_hides_a_failure_that_the_command_tells() {
    let peer = Peer::new().await;
    let rows = peer.rows("ip/firewall/address-list").await;
    let (first, second) = (id(&rows[0]), rows[1]["address"].clone());
    let body = json!({ "address": second });
    let path = format!("ip/firewall/address-list/{first}");
    assert_eq!(peer.refused("PATCH", &path, body.clone()).await, "missing or invalid resource identifier");
    let set = json!({ ".id": first, "address": second });
    let detail = peer.refused("POST", "ip/firewall/address-list/set", set).await;
    assert_eq!(detail, "failure: already have such entry");
    // What the console does not understand is told by both.
    assert_eq!(peer.refused("PATCH", &path, json!({ "adress": "x" })).await, "unknown parameter adress");
    assert_eq!(
        peer.refused("PATCH", "ip/firewall/address-list", body).await,
        "missing or invalid resource identifier"
    );
}

#[tokio::test]
async fn refused_write_changes_nothing() {
    let peer = Peer::new().await;
    let before = peer.lab.lock().configuration();
    let ids: Vec<String> =
        peer.rows("ip/firewall/address-list").await.iter().map(|row| id(row).to_owned()).collect();
    // The first row would change, the second makes a duplicate.
    let set = json!({ ".id": ids.join(","), "address": "10.1.1.1" });
    peer.refused("POST", "ip/firewall/address-list/set", set).await;
    assert_eq!(peer.lab.lock().configuration(), before);
}

#[tokio::test]
async fn rows_of_the_router_are_not_written() {
    let peer = Peer::new().await;
    let dynamic = peer.row("ip/address", "dynamic", "true").await;
    assert_eq!(
        peer.refused("POST", "ip/address/set", json!({ ".id": id(&dynamic), "comment": "x" })).await,
        "failure: can not change dynamic"
    );
    assert_eq!(
        peer.refused("POST", "ip/address/remove", json!({ ".id": id(&dynamic) })).await,
        "failure: can not remove dynamic"
    );
    for (path, name) in [
        ("ppp/profile", "default"),
        ("interface/list", "all"),
        ("interface/ethernet", "ether1"),
        ("queue/type", "default"),
    ] {
        let row = peer.row(path, "name", name).await;
        let status = peer.delete(path, id(&row)).await;
        assert_eq!(status, 400, "{path}");
    }
}
