//! Bridges, addresses, leases, names and the household around the box.

use super::*;

#[tokio::test]
async fn filtering_bridge_shows_who_is_in_a_vlan() {
    let peer = Peer::new().await;
    let row = peer.row("interface/bridge/vlan", "vlan-ids", "20").await;
    assert_eq!((&row["tagged"], &row["current-tagged"]), (&json!("bridge,ether3"), &json!("")));
    let bridge = peer.row("interface/bridge", "name", "bridge").await;
    peer.change("interface/bridge", id(&bridge), json!({ "vlan-filtering": "yes" })).await;
    let row = peer.row("interface/bridge/vlan", "vlan-ids", "20").await;
    assert_eq!(row["current-tagged"], "bridge,ether3");
    // Untagged frames get a row that the router makes.
    let own = peer.row("interface/bridge/vlan", "vlan-ids", "1").await;
    assert_eq!((&own["dynamic"], &own["untagged"]), (&json!("true"), &json!("")));
    assert!(own["current-untagged"].as_str().unwrap().contains("ether2"));
    let port = peer.row("interface/bridge/port", "interface", "ether4").await;
    peer.change("interface/bridge/port", id(&port), json!({ "pvid": "40" })).await;
    assert_eq!(peer.row("interface/bridge/vlan", "vlan-ids", "40").await["current-untagged"], "ether4");
}

#[tokio::test]
async fn list_of_ports_is_replaced_whole() {
    let peer = Peer::new().await;
    let row = peer.row("interface/bridge/vlan", "vlan-ids", "20").await;
    let changed = peer.change("interface/bridge/vlan", id(&row), json!({ "tagged": "ether4" })).await;
    assert_eq!(changed["tagged"], "ether4");
    assert_eq!(
        peer.refused("PATCH", &format!("interface/bridge/vlan/{}", id(&row)), json!({ "tagged": "ether9" }))
            .await,
        "input does not match any value of tagged"
    );
}

#[tokio::test]
async fn address_of_a_port_of_a_bridge_is_of_the_bridge() {
    let peer = Peer::new().await;
    let row = peer.add("ip/address", json!({ "address": "10.8.0.1/24", "interface": "ether2" })).await;
    let expected = json!({ ".id": row[".id"], "actual-interface": "bridge", "address": "10.8.0.1/24", "disabled": "false",
        "dynamic": "false", "interface": "ether2", "invalid": "false", "network": "10.8.0.0", "slave": "true", "vrf": "main" });
    assert_eq!(row, expected);
    let down = peer.add("ip/address", json!({ "address": "10.9.9.1/24", "interface": "ether5" })).await;
    assert_eq!(down["invalid"], "true");
}

#[tokio::test]
async fn static_lease_waits_and_a_dynamic_one_is_made_static() {
    let peer = Peer::new().await;
    let printer = peer.row("ip/dhcp-server/lease", "comment", "printer").await;
    assert_eq!(
        (&printer["status"], &printer["last-seen"], &printer["dynamic"]),
        (&json!("waiting"), &json!("never"), &json!("false"))
    );
    assert!(printer.get("active-address").is_none() && printer.get("host-name").is_none());
    let lease = peer.row("ip/dhcp-server/lease", "host-name", "tablet").await;
    assert_eq!(
        (&lease["status"], &lease["active-address"], &lease["dynamic"]),
        (&json!("bound"), &json!("192.168.88.20"), &json!("true"))
    );
    let wanted =
        json!({ "address": "192.168.88.20", "mac-address": lease["mac-address"], "server": "defconf" });
    assert!(peer.refused("PUT", "ip/dhcp-server/lease", wanted).await.starts_with("failure:"));
    peer.refused("PATCH", &format!("ip/dhcp-server/lease/{}", id(&lease)), json!({ "comment": "x" })).await;
    assert_eq!(
        peer.post("ip/dhcp-server/lease/make-static", json!({ "numbers": id(&lease) })).await,
        json!([])
    );
    let fixed = peer.change("ip/dhcp-server/lease", id(&lease), json!({ "comment": "mine" })).await;
    assert_eq!((&fixed["dynamic"], &fixed["status"]), (&json!("false"), &json!("bound")));
}

#[tokio::test]
async fn lease_of_every_server_names_none() {
    let peer = Peer::new().await;
    let row = peer
        .add(
            "ip/dhcp-server/lease",
            json!({ "address": "192.168.88.70", "mac-address": "02:00:00:00:00:70" }),
        )
        .await;
    assert!(row.get("server").is_none());
}

#[tokio::test]
async fn client_gets_and_gives_back_its_address() {
    let peer = Peer::new().await;
    let client = peer.row("ip/dhcp-client", "interface", "ether1").await;
    assert_eq!((&client["status"], &client["address"]), (&json!("bound"), &json!("198.51.100.23/24")));
    assert_eq!(peer.get("ip/dns").await["dynamic-servers"], "198.51.100.1");
    peer.post("ip/dhcp-client/release", json!({ "numbers": id(&client) })).await;
    assert!(peer.rows("ip/address?dynamic=true").await.is_empty());
    assert!(peer.rows("ip/route?dhcp=true").await.is_empty());
    peer.post("ip/dhcp-client/renew", json!({ "numbers": id(&client) })).await;
    assert_eq!(peer.rows("ip/address?dynamic=true").await.len(), 1);
}

