//! The tables of the first interface.

use super::*;

#[tokio::test]
async fn a_write_merges_and_an_answer_is_a_list_of_one() {
    let peer = Peer::new().await;
    let made = peer.add("usergroup", json!({ "name": "slow", "qos_rate_max_down": 2000 })).await;
    assert_eq!(made["qos_rate_max_up"], -1);
    let changed = peer.change("usergroup", &made["_id"], json!({ "qos_rate_max_up": 500 })).await;
    assert_eq!((changed["name"].as_str(), changed["qos_rate_max_down"].as_i64()), (Some("slow"), Some(2000)));
    let path = format!("~/rest/usergroup/{}", made["_id"].as_str().unwrap());
    assert_eq!(peer.get(&path).await["data"].as_array().unwrap().len(), 1);
    assert_eq!(peer.ok("DELETE", &path, Value::Null).await["data"], json!([]));
    assert_eq!(peer.get(&path).await["data"], json!([]));
    assert_eq!(peer.refused("DELETE", &path, Value::Null).await, "api.err.IdInvalid");
}

#[tokio::test]
async fn a_value_without_the_form_of_its_field_is_named() {
    let peer = Peer::new().await;
    let body = json!({ "name": "x", "qos_rate_max_up": "fast" });
    let (status, answer) = peer.ask("POST", "~/rest/usergroup", body).await;
    assert_eq!((status, answer["meta"]["msg"].as_str()), (400, Some("api.err.InvalidPayload")));
    assert_eq!(answer["data"][0]["validationError"]["field"], "qos_rate_max_up");
    let inner =
        json!({ "name": "r", "auth_servers": [{ "ip": "no address", "port": 1812, "x_secret": "s" }] });
    let (_, answer) = peer.ask("POST", "~/rest/radiusprofile", inner).await;
    assert_eq!(answer["data"][0]["validationError"]["field"], "auth_servers.ip");
    assert_eq!(
        peer.refused("POST", "~/rest/usergroup", json!({ "name": null })).await,
        "api.err.InvalidPayload"
    );
}

#[tokio::test]
async fn an_unknown_field_is_dropped_without_a_word() {
    let peer = Peer::new().await;
    let body = json!({
        "name": "trunk", "tagged_networkconf_ids": ["a"], "made_up": 1, "setting_preference": "manual",
    });
    let made = peer.add("portconf", body).await;
    assert!(made.get("tagged_networkconf_ids").is_none() && made.get("made_up").is_none());
    assert_eq!(made["name"], "trunk");
}

#[tokio::test]
async fn what_another_object_names_stays() {
    let peer = Peer::new().await;
    let groups = peer.row("~/rest/usergroup", "name", "Guests 20 Mbit").await;
    let path = format!("~/rest/usergroup/{}", groups["_id"].as_str().unwrap());
    let (status, answer) = peer.ask("DELETE", &path, Value::Null).await;
    assert_eq!((status, answer["meta"]["msg"].as_str()), (400, Some("api.err.ObjectReferredBy")));
    assert_eq!(answer["meta"]["name"], "Guests");
    let profile = peer.row("~/rest/portconf", "name", "Cameras only").await;
    let path = format!("~/rest/portconf/{}", profile["_id"].as_str().unwrap());
    let (_, answer) = peer.ask("DELETE", &path, Value::Null).await;
    assert_eq!(answer["meta"]["msg"], "api.err.ObjectReferredByDevice");
    assert_eq!(answer["meta"]["alias_or_mac"], "core");
}

#[tokio::test]
async fn built_in_objects_are_neither_changed_nor_removed() {
    let peer = Peer::new().await;
    let all = peer.row("~/rest/portconf", "name", "All").await;
    let path = format!("~/rest/portconf/{}", all["_id"].as_str().unwrap());
    assert_eq!(peer.refused("DELETE", &path, Value::Null).await, "api.err.NoDelete");
    assert_eq!(peer.refused("PUT", &path, json!({ "name": "x" })).await, "api.err.NoEdit");
}

#[tokio::test]
async fn the_controller_stores_its_own_values_while_a_preference_is_automatic() {
    let peer = Peer::new().await;
    let body = json!({ "name": "auto", "setting_preference": "auto", "isolation": true, "autoneg": false });
    let made = peer.add("portconf", body).await;
    assert_eq!((made["isolation"].as_bool(), made["autoneg"].as_bool()), (Some(false), Some(true)));
    let kept = peer
        .change("portconf", &made["_id"], json!({ "setting_preference": "manual", "isolation": true }))
        .await;
    assert_eq!(kept["isolation"], true);
}

#[tokio::test]
async fn names_and_references_are_checked() {
    let peer = Peer::new().await;
    let group = json!({ "name": "Printers", "group_type": "address-group", "group_members": ["10.0.0.1"] });
    assert_eq!(peer.refused("POST", "~/rest/firewallgroup", group).await, "api.err.FirewallGroupExisted");
    let wrong = json!({ "name": "n", "group_type": "port-group", "group_members": ["70000"] });
    assert_eq!(
        peer.refused("POST", "~/rest/firewallgroup", wrong).await,
        "api.err.FirewallGroupInvalidMember"
    );
    let known = json!({ "mac": ADA });
    assert_eq!(peer.refused("POST", "~/rest/user", known).await, "api.err.MacUsed");
    let outside = json!({ "mac": "02:00:5e:77:00:01", "use_fixedip": true, "fixed_ip": "172.16.9.9" });
    assert_eq!(peer.refused("POST", "~/rest/user", outside).await, "api.err.InvalidFixedIP");
    let twice = json!({ "mac": "02:00:5e:77:00:01", "use_fixedip": true, "fixed_ip": "192.168.1.20" });
    assert_eq!(peer.refused("POST", "~/rest/user", twice).await, "api.err.DuplicateFixedIP");
    let record =
        json!({ "mac": "02:00:5e:77:00:01", "local_dns_record_enabled": true, "local_dns_record": "a.lan" });
    assert_eq!(peer.refused("POST", "~/rest/user", record).await, "api.err.LocalDnsRecordRequiresFixedIp");
    let same = json!({
        "name": "again", "dst_port": "443", "fwd": "10.10.0.9", "fwd_port": "443", "proto": "tcp",
        "src": "any",
        "pfwd_interface": "wan",
    });
    assert_eq!(peer.refused("POST", "~/rest/portforward", same).await, "api.err.PortForwardOverlapped");
}

#[tokio::test]
async fn several_known_clients_come_in_envelopes_of_their_own() {
    let peer = Peer::new().await;
    let body = json!({
        "objects": [{ "data": { "mac": "02:00:5e:77:00:02", "name": "new" } }, { "data": { "mac": ADA } }],
    });
    let answer = peer.ok("POST", "~/group/user", body).await;
    assert_eq!(answer["data"][0]["data"][0]["name"], "new");
    assert_eq!(answer["data"][1]["meta"]["msg"], "api.err.MacUsed");
}

#[tokio::test]
async fn unknown_paths_and_sites_say_so() {
    let peer = Peer::new().await;
    assert_eq!(peer.refused("GET", "~/rest/nonsense", Value::Null).await, "api.err.NotFound");
    assert_eq!(peer.refused("GET", "~/rest/device", Value::Null).await, "api.err.NotFound");
    assert_eq!(peer.refused("GET", "/api/s/nowhere/self", Value::Null).await, "api.err.NoSiteContext");
    assert_eq!(peer.refused("GET", "~2/nonsense", Value::Null).await, "api.err.NotFound");
    assert_eq!(peer.refused("GET", "~/rest/usergroup/xyz", Value::Null).await, "api.err.IdInvalid");
}
