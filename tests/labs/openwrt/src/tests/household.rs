//! What people do to a router besides the manager: other clients, missing packages, comments, odd rules.

use super::*;
use crate::Change;

#[test]
fn a_missing_package_is_neither_listed_nor_called() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.device.missing.insert("rpc-sys".to_owned());
    let out =
        bench.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "list", "params": ["rpc-sys", "uci"] }));
    assert!(out["result"].get("rpc-sys").is_none() && out["result"].get("uci").is_some());
    bench.check(&sid, "rpc-sys.factory", json!({}), json!(-32000));
}

#[test]
fn a_rollback_takes_edits_of_other_files_along() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.call(&sid, "uci.set", harmless());
    bench.check(&sid, "uci.apply", json!({ "rollback": true, "timeout": 30 }), json!([0]));
    assert!(bench.device.edit("dhcp", &[Change::set("lan", "limit", "99")]));
    bench.check(&sid, "uci.rollback", json!({}), json!([0]));
    assert_eq!(bench.option("dhcp", "lan", "limit"), Some(json!("150")));
}

#[test]
fn a_login_while_another_client_applies_gets_the_session_of_that_client() {
    let mut bench = Bench::new();
    let luci = bench.device.luci_applies("network", &[Change::set("wan", "metric", "7")], 30);
    let args = json!({ "username": "root", "password": "openwrt", "timeout": 1193 });
    let login = bench.call(NULL_SESSION, "session.login", args.clone());
    assert_eq!(
        (login[1]["ubus_rpc_session"].as_str(), &login[1]["timeout"]),
        (Some(luci.as_str()), &json!(3600))
    );
    bench.check(&luci, "uci.confirm", json!({}), json!([0]));
    assert_eq!(bench.call(NULL_SESSION, "session.login", args)[1]["timeout"], json!(1193));
}

#[test]
fn a_write_loses_comments_and_the_size_of_the_file_says_so() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let size = |bench: &mut Bench| {
        bench.call(&sid, "file.stat", json!({ "path": "/etc/config/network" }))[1]["size"].clone()
    };
    let before = size(&mut bench);
    bench.device.comments.insert("network".to_owned(), "# mine\n".to_owned());
    assert_ne!(size(&mut bench), before);
    assert!(bench.device.edit("network", &[]));
    assert_eq!(size(&mut bench), before);
}

#[test]
fn the_firewall_skips_what_it_cannot_read_and_logs_it() {
    let mut bench = Bench::new();
    assert!(crate::fw4::skipped(bench.device.config("firewall")).is_empty());
    for (option, value) in [
        ("src_ip", "300.1.1.1"),
        ("dest_port", "99999"),
        ("dest_port", "90-80"),
        ("proto", "tpc"),
        ("weekdays", "Foo"),
        ("target", "MARK"),
    ] {
        let old = bench.option("firewall", "@rule[0]", option);
        assert!(bench.device.edit("firewall", &[Change::set("@rule[0]", option, value)]));
        assert_eq!(crate::fw4::skipped(bench.device.config("firewall")).len(), 1, "{option} {value}");
        let back = match old.as_ref().and_then(Value::as_str) {
            Some(old) => Change::set("@rule[0]", option, old),
            None => Change::Remove { section: "@rule[0]".to_owned(), option: Some(option.to_owned()) },
        };
        assert!(bench.device.edit("firewall", &[back]));
    }
    assert!(bench.device.log.iter().any(|line| line.text.contains("ignoring section")));
}

#[test]
fn a_broken_file_has_no_words_of_its_own() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.device.broken.insert("dhcp".to_owned());
    bench.check(&sid, "uci.get", json!({ "config": "dhcp" }), json!([9]));
}
