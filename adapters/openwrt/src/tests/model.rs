//! The model: what is read of the simulated router in the words that all vendors share.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use heddle_lab_openwrt::{Change, Router, RouterBuilder};
use heddle_marketplace::model;
use heddle_sdk::testing::{FakeHost, every_page, json_body, json_response};
use heddle_sdk::{Adapter as _, Completeness, Fault, ModelObject, Request, Response};
use serde_json::{Map, Value, json};

use crate::OpenWrt;

mod odd;

/// The time of the router and of the host: the first moment of 2026.
const EPOCH_MS: u64 = 1_767_225_600_000;
const NULL_SESSION: &str = "00000000000000000000000000000000";

/// A simulated router, with a session of root.
pub(super) struct Bench {
    router: Router,
    sid: RefCell<String>,
    asked: Cell<usize>,
    /// A call that fails with this answer, by object and method.
    failing: RefCell<Option<(&'static str, Value)>>,
    _runtime: tokio::runtime::Runtime,
}

impl Bench {
    pub(super) fn of(builder: RouterBuilder) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let router = runtime.block_on(builder.start());
        let sid = RefCell::new(log_in(&router));
        Bench { router, sid, asked: Cell::new(0), failing: RefCell::default(), _runtime: runtime }
    }

    /// A router whose household has something of everything.
    pub(super) fn filled() -> Self {
        let bench = Self::of(Router::builder());
        bench.edit(
            "network",
            &[
                (
                    "v20",
                    "bridge-vlan",
                    &[("device", "br-lan"), ("vlan", "20"), ("ports", "lan1:t"), ("ports", "lan2:u*")],
                ),
                (
                    "guest",
                    "interface",
                    &[
                        ("device", "br-lan.20"),
                        ("proto", "static"),
                        ("ipaddr", "192.168.20.1"),
                        ("netmask", "255.255.255.0"),
                    ],
                ),
                ("g20", "device", &[("name", "br-lan.20"), ("type", "8021q")]),
            ],
        );
        bench.serve_names();
        bench.filter();
        let set = |config: &str, section: &str, option: &str, value: &str| {
            assert!(bench.router.edit(config, &[Change::set(section, option, value)]), "{config}");
        };
        set("wireless", "radio0", "txpower", "20");
        set("wireless", "radio0", "channel", "auto");
        for (option, value) in [("hidden", "1"), ("isolate", "0"), ("ieee80211r", "1"), ("ieee80211w", "2")] {
            set("wireless", "default_radio0", option, value);
        }
        bench
    }

    fn serve_names(&self) {
        self.edit(
            "dhcp",
            &[
                (
                    "guest",
                    "dhcp",
                    &[
                        ("interface", "guest"),
                        ("start", "100"),
                        ("leasetime", "30m"),
                        ("dhcp_option", "6,192.168.20.1,9.9.9.9"),
                        ("dhcp_option", "option:router,192.168.20.1"),
                        ("dhcp_option", "42,192.168.20.1"),
                    ],
                ),
                ("tv", "domain", &[("name", "tv.lan"), ("ip", "192.168.1.60")]),
                ("media", "cname", &[("cname", "media.lan"), ("target", "tv.lan")]),
            ],
        );
    }

    fn filter(&self) {
        self.edit(
            "firewall",
            &[
                (
                    "odd",
                    "rule",
                    &[
                        ("name", "odd"),
                        ("src", "lan"),
                        ("dest", "wan"),
                        ("src_ip", "!10.0.0.0/8"),
                        ("dest_ip", "192.0.2.1"),
                        ("src_port", "1024:65535"),
                        ("dest_port", "25"),
                        ("proto", "tcp"),
                        ("target", "REJECT"),
                        ("log", "1"),
                        ("weekdays", "Mon"),
                        ("enabled", "0"),
                    ],
                ),
                (
                    "small",
                    "rule",
                    &[
                        ("name", "small"),
                        ("src", "wan"),
                        ("family", "IPv6"),
                        ("target", "accept"),
                        ("ipset", "known"),
                        ("device", "eth0"),
                        ("direction", "in"),
                        ("dscp", "CS1"),
                        ("monthdays", "1"),
                        ("utc_time", "1"),
                        ("set_mark", "0x1"),
                        ("made_up", "1"),
                    ],
                ),
                (
                    "in",
                    "redirect",
                    &[
                        ("name", "in"),
                        ("src", "wan"),
                        ("src_ip", "198.51.100.7"),
                        ("src_dip", "203.0.113.57"),
                        ("src_dport", "2222"),
                        ("dest", "lan"),
                        ("dest_ip", "192.168.1.20"),
                        ("dest_port", "22"),
                        ("proto", "tcp"),
                        ("target", "DNAT"),
                    ],
                ),
            ],
        );
    }

