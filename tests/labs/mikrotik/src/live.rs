//! What lives in memory: leases, sessions, neighbours and clients of a household. It comes back after a restart.

use crate::device::Router;
use crate::dhcp::{ENDS, LEASES, SEEN};
use crate::interfaces::{link, named, row_links};
use crate::store::{Origin, Values, values};

/// A client of the household.
struct Host {
    address: &'static str,
    mac: &'static str,
    name: &'static str,
    port: &'static str,
}

const HOSTS: [Host; 3] = [
    Host { address: "192.168.88.10", mac: "02:10:AA:00:10:01", name: "workstation", port: "ether2" },
    Host { address: "192.168.88.20", mac: "02:10:AA:00:10:02", name: "tablet", port: "wifi1" },
    Host { address: "192.168.88.21", mac: "02:10:AA:00:10:03", name: "phone", port: "wifi2" },
];

/// Fills memory as after a start of the box.
pub(crate) fn appear(router: &mut Router) {
    lease_hosts(router);
    neighbours(router);
    sessions(router);
    outside(router);
    let fasttrack = [
        ("chain", "forward"),
        ("action", "passthrough"),
        ("comment", "special dummy rule to show fasttrack counters"),
    ];
    let rule = router.store.add("ip/firewall/filter", Origin::Dynamic, values(&fasttrack));
    let first = router.store.rows("ip/firewall/filter").first().map(|row| row.id);
    router.store.place("ip/firewall/filter", &[rule], first);
}

/// Adds a dynamic row that names interfaces in some of its fields.
fn add(router: &mut Router, menu: &'static str, pairs: &[(&str, &str)], interfaces: &[(&str, &str)]) {
    let Some((menu, _)) = crate::facts::Facts::get().menu(menu) else { return };
    let mut row: Values = values(pairs);
    for (field, name) in interfaces {
        let Some((_, interface)) = named(&router.store, name) else { return };
        row.insert((*field).to_owned(), link(interface.id));
    }
    router.store.add(menu, Origin::Dynamic, row);
}

fn lease_hosts(router: &mut Router) {
    let server = router.store.having("ip/dhcp-server", "name", "defconf").map(|row| row.id);
    for host in &HOSTS {
        lease(router, host.address, host.mac, host.name, server);
        let bridge = [("bridge", "bridge"), ("interface", host.port)];
        let learned = [
            ("mac-address", host.mac),
            ("on-interface", host.port),
            ("vid", "1"),
            ("local", "false"),
            ("external", "false"),
        ];
        add(router, "interface/bridge/host", &learned, &bridge);
        add(
            router,
            "ip/arp",
            &[
                ("address", host.address),
                ("mac-address", host.mac),
                ("complete", "true"),
                ("published", "false"),
                ("status", "reachable"),
                ("dhcp", "true"),
            ],
            &[("interface", "bridge")],
        );
        if host.port.starts_with("wifi") {
            let came = (router.unix.saturating_sub(5_400)).max(router.booted_unix).to_string();
            let client = [
                ("mac-address", host.mac),
                ("ssid", "Household"),
                ("signal", if host.port == "wifi1" { "-52" } else { "-61" }),
                ("band", if host.port == "wifi1" { "5ghz-ax" } else { "2ghz-ax" }),
                ("auth-type", "wpa2-psk"),
                ("authorized", "true"),
                ("tx-rate", "1200.9Mbps"),
                ("rx-rate", "864.8Mbps"),
                ("vlan-id", ""),
                ("came", came.as_str()),
            ];
            add(router, crate::wifi::CLIENTS, &client, &[("interface", host.port)]);
        }
    }
}

/// A client got an address.
pub(crate) fn lease(router: &mut Router, address: &str, mac: &str, name: &str, server: Option<u64>) {
    let (ends, seen) = ((router.unix + 420).to_string(), router.unix.to_string());
    let mut row = values(&[
        ("address", address),
        ("mac-address", mac),
        ("host-name", name),
        ("active-client-id", &format!("1:{}", mac.to_lowercase())),
        ("client-id", &format!("1:{}", mac.to_lowercase())),
        (ENDS, &ends),
        (SEEN, &seen),
    ]);
    if let Some(server) = server {
        row.insert("server".to_owned(), row_links("ip/dhcp-server", &[server]));
    }
    router.store.add(LEASES, Origin::Dynamic, row);
}

