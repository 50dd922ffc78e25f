//! Writing Connections: which users may, what is refused, what is hidden.

use heddle_core::Role;
use serde_json::{Value, json};

use super::{World, device, filled, id_of, runs};
use crate::support::{Answer, event_type, on_both};

/// The fields that an answer names.
fn fields(answer: &Answer) -> Vec<String> {
    let details = answer.body["error"]["details"].as_array().cloned().unwrap_or_default();
    details.iter().map(|detail| detail["field"].as_str().unwrap().to_owned()).collect()
}

on_both! {
    async fn a_connection_is_written_seen_changed_and_removed(database: Database) {
        let world = World::start(database).await;
        for (list, kind) in [("/fabric/connections", "connection"), ("/automation/rules", "rule")] {
            let created = world.api.post(list, &filled(json!({ "cooldown": 5 }))).await.expect_status(201);
            let path = format!("{list}/{}", id_of(&created.body));
            assert_eq!(created.header("location"), format!("/api/v1{path}"));
            assert_eq!(created.body["state"], "enabled");
            assert_eq!(created.body["steps"][0]["params"], json!({ "search": "{{trigger.name}}" }));
            assert_eq!(created.body["conditions"], json!({ "logic": "and", "conditions": [] }));
            let seen = world.api.get(&path).await.expect_status(200);
            assert_eq!(seen.body, created.body);
            assert_eq!(seen.header("etag"), created.header("etag"));
            let tagged = world.api.with("if-match", seen.header("etag"));
            let paused = tagged.patch(&path, &json!({ "state": "paused", "name": "Hush" })).await.expect_status(200);
            assert_eq!((&paused.body["state"], &paused.body["revision"]), (&json!("paused"), &json!(2)));
            tagged.patch(&path, &json!({ "name": "Late" })).await.expect_status(412);
            tagged.delete(&path).await.expect_status(412);
            assert_eq!(world.api.get(&format!("{list}?state=paused&search=hus")).await.body["total"], 1);
            assert_eq!(world.api.get(&format!("{list}?state=broken")).await.body["total"], 0);
            world.api.with("if-match", paused.header("etag")).delete(&path).await.expect_status(204);
            world.api.get(&path).await.expect_status(404);
            world.api.get(&format!("{path}/runs")).await.expect_status(404);
            let audit = world.api.get(&format!("/audit?target_type={kind}")).await.expect_status(200);
            let actions: Vec<&str> =
                audit.body["items"].as_array().unwrap().iter().rev().map(|e| e["action"].as_str().unwrap()).collect();
            assert_eq!(actions, [format!("{kind}.created"), format!("{kind}.updated"), format!("{kind}.removed")]);
            assert!(!audit.text.contains("trigger.name"), "no parameter is in the audit log: {}", audit.text);
        }
    }
}

on_both! {
    async fn what_was_removed_comes_back_and_is_started_by_nothing_that_happened_meanwhile(database: Database) {
        let world = World::start(database).await;
        let key = |name: &str| world.api.with("idempotency-key", name);
        for (list, kind) in [("/fabric/connections", "connection"), ("/automation/rules", "rule")] {
            let made = key(kind).post(list, &filled(json!({ "source_event": "device.offline" }))).await.expect_status(201).body;
            let path = format!("{list}/{}", id_of(&made));
            let restore = format!("{path}/restore");
            world.api.post(&restore, &json!({})).await.expect_status(404);
            world.api.delete(&path).await.expect_status(204);
            world.emit(event_type("device.offline"), device("meanwhile")).await;
            let back = world.api.post(&restore, &json!({})).await.expect_status(200);
            assert_eq!((&back.body["state"], &back.body["revision"]), (&json!("enabled"), &json!(2)));
            assert_eq!(back.body["steps"], made["steps"], "its author sees what they wrote");
            let seen = world.api.get(&path).await.expect_status(200);
            assert_eq!((&seen.body, seen.header("etag")), (&back.body, back.header("etag")));
            world.api.post(&restore, &json!({})).await.expect_status(404);
            world.emit(event_type("device.offline"), device("afterwards")).await;
            let runs = runs(&world.api, &path, 1).await;
            assert_eq!(runs[0]["steps"][0]["params"], json!({ "search": "afterwards" }));
            // A user who may not write them may not bring them back; another organization's are not there.
            world.api.delete(&path).await.expect_status(204);
            let (_, viewer) = world.member(&format!("viewer-{kind}"), Role::SiteAdmin).await;
            viewer.post(&restore, &json!({})).await.expect_status(403);
            world.api.post(&restore, &json!({})).await.expect_status(200);
            let audit = world.api.get(&format!("/audit?target_type={kind}&action={kind}.restored")).await.expect_status(200);
            assert_eq!((&audit.body["total"], &audit.body["items"][0]["target_id"]), (&json!(2), &made["id"]));
            world.api.delete(&path).await.expect_status(204);
        }
    }
}

