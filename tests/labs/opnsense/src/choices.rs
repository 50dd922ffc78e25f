//! What a field can be chosen from on this device: the options of forms, and what validation accepts.

use crate::config::{Config, Values};
use crate::facts::{Facts, Field};
use crate::hardware;

/// Interface assignments, by key: `lan`, `opt1`.
pub(crate) const ASSIGNMENTS: &str = "Interfaces/NetworkInterface:interface";
pub(crate) const ALIASES: &str = "Firewall/Alias:aliases.alias";
pub(crate) const GROUPS: &str = "Firewall/Group:ifgroupentry";
pub(crate) const GATEWAYS: &str = "Routing/Gateways:gateway_item";
pub(crate) const CATEGORIES: &str = "Firewall/Category:categories.category";
pub(crate) const USERS: &str = "Auth/User:user";
pub(crate) const USER_GROUPS: &str = "Auth/Group:group";

/// The built-in commands that a cron job can run.
const CRON_COMMANDS: [&str; 6] = [
    "unbound dnsbl",
    "firmware auto-update",
    "firmware poll",
    "ids update",
    "filter reload",
    "system ha_sync",
];

/// The protocols of the packet filter, in the writing of the rule pages.
const PROTOCOLS: [&str; 15] = [
    "any", "TCP", "UDP", "TCP/UDP", "ICMP", "ICMPV6", "ESP", "AH", "GRE", "IGMP", "PIM", "OSPF", "CARP",
    "PFSYNC", "SCTP",
];

/// Names of ports that a field takes beside numbers.
pub(crate) const PORT_NAMES: [&str; 12] =
    ["any", "http", "https", "ssh", "domain", "ntp", "smtp", "imap", "imaps", "ftp", "snmp", "rdp"];

/// Options of one field: key and label.
pub(crate) type Options = Vec<(String, String)>;

/// The options of a field, or `None` when it takes free text.
pub(crate) fn of(node: &str, field: &Field, config: &Config) -> Option<Options> {
    let options = match field.kind.as_str() {
        "enum" => field.options.iter().map(|key| (key.clone(), capitalized(key))).collect(),
        "protocol" if node == "Firewall/DNat:rule" => {
            PROTOCOLS.iter().map(|key| (key.to_lowercase(), (*key).to_owned())).collect()
        }
        "protocol" => PROTOCOLS.iter().map(|key| ((*key).to_owned(), (*key).to_owned())).collect(),
        "interface" | "VipInterfaceField" | "UnboundInterfaceField" => interfaces(node, config),
        "network-or-alias" | "NetworkMappedField" => networks(config),
        "relation-uuid" => related(&field.refers, config),
        "BridgeMemberField" => interfaces(node, config),
        "VlanInterfaceField" | "LaggInterfaceField" | "DeviceField" => devices(&field.kind, config),
        "cert-refid" => {
            let lists = ["Trust/Cert:cert", "Trust/Ca:ca", "Trust/Crl:crl"];
            lists.iter().flat_map(|list| keyed(list, "refid", "descr", config)).collect()
        }
        "CategoryField" | "CategoryMapField" => keyed(CATEGORIES, "name", "name", config),
        "MemberField" => keyed(USERS, "uid", "name", config),
        "GroupMembershipField" | "authgroup" => keyed(USER_GROUPS, "gid", "name", config),
        "GatewayGroupItemField" => keyed(GATEWAYS, "name", "name", config),
        // The firewall always has two that drop what they get.
        "enum-runtime" if node == "Routes/Route:route" => {
            let dropping = [("Null4", "127.0.0.1"), ("Null6", "::1")];
            let dropping = dropping.map(|(name, to)| (name.to_owned(), format!("{name} - {to}")));
            keyed(GATEWAYS, "name", "name", config).into_iter().chain(dropping).collect()
        }
        "enum-runtime" if node == "Cron/Cron:jobs.job" => {
            CRON_COMMANDS.iter().map(|key| ((*key).to_owned(), capitalized(key))).collect()
        }
        "PrivField" => {
            crate::accounts::PRIVILEGES.iter().map(|(id, _)| ((*id).to_owned(), (*id).to_owned())).collect()
        }
        "authserver" => vec![("Local Database".to_owned(), "Local Database".to_owned())],
        "SNatModeField" => field.options.iter().map(|key| (key.clone(), capitalized(key))).collect(),
        _ => return None,
    };
    Some(options)
}

