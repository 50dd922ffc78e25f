//! The box itself: services, history, firmware, restarts.

use super::*;

#[tokio::test]
async fn revert_stores_an_old_configuration_and_applies_nothing() {
    let peer = Peer::new().await;
    let list = peer.get("core/backup/backups/this").await;
    let before = list["items"][0]["id"].as_str().unwrap().to_owned();
    let id = peer.add("firewall/filter/add_rule", rule("to be undone")).await;
    peer.post("firewall/filter/apply", json!({})).await;
    assert_eq!(peer.get("core/backup/backups/this").await["items"].as_array().unwrap().len(), 2);
    let reverted = peer.post(&format!("core/backup/revert_backup/{before}"), json!({})).await;
    assert_eq!(reverted, json!({ "status": "reverted" }));
    assert_eq!(peer.running(RULES, &id, "description"), "to be undone");
    assert_eq!(peer.pending(), [RULES]);
    let xml = peer.request("GET", &format!("core/backup/download/this/{before}")).send().await.unwrap();
    assert_eq!(xml.headers()["content-type"], "application/octet-stream");
    let unknown = peer.request("GET", "core/backup/download/this/config-1.xml").send().await.unwrap();
    assert_eq!((unknown.status().as_u16(), unknown.bytes().await.unwrap().len()), (200, 0));
}

#[tokio::test]
async fn stopped_kea_has_no_leases_until_it_is_applied() {
    let peer = Peer::new().await;
    assert_eq!(peer.rows("kea/leases4/search").await[0]["state"], 0);
    assert_eq!(peer.post("core/service/stop/kea", json!({})).await, json!({ "result": "ok" }));
    assert!(peer.rows("kea/leases4/search").await.is_empty());
    peer.post("kea/service/reconfigure", json!({})).await;
    assert_eq!(peer.rows("kea/leases4/search").await.len(), 3);
}

#[tokio::test]
async fn update_runs_as_a_job_and_ends_in_a_restart() {
    let peer = Peer::new().await;
    peer.post("core/firmware/status", json!({})).await;
    assert_eq!(peer.get("core/firmware/info").await["product_version"], "26.7.2");
    let started = peer.post("core/firmware/update", json!({})).await;
    assert_eq!(started["status"], "ok");
    assert_eq!(peer.get("core/firmware/running").await["status"], "busy");
    assert_eq!(peer.get("core/firmware/upgradestatus").await["status"], "running");
    peer.lab.advance(Duration::from_secs(10));
    assert_eq!(peer.get("core/firmware/upgradestatus").await["status"], "reboot");
    peer.lab.advance(Duration::from_secs(2));
    assert!(peer.request("GET", "core/firmware/running").send().await.is_err());
    peer.lab.advance(Duration::from_secs(20));
    let system = peer.get("diagnostics/system/system_information").await;
    assert_eq!(system["versions"][0], "OPNsense 26.7.3-amd64");
}

#[tokio::test]
async fn upgrade_brings_the_routes_of_the_next_series() {
    let peer = Peer::of_release(Release::V26_1).await;
    assert_eq!(peer.send("interfaces/assignment/search_item", &json!({})).await.status(), 404);
    peer.post("core/firmware/check", json!({})).await;
    peer.lab.advance(Duration::from_secs(10));
    peer.post("core/firmware/upgrade", json!({})).await;
    for secs in [10, 2, 20] {
        peer.lab.advance(Duration::from_secs(secs));
    }
    assert_eq!(peer.rows("interfaces/assignment/search_item").await.len(), 4);
}

#[tokio::test]
async fn plugin_routes_exist_while_it_is_installed() {
    let peer = Peer::of(Settings { plugins: Some(Vec::new()), ..Settings::default() }).await;
    assert_eq!(peer.request("GET", "quagga/general/get").send().await.unwrap().status(), 404);
    peer.post("core/firmware/install/os-frr", json!({})).await;
    peer.lab.advance(Duration::from_secs(10));
    assert!(peer.get("quagga/general/get").await["general"].is_object());
}