#[tokio::test]
async fn value_of_a_name_stands_in_the_field_of_its_type() {
    let peer = Peer::new().await;
    let row = peer.add("ip/dns/static", json!({ "name": "a.lan", "address": "10.0.0.1" })).await;
    assert_eq!((&row["type"], &row["ttl"]), (&json!("A"), &json!("1d")));
    let row = peer
        .add(
            "ip/dns/static",
            json!({ "name": "b.lan", "type": "CNAME", "cname": "a.lan", "address": "10.0.0.1" }),
        )
        .await;
    assert!(row.get("address").is_none());
    assert_eq!(
        peer.refused("PUT", "ip/dns/static", json!({ "name": "c.lan", "type": "TXT" })).await,
        "missing =text="
    );
    peer.add("ip/dns/static", json!({ "regexp": ".*ads.*", "type": "NXDOMAIN" })).await;
    peer.refused("PUT", "ip/dns/static", json!({ "name": "d.lan", "regexp": "d", "address": "10.0.0.1" }))
        .await;
    peer.add("ip/dns/static", json!({ "name": "a.lan", "address": "10.0.0.2" })).await;
}

#[tokio::test]
async fn entry_with_a_time_is_dynamic_and_ends() {
    let peer = Peer::new().await;
    let row = peer
        .add("ip/firewall/address-list", json!({ "list": "bad", "address": "203.0.113.9", "timeout": "1h" }))
        .await;
    assert_eq!((&row["dynamic"], &row["timeout"]), (&json!("true"), &json!("1h")));
    peer.lab.advance(Duration::from_mins(10));
    assert_eq!(peer.row("ip/firewall/address-list", "list", "bad").await["timeout"], "50m");
    peer.lab.advance(Duration::from_hours(1));
    assert!(peer.rows("ip/firewall/address-list?list=bad").await.is_empty());
}

#[tokio::test]
async fn service_has_rows_of_connections_beside_its_own() {
    let peer = Peer::new().await;
    let rows = peer.rows("ip/service?name=www").await;
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[1]["dynamic"], &rows[1]["connection"]), (&json!("true"), &json!("true")));
    assert_eq!(id(&peer.row("ip/service", "name", "telnet").await), "*0");
    assert_eq!(peer.row("ip/service", "name", "www-ssl").await["certificate"], "none");
}

#[tokio::test]
async fn wireless_client_is_kicked_and_the_profile_shows_at_the_interface() {
    let peer = Peer::new().await;
    let radio = peer.row("interface/wifi", "name", "wifi1").await;
    assert_eq!(
        (&radio["configuration"], &radio["configuration.ssid"]),
        (&json!("home-5"), &json!("Household"))
    );
    assert_eq!(radio["security.authentication-types"], "wpa2-psk,wpa3-psk");
    let client = peer.row("interface/wifi/registration-table", "interface", "wifi1").await;
    assert_eq!((&client["ssid"], &client["signal"]), (&json!("Household"), &json!("-52")));
    assert_eq!(peer.delete("interface/wifi/registration-table", id(&client)).await, 204);
    let rows = peer.post("interface/wifi/monitor", json!({ "numbers": "wifi1", "once": "" })).await;
    assert_eq!((&rows[0]["state"], &rows[0]["registered-peers"]), (&json!("running"), &json!("0")));
    let profile = peer.row("interface/wifi/configuration", "name", "home-5").await;
    peer.change("interface/wifi/configuration", id(&profile), json!({ "ssid": "Renamed" })).await;
    assert_eq!(peer.row("interface/wifi", "name", "wifi1").await["configuration.ssid"], "Renamed");
    peer.change("interface/wifi", id(&radio), json!({ "configuration.ssid": "Own" })).await;
    assert_eq!(peer.row("interface/wifi", "name", "wifi1").await["configuration.ssid"], "Own");
}

#[tokio::test]
async fn household_is_seen() {
    let peer = Peer::new().await;
    assert_eq!(peer.row("ip/neighbor", "identity", "switch1").await["interface"], "ether3,bridge");
    assert_eq!(peer.row("ip/arp", "address", "192.168.88.10").await["mac-address"], "02:10:AA:00:10:01");
    assert_eq!(
        peer.row("interface/bridge/host", "mac-address", "02:10:AA:00:10:01").await["on-interface"],
        "ether2"
    );
    let session = peer.row("ppp/active", "name", "staff").await;
    assert_eq!(peer.delete("ppp/active", id(&session)).await, 204);
    assert!(peer.rows("ppp/active").await.is_empty());
    let pool = peer.row("ip/pool", "name", "default-dhcp").await;
    assert_eq!(
        (&pool["total"], &pool["used"], &pool["available"]),
        (&json!("245"), &json!("3"), &json!("242"))
    );
}

#[tokio::test]
async fn virtual_router_is_a_master_until_it_is_off() {
    let peer = Peer::new().await;
    let row = peer.add("interface/vrrp", json!({ "interface": "bridge", "vrid": "7", "name": "vip" })).await;
    assert_eq!(
        (&row["master"], &row["mac-address"], &row["on-master"]),
        (&json!("true"), &json!("00:00:5E:00:01:07"), &json!(""))
    );
    assert!(row.get("backup").is_none());
    let off = peer.change("interface/vrrp", id(&row), json!({ "disabled": "yes" })).await;
    assert!(off.get("master").is_none() && off.get("backup").is_none() && off.get("invalid").is_none());
}
