//! JSON-RPC, sessions and access.

use super::*;

#[test]
fn envelope_faults_have_the_codes_of_uhttpd() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let call = |params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "call", "params": params });
    for (request, code) in [
        (call(json!([sid, "system", "board"])), -32700),
        (call(json!([sid, "system", "board", {}, 1])), -32700),
        (call(json!([sid, "system", "board", []])), -32700),
        (call(json!({})), -32700),
        (json!({ "id": 1, "method": "call", "params": [sid, "system", "board", {}] }), -32700),
        (
            json!({ "jsonrpc": "1.0", "id": 1, "method": "call", "params": [sid, "system", "board", {}] }),
            -32700,
        ),
        (json!("text"), -32700),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": [] }), -32601),
        (call(json!([sid, "uci", "get", { "config": "network", "ubus_rpc_session": sid }])), -32602),
        (call(json!([sid, "lldpd", "status", {}])), -32000),
        (call(json!(["f".repeat(32), "system", "board", {}])), -32002),
        (call(json!([NULL_SESSION, "system", "board", {}])), -32002),
    ] {
        assert_eq!(bench.send(&request)["error"]["code"], json!(code), "{request}");
    }
    assert_eq!(bench.send(&call(json!([sid, "system", "nothing", {}])))["result"], json!([3]));
}

#[test]
fn absent_object_is_told_before_access() {
    let mut bench = Bench::new();
    bench.check(NULL_SESSION, "lldpd.status", json!({}), json!(-32000));
}

#[test]
fn broken_json_is_a_parse_error() {
    let mut bench = Bench::new();
    let Answer::Json(out) = answer(&mut bench.device, b"{\"jsonrpc\":") else { panic!("answered") };
    assert_eq!(out["error"], json!({ "code": -32700, "message": "Parse error" }));
}

#[test]
fn body_over_the_limit_is_a_parse_error_and_ends_the_connection() {
    let mut bench = Bench::new();
    let body = |bytes: usize| format!("[{}]", " ".repeat(bytes - 2)).into_bytes();
    assert_eq!(answer(&mut bench.device, &body(65_536)), Answer::Json(json!([])));
    let Answer::LastJson(out) = answer(&mut bench.device, &body(65_537)) else {
        panic!("the connection closes")
    };
    assert_eq!(out["error"]["code"], json!(-32700));
}

#[test]
fn batch_is_served_in_order() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let call = |id: u32, method: &str, args: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "call", "params": [sid, "uci", method, args] });
    let out = bench.send(&json!([
        call(1, "set", harmless()),
        call(2, "get", json!({ "config": "network", "section": "wan", "option": "metric" })),
        call(3, "get", json!({ "config": "nothing" })),
    ]));
    assert_eq!(out[1], json!({ "jsonrpc": "2.0", "id": 2, "result": [0, { "value": "7" }] }));
    assert_eq!(out[2]["result"], json!([4]));
}

#[test]
fn list_needs_no_login() {
    let mut bench = Bench::new();
    let out = bench.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "list", "params": ["uci"] }));
    assert_eq!(out["result"]["uci"]["confirm"], json!({}));
    assert_eq!(out["result"]["uci"]["apply"], json!({ "rollback": "boolean", "timeout": "number" }));
    let names = bench.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "list" }));
    assert!(names["result"].as_array().unwrap().contains(&json!("luci-rpc")));
}

#[test]
fn login_answers_session_or_status() {
    let mut bench = Bench::new();
    let out = bench.call(NULL_SESSION, "session.login", json!({ "username": "root", "password": "openwrt" }));
    assert_eq!(out[1]["timeout"], json!(300));
    assert_eq!(out[1]["expires"], json!(300));
    assert_eq!(out[1]["data"]["username"], json!("root"));
    assert_eq!(out[1]["ubus_rpc_session"].as_str().unwrap().len(), 32);
    bench.check(NULL_SESSION, "session.login", json!({ "username": "root", "password": "no" }), json!([6]));
    bench.check(
        NULL_SESSION,
        "session.login",
        json!({ "username": "nobody", "password": "openwrt" }),
        json!([6]),
    );
    bench.check(NULL_SESSION, "session.login", json!({ "username": "root" }), json!([2]));
    bench.check(NULL_SESSION, "session.login", json!({ "username": "root", "password": 5 }), json!([2]));
}

#[test]
fn every_call_renews_the_session() {
    let mut bench = Bench::new();
    let sid = bench.root();
    for _ in 0..3 {
        bench.pass_secs(299);
        assert_eq!(bench.call(&sid, "system.board", json!({}))[0], json!(0));
    }
    bench.pass_secs(300);
    bench.check(&sid, "system.board", json!({}), json!(-32002));
}

#[test]
fn login_names_its_own_timeout_and_zero_never_expires() {
    let mut bench = Bench::new();
    let mut open = |secs: u64| {
        let args = json!({ "username": "root", "password": "openwrt", "timeout": secs });
        bench.call(NULL_SESSION, "session.login", args)[1]["ubus_rpc_session"].as_str().unwrap().to_owned()
    };
    let (short, endless) = (open(10), open(0));
    bench.pass_secs(10);
    bench.check(&short, "uci.confirm", json!({}), json!(-32002));
    bench.pass_secs(1_000_000);
    bench.check(&endless, "uci.confirm", json!({}), json!([5]));
}

#[test]
fn logout_ends_the_calling_session() {
    let mut bench = Bench::new();
    let (one, other) = (bench.root(), bench.root());
    assert_ne!(one, other);
    bench.check(&one, "session.destroy", json!({}), json!([0]));
    bench.check(&one, "uci.confirm", json!({}), json!(-32002));
    bench.check(&other, "uci.confirm", json!({}), json!([5]));
}

#[test]
fn method_access_and_config_access_are_separate() {
    let mut bench = Bench::new();
    let (monitor, netop) = (bench.login("monitor", "m"), bench.login("netop", "n"));
    bench.check(&monitor, "uci.set", harmless(), json!(-32002));
    assert_eq!(bench.call(&monitor, "uci.get", json!({ "config": "network" }))[0], json!(0));
    bench.check(&netop, "uci.set", harmless(), json!([0]));
    let other = json!({ "config": "system", "section": "ntp", "values": { "enabled": "0" } });
    bench.check(&netop, "uci.set", other, json!([6]));
    for (function, object, is_allowed) in
        [("write", "network", true), ("write", "system", false), ("read", "system", true)]
    {
        let probe = json!({ "scope": "uci", "object": object, "function": function });
        bench.check(&netop, "session.access", probe, json!([0, { "access": is_allowed }]));
    }
}

#[test]
fn wrong_type_counts_as_missing_and_extra_arguments_are_ignored() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.check(&sid, "uci.get", json!({ "config": 5 }), json!([2]));
    let args = json!({ "config": "network", "section": "wan", "option": "proto", "extra": 1 });
    bench.check(&sid, "uci.get", args, json!([0, { "value": "dhcp" }]));
    // An optional argument of the wrong type silently takes its default: here the whole configuration.
    let all = bench.call(&sid, "uci.get", json!({ "config": "network", "section": 5 }));
    assert!(all[1]["values"]["lan"].is_object());
}
