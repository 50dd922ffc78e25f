//! Firewall: rules, port forwards, zones and forwardings.

use heddle_sdk::Danger;

use super::{Edited, Field, Naming, Notes, SectionFeature, Type, field, pattern};
use crate::uci::{Config, Section};

const VERDICT: Type = Type::Word(&["ACCEPT", "REJECT", "DROP"]);
const FAMILY: Field =
    field("family", Type::Word(&["any", "ipv4", "ipv6"]), "address family; both when absent");
const ENABLED: Field = field("enabled", Type::Flag, "false keeps it without effect");
const PROTO: Field =
    field("proto", Type::List(pattern::PROTOCOL), "protocols; tcp and udp when absent, 'all' for any");

pub(crate) static RULE: SectionFeature = SectionFeature {
    id: "openwrt.firewall.rule",
    area: "firewall",
    title: "Firewall rule",
    kind: "firewall.rule",
    config: "firewall",
    section: "rule",
    key: &[field("name", Type::Text(pattern::TITLE), "what people call the rule; unique")],
    naming: Naming::Derived("hdl_rule_"),
    fields: &[
        field(
            "src",
            Type::Text(pattern::ZONE_OR_ANY),
            "source zone; traffic from the router itself when absent",
        ),
        field(
            "dest",
            Type::Text(pattern::ZONE_OR_ANY),
            "destination zone; traffic to the router itself when absent",
        ),
        PROTO,
        field("src_ip", Type::List(pattern::NETWORK), "source addresses or networks"),
        field("src_mac", Type::List(pattern::MAC), "source MAC addresses"),
        field("src_port", Type::Text(pattern::PORT), "source ports, '80' or '80-90'"),
        field("dest_ip", Type::List(pattern::NETWORK), "destination addresses or networks"),
        field("dest_port", Type::Text(pattern::PORT), "destination ports, '80' or '80-90'"),
        field("icmp_type", Type::List(pattern::TOKEN), "ICMP types, for proto icmp"),
        field(
            "target",
            Type::Word(&["ACCEPT", "REJECT", "DROP", "NOTRACK", "MARK"]),
            "what happens to matching packets",
        ),
        FAMILY,
        ENABLED,
        field("limit", Type::Text(pattern::TOKEN), "rate, '10/second'"),
        field("limit_burst", Type::Number(1, 65_535), "packets above the rate"),
        field("log", Type::Flag, "writes matches to the log"),
        field("set_mark", Type::Text(pattern::TOKEN), "mark for target MARK"),
        field("weekdays", Type::Text("^[A-Za-z ]{3,40}$"), "days on which it holds, 'Mon Tue'"),
        field("start_time", Type::Text("^[0-9:]{4,8}$"), "from, hh:mm:ss"),
        field("stop_time", Type::Text("^[0-9:]{4,8}$"), "until, hh:mm:ss"),
    ],
    required: &["target"],
    delete_danger: Danger::Normal,
    review: review_rule,
    order: Some("openwrt.firewall.rule-order"),
};

pub(crate) static REDIRECT: SectionFeature = SectionFeature {
    id: "openwrt.firewall.redirect",
    area: "firewall",
    title: "Port forward",
    kind: "firewall.redirect",
    config: "firewall",
    section: "redirect",
    key: &[field("name", Type::Text(pattern::TITLE), "what people call the port forward; unique")],
    naming: Naming::Derived("hdl_redir_"),
    fields: &[
        field("target", Type::Word(&["DNAT", "SNAT"]), "DNAT when absent"),
        field("src", Type::Text(pattern::ZONE), "zone that the traffic comes from"),
        field("src_ip", Type::Text(pattern::NETWORK), "only from this address or network"),
        field("src_dip", Type::Text(pattern::NETWORK), "only to this address of the router"),
        field("src_dport", Type::Text(pattern::PORT), "ports that the router listens on"),
        PROTO,
        field("dest", Type::Text(pattern::ZONE), "zone of the inner host"),
        field("dest_ip", Type::Text(pattern::ADDRESS), "inner host"),
        field("dest_port", Type::Text(pattern::PORT), "ports of the inner host; as outside when absent"),
        field("reflection", Type::Flag, "also works from inside; true when absent"),
        FAMILY,
        ENABLED,
    ],
    required: &["src"],
    delete_danger: Danger::Normal,
    review: review_redirect,
    order: Some("openwrt.firewall.redirect-order"),
};

