//! Apply, confirm, roll back.

use super::*;

fn metric(bench: &Bench) -> Option<Value> {
    bench.option("network", "wan", "metric")
}

fn apply(bench: &mut Bench, sid: &str, secs: u64) {
    bench.check(sid, "uci.set", harmless(), json!([0]));
    bench.check(sid, "uci.apply", json!({ "rollback": true, "timeout": secs }), json!([0]));
    assert_eq!(metric(bench), Some(json!("7")));
}

#[test]
fn confirmed_apply_stays() {
    let mut bench = Bench::new();
    let sid = bench.root();
    apply(&mut bench, &sid, 30);
    bench.pass_secs(29);
    bench.check(&sid, "uci.confirm", json!({}), json!([0]));
    bench.pass_secs(60);
    assert_eq!(metric(&bench), Some(json!("7")));
    bench.check(&sid, "uci.confirm", json!({}), json!([5]));
    let counters = &bench.device.recorder.counters;
    assert_eq!((counters.applies, counters.confirms, counters.rollbacks), (1, 1, 0));
    assert_eq!(counters.commits.get("network"), Some(&1));
}

#[test]
fn unconfirmed_apply_is_undone_and_staged_again() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let before = bench.device.fingerprint();
    apply(&mut bench, &sid, 30);
    bench.pass_secs(30);
    assert_eq!(bench.device.fingerprint(), before);
    bench.check(&sid, "uci.confirm", json!({}), json!([5]));
    let staged = json!([["set", "wan", "metric", "7"]]);
    bench.check(&sid, "uci.changes", json!({ "config": "network" }), json!([0, { "changes": staged }]));
    bench.check(&sid, "uci.revert", json!({ "config": "network" }), json!([0]));
}

#[test]
fn a_timer_that_runs_out_early_takes_back_once_and_leaves_later_applies_alone() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let before = bench.device.fingerprint();
    assert!(!bench.device.run_out_rollback_timer(), "nothing is pending");
    apply(&mut bench, &sid, 30);
    assert!(bench.device.run_out_rollback_timer());
    assert_eq!(bench.device.fingerprint(), before);
    bench.check(&sid, "uci.confirm", json!({}), json!([5]));
    bench.check(&sid, "uci.revert", json!({ "config": "network" }), json!([0]));
    // The time that the first was given ends within the time of the second.
    bench.pass_secs(20);
    apply(&mut bench, &sid, 30);
    bench.pass_secs(15);
    assert_eq!(metric(&bench), Some(json!("7")));
    assert_eq!(bench.device.recorder.counters.rollbacks, 1);
}

#[test]
fn default_timeout_is_a_minute() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.call(&sid, "uci.set", harmless());
    bench.check(&sid, "uci.apply", json!({ "rollback": true }), json!([0]));
    bench.pass_secs(59);
    assert!(metric(&bench).is_some());
    bench.pass_secs(1);
    assert!(metric(&bench).is_none());
}

#[test]
fn rollback_that_is_no_boolean_applies_without_protection() {
    for rollback in [json!(1), json!("true"), json!(null)] {
        let mut bench = Bench::new();
        let sid = bench.root();
        bench.call(&sid, "uci.set", harmless());
        bench.check(&sid, "uci.apply", json!({ "rollback": rollback, "timeout": 5 }), json!([0]));
        bench.check(&sid, "uci.confirm", json!({}), json!([5]));
        bench.pass_secs(120);
        assert_eq!(metric(&bench), Some(json!("7")));
    }
}

#[test]
fn only_the_session_of_the_apply_confirms_or_rolls_back() {
    let mut bench = Bench::new();
    let (sid, other) = (bench.root(), bench.login("netop", "n"));
    apply(&mut bench, &sid, 30);
    bench.check(&other, "uci.confirm", json!({}), json!([6]));
    bench.check(&other, "uci.rollback", json!({}), json!([6]));
    bench.check(&sid, "uci.rollback", json!({}), json!([0]));
    assert_eq!(metric(&bench), None);
    bench.check(&sid, "uci.rollback", json!({}), json!([5]));
}

