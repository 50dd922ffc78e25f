//! What an organization sets a plugin to, and that it is the only one to see it.

use serde_json::{Value, json};

use super::{Lab, SECRET, act, agree, entry, fails, is_offered, send, works};
use crate::support::{Database, on_both};

const PATH: &str = "/plugins/scripted/organization";

on_both! {
    async fn settings_fit_the_schema_of_the_plugin(database: Database) {
        let lab = Lab::in_use(database).await;
        for (settings, field) in [
            (json!({}), "/settings/team"),
            (json!({ "team": "much too long a name" }), "/settings/team"),
            (json!({ "team": "a", "more": 1 }), "/settings/more"),
        ] {
            let body = json!({ "enabled": true, "settings": settings });
            let refused = lab.api.put(PATH, &body).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], field, "{}", refused.text);
        }
        let large = json!({ "enabled": true, "settings": { "team": "x".repeat(70_000) } });
        lab.api.put(PATH, &large).await.expect_status(422);
        let shown = lab.api.get(PATH).await.expect_status(200);
        assert_eq!((&shown.body["enabled"], &shown.body["settings"], &shown.body["revision"]), (&json!(true), &json!({ "team": "night" }), &json!(1)));
        assert_eq!((&shown.body["secrets_set"], &shown.body["secrets_missing"]), (&json!([]), &json!(["key"])));

        let body = json!({ "enabled": true, "settings": { "team": "day" } });
        let seen = shown.header("etag").to_owned();
        let set = lab.api.with("if-match", &seen).put(PATH, &body).await.expect_status(200).body;
        assert_eq!((&set["revision"], &set["settings"]), (&json!(2), &json!({ "team": "day" })));
        lab.api.with("if-match", &seen).put(PATH, &body).await.expect_status(412);
        let noted = entry(&lab.api, "plugin.organization_updated").await;
        assert_eq!(noted["detail"]["before"]["settings"], json!({ "team": "night" }), "{noted}");
        let given = works(&lab.api, "look", json!({ "do": "settings" })).await;
        assert_eq!(given["settings"], json!({ "team": "day" }));
    }
}

on_both! {
    async fn an_organization_that_has_not_switched_it_on_has_none_of_its_operations(database: Database) {
        let lab = Lab::in_use(database).await;
        let stranger = lab.stranger().await;
        assert!(is_offered(&lab.api).await && !is_offered(&stranger).await);
        stranger.get("/fabric/catalog/plugin.scripted.look").await.expect_status(404);
        let step = json!({ "operation_id": "plugin.scripted.look", "params": { "do": "settings" } });
        let refused = stranger.post("/actions", &step).await.expect_status(409);
        assert_eq!(refused.error_type(), "operation_not_offered", "{}", refused.text);
        let connection = json!({ "source_event": "device.offline", "steps": [step] });
        let refused = stranger.post("/fabric/connections", &connection).await.expect_status(409);
        assert_eq!(refused.error_type(), "operation_not_offered", "{}", refused.text);

        // What it sets is its own.
        let own = stranger.get(PATH).await.expect_status(200).body;
        assert_eq!((&own["enabled"], &own["settings"]), (&json!(false), &json!({})));
        let body = json!({ "enabled": true, "settings": { "team": "other" } });
        stranger.put(PATH, &body).await.expect_status(200);
        let given = works(&stranger, "look", json!({ "do": "settings" })).await;
        assert_eq!(given["settings"], json!({ "team": "other" }));
        assert_eq!(works(&lab.api, "look", json!({ "do": "settings" })).await["settings"], json!({ "team": "night" }));
        // Its events and audit entries are, too.
        let switched = lab.api.get("/events?event_type=plugin.switched").await.expect_status(200).body;
        let of_stranger = stranger.get("/events?event_type=plugin.*").await.expect_status(200).body;
        assert_eq!(of_stranger["total"], 1, "{of_stranger}");
        assert!(switched["items"].to_string().contains(of_stranger["items"][0]["id"].as_str().unwrap()), "a super_admin sees all");
        lab.api.put(PATH, &json!({ "enabled": false, "settings": { "team": "a" } })).await.expect_status(200);
        assert!(!is_offered(&lab.api).await && is_offered(&stranger).await);
    }
}

