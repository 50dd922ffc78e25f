//! Firewall: rules, port forwards, zones and forwardings.

use heddle_sdk::Danger;

use super::{Edited, Field, Naming, Notes, SectionFeature, Type, check::Check, field};
use crate::features::check;
use crate::uci::{Config, Entry, Section};

const VERDICT: Type = Type::Word(&["ACCEPT", "REJECT", "DROP"]);
const FAMILY: Field =
    field("family", Type::Word(&["any", "ipv4", "ipv6"]), "address family; both when absent");
const ENABLED: Field = field("enabled", Type::Flag, "false keeps it without effect");
const PROTO: Field =
    field("proto", Type::List(Check::Protocol), "protocols; tcp and udp when absent, 'all' for any");

pub(crate) static RULE: SectionFeature = SectionFeature {
    id: "openwrt.firewall.rule",
    area: "firewall",
    title: "Firewall rule",
    kind: "firewall.rule",
    config: "firewall",
    section: "rule",
    key: &[field("name", Type::Text(Check::Title), "what people call the rule; unique")],
    naming: Naming::Derived("hdl_rule_"),
    fields: &[
        field("src", Type::Text(Check::ZoneOrAny), "source zone; traffic from the router itself when absent"),
        field(
            "dest",
            Type::Text(Check::ZoneOrAny),
            "destination zone; traffic to the router itself when absent",
        ),
        PROTO,
        field("src_ip", Type::List(Check::Network), "source addresses or networks"),
        field("src_mac", Type::List(Check::Mac), "source MAC addresses"),
        field("src_port", Type::Text(Check::Ports), "source ports, '80' or '80-90'"),
        field("dest_ip", Type::List(Check::Network), "destination addresses or networks"),
        field("dest_port", Type::Text(Check::Ports), "destination ports, '80' or '80-90'"),
        field("icmp_type", Type::List(Check::IcmpType), "ICMP types, for proto icmp"),
        field(
            "target",
            Type::Word(&["ACCEPT", "REJECT", "DROP", "NOTRACK", "MARK"]),
            "what happens to matching packets",
        ),
        FAMILY,
        ENABLED,
        field("limit", Type::Text(Check::Limit), "rate, '10/second'"),
        field("limit_burst", Type::Number(1, 65_535), "packets above the rate"),
        field("log", Type::Flag, "writes matches to the log"),
        field("set_mark", Type::Text(Check::Mark), "mark for target MARK"),
        field("weekdays", Type::Text(Check::Weekdays), "days on which it holds, 'Mon Tue'"),
        field("start_time", Type::Text(Check::Time), "from, hh:mm:ss"),
        field("stop_time", Type::Text(Check::Time), "until, hh:mm:ss"),
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
    key: &[field("name", Type::Text(Check::Title), "what people call the port forward; unique")],
    naming: Naming::Derived("hdl_redir_"),
    fields: &[
        field("target", Type::Word(&["DNAT", "SNAT"]), "DNAT when absent"),
        field("src", Type::Text(Check::Zone), "zone that the traffic comes from"),
        field("src_ip", Type::Text(Check::Network), "only from this address or network"),
        field("src_dip", Type::Text(Check::Network), "only to this address of the router"),
        field("src_dport", Type::Text(Check::Ports), "ports that the router listens on"),
        PROTO,
        field("dest", Type::Text(Check::Zone), "zone of the inner host"),
        field("dest_ip", Type::Text(Check::Address), "inner host"),
        field("dest_port", Type::Text(Check::Ports), "ports of the inner host; as outside when absent"),
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
    key: &[field("name", Type::Text(Check::Zone), "the zone's name; at most 11 characters")],
    naming: Naming::Derived("hdl_zone_"),
    fields: &[
        field("network", Type::List(Check::Interface), "interfaces in the zone"),
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
        field("src", Type::Text(Check::ZoneOrAny), "zone that connections start in"),
        field("dest", Type::Text(Check::ZoneOrAny), "zone that they go to"),
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
                notes.error(
                    &format!("/{option}"),
                    format!("'{option}' needs protocols with ports such as tcp and udp; the firewall skips this section"),
                );
            }
        }
    }
}

