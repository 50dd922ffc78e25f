//! What releases differ in.

use super::*;

#[tokio::test]
async fn an_early_release_reads_only_in_the_official_interface() {
    let peer = Peer::of_release(Release::V9_5).await;
    assert_eq!(peer.get("/integration/v1/info").await["applicationVersion"], "9.5.21");
    assert!(!peer.rows("~i/networks").await.is_empty());
    assert_eq!(peer.ask("POST", "~i/networks", json!({})).await.0, 405);
    assert_eq!(peer.ask("GET", "~i/wifi/broadcasts", Value::Null).await.0, 404);
    assert_eq!(peer.ask("GET", "~i/firewall/zones", Value::Null).await.0, 404);
}

#[tokio::test]
async fn events_and_alarms_moved_into_the_log() {
    let old = Peer::of_release(Release::V9_5).await;
    assert!(
        !old.ok("POST", "~/stat/event", json!({ "_limit": 10 })).await["data"].as_array().unwrap().is_empty()
    );
    assert_eq!(old.ok("POST", "~/list/alarm", json!({})).await["data"].as_array().unwrap().len(), 1);
    old.command("evtmgr", json!({ "cmd": "archive-all-alarms" })).await;
    assert_eq!(old.get("~/cnt/alarm").await["data"][0]["count"], 0);
    let new = Peer::new().await;
    assert_eq!(new.refused("POST", "~/stat/event", json!({})).await, "api.err.NotFound");
    assert_eq!(new.refused("POST", "~/list/alarm", json!({})).await, "api.err.NotFound");
}

#[tokio::test]
async fn tables_and_settings_come_and_go() {
    let old = Peer::of_release(Release::V10_1).await;
    let new = Peer::new().await;
    for (path, is_old, is_new) in [
        ("~/rest/tag", true, false),
        ("~/rest/heatmap", true, false),
        ("~/get/setting/evaluation_score", true, false),
        ("~/get/setting/roaming_assistant", true, false),
        ("~/get/setting/ips_suppression", false, true),
        ("~/get/setting/usg_geo", false, true),
        ("~2/power-supervisors", false, true),
        ("~i/switching/lags", false, true),
    ] {
        for (peer, has) in [(&old, is_old), (&new, is_new)] {
            assert_eq!(peer.ask("GET", path, Value::Null).await.0 == 200, has, "{path}");
        }
    }
}

#[tokio::test]
async fn channels_were_texts_before() {
    let old = Peer::of_release(Release::V9_5).await;
    assert_eq!(old.device(OFFICE_AP).await["radio_table"][0]["channel"], "6");
    assert_eq!(Peer::new().await.device(OFFICE_AP).await["radio_table"][0]["channel"], 6);
}

#[tokio::test]
async fn content_filters_are_made_on_another_path_since() {
    let body = json!({ "name": "f", "categories": ["ADVERTISEMENT"], "network_ids": [] });
    let new = Peer::new().await;
    assert_eq!(new.ask("POST", "~2/content-filtering", body.clone()).await.0, 405);
    let made = new.ok("POST", "~2/content-filtering/create", body.clone()).await;
    let path = format!("~2/content-filtering/{}", made["_id"].as_str().unwrap());
    let mut empty = body.clone();
    empty["categories"] = json!([]);
    assert_eq!(new.refused("PUT", &path, empty).await, "api.err.InvalidPayload");
    let old = Peer::of_release(Release::V10_1).await;
    old.ok("POST", "~2/content-filtering", body).await;
}

#[tokio::test]
async fn a_told_version_is_another_one() {
    let peer = Peer::of(Settings { told_version: Some("11.0.1".to_owned()), ..Settings::default() }).await;
    assert_eq!(peer.get("~/stat/sysinfo").await["data"][0]["version"], "11.0.1");
}
