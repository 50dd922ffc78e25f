//! Which users register which apps, and which users manage them.

use serde_json::{Value, json};

use super::{App, acting, member, register, register_as, text};
use crate::support::{Server, on_both};

fn reader() -> Value {
    json!({
        "name": "Reader", "description": "Reads devices", "client_type": "confidential",
        "redirect_uris": ["https://app.example/cb"], "scopes": ["device:read"],
    })
}

on_both! {
    async fn an_app_is_registered_and_its_secret_shown_once(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let keyed = admin.with("idempotency-key", "one");
        let made = keyed.post("/oauth2/apps", &reader()).await.expect_status(201);
        let secret = text(&made.body, "client_secret").to_owned();
        assert!(secret.starts_with("hds_"), "{secret}");
        assert!(made.header("location").ends_with(text(&made.body, "id")));
        let again = keyed.post("/oauth2/apps", &reader()).await.expect_status(201);
        assert_eq!(again.headers["idempotency-replayed"].to_str().unwrap(), "true");
        assert!(!again.text.contains(&secret), "the secret is in the first answer alone");
        assert_eq!((&again.body["id"], &again.body["created_at"]), (&made.body["id"], &made.body["created_at"]));
        let path = format!("/oauth2/apps/{}", text(&made.body, "id"));
        let got = admin.get(&path).await.expect_status(200);
        assert!(!got.text.contains(&secret) && got.body.get("client_secret").is_none());
        assert_eq!(got.header("etag"), made.header("etag"));
        let listed = admin.get("/oauth2/apps?search=READ").await.expect_status(200);
        assert_eq!((&listed.body["total"], listed.text.contains(&secret)), (&json!(1), false));
        assert_eq!(admin.get("/oauth2/apps?search=nothing").await.body["total"], 0);
        let public = register_as(&admin, "public", &["device:read"]).await;
        assert!(public.secret.is_none());
        let refused = admin.post(&format!("/oauth2/apps/{}/secret", public.id), &json!({})).await.expect_status(409);
        assert_eq!(refused.error_type(), "public_app");
    }
}

on_both! {
    async fn an_app_is_changed_as_it_was_seen(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:*", "site:read"]).await;
        let path = format!("/oauth2/apps/{}", app.id);
        let tokens = app.tokens(&server, "ada").await;
        let seen = admin.get(&path).await.header("etag").to_owned();
        acting(&server, &tokens).get("/sites").await.expect_status(200);
        let narrow = json!({ "name": "Narrow", "description": null, "scopes": ["device:read"] });
        let changed = admin.with("if-match", &seen).patch(&path, &narrow).await.expect_status(200).body;
        assert_eq!((&changed["name"], &changed["scopes"]), (&json!("Narrow"), &json!(["device:read"])));
        admin.with("if-match", &seen).patch(&path, &narrow).await.expect_status(412);
        admin.with("if-match", &seen).delete(&path).await.expect_status(412);
        // What was allowed before has shrunk with it.
        acting(&server, &tokens).get("/sites").await.expect_status(403);
        acting(&server, &tokens).get("/devices").await.expect_status(200);
        admin.delete(&path).await.expect_status(204);
        admin.get(&path).await.expect_status(404);
        admin.delete(&path).await.expect_status(404);
        let audit = admin.get("/audit?per_page=200").await.text;
        assert!(audit.contains("oauth2_app.updated") && audit.contains("oauth2_app.removed"));
    }
}

on_both! {
    async fn what_an_app_may_be_is_checked(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let uris: Vec<String> = (0..11).map(|at| format!("https://a.example/{at}")).collect();
        for (name, value, field) in [
            ("name", json!(" "), "name"),
            ("description", json!("x".repeat(2001)), "description"),
            ("client_type", json!("secret"), "client_type"),
            ("redirect_uris", json!([]), "redirect_uris"),
            ("redirect_uris", json!(uris), "redirect_uris"),
            ("redirect_uris", json!(["https://a.example/", "https://a.example/"]), "redirect_uris[1]"),
            ("redirect_uris", json!(["http://a.example/"]), "redirect_uris[0]"),
            ("redirect_uris", json!(["https://a.example/#x"]), "redirect_uris[0]"),
            ("redirect_uris", json!(["https://*.example/"]), "redirect_uris[0]"),
            ("redirect_uris", json!(["org.example.app:/cb"]), "redirect_uris[0]"),
            ("redirect_uris", json!(["https://a.example/", "javascript:alert(1)"]), "redirect_uris[1]"),
            ("scopes", json!([]), "scopes"),
            ("scopes", json!(vec!["device:read"; 33]), "scopes"),
            ("scopes", json!(["device:reed"]), "scopes[0]"),
            ("secret", json!("mine"), "secret"),
        ] {
            let mut wrong = reader();
            wrong[name] = value;
            let refused = admin.post("/oauth2/apps", &wrong).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], crate::support::at(field), "{wrong}: {}", refused.text);
        }
        let app = register(&admin, &["device:read"]).await;
        let path = format!("/oauth2/apps/{}", app.id);
        let refused = admin.patch(&path, &json!({ "redirect_uris": ["org.example.app:/cb"] })).await.expect_status(422);
        assert_eq!(refused.body["error"]["details"][0]["field"], "/redirect_uris/0");
        admin.patch(&path, &json!({ "client_type": "public" })).await.expect_status(422);
    }
}

