//! Trying a credential before anything depends on it.

use heddle_core::{Role, SiteLevel};
use heddle_lab_openwrt::Router;
use serde_json::{Value, json};

use super::{audited, id_of, member};
use crate::staging::{Lab, ROUTER_PASSWORD};
use crate::support::{Api, Server, on_both};

async fn credential(api: &Api, name: &str, more: &Value) -> Value {
    let mut body = json!({ "name": name, "username": "root", "password": ROUTER_PASSWORD });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    api.post("/credentials", &body).await.expect_status(201).body
}

fn test_path(credential: &Value) -> String {
    format!("/credentials/{}/test", id_of(credential))
}

on_both! {
    async fn a_credential_is_tried_without_storing_a_controller(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        let good = credential(api, "good", &json!({})).await;
        let wrong = credential(api, "wrong", &json!({ "password": "not the password 7" })).await;
        let address = json!({ "vendor": "openwrt", "url": lab.router.url() });
        let answer = api.post(&test_path(&good), &address).await.expect_status(200).body;
        assert_eq!(answer["ok"], true, "{answer}");
        assert!(answer["latency_ms"].as_f64().unwrap() > 0.0 && answer["profile"]["version"].is_string(), "{answer}");
        let refused = api.post(&test_path(&wrong), &address).await.expect_status(200).body;
        assert_eq!(refused["error"]["type"], "adapter_authentication_error", "{refused}");

        let there = json!({ "controller_id": lab.controller });
        assert_eq!(api.post(&test_path(&good), &there).await.expect_status(200).body["ok"], true);
        let refused = api.post(&test_path(&wrong), &there).await.expect_status(200).body;
        assert_eq!(refused["error"]["type"], "adapter_authentication_error", "the controller's own is not taken: {refused}");
        let own = api.post(&format!("/controllers/{}/test", lab.controller), &json!({})).await.expect_status(200).body;
        assert_eq!(own["ok"], true, "{own}");

        let closed = json!({ "vendor": "openwrt", "url": "http://127.0.0.1:9" });
        let answer = api.post(&test_path(&good), &closed).await.expect_status(200).body;
        assert_eq!(answer["error"]["type"], "adapter_connection_error", "{answer}");
        let metadata = json!({ "vendor": "openwrt", "url": "http://169.254.169.254" });
        assert_eq!(api.post(&test_path(&good), &metadata).await.expect_status(200).body["ok"], false);

        assert_eq!(api.get("/controllers").await.body["total"], 1, "no controller was stored");
        assert!(lab.router.write_calls().iter().all(|call| call.object == "session"), "nothing was written");
        let entries = audited(api, "credential.tested").await;
        assert_eq!(entries.len(), 6);
        let text = json!(entries).to_string();
        assert!(!text.contains(ROUTER_PASSWORD) && !text.contains("not the password 7"), "{text}");
        assert_eq!(entries.last().unwrap()["detail"]["ok"], true);
        assert_eq!(entries[0]["detail"]["url"], "http://169.254.169.254/");
    }
}

on_both! {
    async fn a_wrong_password_is_not_tried_over_and_over(database: Database) {
        let lab = Lab::start(database).await;
        let wrong = credential(&lab.api, "wrong", &json!({ "password": "not the password 7" })).await;
        let address = json!({ "vendor": "openwrt", "url": lab.router.url() });
        lab.router.forget_calls();
        for _ in 0..6 {
            let refused = lab.api.post(&test_path(&wrong), &address).await.expect_status(200).body;
            assert_eq!(refused["error"]["type"], "adapter_authentication_error", "{refused}");
        }
        let calls = lab.router.calls();
        let tried = calls.iter().filter(|call| call.name() == "session.login" && call.status != 0).count();
        assert_eq!(tried, 3, "the account at the device is not locked: {calls:?}");
    }
}

on_both! {
    async fn a_credential_knows_where_it_is_good_and_its_certificate_can_be_pinned(database: Database) {
        let router = Router::builder().password(ROUTER_PASSWORD).tls().start().await;
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let url: url::Url = router.url().parse().unwrap();
        let place = json!({ "host": "127.0.0.1", "port": url.port().unwrap() });
        let stored = credential(&api, "router", &place).await;
        assert_eq!((&stored["host"], &stored["port"], &stored["tls"]), (&place["host"], &place["port"], &json!(null)));
        let vendor = json!({ "vendor": "openwrt" });
        let untrusted = api.post(&test_path(&stored), &vendor).await.expect_status(200).body;
        assert_eq!(untrusted["ok"], false, "{untrusted}");
        assert_eq!(untrusted["certificate_fingerprint"], router.certificate_sha256().unwrap());
        assert_eq!(untrusted["pin"]["mode"], "pin");

        let with_pin = json!({ "vendor": "openwrt", "tls": untrusted["pin"] });
        assert_eq!(api.post(&test_path(&stored), &with_pin).await.expect_status(200).body["ok"], true);
        let path = format!("/credentials/{}", id_of(&stored));
        let pinned = api.patch(&path, &json!({ "tls": untrusted["pin"] })).await.expect_status(200).body;
        assert_eq!((&pinned["tls"], &pinned["version"]), (&untrusted["pin"], &stored["version"]));
        let trusted = api.post(&test_path(&stored), &vendor).await.expect_status(200).body;
        assert_eq!((&trusted["ok"], trusted.get("pin")), (&json!(true), None), "{trusted}");
        let strict = json!({ "vendor": "openwrt", "tls": { "mode": "verify" } });
        assert_eq!(api.post(&test_path(&stored), &strict).await.expect_status(200).body["ok"], false);

        let cleared = api.patch(&path, &json!({ "host": null, "port": null, "tls": null })).await.expect_status(200).body;
        assert_eq!((&cleared["host"], &cleared["port"], &cleared["tls"]), (&json!(null), &json!(null), &json!(null)));
        let nowhere = api.post(&test_path(&stored), &vendor).await.expect_status(422);
        assert_eq!(nowhere.body["error"]["details"][0]["field"], "/url", "{}", nowhere.text);
    }
}

