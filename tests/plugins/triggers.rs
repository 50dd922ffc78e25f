//! Events call triggers: in order, at least once, with the rights of a user, and no plugin holds up another.

use serde_json::{Value, json};

use super::watcher::{
    Watch, asked, guest, ingest, install, log, manifest, names, switch, trigger_until, triggers, until,
};
use super::{Keys, archive_of};
use crate::fixtures::{created, member};
use crate::staging::{ROUTER_PASSWORD, start_router};
use crate::support::{Process, on_both, register};

on_both! {
    async fn events_come_in_their_order_each_once_and_only_those_that_are_wanted(database: Database) {
        let watch = Watch::start(database, json!({ "name": "first" })).await;
        let api = &watch.api;
        for n in 0..30 {
            ingest(api, &format!("e{n}"), "note").await;
        }
        let expected: Vec<String> = (0..30).map(|n| format!("e{n}")).collect();
        let found = until(api, |log| names(log, "seen").len() >= 30).await;
        assert_eq!(names(&found, "seen"), expected);
        trigger_until(api, "seen", |seen| seen["is_waiting"] == json!(false)).await;
        let stands = triggers(api).await;
        let seen = &stands["triggers"][0];
        assert_eq!(seen["problem"], Value::Null, "{stands}");
        assert!(seen["last_called_at"].is_string() && stands["triggers"][1]["last_called_at"].is_null(), "{stands}");
        // What called it is a run, with the rights of who switched it on.
        let runs = api.get("/fabric/runs?kind=trigger").await.expect_status(200).body;
        let run = &runs["items"][0];
        assert_eq!((&run["success"], &run["author_id"]), (&json!(true), &stands["author_id"]), "{run}");
        assert_eq!(run["steps"][0]["operation_id"], "plugin.watcher.seen");
        api.post(&format!("/fabric/runs/{}/rerun", run["id"].as_str().unwrap()), &json!({})).await.expect_status(409);
    }
}

on_both! {
    async fn a_failure_is_tried_again_and_what_cannot_work_is_left_out_alone(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        ingest(api, "flaky", "flaky").await;
        ingest(api, "after", "note").await;
        let found = until(api, |log| names(log, "seen").contains(&"after".to_owned())).await;
        assert_eq!(names(&found, "seen"), ["flaky", "after"], "the order holds over a failure");
        for (name, does) in [("a", "note"), ("bad", "refuse"), ("b", "note"), ("c", "note")] {
            ingest(api, name, does).await;
        }
        let found = until(api, |log| names(log, "seen").contains(&"c".to_owned())).await;
        let found = names(&found, "seen");
        assert!(!found.contains(&"bad".to_owned()) && found.ends_with(&["a".into(), "b".into(), "c".into()]), "{found:?}");
        let notices = api.get("/notifications").await.expect_status(200).body;
        assert!(notices.to_string().contains("left out 1 event"), "{notices}");
        let failed = api.get("/events?event_type=automation.run.failed").await.expect_status(200).body;
        assert!(failed["items"].to_string().contains("bad is refused"), "{failed}");
    }
}

on_both! {
    async fn a_trigger_that_keeps_failing_waits_and_says_why(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        ingest(api, "stuck", "fail").await;
        ingest(api, "behind", "note").await;
        let stands = trigger_until(api, "seen", |seen| seen["attempts"] == json!(2)).await;
        assert_eq!((&stands["is_waiting"], stands["problem"].as_str().unwrap().contains("stuck fails")), (&json!(true), true), "{stands}");
        // Its tools work meanwhile.
        assert!(names(&log(api).await, "seen").is_empty());
        // Whoever sets the plugin again has it tried at once.
        switch(api, true, json!({ "name": "again" })).await;
        let stands = trigger_until(api, "seen", |seen| seen["attempts"].as_i64().unwrap() < 2).await;
        assert_eq!(stands["is_waiting"], true, "{stands}");
    }
}

on_both! {
    async fn a_plugin_that_is_off_is_not_called_and_what_came_meanwhile_does_not_call_it(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        switch(api, false, json!({})).await;
        ingest(api, "off", "note").await;
        switch(api, true, json!({})).await;
        ingest(api, "on", "note").await;
        let found = until(api, |log| !names(log, "seen").is_empty()).await;
        assert_eq!(names(&found, "seen"), ["on"]);
        // Disabled for all, events wait and come when it is enabled again.
        ingest(api, "waits", "flaky").await;
        trigger_until(api, "seen", |seen| seen["attempts"] == json!(1)).await;
        api.post("/plugins/watcher/disable", &json!({})).await.expect_status(200);
        api.post("/plugins/watcher/enable", &json!({})).await.expect_status(200);
        let found = until(api, |log| names(log, "seen").len() == 2).await;
        assert_eq!(names(&found, "seen"), ["on", "waits"]);
    }
}

