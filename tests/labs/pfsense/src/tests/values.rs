//! Types, conditions, defaults, and how interfaces are named.

use super::*;

#[tokio::test]
async fn types_are_strict() {
    let peer = Peer::new().await;
    for (field, value, id) in [
        ("disabled", json!("true"), "FIELD_INVALID_TYPE"),
        ("interface", json!("LAN"), "FIELD_INVALID_MANY_VALUE"),
        ("destination_port", json!(443), "FIELD_INVALID_TYPE"),
        ("destination_port", json!("70000"), "PORT_FIELD_INVALID"),
        ("type", json!("allow"), "FIELD_INVALID_CHOICE"),
        ("source", json!("nowhere at all"), "FILTER_ADDRESS_FIELD_INVALID"),
        ("source", json!("!any"), "FILTER_RULE_ADDRESS_FIELD_WITH_INVERT_ANY"),
        ("interface", json!(["lan"]), "FIELD_INVALID_CHOICE"),
        ("statetype", json!("synproxy state"), "SUCCESS"),
    ] {
        let mut body = rule("typed");
        body[field] = value;
        assert_eq!(peer.refusal("POST", "/firewall/rule", body).await.1, id, "{field}");
    }
    for (value, id) in [
        (json!(0), "NUMERIC_RANGE_VALIDATOR_MINIMUM_CONSTRAINT"),
        (json!(5000), "NUMERIC_RANGE_VALIDATOR_MAXIMUM_CONSTRAINT"),
    ] {
        let vlan = json!({ "if": "igb1", "tag": value });
        assert_eq!(peer.refusal("POST", "/interface/vlan", vlan).await, refused(400, id));
    }
    let long = json!({ "name": "a".repeat(32), "type": "host" });
    assert_eq!(
        peer.refusal("POST", "/firewall/alias", long).await,
        refused(400, "LENGTH_VALIDATOR_MAXIMUM_CONSTRAINT")
    );
}

#[tokio::test]
async fn field_whose_condition_is_not_met_is_dropped_silently_and_for_good() {
    let peer = Peer::new().await;
    let mut body = rule("without ports");
    body["protocol"] = json!("icmp");
    let made = peer.post("/firewall/rule", body).await;
    assert_eq!((&made["destination_port"], &made["icmptype"]), (&Value::Null, &json!(["any"])));
    assert_eq!(
        peer.patch("/firewall/rule", json!({ "id": 4, "protocol": "tcp" })).await["destination_port"],
        Value::Null
    );
}

#[tokio::test]
async fn unset_list_is_null_until_an_update_makes_it_empty() {
    let peer = Peer::new().await;
    peer.post("/firewall/rule", rule("lists")).await;
    assert_eq!(peer.get("/firewall/rule?id=4").await["tcp_flags_set"], Value::Null);
    assert_eq!(
        peer.patch("/firewall/rule", json!({ "id": 4, "descr": "x" })).await["tcp_flags_set"],
        Value::Null
    );
    assert_eq!(peer.get("/firewall/rule?id=4").await["tcp_flags_set"], json!([]));
}

#[tokio::test]
async fn update_checks_the_whole_object() {
    let peer = Peer::new().await;
    let fields = json!({ "destination": "gone_alias" });
    peer.lab.edit(&json!({ "do": "set", "model": "FirewallRule", "id": 0, "fields": fields })).unwrap();
    let change = json!({ "id": 0, "descr": "harmless" });
    assert_eq!(
        peer.refusal("PATCH", "/firewall/rule", change).await,
        refused(400, "FILTER_ADDRESS_FIELD_INVALID")
    );
}

#[tokio::test]
async fn unknown_fields_are_ignored_and_read_only_ones_are_stored() {
    let peer = Peer::new().await;
    let mut body = rule("odd");
    body["nothing"] = json!("x");
    body["tracker"] = json!(42);
    let made = peer.post("/firewall/rule", body).await;
    assert!(made.get("nothing").is_none());
    assert_eq!(peer.get("/firewall/rule?id=4").await["tracker"], 42);
}

