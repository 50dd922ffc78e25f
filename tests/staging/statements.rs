//! How often staging asks the database: over a network each statement is a round trip, and an organization's other writers wait
//! for some of them.

use serde_json::json;

use super::Lab;
use crate::support::on_both;
use crate::support::trace::{counted_request, statements};

/// Stages until no list of the site is read meanwhile: the graph of the site is made anew behind each reading.
const ATTEMPTS: usize = 20;
/// The controller with its sites; how the lists were read that the graph of the site is made of; then in one transaction the lock
/// of the controller, the change, the head of the audit log, the entry, the event, and the changes that conflict.
const STATEMENTS_MAX: usize = 8;
/// Loads the caller, unless that is known; ends the transaction, where the driver tells of it.
const BESIDE: [&str; 3] = ["SELECT u.id AS user_id", "BEGIN", "COMMIT"];

on_both! {
    async fn a_change_is_staged_with_few_statements(database: Database) {
        let lab = Lab::start(database).await;
        // The first one logs in at the router.
        lab.stage_rule("First").await;
        let mut seen = Vec::new();
        for number in 0..ATTEMPTS {
            seen = statements_of(&lab, number).await;
            if seen.len() <= STATEMENTS_MAX {
                break;
            }
        }
        assert!((1..=STATEMENTS_MAX).contains(&seen.len()), "{seen:#?}");
    }
}

async fn statements_of(lab: &Lab, number: usize) -> Vec<String> {
    let request = counted_request();
    let path = format!("{}/changes/openwrt.firewall.rule?operation=create", lab.area("firewall"));
    let rule = json!({
        "name": format!("Rule-{number}"), "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
    });
    let counted = lab.api.with_request_id(&request);
    counted.post(&path, &json!({ "payload": rule })).await.expect_status(201);
    // What SQLite's own thread logs can come after the answer.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let mut seen = statements(&request);
    seen.retain(|statement| !BESIDE.iter().any(|beside| statement.starts_with(beside)));
    seen
}
