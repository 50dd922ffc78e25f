//! Items: written, read, validated, removed.

use super::*;

const UNKNOWN: &str = "3f1c2a9e-6d1b-4a53-9a39-0a6f1d2c4b55";

#[tokio::test]
async fn update_changes_only_what_is_sent_and_ignores_unknown_fields() {
    let peer = Peer::new().await;
    let id = peer.add("firewall/filter/add_rule", rule("first")).await;
    let change = json!({ "rule": { "description": "second", "destination_prot": "80" } });
    assert_eq!(
        peer.post(&format!("firewall/filter/set_rule/{id}"), change).await,
        json!({ "result": "saved" })
    );
    let form = peer.get(&format!("firewall/filter/get_rule/{id}")).await;
    assert_eq!(form["rule"]["description"], "second");
    assert_eq!(form["rule"]["destination_port"], "443");
}

#[tokio::test]
async fn set_with_an_unknown_uuid_creates_under_it() {
    let peer = Peer::new().await;
    let path = format!("firewall/filter/set_rule/{UNKNOWN}");
    assert_eq!(peer.get(&format!("firewall/filter/get_rule/{UNKNOWN}")).await, json!([]));
    assert_eq!(peer.post(&path, rule("restored")).await, json!({ "result": "saved" }));
    let form = peer.get(&format!("firewall/filter/get_rule/{UNKNOWN}")).await;
    assert_eq!(form["rule"]["description"], "restored");
    let other = peer.post("firewall/filter/set_rule/not-a-uuid", rule("refused")).await;
    assert_eq!(other, json!({ "result": "failed" }));
}

#[tokio::test]
async fn cron_job_is_not_created_by_a_set() {
    let peer = Peer::new().await;
    let job = json!({ "job": { "command": "firmware poll", "description": "nightly" } });
    assert_eq!(
        peer.post(&format!("cron/settings/set_job/{UNKNOWN}"), job).await,
        json!({ "result": "failed" })
    );
}

#[tokio::test]
async fn validation_names_the_field_under_its_root() {
    let peer = Peer::new().await;
    let cases = [
        ("firewall/filter/add_rule", json!({ "rule": { "action": "allow" } }), "rule.action"),
        ("firewall/filter/add_rule", json!({ "rule": { "interface": "opt9" } }), "rule.interface"),
        ("firewall/filter/add_rule", json!({ "rule": { "sequence": "1000000" } }), "rule.sequence"),
        ("firewall/filter/add_rule", json!({ "rule": { "source_net": "no_such_alias" } }), "rule.source_net"),
        ("firewall/filter/add_rule", json!({ "rule": { "enabled": false } }), "rule.enabled"),
        ("firewall/alias/add_item", json!({ "alias": { "name": "1st", "type": "host" } }), "alias.name"),
        (
            "firewall/alias/add_item",
            json!({ "alias": { "name": "web_servers", "type": "host" } }),
            "alias.name",
        ),
        (
            "firewall/alias/add_item",
            json!({ "alias": { "name": "nets", "type": "network", "content": "10.0.0.0/33" } }),
            "alias.content",
        ),
        ("interfaces/vlan_settings/add_item", json!({ "vlan": { "if": "igb2", "tag": "4095" } }), "vlan.tag"),
        (
            "kea/dhcpv4/add_reservation",
            json!({ "reservation": { "subnet": UNKNOWN, "hw_address": "02:00:00:aa:bb:cc" } }),
            "reservation.subnet",
        ),
        (
            "wireguard/client/add_client",
            json!({ "client": { "name": "a b", "pubkey": "AAAA", "tunneladdress": "10.0.0.1/32" } }),
            "client.name",
        ),
    ];
    for (path, body, field) in cases {
        let answer = peer.post(path, body.clone()).await;
        assert_eq!(answer["result"], "failed", "{body}");
        assert!(answer["validations"][field].is_string(), "{field}: {answer}");
    }
    assert!(peer.pending().is_empty());
}

#[tokio::test]
async fn list_where_a_scalar_belongs_is_an_error() {
    let peer = Peer::new().await;
    let response =
        peer.send("firewall/filter/add_rule", &json!({ "rule": { "interface": ["lan", "opt1"] } })).await;
    assert_eq!(response.status(), 500);
}

#[tokio::test]
async fn delete_of_a_used_alias_is_refused_and_a_rename_is_followed() {
    let peer = Peer::new().await;
    let uuid =
        peer.get("firewall/alias/get_alias_uuid/web_servers").await["uuid"].as_str().unwrap().to_owned();
    let response = peer.send(&format!("firewall/alias/del_item/{uuid}"), &json!({})).await;
    assert_eq!(response.status(), 500);
    let rename = json!({ "alias": { "name": "front_ends" } });
    peer.post(&format!("firewall/alias/set_item/{uuid}"), rename).await;
    let rules = peer.rows("firewall/filter/search_rule").await;
    assert!(rules.iter().any(|rule| rule["destination_net"] == "front_ends"));
}

#[tokio::test]
async fn delete_tells_whether_the_item_was_there() {
    let peer = Peer::new().await;
    let id = peer.add("firewall/filter/add_rule", rule("short-lived")).await;
    let path = format!("firewall/filter/del_rule/{id}");
    assert_eq!(peer.post(&path, json!({})).await, json!({ "result": "deleted" }));
    assert_eq!(peer.post(&path, json!({})).await, json!({ "result": "not found" }));
}

