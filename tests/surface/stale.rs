//! `If-Match` at every PATCH, field by field: what was edited since is 412, whether an answer shows it or not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use super::snapshots::{check, table};
use super::world::World;
use crate::fixtures::{FIXTURES, Subject};
use crate::support::trace::{counted_request, statements};
use crate::support::{Api, Database, on_both};

/// With a value for each field of each PATCH. A field that is missing here fails the test.
async fn subjects(world: &World) -> Vec<Subject> {
    let mut all = Vec::new();
    for fixture in FIXTURES {
        all.extend(fixture.edits(&world.admin, &world.own, &world.foreign).await);
    }
    all
}

async fn seen(api: &Api, url: &str) -> String {
    api.get(url).await.expect_status(200).header("etag").to_owned()
}

on_both! {
    async fn a_field_that_was_edited_since_it_was_read_is_not_overwritten(database: Database) {
        let world = World::start(database).await;
        let contract = world.server.contract();
        let mut edited: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut wrong = Vec::new();
        for subject in subjects(&world).await {
            let url = subject.url();
            for (field, value) in subject.fields.as_object().unwrap() {
                let tag = seen(&world.admin, &url).await;
                let body = json!({ field: value });
                let tagged = world.admin.with("if-match", &tag);
                let first = tagged.patch(&url, &body).await;
                edited.entry(subject.path).or_default().insert(field.clone());
                if first.status != 200 {
                    wrong.push(format!("{url} {body}: {}", first.text));
                    continue;
                }
                let now = seen(&world.admin, &url).await;
                let stale = [tagged.patch(&url, &body).await.status, tagged.delete(&url).await.status];
                if first.header("etag") != now || now == tag || stale != [412, 412] {
                    wrong.push(format!("{url} {body}: {tag}, {now}, {stale:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        for operation in contract.operations().iter().filter(|operation| operation.method == "PATCH") {
            let schema = &operation.definition["requestBody"]["content"]["application/json"]["schema"];
            let fields: BTreeSet<String> =
                contract.resolve(schema)["properties"].as_object().unwrap().keys().cloned().collect();
            let known = edited.remove(operation.path.as_str());
            assert_eq!(known.as_ref(), Some(&fields), "teach the fixture of its feature (tests/fixtures) the fields of PATCH {}", operation.path);
        }
        assert!(edited.is_empty(), "no such PATCH: {edited:?}");
    }
}

on_both! {
    async fn a_tag_stays_while_an_object_is_only_measured_and_when_its_creation_is_sent_again(database: Database) {
        let world = World::start(database).await;
        let keyed = world.admin.with("idempotency-key", "once");
        let site = json!({ "name": "Branch" });
        let made = keyed.post("/sites", &site).await.expect_status(201);
        let again = keyed.post("/sites", &site).await.expect_status(201);
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(made.header("etag"), again.header("etag"));
        let url = format!("/sites/{}", made.body["id"].as_str().unwrap());
        assert_eq!(seen(&world.admin, &url).await, made.header("etag"));
        let controller = json!({
            "name": "Counted", "site_id": made.body["id"], "vendor": "openwrt", "url": "http://127.0.0.1:9",
            "credential_id": world.own["credential_id"],
        });
        world.admin.post("/controllers", &controller).await.expect_status(201);
        let counted = world.admin.get(&url).await.expect_status(200);
        assert_eq!(counted.body["controller_count"].as_i64(), Some(1));
        assert_eq!(counted.header("etag"), made.header("etag"));
        // What is asked for and what is tried is no edit either.
        let controller = format!("/controllers/{}", world.own["controller_id"]);
        let before = world.admin.get(&controller).await.expect_status(200);
        world.admin.post(&format!("{controller}/sync"), &json!({})).await.expect_status(202);
        assert_eq!(seen(&world.admin, &controller).await, before.header("etag"));
        let user = format!("/users/{}", world.own["user_id"]);
        let before = world.admin.get(&user).await.expect_status(200);
        let wrong = json!({ "login": before.body["username"], "password": "wrong" });
        world.server.nobody().post("/auth/login", &wrong).await.expect_status(401);
        assert_eq!(seen(&world.admin, &user).await, before.header("etag"));
    }
}

/// Every edit, with the statements that it takes: a change of the numbers shows in review.
#[tokio::test]
async fn how_often_an_edit_asks_the_database() {
    let world = World::start(Database::sqlite()).await;
    let mut rows = Vec::new();
    for subject in subjects(&world).await {
        let (field, value) = subject.fields.as_object().unwrap().iter().next().unwrap();
        // The caller is known: what is counted is the edit.
        seen(&world.admin, &subject.url()).await;
        let request = counted_request();
        let body = json!({ field: value });
        world.admin.with_request_id(&request).patch(&subject.url(), &body).await.expect_status(200);
        // What SQLite's own thread logs can come after the answer.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let edit = statements(&request);
        let is_own = |statement: &&String| !["BEGIN", "COMMIT"].iter().any(|end| statement.starts_with(end));
        let own = edit.iter().filter(is_own);
        rows.push(vec![subject.path.to_owned(), field.clone(), own.count().to_string()]);
    }
    check("edits.txt", &table(&rows));
}
