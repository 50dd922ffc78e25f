//! Sites, settings, backups, logs, the console itself.

use super::*;

#[tokio::test]
async fn sites_are_made_renamed_and_removed() {
    let peer = Peer::new().await;
    let made = peer.command("sitemgr", json!({ "cmd": "add-site", "desc": "Shop" })).await[0].clone();
    let name = made["name"].as_str().unwrap().to_owned();
    assert_eq!(name.len(), 8);
    assert_eq!(peer.rows("/integration/v1/sites").await.len(), 3);
    let renamed = peer
        .ok("POST", &format!("/api/s/{name}/cmd/sitemgr"), json!({ "cmd": "update-site", "desc": "Store" }))
        .await;
    assert_eq!(renamed["data"][0]["desc"], "Store");
    assert_eq!(
        peer.ok("GET", &format!("/api/s/{name}/rest/networkconf"), Value::Null).await["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let branch = peer.row("/api/self/sites", "desc", "Branch").await;
    let code =
        peer.refused("POST", "~/cmd/sitemgr", json!({ "cmd": "delete-site", "site": branch["_id"] })).await;
    assert_eq!(code, "api.err.SiteHasDevices");
    peer.command("sitemgr", json!({ "cmd": "delete-site", "site": made["_id"] })).await;
    assert_eq!(peer.rows("/api/self/sites").await.len(), 2);
}

#[tokio::test]
async fn settings_are_objects_with_a_key() {
    let peer = Peer::new().await;
    let all = peer.rows("~/get/setting").await;
    assert!(all.len() > 40, "{}", all.len());
    let changed = peer.ok("PUT", "~/set/setting/mgmt", json!({ "led_enabled": false })).await;
    assert_eq!(
        (changed["data"][0]["key"].as_str(), changed["data"][0]["x_ssh_username"].as_str()),
        (Some("mgmt"), Some("lab-ssh"))
    );
    assert_eq!(peer.get("~/get/setting/mgmt").await["data"][0]["led_enabled"], false);
    let id = changed["data"][0]["_id"].as_str().unwrap();
    peer.ok("PUT", &format!("~/rest/setting/mgmt/{id}"), json!({ "led_enabled": true })).await;
    assert_eq!(peer.get("~/get/setting/mgmt").await["data"][0]["led_enabled"], true);
}

#[tokio::test]
async fn settings_are_rewritten_and_refused_as_the_controller_does() {
    let peer = Peer::new().await;
    let body = json!({ "setting_preference": "auto", "ntp_server_1": "10.0.0.1" });
    let changed = peer.ok("PUT", "~/set/setting/ntp", body).await;
    assert_eq!(changed["data"][0]["ntp_server_1"], "0.ubnt.pool.ntp.org");
    let body = json!({
        "data_retention_setting_preference": "manual", "data_retention_time_in_hours_for_5minutes_scale": 1,
    });
    let changed = peer.ok("PUT", "~/set/setting/super_mgmt", body).await;
    assert_eq!(changed["data"][0]["data_retention_time_in_hours_for_5minutes_scale"], 24);
    let code = peer.refused("PUT", "~/set/setting/rsyslogd", json!({ "netconsole_port": 0 })).await;
    assert_eq!(code, "api.err.InvalidPayload");
    let body = json!({ "ad_blocking_enabled": true, "ips_mode": "ips" });
    let changed = peer.ok("PUT", "~/set/setting/ips", body).await;
    assert!(changed["data"][0].get("ad_blocking_enabled").is_none());
    assert_eq!(changed["data"][0]["ips_mode"], "ips");
}

#[tokio::test]
async fn a_backup_is_made_fetched_and_brought_back() {
    let peer = Peer::new().await;
    let made = peer.command("backup", json!({ "cmd": "backup", "days": 0 })).await;
    let url = made[0]["url"].as_str().unwrap().to_owned();
    assert_eq!(url, "/dl/backup/10.4.57.unf");
    let file = peer.request("GET", &url).send().await.unwrap().bytes().await.unwrap();
    peer.add("usergroup", json!({ "name": "after" })).await;
    let part = reqwest::multipart::Part::bytes(file.to_vec()).file_name("backup.unf");
    let form = reqwest::multipart::Form::new().part("file", part);
    let answer = peer.request("POST", "/api/s/default/cmd/restore").multipart(form).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    peer.lab.advance(Duration::from_secs(21));
    peer.lab.advance(Duration::from_secs(5));
    assert!(peer.rows("~/rest/usergroup").await.iter().all(|row| row["name"] != "after"));
    let listed = peer.command("backup", json!({ "cmd": "list-backups" })).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let name = listed[0]["filename"].clone();
    peer.command("backup", json!({ "cmd": "delete-backup", "filename": name })).await;
    assert_eq!(peer.command("backup", json!({ "cmd": "list-backups" })).await, json!([]));
}

#[tokio::test]
async fn the_log_is_read_in_pages() {
    let peer = Peer::new().await;
    for place in 0..5 {
        peer.lab
            .edit(&json!({ "do": "log", "message": format!("note {place}"), "is_alert": place == 0 }))
            .unwrap();
    }
    let page = peer.ok("POST", "~2/system-log/all", json!({ "pageNumber": 0, "pageSize": 3 })).await;
    assert_eq!(page["data"][0]["message"], "note 4");
    assert_eq!(page["total_page_count"], 3);
    let critical = peer.ok("POST", "~2/system-log/critical", json!({ "searchText": "NOTE" })).await;
    assert_eq!(critical["total_element_count"], 1);
}

#[tokio::test]
async fn the_console_has_its_own_calls_for_sessions() {
    let mut peer = Peer::new().await;
    let with_key = peer.bare("GET", "/api/firmware/update").header("x-api-key", KEY).send().await.unwrap();
    assert_eq!(with_key.status(), 401);
    peer.sign_in("admin", "heddle-lab").await;
    let (cookie, csrf) = peer.session.clone().unwrap();
    let call = |method: &str, path: &str| {
        peer.bare(method, path).header("cookie", &cookie).header("x-csrf-token", &csrf).send()
    };
    let (status, body) = told(call("GET", "/api/firmware/update").await.unwrap()).await;
    assert_eq!((status, body["updateAvailable"].as_bool()), (200, Some(true)));
    assert_eq!(call("POST", "/api/system/reboot").await.unwrap().status(), 200);
    assert!(call("GET", "/api/system").await.is_err());
}

#[tokio::test]
async fn a_test_of_the_line_ends() {
    let peer = Peer::new().await;
    peer.command("devmgr", json!({ "cmd": "speedtest" })).await;
    assert_eq!(peer.command("devmgr", json!({ "cmd": "speedtest-status" })).await[0]["running"], true);
    peer.steps(5);
    let status = peer.command("devmgr", json!({ "cmd": "speedtest-status" })).await;
    assert_eq!((status[0]["running"].as_bool(), status[0]["latency"].as_i64()), (Some(false), Some(9)));
    assert_eq!(
        peer.ok("POST", "~/stat/report/archive.speedtest", json!({})).await["data"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn reports_have_a_point_for_each_part_of_the_time() {
    let peer = Peer::new().await;
    let end = 1_767_225_600_000_u64;
    let body = json!({ "attrs": ["bytes", "num_sta"], "start": end - 6 * 3_600_000, "end": end });
    let points = peer.ok("POST", "~/stat/report/hourly.site", body).await;
    assert_eq!(points["data"].as_array().unwrap().len(), 6);
    assert!(points["data"][0].get("mem").is_none());
}

#[tokio::test]
async fn what_needs_a_gateway_says_so_without_one() {
    let peer = Peer::of(Settings { has_gateway: false, ..Settings::default() }).await;
    let (status, answer) = peer.ask("GET", "~2/bgp/config", Value::Null).await;
    assert_eq!((status, answer["code"].as_str()), (404, Some("api.err.BgpUnsupportedDevice")));
    let features = peer.rows("~2/described-features").await;
    assert!(features.iter().any(|row| row["name"] == "NAT" && row["feature_exists"] == false));
    assert!(!peer.rows("~/stat/device").await.iter().any(|row| row["type"] == "udm"));
    let vlan = json!({ "name": "v", "purpose": "vlan-only", "vlan_enabled": true, "vlan": 77 });
    peer.add("networkconf", vlan).await;
}

#[tokio::test]
async fn passwords_are_changed_for_accounts_of_the_console() {
    let peer = Peer::new().await;
    let admins = peer.command("sitemgr", json!({ "cmd": "get-admins" })).await;
    let viewer = admins.as_array().unwrap().iter().find(|row| row["name"] == "viewer").unwrap().clone();
    let body = json!({ "cmd": "update-admin", "admin": viewer["_id"], "x_password": "another one" });
    peer.command("sitemgr", body).await;
    assert_eq!(peer.log_in("viewer", "heddle-view").await.status(), 403);
    assert_eq!(peer.log_in("viewer", "another one").await.status(), 200);
}