/// Addresses of one family only, and of the family that the section names.
fn check_families(edited: &Edited<'_>, section: &Section, options: &[&str], notes: &mut Notes) {
    if !options.iter().chain(&["family"]).any(|option| edited.changes(option)) {
        return;
    }
    let family = match section.text("family").map(str::to_ascii_lowercase).as_deref() {
        Some("ipv4") => Some(false),
        Some("ipv6") => Some(true),
        _ => None,
    };
    let mut seen: Option<(&str, bool)> = None;
    for option in options {
        for word in section.options.get(*option).map(Entry::words).unwrap_or_default() {
            let Some(is_v6) = check::network_family(word) else { continue };
            let name = |is_v6| if is_v6 { "IPv6" } else { "IPv4" };
            if family.is_some_and(|family| family != is_v6) {
                notes.error(
                    &format!("/{option}"),
                    format!("'{word}' is {} and the section is for {} only", name(is_v6), name(!is_v6)),
                );
            } else if let Some((other, _)) =
                seen.filter(|(other, theirs)| *theirs != is_v6 && other != option)
            {
                notes.error(&format!("/{option}"), format!("'{word}' is not of the family of '{other}'"));
            }
            seen.get_or_insert((option, is_v6));
        }
    }
}

/// Whether a rule refuses traffic to the router itself.
fn refuses_router(rule: &Section) -> bool {
    let refuses = rule
        .text("target")
        .is_some_and(|target| target.eq_ignore_ascii_case("drop") || target.eq_ignore_ascii_case("reject"));
    refuses && rule.text("src").is_some() && rule.text("dest").is_none() && rule.text("enabled") != Some("0")
}

/// Warns when a rule that refuses traffic to the router comes before what it came after.
pub(crate) fn review_order(before: &Config, after: &Config, notes: &mut Notes) {
    let place = |config: &Config, uid: usize| config.sections.iter().position(|section| section.uid == uid);
    for rule in after.of_kind("rule").filter(|rule| refuses_router(rule)) {
        let (Some(old), Some(new)) = (place(before, rule.uid), place(after, rule.uid)) else { continue };
        let overtaken = before.sections[..old]
            .iter()
            .filter(|other| other.kind == "rule")
            .any(|other| place(after, other.uid).is_some_and(|place| place > new) && !refuses_router(other));
        if overtaken {
            notes.lockout(format!(
                "rule '{}' refuses traffic from '{}' to the router and comes before rules that it came after, perhaps before what lets this connection in",
                rule.text("name").unwrap_or("without a name"),
                rule.text("src").unwrap_or("*"),
            ));
        }
    }
}

