//! The configuration with which a firewall starts: a household with a guest network and some tunnels.

mod tunnels;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::access::hash;
use crate::facts::Facts;
use crate::settings::Settings;
use crate::store::{Config, Object};

/// The first of the rules that the household has.
const FIRST_TRACKER: u64 = 1_767_000_000;

/// The whole configuration.
pub(crate) fn configuration(settings: &Settings) -> Config {
    let mut config = Config::default();
    accounts(&mut config, settings);
    networks(&mut config);
    filter(&mut config, settings.rules);
    services(&mut config);
    tunnels::add_all(&mut config);
    system(&mut config);
    config
}

/// An object as the API would have stored it: given values, and defaults for the rest.
fn object(model: &str, given: Value) -> Object {
    let mut out = Object::new();
    let fields = Facts::get().model(model).map(|model| model.fields.as_slice()).unwrap_or_default();
    for field in fields.iter().filter(|field| !field.representation_only && field.nested.is_none()) {
        if let Some(value) = &field.default {
            out.insert(field.name.clone(), value.clone());
        }
    }
    if let Value::Object(given) = given {
        out.extend(given);
    }
    out
}

fn add(config: &mut Config, model: &str, given: Value) {
    let object = object(model, given);
    config.list_mut(model).push(object);
}

fn set(config: &mut Config, model: &str, given: Value) {
    let object = object(model, given);
    config.put_single(model, object);
}

fn children(model: &str, items: Vec<Value>) -> Value {
    items.into_iter().map(|item| Value::Object(object(model, item))).collect()
}

fn accounts(config: &mut Config, settings: &Settings) {
    let reads: Vec<String> = Facts::get()
        .routes
        .iter()
        .filter(|(_, route)| route.methods.iter().any(|method| method == "GET"))
        .map(|(path, _)| crate::access::privilege(path, "GET"))
        .collect();
    let (admin, reader) = (&settings.admin, &settings.reader);
    add(
        config,
        "User",
        json!({ "name": admin.0, "password": hash(&admin.1), "uid": 0, "scope": "system",
        "descr": "System Administrator", "priv": [], "disabled": false }),
    );
    add(
        config,
        "User",
        json!({ "name": reader.0, "password": hash(&reader.1), "uid": 2000, "scope": "user",
        "descr": "reads everything", "priv": reads, "disabled": false }),
    );
    add(
        config,
        "UserGroup",
        json!({ "name": "admins", "gid": 1999, "scope": "system", "member": [0],
        "priv": ["page-all"], "description": "System Administrators" }),
    );
    add(
        config,
        "UserGroup",
        json!({ "name": "all", "gid": 1998, "scope": "system", "member": [0, 2000],
        "description": "All Users" }),
    );
    add(
        config,
        "RESTAPIKey",
        json!({ "username": admin.0, "length_bytes": 24, "hash_algo": "sha256",
        "descr": "key of the lab", "hash": hex::encode(Sha256::digest(&settings.api_key)) }),
    );
    add(
        config,
        "RESTAPIAccessListEntry",
        json!({ "network": "0.0.0.0/0", "type": "allow", "weight": 1, "users": [],
        "descr": "IPv4 allow all" }),
    );
    add(
        config,
        "RESTAPIAccessListEntry",
        json!({ "network": "::/0", "type": "allow", "weight": 1, "users": [],
        "descr": "IPv6 allow all" }),
    );
    set(
        config,
        "RESTAPISettings",
        json!({ "enabled": true, "keep_backup": true, "login_protection": true,
        "auth_methods": settings.auth_methods }),
    );
}

fn networks(config: &mut Config) {
    for interface in [
        json!({ "@id": "wan", "if": "igb0", "enable": true, "descr": "WAN", "ipaddr": "dhcp", "blockpriv": true,
            "blockbogons": true }),
        json!({ "@id": "lan", "if": "igb1", "enable": true, "descr": "LAN", "ipaddr": "192.168.1.1", "subnet": 24 }),
        json!({ "@id": "opt1", "if": "igb1.20", "enable": true, "descr": "GUEST", "ipaddr": "192.168.20.1",
            "subnet": 24 }),
    ] {
        add(config, "NetworkInterface", interface);
    }
    for (tag, descr) in [(20, "guests"), (30, "voice")] {
        add(
            config,
            "InterfaceVLAN",
            json!({ "if": "igb1", "tag": tag, "vlanif": format!("igb1.{tag}"),
            "descr": descr }),
        );
    }
    add(
        config,
        "InterfaceGroup",
        json!({ "ifname": "inside", "members": ["lan", "opt1"], "descr": "own networks" }),
    );
    for (name, interface, gateway) in [("WANGW", "wan", "198.51.100.1"), ("LABGW", "lan", "192.168.1.254")] {
        add(
            config,
            "RoutingGateway",
            json!({ "name": name, "interface": interface, "gateway": gateway,
            "ipprotocol": "inet" }),
        );
    }
    add(config, "StaticRoute", json!({ "network": "10.20.0.0/16", "gateway": "LABGW", "descr": "lab" }));
    set(config, "DefaultGateway", json!({ "defaultgw4": "WANGW", "defaultgw6": "" }));
    add(
        config,
        "VirtualIP",
        json!({ "uniqid": "65a0c0ffee001", "mode": "ipalias", "interface": "lan",
        "type": "single", "subnet": "192.168.1.8", "subnet_bits": 32, "descr": "printer service" }),
    );
}

