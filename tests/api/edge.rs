//! What every request meets.

use serde_json::json;

use crate::support::{Server, on_both};

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