fn check_target(edited: &Edited<'_>, rule: &Section, notes: &mut Notes) {
    let target = rule.text("target").map(str::to_ascii_uppercase).unwrap_or_default();
    let marks = ["set_mark", "set_xmark"].iter().any(|option| rule.options.contains_key(*option));
    if target == "MARK" && !marks && (edited.changes("target") || edited.changes("set_mark")) {
        notes.error("/set_mark", "target MARK needs the mark to set");
    }
    if target != "MARK" && rule.options.contains_key("set_mark") && edited.changes("set_mark") {
        notes.error("/set_mark", "'set_mark' is for target MARK only");
    }
    if target == "NOTRACK" && rule.text("src").is_none() && edited.changes("target") {
        notes.error("/src", "target NOTRACK needs a source zone");
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
    if edited.before == edited.after {
        return;
    }
    check_zones(edited, rule, notes);
    check_target(edited, rule, notes);
    check_families(edited, rule, &["src_ip", "dest_ip"], notes);
    check_ports(rule, &["src_port", "dest_port"], notes);
    if refuses_router(rule) {
        notes.lockout("the rule refuses traffic to the router itself, perhaps this connection too");
    }
    let is_icmp =
        rule.options.get("proto").is_some_and(|proto| proto.words().iter().any(|word| word.contains("icmp")));
    if rule.options.contains_key("icmp_type") && !is_icmp {
        notes.warn("'icmp_type' has no effect without proto icmp");
    }
}

fn review_redirect(edited: &Edited<'_>, notes: &mut Notes) {
    let Some(redirect) = edited.after.filter(|_| edited.before != edited.after) else { return };
    check_zones(edited, redirect, notes);
    check_families(edited, redirect, &["src_ip", "src_dip", "dest_ip"], notes);
    check_ports(redirect, &["src_dport", "dest_port"], notes);
    let is_snat = redirect.text("target").is_some_and(|target| target.eq_ignore_ascii_case("snat"));
    if !is_snat && redirect.text("dest_ip").is_none() {
        notes.warn("without 'dest_ip' the traffic goes to the router itself");
    }
    if is_snat && redirect.text("src_dip").is_none() {
        notes.error(
            "/src_dip",
            "SNAT needs 'src_dip', the address to show; the firewall skips this section without it",
        );
    }
    if !is_snat
        && ["src_dport", "proto", "src", "src_dip", "enabled"].iter().any(|option| edited.changes(option))
    {
        warn_of_taken_ports(edited, redirect, notes);
    }
}

/// Ports on which the router itself usually listens.
const OWN_PORTS: &[(u16, &str)] =
    &[(22, "SSH"), (53, "DNS"), (80, "the web interface"), (443, "the web interface")];

fn protocols(section: &Section) -> Vec<&str> {
    match section.options.get("proto").map(Entry::words) {
        None => vec!["tcp", "udp"],
        Some(words) if words.iter().any(|word| matches!(*word, "tcpudp" | "all" | "any")) => {
            vec!["tcp", "udp"]
        }
        Some(words) => words,
    }
}

fn warn_of_taken_ports(edited: &Edited<'_>, redirect: &Section, notes: &mut Notes) {
    let outside = |section: &Section| {
        section
            .options
            .get("src_dport")
            .and_then(|ports| check::ports(&ports.words().join(" ")))
            .unwrap_or_default()
    };
    let own = outside(redirect);
    let meets = |ports: &[(u16, u16)]| {
        own.iter().any(|(first, last)| ports.iter().any(|(from, to)| first <= to && from <= last))
    };
    let counts = |section: &Section| section.text("enabled") != Some("0");
    let others = edited.config.of_kind("redirect").filter(|other| {
        other.uid != redirect.uid
            && counts(other)
            && other.text("src") == redirect.text("src")
            && !other.text("target").is_some_and(|target| target.eq_ignore_ascii_case("snat"))
            && (other.text("src_dip") == redirect.text("src_dip") || other.text("src_dip").is_none())
            && protocols(other).iter().any(|protocol| protocols(redirect).contains(protocol))
    });
    if !counts(redirect) {
        return;
    }
    for other in others.filter(|other| meets(&outside(other))) {
        notes.warn(format!(
            "port forward '{}' takes '{}' from zone '{}' too; the first in the file wins",
            other.text("name").unwrap_or("without a name"),
            other.options.get("src_dport").map(|ports| ports.words().join(" ")).unwrap_or_default(),
            redirect.text("src").unwrap_or_default(),
        ));
    }
    if let Some((port, service)) = OWN_PORTS.iter().find(|(port, _)| meets(&[(*port, *port)])) {
        notes.warn(format!("the router itself usually serves {service} on port {port}; from this zone it is not reached there any more"));
    }
}

fn review_zone(edited: &Edited<'_>, notes: &mut Notes) {
    if edited.before == edited.after {
        return;
    }
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