#[tokio::test]
async fn interfaces_are_shown_and_taken_as_the_setting_says() {
    let peer = Peer::new().await;
    for (setting, lan, address) in
        [("descr", "LAN", "LAN:ip"), ("id", "lan", "lan:ip"), ("if", "igb1", "igb1:ip")]
    {
        peer.patch("/system/restapi/settings", json!({ "represent_interfaces_as": setting })).await;
        let rule = peer.get("/firewall/rule?id=0").await;
        assert_eq!((&rule["interface"], &rule["source"]), (&json!([lan]), &json!(lan)));
        let change = json!({ "id": 0, "source": format!("!{address}") });
        assert_eq!(peer.patch("/firewall/rule", change).await["source"], format!("!{address}"));
        let stored = peer.lab.lock().stored_rows("FirewallRule");
        assert_eq!((&stored[0]["interface"], &stored[0]["source"]), (&json!(["lan"]), &json!("!lan:ip")));
        peer.patch("/firewall/rule", json!({ "id": 0, "source": lan })).await;
    }
}

#[tokio::test]
async fn name_of_a_target_that_ends_in_ip_reads_as_an_address_of_an_interface() {
    let peer = Peer::new().await;
    peer.post("/firewall/alias", json!({ "name": "camip", "type": "host", "address": ["192.168.1.9"] }))
        .await;
    peer.patch("/firewall/nat/port_forward", json!({ "id": 0, "target": "camip" })).await;
    assert_eq!(peer.get("/firewall/nat/port_forward?id=0").await["target"], "cam:ip");
}

#[tokio::test]
async fn entry_that_holds_the_separator_reads_as_two() {
    let peer = Peer::new().await;
    let alias = json!({ "name": "split", "type": "host", "address": ["192.0.2.1"], "detail": ["one||two"] });
    assert_eq!(peer.post("/firewall/alias", alias).await["detail"], json!(["one||two"]));
    assert_eq!(peer.get("/firewall/alias?id=3").await["detail"], json!(["one", "two"]));
}

#[tokio::test]
async fn remove_takes_entries_out_of_a_list() {
    let peer = Peer::new().await;
    let less = json!({ "id": 0, "remove": true, "address": ["192.168.1.20"], "detail": ["first"] });
    let left = peer.patch("/firewall/alias", less).await;
    assert_eq!((&left["address"], &left["detail"]), (&json!(["192.168.1.21"]), &json!(["second"])));
    let more = json!({ "id": 0, "append": true, "address": ["192.168.1.22"] });
    let more = peer.patch("/firewall/alias", more).await;
    assert_eq!(more["address"], json!(["192.168.1.21", "192.168.1.22"]));
}

#[tokio::test]
async fn password_is_stored_as_a_digest_and_works() {
    let mut peer = Peer::new().await;
    peer.post("/user", json!({ "name": "noc", "password": "secret", "priv": ["page-all"] })).await;
    let stored = peer.lab.lock().stored_rows("User");
    assert!(stored[2]["password"].as_str().unwrap().starts_with("$2y$"));
    peer.user = ("noc".to_owned(), "secret".to_owned());
    peer.get("/system/version").await;
    // An update of another field keeps it.
    peer.patch("/user", json!({ "id": 2, "descr": "operations" })).await;
    peer.get("/system/version").await;
}

#[tokio::test]
async fn ends_of_a_tunnel_and_lengths_of_keys_depend_on_their_kind() {
    let peer = Peer::new().await;
    let own = peer.get("/vpn/ipsec/phase2?id=0").await;
    assert_eq!((&own["localid_address"], &own["natlocalid_address"]), (&json!("192.168.1.0"), &Value::Null));
    let whole = peer.patch("/vpn/ipsec/phase2", json!({ "id": 0, "localid_type": "LAN" })).await;
    assert_eq!((&whole["localid_address"], &whole["localid_netbits"]), (&Value::Null, &Value::Null));
    let encryption = json!({ "parent_id": 0, "encryption_algorithm_name": "aes", "encryption_algorithm_keylen": 64,
        "hash_algorithm": "sha256", "dhgroup": 14 });
    assert_eq!(
        peer.refusal("POST", "/vpn/ipsec/phase1/encryption", encryption).await,
        refused(400, "IPSEC_PHASE_1_ENCRYPTION_ALGORITHM_KEYLEN_INVALID_CHOICE")
    );
}

#[tokio::test]
async fn condition_on_a_later_field_needs_that_field_in_the_request() {
    let peer = Peer::new().await;
    let mut mapping = json!({ "interface": "WAN", "protocol": "tcp", "source": "any", "destination": "any",
        "target": "192.0.2.9", "nat_port": "4000" });
    let path = "/firewall/nat/outbound/mapping";
    assert_eq!(peer.post(path, mapping.clone()).await["nat_port"], Value::Null);
    mapping["static_nat_port"] = json!(false);
    assert_eq!(peer.post(path, mapping).await["nat_port"], "4000");
}
