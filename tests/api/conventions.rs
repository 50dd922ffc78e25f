//! What holds for every object: entity tags, and requests that may be sent twice.

use serde_json::json;

use crate::support::{Server, on_both};

on_both! {
    async fn an_object_is_changed_and_removed_only_as_it_was_seen(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let created = api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201);
        let path = format!("/sites/{}", created.body["id"].as_str().unwrap());
        assert_eq!(created.header("location"), format!("/api/v1{path}"));
        let seen = api.get(&path).await.expect_status(200).header("etag").to_owned();
        assert_eq!(created.header("etag"), seen);
        let changed = api.with("if-match", &seen).patch(&path, &json!({ "name": "Branch 2" })).await.expect_status(200);
        assert_ne!(changed.header("etag"), seen);
        let late = api.with("if-match", &seen).patch(&path, &json!({ "name": "Branch 3" })).await.expect_status(412);
        assert_eq!(late.error_type(), "precondition_failed");
        api.with("if-match", &seen).delete(&path).await.expect_status(412);
        assert_eq!(api.get(&path).await.expect_status(200).body["name"], "Branch 2");
        api.with("if-match", &format!("W/{}", changed.header("etag"))).delete(&path).await.expect_status(412);
        api.with("if-match", &format!("\"x\", {}", changed.header("etag"))).delete(&path).await.expect_status(204);
    }
}

on_both! {
    async fn of_two_who_saw_the_same_one_changes(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let site = api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201);
        let path = format!("/sites/{}", site.body["id"].as_str().unwrap());
        let seen = api.with("if-match", site.header("etag"));
        let (one, two) = (json!({ "name": "one" }), json!({ "name": "two" }));
        let (one, two) = tokio::join!(seen.patch(&path, &one), seen.patch(&path, &two));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412]);
    }
}

on_both! {
    async fn a_request_with_a_key_creates_once(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let keyed = api.with("idempotency-key", "2f1c");
        let body = json!({ "name": "Branch" });
        let first = keyed.post("/sites", &body).await.expect_status(201);
        assert_eq!(first.header("idempotency-replayed"), "");
        api.patch(&format!("/sites/{}", first.body["id"].as_str().unwrap()), &json!({ "name": "Renamed" })).await;
        let again = keyed.post("/sites", &body).await.expect_status(201);
        assert_eq!((&again.text, again.header("location"), again.header("etag")),
            (&first.text, first.header("location"), first.header("etag")));
        assert_eq!(again.header("idempotency-replayed"), "true");
        let other = keyed.post("/sites", &json!({ "name": "Other" })).await.expect_status(422);
        assert_eq!(other.body["error"]["details"][0]["type"], "idempotency_key_reused");
        keyed.post("/credentials", &json!({ "name": "Branch", "password": "x" })).await.expect_status(422);
        keyed.post("/sites", &json!({})).await.expect_status(422);
        api.with("idempotency-key", "").post("/sites", &body).await.expect_status(422);
        assert_eq!(api.get("/sites").await.body["total"], 2, "the head office and the branch");
        server.running().app.clock.advance(chrono::TimeDelta::hours(25));
        let api = server.log_in("ada").await;
        api.with("idempotency-key", "2f1c").post("/sites", &json!({ "name": "Next day" })).await.expect_status(201);
    }
}

on_both! {
    async fn a_failed_request_may_be_tried_again_under_its_key(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let taken = api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body;
        let keyed = api.with("idempotency-key", "k");
        keyed.post("/sites", &json!({ "name": "Branch" })).await.expect_status(409);
        api.delete(&format!("/sites/{}", taken["id"].as_str().unwrap())).await.expect_status(204);
        keyed.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201);
    }
}

on_both! {
    async fn of_many_at_once_one_creates_and_all_get_its_answer(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let keyed = api.with("idempotency-key", "race");
        let body = json!({ "name": "Branch" });
        let answers = futures::future::join_all((0..12).map(|_| keyed.post("/sites", &body))).await;
        for answer in &answers {
            assert_eq!((answer.status, &answer.text), (201, &answers[0].text));
        }
        assert_eq!(answers.iter().filter(|answer| answer.header("idempotency-replayed").is_empty()).count(), 1);
        assert_eq!(api.get("/sites").await.body["total"], 2);
    }
}

on_both! {
    async fn a_secret_is_shown_once_also_under_an_idempotency_key(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let keyed = api.with("idempotency-key", "key-once");
        let first = keyed.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201);
        let again = keyed.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201);
        assert_eq!((&again.body["id"], again.body.get("api_key")), (&first.body["id"], None));
        let mut tx = server.running().app.db.read().await.unwrap();
        let ada = heddle_store::users::find_by_login(&mut tx, "ada").await.unwrap().unwrap().user;
        let kept = heddle_store::idempotency::find(&mut tx, ada.id, "key-once").await.unwrap().unwrap();
        let secret = first.body["api_key"].as_str().unwrap().as_bytes();
        assert!(!kept.response.windows(secret.len()).any(|window| window == secret));
    }
}

on_both! {
    async fn the_audit_log_tells_what_an_update_changed_and_no_secret(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let created = |answer: crate::support::Answer| answer.body["id"].as_str().unwrap().to_owned();
        let site = created(api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201));
        api.patch(&format!("/sites/{site}"), &json!({ "name": "Branch 2" })).await.expect_status(200);
        let told = api.get(&format!("/audit?target_id={site}")).await.expect_status(200).body["items"][0].clone();
        assert_eq!(told["action"], "site.updated", "{told}");
        assert_eq!(told["detail"]["before"], json!({ "name": "Branch" }), "{told}");
        assert_eq!(told["detail"]["after"], json!({ "name": "Branch 2" }), "{told}");
        assert!(told["detail"].get("slug").is_none(), "a field that was not given is not there: {told}");

        let secret = json!({ "name": "Routers", "username": "root", "password": "first-s3cret" });
        let id = created(api.post("/credentials", &secret).await.expect_status(201));
        let change = json!({ "name": "Switches", "password": "second-s3cret" });
        api.patch(&format!("/credentials/{id}"), &change).await.expect_status(200);
        let told = api.get(&format!("/audit?target_id={id}")).await.expect_status(200);
        assert!(!told.text.contains("s3cret"), "{}", told.text);
        let told = &told.body["items"][0]["detail"];
        assert_eq!((&told["before"]["name"], &told["after"]["name"]), (&json!("Routers"), &json!("Switches")));
    }
}
