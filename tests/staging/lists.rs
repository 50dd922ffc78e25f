//! The list of an organization's changes, live reads, and messages that say what would work.

use serde_json::{Value, json};

use super::Lab;
use crate::support::on_both;

on_both! {
    async fn an_organizations_changes_are_listed_filtered_and_counted(database: Database) {
        let lab = Lab::start(database).await;
        let (one, two) = (lab.stage_rule("Listed-1").await, lab.stage_rule("Listed-2").await);
        lab.api.post(&Lab::path(&one, "discard"), &json!({})).await.expect_status(200);
        let list = |query: &str| {
            let path = format!("/gateway-vpn/changes{query}");
            let api = &lab.api;
            async move { api.get(&path).await.expect_status(200).body }
        };
        let all = list("?per_page=1").await;
        assert_eq!((&all["total"], &all["pages"], &all["items"][0]["id"]), (&json!(2), &json!(2), &two["id"]), "{all}");
        assert_eq!((&all["counts"]["status"]["pending"], &all["counts"]["status"]["discarded"]), (&json!(1), &json!(1)));
        assert_eq!(all["counts"]["outcome"]["none"], 2, "{all}");
        for (query, found) in [
            ("?status=discarded".to_owned(), &one),
            (format!("?status=pending&controller_id={}&vendor=openwrt", lab.controller), &two),
            (format!("?site_id={}&author={}&outcome=none&feature=openwrt.firewall.rule&page=1&status=pending",
                two["site_id"].as_str().unwrap(), two["staged_by"].as_str().unwrap()), &two),
        ] {
            let page = list(&query).await;
            assert_eq!((&page["total"], &page["items"][0]["id"]), (&json!(1), &found["id"]), "{query}: {page}");
        }
        assert_eq!(list("?feature=openwrt.firewall.zone").await["total"], 0);
        lab.api.get("/gateway-vpn/changes?colour=red").await.expect_status(422);
    }
}

on_both! {
    async fn live_reads_answer_the_envelope(database: Database) {
        let lab = Lab::start(database).await;
        let path = format!("{}/firewall.rule", lab.area("firewall"));
        let first = lab.api.get(&format!("{path}?per_page=2")).await.expect_status(200).body;
        assert_eq!((first["items"].as_array().unwrap().len(), &first["per_page"]), (2, &json!(2)), "{first}");
        let cursor = first["next_cursor"].as_str().unwrap_or_else(|| panic!("there is more: {first}"));
        let second = lab.api.get(&format!("{path}?limit=2&cursor={cursor}")).await.expect_status(200).body;
        assert_ne!(second["items"][0], first["items"][0]);
        lab.api.get(&format!("{path}?per_page=0")).await.expect_status(422);
        let unknown = lab.api.get(&format!("{}/firewall.rul", lab.area("firewall"))).await.expect_status(404);
        assert!(unknown.text.contains("'firewall.rule'"), "{}", unknown.text);
    }
}

on_both! {
    async fn the_pending_changes_of_a_gateway_are_listed_across_its_areas(database: Database) {
        let lab = Lab::start(database).await;
        let (one, two) = (lab.stage_rule("Of-gateway").await, lab.stage_lockout().await);
        let gone = lab.stage_rule("Discarded").await;
        lab.api.post(&Lab::path(&gone, "discard"), &json!({})).await.expect_status(200);
        let path = format!("/gateway-vpn/changes/by-gateway/{}", lab.controller);
        let pending = lab.api.get(&format!("{path}?vendor=openwrt&status=pending")).await.expect_status(200).body;
        let ids: Vec<&Value> = pending.as_array().unwrap().iter().map(|change| &change["id"]).collect();
        assert_eq!(ids, [&two["id"], &one["id"]], "{pending}");
        let all = lab.api.get(&format!("{path}?vendor=openwrt")).await.expect_status(200).body;
        assert_eq!(all.as_array().unwrap().len(), 3, "{all}");
        // Without the parameter nothing is listed: the interface requires it.
        let missing = lab.api.get(&path).await.expect_status(422).body;
        assert!(missing["error"]["details"][0].to_string().contains("vendor"), "{missing}");
        // The list of all changes has the same for any vendor.
        let filtered = format!("/gateway-vpn/changes?controller_id={}&status=pending", lab.controller);
        assert_eq!(lab.api.get(&filtered).await.expect_status(200).body["total"], 2);
    }
}

