//! Texts that the daemons take, and those that they do not.

use serde_json::json;

use crate::features::check::Check::{self, *};
use crate::features::{SECTIONS, Type};

#[track_caller]
fn check(check: Check, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(check.accepts(text), "{check:?} takes '{text}'");
    }
    for text in bad {
        assert!(!check.accepts(text), "{check:?} does not take '{text}'");
    }
}

#[test]
fn texts_are_read_as_the_device_reads_them() {
    check(
        Network,
        &["10.0.0.1", "!10.0.0.0/8", "10.0.0.0/255.0.0.0", "fd00::/8", "10.0.0.1-10.0.0.9"],
        &[
            "300.1.1.1",
            "10.0.0.0/33",
            "10.0.0.0/255.0.255.0",
            "fd00::/129",
            "10.0.0.9-10.0.0.1",
            "10.0.0.1-fd00::1",
            "lan",
            "",
        ],
    );
    check(
        Ports,
        &["0", "80", "80-90", "80:90", "80 443", "!22"],
        &["99999", "90-80", "-1", "80-", "a", "", "80,90"],
    );
    check(Protocol, &["tcp", "ICMPv6", "all", "47", "!udp"], &["tpc", "256", "-1", ""]);
    check(IcmpType, &["echo-request", "8", "3/1"], &["echo-reqest", "256", "3/"]);
    check(Weekdays, &["Mon", "mon tuesday", "!sun"], &["Foo", "Mo", "", "Monda"]);
    check(Time, &["08:30", "8:5", "23:59:59"], &["25:00", "08:60", "8", "08:00:00:00"]);
    check(Mark, &["0x10", "16/0xff"], &["0xfffffffff", "x", "", "16/"]);
    check(Limit, &["10", "10/second", "10/min", "1/h"], &["0/s", "10/fortnight", "/s", "10/"]);
    check(
        Mac,
        &["02:00:00:00:00:01", "*:*:00:00:00:01"],
        &["02:00:00:00:00", "020000000001", "0g:00:00:00:00:01"],
    );
    check(Netmask, &["255.255.255.0", "0.0.0.0"], &["255.0.255.0", "24"]);
    check(Lease, &["12h", "infinite", "600"], &["h", "12y", ""]);
    check(HostName, &["nas", "nas-1.lan", "a"], &["-", "a..b", ".a", "a b"]);
    check(VlanPort, &["lan1", "lan1:t", "lan2:u*", "lan3:*"], &["lan1:x", ":t", "lan1:t:u"]);
    check(Ipv6Prefix, &["fd00::1", "fd00::1/64"], &["10.0.0.1", "fd00::1/129"]);
    check(Zone, &["wan", "guest-1"], &["", "zone-of-12-c"]);
}

/// A schema that is narrower than what is shown would refuse a body that was read.
#[test]
fn every_check_of_a_field_has_a_pattern_and_words() {
    for field in SECTIONS.iter().flat_map(|feature| feature.key.iter().chain(feature.fields)) {
        if let Type::Text(check) | Type::List(check) = field.takes {
            assert!(check.pattern().starts_with('^') && check.pattern().ends_with('$'), "{}", field.name);
            assert!(!check.wanted().is_empty());
        }
    }
    assert_eq!(json!(SECTIONS.len()), json!(11));
}
