//! What actions leave on the box.

use super::*;

#[tokio::test]
async fn carp_is_switched_and_its_maintenance_flips() {
    let peer = Peer::new().await;
    let carp = || async { peer.get("diagnostics/interface/get_vip_status").await["carp"].clone() };
    assert_eq!(
        (carp().await["allow"].clone(), carp().await["maintenancemode"].clone()),
        (json!("1"), json!(false))
    );
    assert_eq!(peer.post("diagnostics/interface/carp_status/disable", json!({})).await["status"], "ok");
    assert_eq!(carp().await["allow"], "0");
    for expected in [true, false] {
        peer.post("diagnostics/interface/carp_status/maintenance", json!({})).await;
        assert_eq!(carp().await["maintenancemode"], expected);
    }
    assert_eq!(peer.post("diagnostics/interface/carp_status/x", json!({})).await["status"], "failed");
}

#[tokio::test]
async fn second_phase_is_named_by_its_place_which_a_delete_moves() {
    let peer = Peer::new().await;
    let ids = || async {
        peer.rows("ipsec/tunnel/search_phase2")
            .await
            .iter()
            .map(|row| row["uniqid"].clone())
            .collect::<Vec<_>>()
    };
    let before = ids().await;
    peer.post("ipsec/tunnel/toggle_phase2/1/0", json!({})).await;
    assert_eq!(peer.rows("ipsec/tunnel/search_phase2").await[1]["enabled"], "0");
    peer.post("ipsec/tunnel/del_phase2/0", json!({})).await;
    assert_eq!(ids().await, before[1..]);
    assert_eq!(peer.rows("ipsec/tunnel/search_phase2").await[0]["id"], 0);
    assert_eq!(peer.get("ipsec/legacy_subsystem/status").await["isDirty"], true);
}

#[tokio::test]
async fn first_phase_takes_its_second_phases_along() {
    let peer = Peer::new().await;
    let gone = peer.post("ipsec/tunnel/del_phase1/1", json!({})).await;
    assert_eq!((gone["phase1count"].clone(), gone["phase2count"].clone()), (json!(1), json!(1)));
    assert_eq!(peer.rows("ipsec/tunnel/search_phase2").await.len(), 1);
}

#[tokio::test]
async fn peer_gets_the_configuration_with_every_verb() {
    let peer = Peer::new().await;
    assert_eq!(peer.post("core/hasync_status/stop/unbound", json!({})).await["status"], "error");
    peer.lab.edit(&json!({ "do": "peer", "services": ["unbound"] })).unwrap();
    assert_eq!(peer.post("core/hasync_status/stop/unbound", json!({})).await["status"], "ok");
    let live = || peer.lab.state()["live"].clone();
    assert_eq!((live()["peer"]["unbound"].clone(), live()["peer_syncs"].clone()), (json!(false), json!(1)));
    peer.post("core/hasync_status/restart_all", json!({})).await;
    assert_eq!((live()["peer"]["unbound"].clone(), live()["peer_syncs"].clone()), (json!(true), json!(2)));
}