on_both! {
    async fn what_happens_while_a_plugin_is_disabled_does_not_call_it_and_what_waited_does(database: Database) {
        let mut watch = Watch::start(database, json!({})).await;
        let was_called = |seen: &Value| seen["attempts"].as_i64().unwrap() > 0 || seen["last_called_at"].is_string();
        for round in ["one", "two"] {
            // In the second round nothing waits.
            let does = if round == "one" { "flaky" } else { "note" };
            let before = format!("{round}-before");
            ingest(&watch.api, &before, does).await;
            if round == "one" {
                trigger_until(&watch.api, "seen", was_called).await;
            } else {
                until(&watch.api, |log| names(log, "seen").contains(&before)).await;
            }
            watch.api.post("/plugins/watcher/disable", &json!({})).await.expect_status(200);
            ingest(&watch.api, &format!("{round}-meanwhile"), "note").await;
            watch.api.post("/plugins/watcher/enable", &json!({})).await.expect_status(200);
            // A process that starts looks again at events that nothing wanted.
            watch.server.restart().await;
            watch.api = watch.server.log_in("ada").await;
            let after = format!("{round}-after");
            ingest(&watch.api, &after, "note").await;
            // What was put off while the plugin was disabled comes at once.
            switch(&watch.api, true, json!({})).await;
            until(&watch.api, |log| names(log, "seen").contains(&after)).await;
        }
        let mut found = names(&log(&watch.api).await, "seen");
        // A call that was under way when the process was stopped may come twice.
        found.dedup();
        assert_eq!(found, ["one-before", "one-after", "two-before", "two-after"]);
    }
}

on_both! {
    async fn what_a_trigger_leads_to_does_not_call_it_again(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        let router = start_router().await;
        let controller = register(api, &router.url(), ROUTER_PASSWORD).await;
        let before = router.fingerprint();
        let rule = |name: &str| json!({
            "controller_id": controller["id"],
            "payload": { "name": name, "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" },
        });
        switch(api, true, json!({ "stage": rule("By-plugin") })).await;
        let stage = json!({ "operation_id": "openwrt.firewall.rule.create", "params": rule("By-person") });
        assert_eq!(api.post("/actions", &stage).await.expect_status(201).body["success"], true);
        until(api, |log| !names(log, "restage").is_empty()).await;
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        let changes = api.get("/gateway-vpn/changes").await.expect_status(200).body;
        assert_eq!(changes["total"], 2, "one of the person, one of the plugin: {changes}");
        assert_eq!(names(&log(api).await, "restage").len(), 1);
        assert_eq!(router.fingerprint(), before, "a plugin only stages");
    }
}

on_both! {
    async fn what_a_repeated_call_asks_for_is_staged_whatever_was_asked_before(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        let router = start_router().await;
        let controller = register(api, &router.url(), ROUTER_PASSWORD).await;
        let rule = |name: &str| json!({
            "controller_id": controller["id"],
            "payload": { "name": name, "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" },
        });
        // The first call stages one and is stopped; the second knows that, and asks for the other one alone.
        switch(api, true, json!({ "stage": rule("Plugin-first"), "stage-next": rule("Plugin-second") })).await;
        let stage = json!({ "operation_id": "openwrt.firewall.rule.create", "params": rule("By-person") });
        assert_eq!(api.post("/actions", &stage).await.expect_status(201).body["success"], true);
        until(api, |log| !names(log, "restage").is_empty()).await;
        let changes = api.get("/gateway-vpn/changes").await.expect_status(200).body;
        assert_eq!(changes["total"], 3, "one of the person, two of the plugin: {changes}");
        for name in ["Plugin-first", "Plugin-second"] {
            assert!(changes.to_string().contains(name), "{name}: {changes}");
        }
    }
}

