//! Every list: one envelope, its pages, and each word that it can be sorted by.

use serde_json::{Value, json};

use super::walk::filled;
use super::world::World;
use crate::support::{Contract, Operation, on_both};

/// What a list of the document answers, and its query.
fn is_list(contract: &Contract, operation: &Operation) -> bool {
    let answer = &operation.definition["responses"]["200"]["content"]["application/json"]["schema"];
    let properties = &contract.resolve(answer)["properties"];
    operation.method == "GET" && ["items", "page", "per_page"].iter().all(|name| !properties[name].is_null())
}

on_both! {
    async fn every_list_has_the_one_envelope_and_honours_its_page(database: Database) {
        let world = World::start(database).await;
        let contract = world.server.contract();
        let mut walked = 0;
        for operation in contract.operations().iter().filter(|operation| is_list(&contract, operation)) {
            let path = filled(operation, &|name| world.own[name].clone());
            let with = |query: &str| format!("{path}{}{query}", if path.contains('?') { "&" } else { "?" });
            // Runs say `limit`.
            let says_limit = operation.definition["parameters"].to_string().contains("\"limit\"");
            let size = if says_limit { "limit" } else { "per_page" };
            let first = world.admin.get(&with(&format!("page=1&{size}=1"))).await;
            if matches!(first.status, 404 | 502 | 504) {
                // Of a controller that is not there.
                continue;
            }
            let first = first.expect_status(200).body;
            assert_eq!((&first["page"], &first["per_page"]), (&json!(1), &json!(1)), "{path}");
            let items = first["items"].as_array().expect("a list");
            assert!(items.len() <= 1 && first["total"].as_u64() >= Some(items.len() as u64), "{path}: {first}");
            if first["total"].as_u64() > Some(1) {
                let second = world.admin.get(&with(&format!("page=2&{size}=1"))).await.expect_status(200).body;
                assert_eq!(second["page"], 2, "{path}");
                assert!(second["items"][0] != first["items"][0], "{path}: a page is not the one before");
            }
            let wrong = ["page=0".to_owned(), format!("{size}=0"), format!("{size}=100000"), "per_pgae=1".to_owned()];
            for wrong in &wrong {
                let refused = world.admin.get(&with(wrong)).await.expect_status(422);
                let field = refused.body["error"]["details"][0]["field"].as_str().unwrap_or_default();
                    let field = field.trim_start_matches('/').to_owned();
                let is_named = wrong.starts_with(&field) || (says_limit && field == "per_page");
                assert!(is_named && !field.is_empty(), "{path}: {}", refused.text);
            }
            walked += 1;
        }
        assert!(walked > 15, "{walked} lists were walked");
    }
}