    /// Adds sections with their options; an option that stands twice is a list.
    fn edit(&self, config: &str, sections: &[(&str, &str, &[(&str, &str)])]) {
        for (name, kind, options) in sections {
            let mut changes = vec![Change::Create { section: (*name).to_owned(), kind: (*kind).to_owned() }];
            changes.extend(options.iter().map(|(option, value)| {
                let is_list = options.iter().filter(|(other, _)| other == option).count() > 1;
                if is_list {
                    Change::ListAdd {
                        section: (*name).to_owned(),
                        option: (*option).to_owned(),
                        value: (*value).to_owned(),
                    }
                } else {
                    Change::set(name, option, value)
                }
            }));
            assert!(self.router.edit(config, &changes), "{config} {name}");
        }
    }

    pub(super) fn host(&self) -> FakeHost<'_> {
        let host = FakeHost::new(|request, _| Ok(self.exchange(request)));
        host.now_ms.set(EPOCH_MS);
        host
    }

    /// The host fills in the session, and logs in again where the router has forgotten it.
    fn exchange(&self, request: &Request) -> Response {
        self.asked.set(self.asked.get() + 1);
        let answer = self.sent(request);
        let is_refused = |answer: &Value| answer["error"]["code"] == -32002;
        let has_ended =
            answer.as_array().map_or_else(|| is_refused(&answer), |all| all.iter().all(is_refused));
        if !has_ended {
            return json_response(200, &answer);
        }
        self.sid.replace(log_in(&self.router));
        json_response(200, &self.sent(request))
    }

    fn sent(&self, request: &Request) -> Value {
        let mut body = json_body(request).unwrap();
        let fill = |call: &mut Value| {
            if call["method"] == "call" {
                call["params"][0] = json!(*self.sid.borrow());
            }
        };
        match &mut body {
            Value::Array(calls) => calls.iter_mut().for_each(fill),
            call => fill(call),
        }
        let mut answer = self.router.answer(body.to_string().as_bytes());
        if let Some((name, failure)) = &*self.failing.borrow() {
            let is_meant = |call: &Value| {
                let word = |at: usize| call["params"][at].as_str().unwrap_or_default();
                format!("{}.{}", word(1), word(2)) == *name
            };
            match (&body, &mut answer) {
                (Value::Array(calls), Value::Array(answers)) => {
                    let pairs = calls.iter().zip(answers).filter(|(call, _)| is_meant(call));
                    pairs.for_each(|(_, answer)| answer.clone_from(failure));
                }
                (call, answer) if is_meant(call) => answer.clone_from(failure),
                _ => {}
            }
        }
        answer
    }

    fn fail(&self, call: &'static str, answer: &Value) {
        self.failing.replace(Some((call, answer.clone())));
    }

    fn all(&self, kind: &str) -> Vec<ModelObject> {
        every_page(|cursor| OpenWrt::list_model(&self.host(), kind, None, cursor)).0
    }

    /// The fields of the object with this label or key.
    #[track_caller]
    fn of_label(&self, kind: &str, label: &str) -> Value {
        let objects = self.all(kind);
        let known: Vec<(&str, &str)> =
            objects.iter().map(|one| (one.key.as_str(), one.label.as_str())).collect();
        let found = objects.iter().find(|one| one.label == label || one.key == label);
        Value::Object(fields(found.unwrap_or_else(|| panic!("'{label}' is none of {known:?}"))))
    }
}

