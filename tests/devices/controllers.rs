//! Many controllers with one request.

use std::time::{Duration, Instant};

use heddle_core::{Role, SiteLevel};
use serde_json::{Value, json};

use super::{audited, id_of, member};
use crate::staging::{Lab, ROUTER_PASSWORD};
use crate::support::{Api, Socket, on_both, register};

const ABSENT: &str = "01900000-0000-7000-8000-000000000000";

/// A port that takes connections and never says anything.
async fn silent() -> (String, tokio::net::TcpListener) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    (format!("http://{}", listener.local_addr().unwrap()), listener)
}

async fn registered(api: &Api, url: &str) -> Value {
    register(api, url, ROUTER_PASSWORD).await["id"].clone()
}

/// The sync, once it has ended.
pub(crate) async fn ended(api: &Api, sync: &Value) -> Value {
    let path = format!(
        "/controllers/{}/syncs/{}",
        sync["controller_id"].as_str().unwrap(),
        sync["id"].as_str().unwrap()
    );
    let started = Instant::now();
    loop {
        let now = api.get(&path).await.expect_status(200).body;
        assert!((0..=100).contains(&now["progress"].as_i64().unwrap()), "{now}");
        if !now["ended_at"].is_null() {
            return now;
        }
        assert!(["queued", "running"].contains(&now["state"].as_str().unwrap()), "{now}");
        assert!(started.elapsed() < Duration::from_mins(2), "the sync ends: {now}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

on_both! {
    async fn a_sync_can_be_followed_to_its_end(database: Database) {
        let lab = Lab::start(database).await;
        let path = format!("/controllers/{}/sync", lab.controller);
        let asked = lab.api.post(&path, &json!({})).await.expect_status(202).body;
        assert_eq!(asked["controller_id"], json!(lab.controller));
        assert!(asked["requested_by"].is_string(), "{asked}");
        let done = ended(&lab.api, &asked).await;
        assert_eq!((&done["state"], &done["progress"], &done["error"]), (&json!("succeeded"), &json!(100), &json!(null)));
        let devices = lab.api.get(&format!("/devices?controller_id={}", lab.controller)).await.expect_status(200);
        assert_eq!(done["devices_seen"], devices.body["total"], "{done}");

        let closed = registered(&lab.api, "http://127.0.0.1:9").await;
        let path = format!("/controllers/{}/sync", closed.as_str().unwrap());
        let asked = lab.api.post(&path, &json!({})).await.expect_status(202).body;
        let failed = ended(&lab.api, &asked).await;
        assert_eq!(failed["state"], "failed", "{failed}");
        assert!(failed["error"].as_str().unwrap().contains("no connection"), "{failed}");
        let elsewhere = format!("/controllers/{}/syncs/{}", lab.controller, failed["id"].as_str().unwrap());
        lab.api.get(&elsewhere).await.expect_status(404);
    }
}

on_both! {
    async fn a_controller_that_does_not_answer_holds_no_other_up(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        let (url, _listener) = silent().await;
        // More of them than are asked at a time.
        let mut mute = Vec::new();
        for _ in 0..9 {
            mute.push(registered(api, &url).await);
        }
        let closed = registered(api, "http://127.0.0.1:9").await;
        let mut ids = mute.clone();
        ids.extend([closed.clone(), json!(ABSENT), json!(lab.controller)]);
        let started = Instant::now();
        let answer = api.post("/controllers/test", &json!({ "controller_ids": ids })).await.expect_status(200).body;
        assert!(started.elapsed() < Duration::from_secs(65), "{:?}", started.elapsed());
        let results = answer["results"].as_array().unwrap();
        assert_eq!(results.iter().map(|item| item["id"].clone()).collect::<Vec<_>>(), ids, "in the order asked");
        assert_eq!((&answer["succeeded"], &answer["failed"]), (&json!(1), &json!(11)), "{answer}");
        for item in &results[..9] {
            assert_eq!((&item["status"], &item["test"]["ok"]), (&json!("tested"), &json!(false)), "{item}");
            assert_eq!(item["test"]["error"]["type"], "adapter_timeout", "{item}");
        }
        assert_eq!(results[9]["test"]["error"]["type"], "adapter_connection_error", "{answer}");
        assert_eq!(results[10], json!({ "id": ABSENT, "status": "not_found" }));
        let own = &results[11]["test"];
        assert_eq!(own["ok"], true, "{answer}");
        assert!(own["latency_ms"].as_f64().unwrap() < 5_000.0, "{answer}");
        assert!(own["profile"]["product"].is_string(), "{answer}");

        let entry = audited(api, "controller.bulk_tested").await.remove(0);
        assert_eq!(entry["detail"]["ok"], json!([lab.controller]));
        assert_eq!(entry["detail"]["failed"].as_array().unwrap().len(), 10);
    }
}

on_both! {
    async fn many_are_read_with_one_request(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        let second = registered(api, &lab.router.url()).await;
        let mut socket = Socket::subscribe(api, &["controller.*"]).await;
        let ids = json!([second, ABSENT, lab.controller]);
        let answer = api.post("/controllers/sync", &json!({ "controller_ids": ids })).await.expect_status(202).body;
        let statuses: Vec<&Value> = answer["results"].as_array().unwrap().iter().map(|item| &item["status"]).collect();
        assert_eq!(statuses, ["scheduled", "not_found", "scheduled"], "{answer}");
        assert_eq!((&answer["succeeded"], &answer["failed"]), (&json!(2), &json!(1)));
        let mut waiting = vec![second, json!(lab.controller)];
        while !waiting.is_empty() {
            let finished = socket.event("controller.sync.finished").await;
            waiting.retain(|id| *id != finished["payload"]["controller_id"]);
        }
        let many: Vec<String> = (0..201).map(|n| format!("01900000-0000-7000-8000-{n:012}")).collect();
        for (verb, most) in [("test", 50), ("sync", 200)] {
            let path = format!("/controllers/{verb}");
            for ids in [json!([]), json!(many[..=most]), json!([ABSENT, ABSENT])] {
                let refused = api.post(&path, &json!({ "controller_ids": ids })).await.expect_status(422);
                assert_eq!(refused.body["error"]["details"][0]["field"], "/controller_ids", "{}", refused.text);
            }
            let answer = api.post(&path, &json!({ "controller_ids": many[..most] })).await;
            assert_eq!(answer.body["failed"], most, "{}", answer.text);
        }
    }
}

on_both! {
    async fn a_controller_says_its_site_and_is_found_by_its_credential(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        let path = format!("/controllers/{}", lab.controller);
        let controller = api.get(&path).await.expect_status(200).body;
        let page = api.get(&format!("{path}/sites")).await.expect_status(200).body;
        assert_eq!((&page["total"], &page["items"][0]["id"]), (&json!(1), &controller["site_id"]), "{page}");
        let next = api.get(&format!("{path}/sites?page=2")).await.expect_status(200).body;
        assert_eq!((&next["total"], &next["items"]), (&json!(1), &json!([])));
        api.get(&format!("/controllers/{ABSENT}/sites")).await.expect_status(404);

        registered(api, &lab.router.url()).await;
        let credential = controller["credential_id"].as_str().unwrap();
        let found = api.get(&format!("/controllers?credential_id={credential}")).await.expect_status(200).body;
        assert_eq!((&found["total"], &found["items"][0]["id"]), (&json!(1), &json!(lab.controller)), "{found}");

        let branch = api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body;
        let elsewhere = member(&lab.server, "bea", Role::OrgAdmin, &[(id_of(&branch), SiteLevel::Full)]).await;
        elsewhere.get(&format!("{path}/sites")).await.expect_status(404);
        let body = json!({ "controller_ids": [lab.controller] });
        for verb in ["test", "sync"] {
            let answer = elsewhere.post(&format!("/controllers/{verb}"), &body).await;
            assert_eq!(answer.body["results"][0]["status"], "not_found", "{}", answer.text);
        }
    }
}