/// Words that a list can be sorted by, as its document says.
fn words(operation: &Operation) -> Vec<String> {
    let parameters = operation.definition["parameters"].as_array().expect("a list has parameters");
    let sort = parameters.iter().find(|parameter| parameter["name"] == "sort");
    let words = sort.and_then(|sort| sort["schema"]["enum"].as_array());
    words.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Lists that have one order: the sites below a controller, which are few, and tables of VLANs by their numbers.
const ONE_ORDER: [&str; 3] =
    ["/controllers/{controller_id}/sites", "/network/vlans", "/network/vlans/truth-map"];

async fn values(world: &World, path: &str, sort: &str) -> Vec<Value> {
    let list = world.admin.get(path).await.expect_status(200).body;
    let items = list["items"].as_array().expect("a list");
    // Built-in roles come first, whatever the order of the others.
    let sorted = items.iter().filter(|item| item["is_builtin"] != true);
    sorted.map(|item| item[sort.trim_start_matches('-')].clone()).collect()
}

/// Words that have a rank, from the least to the greatest.
const RANKED: &[(&str, &[&str])] = &[
    ("role", &["guest", "viewer", "operator", "site_admin", "org_admin", "super_admin"]),
    ("tier", &["free", "standard", "enterprise"]),
    ("level", &["read", "write", "admin"]),
];

/// Where values stand is known of times and numbers; of words, that one direction is the other one turned round.
fn check_order(told: &str, ascending: &[Value], descending: &[Value]) {
    let there =
        |values: &[Value]| values.iter().filter(|value| !value.is_null()).cloned().collect::<Vec<_>>();
    for values in [ascending, descending] {
        let behind = values.iter().skip_while(|value| !value.is_null());
        assert!(
            behind.clone().all(Value::is_null),
            "{told}: what is not there stands at the end: {values:?}"
        );
    }
    let (up, mut down) = (there(ascending), there(descending));
    down.reverse();
    assert_eq!(up, down, "{told}: one direction is the other one turned round");
    let is_exact = told.ends_with("_at") || up.iter().all(Value::is_number);
    if let Some((_, ranks)) = RANKED.iter().find(|(word, _)| told.ends_with(&format!(" {word}"))) {
        let rank = |value: &Value| ranks.iter().position(|known| value == known);
        assert!(up.is_sorted_by_key(rank), "{told}: {up:?}");
    }
    if is_exact {
        let key = |value: &Value| (value.as_i64(), value.as_str().map(str::to_owned));
        assert!(up.is_sorted_by_key(key), "{told}: {up:?}");
    }
}

on_both! {
    async fn every_list_is_sorted_by_each_of_its_words(database: Database) {
        let world = World::start(database).await;
        let contract = world.server.contract();
        let (mut walked, mut compared) = (0, 0);
        for operation in contract.operations().iter().filter(|operation| is_list(&contract, operation)) {
            let words = words(operation);
            if ONE_ORDER.contains(&operation.path.as_str()) {
                continue;
            }
            assert!(!words.is_empty(), "{} has no sort", operation.path);
            let path = filled(operation, &|name| world.own[name].clone());
            let with = |word: &str| format!("{path}{}sort={word}", if path.contains('?') { "&" } else { "?" });
            for word in words.iter().filter(|word| !word.starts_with('-')) {
                let ascending = values(&world, &with(word), word).await;
                let descending = values(&world, &with(&format!("-{word}")), word).await;
                // Rows that the walk itself causes, such as lines of the log, come to light between the two.
                let is_still = ascending.len() == descending.len() && ascending.len() < 50;
                if is_still && ascending.iter().any(|value| !value.is_null()) {
                    check_order(&format!("{path} by {word}"), &ascending, &descending);
                    compared += 1;
                }
            }
            let refused = world.admin.get(&with("colour")).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], "/sort", "{}", refused.text);
            assert!(refused.text.contains(&format!("'{}'", words[0])), "{path}: {}", refused.text);
            walked += 1;
        }
        assert!(walked > 20 && compared > 30, "{walked} lists were walked, {compared} orders compared");
    }
}

on_both! {
    async fn a_walk_can_begin_at_the_oldest(database: Database) {
        let world = World::start(database).await;
        let ids = async |sort: &str| {
            let (mut ids, mut place) = (Vec::new(), String::new());
            loop {
                let path = format!("/audit?per_page=3&until={}&sort={sort}{place}", "2100-01-01T00:00:00Z");
                let page = world.admin.get(&path).await.expect_status(200).body;
                let items = page["items"].as_array().expect("a list");
                ids.extend(items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()));
                match page["next_cursor"].as_str() {
                    Some(cursor) => place = format!("&cursor={cursor}"),
                    None => break ids,
                }
            }
        };
        let (oldest, mut newest) = (ids("occurred_at").await, ids("-occurred_at").await);
        newest.reverse();
        assert_eq!(oldest, newest);
        let different: std::collections::BTreeSet<_> = oldest.iter().collect();
        assert!(different.len() == oldest.len() && oldest.len() > 3, "{oldest:?}");
        // The cursor of a walk knows its direction.
        let page = world.admin.get("/audit?per_page=2&sort=occurred_at").await.expect_status(200).body;
        let cursor = page["next_cursor"].as_str().expect("there is more");
        let next = world.admin.get(&format!("/audit?per_page=2&cursor={cursor}")).await.expect_status(200).body;
        assert_eq!(next["items"][0]["id"], oldest[2], "{next}");
        let other = format!("/audit?cursor={cursor}&sort=-occurred_at");
        let other = world.admin.get(&other).await.expect_status(422);
        assert_eq!(other.body["error"]["details"][0]["field"], json!("/sort"), "{}", other.text);
        let stretch = world.admin.get("/events?after_seq=0&sort=occurred_at").await.expect_status(422);
        assert_eq!(stretch.body["error"]["details"][0]["field"], json!("/sort"), "{}", stretch.text);
    }
}