#[tokio::test]
async fn toggle_of_a_port_forward_takes_disabled() {
    let peer = Peer::new().await;
    let rows = peer.rows("firewall/d_nat/search_rule").await;
    let id = rows.iter().find_map(|row| row["uuid"].as_str().filter(|id| id.len() == 36)).unwrap().to_owned();
    let off = peer.post(&format!("firewall/d_nat/toggle_rule/{id}/1"), json!({})).await;
    assert_eq!(off, json!({ "result": "Disabled", "changed": true }));
    let on = peer.post(&format!("firewall/d_nat/toggle_rule/{id}"), json!({})).await;
    assert_eq!(on, json!({ "result": "Enabled", "changed": true }));
}

#[tokio::test]
async fn vlan_gets_its_device_name_and_is_kept_while_assigned() {
    let peer = Peer::new().await;
    let vlan = json!({ "vlan": { "if": "igb2", "tag": "30", "descr": "voice" } });
    let id = peer.add("interfaces/vlan_settings/add_item", vlan).await;
    let form = peer.get(&format!("interfaces/vlan_settings/get_item/{id}")).await;
    assert_eq!(form["vlan"]["vlanif"], "vlan03");
    let assign = json!({ "interface": { "if": "vlan03", "descr": "VOICE" } });
    assert_eq!(peer.add("interfaces/assignment/add_item", assign).await, "opt3");
    let response = peer.send(&format!("interfaces/vlan_settings/del_item/{id}"), &json!({})).await;
    assert_eq!(response.status(), 500);
    let rows = peer.rows("interfaces/vlan_settings/search_item").await;
    assert!(rows.iter().any(|row| row["vlanif"] == "vlan03 [VOICE]"));
}

#[tokio::test]
async fn update_of_an_address_without_its_network_blanks_it() {
    let peer = Peer::new().await;
    let vip = json!({ "vip": { "interface": "lan", "mode": "ipalias", "network": "192.168.1.9/24" } });
    let id = peer.add("interfaces/vip_settings/add_item", vip).await;
    let path = format!("interfaces/vip_settings/get_item/{id}");
    assert_eq!(peer.get(&path).await["vip"]["network"], "192.168.1.9/24");
    peer.post(&format!("interfaces/vip_settings/set_item/{id}"), json!({ "vip": { "descr": "second" } }))
        .await;
    assert_eq!(peer.get(&path).await["vip"]["network"], "");
}

#[tokio::test]
async fn good_rows_of_a_file_are_saved_and_bad_ones_named() {
    let peer = Peer::new().await;
    let payload = "ip_address,hw_address,hostname,description\n\
        192.168.1.60,02:00:00:00:00:60,scanner,\"second, floor\"\n\
        10.0.0.1,02:00:00:00:00:61,nowhere,\n";
    let answer = peer.post("kea/dhcpv4/upload_reservations", json!({ "payload": payload })).await;
    assert_eq!((&answer["inserted"], answer["validations"].as_array().map(Vec::len)), (&json!(1), Some(1)));
    let rows = peer.rows("kea/dhcpv4/search_reservation").await;
    let row = rows.iter().find(|row| row["hostname"] == "scanner").unwrap();
    assert_eq!((&row["description"], &row["%subnet"]), (&json!("second, floor"), &json!("192.168.1.0/24")));
}

#[tokio::test]
async fn entry_of_a_table_acts_at_once() {
    let peer = Peer::new().await;
    let entry = json!({ "address": "192.168.1.22" });
    assert_eq!(peer.post("firewall/alias_util/add/web_servers", entry).await, json!({ "status": "done" }));
    let listed = peer.get("firewall/alias_util/list/web_servers").await;
    assert_eq!(listed["total"], 3);
    let uuid =
        peer.get("firewall/alias/get_alias_uuid/web_servers").await["uuid"].as_str().unwrap().to_owned();
    let content = peer.get(&format!("firewall/alias/get_item/{uuid}")).await["alias"]["content"].take();
    assert_eq!(content["192.168.1.22"]["selected"], 1);
}

#[tokio::test]
async fn several_are_deleted_and_only_the_last_outcome_is_told() {
    let peer = Peer::new().await;
    let id = peer.add("firewall/filter/add_rule", rule("one of two")).await;
    let answer = peer.post(&format!("firewall/filter/del_rule/{id},{UNKNOWN}"), json!({})).await;
    assert_eq!(answer, json!({ "result": "not found" }));
    assert_eq!(peer.get(&format!("firewall/filter/get_rule/{id}")).await, json!([]));
}

#[tokio::test]
async fn deleted_host_takes_its_aliases_along() {
    let peer = Peer::new().await;
    let host =
        peer.rows("unbound/settings/search_host_override").await[0]["uuid"].as_str().unwrap().to_owned();
    let alias = json!({ "alias": { "host": host, "hostname": "files", "domain": "home.example" } });
    peer.add("unbound/settings/add_host_alias", alias).await;
    let deleted = peer.post(&format!("unbound/settings/del_host_override/{host}"), json!({})).await;
    assert_eq!(deleted, json!({ "result": "deleted" }));
    assert!(peer.rows("unbound/settings/search_host_override").await.is_empty());
    assert!(peer.rows("unbound/settings/search_host_alias").await.is_empty());
}
