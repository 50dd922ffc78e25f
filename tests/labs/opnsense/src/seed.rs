//! The configuration with which the firewall starts: a household with a guest network and some VPNs.

use sha2::{Digest, Sha256};

use crate::accounts::{KEYS, hash};
use crate::choices::{ALIASES, ASSIGNMENTS, CATEGORIES, GATEWAYS, USER_GROUPS, USERS};
use crate::config::{Config, values};
use crate::dns;
use crate::hardware::{ADDRESSES, mac};
use crate::hooks::{INSTANCES, PEERS, VLANS};
use crate::settings::Settings;
use crate::vpn::key_pair;

/// An id that is always the same for the same name and number.
pub(crate) fn uuid(name: &str, number: u64) -> String {
    let digest = hex::encode(Sha256::digest(format!("{name} {number}")));
    format!(
        "{}-{}-4{}-8{}-{}",
        &digest[..8],
        &digest[8..12],
        &digest[12..15],
        &digest[15..18],
        &digest[18..30]
    )
}

/// The whole configuration.
pub(crate) fn configuration(settings: &Settings) -> Config {
    let mut config = defaults();
    network(&mut config);
    filter(&mut config, settings.rules);
    services(&mut config);
    tunnels(&mut config);
    old_tunnels(&mut config);
    users(&mut config, settings);
    config
}

/// What a box has that was never configured: two interfaces and the administrator.
pub(crate) fn defaults() -> Config {
    let mut config = Config::default();
    let mut put = |node: &str, id: &str, pairs: &[(&str, &str)]| config.put(node, id, values(pairs));
    put(ASSIGNMENTS, "wan", &[("if", "igb0"), ("descr", "WAN"), ("lock", "1")]);
    put(ASSIGNMENTS, "lan", &[("if", "igb1"), ("descr", "LAN"), ("lock", "1")]);
    put(
        ADDRESSES,
        "wan",
        &[("enable", "1"), ("ipaddr", "198.51.100.2"), ("subnet", "24"), ("gateway", "198.51.100.1")],
    );
    put(ADDRESSES, "lan", &[("enable", "1"), ("ipaddr", "192.168.1.1"), ("subnet", "24")]);
    put(
        USERS,
        &uuid("user", 0),
        &[
            ("uid", "0"),
            ("name", "root"),
            ("scope", "system"),
            ("descr", "System Administrator"),
            ("password", &hash("opnsense")),
        ],
    );
    put(
        USER_GROUPS,
        &uuid("group", 0),
        &[("gid", "1999"), ("name", "admins"), ("scope", "system"), ("priv", "page-all"), ("member", "0")],
    );
    put("Unbound/Unbound:", "", &[("general.enabled", "1")]);
    put("Trust/General:", "", &[]);
    config
}

fn network(config: &mut Config) {
    let mut put = |node: &str, id: &str, pairs: &[(&str, &str)]| config.put(node, id, values(pairs));
    put(VLANS, &uuid("vlan", 1), &[("if", "igb1"), ("tag", "10"), ("vlanif", "vlan01"), ("descr", "things")]);
    put(VLANS, &uuid("vlan", 2), &[("if", "igb1"), ("tag", "20"), ("vlanif", "vlan02"), ("descr", "guests")]);
    put(ASSIGNMENTS, "opt1", &[("if", "vlan01"), ("descr", "THINGS"), ("lock", "0")]);
    put(ASSIGNMENTS, "opt2", &[("if", "vlan02"), ("descr", "GUEST"), ("lock", "0")]);
    put(ADDRESSES, "opt1", &[("enable", "1"), ("ipaddr", "192.168.10.1"), ("subnet", "24")]);
    put(ADDRESSES, "opt2", &[("enable", "1"), ("ipaddr", "192.168.20.1"), ("subnet", "24")]);
    put(
        GATEWAYS,
        &uuid("gateway", 1),
        &[
            ("name", "WAN_GW"),
            ("interface", "wan"),
            ("gateway", "198.51.100.1"),
            ("monitor_disable", "0"),
            ("monitor", "203.0.113.1"),
            ("defaultgw", "1"),
        ],
    );
    put(
        "Routes/Route:route",
        &uuid("route", 1),
        &[("network", "10.99.0.0/16"), ("gateway", "WAN_GW"), ("descr", "branch")],
    );
}