pub(crate) static ZONE: SectionFeature = SectionFeature {
    id: "openwrt.firewall.zone",
    area: "firewall",
    title: "Firewall zone",
    kind: "firewall.zone",
    config: "firewall",
    section: "zone",
    key: &[field("name", Type::Text(pattern::ZONE), "the zone's name; at most 11 characters")],
    naming: Naming::Derived("hdl_zone_"),
    fields: &[
        field("network", Type::List(pattern::INTERFACE), "interfaces in the zone"),
        field("input", VERDICT, "traffic to the router"),
        field("output", VERDICT, "traffic from the router"),
        field("forward", VERDICT, "traffic within the zone"),
        field("masq", Type::Flag, "hides inner addresses (NAT)"),
        field("mtu_fix", Type::Flag, "clamps the segment size to the path"),
        field("log", Type::Flag, "logs refused packets"),
        FAMILY,
    ],
    required: &["input", "output", "forward"],
    delete_danger: Danger::Destructive,
    review: review_zone,
    order: None,
};

pub(crate) static FORWARDING: SectionFeature = SectionFeature {
    id: "openwrt.firewall.forwarding",
    area: "firewall",
    title: "Forwarding between zones",
    kind: "firewall.forwarding",
    config: "firewall",
    section: "forwarding",
    key: &[
        field("src", Type::Text(pattern::ZONE_OR_ANY), "zone that connections start in"),
        field("dest", Type::Text(pattern::ZONE_OR_ANY), "zone that they go to"),
    ],
    naming: Naming::Derived("hdl_fwd_"),
    fields: &[FAMILY, ENABLED],
    required: &[],
    delete_danger: Danger::Normal,
    review: review_forwarding,
    order: None,
};

pub(crate) static DEFAULTS: SectionFeature = SectionFeature {
    id: "openwrt.firewall.defaults",
    area: "firewall",
    title: "Firewall defaults",
    kind: "firewall.defaults",
    config: "firewall",
    section: "defaults",
    key: &[],
    naming: Naming::Single,
    fields: &[
        field("input", VERDICT, "traffic to the router from no zone"),
        field("output", VERDICT, "traffic from the router to no zone"),
        field("forward", VERDICT, "traffic between no zones"),
        field("drop_invalid", Type::Flag, "drops packets of no connection"),
        field("synflood_protect", Type::Flag, "limits connection attempts"),
        field("flow_offloading", Type::Flag, "forwards known connections faster"),
    ],
    required: &[],
    delete_danger: Danger::Destructive,
    review: review_defaults,
    order: None,
};

fn review_defaults(edited: &Edited<'_>, notes: &mut Notes) {
    if ["input", "output"].iter().any(|option| edited.changes(option)) {
        notes.lockout("the default policies for the router itself change");
    }
}

fn zone_exists(config: &Config, name: &str) -> bool {
    name == "*" || config.of_kind("zone").any(|zone| zone.text("name") == Some(name))
}

fn check_zones(edited: &Edited<'_>, section: &Section, notes: &mut Notes) {
    for option in ["src", "dest"] {
        if let Some(zone) =
            section.text(option).filter(|zone| edited.changes(option) && !zone_exists(edited.config, zone))
        {
            notes.error(&format!("/{option}"), format!("there is no zone '{zone}'"));
        }
    }
}