on_both! {
    async fn a_trigger_that_starts_a_connection_that_calls_it_is_no_loop(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        // The Connection follows from the trigger, and does not lead back.
        let steps = json!([{ "operation_id": "fabric.log", "params": { "message": "seen {{trigger.n}}" } }]);
        let connection = created(api, "/fabric/connections", &json!({ "source_event": "plugin.watcher.seen", "steps": steps })).await;
        ingest(api, "one", "emit").await;
        let runs = format!("/fabric/connections/{connection}/runs");
        let mut found = Value::Null;
        for _ in 0..300 {
            found = api.get(&runs).await.expect_status(200).body;
            if found["items"][0]["state"] == "success" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(found["total"], 1, "{found}");
    }
}

on_both! {
    async fn what_came_before_a_plugin_was_switched_on_does_not_call_it_after_a_kill(database: Database) {
        let keys = Keys::new();
        let (folder, options) = (tempfile::tempdir().unwrap(), keys.options());
        let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        install(&process.api, &archive_of(&manifest("http://127.0.0.1:9"), guest(), &keys.acme)).await;
        for n in 0..5 {
            ingest(&process.api, &format!("before{n}"), "note").await;
        }
        switch(&process.api, true, json!({})).await;
        process.kill();
        process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        ingest(&process.api, "after", "note").await;
        let found = until(&process.api, |log| !names(log, "seen").is_empty()).await;
        assert_eq!(names(&found, "seen"), ["after"]);
    }
}

on_both! {
    async fn a_key_with_scopes_gives_a_plugin_no_rights(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let body = json!({ "name": "narrow", "scopes": ["plugin:read", "plugin:manage"] });
        let key = watch.api.post("/api-keys", &body).await.expect_status(201).body;
        let narrow = watch.server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        let settings = json!({ "enabled": true, "settings": {} });
        let refused = narrow.put("/plugins/watcher/organization", &settings).await.expect_status(403);
        assert_eq!(refused.error_type(), "scope_ceiling", "{}", refused.text);
        let off = json!({ "enabled": false, "settings": {} });
        narrow.put("/plugins/watcher/organization", &off).await.expect_status(200);
    }
}

on_both! {
    async fn an_organization_is_told_of_its_own_events_and_with_rights_that_somebody_has(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        let other = api.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        let other = other["id"].as_str().unwrap();
        let (uma, stranger) = member(&watch.server, other, heddle_core::Role::OrgAdmin, "uma").await;
        switch(&stranger, true, json!({})).await;
        ingest(api, "ours", "note").await;
        ingest(&stranger, "theirs", "note").await;
        let found = until(&stranger, |log| !names(log, "seen").is_empty()).await;
        assert_eq!(names(&found, "seen"), ["theirs"]);
        // Its user loses the rights: what calls the plugin waits, and says whose rights it needs.
        let (_, second) = member(&watch.server, other, heddle_core::Role::OrgAdmin, "una").await;
        api.patch(&format!("/users/{uma}"), &json!({ "role": "viewer" })).await.expect_status(200);
        ingest(&second, "later", "note").await;
        let stands = trigger_until(&second, "seen", |seen| seen["problem"].is_string()).await;
        assert!(stands["problem"].as_str().unwrap().contains("'uma' is not 'org_admin' any more"), "{stands}");
        switch(&second, true, json!({})).await;
        let found = until(&second, |log| names(log, "seen").len() == 2).await;
        assert_eq!(names(&found, "seen"), ["theirs", "later"]);
    }
}

on_both! {
    async fn a_new_package_is_told_of_the_settings_and_follows_where_the_old_one_stood(database: Database) {
        let watch = Watch::start(database, json!({ "name": "kept" })).await;
        let api = &watch.api;
        ingest(api, "before", "note").await;
        until(api, |log| !names(log, "seen").is_empty()).await;
        let mut newer = manifest(&watch.device.url());
        newer["version"] = json!("1.1.0");
        crate::plugins::send(api, &archive_of(&newer, guest(), &watch.keys.acme)).await.expect_status(201);
        ingest(api, "after", "note").await;
        let found = until(api, |log| names(log, "seen").len() == 2).await;
        let told: Vec<&String> = found.iter().filter(|line| line.starts_with("configured")).collect();
        assert_eq!(told, ["configured kept", "configured kept"], "{found:?}");
    }
}

on_both! {
    async fn a_kill_between_events_loses_none(database: Database) {
        let keys = Keys::new();
        let (folder, options) = (tempfile::tempdir().unwrap(), keys.options());
        let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        install(&process.api, &archive_of(&manifest("http://127.0.0.1:9"), guest(), &keys.acme)).await;
        switch(&process.api, true, json!({})).await;
        let mut sent = Vec::new();
        for round in 0..6 {
            for n in 0..5 {
                let name = format!("r{round}e{n}");
                ingest(&process.api, &name, "note").await;
                sent.push(name);
            }
            tokio::time::sleep(std::time::Duration::from_millis(round * 7)).await;
            process.kill();
            process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        }
        let found = until(&process.api, |log| {
            let found = names(log, "seen");
            sent.iter().all(|name| found.contains(name))
        }).await;
        let mut found = names(&found, "seen");
        found.dedup();
        assert_eq!(asked(&process.api).await["timers"], json!([]));
        // Each came, in order; one that was under way may have come twice.
        let mut firsts: Vec<String> = Vec::new();
        for name in found {
            if !firsts.contains(&name) {
                firsts.push(name);
            }
        }
        assert_eq!(firsts, sent);
    }
}
