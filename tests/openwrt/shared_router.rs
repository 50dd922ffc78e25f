//! A router that other people write to as well.

use heddle_lab_openwrt::Change;
use serde_json::json;

use super::{rule_names, unnamed_rule, warns};
use crate::staging::Lab;
use crate::support::on_both;

on_both! {
    async fn three_rules_that_were_staged_together_apply_one_after_another_without_a_new_plan(database: Database) {
        let lab = Lab::start(database).await;
        let mut staged = Vec::new();
        for name in ["Allow A", "Allow-A", "Allow-B"] {
            staged.push(lab.stage_rule(name).await);
        }
        for change in &staged {
            let applied = lab.apply(change).await;
            assert_eq!(applied["outcome"]["state"], "applied", "{applied}");
            assert_eq!(applied["plan"]["hash"], change["plan"]["hash"]);
        }
        let names = rule_names(&lab);
        assert!(names.ends_with(&["Allow A".to_owned(), "Allow-A".to_owned(), "Allow-B".to_owned()]), "{names:?}");
    }
}

on_both! {
    async fn an_edit_of_another_rule_does_not_stand_in_the_way(database: Database) {
        let lab = Lab::start(database).await;
        let update = json!({ "name": "Allow-Ping", "log": true });
        let change = lab.stage("firewall", "openwrt.firewall.rule", "update", &update).await;
        assert_eq!(change["plan"]["undo_takes_all"], true, "{change}");
        assert_eq!(change["plan"]["touches"], json!(["firewall/rule/Allow-Ping"]));
        assert!(lab.router.edit("firewall", &[Change::set("@rule[2]", "enabled", "0")]));
        // Also in the same rule, besides what the plan is about.
        assert!(lab.router.edit("firewall", &[Change::set("@rule[1]", "limit", "5/second")]));
        let applied = lab.apply(&change).await;
        assert_eq!(applied["outcome"]["state"], "applied", "{applied}");
        assert_eq!(lab.router.option("firewall", "@rule[1]", "log"), Some(json!("1")));
        assert_eq!(lab.router.option("firewall", "@rule[1]", "limit"), Some(json!("5/second")));
    }
}

on_both! {
    async fn what_moved_is_named(database: Database) {
        let lab = Lab::start(database).await;
        let update = json!({ "name": "Allow-Ping", "target": "DROP" });
        let change = lab.stage("firewall", "openwrt.firewall.rule", "update", &update).await;
        assert!(lab.router.edit("firewall", &[Change::set("@rule[1]", "target", "REJECT")]));
        let before = lab.router.fingerprint();
        let refused = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(409);
        assert_eq!(refused.error_type(), "state_moved");
        assert!(refused.message().contains("firewall rule 'Allow-Ping'"), "{}", refused.message());
        assert!(refused.message().contains("was 'ACCEPT', is 'REJECT'"), "{}", refused.message());
        assert_eq!(lab.router.fingerprint(), before);
    }
}

on_both! {
    async fn a_number_that_came_to_stand_for_another_section_is_not_used(database: Database) {
        let lab = Lab::start(database).await;
        let update = json!({ "name": "Allow-IGMP", "log": true });
        let change = lab.stage("firewall", "openwrt.firewall.rule", "update", &update).await;
        assert!(lab.router.edit("firewall", &[Change::remove("@rule[0]")]));
        let refused = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(409);
        assert!(refused.message().contains("numbered"), "{}", refused.message());
        let again = lab.api.post(&Lab::path(&change, "plan"), &json!({})).await.expect_status(200).body;
        assert_eq!(lab.apply(&again).await["outcome"]["state"], "applied");
        assert_eq!(lab.router.option("firewall", "@rule[1]", "log"), Some(json!("1")));
    }
}

