//! Accounts of an organization, from their creation to their return.

use serde_json::json;

use super::{ABSENT, World, column, if_match, new_user, refused, text};
use crate::support::{PASSWORD, Socket, on_both};

on_both! {
    async fn an_account_shows_what_its_user_may_do(database: Database) {
        let world = World::start(database).await;
        let admin = world.member("bea", "admin").await;
        let mut body = new_user("Carl", "operator");
        body["full_name"] = json!(" Carl Operator ");
        let created = admin.api.post("/users/", &body).await.expect_status(201);
        let id = text(&created.body["id"]);
        assert_eq!(created.header("location"), format!("/api/v1/users/{id}"));
        for (field, expected) in [
            ("username", json!("Carl")), ("email", json!("Carl@acme.test")), ("full_name", json!("Carl Operator")),
            ("role", json!("operator")), ("is_active", json!(true)), ("mfa_enabled", json!(false)),
            ("token_version", json!(0)), ("organization_id", json!(world.org)), ("deleted_at", json!(null)),
        ] {
            assert_eq!(created.body[field], expected, "{field}: {}", created.text);
        }
        assert!(!created.text.contains("password") && !created.text.contains("argon2"), "{}", created.text);
        let permissions: Vec<_> = created.body["permissions"].as_array().unwrap().clone();
        assert!(permissions.contains(&json!("device:write")) && !permissions.contains(&json!("user:write")));
        let path = format!("/users/{id}");
        assert_eq!(admin.api.get(&path).await.expect_status(200).body, created.body);
        assert_eq!(world.root.get("/users?role=super_admin").await.body["items"][0]["permissions"], json!(["*"]));
        let carl = world.log_in("carl").await;
        assert_eq!(carl.get("/auth/me").await.expect_status(200).body["permissions"], created.body["permissions"]);
    }
}

on_both! {
    async fn a_list_is_searched_literally_and_filtered(database: Database) {
        let world = World::start(database).await;
        for (name, role, full_name) in
            [("a_b", "viewer", "Hundred %"), ("axb", "viewer", "Other"), ("admin2", "org_admin", "Third")]
        {
            let mut body = new_user(name, role);
            body["full_name"] = json!(full_name);
            world.root.post("/users", &body).await.expect_status(201);
        }
        let mut off = new_user("off", "guest");
        off["is_active"] = json!(false);
        assert_eq!(world.root.post("/users", &off).await.expect_status(201).body["is_active"], false);
        for (query, expected) in [
            ("", &["ada", "a_b", "axb", "admin2", "off"][..]),
            ("search=A_B", &["a_b"]),
            ("search=%25", &["a_b"]),
            ("search=OTHER", &["axb"]),
            ("search=admin2@ACME", &["admin2"]),
            ("role=viewer", &["a_b", "axb"]),
            ("role=admin", &["admin2"]),
            ("is_active=false", &["off"]),
            ("role=viewer&search=x", &["axb"]),
            ("per_page=2&page=2", &["axb", "admin2"]),
            ("per_page=200", &["ada", "a_b", "axb", "admin2", "off"]),
        ] {
            let page = world.root.get(&format!("/users?{query}")).await.expect_status(200).body;
            assert_eq!(column(&page, "username"), expected, "{query}");
        }
        world.root.get("/users?per_page=201").await.expect_status(422);
        refused(world.root.get("/users?role=king").await, 400, "unknown_role");
    }
}

on_both! {
    async fn everything_wrong_with_a_new_user_is_said_at_once(database: Database) {
        let world = World::start(database).await;
        let body = json!({
            "username": "two words", "email": "nobody", "password": "qqq", "full_name": " ", "role": "viewer",
        });
        let answer = refused(world.root.post("/users", &body).await, 422, "validation_error");
        let details = answer.body["error"]["details"].as_array().unwrap();
        let fields: Vec<_> = details.iter().map(|detail| detail["field"].as_str().unwrap()).collect();
        for field in ["/username", "/email", "/password", "/full_name"] {
            assert!(fields.contains(&field), "{field}: {fields:?}");
        }
        assert!(!answer.text.contains("qqq"), "the password is not repeated: {}", answer.text);
        let mut surprise = new_user("dan", "viewer");
        surprise["is_admin"] = json!(true);
        assert_eq!(world.root.post("/users", &surprise).await.expect_status(422).body["error"]["details"][0]["field"], "/is_admin");
        let king = refused(world.root.post("/users", &new_user("dan", "king")).await, 400, "unknown_role");
        for word in ["super_admin", "org_admin", "site_admin", "operator", "viewer", "guest", "admin"] {
            assert!(king.message().contains(word), "{word}: {}", king.message());
        }
        world.root.get("/users/not-an-id").await.expect_status(422);
        world.root.post("/users", &new_user("dan", "guest")).await.expect_status(201);
    }
}

