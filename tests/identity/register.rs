//! Founding an organization of one's own, where the service lets people do so.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::{Options, PASSWORD, Server, on_both};

fn allowed() -> Options {
    Options::default().with("ALLOW_REGISTRATION", "true")
}

fn registration(name: &str, organization: &str) -> Value {
    json!({
        "username": name,
        "email": format!("{name}@{organization}.test"),
        "password": PASSWORD,
        "full_name": "A Person",
        "organization": { "name": organization },
    })
}

on_both! {
    async fn nobody_registers_unless_the_service_allows_it(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        for body in [registration("grace", "umbrella"), json!({}), json!({ "surprise": 1 })] {
            let refused = server.nobody().post("/auth/register", &body).await.expect_status(403);
            assert_eq!(refused.error_type(), "registration_disabled");
        }
    }
}

on_both! {
    async fn who_registers_has_an_organization_of_their_own_and_no_other(database: Database) {
        let server = Server::start_with(database, allowed()).await;
        let operator = server.set_up().await;
        let answer = server.nobody().post("/auth/register", &registration("grace", "umbrella")).await.expect_status(201);
        let (organization, user) = (&answer.body["organization"], &answer.body["user"]);
        assert_eq!(user["role"], "org_admin");
        assert_eq!(user["organization_id"], organization["id"]);
        assert_eq!((&organization["slug"], &organization["tier"]), (&json!("umbrella"), &json!("free")));
        let path = format!("/organizations/{}", organization["id"].as_str().unwrap());
        assert_eq!(answer.header("location"), format!("/api/v1{path}"));
        assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 3);
        assert!(!answer.text.contains("password"), "{}", answer.text);

        let grace = server.nobody().with_token(answer.body["access_token"].as_str().unwrap());
        let me = grace.get("/auth/me").await.expect_status(200).body;
        assert_eq!(me["organization"]["name"], "umbrella");
        assert_eq!(grace.get("/users").await.expect_status(200).body["total"], 1);
        assert_eq!(grace.get("/organizations").await.expect_status(200).body["total"], 1);
        grace.get(&path).await.expect_status(200);
        let first = operator.get("/auth/me").await.expect_status(200).body;
        let theirs = format!("/organizations/{}", first["organization_id"].as_str().unwrap());
        grace.get(&theirs).await.expect_status(404);
        grace.post("/sites", &json!({ "name": "Plant" })).await.expect_status(201);
        let refresh = json!({ "refresh_token": answer.body["refresh_token"] });
        server.nobody().post("/auth/refresh", &refresh).await.expect_status(200);
        server.log_in("grace@UMBRELLA.test").await.get("/auth/me").await.expect_status(200);

        let audit = grace.get("/audit").await.expect_status(200).body;
        let entry = audit["items"].as_array().unwrap().iter().find(|e| e["action"] == "organization.registered");
        assert_eq!(entry.expect("it is in the audit log")["actor_id"], user["id"]);
        let events = grace.get("/events").await.expect_status(200);
        assert!(events.text.contains("user.created"), "{}", events.text);
    }
}

on_both! {
    async fn the_setup_comes_first(database: Database) {
        let server = Server::start_with(database, allowed()).await;
        let refused = server.nobody().post("/auth/register", &registration("grace", "umbrella")).await.expect_status(409);
        assert_eq!(refused.error_type(), "setup_required");
        server.set_up().await;
        server.nobody().post("/auth/register", &registration("grace", "umbrella")).await.expect_status(201);
    }
}

on_both! {
    async fn what_is_taken_is_refused_and_nothing_is_left_behind(database: Database) {
        let server = Server::start_with(database, allowed()).await;
        let operator = server.set_up().await;
        let nobody = server.nobody();
        let mut taken = registration("grace", "umbrella");
        taken["username"] = json!("ADA");
        let refused = nobody.post("/auth/register", &taken).await.expect_status(409);
        assert!(refused.message().contains("user name"), "{}", refused.text);
        let mut taken = registration("grace", "umbrella");
        taken["email"] = json!("Ada@ACME.test");
        let refused = nobody.post("/auth/register", &taken).await.expect_status(409);
        assert!(refused.message().contains("email"), "{}", refused.text);
        let mut taken = registration("grace", "umbrella");
        taken["organization"]["slug"] = json!("acme");
        let refused = nobody.post("/auth/register", &taken).await.expect_status(409);
        assert!(refused.message().contains("slug"), "{}", refused.text);
        assert_eq!(operator.get("/organizations").await.expect_status(200).body["total"], 1);
        assert_eq!(operator.get("/users").await.expect_status(200).body["total"], 1);
        nobody.post("/auth/register", &registration("grace", "umbrella")).await.expect_status(201);
    }
}

on_both! {
    async fn nobody_registers_into_an_organization_that_is_there(database: Database) {
        let server = Server::start_with(database, allowed()).await;
        let operator = server.set_up().await;
        let me = operator.get("/auth/me").await.expect_status(200).body;
        for (field, value) in [("organization_id", me["organization_id"].clone()), ("role", json!("super_admin"))] {
            let mut body = registration("grace", "umbrella");
            body[field] = value;
            let refused = server.nobody().post("/auth/register", &body).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], crate::support::at(field));
        }
        let mut body = registration("grace", "umbrella");
        body["organization"] = json!({ "id": me["organization_id"] });
        server.nobody().post("/auth/register", &body).await.expect_status(422);
    }
}

on_both! {
    async fn of_two_who_want_the_same_name_at_once_one_gets_it(database: Database) {
        let server = Server::start_with(database, allowed()).await;
        server.set_up().await;
        let nobody = server.nobody();
        let body = registration("grace", "umbrella");
        let answers = futures::future::join_all((0..4).map(|_| nobody.post("/auth/register", &body))).await;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409, 409]);
    }
}

on_both! {
    async fn an_address_registers_five_times_an_hour(database: Database) {
        let server = Server::start_with(database, allowed()).await;
        server.set_up().await;
        let api = server.nobody().at_ip("203.0.113.7");
        for number in 0..5 {
            if number == 3 {
                // Past the limit of the minute.
                server.running().app.clock.advance(TimeDelta::minutes(2));
            }
            let body = registration(&format!("user-{number}"), &format!("org-{number}"));
            api.post("/auth/register", &body).await.expect_status(201);
        }
        server.running().app.clock.advance(TimeDelta::minutes(2));
        // A body that does not fit is refused without being counted.
        api.post("/auth/register", &json!({ "username": "x" })).await.expect_status(422);
        let refused = api.post("/auth/register", &registration("late", "late")).await.expect_status(429);
        assert_eq!(refused.body, json!({ "detail": "Rate limit exceeded", "retry_after": 3600 }));
        assert_eq!(refused.header("retry-after"), "3600");
        server.nobody().at_ip("203.0.113.8").post("/auth/register", &registration("late", "late")).await.expect_status(201);
    }
}