/// Ports without a protocol that has ports are skipped by the device, silently.
fn check_ports(section: &Section, options: &[&str], notes: &mut Notes) {
    match section.options.get("proto") {
        None => notes.warn("without 'proto' this holds for tcp and udp only"),
        Some(proto) => {
            let has_ports = proto.words().iter().all(|word| {
                matches!(*word, "tcp" | "udp" | "tcpudp" | "udplite" | "sctp" | "dccp" | "6" | "17")
            });
            if let Some(option) =
                options.iter().find(|option| section.options.contains_key(**option)).filter(|_| !has_ports)
            {
                notes.warn(format!(
                    "'{option}' needs protocols with ports; the firewall may ignore this section"
                ));
            }
        }
    }
}

fn review_rule(edited: &Edited<'_>, notes: &mut Notes) {
    let Some(rule) = edited.after else {
        if let Some(gone) =
            edited.before.filter(|rule| rule.text("dest").is_none() && rule.text("target") == Some("ACCEPT"))
        {
            notes.warn(format!(
                "traffic from '{}' to the router may be refused without this rule",
                gone.text("src").unwrap_or("the router")
            ));
        }
        return;
    };
    check_zones(edited, rule, notes);
    check_ports(rule, &["src_port", "dest_port"], notes);
    let refuses = rule
        .text("target")
        .is_some_and(|target| target.eq_ignore_ascii_case("drop") || target.eq_ignore_ascii_case("reject"));
    if refuses
        && rule.text("src").is_some()
        && rule.text("dest").is_none()
        && rule.text("enabled") != Some("0")
    {
        notes.lockout("the rule refuses traffic to the router itself, perhaps this connection too");
    }
    if rule.options.contains_key("icmp_type")
        && !rule
            .options
            .get("proto")
            .is_some_and(|proto| proto.words().iter().any(|word| word.contains("icmp")))
    {
        notes.warn("'icmp_type' has no effect without proto icmp");
    }
}

fn review_redirect(edited: &Edited<'_>, notes: &mut Notes) {
    let Some(redirect) = edited.after else { return };
    check_zones(edited, redirect, notes);
    check_ports(redirect, &["src_dport", "dest_port"], notes);
    let is_snat = redirect.text("target").is_some_and(|target| target.eq_ignore_ascii_case("snat"));
    if !is_snat && redirect.text("dest_ip").is_none() {
        notes.warn("without 'dest_ip' the traffic goes to the router itself");
    }
    if is_snat && redirect.text("src_dip").is_none() {
        notes.warn("SNAT without 'src_dip' is ignored by the firewall");
    }
}

fn review_zone(edited: &Edited<'_>, notes: &mut Notes) {
    let Some(zone) = edited.after else {
        let name = edited.before.and_then(|zone| zone.text("name")).unwrap_or_default();
        let uses = edited
            .config
            .sections
            .iter()
            .filter(|section| ["src", "dest"].iter().any(|option| section.text(option) == Some(name)))
            .count();
        if uses > 0 {
            notes.error("/name", format!("zone '{name}' is still named by {uses} rules, port forwards or forwardings; remove them first"));
        }
        notes.lockout(format!("without zone '{name}' the default policies hold for its interfaces"));
        return;
    };
    if edited.before.is_some() && ["input", "network", "output"].iter().any(|option| edited.changes(option)) {
        notes.lockout("what may reach the router from this zone changes, perhaps for this connection too");
    }
    let named: Vec<&str> = zone.options.get("network").map(crate::uci::Entry::words).unwrap_or_default();
    for other in edited.config.of_kind("zone").filter(|other| other.uid != zone.uid) {
        let theirs = other.options.get("network").map(crate::uci::Entry::words).unwrap_or_default();
        if let Some(shared) = named.iter().find(|name| theirs.contains(name)) {
            notes
                .warn(format!("interface '{shared}' is in zone '{}' too", other.text("name").unwrap_or("?")));
        }
    }
}

fn review_forwarding(edited: &Edited<'_>, notes: &mut Notes) {
    if let Some(forwarding) = edited.after {
        check_zones(edited, forwarding, notes);
    }
}
