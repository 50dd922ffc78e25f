//! Networks on both interfaces.

use super::*;

fn network(vlan: i64, subnet: &str) -> Value {
    json!({
        "name": format!("net {vlan}"), "purpose": "corporate", "vlan_enabled": true, "vlan": vlan,
        "ip_subnet": subnet,
    })
}

fn official(vlan: i64, address: &str) -> Value {
    json!({
        "management": "GATEWAY", "name": format!("net {vlan}"), "enabled": true, "vlanId": vlan,
        "isolationEnabled": false,
        "cellularBackupEnabled": false, "internetAccessEnabled": true,
        "ipv4Configuration": {
            "autoScaleEnabled": false, "hostIpAddress": address, "prefixLength": 24,
            "dhcpConfiguration": {
                "mode": "SERVER", "ipAddressRange": { "start": "10.61.0.10", "stop": "10.61.0.99" },
                "leaseTimeSeconds": 7200, "pingConflictDetectionEnabled": true, "domainName": "lab.example",
            },
        },
    })
}

#[tokio::test]
async fn a_vlan_belongs_to_one_network() {
    let peer = Peer::new().await;
    let (status, answer) = peer.ask("POST", "~/rest/networkconf", network(10, "10.60.0.1/24")).await;
    assert_eq!((status, answer["meta"]["msg"].as_str()), (400, Some("api.err.VlanUsed")));
    assert_eq!(answer["meta"]["vlan"], 10);
    // Without the flag the number does not count, and the first VLAN is taken.
    let mut body = network(60, "10.60.0.1/24");
    body["vlan_enabled"] = json!(false);
    assert_eq!(peer.refused("POST", "~/rest/networkconf", body).await, "api.err.VlanUsed");
    let overlapping = network(60, "10.10.0.129/25");
    assert_eq!(
        peer.refused("POST", "~/rest/networkconf", overlapping).await,
        "api.err.NetworkSubnetOverlapped"
    );
    let made = peer.add("networkconf", network(60, "10.60.0.1/24")).await;
    assert!(made["external_id"].is_string() && made["firewall_zone_id"].is_string());
}

#[tokio::test]
async fn switches_need_what_they_switch_on() {
    let peer = Peer::new().await;
    for (field, code) in [
        ("dhcpd_boot_enabled", "BootFilenameInvalid"),
        ("dhcpd_gateway_enabled", "GatewayIpNotInSubnet"),
        ("dhcpd_ntp_enabled", "NtpAddressInvalid"),
        ("dhcpguard_enabled", "MissingIPAddress"),
        ("dhcp_relay_enabled", "DhcpServerAndRelayCannotCoexist"),
    ] {
        let mut body = network(61, "10.61.0.1/24");
        body["dhcpd_enabled"] = json!(true);
        body[field] = json!(true);
        assert_eq!(
            peer.refused("POST", "~/rest/networkconf", body).await,
            format!("api.err.{code}"),
            "{field}"
        );
    }
    let isolated = json!({
        "name": "v", "purpose": "vlan-only", "vlan_enabled": true, "vlan": 61,
        "network_isolation_enabled": true,
    });
    let code = peer.refused("POST", "~/rest/networkconf", isolated).await;
    assert_eq!(code, "api.err.NetworkIsolationAppliedOnNonCorporateNetwork");
    let mut six = network(61, "10.61.0.1/24");
    six["dhcpdv6_enabled"] = json!(true);
    assert_eq!(peer.add("networkconf", six).await["dhcpdv6_enabled"], false);
}

#[tokio::test]
async fn the_range_of_the_server_follows_the_subnet() {
    let peer = Peer::new().await;
    let mut body = network(62, "10.62.0.1/24");
    body["dhcpd_enabled"] = json!(true);
    let made = peer.add("networkconf", body).await;
    assert_eq!(
        (made["dhcpd_start"].as_str(), made["dhcpd_stop"].as_str()),
        (Some("10.62.0.6"), Some("10.62.0.254"))
    );
    let moved = peer.change("networkconf", &made["_id"], json!({ "ip_subnet": "10.63.0.1/24" })).await;
    assert_eq!(moved["dhcpd_start"], "10.63.0.6");
    let outside = json!({ "dhcpd_start": "10.9.0.1", "dhcpd_stop": "10.9.0.2" });
    let path = format!("~/rest/networkconf/{}", made["_id"].as_str().unwrap());
    assert_eq!(peer.refused("PUT", &path, outside).await, "api.err.InvalidDhcpRange");
}

#[tokio::test]
async fn a_second_line_needs_its_own_group() {
    let peer = Peer::new().await;
    let body = json!({ "name": "WAN3", "purpose": "wan", "wan_type": "dhcp" });
    let code = peer.refused("POST", "~/rest/networkconf", body).await;
    assert_eq!(code, "api.err.WanConfigurationForNetworkGroupAlreadyExists");
    let static_line =
        json!({ "name": "WAN3", "purpose": "wan", "wan_type": "static", "wan_networkgroup": "WAN3" });
    let code = peer.refused("POST", "~/rest/networkconf", static_line).await;
    assert_eq!(code, "api.err.InvalidWanStaticConfiguration");
}

