//! What is taken as a plugin, and what is refused.

use serde_json::{Value, json};

use super::{Lab, agree, archive_of, entry, guest, is_offered, manifest, pairs, plugin, send, told};
use crate::support::on_both;

on_both! {
    async fn a_plugin_waits_for_consent_and_then_serves(database: Database) {
        let mut lab = Lab::start(database).await;
        let sent = send(&lab.api, &lab.archive(|_| ())).await.expect_status(201);
        assert_eq!(sent.header("location"), "/api/v1/plugins/scripted");
        let body = &sent.body;
        assert_eq!((&body["id"], &body["version"], &body["state"]), (&json!("scripted"), &json!("1.0.0"), &json!("awaiting_consent")));
        assert!(body["reason"].as_str().unwrap().contains("agreed"), "{body}");
        assert!(!is_offered(&lab.api).await);
        let waiting = plugin(&lab.api).await;
        assert_eq!((&waiting["state"], &waiting["enabled"], &waiting["behind"]), (&json!("awaiting_consent"), &json!(false), &Value::Null));
        // Nothing can be set before a person has given consent.
        let early = lab.api.put("/plugins/scripted/organization", &json!({ "enabled": true })).await.expect_status(409);
        assert_eq!(early.error_type(), "plugin_state", "{}", early.text);

        assert_eq!(agree(&lab.api).await["state"], "active");
        let steps = ["received", "verified", "compiled", "linked", "checked", "awaiting_consent", "active"];
        assert_eq!(told(&lab.api).await, pairs(&steps.map(|state| ("1.0.0", state))));
        let activated = entry(&lab.api, "plugin.activated").await;
        assert_eq!((&activated["detail"]["before"]["state"], &activated["detail"]["after"]["state"]), (&json!("awaiting_consent"), &json!("active")));
        assert_eq!((&activated["actor_name"], &activated["target_type"]), (&json!("ada"), &json!("plugin")));
        let chain = lab.api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!(chain["valid"], true, "{chain}");

        let shown = plugin(&lab.api).await;
        assert_eq!((&shown["name"], &shown["publisher"], &shown["version"]), (&json!("Scripted"), &json!("acme"), &json!("1.0.0")));
        assert_eq!(shown["actions"][2], json!({
            "operation_id": "plugin.scripted.act", "title": "act", "description": "", "effect": "outward", "permission": null,
        }));
        assert_eq!(shown["secrets"], json!([{ "name": "key", "target": "api", "places": ["header:x-key"] }]));
        let all = lab.api.get("/plugins/").await.expect_status(200).body;
        assert_eq!(all["items"], json!([shown]));
        // Sent again, nothing happens.
        assert_eq!(send(&lab.api, &lab.archive(|_| ())).await.expect_status(200).body["state"], "active");

        lab.switch_on(&lab.api).await;
        assert!(is_offered(&lab.api).await);
        lab.restart().await;
        assert!(is_offered(&lab.api).await, "it serves after a restart");
        assert_eq!(plugin(&lab.api).await["behind"], Value::Null);
    }
}

on_both! {
    async fn a_package_comes_as_the_field_of_a_form(database: Database) {
        let lab = Lab::start(database).await;
        let archive = lab.archive(|_| ());
        let head = "--xyz\r\nContent-Disposition: form-data; name=\"package\"; filename=\"p.zip\"\r\n\r\n";
        let form = [head.as_bytes(), &archive, b"\r\n--xyz--\r\n"].concat();
        let api = lab.api.with("content-type", "multipart/form-data; boundary=xyz");
        let sent = api.send("POST", "/plugins/install", Some(form)).await.expect_status(201).body;
        assert_eq!(sent["state"], "awaiting_consent");
        let twice = [head.as_bytes(), b"PK\r\n", head.as_bytes(), b"PK\r\n--xyz--\r\n"].concat();
        let other = head.replace("\"package\"", "\"file\"").into_bytes();
        for form in [twice, [&other[..], b"PK\r\n--xyz--\r\n"].concat(), head.as_bytes().to_vec()] {
            let refused = api.send("POST", "/plugins/install", Some(form)).await.expect_status(422);
            assert!(refused.text.contains("one file in the field 'package'"), "{}", refused.text);
        }
        let empty = api.send("POST", "/plugins/install", Some(b"--xyz--\r\n".to_vec())).await.expect_status(422);
        assert_eq!(empty.body["error"]["details"][0]["field"], "/package", "{}", empty.text);
        let json = lab.api.send("POST", "/plugins/install", Some(b"{}".to_vec())).await.expect_status(422);
        assert!(json.text.contains("application/zip"), "{}", json.text);
    }
}