#[test]
fn pending_apply_refuses_apply_commit_and_revert_but_not_set() {
    let mut bench = Bench::new();
    let (sid, other) = (bench.root(), bench.login("netop", "n"));
    apply(&mut bench, &sid, 30);
    for session in [&sid, &other] {
        bench.check(
            session,
            "uci.set",
            json!({ "config": "network", "section": "wan6", "values": { "metric": "9" } }),
            json!([0]),
        );
        bench.check(session, "uci.apply", json!({ "rollback": true }), json!([6]));
        bench.check(session, "uci.commit", json!({ "config": "network" }), json!([6]));
        bench.check(session, "uci.revert", json!({ "config": "network" }), json!([6]));
    }
}

#[test]
fn unprotected_apply_during_a_pending_one_disarms_the_rollback() {
    let mut bench = Bench::new();
    let (sid, other) = (bench.root(), bench.login("netop", "n"));
    apply(&mut bench, &sid, 30);
    bench.call(
        &other,
        "uci.set",
        json!({ "config": "network", "section": "wan6", "values": { "metric": "9" } }),
    );
    bench.check(&other, "uci.apply", json!({ "rollback": false }), json!([0]));
    assert_eq!(bench.option("network", "wan6", "metric"), None);
    bench.pass_secs(30);
    assert_eq!(metric(&bench), Some(json!("7")));
}

#[test]
fn login_while_an_apply_is_pending_gives_the_same_session() {
    let mut bench = Bench::new();
    let sid = bench.root();
    apply(&mut bench, &sid, 30);
    assert_eq!(bench.root(), sid);
    assert_ne!(bench.login("netop", "n"), sid);
    bench.check(&sid, "uci.confirm", json!({}), json!([0]));
    assert_ne!(bench.root(), sid);
}

#[test]
fn commit_writes_one_configuration_without_protection() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.call(&sid, "uci.set", harmless());
    bench.call(
        &sid,
        "uci.set",
        json!({ "config": "system", "section": "ntp", "values": { "enabled": "0" } }),
    );
    bench.check(&sid, "uci.commit", json!({ "config": "network" }), json!([0]));
    assert_eq!(metric(&bench), Some(json!("7")));
    assert_eq!(bench.option("system", "ntp", "enabled"), Some(json!("1")));
    bench.check(&sid, "uci.confirm", json!({}), json!([5]));
}

#[test]
fn anonymous_id_names_another_section_after_a_delete() {
    let mut bench = Bench::new();
    let sid = bench.root();
    assert_eq!(bench.option("firewall", "cfg0592bd", "name"), Some(json!("Allow-DHCP-Renew")));
    bench.call(&sid, "uci.delete", json!({ "config": "firewall", "section": "cfg0592bd" }));
    bench.check(&sid, "uci.apply", json!({}), json!([0]));
    assert_eq!(bench.option("firewall", "cfg0592bd", "name"), Some(json!("Allow-Ping")));
}

#[test]
fn staged_set_hits_another_section_when_somebody_deleted_one_in_between() {
    let mut bench = Bench::new();
    let (sid, other) = (bench.root(), bench.root());
    bench.call(
        &sid,
        "uci.set",
        json!({ "config": "firewall", "section": "cfg0692bd", "values": { "enabled": "0" } }),
    );
    bench.call(&other, "uci.delete", json!({ "config": "firewall", "section": "cfg0592bd" }));
    bench.check(&other, "uci.apply", json!({}), json!([0]));
    bench.check(&sid, "uci.apply", json!({}), json!([0]));
    assert_eq!(bench.option("firewall", "cfg0592bd", "name"), Some(json!("Allow-Ping")));
    assert_eq!(bench.option("firewall", "cfg0592bd", "enabled"), None);
    assert_eq!(bench.option("firewall", "cfg0692bd", "name"), Some(json!("Allow-IGMP")));
    assert_eq!(bench.option("firewall", "cfg0692bd", "enabled"), Some(json!("0")));
}