on_both! {
    async fn a_gateway_is_of_one_of_five_vendors(database: Database) {
        let lab = Lab::start(database).await;
        let path = |vendor: &str| format!("/gateway-vpn/changes/by-gateway/{}?vendor={vendor}", lab.controller);
        lab.api.get(&path("openwrt")).await.expect_status(200);
        // One of the five, and not the vendor of this controller.
        for other in ["omada", "opnsense", "pfsense", "mikrotik"] {
            lab.api.get(&path(other)).await.expect_status(404);
        }
        // Installed or not: no other vendor's controllers are gateways.
        for unknown in ["acme", "proxmox", "unifi", "OpenWrt", ""] {
            let refused = lab.api.get(&path(unknown)).await.expect_status(400);
            assert_eq!(refused.error_type(), "unknown_vendor", "{}", refused.text);
            for known in ["omada", "opnsense", "pfsense", "mikrotik", "openwrt"] {
                assert!(refused.text.contains(known), "{}", refused.text);
            }
        }
        let all = lab.api.get("/gateway-vpn/changes?vendor=proxmox").await.expect_status(200).body;
        assert_eq!(all["total"], 0, "the list of all changes has no such limit: {all}");
    }
}

on_both! {
    async fn a_payload_that_does_not_fit_says_what_would(database: Database) {
        let lab = Lab::start(database).await;
        let path = |feature: &str| format!("{}/changes/{feature}?operation=create", lab.area("firewall"));
        let unknown = lab.api.post(&path("openwrt.firewall.rul"), &json!({ "payload": {} })).await.expect_status(404);
        assert!(unknown.text.contains("nearest is 'openwrt.firewall.rule'"), "{}", unknown.text);
        let payload = json!({ "payload": { "nmae": "x", "target": "ALLOW" } });
        let refused = lab.api.post(&path("openwrt.firewall.rule"), &payload).await.expect_status(422).body;
        let details = refused["error"]["details"].as_array().unwrap();
        let of = |field: &str| -> &Value {
            details.iter().find(|detail| detail["field"] == crate::support::at(field)).unwrap_or_else(|| panic!("{field}: {refused}"))
        };
        of("payload.nmae");
        of("payload.name");
        let message = of("payload.target")["message"].as_str().unwrap();
        assert!(!message.contains("other candidates") && message.contains("ACCEPT"), "{message}");
    }
}

on_both! {
    async fn a_revert_of_what_is_gone_is_a_conflict(database: Database) {
        let lab = Lab::start(database).await;
        let created = lab.stage_rule("Gone").await;
        lab.api.post(&Lab::path(&created, "apply"), &json!({ "force": true })).await.expect_status(200);
        let update = json!({ "name": "Gone", "log": true });
        let updated = lab.stage("firewall", "openwrt.firewall.rule", "update", &update).await;
        lab.api.post(&Lab::path(&updated, "apply"), &json!({ "force": true })).await.expect_status(200);
        let deleted = lab.stage("firewall", "openwrt.firewall.rule", "delete", &json!({ "name": "Gone" })).await;
        lab.api.post(&Lab::path(&deleted, "apply"), &json!({ "force": true })).await.expect_status(200);
        let refused = lab.api.post(&Lab::path(&updated, "revert"), &json!({})).await.expect_status(409);
        assert_eq!(refused.error_type(), "not_revertible", "{}", refused.text);
    }
}