on_both! {
    async fn what_no_trusted_publisher_signed_leaves_an_audit_entry_and_nothing_else(database: Database) {
        let lab = Lab::start(database).await;
        let url = lab.device.url();
        let foreign = archive_of(&manifest(&url), guest(), &lab.keys.globex);
        let mut adapter = manifest(&url);
        adapter["kind"] = json!("adapter");
        let mut broken = lab.archive(|_| ());
        let at = broken.len() / 2;
        broken[at] ^= 1;
        for (archive, word) in [(foreign, "trusted"), (broken, ""), (b"PK".to_vec(), "")] {
            let refused = send(&lab.api, &archive).await.expect_status(400);
            assert_eq!(refused.error_type(), "package_refused", "{}", refused.text);
            assert!(refused.message().contains(word), "{}", refused.text);
            let noted = entry(&lab.api, "plugin.refused").await;
            assert_eq!(noted["detail"]["reason"], refused.message(), "{noted}");
        }
        assert_eq!(lab.api.get("/plugins").await.expect_status(200).body["items"], json!([]));
        lab.api.get("/plugins/scripted").await.expect_status(404);
        assert_eq!(told(&lab.api).await, []);
    }
}

on_both! {
    async fn an_adapter_and_a_plugin_are_told_apart(database: Database) {
        let lab = Lab::start(database).await;
        let zip = lab.api.with("content-type", "application/zip");
        let plugin = zip.send("POST", "/adapters/packages", Some(lab.archive(|_| ()))).await.expect_status(400);
        assert!(plugin.message().contains("/plugins/install"), "{}", plugin.text);
        let taken = lab.archive(|manifest| {
            let text = manifest.to_string().replace("plugin.scripted.", "plugin.openwrt.");
            *manifest = serde_json::from_str(&text).unwrap();
            manifest["id"] = json!("openwrt");
        });
        let taken = send(&lab.api, &taken).await.expect_status(409);
        assert!(taken.message().contains("'openwrt' belongs to publisher 'heddle'"), "{}", taken.text);
    }
}

on_both! {
    async fn a_component_that_cannot_serve_is_rejected_with_the_step_that_it_failed_at(database: Database) {
        let lab = Lab::start(database).await;
        let archive = archive_of(&manifest(&lab.device.url()), b"\0asm\x0d\0\x01\0".to_vec(), &lab.keys.acme);
        let sent = send(&lab.api, &archive).await.expect_status(201).body;
        assert_eq!((&sent["state"], &sent["failed_at"]), (&json!("rejected"), &json!("linked")), "{sent}");
        let shown = plugin(&lab.api).await;
        assert_eq!((&shown["state"], &shown["reason"]), (&json!("rejected"), &sent["reason"]));
        let steps = ["received", "verified", "rejected"];
        assert_eq!(told(&lab.api).await, pairs(&steps.map(|state| ("1.0.0", state))));
        let refused = lab.api.get("/plugins/scripted/consent").await.expect_status(409);
        assert_eq!(refused.error_type(), "nothing_to_consent");
        // A better one takes its place.
        assert_eq!(send(&lab.api, &lab.version("1.0.1")).await.expect_status(201).body["state"], "awaiting_consent");
    }
}

on_both! {
    async fn only_a_super_admin_changes_what_is_installed(database: Database) {
        use heddle_core::Role;
        let lab = Lab::in_use(database).await;
        let admin = lab.member(Role::OrgAdmin, "olga").await;
        let archive = lab.version("1.1.0");
        assert_eq!(send(&admin, &archive).await.status, 403);
        admin.get("/plugins/scripted/consent").await.expect_status(403);
        for verb in ["consent", "enable", "disable", "rollback", "release"] {
            let body = json!({ "grant_hash": "x" });
            let refused = admin.post(&format!("/plugins/scripted/{verb}"), &body).await.expect_status(403);
            assert!(refused.message().contains("super_admin"), "{}", refused.text);
        }
        admin.delete("/plugins/scripted").await.expect_status(403);
        assert_eq!(plugin(&admin).await["state"], "active");
        let viewer = lab.member(Role::Viewer, "vera").await;
        assert_eq!(plugin(&viewer).await["enabled"], true);
        viewer.get("/plugins/scripted/organization").await.expect_status(403);
        viewer.put("/plugins/scripted/secrets/key", &json!({ "value": "x" })).await.expect_status(403);
    }
}

on_both! {
    async fn the_same_request_sent_again_creates_nothing_more(database: Database) {
        let lab = Lab::start(database).await;
        let (keyed, archive) = (lab.api.with("idempotency-key", "one"), lab.archive(|_| ()));
        let first = send(&keyed, &archive).await.expect_status(201);
        let again = send(&keyed, &archive).await.expect_status(201);
        assert_eq!((again.header("idempotency-replayed"), &again.body), ("true", &first.body));
        assert_eq!(told(&lab.api).await.len(), 6);
    }
}