on_both! {
    async fn a_removed_users_names_are_free_and_who_took_them_keeps_the_former_away(database: Database) {
        let world = World::start(database).await;
        let carl = world.member("carl", "viewer").await;
        for (taken, free) in [("username", "email"), ("email", "username")] {
            let mut body = new_user("CARL", "viewer");
            body[free] = json!(if free == "email" { "new@acme.test" } else { "new" });
            let answer = refused(world.root.post("/users", &body).await, 409, "conflict");
            assert!(answer.message().to_lowercase().contains("carl"), "{taken}: {}", answer.message());
        }
        world.root.delete(&carl.path()).await.expect_status(204);
        world.root.get(&carl.path()).await.expect_status(404);
        world.root.delete(&carl.path()).await.expect_status(404);
        world.root.patch(&carl.path(), &json!({ "full_name": "x" })).await.expect_status(404);
        assert!(!column(&world.root.get("/users").await.body, "username").contains(&"carl".to_owned()));
        world.try_log_in("carl", PASSWORD).await.expect_status(401);

        let restore = format!("{}/restore", carl.path());
        let back = world.root.post(&restore, &json!({})).await.expect_status(200).body;
        assert_eq!((&back["username"], &back["deleted_at"]), (&json!("carl"), &json!(null)));
        world.root.post(&restore, &json!({})).await.expect_status(404);
        carl.api.get("/auth/me").await.expect_status(401);
        world.log_in("carl").await;

        world.root.delete(&carl.path()).await.expect_status(204);
        let mut heir = new_user("carla", "viewer");
        heir["email"] = json!("CARL@acme.test");
        world.root.post("/users", &heir).await.expect_status(201);
        let answer = refused(world.root.post(&restore, &json!({})).await, 409, "conflict");
        assert!(answer.message().contains("email 'carl@acme.test'"), "{}", answer.message());
        let mut namesake = new_user("CARL", "viewer");
        namesake["email"] = json!("other@acme.test");
        world.root.post("/users", &namesake).await.expect_status(201);
        let entries = async || world.root.get("/audit").await.expect_status(200).body["total"].clone();
        let before = entries().await;
        let answer = refused(world.root.post(&restore, &json!({})).await, 409, "conflict");
        assert!(answer.message().contains("'carl"), "{}", answer.message());
        assert_eq!(entries().await, before, "a refused restore leaves no entry");
        world.root.get(&carl.path()).await.expect_status(404);
    }
}

on_both! {
    async fn a_change_is_made_only_to_what_was_seen(database: Database) {
        let world = World::start(database).await;
        let carl = world.member("carl", "viewer").await;
        let tag = world.root.get(&carl.path()).await.expect_status(200).header("etag").to_owned();
        let rename = json!({ "full_name": "Carl C." });
        assert_eq!(if_match(&world.root, "PATCH", &carl.path(), &tag, &rename).await, 200);
        assert_eq!(if_match(&world.root, "PATCH", &carl.path(), &tag, &json!({ "full_name": "x" })).await, 412);
        assert_eq!(if_match(&world.root, "DELETE", &carl.path(), &tag, &json!({})).await, 412);
        let now = world.root.get(&carl.path()).await.expect_status(200);
        assert_eq!(now.body["full_name"], "Carl C.");
        assert_eq!(if_match(&world.root, "DELETE", &carl.path(), now.header("etag"), &json!({})).await, 204);
    }
}

