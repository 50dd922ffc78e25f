//! The older firewall: rules and groups.

use crate::console::Console;
use crate::net;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, number, text, texts};
use crate::rules::exists;

/// Whether a rule may be as it would be after the write.
pub(super) fn rule(own: &Console, site: &str, new: &Row) -> Outcome<()> {
    // A site with zones has no such rules any more.
    if own.has_zones(site) {
        return Err(Refusal::not_found());
    }
    crate::rules::needs_gateway(own, site, "Firewall")?;
    let ruleset = text(new, "ruleset");
    if ruleset.is_empty() {
        return Err(Refusal::invalid("ruleset", "WAN_IN|..|GUESTv6_LOCAL"));
    }
    let index =
        number(new, "rule_index").ok_or_else(|| Refusal::invalid("rule_index", "2[0-9]{3,4}|4[0-9]{3,4}"))?;
    let is_taken = own.store.rows(site, "firewallrule").iter().any(|row| {
        text(row, "_id") != text(new, "_id")
            && text(row, "ruleset") == ruleset
            && number(row, "rule_index") == Some(index)
    });
    if is_taken {
        return Err(Refusal::new("FirewallRuleIndexExisted"));
    }
    for side in ["src", "dst"] {
        exists(own, site, "networkconf", text(new, &format!("{side}_networkconf_id")))?;
        let groups = texts(new, &format!("{side}_firewallgroup_ids"));
        let mut kinds = Vec::new();
        for group in &groups {
            let group = own.store.find(site, "firewallgroup", group).ok_or_else(Refusal::no_id)?;
            let is_ports = text(group, "group_type") == "port-group";
            if kinds.contains(&is_ports) {
                return Err(Refusal::new("FirewallGroupTypeExists"));
            }
            kinds.push(is_ports);
        }
    }
    Ok(())
}

/// Whether a group holds what its type takes.
pub(super) fn group(new: &Row) -> Outcome<()> {
    let members = texts(new, "group_members");
    let is_right = |member: &&str| match text(new, "group_type") {
        "address-group" => {
            member.parse::<std::net::Ipv4Addr>().is_ok()
                || net::subnet(member).is_some()
                || member.split_once('-').is_some_and(|(from, to)| {
                    from.parse::<std::net::Ipv4Addr>().is_ok() && to.parse::<std::net::Ipv4Addr>().is_ok()
                })
        }
        "ipv6-address-group" => {
            member.parse::<std::net::Ipv6Addr>().is_ok() || member.parse::<ipnet::Ipv6Net>().is_ok()
        }
        _ => member.split('-').all(|port| port.parse::<u16>().is_ok_and(|port| port > 0)),
    };
    if text(new, "group_type").is_empty() {
        return Err(Refusal::invalid("group_type", "address-group|port-group|ipv6-address-group"));
    }
    if members.iter().all(is_right) { Ok(()) } else { Err(Refusal::new("FirewallGroupInvalidMember")) }
}
