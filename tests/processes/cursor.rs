//! Lists that grow without end, walked by cursor while they grow.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Api, Server, on_both};

/// Ids of all rows, in the order in which the walk meets them.
async fn walk(api: &Api, path: &str, per_page: u32) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let behind = if cursor.is_empty() { String::new() } else { format!("&cursor={cursor}") };
        let page = api.get(&format!("{path}per_page={per_page}{behind}")).await.expect_status(200).body;
        assert_eq!(page["page"].is_null(), !cursor.is_empty(), "{page}");
        assert_eq!(page["total_is_capped"], false);
        let items = page["items"].as_array().expect("rows");
        ids.extend(items.iter().map(|row| row["id"].as_str().expect("an id").to_owned()));
        // Audited, with an event of no user: both lists grow at their new end.
        api.post("/sites", &json!({ "name": format!("Site {}", ids.len()) })).await;
        match &page["next_cursor"] {
            Value::String(next) => cursor.clone_from(next),
            _ => return ids,
        }
    }
}

#[track_caller]
fn each_once(ids: &[String]) {
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "no row comes twice");
}

on_both! {
    async fn the_audit_log_is_walked_while_it_grows(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        for n in 0..7 {
            api.post("/sites", &json!({ "name": format!("First {n}") })).await.expect_status(201);
        }
        for per_page in [1, 3, 200] {
            let before = api.get("/audit?per_page=200").await.expect_status(200).body;
            let expected: Vec<&str> = before["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
            let walked = walk(&api, "/audit?", per_page).await;
            each_once(&walked);
            assert_eq!(walked, expected, "{per_page} per page");
        }
        for bad in ["cursor=abc", "cursor=", "per_page=0", "per_page=201"] {
            api.get(&format!("/audit?{bad}")).await.expect_status(422);
        }
        let next = api.get("/audit?per_page=1").await.body["next_cursor"].as_str().unwrap().to_owned();
        for list in ["/audit", "/events"] {
            let both = api.get(&format!("{list}?page=1&cursor={next}")).await.expect_status(422);
            assert!(both.text.contains("exclude each other"), "{}", both.text);
            let damaged = api.get(&format!("{list}?cursor={}", &next[1..])).await.expect_status(422);
            assert!(damaged.text.contains("next_cursor"), "{}", damaged.text);
        }
    }
}

on_both! {
    async fn events_are_listed_by_type_and_organization(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let app = &server.running().app;
        let me = api.get("/auth/me").await.expect_status(200).body;
        let org: heddle_core::OrgId = serde_json::from_value(me["organization_id"].clone()).unwrap();
        let mut tx = app.db.write().await.unwrap();
        let types: Vec<_> = crate::support::declared().events.iter().collect();
        let news: Vec<_> = (0..40).map(|n| heddle_core::event::NewEvent {
            event_type: types[n % types.len()],
            org_id: org,
            site_id: None,
            controller_id: None,
            device_id: None,
            causation_id: None,
            run_id: None,
            payload: json!({ "password": "hunter2" }),
        }).collect();
        heddle_store::events::append_all(&mut tx, org, &news, &app.clock).await.unwrap();
        tx.commit().await.unwrap();
        let walked = walk(&api, "/events?", 7).await;
        each_once(&walked);
        assert_eq!(walked.len(), 40);
        let page = api.get("/events?event_type=device.*&per_page=200").await.expect_status(200);
        assert!(!page.text.contains("hunter2"), "{}", page.text);
        let items = page.body["items"].as_array().unwrap().clone();
        assert!(!items.is_empty() && items.iter().all(|e| e["event_type"].as_str().unwrap().starts_with("device.")));
        assert_eq!(page.body["next_cursor"], Value::Null);
        let at = items[0]["occurred_at"].as_str().unwrap();
        for (query, expected) in [
            (format!("since={at}"), 40),
            (format!("until={at}"), 0),
            (format!("organization_id={}", me["organization_id"].as_str().unwrap()), 40),
            (format!("site_id={}", me["organization_id"].as_str().unwrap()), 0),
        ] {
            let page = api.get(&format!("/events?{query}")).await.expect_status(200).body;
            assert_eq!(page["total"], expected, "{query}: {page}");
        }
        for bad in ["event_type=", "event_type=device.nothing", "since=yesterday", "unknown=1"] {
            api.get(&format!("/events?{bad}")).await.expect_status(422);
        }
        server.nobody().get("/events").await.expect_status(401);
    }
}

on_both! {
    async fn the_chain_is_validated_from_where_it_was_left(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let all = api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!((&all["valid"], &all["is_complete"], &all["head_matches"]), (&json!(true), &json!(true), &json!(true)), "{all}");
        let last = all["checked_to_seq"].as_i64().unwrap();
        assert_eq!(all["entries"], last);
        let rest = api.get(&format!("/audit/validate?after_seq={last}")).await.expect_status(200).body;
        assert_eq!((&rest["valid"], &rest["entries"], &rest["is_complete"]), (&json!(true), &json!(0), &json!(true)), "{rest}");
        api.get("/audit/validate?after_seq=-1").await.expect_status(422);
        api.get("/audit/validate?after_seq=99999").await.expect_status(422);
    }
}