on_both! {
    async fn a_test_that_cannot_be_made_says_what_is_wrong(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        let stored = credential(api, "router", &json!({})).await;
        let path = test_path(&stored);
        for (body, field) in [
            (json!({}), "vendor"),
            (json!({ "vendor": "openwrt" }), "url"),
            (json!({ "vendor": "openwrt", "url": "ftp://192.0.2.1" }), "url"),
            (json!({ "vendor": "openwrt", "url": "http://192.0.2.1", "tls": { "mode": "pin" } }), "tls.fingerprint"),
            (json!({ "vendor": "openwrt", "url": "http://192.0.2.1", "settings": { "prefx": 1 } }), "settings.prefx"),
            (json!({ "controller_id": lab.controller, "url": "http://192.0.2.1" }), "url"),
            (json!({ "controller_id": "01900000-0000-7000-8000-000000000000" }), "controller_id"),
            (json!({ "vendor": "openwrt", "uri": "http://192.0.2.1" }), "uri"),
        ] {
            let refused = api.post(&path, &body).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], crate::support::at(field), "{}", refused.text);
        }
        let unknown = api.post(&path, &json!({ "vendor": "acme", "url": "http://192.0.2.1" })).await.expect_status(400);
        assert!(unknown.message().contains("openwrt"), "{}", unknown.text);
        for (body, field) in [
            (json!({ "host": "https://router.example" }), "host"),
            (json!({ "port": 8443 }), "port"),
            (json!({ "host": "router.example", "port": 0 }), "port"),
            (json!({ "tls": { "mode": "pin" } }), "tls.fingerprint"),
        ] {
            let refused = api.patch(&format!("/credentials/{}", id_of(&stored)), &body).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], crate::support::at(field), "{}", refused.text);
        }
    }
}

on_both! {
    async fn who_chooses_an_address_receives_only_the_secrets_of_their_sites(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        let branch = api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body;
        let own = credential(api, "own", &json!({})).await;
        let unused = credential(api, "unused", &json!({})).await;
        let body = json!({
            "name": "branch", "site_id": branch["id"], "vendor": "openwrt", "url": lab.router.url(),
            "credential_id": own["id"],
        });
        let at_branch = api.post("/controllers", &body).await.expect_status(201).body;
        let head = api.get(&format!("/controllers/{}", lab.controller)).await.body;
        let of_head = json!({ "id": head["credential_id"] });
        let address = json!({ "vendor": "openwrt", "url": lab.router.url() });

        let keeper = member(&lab.server, "bea", Role::OrgAdmin, &[(id_of(&branch), SiteLevel::Admin)]).await;
        assert_eq!(keeper.post(&test_path(&own), &address).await.expect_status(200).body["ok"], true);
        let there = json!({ "controller_id": at_branch["id"] });
        assert_eq!(keeper.post(&test_path(&own), &there).await.expect_status(200).body["ok"], true);
        for foreign in [&unused, &of_head] {
            for body in [&address, &there] {
                let refused = keeper.post(&test_path(foreign), body).await.expect_status(403);
                assert_eq!(refused.error_type(), "all_sites_required", "{}", refused.text);
            }
        }
        let elsewhere = json!({ "controller_id": lab.controller });
        keeper.post(&test_path(&own), &elsewhere).await.expect_status(422);

        // A user who may not register a controller at the site chooses no address for its secret.
        let writer = member(&lab.server, "cleo", Role::OrgAdmin, &[(id_of(&branch), SiteLevel::Write)]).await;
        let refused = writer.post(&test_path(&own), &address).await.expect_status(403);
        assert_eq!(refused.error_type(), "all_sites_required", "{}", refused.text);
        let operator = member(&lab.server, "dora", Role::SiteAdmin, &[]).await;
        operator.post(&test_path(&own), &address).await.expect_status(403);
    }
}
