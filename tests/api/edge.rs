//! What every request meets.

use serde_json::{Value, json};

use crate::support::{Server, on_both};

/// Every operation of the document: method, path, access.
async fn operations(server: &Server) -> Vec<(String, String, String)> {
    let document = server.nobody().get("/openapi.json").await.expect_status(200).body;
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("the document has paths") {
        for (method, operation) in item.as_object().expect("a path has methods") {
            let access = operation["x-access"].as_str().expect("every route says who may call it");
            let path = path.strip_prefix("/api/v1").expect("every path is below the prefix");
            operations.push((method.to_uppercase(), path.to_owned(), access.to_owned()));
        }
    }
    operations
}

/// A path whose ids are well formed and belong to nothing.
fn filled(path: &str) -> String {
    let fill = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) if name.ends_with("_id") => "01900000-0000-7000-8000-000000000000".to_owned(),
        Some(_) => "none".to_owned(),
        None => part.to_owned(),
    };
    path.split('/').map(fill).collect::<Vec<_>>().join("/")
}

on_both! {
    async fn nobody_gets_past_a_route_that_is_not_public(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        let operations = operations(&server).await;
        assert!(operations.len() > 60, "the document lists the routes: {}", operations.len());
        for (method, path, access) in operations {
            if access == "public" {
                continue;
            }
            let answer = server.nobody().send(&method, &filled(&path), Some(b"{}".to_vec())).await;
            assert_eq!(answer.status, 401, "{method} {path}: {}", answer.text);
            assert_eq!(answer.error_type(), "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), "Bearer", "{method} {path}");
        }
    }
}

on_both! {
    async fn every_answer_is_an_envelope_with_its_headers(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        for (method, path, _) in operations(&server).await {
            let answer = api.send(&method, &filled(&path), Some(b"{\"surprise\": 1}".to_vec())).await;
            assert_ne!(answer.status, 500, "{method} {path}: {}", answer.text);
            for (name, value) in [
                ("x-content-type-options", "nosniff"),
                ("x-frame-options", "DENY"),
                ("x-xss-protection", "1; mode=block"),
                ("referrer-policy", "strict-origin-when-cross-origin"),
                ("cache-control", "no-store, no-cache, must-revalidate"),
                ("pragma", "no-cache"),
            ] {
                assert_eq!(answer.header(name), value, "{method} {path}");
            }
            assert!(!answer.header("x-request-id").is_empty() && !answer.header("x-response-time").is_empty());
            if answer.status >= 400 {
                let error = &answer.body["error"];
                assert_eq!(error["code"], answer.status, "{method} {path}: {}", answer.text);
                assert_eq!(error["request_id"], answer.header("x-request-id"));
                assert!(error["type"].is_string() && error["message"].is_string(), "{}", answer.text);
            }
        }
    }
}

on_both! {
    async fn absent_paths_and_wrong_methods_are_in_the_envelope(database: Database) {
        let server = Server::start(database).await;
        let nobody = server.nobody();
        assert_eq!(nobody.get("/nowhere").await.expect_status(404).error_type(), "not_found");
        assert_eq!(nobody.delete("/health").await.expect_status(405).error_type(), "method_not_allowed");
        assert_eq!(nobody.get("/health/").await.expect_status(200).body["status"], "healthy");
        assert_eq!(nobody.get("/health/ready/").await.expect_status(200).body["status"], "ready");
    }
}

on_both! {
    async fn only_one_of_two_setups_wins(database: Database) {
        let server = Server::start(database).await;
        let nobody = server.nobody();
        let body = |name: &str| json!({
            "organization": { "name": name },
            "admin": { "username": name, "email": format!("{name}@acme.test"), "password": crate::support::PASSWORD },
        });
        let (one, two) = (body("one"), body("two"));
        let (one, two) =
            tokio::join!(nobody.post("/setup/complete", &one), nobody.post("/setup/complete", &two));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "{} {}", one.text, two.text);
        assert_eq!(nobody.get("/setup/status").await.body["completed"], true);
    }
}

on_both! {
    async fn a_session_lives_and_ends(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let login = json!({ "login": "ADA@acme.test", "password": crate::support::PASSWORD });
        let tokens = server.nobody().post("/auth/login", &login).await.expect_status(200).body;
        let caller = api.with_token(tokens["access_token"].as_str().unwrap());
        let me = caller.get("/auth/me").await.expect_status(200).body;
        assert_eq!(me["role"], "super_admin");
        assert_eq!(me["permissions"], json!(["*"]));
        let refreshed = caller
            .post("/auth/refresh", &json!({ "refresh_token": tokens["refresh_token"] }))
            .await
            .expect_status(200)
            .body;
        // The spent token is a lost race: refused, and nothing else happens.
        caller.post("/auth/refresh", &json!({ "refresh_token": tokens["refresh_token"] })).await.expect_status(401);
        let fresh = api.with_token(refreshed["access_token"].as_str().unwrap());
        fresh.get("/auth/me").await.expect_status(200);
        fresh.post("/auth/logout", &json!({})).await.expect_status(204);
        fresh.get("/auth/me").await.expect_status(401);
        api.get("/auth/me").await.expect_status(200);
        api.post("/auth/logout-all", &json!({})).await.expect_status(204);
        api.get("/auth/me").await.expect_status(401);
    }
}