fn filter(config: &mut Config, rules: usize) {
    let mut put = |node: &str, id: &str, pairs: &[(&str, &str)]| config.put(node, id, values(pairs));
    put(CATEGORIES, &uuid("category", 1), &[("name", "guests"), ("color", "aa5500")]);
    put(
        ALIASES,
        &uuid("alias", 1),
        &[("name", "web_servers"), ("type", "host"), ("content", "192.168.1.20\n192.168.1.21")],
    );
    put(ALIASES, &uuid("alias", 2), &[("name", "web_ports"), ("type", "port"), ("content", "80\n443")]);
    put(
        "Firewall/DNat:rule",
        &uuid("forward", 1),
        &[
            ("sequence", "1"),
            ("interface", "wan"),
            ("ipprotocol", "inet"),
            ("protocol", "tcp"),
            ("source.network", "any"),
            ("destination.network", "wanip"),
            ("destination.port", "8443"),
            ("target", "192.168.1.20"),
            ("local-port", "443"),
            ("descr", "publish web"),
            ("pass", "pass"),
        ],
    );
    let household: [&[(&str, &str)]; 4] = [
        &[("interface", "lan"), ("source_net", "lan"), ("description", "LAN to anywhere")],
        &[
            ("interface", "opt2"),
            ("source_net", "opt2"),
            ("destination_net", "lan"),
            ("action", "block"),
            ("description", "guests stay out"),
        ],
        &[("interface", "opt2"), ("source_net", "opt2"), ("description", "guests to the internet")],
        &[
            ("interface", "wan"),
            ("protocol", "TCP"),
            ("destination_net", "web_servers"),
            ("destination_port", "web_ports"),
            ("description", "web"),
        ],
    ];
    for number in 0..rules {
        let sequence = (100 * (number + 1)).min(999_999).to_string();
        let target = format!("10.{}.{}.0/24", number / 250 % 250, number % 250);
        let port = (1024 + number % 60_000).to_string();
        let description = format!("rule {number}");
        let made: [(&str, &str); 5] = [
            ("interface", ["lan", "opt1", "opt2"][number % 3]),
            ("protocol", "TCP"),
            ("destination_net", &target),
            ("destination_port", &port),
            ("description", &description),
        ];
        let mut rule = values(household.get(number).copied().unwrap_or(&made));
        rule.insert("sequence".to_owned(), sequence);
        config.append("Firewall/Filter:rules.rule", &uuid("rule", number as u64), rule);
    }
}

fn services(config: &mut Config) {
    let mut put = |node: &str, id: &str, pairs: &[(&str, &str)]| config.put(node, id, values(pairs));
    put("Kea/KeaDhcpv4:", "", &[("general.enabled", "1"), ("general.interfaces", "lan,opt2")]);
    let subnet = uuid("subnet", 1);
    put(
        "Kea/KeaDhcpv4:subnets.subnet4",
        &subnet,
        &[("subnet_id", "1"), ("subnet", "192.168.1.0/24"), ("pools", "192.168.1.100-192.168.1.199")],
    );
    put(
        "Kea/KeaDhcpv4:subnets.subnet4",
        &uuid("subnet", 2),
        &[("subnet_id", "2"), ("subnet", "192.168.20.0/24"), ("pools", "192.168.20.100-192.168.20.199")],
    );
    put(
        "Kea/KeaDhcpv4:reservations.reservation",
        &uuid("reservation", 1),
        &[
            ("subnet", &subnet),
            ("ip_address", "192.168.1.50"),
            ("hw_address", &mac("printer")),
            ("hostname", "printer"),
        ],
    );
    put(
        dns::HOSTS,
        &uuid("host", 1),
        &[("hostname", "nas"), ("domain", "home.example"), ("rr", "A"), ("server", "192.168.1.40")],
    );
    put(
        "Cron/Cron:jobs.job",
        &uuid("job", 1),
        &[("hours", "3"), ("command", "firmware poll"), ("description", "look for updates")],
    );
    put(
        "CaptivePortal/CaptivePortal:zones.zone",
        &uuid("zone", 1),
        &[("zoneid", "0"), ("interfaces", "opt2"), ("description", "guests")],
    );
    put(
        "TrafficShaper/TrafficShaper:pipes.pipe",
        &uuid("pipe", 1),
        &[("number", "10000"), ("bandwidth", "20"), ("bandwidthMetric", "Mbit"), ("description", "guests")],
    );
}

