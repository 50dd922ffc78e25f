//! Events read by their numbers.

use serde_json::{Value, json};

use super::ingest;
use crate::support::{Server, on_both};

fn numbers(page: &Value) -> Vec<i64> {
    page["items"].as_array().unwrap().iter().map(|event| event["seq"].as_i64().unwrap()).collect()
}

on_both! {
    async fn a_reader_that_goes_on_behind_the_last_number_misses_nothing(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let before = api.get("/events?per_page=1").await.expect_status(200).body["items"][0]["seq"].as_i64();
        let mut at = before.unwrap_or(0);
        let mut expected = Vec::new();
        for n in 0..7 {
            ingest(&api, &format!("n{n}")).await;
            expected.push(at + 1 + n);
        }
        let mut seen = Vec::new();
        loop {
            let page = api.get(&format!("/events?after_seq={at}&per_page=3")).await.expect_status(200).body;
            let found = numbers(&page);
            assert_eq!(page["next_cursor"], Value::Null);
            let Some(last) = found.last() else { break };
            at = *last;
            seen.extend(found);
        }
        assert_eq!(seen, expected);
        let range = format!("/events?after_seq={}&until_seq={}", expected[1] - 1, expected[3]);
        assert_eq!(numbers(&api.get(&range).await.expect_status(200).body), expected[1..=3]);
        let filtered = format!("/events?after_seq={}&event_type=device.*", expected[0]);
        assert!(numbers(&api.get(&filtered).await.expect_status(200).body).is_empty());
        let newest = api.get("/events?per_page=2").await.expect_status(200).body;
        assert_eq!(numbers(&newest), [expected[6], expected[5]]);
        let cursor = newest["next_cursor"].as_str().unwrap();
        for (query, field) in [
            (format!("after_seq=1&cursor={cursor}"), "cursor"),
            ("after_seq=-1".to_owned(), "after_seq"),
            ("until_seq=-1".to_owned(), "until_seq"),
            ("after_seq=x".to_owned(), "after_seq"),
        ] {
            let refused = api.get(&format!("/events?{query}")).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], crate::support::at(field), "{}", refused.text);
        }
    }
}

on_both! {
    async fn numbers_are_those_of_one_organization(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        ingest(&api, "own").await;
        let other = api.post("/organizations", &json!({ "name": "Other" })).await.expect_status(201).body;
        let other = other["id"].as_str().unwrap();
        let body = json!({
            "username": "bob", "email": "bob@other.test", "password": crate::support::PASSWORD, "role": "org_admin",
            "organization_id": other,
        });
        api.post("/users", &body).await.expect_status(201);
        let bob = server.log_in("bob").await;
        let theirs = ingest(&bob, "theirs").await;
        let own = api.get("/events?after_seq=0").await.expect_status(200).body;
        assert!(own["items"].as_array().unwrap().iter().all(|event| event["organization_id"] != other));
        let named = api.get(&format!("/events?after_seq=0&organization_id={other}")).await.expect_status(200).body;
        let found = named["items"].as_array().unwrap();
        assert!(!found.is_empty() && found.iter().all(|event| event["organization_id"] == other));
        // By REST an administrator reads all events of the own organization, and of no other.
        bob.get(&format!("/events/{}", theirs["event_id"].as_str().unwrap())).await.expect_status(200);
        let mine = own["items"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
        bob.get(&format!("/events/{mine}")).await.expect_status(404);
        let all = bob.get("/events?event_type=ingest.*").await.expect_status(200).body;
        assert_eq!(all["total"], 1, "{all}");
        for wrong in ["dev*", "device.ofline", "ingest.nothing"] {
            let refused = api.get(&format!("/events?event_type={wrong}")).await.expect_status(422);
            assert!(refused.text.contains("covers no event type"), "{}", refused.text);
        }
        api.get(&format!("/events/{}", theirs["event_id"].as_str().unwrap())).await.expect_status(200);
    }
}