on_both! {
    async fn a_secret_is_sealed_never_shown_and_sent_in_its_place_only(database: Database) {
        let lab = Lab::in_use(database).await;
        let path = "/plugins/scripted/secrets/key";
        let unset = fails(&lab.api, "act", json!({
            "do": "http", "target": "api", "path": "/v1/x", "secrets": { "header:X-Key": "key" },
        })).await;
        assert!(!unset.1.is_empty(), "{unset:?}");
        lab.api.put(path, &json!({ "value": SECRET })).await.expect_status(204);
        let unknown = lab.api.put("/plugins/scripted/secrets/other", &json!({ "value": "x" })).await.expect_status(404);
        assert!(unknown.message().contains("it has key"), "{}", unknown.text);
        lab.api.put(path, &json!({ "value": "" })).await.expect_status(422);

        let step = json!({
            "do": "http", "target": "api", "path": "/v1/tickets", "method": "POST", "body": { "a": 1 },
            "secrets": { "header:X-Key": "key" },
        });
        let run = act(&lab.api, "act", step).await;
        assert_eq!(run["success"], true, "{run}");
        let seen = lab.device.seen();
        let sent = seen.last().unwrap();
        assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/tickets"));
        assert!(sent.headers.contains(&("x-key".to_owned(), SECRET.to_owned())), "{sent:?}");
        let elsewhere = format!("{}{}", sent.path, sent.body);
        assert!(!elsewhere.contains(SECRET));
        let wrong = json!({ "do": "http", "target": "api", "path": "/v1/x", "secrets": { "bearer": "key" } });
        fails(&lab.api, "act", wrong).await;
        assert!(lab.device.authorization().is_empty(), "only in the declared place");

        // Nowhere is it shown.
        let mut shown = vec![run.to_string()];
        for path in ["/plugins", "/plugins/scripted", PATH, "/audit?per_page=200", "/events?per_page=200", "/actions"] {
            shown.push(lab.api.get(path).await.expect_status(200).text);
        }
        assert!(shown.iter().all(|text| !text.contains(SECRET)));
        let now = lab.api.get(PATH).await.expect_status(200).body;
        assert_eq!((&now["secrets_set"], &now["secrets_missing"]), (&json!(["key"]), &json!([])));
        let noted = entry(&lab.api, "plugin.secret_set").await;
        assert_eq!((&noted["detail"]["name"], &noted["detail"]["before"]["value"]), (&json!("key"), &json!("absent")), "{noted}");

        // Another organization has none.
        let stranger = lab.stranger().await;
        lab.switch_on(&stranger).await;
        assert_eq!(stranger.get(PATH).await.expect_status(200).body["secrets_set"], json!([]));
        stranger.delete(path).await.expect_status(404);
        let before = lab.device.seen().len();
        fails(&stranger, "act", json!({
            "do": "http", "target": "api", "path": "/v1/x", "secrets": { "header:X-Key": "key" },
        })).await;
        assert_eq!(lab.device.seen().len(), before);
        lab.api.delete(path).await.expect_status(204);
        assert_eq!(lab.api.get(PATH).await.expect_status(200).body["secrets_set"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_of_the_server_has_a_secret_in_the_clear() {
    let lab = Lab::in_use(Database::sqlite()).await;
    lab.api.put("/plugins/scripted/secrets/key", &json!({ "value": SECRET })).await.expect_status(204);
    let mut looked = 0;
    for entry in std::fs::read_dir(lab.server.folder().join("data")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let has = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
            assert!(!has, "{}", path.display());
            looked += 1;
        }
    }
    assert!(looked > 1, "the database was looked at");
}

on_both! {
    async fn a_plugin_says_whether_it_can_work(database: Database) {
        let lab = Lab::in_use(database).await;
        let checked = lab.api.post("/plugins/scripted/check", &json!({})).await.expect_status(200).body;
        assert_eq!(checked["result"]["settings"], json!({ "team": "night" }), "{checked}");
        let stranger = lab.stranger().await;
        let refused = stranger.post("/plugins/scripted/check", &json!({})).await.expect_status(409);
        assert_eq!(refused.error_type(), "operation_not_offered", "{}", refused.text);
        assert_eq!(stranger.post("/plugins/none/check", &json!({})).await.status, 404);
    }
}

on_both! {
    async fn settings_from_before_an_update_are_not_given_to_it(database: Database) {
        let lab = Lab::in_use(database).await;
        let stricter = lab.archive(|manifest| {
            manifest["version"] = json!("1.1.0");
            manifest["config-schema"]["properties"]["shift"] = json!({ "type": "integer" });
            manifest["config-schema"]["required"] = json!(["team", "shift"]);
        });
        assert_eq!(send(&lab.api, &stricter).await.expect_status(201).body["state"], "active");
        let (code, message) = fails(&lab.api, "look", json!({ "do": "settings" })).await;
        assert_eq!(code, "INVALID_PARAMS");
        assert!(message.contains("/plugins/scripted/organization") && message.contains("shift"), "{message}");
        let body = json!({ "enabled": true, "settings": { "team": "a", "shift": 2 } });
        lab.api.put(PATH, &body).await.expect_status(200);
        let given: Value = works(&lab.api, "look", json!({ "do": "settings" })).await;
        assert_eq!(given["settings"]["shift"], 2);
    }
}

on_both! {
    async fn a_check_sees_the_own_organization_only(database: Database) {
        let lab = Lab::start(database).await;
        let calls = lab.archive(|manifest| {
            manifest["config-schema"] = json!({ "type": "object", "properties": { "call-in-check": { "type": "string" } } });
        });
        send(&lab.api, &calls).await.expect_status(201);
        agree(&lab.api).await;
        let stranger = lab.stranger().await;
        stranger.post("/sites", &json!({ "name": "Foreign" })).await.expect_status(201);
        let body = json!({ "enabled": true, "settings": { "call-in-check": "sites.list" } });
        lab.api.put(PATH, &body).await.expect_status(200);
        let all = lab.api.get("/sites").await.expect_status(200);
        assert!(all.text.contains("Foreign"), "a super_admin sees the sites of all organizations");
        let checked = lab.api.post("/plugins/scripted/check", &json!({})).await.expect_status(200).body;
        let called = &checked["result"]["called"];
        assert!(called["total"] == 1 && !called.to_string().contains("Foreign"), "{checked}");
    }
}