/// Assigned interfaces by key, and for rules the groups that stand beside them.
fn interfaces(node: &str, config: &Config) -> Options {
    let mut out: Options =
        config.rows(ASSIGNMENTS).map(|(key, values)| (key.to_owned(), description(key, values))).collect();
    if node.starts_with("Firewall/") && node != GROUPS {
        out.extend(keyed(GROUPS, "ifname", "ifname", config));
        out.extend(["wireguard", "openvpn", "enc0"].map(|key| (key.to_owned(), capitalized(key))));
    }
    out.push(("lo0".to_owned(), "Loopback".to_owned()));
    out
}

/// What a rule can name as a network.
pub(crate) fn networks(config: &Config) -> Options {
    let mut out =
        vec![("any".to_owned(), "any".to_owned()), ("(self)".to_owned(), "This Firewall".to_owned())];
    for (key, values) in config.rows(ASSIGNMENTS) {
        let label = description(key, values);
        out.push((format!("{key}ip"), format!("{label} address")));
        out.push((key.to_owned(), format!("{label} net")));
    }
    let aliases = config.rows(ALIASES).filter(|(_, values)| effective(ALIASES, "type", values) != "port");
    let names = aliases.filter_map(|(_, values)| values.get("name"));
    out.extend(names.map(|name| (name.clone(), name.clone())));
    out.extend(keyed(GROUPS, "ifname", "ifname", config));
    out.extend(hardware::BUILT_IN_ALIASES.map(|name| (name.to_owned(), name.to_owned())));
    out
}

fn devices(kind: &str, config: &Config) -> Options {
    let all = hardware::devices(config).into_iter();
    let wanted = all.filter(|device| match kind {
        "VlanInterfaceField" => ["physical", "lagg", "vlan"].contains(&device.kind),
        "LaggInterfaceField" => device.kind == "physical",
        _ => true,
    });
    wanted.map(|device| (device.name.clone(), device.name)).collect()
}

fn related(lists: &[String], config: &Config) -> Options {
    let rows = lists.iter().flat_map(|list| config.rows(list).map(move |(id, values)| (list, id, values)));
    rows.map(|(list, id, values)| (id.to_owned(), name_of(list, id, values))).collect()
}

/// Options whose key is one field of a list's items and whose label is another.
fn keyed(list: &str, key: &str, label: &str, config: &Config) -> Options {
    let rows = config.rows(list).filter_map(|(_, values)| Some((values.get(key)?, values.get(label)?)));
    rows.map(|(key, label)| (key.clone(), label.clone())).collect()
}

/// The name under which other items show an item.
pub(crate) fn name_of(node: &str, id: &str, values: &Values) -> String {
    let fields = ["name", "ifname", "subnet", "hostname", "tag", "descr", "description", "number"];
    let named = fields.iter().find_map(|field| values.get(*field).filter(|value| !value.is_empty()));
    match named {
        Some(name) if node == "Unbound/Unbound:hosts.host" => {
            format!("{name}.{}", values.get("domain").map_or("", String::as_str))
        }
        Some(name) => name.clone(),
        None => id.to_owned(),
    }
}

/// The shown name of an assigned interface.
pub(crate) fn description(key: &str, values: &Values) -> String {
    values.get("descr").filter(|text| !text.is_empty()).cloned().unwrap_or_else(|| key.to_uppercase())
}

/// The label of an option whose own label the contract does not carry.
fn capitalized(key: &str) -> String {
    let mut chars = key.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The parts of a value that holds several.
pub(crate) fn parts<'v>(field: &Field, value: &'v str) -> Vec<&'v str> {
    let separator = if field.kind == "AliasContentField" { '\n' } else { ',' };
    let several = field.multiple || separator == '\n';
    let parts = if several { value.split(separator).collect() } else { vec![value] };
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// The default of a field that an item does not store.
pub(crate) fn effective<'v>(node: &str, field: &str, values: &'v Values) -> &'v str {
    match values.get(field) {
        Some(value) => value,
        None => Facts::get().field(node, field).and_then(|f| f.default.as_deref()).unwrap_or_default(),
    }
}