on_both! {
    async fn nobody_registers_what_they_do_not_hold_nor_sees_what_is_anothers(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let umbrella = admin.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        for (name, role, organization) in [("vic", "viewer", None), ("val", "viewer", None), ("olga", "org_admin", None), ("eve", "org_admin", umbrella["id"].as_str())] {
            member(&admin, name, role, organization).await;
        }
        let (vic, val, olga, eve) = (server.log_in("vic").await, server.log_in("val").await, server.log_in("olga").await, server.log_in("eve").await);
        for beyond in ["device:*", "user:read"] {
            let mut wrong = reader();
            wrong["scopes"] = json!([beyond]);
            let refused = vic.post("/oauth2/apps", &wrong).await.expect_status(403);
            assert_eq!(refused.error_type(), "scope_not_held", "{beyond}");
        }
        let mut everything = reader();
        everything["scopes"] = json!(["*"]);
        admin.post("/oauth2/apps", &everything).await.expect_status(422);
        let app = register(&vic, &["device:read"]).await;
        let path = format!("/oauth2/apps/{}", app.id);
        vic.patch(&path, &json!({ "scopes": ["device:read", "user:read"] })).await.expect_status(403);
        // An administrator of the organization manages it, too.
        assert_eq!(olga.get("/oauth2/apps").await.expect_status(200).body["total"], 1);
        olga.patch(&path, &json!({ "scopes": ["device:read", "device:write"] })).await.expect_status(200);
        // What an administrator added stays when its owner changes something else.
        vic.patch(&path, &json!({ "name": "Mine", "scopes": ["device:write"] })).await.expect_status(200);
        for stranger in [&val, &eve] {
            assert_eq!(stranger.get("/oauth2/apps").await.expect_status(200).body["total"], 0);
            stranger.get(&path).await.expect_status(404);
            stranger.patch(&path, &json!({ "name": "Theirs" })).await.expect_status(404);
            stranger.post(&format!("{path}/secret"), &json!({})).await.expect_status(404);
            stranger.delete(&path).await.expect_status(404);
        }
        assert_eq!(admin.get("/oauth2/apps").await.body["total"], 1);
        olga.delete(&path).await.expect_status(204);
    }
}

on_both! {
    async fn a_new_secret_makes_the_one_before_worthless(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let app = register(&admin, &["device:read"]).await;
        let tokens = app.tokens(&server, "ada").await;
        let made = admin.post(&format!("/oauth2/apps/{}/secret", app.id), &json!({})).await.expect_status(200).body;
        let renewed = App { id: app.id.clone(), secret: Some(text(&made, "client_secret").to_owned()) };
        assert_ne!(renewed.secret, app.secret);
        assert_eq!(app.refresh(&server, text(&tokens, "refresh_token")).await.expect_status(401).body["error"], "invalid_client");
        renewed.refresh(&server, text(&tokens, "refresh_token")).await.expect_status(200);
        let audit = admin.get("/audit?action=oauth2_app.secret_rotated").await.expect_status(200);
        assert_eq!((&audit.body["total"], audit.text.contains(text(&made, "client_secret"))), (&json!(1), false));
    }
}

on_both! {
    async fn fifty_apps_are_enough(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        for _ in 0..49 {
            register(&admin, &["device:read"]).await;
        }
        let body = reader();
        let (one, two) = tokio::join!(admin.post("/oauth2/apps", &body), admin.post("/oauth2/apps", &body));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409]);
        let refused = admin.post("/oauth2/apps", &body).await.expect_status(409);
        assert_eq!(refused.error_type(), "limit_reached");
    }
}