on_both! {
    async fn another_organizations_user_looks_like_an_absent_one(database: Database) {
        let world = World::start(database).await;
        let other = world.other().await;
        let bea = world.member("bea", "org_admin").await;
        let carl = world.member("carl", "viewer").await;
        let gone = world.member("dora", "viewer").await;
        world.root.delete(&gone.path()).await.expect_status(204);
        for (method, suffix, body) in [
            ("GET", "", None), ("PATCH", "", Some("{\"full_name\": \"x\"}")), ("DELETE", "", None), ("POST", "/restore", Some("{}")),
        ] {
            let ask = async |id: &str| {
                let body = body.map(|text: &str| text.as_bytes().to_vec());
                let answer = other.admin.api.send(method, &format!("/users/{id}{suffix}"), body).await.expect_status(404);
                let mut error = answer.body["error"].clone();
                error["request_id"] = json!(null);
                error
            };
            let absent = ask(ABSENT).await;
            for id in [&bea.id, &carl.id, &gone.id] {
                assert_eq!(ask(id).await, absent, "{method} {suffix}");
            }
        }
        let own = other.admin.api.get("/users").await.expect_status(200).body;
        assert_eq!(column(&own, "username"), ["otto"]);
        let foreign = other.admin.api.get(&format!("/users?organization_id={}", world.org)).await.expect_status(200).body;
        assert_eq!(foreign["total"], 0);
        let mut body = new_user("eve", "viewer");
        body["organization_id"] = json!(world.org);
        let answer = other.admin.api.post("/users", &body).await.expect_status(422);
        assert_eq!(answer.body["error"]["details"][0]["field"], "/organization_id");
        let all = world.root.get("/users").await.expect_status(200).body;
        assert_eq!(all["total"], 4);
        let one = world.root.get(&format!("/users?organization_id={}", other.org)).await.expect_status(200).body;
        assert_eq!(column(&one, "username"), ["otto"]);
    }
}

on_both! {
    async fn what_happens_to_users_is_told_and_written_down(database: Database) {
        let world = World::start(database).await;
        let bea = world.member("bea", "org_admin").await;
        let viewer = world.member("vic", "viewer").await;
        let mut denied = Socket::connect(&viewer.api).await;
        denied.send(&json!({ "type": "auth", "token": viewer.api.token() })).await;
        assert_eq!(denied.next().await["type"], "connected");
        denied.send(&json!({ "type": "subscribe", "subscriptions": ["user.*"] })).await;
        assert_eq!(denied.next().await["type"], "subscription_denied");

        let mut socket = Socket::subscribe(&bea.api, &["user.*"]).await;
        let carl = bea.api.post("/users", &new_user("carl", "viewer")).await.expect_status(201).body;
        let path = format!("/users/{}", text(&carl["id"]));
        let secret = "Another-Horse-8-Battery";
        let change = json!({ "role": "operator", "full_name": "Carl", "password": secret });
        bea.api.patch(&path, &change).await.expect_status(200);
        bea.api.delete(&path).await.expect_status(204);
        bea.api.post(&format!("{path}/restore"), &json!({})).await.expect_status(200);
        let declared = bea.api.get("/events/types").await.expect_status(200).body;
        for (name, extra) in [
            ("user.created", json!({ "role": "viewer" })),
            ("user.updated", json!({ "changed": ["full_name", "password"], "role": "operator" })),
            ("user.role_changed", json!({ "old_role": "viewer", "role": "operator" })),
            ("user.removed", json!({})),
            ("user.restored", json!({})),
        ] {
            let event = socket.event(name).await;
            let payload = &event["payload"];
            assert_eq!((&payload["user_id"], &payload["actor_id"]), (&carl["id"], &json!(bea.id)), "{event}");
            for (field, expected) in extra.as_object().unwrap() {
                assert_eq!(&payload[field], expected, "{event}");
            }
            let schema = declared.as_array().unwrap().iter().find(|t| t["event_type"] == name).unwrap();
            let mut declared: Vec<_> = schema["payload_schema"]["required"].as_array().unwrap().clone();
            let mut sent: Vec<_> = payload.as_object().unwrap().keys().map(|key| json!(key)).collect();
            declared.sort_by_key(ToString::to_string);
            sent.sort_by_key(ToString::to_string);
            assert_eq!(sent, declared, "{name} carries what it declares");
            let entries = world.audited(name).await;
            let entry = entries.iter().find(|entry| entry["target_id"] == carl["id"]).expect(name);
            assert_eq!(entry["actor_id"], json!(bea.id), "{entry}");
            assert!(!entry.to_string().contains(secret) && !event.to_string().contains(secret));
        }
        assert_eq!(bea.api.get("/audit/validate").await.expect_status(200).body["valid"], true);
    }
}