/// Rules of the household first, then as many as are asked for.
fn filter(config: &mut Config, count: usize) {
    add(
        config,
        "FirewallAlias",
        json!({ "name": "web_servers", "type": "host", "descr": "own web servers",
        "address": ["192.168.1.20", "192.168.1.21"], "detail": ["first", "second"] }),
    );
    add(
        config,
        "FirewallAlias",
        json!({ "name": "web_ports", "type": "port", "address": ["80", "443"],
        "detail": ["", ""] }),
    );
    add(
        config,
        "FirewallAlias",
        json!({ "name": "partners", "type": "network", "address": ["203.0.113.0/24"],
        "detail": ["partner"] }),
    );
    let rules = [
        json!({ "type": "pass", "interface": ["lan"], "source": "lan", "destination": "any",
            "descr": "Default allow LAN to any rule" }),
        json!({ "type": "block", "interface": ["opt1"], "source": "opt1", "destination": "lan",
            "descr": "guests stay out" }),
        json!({ "type": "pass", "interface": ["opt1"], "source": "opt1", "destination": "any",
            "descr": "guests to the internet" }),
        json!({ "type": "pass", "interface": ["wan"], "protocol": "tcp", "source": "any",
            "destination": "web_servers", "destination_port": "web_ports", "descr": "publish web" }),
    ];
    for at in 0..count {
        let mut rule = rules.get(at).cloned().unwrap_or_else(|| {
            let (third, last) = (at / 250 % 250, at % 250 + 1);
            json!({ "type": "pass", "interface": ["lan"], "protocol": "tcp", "source": format!("10.0.{third}.{last}"),
                "destination": "any", "destination_port": "443", "descr": format!("rule {at}") })
        });
        let time = FIRST_TRACKER + at as u64;
        rule["ipprotocol"] = json!("inet");
        rule["tracker"] = json!(time);
        rule["created_time"] = json!(time);
        rule["updated_time"] = json!(time);
        for name in ["created_by", "updated_by"] {
            rule[name] = json!("admin@192.168.1.50 (Local Database)");
        }
        add(config, "FirewallRule", rule);
    }
    add(
        config,
        "PortForward",
        json!({ "interface": "wan", "protocol": "tcp", "ipprotocol": "inet", "source": "any",
        "destination": "wan:ip", "destination_port": "8443", "target": "192.168.1.20", "local_port": "443",
        "associated_rule_id": "", "descr": "publish web", "created_time": FIRST_TRACKER, "updated_time": FIRST_TRACKER,
        "created_by": "admin@192.168.1.50 (Local Database)", "updated_by": "admin@192.168.1.50 (Local Database)" }),
    );
    set(config, "OutboundNATMode", json!({ "mode": "automatic" }));
    let range = json!({ "hour": "8:00-17:00", "position": [1, 2, 3, 4, 5], "rangedescr": "office" });
    add(
        config,
        "FirewallSchedule",
        json!({ "name": "office_hours", "descr": "", "schedlabel": "65a0c0ffee002",
        "@FirewallScheduleTimeRange": children("FirewallScheduleTimeRange", vec![range]) }),
    );
}

fn services(config: &mut Config) {
    let maps = vec![json!({ "mac": "02:00:00:00:03:01", "ipaddr": "192.168.1.50", "hostname": "printer",
        "descr": "office" })];
    let mut ranges = vec![("lan", "192.168.1", maps), ("opt1", "192.168.20", Vec::new())];
    for (id, net, maps) in ranges.drain(..) {
        add(
            config,
            "DHCPServer",
            json!({ "@id": id, "interface": id, "enable": true,
            "range_from": format!("{net}.100"), "range_to": format!("{net}.199"),
            "@DHCPServerStaticMapping": children("DHCPServerStaticMapping", maps) }),
        );
    }
    set(config, "DHCPServerBackend", json!({ "dhcpbackend": "kea" }));
    set(config, "DHCPRelay", json!({ "enable": false }));
    add(
        config,
        "DNSResolverHostOverride",
        json!({ "host": "nas", "domain": "home.example", "ip": ["192.168.1.40"],
        "descr": "storage" }),
    );
    add(
        config,
        "DNSResolverHostOverride",
        json!({ "host": "web", "domain": "home.example", "ip": ["192.168.1.20"],
        "descr": "" }),
    );
    set(
        config,
        "DNSResolverSettings",
        json!({ "enable": true, "port": "53", "active_interface": ["all"],
        "outgoing_interface": ["all"] }),
    );
    for server in ["0.pfsense.pool.ntp.org", "1.pfsense.pool.ntp.org"] {
        add(config, "NTPTimeServer", json!({ "timeserver": server, "type": "pool" }));
    }
    set(config, "NTPSettings", json!({ "enable": true }));
    set(config, "SSH", json!({ "enable": false, "port": "22" }));
    add(
        config,
        "CronJob",
        json!({ "minute": "1", "hour": "3", "mday": "*", "month": "*", "wday": "*", "who": "root",
        "command": "/usr/bin/nice -n20 newsyslog" }),
    );
}

fn system(config: &mut Config) {
    set(config, "SystemHostname", json!({ "hostname": "pfsense", "domain": "home.example" }));
    set(config, "SystemDNS", json!({ "dnsserver": ["198.51.100.53"], "dnsallowoverride": true }));
    set(config, "SystemTimezone", json!({ "timezone": "Europe/Vienna" }));
    set(
        config,
        "WebGUISettings",
        json!({ "protocol": "https", "port": "443", "sslcertref": "65a0c0ffee011" }),
    );
    add(
        config,
        "SystemTunable",
        json!({ "tunable": "net.inet.ip.random_id", "value": "default", "descr": "" }),
    );
    for model in ["SystemConsole", "LogSettings", "HASync", "FirewallStatesSize", "EmailNotificationSettings"]
    {
        set(config, model, Value::Object(Map::new()));
    }
}