on_both! {
    async fn a_refresh_token_that_was_spent_two_rotations_ago_ends_its_session(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        let nobody = server.nobody();
        let login = json!({ "login": "ada", "password": crate::support::PASSWORD });
        let first = nobody.post("/auth/login", &login).await.expect_status(200).body["refresh_token"].clone();
        let mut newest = first.clone();
        for _ in 0..2 {
            let spent = json!({ "refresh_token": newest });
            newest = nobody.post("/auth/refresh", &spent).await.expect_status(200).body["refresh_token"].clone();
            server.running().app.clock.advance(chrono::TimeDelta::minutes(5));
        }
        for token in [first, newest] {
            let refused = nobody.post("/auth/refresh", &json!({ "refresh_token": token })).await.expect_status(401);
            assert_eq!(refused.message(), "session is revoked");
        }
    }
}

on_both! {
    async fn five_wrong_passwords_lock_the_account(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        let wrong = json!({ "login": "ada", "password": "not it" });
        let unknown = json!({ "login": "nobody-here", "password": "not it" });
        let one = server.nobody().post("/auth/login", &wrong).await.expect_status(401);
        let two = server.nobody().post("/auth/login", &unknown).await.expect_status(401);
        assert_eq!(one.message(), two.message(), "a missing user looks like a wrong password");
        for _ in 0..4 {
            server.nobody().post("/auth/login", &wrong).await;
        }
        let right = json!({ "login": "ada", "password": crate::support::PASSWORD });
        let locked = server.nobody().post("/auth/login", &right).await.expect_status(423);
        assert_eq!(locked.error_type(), "locked");
        server.running().app.clock.advance(chrono::TimeDelta::minutes(31));
        server.nobody().post("/auth/login", &right).await.expect_status(200);
    }
}

#[tokio::test]
async fn the_openapi_document_has_a_schema_for_every_answer() {
    let server = Server::start(crate::support::Database::sqlite()).await;
    let document = server.nobody().get("/openapi.json").await.expect_status(200).body;
    assert_eq!(document["openapi"], "3.1.0");
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("references are local");
        assert!(document.pointer(pointer).is_some(), "{reference} is defined");
    }
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.push(reference.clone());
            }
            fields.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

/// A member of the first admin's organization with the first admin's password.
async fn member(server: &Server, role: heddle_core::Role) -> crate::support::Api {
    use heddle_store::users::{self, NewUser};
    let app = &server.running().app;
    let mut tx = app.db.write().await.unwrap();
    let admin = users::find_by_login(&mut tx, "ada").await.unwrap().unwrap();
    let new = NewUser {
        id: app.clock.new_id(),
        org_id: admin.user.org_id,
        username: role.to_string(),
        email: format!("{role}@acme.test"),
        full_name: None,
        password_hash: admin.password_hash,
        role,
        now: app.clock.now(),
    };
    users::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
    let login = json!({ "login": role.as_str(), "password": crate::support::PASSWORD });
    let tokens = server.nobody().post("/auth/login", &login).await.expect_status(200).body;
    server.nobody().with_token(tokens["access_token"].as_str().unwrap())
}

/// Whether the declared access lets this role in; `None` when the rule decides.
fn admits(access: &str, role: heddle_core::Role) -> Option<bool> {
    match access.split_once(' ') {
        Some(("permission", permission)) => {
            Some(role.holds(permission.parse().expect("a declared permission")))
        }
        Some(("role", least)) => Some(role.is_at_least(least.parse().expect("a declared role"))),
        _ => None,
    }
}

on_both! {
    async fn every_route_lets_in_the_roles_that_it_declares_and_no_other(database: Database) {
        use heddle_core::Role;
        let server = Server::start(database).await;
        server.set_up().await;
        let operations = operations(&server).await;
        for role in [Role::OrgAdmin, Role::SiteAdmin, Role::Operator, Role::Viewer, Role::Guest] {
            let api = member(&server, role).await;
            for (method, path, access) in &operations {
                let Some(is_admitted) = admits(access, role) else { continue };
                let answer = api.send(method, &filled(path), Some(b"{\"surprise\": 1}".to_vec())).await;
                assert_eq!(answer.status == 403, !is_admitted, "{role}: {method} {path}: {}", answer.text);
                if !is_admitted {
                    assert_eq!(answer.error_type(), "permission_denied", "{role}: {method} {path}");
                    let named = access.split_once(' ').expect("a declared access").1;
                    assert!(answer.message().contains(named), "{role}: {method} {path}: {}", answer.text);
                }
            }
        }
    }
}
