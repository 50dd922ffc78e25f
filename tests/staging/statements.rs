//! How often staging asks the database: over a network each statement is a round trip, and an organization's other writers wait
//! for some of them.

use serde_json::json;

use super::Lab;
use crate::support::on_both;
use crate::support::trace::{counted_request, statements};

/// The controller with its sites; then in one transaction the lock of the controller, the change, the head of the audit log, the
/// entry, the event, and the changes that conflict.
const STATEMENTS_MAX: usize = 7;
/// Loads the caller, unless that is known; ends the transaction, where the driver tells of it.
const BESIDE: [&str; 3] = ["SELECT u.id AS user_id", "BEGIN", "COMMIT"];

on_both! {
    async fn a_change_is_staged_with_few_statements(database: Database) {
        let lab = Lab::start(database).await;
        // The first one logs in at the router.
        lab.stage_rule("First").await;
        let request = counted_request();
        let path = format!("{}/changes/openwrt.firewall.rule?operation=create", lab.area("firewall"));
        let rule = json!({ "name": "Second", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" });
        let counted = lab.api.with_request_id(&request);
        counted.post(&path, &json!({ "payload": rule })).await.expect_status(201);
        // What SQLite's own thread logs can come after the answer.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let mut seen = statements(&request);
        seen.retain(|statement| !BESIDE.iter().any(|beside| statement.starts_with(beside)));
        assert!((1..=STATEMENTS_MAX).contains(&seen.len()), "{seen:#?}");
    }
}