fn neighbours(router: &mut Router) {
    let switch = [
        ("address", "192.168.88.2"),
        ("address4", "192.168.88.2"),
        ("mac-address", "02:10:AA:00:00:01"),
        ("identity", "switch1"),
        ("board", "CRS326-24G-2S+"),
        ("platform", "MikroTik"),
        ("version", "7.20.4 (stable) 2026-01-02 10:00:00"),
        ("interface", "ether3,bridge"),
        ("interface-name", "bridge/ether1"),
        ("discovered-by", "cdp,lldp,mndp"),
        ("system-caps", "bridge,router"),
        ("system-caps-enabled", "bridge,router"),
        ("age", "12s"),
        ("uptime", "3d4h"),
        ("unpack", "none"),
    ];
    add(router, "ip/neighbor", &switch, &[]);
    let phone = [
        ("mac-address", "02:10:AA:00:00:02"),
        ("identity", "desk-phone"),
        ("interface", "ether4,bridge"),
        ("interface-name", "eth0"),
        ("discovered-by", "lldp"),
        ("system-caps", "telephone"),
        ("age", "25s"),
        ("unpack", "none"),
    ];
    add(router, "ip/neighbor", &phone, &[]);
    let neighbor = [
        ("address", "fe80::10:aaff:fe00:1001"),
        ("mac-address", "02:10:AA:00:10:01"),
        ("status", "reachable"),
        ("router", "false"),
    ];
    add(router, "ipv6/neighbor", &neighbor, &[("interface", "bridge")]);
}

fn sessions(router: &mut Router) {
    let staff = [
        ("name", "staff"),
        ("service", "l2tp"),
        ("caller-id", "203.0.113.44"),
        ("address", "192.168.89.10"),
        ("uptime", "1h12m5s"),
        ("encoding", ""),
        ("session-id", "0x81A00001"),
        ("radius", "false"),
    ];
    add(router, "ppp/active", &staff, &[]);
    let peer = [
        ("local-address", "198.51.100.23"),
        ("remote-address", "203.0.113.88"),
        ("state", "established"),
        ("side", "initiator"),
        ("uptime", "4h2m"),
        ("rx-bytes", "1204211"),
        ("tx-bytes", "884100"),
        ("ph2-total", "1"),
    ];
    add(router, "ip/ipsec/active-peers", &peer, &[]);
    let guest = [
        ("user", "guest1"),
        ("address", "192.168.20.30"),
        ("mac-address", "02:10:AA:00:30:01"),
        ("uptime", "25m"),
        ("server", "hotspot1"),
    ];
    add(router, "ip/hotspot/active", &guest, &[]);
    let host = [
        ("mac-address", "02:10:AA:00:30:01"),
        ("address", "192.168.20.30"),
        ("to-address", "192.168.20.30"),
        ("server", "hotspot1"),
        ("authorized", "true"),
    ];
    add(router, "ip/hotspot/host", &host, &[]);
    let old = [
        ("mac-address", "02:10:AA:00:40:01"),
        ("signal-strength", "-60@6Mbps"),
        ("tx-rate", "72.2Mbps"),
        ("rx-rate", "65Mbps"),
        ("ap", "false"),
    ];
    add(router, "interface/wireless/registration-table", &old, &[("interface", "wlan1")]);
    for (port, state) in [("443", "established"), ("22", "time-wait")] {
        let outside = format!("203.0.113.7:{port}");
        let connection = [
            ("protocol", "tcp"),
            ("src-address", "192.168.88.10:51000"),
            ("dst-address", outside.as_str()),
            ("reply-src-address", outside.as_str()),
            ("reply-dst-address", "198.51.100.23:51000"),
            ("tcp-state", state),
            ("timeout", "23h59m"),
            ("orig-packets", "120"),
            ("orig-bytes", "14200"),
            ("repl-packets", "160"),
            ("repl-bytes", "182000"),
            ("assured", "true"),
            ("confirmed", "true"),
            ("seen-reply", "true"),
        ];
        add(router, "ip/firewall/connection", &connection, &[]);
    }
}

/// The address that the provider gives.
pub(crate) fn outside(router: &mut Router) {
    let address = [("address", "198.51.100.23/24"), ("network", "198.51.100.0"), ("disabled", "false")];
    add(router, "ip/address", &address, &[("interface", "ether1")]);
    add(
        router,
        "ip/arp",
        &[
            ("address", "198.51.100.1"),
            ("mac-address", "02:10:AA:00:50:01"),
            ("complete", "true"),
            ("published", "false"),
            ("status", "reachable"),
        ],
        &[("interface", "ether1")],
    );
}