on_both! {
    async fn what_comes_back_stands_as_its_author_may(database: Database) {
        let world = World::start(database).await;
        let (author, other) = world.member("olga", Role::OrgAdmin).await;
        let path = |made: &Value| format!("/fabric/connections/{}", id_of(made));
        let enabled = other.post("/fabric/connections", &filled(json!({}))).await.expect_status(201).body;
        let paused = other.post("/fabric/connections", &filled(json!({ "state": "paused" }))).await.expect_status(201).body;
        for made in [&enabled, &paused] {
            world.api.delete(&path(made)).await.expect_status(204);
        }
        // Whichever user brings it back, its author stays the same.
        let back = world.api.post(&format!("{}/restore", path(&enabled)), &json!({})).await.expect_status(200).body;
        assert_eq!((&back["state"], &back["author_id"]), (&json!("enabled"), &json!(author)));
        assert_eq!(back["steps"][0]["params"], json!({ "hidden": true }));
        world.api.delete(&path(&enabled)).await.expect_status(204);
        world.api.patch(&format!("/users/{author}"), &json!({ "is_active": false })).await.expect_status(200);
        let back = world.api.post(&format!("{}/restore", path(&enabled)), &json!({})).await.expect_status(200).body;
        assert_eq!(back["state"], "broken");
        assert!(back["state_reason"].as_str().unwrap().contains("olga"), "{back}");
        let back = world.api.post(&format!("{}/restore", path(&paused)), &json!({})).await.expect_status(200).body;
        assert_eq!((&back["state"], &back["state_reason"]), (&json!("paused"), &Value::Null));
    }
}

on_both! {
    async fn what_cannot_work_is_refused_when_it_is_written(database: Database) {
        let world = World::start(database).await;
        let step = |params: Value| json!([{ "operation_id": "sites.list", "params": params }]);
        let many: Vec<Value> = (0..21).map(|_| json!({ "operation_id": "sites.list" })).collect();
        for (change, field) in [
            (json!({ "source_event": "devise.*" }), "source_event"),
            (json!({ "cooldown": 86401 }), "cooldown"),
            (json!({ "steps": [] }), "steps"),
            (json!({ "steps": many }), "steps"),
            (json!({ "steps": [{ "operation_id": "no.such" }] }), "steps.0.operation_id"),
            (json!({ "steps": step(json!({ "search": 5 })) }), "steps.0.params.search"),
            (json!({ "steps": step(json!({ "limit": "{{steps.0.output.total}}" })) }), "steps.0.params"),
            (json!({ "steps": step(json!({ "search": "{{env.HOME}}" })) }), "steps.0.params"),
            (json!({ "steps": step(json!({ "search": "{{trigger.name" })) }), "steps.0.params"),
            (json!({ "steps": step(json!({ "surprise": "{{trigger.name}}" })) }), "steps.0.params"),
            (json!({ "steps": [{ "operation_id": "sites.get" }] }), "steps.0.params"),
            (json!({ "conditions": { "logic": "and", "conditions": [{ "field": "", "operator": "eq" }] } }), "conditions.conditions.0.field"),
            (
                json!({ "conditions": { "logic": "and", "conditions": [{ "field": "name", "operator": "eq", "value": "x".repeat(4095) }] } }),
                "conditions.conditions.0.value",
            ),
        ] {
            let answer = world.api.post("/fabric/connections", &filled(change.clone())).await.expect_status(422);
            assert_eq!(fields(&answer), [crate::support::at(field)], "{change}: {}", answer.text);
        }
        let unknown = world.api.post("/fabric/connections", &filled(json!({ "source_event": "devise.*" }))).await;
        assert!(unknown.text.contains("did you mean 'device.*'?"), "{}", unknown.text);
        for change in [
            json!({ "state": "broken" }), json!({ "surprise": 1 }),
            json!({ "conditions": { "logic": "xor", "conditions": [] } }),
            json!({ "conditions": { "logic": "and", "conditions": [{ "field": "a", "operator": "regex" }] } }),
        ] {
            world.api.post("/fabric/connections", &filled(change)).await.expect_status(422);
        }
        let fine = json!({ "source_event": "*", "steps": [
            { "operation_id": "sites.list" },
            { "operation_id": "sites.get", "params": { "site_id": "{{steps.0.output.items.0.id}}" } },
        ] });
        world.api.post("/fabric/connections", &filled(fine)).await.expect_status(201);
    }
}