#[test]
fn last_apply_wins_without_a_warning() {
    let mut bench = Bench::new();
    let (one, other) = (bench.root(), bench.root());
    for (sid, value) in [(&one, "1"), (&other, "2")] {
        bench.call(
            sid,
            "uci.set",
            json!({ "config": "network", "section": "wan", "values": { "metric": value } }),
        );
    }
    bench.check(&other, "uci.apply", json!({}), json!([0]));
    bench.check(&one, "uci.apply", json!({}), json!([0]));
    assert_eq!(metric(&bench), Some(json!("1")));
}

#[test]
fn rename_gives_an_anonymous_section_a_lasting_name() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.check(
        &sid,
        "uci.rename",
        json!({ "config": "firewall", "section": "cfg0692bd", "name": "ping" }),
        json!([0]),
    );
    bench.call(&sid, "uci.delete", json!({ "config": "firewall", "section": "cfg0592bd" }));
    bench.check(&sid, "uci.apply", json!({}), json!([0]));
    assert_eq!(bench.option("firewall", "ping", "name"), Some(json!("Allow-Ping")));
}

#[test]
fn reboot_inside_the_window_keeps_the_change_and_forgets_the_rollback() {
    let mut bench = Bench::new();
    let sid = bench.root();
    apply(&mut bench, &sid, 30);
    bench.check(&sid, "system.reboot", json!({}), json!([0]));
    bench.pass_secs(60);
    bench.check(&sid, "uci.confirm", json!({}), json!(-32002));
    assert_eq!(metric(&bench), Some(json!("7")));
    assert!(bench.device.uptime() < Duration::from_mins(1));
}

#[test]
fn lost_address_comes_back_with_the_rollback() {
    for (method, args) in [
        ("uci.set", json!({ "config": "network", "section": "lan", "values": { "ipaddr": "10.0.0.1" } })),
        ("uci.set", json!({ "config": "network", "section": "lan", "values": { "disabled": "1" } })),
        ("uci.delete", json!({ "config": "network", "section": "lan" })),
    ] {
        let mut bench = Bench::new();
        let sid = bench.root();
        bench.check(&sid, method, args, json!([0]));
        bench.check(&sid, "uci.apply", json!({ "rollback": true, "timeout": 10 }), json!([0]));
        assert!(bench.device.is_up(), "the answer still gets out");
        bench.pass_secs(1);
        assert!(!bench.device.is_up());
        bench.pass_secs(11);
        assert!(bench.device.is_up());
        assert_eq!(bench.option("network", "lan", "ipaddr"), Some(json!("192.168.1.1")));
    }
}

#[test]
fn factory_reset_answers_first_and_wipes_later() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let before = bench.device.fingerprint();
    apply(&mut bench, &sid, 30);
    bench.call(&sid, "uci.confirm", json!({}));
    bench.check(&sid, "rpc-sys.factory", json!({}), json!([0]));
    assert_ne!(bench.device.fingerprint(), before);
    bench.pass_secs(10);
    assert_eq!(bench.device.fingerprint(), before);
    let _any_password = bench.login("root", "");
}

#[test]
fn upgrade_keeps_the_configuration_only_when_told() {
    for (keep, is_kept) in [(json!(true), true), (json!(false), false), (json!(1), false)] {
        let mut bench = Bench::new();
        let sid = bench.root();
        apply(&mut bench, &sid, 30);
        bench.call(&sid, "uci.confirm", json!({}));
        bench.check(&sid, "rpc-sys.upgrade_start", json!({ "keep": keep }), json!([4]));
        let fetch = json!({ "command": "/bin/uclient-fetch", "params": ["-O", "/tmp/firmware.bin", "http://x/f.bin"] });
        assert_eq!(bench.call(&sid, "file.exec", fetch)[1]["code"], json!(0));
        bench.check(&sid, "rpc-sys.upgrade_start", json!({ "keep": keep }), json!([0]));
        bench.pass_secs(10);
        let sid = bench.root();
        assert_eq!(bench.call(&sid, "system.board", json!({}))[1]["release"]["version"], json!("24.10.4"));
        assert_eq!(metric(&bench).is_some(), is_kept);
    }
}