fn tunnels(config: &mut Config) {
    let seed = |name: &str| Sha256::digest(name).into();
    let mut put = |node: &str, id: &str, pairs: &[(&str, &str)]| config.put(node, id, values(pairs));
    let (private, public) = key_pair(&seed("instance"));
    let peers = [uuid("peer", 1), uuid("peer", 2)];
    put("Wireguard/General:", "", &[("enabled", "1")]);
    put(
        INSTANCES,
        &uuid("instance", 1),
        &[
            ("name", "road"),
            ("instance", "0"),
            ("privkey", &private),
            ("pubkey", &public),
            ("port", "51820"),
            ("tunneladdress", "10.9.0.1/24"),
            ("peers", &peers.join(",")),
        ],
    );
    let peer = |name: &str| key_pair(&seed(name)).1;
    put(
        PEERS,
        &peers[0],
        &[
            ("name", "office"),
            ("pubkey", &peer("office")),
            ("tunneladdress", "10.9.0.2/32"),
            ("serveraddress", "203.0.113.77"),
            ("serverport", "51820"),
        ],
    );
    put(
        PEERS,
        &peers[1],
        &[("name", "laptop"), ("pubkey", &peer("laptop")), ("tunneladdress", "10.9.0.3/32")],
    );
    let connection = uuid("connection", 1);
    put("IPsec/Swanctl:", "", &[("enabled", "1")]);
    put(
        "IPsec/Swanctl:Connections.Connection",
        &connection,
        &[("description", "branch"), ("local_addrs", "198.51.100.2"), ("remote_addrs", "203.0.113.88")],
    );
    put(
        "IPsec/Swanctl:children.child",
        &uuid("child", 1),
        &[
            ("connection", &connection),
            ("local_ts", "192.168.1.0/24"),
            ("remote_ts", "10.20.0.0/24"),
            ("description", "branch"),
        ],
    );
    put(
        "OpenVPN/OpenVPN:Instances.Instance",
        &uuid("openvpn", 1),
        &[
            ("vpnid", "1"),
            ("role", "server"),
            ("description", "staff"),
            ("server", "10.8.0.0/24"),
            ("port", "1194"),
        ],
    );
}

/// A user for reading beside the administrator, and the key of each.
fn old_tunnels(config: &mut Config) {
    let mut put = |node: &str, id: &str, pairs: &[(&str, &str)]| config.put(node, id, values(pairs));
    put(crate::upkeep::OLD_RULES, "1", &[("descr", "old rule"), ("interface", "lan")]);
    put(crate::upkeep::OLD_OUTBOUND, "1", &[("descr", "old outbound rule"), ("interface", "wan")]);
    let rules = [("filename", "opnsense.test.rules"), ("enabled", "1")];
    put("IDS/IDS:files.file", &uuid("ruleset", 1), &rules);
    for number in ["1", "2"] {
        put(crate::legacy::PHASE1, number, &[("enabled", "1"), ("description", &format!("old {number}"))]);
        put(
            crate::legacy::PHASE2,
            &format!("5f0000000000{number}"),
            &[("ikeid", number), ("enabled", "1"), ("description", &format!("old {number}"))],
        );
    }
}

fn users(config: &mut Config, settings: &Settings) {
    let reader =
        [("uid", "2000"), ("name", "reader"), ("scope", "user"), ("priv", "page-all,user-config-readonly")];
    config.put(USERS, &uuid("user", 1), values(&reader));
    let keys = [("root", &settings.admin), ("reader", &settings.reader)];
    for (name, (key, secret)) in keys {
        config.put(KEYS, key, values(&[("username", name), ("secret", &hash(secret))]));
    }
}
