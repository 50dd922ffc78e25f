//! Reading and staging.

use super::*;

fn changes(bench: &mut Bench, sid: &str, config: &str) -> Value {
    bench.call(sid, "uci.changes", json!({ "config": config }))[1]["changes"].take()
}

#[test]
fn get_answers_by_shape() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let get = |args: Value, bench: &mut Bench| bench.call(&sid, "uci.get", args);
    let all = get(json!({ "config": "firewall" }), &mut bench);
    let rule = &all[1]["values"]["cfg0592bd"];
    assert_eq!(
        (&rule[".type"], &rule[".anonymous"], &rule[".index"]),
        (&json!("rule"), &json!(true), &json!(4))
    );
    assert_eq!(rule[".name"], json!("cfg0592bd"));
    let lan = get(json!({ "config": "network", "section": "lan" }), &mut bench);
    assert!(lan[1]["values"].get(".index").is_none());
    assert_eq!(lan[1]["values"]["ipaddr"], json!("192.168.1.1"));
    let ports = get(json!({ "config": "network", "section": "@device[0]", "option": "ports" }), &mut bench);
    assert_eq!(ports, json!([0, { "value": ["lan1", "lan2", "lan3", "lan4"] }]));
    let zones =
        get(json!({ "config": "firewall", "type": "zone", "match": { "network": "wan6" } }), &mut bench);
    assert_eq!(zones[1]["values"].as_object().unwrap().keys().collect::<Vec<_>>(), ["cfg03dc81"]);
}

#[test]
fn missing_section_is_empty_success_and_missing_config_is_not_found() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.check(&sid, "uci.get", json!({ "config": "network", "section": "none" }), json!([0]));
    bench.check(
        &sid,
        "uci.get",
        json!({ "config": "network", "section": "lan", "option": "none" }),
        json!([0]),
    );
    bench.check(&sid, "uci.get", json!({ "config": "none" }), json!([4]));
}

#[test]
fn set_refuses_what_has_no_text_and_then_stages_nothing() {
    let mut bench = Bench::new();
    let sid = bench.root();
    for bad in [json!(1.5), json!(null), json!({ "a": 1 }), json!([])] {
        let args = json!({ "config": "network", "section": "wan", "values": { "metric": "7", "mtu": bad } });
        bench.check(&sid, "uci.set", args, json!([2]));
    }
    let dashed = json!({ "config": "network", "section": "wan", "values": { "bad-name": "1" } });
    bench.check(&sid, "uci.set", dashed, json!([2]));
    bench.check(&sid, "uci.set", json!({ "config": "network", "section": "wan", "values": {} }), json!([4]));
    bench.check(
        &sid,
        "uci.set",
        json!({ "config": "network", "section": "none", "values": { "a": "1" } }),
        json!([4]),
    );
    bench.check(&sid, "uci.set", json!({ "config": "network", "section": "wan" }), json!([2]));
    assert_eq!(changes(&mut bench, &sid, "network"), json!([]));
}

#[test]
fn set_converts_and_merges() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let values = json!({ "auto": true, "metric": 5, "mtu": -1, "dns": ["1.1.1.1", "9.9.9.9"] });
    bench.check(
        &sid,
        "uci.set",
        json!({ "config": "network", "section": "wan", "values": values }),
        json!([0]),
    );
    let wan =
        bench.call(&sid, "uci.get", json!({ "config": "network", "section": "wan" }))[1]["values"].take();
    assert_eq!((&wan["auto"], &wan["metric"], &wan["mtu"]), (&json!("1"), &json!("5"), &json!("4294967295")));
    assert_eq!((&wan["dns"], &wan["proto"]), (&json!(["1.1.1.1", "9.9.9.9"]), &json!("dhcp")));
}

#[test]
fn setting_the_same_value_stages_nothing() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let same = json!({ "config": "network", "section": "@device[0]", "values": { "type": "bridge", "ports": ["lan1", "lan2", "lan3", "lan4"] } });
    bench.check(&sid, "uci.set", same, json!([0]));
    assert_eq!(changes(&mut bench, &sid, "network"), json!([]));
}

#[test]
fn empty_text_removes_the_option() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let set = |option: &str| json!({ "config": "network", "section": "lan", "values": { option: "" } });
    bench.check(&sid, "uci.set", set("never_there"), json!([0]));
    assert_eq!(changes(&mut bench, &sid, "network"), json!([]));
    bench.check(&sid, "uci.set", set("ip6assign"), json!([0]));
    assert_eq!(changes(&mut bench, &sid, "network"), json!([["remove", "lan", "ip6assign"]]));
}