on_both! {
    async fn administrators_write_and_members_read_without_parameters(database: Database) {
        let world = World::start(database).await;
        let created = world.connect(json!({})).await;
        let path = format!("/fabric/connections/{}", id_of(&created));
        world.emit(event_type("device.offline"), device("office")).await;
        let own = &world.runs(&created, 1).await[0];
        assert_eq!(own["steps"][0]["params"], json!({ "search": "office" }));
        assert_eq!(own["steps"][0]["output"]["total"], 1, "{own}");
        for role in [Role::SiteAdmin, Role::Viewer, Role::Guest] {
            let (_, api) = world.member(&role.to_string(), role).await;
            for (method, path) in [("POST", "/fabric/connections"), ("PATCH", &path), ("DELETE", &path)] {
                let answer = api.send(method, path, Some(filled(json!({})).to_string().into_bytes())).await;
                assert_eq!(answer.expect_status(403).error_type(), "permission_denied", "{role} {method}");
            }
            api.post(&format!("{path}/test"), &json!({})).await.expect_status(403);
            let seen = api.get(&path).await.expect_status(200).body;
            assert_eq!(seen["steps"][0]["params"], json!({ "hidden": true }), "{role}");
            let run = api.get(&format!("/fabric/runs/{}", id_of(own))).await.expect_status(200).body;
            assert_eq!(run["steps"][0]["params"], json!({ "hidden": true }), "{role}");
        }
        // Another administrator sees no parameters either, until they write their own.
        let (_, other) = world.member("olga", Role::OrgAdmin).await;
        assert_eq!(other.get(&path).await.body["steps"][0]["params"], json!({ "hidden": true }));
        let dry = other.post(&format!("{path}/test"), &json!({ "payload": {}, "dry_run": true })).await.expect_status(200);
        assert_eq!(dry.body["steps"][0]["params"], json!({ "hidden": true }));
        // Nor can they aim what they do not see, or fire it with a payload of their own.
        for change in [json!({ "source_event": "ingest.external" }), json!({ "conditions": { "logic": "and", "conditions": [] } })] {
            assert_eq!(other.patch(&path, &change).await.expect_status(403).error_type(), "not_author");
        }
        let fired = other.post(&format!("{path}/test"), &json!({ "payload": {} })).await.expect_status(403);
        assert_eq!(fired.error_type(), "not_author");
        other.patch(&path, &json!({ "cooldown": 5 })).await.expect_status(200);
        let steps = json!({ "steps": [{ "operation_id": "sites.list" }] });
        let changed = other.patch(&path, &steps).await.expect_status(200).body;
        assert_eq!((&changed["steps"][0]["params"], &changed["revision"]), (&json!({}), &json!(3)));
        assert_eq!(world.api.get(&path).await.body["steps"][0]["params"], json!({ "hidden": true }));
        // A key with scopes writes nothing.
        let key = json!({ "name": "k", "scopes": ["site:read", "device:read"] });
        let key = world.api.post("/api-keys", &key).await.expect_status(201).body;
        let scoped = world.server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        // Nor does it read any, not even its user's own.
        let mine = world.connect(json!({})).await;
        let unseen = scoped.get(&format!("/fabric/connections/{}", id_of(&mine))).await.expect_status(403);
        assert_eq!(unseen.error_type(), "scope_ceiling");
        let refused = scoped.post("/fabric/connections", &filled(json!({}))).await.expect_status(403);
        assert_eq!(refused.error_type(), "scope_ceiling");
    }
}