/// A new session of root.
fn log_in(router: &Router) -> String {
    let login = json!({ "jsonrpc": "2.0", "id": 1, "method": "call", "params":
        [NULL_SESSION, "session", "login", { "username": "root", "password": "openwrt", "timeout": 1193 }] });
    let answer = router.answer(login.to_string().as_bytes());
    answer["result"][1]["ubus_rpc_session"].as_str().unwrap().to_owned()
}

fn fields(object: &ModelObject) -> Map<String, Value> {
    serde_json::from_str(&object.fields).unwrap()
}

fn kinds() -> Vec<(String, BTreeSet<String>)> {
    let entries: Vec<Value> = serde_json::from_str(include_str!("../../model.json")).unwrap();
    let names = |entry: &Value| {
        let names = entry["fields"].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    entries.iter().map(|entry| (entry["kind"].as_str().unwrap().to_owned(), names(entry))).collect()
}

#[test]
fn every_object_fits_its_kind_and_every_field_that_is_named_is_filled() {
    let bench = Bench::filled();
    // Only the other server for DHCP says where a lease is.
    let other = Bench::of(Router::builder().odhcpd_leases());
    other.router.without_objects(&["luci-rpc"]);
    let mut problems = Vec::new();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for bench in [&bench, &other] {
        let devices = OpenWrt::list_devices(&bench.host(), None, None).unwrap().items;
        let identities: BTreeSet<String> = devices.into_iter().map(|device| device.identity).collect();
        for (kind, _) in kinds() {
            let (known, mut keys) = (model::find(&kind).unwrap(), BTreeSet::new());
            for object in bench.all(&kind) {
                let fields = fields(&object);
                if let Some(problem) = known.problem(&fields) {
                    problems.push(format!("{kind} '{}': {problem}", object.key));
                }
                if !keys.insert(object.key.clone()) || object.key.is_empty() || object.label.is_empty() {
                    problems.push(format!("{kind}: '{}' is no key, or twice", object.key));
                }
                if object.device.as_ref().is_some_and(|device| !identities.contains(device)) {
                    problems.push(format!("{kind} '{}': no such device: {:?}", object.key, object.device));
                }
                found.entry(kind.clone()).or_default().extend(fields.into_iter().map(|(name, _)| name));
            }
        }
    }
    for (kind, named) in kinds() {
        let found = found.remove(&kind).unwrap_or_default();
        let lacking: Vec<_> = named.symmetric_difference(&found).collect();
        if !lacking.is_empty() {
            problems.push(format!("{kind}: named or filled, and not both: {lacking:?}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn objects_of_the_vendor_behind_the_model_can_be_read() {
    let bench = Bench::filled();
    for (kind, _) in kinds() {
        for object in bench.all(&kind) {
            let Some(native) = object.native else { continue };
            let read = OpenWrt::get_object(&bench.host(), &native.kind, None, &native.key);
            assert!(read.is_ok(), "{kind} '{}': {:?}", object.key, read.err());
        }
    }
}

#[test]
fn a_kind_takes_few_requests() {
    let bench = Bench::filled();
    for (kind, _) in kinds() {
        let before = bench.asked.get();
        bench.all(&kind);
        let most = if kind == "client" { 3 } else { 1 };
        assert!(bench.asked.get() - before <= most, "{kind}: {}", bench.asked.get() - before);
    }
}

#[test]
fn router_has_its_figures_and_ports() {
    let bench = Bench::filled();
    let system = bench.of_label("system", "OpenWrt");
    assert_eq!(
        (&system["role"], &system["version"], &system["model"], &system["memory_bytes"]),
        (&json!("router"), &json!("24.10.0"), &json!("GL.iNet GL-MT6000"), &json!(1_029_898_240_u64))
    );
    let used = system["memory_used_bytes"].as_u64().unwrap();
    assert_eq!(used, 1_029_898_240 - 768_311_296);
    assert_eq!(bench.of_label("firmware", "router"), json!({ "current": "24.10.0" }));
    let lan1 = bench.of_label("port", "lan1");
    assert_eq!(
        (
            &lan1["speed_mbps"],
            &lan1["duplex"],
            &lan1["tagged_vlans"],
            &lan1["tagged_mode"],
            lan1.get("native_vlan")
        ),
        (&json!(1000), &json!("full"), &json!([20]), &json!("list"), None)
    );
    let lan2 = bench.of_label("port", "lan2");
    assert_eq!((&lan2["native_vlan"], &lan2["tagged_vlans"]), (&json!(20), &json!([])));
    let lan3 = bench.of_label("port", "lan3");
    assert_eq!(
        (&lan3["link"], lan3.get("speed_mbps"), lan3.get("tagged_mode")),
        (&json!("down"), None, None)
    );
    assert_eq!(bench.of_label("port", "wan")["uplink"], true);
}

#[test]
fn interfaces_vlans_and_routes_refer_to_one_another() {
    let bench = Bench::filled();
    let lan = bench.of_label("interface", "br-lan");
    assert_eq!(
        (&lan["type"], &lan["role"], &lan["mac"]),
        (&json!("bridge"), &json!("lan"), &json!("94:83:c4:a0:b1:10"))
    );
    assert_eq!(lan["addresses"], json!(["192.168.1.1/24", "fd4a:9c11:7e02::1/60"]));
    let (rx, tx) =
        (lan["counters"]["rx_bytes"].as_u64().unwrap(), lan["counters"]["tx_bytes"].as_u64().unwrap());
    assert!(rx > tx, "what the router receives");
    assert_eq!(bench.of_label("interface", "lan1")["master"], "br-lan");
    let guest = bench.of_label("interface", "br-lan.20");
    assert_eq!(
        (&guest["type"], &guest["lower"], &guest["vlan_id"]),
        (&json!("vlan"), &json!("br-lan"), &json!(20))
    );
    assert_eq!(
        bench.of_label("vlan", "br-lan:20"),
        json!({ "vlan_id": 20, "name": "guest", "subnets": ["192.168.20.0/24"], "gateway": "192.168.20.1",
            "interface": "guest",
            "members": [{ "port": "lan1", "tagged": true }, { "port": "lan2", "tagged": false }] })
    );
    assert_eq!(
        bench.of_label("route", "0.0.0.0/0"),
        json!({ "destination": "0.0.0.0/0", "type": "unicast", "next_hop": "203.0.113.1", "interface": "wan",
            "metric": 0, "origin_type": "dynamic" })
    );
    assert_eq!(bench.of_label("route", "192.168.20.0/24")["origin_type"], "connected");
}

#[test]
fn air_and_its_clients_are_told_without_the_key() {
    let bench = Bench::filled();
    assert_eq!(
        bench.of_label("radio", "radio0"),
        json!({ "enabled": true, "band": "2.4", "channel_auto": true, "width_mhz": 20, "tx_power_dbm": 20.0 })
    );
    assert_eq!(bench.of_label("radio", "radio1")["channel"], 36);
    assert_eq!(
        bench.of_label("ssid", "default_radio0"),
        json!({ "name": "Home", "enabled": true, "security": "wpa2-psk", "bands": ["2.4"], "hidden": true,
            "isolation": false, "fast_roaming": true, "pmf": "required" })
    );
    assert_eq!(bench.of_label("ssid", "default_radio1")["security"], "wpa2-wpa3");
    assert_eq!(
        bench.of_label("client", "phone"),
        json!({ "mac": "a4:83:e7:11:22:33", "addresses": ["192.168.1.133"], "hostname": "phone",
            "connection": "wireless", "ssid": "Home", "interface": "lan", "band": "5", "signal_dbm": -53 })
    );
    let nas = bench.of_label("client", "nas");
    assert_eq!((nas.get("connection"), nas.get("ssid")), (None, None), "a lease does not say how");
    let texts: Vec<String> =
        kinds().iter().flat_map(|(kind, _)| bench.all(kind)).map(|one| one.fields).collect();
    assert!(!texts.iter().any(|text| text.contains("wifi-secret")), "a key leaves the adapter");
}

#[test]
fn addresses_and_names_are_those_of_the_configuration() {
    let bench = Bench::filled();
    assert_eq!(
        bench.of_label("dhcp-pool", "guest"),
        json!({ "interface": "guest", "enabled": true, "lease_seconds": 1800, "gateway": "192.168.20.1",
            "dns_servers": ["192.168.20.1", "9.9.9.9"], "domain": "lan",
            "options": [{ "code": 42, "value": "192.168.20.1" }] })
    );
    assert_eq!(bench.of_label("dhcp-pool", "wan")["enabled"], false);
    assert_eq!(
        bench.of_label("dhcp-reservation", "printer"),
        json!({ "mac": "3c:2a:f4:01:02:03", "address": "192.168.1.21", "hostname": "printer" })
    );
    let lease = bench.of_label("dhcp-lease", "phone");
    assert_eq!((&lease["address"], &lease["state"]), (&json!("192.168.1.133"), &json!("active")));
    assert!(lease["ends_at"].as_str().unwrap().starts_with("2026-01-01T11:2"), "{lease}");
    assert_eq!(bench.of_label("dhcp-lease", "nas").get("ends_at"), None, "it has no end");
    assert_eq!(
        bench.of_label("dns-record", "tv.lan"),
        json!({ "name": "tv.lan", "type": "A", "value": "192.168.1.60" })
    );
    assert_eq!(bench.of_label("dns-record", "media.lan")["type"], "CNAME");
}

#[test]
fn lease_ends_at_its_time_in_every_time_zone() {
    let bench = Bench::filled();
    assert!(bench.router.edit("system", &[Change::set("@system[0]", "timezone", "CET-1CEST")]));
    let ends = |bench: &Bench| {
        let lease = bench.of_label("dhcp-lease", "phone");
        lease["ends_at"].as_str().unwrap().to_owned()
    };
    assert!(ends(&bench).starts_with("2026-01-01T11:2"), "{}", ends(&bench));
    bench.router.without_objects(&["luci-rpc"]);
    assert_eq!(ends(&bench), "2026-01-01T12:00:00Z", "as the file of leases has it");
}

#[test]
fn addresses_of_one_host_are_leases_of_their_own() {
    let bench = Bench::filled();
    let lease = |address: &str| json!({ "expires": 60, "macaddr": "02:00:00:00:00:01", "ipaddr": address });
    let answer = json!({ "dhcp_leases": [lease("192.168.1.7"), lease("192.168.20.7")] });
    bench.fail("luci-rpc.getDHCPLeases", &json!({ "result": [0, answer] }));
    let keys: Vec<String> = bench.all("dhcp-lease").into_iter().map(|lease| lease.key).collect();
    assert_eq!(keys, ["02:00:00:00:00:01:192.168.1.7", "02:00:00:00:00:01:192.168.20.7"]);
}

#[test]
fn rules_count_within_their_zones() {
    let bench = Bench::filled();
    assert_eq!(
        bench.of_label("firewall-rule", "odd"),
        json!({
            "scope": { "kind": "zone-pair", "key": "lan>wan" }, "position": 0, "name": "odd", "enabled": false,
            "action": "reject", "direction": "forward", "ip_version": "both", "from": ["lan"], "to": ["wan"],
            "source": { "addresses": ["10.0.0.0/8"], "negated": true }, "destination": { "addresses": ["192.0.2.1"] },
            "protocol": "tcp", "source_ports": ["1024-65535"], "destination_ports": ["25"], "log": true, "final": true,
            "partial": ["schedule"]
        })
    );
    let small = bench.of_label("firewall-rule", "small");
    assert_eq!((&small["action"], &small["ip_version"]), (&json!("accept"), &json!("6")), "in small letters");
    assert_eq!(small["partial"], json!(["device", "dscp", "ipset", "made_up", "schedule", "mark"]));
    let ping = bench.of_label("firewall-rule", "Allow-Ping");
    assert_eq!(
        (&ping["position"], &ping["direction"], &ping["partial"], &ping["source"]),
        (&json!(1), &json!("in"), &json!(["icmp type"]), &json!({ "any": true }))
    );
    assert_eq!(
        bench.of_label("nat-rule", "in"),
        json!({ "name": "in", "position": 1, "type": "port-forward", "interface": "wan", "protocol": "tcp",
            "source": ["198.51.100.7"], "external": { "addresses": ["203.0.113.57"], "ports": ["2222"] },
            "internal": { "addresses": ["192.168.1.20"], "ports": ["22"] }, "passes": true, "enabled": true })
    );
}