#[test]
fn changes_have_the_shape_of_the_device() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.check(&sid, "uci.changes", json!({}), json!([0, { "changes": {} }]));
    bench.call(
        &sid,
        "uci.set",
        json!({ "config": "network", "section": "lan", "values": { "mtu": "1400", "dns": ["1.1.1.1"] } }),
    );
    bench.call(&sid, "uci.delete", json!({ "config": "network", "section": "lan", "option": "netmask" }));
    bench.call(&sid, "uci.add", json!({ "config": "firewall", "type": "rule", "values": { "name": "x" } }));
    bench.call(&sid, "uci.rename", json!({ "config": "firewall", "section": "cfg0592bd", "name": "renew" }));
    bench.call(&sid, "uci.order", json!({ "config": "firewall", "sections": ["renew"] }));
    let network = json!([
        ["set", "lan", "mtu", "1400"],
        ["list-add", "lan", "dns", "1.1.1.1"],
        ["remove", "lan", "netmask"]
    ]);
    let firewall = json!([
        ["add", "cfg0f92bd", "rule"],
        ["set", "cfg0f92bd", "name", "x"],
        ["rename", "cfg0592bd", "renew"],
        ["order", "renew", 0],
    ]);
    assert_eq!(changes(&mut bench, &sid, "network"), network);
    bench.check(
        &sid,
        "uci.changes",
        json!({}),
        json!([0, { "changes": { "firewall": firewall, "network": network } }]),
    );
}

#[test]
fn add_gives_the_id_at_the_end_and_merges_into_a_name_that_exists() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let rule = json!({ "config": "firewall", "type": "rule", "values": { "name": "x" } });
    bench.check(&sid, "uci.add", rule.clone(), json!([0, { "section": "cfg0f92bd" }]));
    bench.check(&sid, "uci.add", rule, json!([0, { "section": "cfg1092bd" }]));
    let merged =
        json!({ "config": "network", "type": "interface", "name": "lan", "values": { "mtu": "1400" } });
    bench.check(&sid, "uci.add", merged, json!([0, { "section": "lan" }]));
    let lan =
        bench.call(&sid, "uci.get", json!({ "config": "network", "section": "lan" }))[1]["values"].take();
    assert_eq!((&lan["mtu"], &lan["ipaddr"]), (&json!("1400"), &json!("192.168.1.1")));
    for bad in [
        json!({ "config": "network", "type": "interface", "name": "guest-net" }),
        json!({ "config": "network", "type": "interface", "name": "g", "values": { "a-b": "1" } }),
        json!({ "config": "network", "type": "interface", "name": "g", "values": { "a": [] } }),
        json!({ "config": "network", "name": "g" }),
        json!({ "config": "network", "type": "" }),
    ] {
        bench.check(&sid, "uci.add", bad, json!([2]));
    }
    bench.check(&sid, "uci.add", json!({ "config": "none", "type": "x" }), json!([4]));
}

#[test]
fn delete_takes_sections_options_and_matches() {
    let mut bench = Bench::new();
    let sid = bench.root();
    for (args, expected) in [
        (json!({ "config": "firewall", "section": "none" }), json!([4])),
        (json!({ "config": "firewall", "section": "cfg0592bd", "option": "none" }), json!([4])),
        (json!({ "config": "firewall", "type": "nat" }), json!([4])),
        (json!({ "config": "firewall", "type": "rule", "match": { "name": "none" } }), json!([4])),
        (json!({ "config": "firewall" }), json!([2])),
        (json!({ "config": "firewall", "section": "@rule[-1]" }), json!([0])),
        (json!({ "config": "firewall", "section": "cfg0592bd", "options": ["family", "proto"] }), json!([0])),
        (json!({ "config": "firewall", "type": "rule", "match": { "proto": "icmp" } }), json!([0])),
    ] {
        bench.check(&sid, "uci.delete", args, expected);
    }
    let left =
        bench.call(&sid, "uci.get", json!({ "config": "firewall", "type": "rule" }))[1]["values"].take();
    assert_eq!(left.as_object().unwrap().len(), 4);
}

#[test]
fn order_moves_the_listed_to_the_top_of_the_file() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.check(&sid, "uci.order", json!({ "config": "network", "sections": ["wan2", "wan"] }), json!([0]));
    let all = bench.call(&sid, "uci.get", json!({ "config": "network" }))[1]["values"].take();
    let order: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(order, ["wan2", "wan", "loopback", "globals", "cfg030f15", "lan", "wan6"]);
    bench.check(&sid, "uci.order", json!({ "config": "network", "sections": ["none"] }), json!([4]));
}

#[test]
fn staging_belongs_to_one_session_and_dies_with_it() {
    let mut bench = Bench::new();
    let (one, other) = (bench.root(), bench.root());
    bench.call(&one, "uci.set", harmless());
    let metric = json!({ "config": "network", "section": "wan", "option": "metric" });
    bench.check(&one, "uci.get", metric.clone(), json!([0, { "value": "7" }]));
    bench.check(&other, "uci.get", metric.clone(), json!([0]));
    bench.check(&other, "uci.apply", json!({ "rollback": true }), json!([5]));
    bench.pass_secs(300);
    assert!(bench.device.staged.is_empty());
    assert_eq!(bench.option("network", "wan", "metric"), None);
}

#[test]
fn revert_drops_what_is_staged() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.call(&sid, "uci.set", harmless());
    bench.check(&sid, "uci.revert", json!({ "config": "network" }), json!([0]));
    bench.check(&sid, "uci.apply", json!({ "rollback": true }), json!([5]));
}

#[test]
fn clean_restart_of_rpcd_keeps_sessions_and_drops_staging() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.call(&sid, "uci.set", harmless());
    bench.device.restart_rpcd();
    bench.check(&sid, "uci.changes", json!({}), json!([0, { "changes": {} }]));
}
