//! Differences between the intent of a site and its limbs: events tell of them, and a policy has them staged.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Site, list, text};
use crate::support::on_both;

/// The events of VLANs, the oldest first.
async fn told(site: &Site) -> Vec<Value> {
    let page = site.api.get("/events?per_page=200&sort=occurred_at").await.expect_status(200).body;
    let is_of_vlans = |event: &Value| text(&event["event_type"]).starts_with("controller.vlan.");
    list(&page["items"]).into_iter().filter(is_of_vlans).collect()
}

/// Waits until the site was compared with all that was read before.
async fn compared(site: &Site) {
    let read_at = |one: &Value| one["last_sync_at"].as_str().map(str::to_owned);
    let controllers = site.api.get("/controllers").await.expect_status(200).body;
    let last = list(&controllers["items"]).iter().filter_map(read_at).max().expect("they were read");
    for _ in 0..600 {
        let brain = site.api.get(&format!("/sites/{}/brain", site.id)).await.expect_status(200).body;
        if brain["checked_at"].as_str().is_some_and(|at| at > last.as_str()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the site was not compared within a minute");
}

fn of_type(events: &[Value], name: &str) -> Vec<(String, u64)> {
    let meant = events.iter().filter(|event| event["event_type"] == name);
    let one =
        |event: &Value| (text(&event["payload"]["class"]), event["payload"]["vlan_id"].as_u64().unwrap());
    meant.map(one).collect()
}

on_both! {
    async fn a_difference_is_told_once_and_when_it_is_settled(database: Database) {
        let site = Site::start(database).await;
        let brain = json!({ "controller_id": site.firewall() });
        site.api.put(&format!("/sites/{}/brain", site.id), &brain).await.expect_status(200);
        compared(&site).await;
        let events = told(&site).await;
        let intent = events.iter().find(|event| event["event_type"] == "controller.vlan.intent_changed");
        assert_eq!(intent.expect("the intent is told of")["payload"]["added"], 2);
        let drifted = of_type(&events, "controller.vlan.drifted");
        let wanted = [("missing", 10), ("extra", 30), ("extra", 40), ("name_differs", 20)];
        assert_eq!(drifted.len(), wanted.len(), "{events:?}");
        assert!(wanted.iter().all(|(class, vlan)| drifted.contains(&((*class).to_owned(), *vlan))), "{drifted:?}");
        assert!(site.pending().await.is_empty(), "the policy only reports");
        site.read().await;
        compared(&site).await;
        assert_eq!(told(&site).await.len(), events.len(), "what stays is told once");

        let staged = site.post("/network/canonical-vlans/distribute", json!({})).await;
        site.apply(&text(&staged["changes"][0]["change_id"])).await;
        site.read().await;
        compared(&site).await;
        let settled = of_type(&told(&site).await, "controller.vlan.settled");
        assert_eq!(settled, [("missing".to_owned(), 10)]);
    }
}

on_both! {
    async fn a_policy_has_differences_staged_once_and_applies_nothing(database: Database) {
        let site = Site::start(database).await;
        let before = site.configurations();
        let brain = json!({ "controller_id": site.firewall(), "on_drift": "stage" });
        site.api.put(&format!("/sites/{}/brain", site.id), &brain).await.expect_status(200);
        let mut pending = Vec::new();
        for _ in 0..600 {
            pending = site.pending().await;
            if !pending.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(pending.len(), 1, "{pending:?}");
        assert_eq!((&pending[0]["feature"], &pending[0]["controller_id"]), (&json!("network.vlan"), &json!(site.switches())));
        assert!(text(&pending[0]["notes"]).contains("policy"), "{}", pending[0]);
        assert_eq!(site.configurations(), before, "nothing is applied");
        // What a person discards is not staged again.
        let path = format!("/gateway-vpn/changes/{}/discard", text(&pending[0]["id"]));
        site.api.post(&path, &json!({})).await.expect_status(200);
        site.read().await;
        compared(&site).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(site.pending().await.is_empty());
        let log = site.api.get("/audit?per_page=200").await.expect_status(200).body;
        let staged = list(&log["items"]).into_iter().find(|entry| entry["action"] == "change.staged");
        let staged = staged.expect("staging is in the log");
        assert_eq!(staged["detail"]["via"]["policy_of_site_id"], json!(site.id), "{staged}");
    }
}