on_both! {
    async fn a_deleted_rule_comes_back_to_its_place_among_rules_without_names(database: Database) {
        let lab = Lab::start(database).await;
        assert!(lab.router.edit("firewall", &unnamed_rule("7001")));
        assert!(lab.router.edit("firewall", &unnamed_rule("7002")));
        let before = rule_names(&lab);
        let change = lab.stage("firewall", "openwrt.firewall.rule", "delete", &json!({ "name": "Allow-IGMP" })).await;
        assert_eq!(change["plan"]["invertible"], true, "{change}");
        assert!(warns(&change, "brings it back as section"), "{change}");
        lab.apply(&change).await;
        assert_ne!(rule_names(&lab), before);
        let inverse = lab.api.post(&Lab::path(&change, "revert"), &json!({})).await.expect_status(201).body;
        lab.apply(&inverse).await;
        assert_eq!(rule_names(&lab), before);
    }
}

on_both! {
    async fn a_rule_that_no_change_can_bring_back_is_deleted_with_a_warning(database: Database) {
        let lab = Lab::start(database).await;
        // An option that no field of the feature says, and a rule without a name of its own.
        assert!(lab.router.edit("firewall", &[Change::set("@rule[2]", "ipset", "bad-hosts")]));
        assert!(lab.router.edit("firewall", &unnamed_rule("7001")));
        let rules = lab.live("firewall", "firewall.rule").await;
        let mut names = rules.iter().map(|rule| rule["body"]["name"].as_str().unwrap());
        let unnamed = names.find(|name| name.starts_with("@rule.")).unwrap();
        for name in ["Allow-IGMP", unnamed] {
            let count = rule_names(&lab).len();
            let change = lab.stage("firewall", "openwrt.firewall.rule", "delete", &json!({ "name": name })).await;
            assert_eq!(change["plan"]["invertible"], false, "{change}");
            assert!(warns(&change, "no staged change can take this back"), "{change}");
            assert!(!warns(&change, "brings it back"), "{change}");
            assert_eq!(lab.apply(&change).await["outcome"]["state"], "applied", "{name}");
            assert_eq!(rule_names(&lab).len(), count - 1, "{name}");
            let refused = lab.api.post(&Lab::path(&change, "revert"), &json!({})).await.expect_status(409);
            assert_eq!(refused.error_type(), "not_invertible", "{}", refused.text);
        }
    }
}

on_both! {
    async fn the_session_of_another_client_is_neither_used_nor_ended(database: Database) {
        let lab = Lab::start(database).await;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let luci = lab.router.luci_applies("network", &[Change::set("wan", "metric", "7")], 90);
        lab.router.luci_stages(&luci, "network", &[Change::set("wan", "mtu", "1400")]);
        let staged = lab.router.staged_in(&luci);
        lab.router.forget_calls();
        let refused = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await;
        assert_eq!(refused.status, 502, "{}", refused.text);
        assert!(refused.message().contains("another client"), "{}", refused.message());
        assert_eq!(refused.header("retry-after"), "30");
        assert!(lab.router.is_logged_in(&luci));
        assert_eq!(lab.router.staged_in(&luci), staged);
        assert!(lab.router.write_calls().is_empty(), "{:?}", lab.router.write_calls());
        assert!(lab.router.luci_confirms(&luci));
        lab.wait_for(&change, &["failed", "none"]).await;
        assert_eq!(lab.apply(&change).await["outcome"]["state"], "applied");
    }
}

on_both! {
    async fn a_lost_session_does_not_bring_a_storm_of_logins(database: Database) {
        let lab = Lab::start(database).await;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        lab.api
            .post(&Lab::path(&change, "apply"), &json!({ "force": true, "confirm_within_secs": 10 }))
            .await
            .expect_status(200);
        lab.router.expire_sessions();
        lab.router.forget_calls();
        let confirmed = lab.api.post(&Lab::path(&change, "confirm"), &json!({})).await;
        assert!(!confirmed.text.contains("access group"), "{}", confirmed.text);
        lab.wait_for(&change, &["reverted", "failed"]).await;
        let logins = lab.router.calls().iter().filter(|call| call.method == "login").count();
        assert!(logins <= 8, "{logins} logins");
    }
}