on_both! {
    async fn the_catalogue_and_suggestions_say_what_fits_and_what_may(database: Database) {
        let world = World::start(database).await;
        let catalog = world.api.get("/fabric/catalog").await.expect_status(200).body;
        let ids: Vec<&str> = catalog["operations"].as_array().unwrap().iter().map(|o| o["id"].as_str().unwrap()).collect();
        for id in ["sites.list", "devices.get", "openwrt.firewall.rule.create"] {
            assert!(ids.contains(&id), "{id} is in {ids:?}");
        }
        let whole = catalog["operations"].as_array().unwrap().iter().filter(|o| o.get("params_schema").is_some());
        assert_eq!(catalog["ai_tools"].as_array().unwrap().len(), whole.count());
        assert!(catalog["ai_tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "sites_list" && tool["input_schema"].is_object()));
        assert!(catalog["events"].as_array().unwrap().iter().any(|event| event["event_type"] == "automation.connection.broken"));
        let (_, guest) = world.member("gus", Role::Guest).await;
        let few = guest.get("/fabric/catalog").await.expect_status(200).body;
        let few: Vec<&str> = few["operations"].as_array().unwrap().iter().map(|o| o["id"].as_str().unwrap()).collect();
        assert!(few.contains(&"sites.list") && !few.contains(&"openwrt.firewall.rule.create"), "{few:?}");

        let find = |answer: &Value, id: &str| {
            answer["operations"].as_array().unwrap().iter().find(|o| o["operation_id"] == id).cloned().unwrap()
        };
        let suggested = guest.get("/fabric/connections/suggest?source_event=device.offline").await.expect_status(200).body;
        let get = find(&suggested, "devices.get");
        assert_eq!((&get["artifact_match"], &get["permitted"]), (&json!("full"), &json!(true)));
        assert_eq!(get["params"][0]["template"], "{{trigger.device_id}}");
        let write = find(&suggested, "openwrt.firewall.rule.create");
        assert_eq!((&write["artifact_match"], &write["permitted"]), (&json!("partial"), &json!(false)));
        assert_eq!(write["missing_permission"], "network:write");
        let none = world.api.get("/fabric/connections/suggest?source_event=user.created").await.expect_status(200).body;
        assert_eq!(find(&none, "devices.get")["artifact_match"], "none");
        assert_eq!(find(&none, "devices.get")["permitted"], true);
        world.api.get("/fabric/connections/suggest?source_event=nothing").await.expect_status(422);
        world.api.get("/fabric/connections/suggest").await.expect_status(422);
    }
}

on_both! {
    async fn the_catalogue_is_searched_and_shows_schemas_of_few_or_of_one(database: Database) {
        let world = World::start(database).await;
        let ids = |catalog: &Value| -> Vec<String> {
            catalog["operations"].as_array().unwrap().iter().map(|o| o["id"].as_str().unwrap().to_owned()).collect()
        };
        // Of an adapter's operations only the names, unless schemas are asked for.
        let catalog = world.api.get("/fabric/catalog?owner=openwrt").await.expect_status(200).body;
        assert!(!ids(&catalog).is_empty() && catalog["ai_tools"] == json!([]), "{catalog}");
        assert!(catalog["operations"].as_array().unwrap().iter().all(|o| o["owner"] == "openwrt" && o.get("params_schema").is_none()));
        let query = "/fabric/catalog?search=Firewall%20RULE&kind=write&danger=normal&schemas=true";
        let found = world.api.get(query).await.expect_status(200).body;
        assert!(ids(&found).contains(&"openwrt.firewall.rule.create".to_owned()), "{:?}", ids(&found));
        for operation in found["operations"].as_array().unwrap() {
            let id = operation["id"].as_str().unwrap();
            assert!(id.contains("firewall") && operation["kind"] == "write" && operation["danger"] == "normal", "{id}");
            assert!(operation["params_schema"].is_object() && operation["example"]["params"].is_object(), "{id}");
        }
        assert_eq!(found["ai_tools"].as_array().unwrap().len(), ids(&found).len());
        let none = world.api.get("/fabric/catalog?search=nothing%20like%20this").await.expect_status(200).body;
        assert_eq!(ids(&none), Vec::<String>::new());
        world.api.get("/fabric/catalog?kind=wrong").await.expect_status(422);

        // One operation, with the caller's rights.
        let one = "/fabric/catalog/openwrt.firewall.rule.create";
        let operation = world.api.get(one).await.expect_status(200).body;
        assert_eq!(operation["params_schema"]["properties"]["payload"]["type"], "object", "{operation}");
        world.api.get("/fabric/catalog/openwrt.firewall.nothing").await.expect_status(404);
        let (_, guest) = world.member("gus", Role::Guest).await;
        guest.get(one).await.expect_status(403);
        guest.get("/fabric/catalog/sites.list").await.expect_status(200);
    }
}
