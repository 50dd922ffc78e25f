//! Reads answer with the fields of the device, and follow the committed configuration.

use super::*;

#[test]
fn every_listed_method_answers_one_way_or_another() {
    let mut bench = Bench::new();
    let sid = bench.root();
    for name in [
        "system.board",
        "system.info",
        "network.interface.dump",
        "network.device.status",
        "luci-rpc.getDHCPLeases",
        "luci-rpc.getHostHints",
        "luci-rpc.getNetworkDevices",
        "network.wireless.status",
        "iwinfo.devices",
        "hostapd.phy0-ap0.get_clients",
        "dhcp.ipv6leases",
        "log.read",
        "rc.list",
        "rpc-sys.packagelist",
        "service.list",
        "uci.configs",
    ] {
        let out = bench.call(&sid, name, json!({}));
        assert_eq!(out[0], json!(0), "{name}");
        assert!(out[1].as_object().is_some_and(|fields| !fields.is_empty()), "{name}");
    }
    bench.check(&sid, "dhcp.ipv4leases", json!({}), json!([3]));
    bench.check(&sid, "iwinfo.info", json!({}), json!([2]));
}

#[test]
fn new_interface_comes_up_with_its_address() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let guest = json!({ "proto": "static", "device": "br-lan.20", "ipaddr": "10.20.0.1", "netmask": "255.255.255.0" });
    bench.call(
        &sid,
        "uci.add",
        json!({ "config": "network", "type": "interface", "name": "guest", "values": guest }),
    );
    bench.call(
        &sid,
        "uci.set",
        json!({ "config": "system", "section": "@system[0]", "values": { "hostname": "attic" } }),
    );
    bench.check(&sid, "uci.apply", json!({ "rollback": true }), json!([0]));
    let dump = bench.call(&sid, "network.interface.dump", json!({}));
    let all = dump[1]["interface"].as_array().unwrap();
    let guest = all.iter().find(|one| one["interface"] == "guest").unwrap();
    assert_eq!(
        (&guest["up"], &guest["ipv4-address"]),
        (&json!(true), &json!([{ "address": "10.20.0.1", "mask": 24 }]))
    );
    assert!(all.iter().all(|one| one["interface"] != "wan2"), "a disabled interface is not created");
    assert_eq!(bench.call(&sid, "system.board", json!({}))[1]["hostname"], json!("attic"));
}

#[test]
fn counters_grow() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let mut received = || {
        bench.call(&sid, "network.device.status", json!({ "name": "lan1" }))[1]["statistics"]["rx_bytes"]
            .as_u64()
            .unwrap()
    };
    let first = received();
    bench.pass_secs(10);
    let mut received = || {
        bench.call(&sid, "network.device.status", json!({ "name": "lan1" }))[1]["statistics"]["rx_bytes"]
            .as_u64()
            .unwrap()
    };
    assert!(received() > first);
    bench.check(&sid, "network.device.status", json!({ "name": "eth9" }), json!([4]));
}

#[test]
fn macs_differ_in_case_between_sources() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let list = bench.call(&sid, "iwinfo.assoclist", json!({ "device": "phy1-ap0" }));
    assert_eq!(list[1]["results"][0]["mac"], json!("A4:83:E7:11:22:33"));
    let clients = bench.call(&sid, "hostapd.phy1-ap0.get_clients", json!({}));
    assert!(clients[1]["clients"].get("a4:83:e7:11:22:33").is_some());
    let leases = bench.call(&sid, "luci-rpc.getDHCPLeases", json!({ "family": 4 }));
    assert_eq!(leases[1]["dhcp_leases"].as_array().unwrap().len(), 4);
    assert_eq!(leases[1]["dhcp_leases"][3]["expires"], json!(false));
}

#[test]
fn who_left_the_house_is_on_no_list() {
    let mut bench = Bench::new();
    let sid = bench.root();
    let (phone, laptop) = ("a4:83:e7:11:22:33", "dc:a6:32:44:55:66");
    bench.device.away.insert(phone.to_owned());
    for (call, args) in [
        ("luci-rpc.getDHCPLeases", json!({ "family": 4 })),
        ("luci-rpc.getHostHints", json!({})),
        ("iwinfo.assoclist", json!({ "device": "phy1-ap0" })),
        ("hostapd.phy1-ap0.get_clients", json!({})),
    ] {
        let answer = bench.call(&sid, call, args).to_string().to_ascii_lowercase();
        assert!(!answer.contains(phone) && answer.contains(laptop), "{call}: {answer}");
    }
}

#[test]
fn files_answer_by_status() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.device.files.insert("/tmp/big".to_owned(), vec![b'x'; 262_145]);
    for (path, status) in [("/none", 4), ("/tmp/empty", 5), ("/tmp/big", 8)] {
        bench.check(&sid, "file.read", json!({ "path": path }), json!([status]));
    }
    assert_eq!(bench.call(&sid, "file.stat", json!({ "path": "/tmp/big" }))[1]["size"], json!(262_145));
    bench.check(&sid, "file.exec", json!({ "command": "/bin/rm" }), json!([4]));
    bench.check(&sid, "file.read", json!({}), json!([2]));
}

#[test]
fn recorder_keeps_order_and_no_password() {
    let mut bench = Bench::new();
    let sid = bench.root();
    bench.call(&sid, "uci.set", harmless());
    bench.call(&sid, "uci.get", json!({ "config": "none" }));
    let calls = &bench.device.recorder.calls;
    let seen: Vec<_> = calls.iter().map(|call| (call.name(), call.is_write, call.status)).collect();
    assert_eq!(
        seen,
        [("session.login".into(), false, 0), ("uci.set".into(), true, 0), ("uci.get".into(), false, 4)]
    );
    assert_eq!(calls[0].args["password"], json!("***"));
}
