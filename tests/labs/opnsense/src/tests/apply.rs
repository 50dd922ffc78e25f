//! What is stored is not active before its apply.

use super::*;

#[tokio::test]
async fn rule_runs_only_after_the_apply() {
    let peer = Peer::new().await;
    let id = peer.add("firewall/filter/add_rule", rule("new")).await;
    assert_eq!(peer.pending(), [RULES]);
    assert!(peer.get("firewall/filter_util/rule_stats").await["stats"][&id].is_null());
    let answer = peer.post("firewall/filter/apply", json!({})).await;
    assert_eq!(answer["status"].as_str().unwrap().trim().to_lowercase(), "ok");
    assert!(peer.pending().is_empty());
    assert!(peer.get("firewall/filter_util/rule_stats").await["stats"][&id].is_object());
}

#[tokio::test]
async fn one_apply_of_the_packet_filter_makes_changes_of_others_active() {
    let peer = Peer::new().await;
    peer.add("firewall/filter/add_rule", rule("of another person")).await;
    peer.post("routing/settings/reconfigure", json!({})).await;
    assert!(peer.pending().is_empty());
}

#[tokio::test]
async fn override_is_served_after_reconfigure() {
    let peer = Peer::new().await;
    let host = json!({ "host": { "hostname": "cam", "domain": "home.example", "rr": "A",
        "server": "192.168.10.9" } });
    peer.add("unbound/settings/add_host_override", host).await;
    let served = async |peer: &Peer| peer.get("unbound/diagnostics/listlocaldata").await.to_string();
    assert!(!served(&peer).await.contains("cam.home.example."));
    assert_eq!(peer.post("unbound/service/reconfigure", json!({})).await, json!({ "status": "ok" }));
    assert!(served(&peer).await.contains("cam.home.example."));
}

#[tokio::test]
async fn vlan_device_appears_after_its_apply() {
    let peer = Peer::new().await;
    peer.add("interfaces/vlan_settings/add_item", json!({ "vlan": { "if": "igb2", "tag": "30" } })).await;
    let devices = async |peer: &Peer| {
        let rows = peer.rows("interfaces/overview/interfaces_info").await;
        rows.iter().filter(|row| row["device"] == "vlan03").count()
    };
    assert_eq!(devices(&peer).await, 0);
    peer.post("interfaces/vlan_settings/reconfigure", json!({})).await;
    assert_eq!(devices(&peer).await, 1);
}

#[tokio::test]
async fn unconfirmed_apply_is_taken_back_after_a_minute() {
    let peer = Peer::of_release(Release::V26_1).await;
    let savepoint = peer.post("firewall/filter/savepoint", json!({})).await;
    let revision = savepoint["revision"].as_str().unwrap().to_owned();
    let id = peer.add("firewall/filter/add_rule", rule("cuts the way in")).await;
    peer.post(&format!("firewall/filter/apply/{revision}"), json!({})).await;
    peer.lab.advance(Duration::from_secs(59));
    assert_eq!(peer.running(RULES, &id, "description"), "cuts the way in");
    peer.lab.advance(Duration::from_secs(2));
    assert_eq!(peer.running(RULES, &id, "description"), "");
    assert_eq!(peer.get(&format!("firewall/filter/get_rule/{id}")).await, json!([]));
}

#[tokio::test]
async fn confirmed_apply_stays() {
    let peer = Peer::of_release(Release::V26_1).await;
    let revision =
        peer.post("firewall/filter/savepoint", json!({})).await["revision"].as_str().unwrap().to_owned();
    let id = peer.add("firewall/filter/add_rule", rule("stays")).await;
    peer.post(&format!("firewall/filter/apply/{revision}"), json!({})).await;
    let confirmed = peer.post(&format!("firewall/filter/cancel_rollback/{revision}"), json!({})).await;
    assert_eq!(confirmed, json!({ "status": "ok" }));
    peer.lab.advance(Duration::from_mins(2));
    assert_eq!(peer.running(RULES, &id, "description"), "stays");
}

#[tokio::test]
async fn newer_release_has_no_savepoints() {
    let peer = Peer::new().await;
    for command in ["savepoint", "cancel_rollback/1700000000.12", "revert/1700000000.12"] {
        let response = peer.send(&format!("firewall/filter/{command}"), &json!({})).await;
        assert_eq!(response.status(), 404, "{command}");
    }
}

#[tokio::test]
async fn static_route_is_switched_by_the_field_of_its_release() {
    for (release, field, off) in [(Release::V26_1, "disabled", "1"), (Release::V26_7, "enabled", "0")] {
        let peer = Peer::of_release(release).await;
        let route = json!({ "route": { "network": "10.50.0.0/16", "gateway": "WAN_GW", field: off } });
        let id = peer.add("routes/routes/addroute", route).await;
        peer.post("routes/routes/reconfigure", json!({})).await;
        let table = peer.get("diagnostics/interface/get_routes").await.to_string();
        assert!(!table.contains("10.50.0.0/16"), "{release:?}");
        // 1 in the path disables in the older release, and enables in the newer one.
        let toggled = peer.post(&format!("routes/routes/toggleroute/{id}/1"), json!({})).await;
        let expected = if release == Release::V26_1 { "Disabled" } else { "Enabled" };
        assert_eq!(toggled["result"], expected, "{release:?}");
    }
}
