//! Rules by position, sets, and the guard of the master switch.

use super::*;

const RULES: &str = "/cluster/firewall/rules";

async fn comments(peer: &Peer) -> Vec<String> {
    let rules = peer.get(RULES).await;
    rules.as_array().unwrap().iter().map(|rule| rule["comment"].as_str().unwrap_or("-").to_owned()).collect()
}

#[tokio::test]
async fn a_new_rule_is_first_and_disabled_wherever_it_was_wanted() {
    let peer = Peer::new().await;
    peer.ok("POST", RULES, &[("type", "in"), ("action", "DROP"), ("pos", "2"), ("comment", "new")]).await;
    let rules = peer.get(RULES).await;
    assert_eq!(
        (&rules[0]["comment"], &rules[0]["enable"], &rules[0]["pos"]),
        (&json!("new"), &json!(0), &json!(0))
    );
}

#[tokio::test]
async fn moveto_puts_a_rule_in_front_of_another() {
    let peer = Peer::new().await;
    for name in ["c", "b", "a"] {
        peer.ok("POST", RULES, &[("type", "in"), ("action", "DROP"), ("comment", name)]).await;
    }
    let digest = peer.get(RULES).await[0]["digest"].as_str().unwrap().to_owned();
    peer.ok("PUT", &format!("{RULES}/0"), &[("moveto", "3"), ("digest", &digest)]).await;
    assert_eq!(comments(&peer).await[..3], ["b", "c", "a"]);
    let form = [("moveto", "0"), ("digest", digest.as_str())];
    assert!(peer.refused("PUT", &format!("{RULES}/2"), &form).await.1.starts_with("detected modified"));
    peer.ok("PUT", &format!("{RULES}/2"), &[("moveto", "0")]).await;
    assert_eq!(comments(&peer).await[..3], ["a", "b", "c"]);
}

#[tokio::test]
async fn a_rule_names_only_what_exists() {
    let peer = Peer::new().await;
    let rule =
        |name: &'static str, value: &'static str| [("type", "in"), ("action", "ACCEPT"), (name, value)];
    assert_eq!(
        peer.error("POST", RULES, &rule("source", "+nobody"), "source").await,
        "no such ipset 'nobody'"
    );
    assert_eq!(
        peer.error("POST", RULES, &rule("source", "nobody"), "source").await,
        "no such alias 'nobody'"
    );
    let text = peer.error("POST", RULES, &rule("dport", "22"), "proto").await;
    assert_eq!(text, "missing property - 'dport' requires this property");
    peer.ok("POST", "/nodes/pve1/qemu/101/firewall/rules", &rule("source", "office")).await;
}

#[tokio::test]
async fn a_trial_of_the_master_switch_ends_after_a_minute() {
    let peer = Peer::new().await;
    peer.ok("PUT", "/cluster/firewall/options", &[("enable", "2")]).await;
    let enable = peer.get("/cluster/firewall/options").await["enable"].as_u64().unwrap();
    assert!(enable > 1_700_000_000);
    assert_eq!(peer.lab.state()["is_firewall_on"], true);
    peer.lab.advance(Duration::from_secs(61));
    assert_eq!(peer.lab.state()["is_firewall_on"], false);
    peer.ok("PUT", "/cluster/firewall/options", &[("enable", "1")]).await;
    assert_eq!(peer.lab.state()["is_firewall_on"], true);
}

#[tokio::test]
async fn set_entries_are_canonical_and_named_by_the_rest_of_the_path() {
    let peer = Peer::new().await;
    let set = "/cluster/firewall/ipset/management";
    peer.ok("POST", set, &[("cidr", "10.1.2.3/8"), ("comment", "all")]).await;
    assert_eq!(peer.get(set).await[0]["cidr"], "10.0.0.0/8");
    assert_eq!(peer.get(&format!("{set}/10.0.0.0/8")).await["comment"], "all");
    assert_eq!(peer.refused("DELETE", set, &[]).await.1, "IPSet 'management' is not empty");
    peer.ok("DELETE", &format!("{set}/10.0.0.0%2F8"), &[]).await;
    peer.ok("DELETE", set, &[]).await;
}

#[tokio::test]
async fn a_renamed_group_stays_in_the_rules_that_call_it() {
    let peer = Peer::new().await;
    peer.ok("POST", "/cluster/firewall/groups", &[("group", "web"), ("rename", "webserver")]).await;
    assert_eq!(peer.get("/nodes/pve1/qemu/101/firewall/rules").await[0]["action"], "web");
    assert_eq!(
        peer.refused("DELETE", "/cluster/firewall/groups/web", &[]).await.1,
        "Security group 'web' is not empty"
    );
}
