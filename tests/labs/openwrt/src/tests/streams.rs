//! Answers that tell what daemons notify: read in uhttpd's source.

use std::time::Duration;

use serde_json::json;

use super::Bench;

const PHONE: &str = "a4:83:e7:11:22:33";

impl Bench {
    fn subscribe(&mut self, sid: &str, object: &str) -> u64 {
        self.device.subscribe(sid, object).unwrap()
    }

    /// What is sent now, as one text; `None` ends the answer.
    fn told(&mut self, stream: u64) -> Option<String> {
        let now = self.device.now;
        self.device.streams.take(stream, now).map(|events| events.concat())
    }
}

#[test]
fn a_right_of_its_own_is_needed() {
    let mut bench = Bench::new();
    assert_eq!(bench.device.subscribe("nobody", "network.interface"), Err(-13));
    let monitor = bench.login("monitor", "m");
    assert_eq!(bench.device.subscribe(&monitor, "network.interface"), Err(-13), "reading is another right");
    let root = bench.root();
    assert_eq!(bench.device.subscribe(&root, "no.such.object"), Err(4));
    bench.device.missing.insert("dnsmasq".to_owned());
    assert_eq!(bench.device.subscribe(&root, "dnsmasq"), Err(4));
    bench.subscribe(&root, "network.interface");
}

#[test]
fn interfaces_are_told_when_the_network_was_loaded() {
    let mut bench = Bench::new();
    let root = bench.root();
    let stream = bench.subscribe(&root, "network.interface");
    let change = crate::Change::from_json(&json!(["set", "wan", "auto", "0"])).unwrap();
    assert!(bench.device.edit("network", &[change]));
    assert_eq!(bench.told(stream).as_deref(), Some(""));
    bench.pass_secs(1);
    let told = bench.told(stream).unwrap();
    assert!(told.contains("event: update\ndata: {") && told.contains("event: down\ndata: {"), "{told}");
    assert!(told.ends_with("}\n\n"), "{told}");
}

#[test]
fn hosts_that_come_and_go_are_told_by_their_radio_and_by_the_dhcp_server() {
    let mut bench = Bench::new();
    let root = bench.root();
    let streams =
        ["hostapd.phy1-ap0", "hostapd.phy0-ap0", "dnsmasq"].map(|object| bench.subscribe(&root, object));
    bench.device.leaves(PHONE);
    bench.device.leaves(PHONE);
    let [own, other, leases] = streams.map(|stream| bench.told(stream).unwrap());
    assert_eq!(own, format!("event: disassoc\ndata: {{\"address\":\"{PHONE}\"}}\n\n"));
    assert_eq!(other, "");
    assert!(leases.starts_with("event: dhcp.release\n"), "{leases}");
    bench.device.returns(&PHONE.to_uppercase());
    let [own, _, leases] = streams.map(|stream| bench.told(stream).unwrap());
    assert!(own.starts_with("event: assoc\n") && leases.starts_with("event: dhcp.ack\n"), "{own}{leases}");
}

#[test]
fn a_quiet_answer_ends() {
    let mut bench = Bench::new();
    let root = bench.root();
    let (quiet, heard) = (bench.subscribe(&root, "dnsmasq"), bench.subscribe(&root, "hostapd.phy1-ap0"));
    bench.pass_secs(20);
    bench.device.leaves(PHONE);
    assert!(bench.told(heard).is_some() && bench.told(quiet).is_some());
    let quiet = bench.subscribe(&root, "network.interface");
    bench.pass_secs(29);
    assert_eq!(bench.told(quiet).as_deref(), Some(""));
    bench.device.advance(bench.device.now + Duration::from_secs(1));
    assert_eq!((bench.told(quiet), bench.told(heard)), (None, None));
    bench.device.streams.close(quiet);
    assert_eq!(bench.device.streams.len(), 2);
}