#[tokio::test]
async fn restart_makes_everything_stored_active() {
    let peer = Peer::new().await;
    peer.add("firewall/filter/add_rule", rule("waits")).await;
    peer.post("core/system/reboot", json!({})).await;
    peer.lab.advance(Duration::from_secs(2));
    peer.lab.advance(Duration::from_secs(20));
    assert!(peer.get("core/system/status").await.is_object());
    assert!(peer.pending().is_empty());
    assert_eq!(peer.get("diagnostics/system/system_time").await["uptime"], "00:00:20");
}

#[tokio::test]
async fn person_edits_behind_the_api() {
    let peer = Peer::new().await;
    let node = "Firewall/Alias:aliases.alias";
    let edit = json!({ "do": "set", "node": node, "fields": { "name": "by_hand", "type": "host",
        "content": "192.0.2.1" } });
    let made = peer.lab.edit(&edit).unwrap();
    let found = peer.get("firewall/alias/get_alias_uuid/by_hand").await;
    assert_eq!(found["uuid"], made["id"]);
    let pending: Value = peer
        .http
        .get(format!("{}/pending", peer.lab.control_url()))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(pending, json!([node]));
    let url = format!("{}/stored/{node}", peer.lab.control_url());
    let rows: Value = peer.http.get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(rows[made["id"].as_str().unwrap()]["content"], "192.0.2.1");
}

#[tokio::test]
async fn gateway_status_shows_what_the_monitor_measures() {
    let peer = Peer::new().await;
    let down = json!({ "status": "down", "loss": "100.0 %", "delay": "0.0 ms" });
    peer.lab.edit(&json!({ "do": "gateway", "name": "WAN_GW", "measured": down })).unwrap();
    let items = peer.get("routes/gateway/status").await["items"].take();
    assert_eq!((&items[0]["status"], &items[0]["loss"]), (&json!("down"), &json!("100.0 %")));
    assert_eq!((&items[1]["status"], &items[1]["delay"]), (&json!("none"), &json!("~")));
}

#[tokio::test]
async fn last_check_for_updates_is_read_without_a_new_one() {
    let peer = Peer::new().await;
    assert_eq!(peer.get("core/firmware/status").await["status"], "none");
    let probed = peer.post("core/firmware/status", json!({})).await;
    assert_eq!((&probed["status"], &probed["status_reboot"]), (&json!("update"), &json!("1")));
    assert_eq!(peer.get("core/firmware/status").await["status"], "update");
}

#[tokio::test]
async fn some_plugin_routes_act_on_get() {
    let peer = Peer::new().await;
    peer.get("acmeclient/service/reset").await;
    assert_eq!(peer.lab.state()["live"]["acted"]["acmeclient/service/reset"], 1);
}

#[tokio::test]
async fn device_that_a_revert_took_away_stays_until_a_restart() {
    let peer = Peer::new().await;
    let before = peer.get("core/backup/backups/this").await["items"][0]["id"].as_str().unwrap().to_owned();
    peer.add("interfaces/vlan_settings/add_item", json!({ "vlan": { "if": "igb2", "tag": "30" } })).await;
    peer.post("interfaces/vlan_settings/reconfigure", json!({})).await;
    peer.post(&format!("core/backup/revert_backup/{before}"), json!({})).await;
    peer.post("interfaces/vlan_settings/reconfigure", json!({})).await;
    let names = peer.get("diagnostics/interface/get_interface_config").await;
    assert!(names["vlan03"].is_object());
    peer.lab.boot(Duration::ZERO);
    let names = peer.get("diagnostics/interface/get_interface_config").await;
    assert!(names["vlan03"].is_null());
}

#[tokio::test]
async fn neighbours_are_up_to_half_a_minute_old() {
    let peer = Peer::new().await;
    let before = peer.get("diagnostics/interface/get_arp").await.as_array().unwrap().len();
    let lease = json!({ "do": "lease", "address": "192.168.1.150", "mac": "02:00:00:00:01:50", "hostname": "new",
        "interface": "lan" });
    peer.lab.edit(&lease).unwrap();
    assert_eq!(peer.get("diagnostics/interface/get_arp").await.as_array().unwrap().len(), before);
    peer.lab.advance(Duration::from_secs(30));
    assert_eq!(peer.get("diagnostics/interface/get_arp").await.as_array().unwrap().len(), before + 1);
}