#[tokio::test]
async fn expired_vouchers_are_dropped_and_the_others_stay() {
    let peer = Peer::new().await;
    let body = json!({ "count": 2, "validity": 3600, "vouchergroup": "guests" });
    let made = peer.post("captiveportal/voucher/generate_vouchers/Vouchers", body).await;
    let first = made[0]["username"].clone();
    peer.post("captiveportal/voucher/expire_voucher/Vouchers", json!({ "username": first })).await;
    let dropped = peer.post("captiveportal/voucher/drop_expired_vouchers/Vouchers/guests", json!({})).await;
    assert_eq!(dropped["count"], 1);
    assert_eq!(
        peer.get("captiveportal/voucher/list_vouchers/Vouchers/guests").await.as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn older_controllers_answer_no_id_and_make_nothing_of_a_set() {
    let peer = Peer::new().await;
    let client = json!({ "client": { "name": "switch", "secret": "s3cret" } });
    let made = peer.post("freeradius/client/add_client", client.clone()).await;
    assert_eq!(made, json!({ "result": "saved" }));
    let unknown = "freeradius/client/set_client/5f000000-0000-4000-8000-000000000001";
    assert_eq!(peer.post(unknown, client).await["result"], "failed");
    assert_eq!(peer.rows("freeradius/client/search_client").await.len(), 1);
}

#[tokio::test]
async fn boot_environment_is_found_by_its_name() {
    let peer = Peer::new().await;
    assert_eq!(
        peer.post("core/snapshots/add", json!({ "name": "before", "note": "x" })).await["status"],
        "ok"
    );
    let rows = peer.rows("core/snapshots/search").await;
    assert_eq!((rows[0]["name"].clone(), rows[0].get("note")), (json!("before"), None));
    assert_eq!(peer.get("core/snapshots/get/unknown").await["uuid"], "");
}

#[tokio::test]
async fn deleted_route_is_gone_until_the_next_start() {
    let peer = Peer::new().await;
    let route = json!({ "destination": "10.99.0.0/16", "gateway": "198.51.100.1" });
    assert_eq!(peer.post("diagnostics/interface/del_route", route.clone()).await["message"], "found");
    assert_eq!(peer.post("diagnostics/interface/del_route", route).await["message"], "not_found");
}

#[tokio::test]
async fn host_is_woken_on_an_interface_that_exists() {
    let peer = Peer::new().await;
    let wake = |interface: &str| json!({ "wake": { "interface": interface, "mac": "02:00:00:00:00:77" } });
    assert_eq!(peer.post("wol/wol/set", wake("lan")).await["status"], "OK");
    assert_eq!(peer.post("wol/wol/set", wake("nope")).await["status"], "error");
}

#[tokio::test]
async fn certificate_authority_gets_a_new_key_from_a_write_that_names_no_action() {
    let peer = Peer::new().await;
    let id = peer.add("trust/ca/add", json!({ "ca": { "descr": "own", "commonname": "own" } })).await;
    let key = || peer.lab.lock().stored.value("Trust/Ca:ca", &id, "prv").to_owned();
    let first = key();
    peer.post(&format!("trust/ca/set/{id}"), json!({ "ca": { "descr": "renamed" } })).await;
    assert_ne!(key(), first);
}

#[tokio::test]
async fn records_are_empty_after_their_delete() {
    let peer = Peer::new().await;
    peer.post("ids/service/drop_alert_log", json!({ "filename": "eve.json" })).await;
    let logs = peer.get("ids/service/get_alert_logs").await;
    assert_eq!(logs.as_array().unwrap().len(), 1, "{logs}");
    peer.post("diagnostics/systemhealth/del_r_r_d/system-memory", json!({})).await;
    assert_eq!(peer.get("diagnostics/systemhealth/get_rrd_list").await["data"].as_array().unwrap().len(), 2);
    let unknown = peer.send("diagnostics/systemhealth/del_r_r_d/x", &json!({})).await;
    assert_eq!(unknown.status(), 500);
    peer.post("unbound/overview/reset", json!({})).await;
    assert!(peer.rows("unbound/overview/search_queries").await.is_empty());
    assert_eq!(peer.get("firewall/migration/count_rules").await["count"], 1);
    peer.post("firewall/migration/flush", json!({})).await;
    assert_eq!(peer.get("firewall/migration/count_rules").await["count"], 0);
}

#[tokio::test]
async fn server_of_the_running_proxy_gets_a_state() {
    let peer = Peer::new().await;
    let server = json!({ "server": { "name": "one", "address": "192.0.2.7", "port": "8080" } });
    let server = peer.add("haproxy/settings/add_server", server).await;
    peer.add(
        "haproxy/settings/add_backend",
        json!({ "backend": { "name": "web", "linkedServers": server } }),
    )
    .await;
    let drain = json!({ "backend": "web", "server": "one", "state": "drain" });
    assert_eq!(peer.post("haproxy/maintenance/server_state", drain.clone()).await["status"], "error");
    peer.post("haproxy/service/reconfigure", json!({})).await;
    assert_eq!(peer.post("haproxy/maintenance/server_state", drain).await["status"], "ok");
    assert_eq!(peer.rows("haproxy/maintenance/search_server").await[0]["status"], "drain");
}
