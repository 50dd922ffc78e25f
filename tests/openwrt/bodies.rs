//! What is read can be written: one shape, and a name for everything that is shown.

use heddle_lab_openwrt::Change;
use serde_json::{Value, json};

use super::{KINDS, rule_names, unnamed_rule, warns};
use crate::staging::Lab;
use crate::support::on_both;

/// The household of a long life: flags as words, texts for lists, options without a field, and the like.
fn settle_in(lab: &Lab) {
    let set = Change::set;
    assert!(lab.router.edit("firewall", &unnamed_rule("7001")));
    assert!(lab.router.edit("firewall", &unnamed_rule("7001")));
    assert!(lab.router.edit(
        "firewall",
        &[
            set("@rule[0]", "enabled", "no"),
            set("@rule[0]", "limit_burst", "5"),
            set("@rule[0]", "proto", "tcp udp"),
            set("@rule[1]", "target", "accept"),
            set("@rule[2]", "ipset", "bad-hosts"),
            set("@rule[3]", "name", "Allow 'quoted' \"names\""),
            set("@rule[4]", "name", "Twice"),
            set("@rule[5]", "name", "Twice"),
            set("@zone[0]", "network", "lan iot"),
        ],
    ));
    assert!(lab.router.edit("dhcp", &[set("@host[0]", "dns", "yes"), set("@host[1]", "leasetime", "12H")]));
    assert!(
        lab.router.edit("network", &[set("wan", "peerdns", "off"), set("lan", "dns", "1.1.1.1 9.9.9.9")])
    );
}

on_both! {
    async fn every_body_that_was_read_is_an_update_that_changes_nothing(database: Database) {
        let lab = Lab::start(database).await;
        settle_in(&lab);
        let before = lab.router.fingerprint();
        let mut seen = 0;
        for (area, kind, feature) in KINDS {
            for object in lab.live(area, kind).await {
                let change = lab.stage(area, feature, "update", &object["body"]).await;
                assert_eq!(change["plan"]["native"], json!([]), "{kind} {object}: {change}");
                assert!(warns(&change, "already as asked"), "{change}");
                lab.api.post(&Lab::path(&change, "discard"), &json!({})).await.expect_status(200);
                seen += 1;
            }
        }
        assert!(seen > 30, "{seen} objects");
        assert_eq!(lab.router.fingerprint(), before);
    }
}

on_both! {
    async fn every_rule_that_is_shown_can_be_changed(database: Database) {
        let lab = Lab::start(database).await;
        settle_in(&lab);
        let bodies: Vec<Value> = lab.live("firewall", "firewall.rule").await.iter().map(|object| object["body"].clone()).collect();
        let named = |name: &str| bodies.iter().filter(|body| body["name"].as_str().unwrap().starts_with(name)).count();
        assert_eq!((named("@rule."), named("Twice#"), named("Allow 'quoted'")), (2, 2, 1), "{bodies:?}");
        for body in &bodies {
            let name = body["name"].as_str().unwrap();
            // The first of two that are the same is no longer the same once it was written.
            if name.starts_with("@rule.") && name.ends_with("#2") {
                continue;
            }
            let change = lab.stage("firewall", "openwrt.firewall.rule", "update", &json!({ "name": name, "log": true })).await;
            assert_eq!(lab.apply(&change).await["outcome"]["state"], "applied", "{name}");
        }
        for (index, name) in rule_names(&lab).iter().enumerate() {
            let log = lab.router.option("firewall", &format!("@rule[{index}]"), "log");
            assert!(log == Some(json!("1")) || name.is_empty(), "rule {index} '{name}'");
        }
        let both = lab.try_stage("firewall", "firewall.rule", "update", &json!({ "name": "Twice", "log": false })).await.expect_status(422);
        assert!(both.message().contains("Twice#1"), "{}", both.message());
    }
}

on_both! {
    async fn a_rule_gets_another_name_and_its_old_one_back(database: Database) {
        let lab = Lab::start(database).await;
        let before = rule_names(&lab);
        let payload = json!({ "name": "Allow-Ping", "new_name": "Allow-Echo" });
        let change = lab.stage("firewall", "openwrt.firewall.rule", "update", &payload).await;
        lab.apply(&change).await;
        assert!(rule_names(&lab).contains(&"Allow-Echo".to_owned()));
        let inverse = lab.api.post(&Lab::path(&change, "revert"), &json!({})).await.expect_status(201).body;
        lab.apply(&inverse).await;
        assert_eq!(rule_names(&lab), before);
        let taken = json!({ "name": "Allow-Ping", "new_name": "Allow-IGMP" });
        let refused = lab.try_stage("firewall", "firewall.rule", "update", &taken).await.expect_status(422);
        assert!(refused.text.contains("new_name"), "{}", refused.text);
    }
}

on_both! {
    async fn what_a_write_loses_is_said_and_what_it_need_not_lose_is_kept(database: Database) {
        let lab = Lab::start(database).await;
        lab.router.comment("firewall", "do not touch: agreed with the neighbours");
        let change = lab.stage("firewall", "openwrt.firewall.rule", "update", &json!({ "name": "Allow-Ping", "proto": ["igmp"] })).await;
        assert!(warns(&change, "comments in it are lost"), "{change}");
        lab.apply(&change).await;
        assert!(!lab.router.file_text("firewall").unwrap().contains("neighbours"));
        assert_eq!(lab.router.option("firewall", "@rule[1]", "proto"), Some(json!("igmp")), "an option is no list");
        let again = lab.stage("firewall", "openwrt.firewall.rule", "update", &json!({ "name": "Allow-Ping", "proto": ["icmp"] })).await;
        assert!(!warns(&again, "comments"), "{again}");

        let payload = json!({ "mac": "00:11:32:4a:5b:6c", "name": "storage" });
        let host = lab.stage("dhcp", "openwrt.dhcp.host", "update", &payload).await;
        lab.apply(&host).await;
        let inverse = lab.api.post(&Lab::path(&host, "revert"), &json!({})).await.expect_status(201).body;
        lab.apply(&inverse).await;
        assert_eq!(lab.router.option("dhcp", "@host[0]", "mac"), Some(json!(["00:11:32:4A:5B:6C"])));
        assert_eq!(lab.router.option("dhcp", "@host[0]", "name"), Some(json!("nas")));
    }
}