#[tokio::test]
async fn tunnels_bring_their_keys_and_addresses() {
    let peer = Peer::new().await;
    let server = json!({
        "name": "vpn", "purpose": "remote-user-vpn", "vpn_type": "wireguard-server",
        "ip_subnet": "10.98.0.1/24",
    });
    let code = peer.refused("POST", "~/rest/networkconf", server).await;
    assert_eq!(code, "api.err.WireguardMissingPrivateKey");
    let mut tunnel = json!({
        "name": "s2s", "purpose": "site-vpn", "vpn_type": "ipsec-vpn", "ipsec_peer_ip": "198.51.100.200",
        "ipsec_local_ip": "203.0.113.17", "x_ipsec_pre_shared_key": "key",
        "remote_vpn_subnets": ["10.201.0.0/24"],
    });
    assert_eq!(
        peer.refused("POST", "~/rest/networkconf", tunnel.clone()).await,
        "api.err.IpsecPeerIpOverlapped"
    );
    tunnel["ipsec_peer_ip"] = json!("198.51.100.201");
    tunnel["ipsec_local_ip"] = json!("192.0.2.99");
    assert_eq!(
        peer.refused("POST", "~/rest/networkconf", tunnel.clone()).await,
        "api.err.UnrecognizedLocalIp"
    );
    tunnel["ipsec_local_ip"] = json!("203.0.113.17");
    peer.add("networkconf", tunnel).await;
    assert_eq!(peer.rows("~i/vpn/site-to-site-tunnels").await.len(), 2);
    assert_eq!(peer.row("~i/vpn/servers", "name", "Home office").await["type"], "WIREGUARD");
}

#[tokio::test]
async fn an_official_network_has_an_older_form_and_the_other_way_round() {
    let peer = Peer::new().await;
    let made = peer.ok("POST", "~i/networks", official(61, "10.61.0.1")).await;
    let older = peer.row("~/rest/networkconf", "name", "net 61").await;
    assert_eq!(older["external_id"], made["id"]);
    assert_eq!(
        (older["ip_subnet"].as_str(), older["dhcpd_leasetime"].as_i64()),
        (Some("10.61.0.1/24"), Some(7200))
    );
    peer.change("networkconf", &older["_id"], json!({ "dhcpd_leasetime": 600, "name": "renamed" })).await;
    let path = format!("~i/networks/{}", made["id"].as_str().unwrap());
    let read = peer.get(&path).await;
    assert_eq!(read["name"], "renamed");
    assert_eq!(read["ipv4Configuration"]["dhcpConfiguration"]["leaseTimeSeconds"], 600);
    // What a whole write leaves out is reset.
    let mut body = official(61, "10.61.0.1");
    body["ipv4Configuration"].as_object_mut().unwrap().remove("dhcpConfiguration");
    let read = peer.ok("PUT", &path, body).await;
    assert!(read["ipv4Configuration"].get("dhcpConfiguration").is_none());
    assert_eq!(peer.row("~/rest/networkconf", "name", "net 61").await["dhcpd_enabled"], false);
}

#[tokio::test]
async fn a_network_in_use_is_removed_by_force_only() {
    let peer = Peer::new().await;
    let office = peer.row("~i/networks", "name", "Office").await;
    let path = format!("~i/networks/{}", office["id"].as_str().unwrap());
    let references = peer.get(&format!("{path}/references")).await;
    let kinds: Vec<&str> = references["referenceResources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["resourceType"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"WIFI") && kinds.contains(&"CLIENT"), "{kinds:?}");
    assert_eq!(peer.ask("DELETE", &path, Value::Null).await.0, 400);
    assert_eq!(peer.ask("DELETE", &format!("{path}?force=true"), Value::Null).await.0, 200);
    assert_eq!(peer.ask("GET", &path, Value::Null).await.0, 404);
}

#[tokio::test]
async fn ports_that_leave_a_network_out_do_not_hold_it() {
    let peer = Peer::new().await;
    let made = peer.add("networkconf", network(63, "10.63.0.1/24")).await;
    let core = peer.device(CORE).await;
    let mut overrides = core["port_overrides"].clone();
    overrides.as_array_mut().unwrap().push(json!({
        "port_idx": 12, "tagged_vlan_mgmt": "custom", "excluded_networkconf_ids": [made["_id"]],
    }));
    peer.change("device", &core["_id"], json!({ "port_overrides": overrides })).await;
    let path = format!("~/rest/networkconf/{}", made["_id"].as_str().unwrap());
    peer.ok("DELETE", &path, Value::Null).await;
    let left = peer.device(CORE).await["port_overrides"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["port_idx"] == 12)
        .cloned();
    assert_eq!(left.unwrap()["excluded_networkconf_ids"], json!([]));
}

#[tokio::test]
async fn a_guest_network_outside_the_guest_zone_is_none() {
    let peer = Peer::new().await;
    let zone = peer.row("~2/firewall/zone", "zone_key", "internal").await;
    let mut body = network(64, "10.64.0.1/24");
    body["purpose"] = json!("guest");
    body["firewall_zone_id"] = zone["_id"].clone();
    assert_eq!(peer.add("networkconf", body).await["purpose"], "corporate");
}
