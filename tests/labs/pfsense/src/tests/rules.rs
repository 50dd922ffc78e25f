//! What single models check, compute or rewrite.

use super::*;

#[tokio::test]
async fn forward_makes_changes_and_takes_along_its_rule() {
    let peer = Peer::new().await;
    let forward = json!({ "interface": "WAN", "protocol": "tcp", "source": "any", "destination": "WAN:ip",
        "destination_port": "9443", "target": "192.168.1.20", "local_port": "443", "associated_rule_id": "new" });
    let made = peer.post("/firewall/nat/port_forward", forward).await;
    let link = made["associated_rule_id"].as_str().unwrap().to_owned();
    let rules = peer.get(&format!("/firewall/rules?associated_rule_id={link}")).await;
    assert_eq!(
        (&rules[0]["destination"], &rules[0]["destination_port"]),
        (&json!("192.168.1.20"), &json!("443"))
    );
    peer.patch("/firewall/nat/port_forward", json!({ "id": made["id"], "target": "192.168.1.21" })).await;
    assert_eq!(peer.get("/firewall/rule?id=4").await["destination"], "192.168.1.21");
    peer.delete(&format!("/firewall/nat/port_forward?id={}", made["id"])).await;
    assert_eq!(peer.get("/firewall/rules").await.as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn rule_that_is_not_floating_has_one_interface() {
    let peer = Peer::new().await;
    let mut two = rule("two");
    two["interface"] = json!(["LAN", "GUEST"]);
    assert_eq!(
        peer.refusal("POST", "/firewall/rule", two.clone()).await,
        refused(400, "FIREWALL_RULE_MULTIPLE_INTERFACE_WITHOUT_FLOATING")
    );
    two["floating"] = json!(true);
    assert_eq!(peer.post("/firewall/rule", two).await["direction"], "any");
    let change = json!({ "id": 4, "floating": false });
    assert_eq!(
        peer.refusal("PATCH", "/firewall/rule", change).await,
        refused(400, "FIELD_VALUE_CHANGED_WHEN_NOT_EDITABLE")
    );
}

#[tokio::test]
async fn used_gateway_is_not_deleted_and_the_users_are_told() {
    let peer = Peer::new().await;
    let (code, id, data) = peer.ask("DELETE", "/routing/gateway?id=1", Value::Null).await;
    assert_eq!((code, id.as_str()), (409, "MODEL_CANNOT_BE_DELETED_WHILE_REFERENCED"));
    assert_eq!(data[0]["network"], "10.20.0.0/16");
    // An alias in use is deleted all the same.
    peer.delete("/firewall/alias?id=0").await;
    assert_eq!(peer.get("/firewall/rule?id=3").await["destination"], "web_servers");
}

#[tokio::test]
async fn static_route_loses_the_bits_of_its_host() {
    let peer = Peer::new().await;
    let route = json!({ "network": "10.99.1.7/16", "gateway": "LABGW" });
    assert_eq!(peer.post("/routing/static_route", route).await["network"], "10.99.0.0/16");
    let own = json!({ "network": "192.168.1.0/24", "gateway": "LABGW" });
    assert_eq!(
        peer.refusal("POST", "/routing/static_route", own).await,
        refused(400, "STATIC_ROUTE_CONFLICTS_WITH_IPV4_INTERFACE")
    );
    let nowhere = json!({ "network": "10.98.0.0/16", "gateway": "NOTHING" });
    assert_eq!(
        peer.refusal("POST", "/routing/static_route", nowhere).await,
        refused(404, "FOREIGN_MODEL_FIELD_VALUE_NOT_FOUND")
    );
}

#[tokio::test]
async fn vlan_makes_a_device_that_can_be_assigned() {
    let peer = Peer::new().await;
    let made = peer.post("/interface/vlan", json!({ "if": "igb2", "tag": 30, "descr": "voice" })).await;
    assert_eq!(
        made,
        json!({ "id": 2, "if": "igb2", "tag": 30, "vlanif": "igb2.30", "pcp": null, "descr": "voice" })
    );
    let twice = json!({ "if": "igb2", "tag": 30 });
    assert_eq!(
        peer.refusal("POST", "/interface/vlan", twice).await,
        refused(400, "MODEL_FIELDS_NOT_UNIQUE_TOGETHER")
    );
    let voice = json!({ "if": "igb2.30", "descr": "VOICE", "enable": true, "typev4": "static",
        "ipaddr": "192.168.30.1", "subnet": 24 });
    assert_eq!(peer.post("/interface", voice).await["id"], "opt2");
    let devices = peer.get("/interface/available_interfaces?if=igb2.30").await;
    assert_eq!(devices[0]["in_use_by"], "opt2");
    // A VLAN in use is deleted all the same; another parent is refused.
    let moved = json!({ "id": 2, "if": "igb3" });
    assert_eq!(
        peer.refusal("PATCH", "/interface/vlan", moved).await.1,
        "FIELD_VALUE_CHANGED_WHEN_NOT_EDITABLE"
    );
    peer.delete("/interface/vlan?id=2").await;
}

#[tokio::test]
async fn interface_in_use_and_the_outer_one_stay() {
    let peer = Peer::new().await;
    for (id, why) in [("wan", "WAN_CANNOT_BE_DELETED"), ("lan", "IN_USE_BY_INTERFACE_GROUP")] {
        assert_eq!(
            peer.refusal("DELETE", &format!("/interface?id={id}"), Value::Null).await,
            (400, format!("NETWORK_INTERFACE_{why}"))
        );
    }
    peer.delete("/interface/group?id=0").await;
    peer.delete("/interface?id=opt1").await;
    // Its rules and its DHCP server go with it.
    assert_eq!(peer.get("/firewall/rules").await.as_array().unwrap().len(), 2);
    assert_eq!(peer.column("/services/dhcp_servers", "id").await, [json!("lan")]);
}

#[tokio::test]
async fn reservation_lies_in_the_network_and_outside_of_the_range() {
    let peer = Peer::new().await;
    let path = "/services/dhcp_server/static_mapping";
    let map = |ip: &str| json!({ "parent_id": "lan", "mac": "02:00:00:aa:bb:cc", "ipaddr": ip });
    let id = "DHCP_SERVER_STATIC_MAPPING_IPADDR";
    assert_eq!(
        peer.refusal("POST", path, map("192.168.1.150")).await,
        (409, format!("{id}_OVERLAPS_EXISTING_OBJECT"))
    );
    assert_eq!(peer.refusal("POST", path, map("10.0.0.1")).await, (400, format!("{id}_NOT_WITHIN_SUBNET")));
    peer.post(path, map("192.168.1.60")).await;
    assert_eq!(peer.refusal("POST", path, map("192.168.1.61")).await, refused(400, "FIELD_MUST_BE_UNIQUE"));
    let leases = peer.get("/status/dhcp_server/leases?active_status=static").await;
    assert_eq!(leases.as_array().unwrap().len(), 1, "a reservation is served after the apply");
}

#[tokio::test]
async fn details_of_an_alias_are_filled_up() {
    let peer = Peer::new().await;
    let alias = json!({ "name": "hosts", "type": "host", "address": ["192.0.2.1", "192.0.2.2"], "detail": ["first"] });
    let made = peer.post("/firewall/alias", alias).await;
    assert_eq!(made["detail"].as_array().unwrap().len(), 2);
    assert!(made["detail"][1].as_str().unwrap().starts_with("Entry added"));
    let wrong = json!({ "name": "ports", "type": "port", "address": ["70000"] });
    assert_eq!(
        peer.refusal("POST", "/firewall/alias", wrong).await,
        refused(400, "INVALID_PORT_ALIAS_ADDRESS")
    );
    let renamed = json!({ "id": 0, "name": "other" });
    assert_eq!(
        peer.refusal("PATCH", "/firewall/alias", renamed).await.1,
        "FIELD_VALUE_CHANGED_WHEN_NOT_EDITABLE"
    );
}

#[tokio::test]
async fn public_key_follows_the_private_one() {
    let peer = Peer::new().await;
    // RFC 7748, section 6.1.
    let private = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
    let made = peer
        .post(
            "/vpn/wireguard/tunnel",
            json!({ "descr": "second", "listenport": "51821", "privatekey": private }),
        )
        .await;
    assert_eq!(made["name"], "tun_wg1");
    assert_eq!(made["publickey"], "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
    assert!(made.get("privatekey").is_none());
    let peers = peer.get("/status/wireguard/tunnels").await;
    assert_eq!(peers.as_array().unwrap().len(), 1, "it runs after the apply");
}

#[tokio::test]
async fn children_sent_back_keep_their_secrets_and_one_that_differs_loses_all() {
    let peer = Peer::new().await;
    let server = peer.get("/services/dhcp_server?id=lan").await;
    let maps = server["staticmap"].clone();
    let kept = peer.patch("/services/dhcp_server", json!({ "id": "lan", "staticmap": maps })).await;
    assert_eq!(kept["staticmap"], server["staticmap"]);
    let more = json!({ "id": "lan", "append": true,
        "staticmap": [{ "mac": "02:00:00:00:09:09", "ipaddr": "192.168.1.61" }] });
    let both = peer.patch("/services/dhcp_server", more).await;
    assert_eq!(both["staticmap"].as_array().unwrap().len(), 2);
    let none = peer.patch("/services/dhcp_server", json!({ "id": "lan", "staticmap": [] })).await;
    assert_eq!(none["staticmap"], json!([]));
}

#[tokio::test]
async fn certificate_is_made_read_and_kept_while_in_use() {
    let peer = Peer::new().await;
    let ca = peer
        .post(
            "/system/certificate_authority/generate",
            json!({ "descr": "second authority", "keytype": "ECDSA", "ecname": "prime256v1", "digest_alg": "sha256",
                "dn_commonname": "second authority", "lifetime": 3650 }),
        )
        .await;
    let certificate = json!({ "descr": "portal", "caref": ca["refid"], "keytype": "ECDSA", "ecname": "prime256v1",
        "digest_alg": "sha256", "dn_commonname": "portal.home.example", "lifetime": 398, "type": "server",
        "dn_dns_sans": ["portal.home.example"] });
    let made = peer.post("/system/certificate/generate", certificate).await;
    let found = peer.get(&format!("/system/certificates?refid={}", made["refid"].as_str().unwrap())).await;
    assert_eq!(
        (&found[0]["valid_days_left"], &found[0]["valid_from"]),
        (&json!(398), &json!("2026-01-01 00:00:00"))
    );
    assert!(found[0].get("prv").is_none());
    assert_eq!(
        peer.refusal("DELETE", "/system/certificate?id=0", Value::Null).await,
        refused(403, "CERTIFICATE_CANNOT_BE_DELETED_WHILE_IN_USE")
    );
    let renewed = peer
        .post("/system/certificate/renew", json!({ "certref": made["refid"], "reuseserial": false }))
        .await;
    assert_ne!(renewed["oldserial"], renewed["newserial"]);
    peer.delete("/system/certificate?id=1").await;
    // What may not sign is no authority.
    let exposed = json!({ "expose_sensitive_fields": true });
    peer.patch("/system/restapi/settings", exposed).await;
    let own = peer.get("/system/certificate?id=0").await;
    let authority = json!({ "descr": "no authority", "crt": own["crt"], "prv": own["prv"] });
    assert_eq!(
        peer.refusal("POST", "/system/certificate_authority", authority).await,
        refused(400, "CERTIFICATE_AUTHORITY_CRT_NOT_VALID_CA")
    );
}

#[tokio::test]
async fn request_for_a_certificate_is_made_and_signed() {
    let peer = Peer::new().await;
    let request = json!({ "descr": "asked for", "keytype": "ECDSA", "ecname": "prime256v1", "digest_alg": "sha256",
        "dn_commonname": "asked.home.example", "lifetime": 100 });
    peer.patch("/system/restapi/settings", json!({ "expose_sensitive_fields": true })).await;
    let made = peer.post("/system/certificate/signing_request", request).await;
    let sign = json!({ "descr": "signed", "caref": "65a0c0ffee010", "csr": made["csr"], "digest_alg": "sha256",
        "lifetime": 100, "prv": made["prv"] });
    let signed = peer.post("/system/certificate/signing_request/sign", sign).await;
    let (certificate, key) = (signed["crt"].as_str().unwrap(), made["prv"].as_str().unwrap());
    assert!(crate::trust::is_pair(certificate, key));
    assert_eq!(crate::der::subject(certificate).unwrap(), "asked.home.example");
}
