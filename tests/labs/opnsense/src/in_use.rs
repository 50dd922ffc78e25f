//! Why an item cannot be deleted.

use crate::call::Call;
use crate::choices::{ALIASES, CATEGORIES, GATEWAYS, GROUPS, USER_GROUPS, USERS, effective, parts};
use crate::config::{Config, Values};
use crate::device::Firewall;
use crate::facts::Facts;
use crate::hardware::assigned;
use crate::hooks::{VIPS, VLANS};
use crate::names::uses_of_name;

/// The reason for which a delete is refused, if there is one.
pub(crate) fn reason(firewall: &Firewall, call: &Call, id: &str, values: &Values) -> Option<String> {
    let config = &firewall.stored;
    let value = |field: &str| effective(call.node(), field, values);
    let device = |field: &str| {
        assigned(config, value(field)).map(|key| format!("{} is assigned to {key}", value(field)))
    };
    let own = match call.node() {
        ALIASES => uses_of_name(value("name"), config).map(|(list, id)| format!("Alias in use: {list} {id}")),
        GROUPS => {
            uses_of_name(value("ifname"), config).map(|(list, id)| format!("Group in use: {list} {id}"))
        }
        CATEGORIES => referred(call.node(), id, config)
            .or_else(|| named(value("name"), "Firewall/DNat:rule", "category", config)),
        GATEWAYS => gateway(value("name"), config),
        VLANS => device("vlanif").or_else(|| parent(value("vlanif"), config)),
        "Interfaces/Lagg:lagg" => device("laggif").or_else(|| parent(value("laggif"), config)),
        "Interfaces/Bridge:bridged" => device("bridgeif"),
        "Interfaces/Gif:gif" => device("gifif"),
        "Interfaces/Gre:gre" => device("greif"),
        VIPS => vip(value("subnet"), config),
        USERS if value("scope") == "system" || value("name") == call.user => {
            Some(format!("User {} cannot be deleted", value("name")))
        }
        USER_GROUPS if value("scope") == "system" => {
            Some(format!("Group {} cannot be deleted", value("name")))
        }
        "Trust/Cert:cert" => certificate(value("refid"), config),
        "Cron/Cron:jobs.job" if value("origin") != "cron" => {
            Some(format!("The job belongs to {}", value("origin")))
        }
        _ => None,
    };
    own.or_else(|| call.facts.safe.then(|| referred(call.node(), id, config)).flatten())
}

/// An item of any list that refers to this one by its id.
fn referred(node: &str, id: &str, config: &Config) -> Option<String> {
    let facts = Facts::get();
    let lists = facts
        .nodes()
        .flat_map(|list| facts.fields(list, crate::Release::V26_7).map(move |field| (list, field)));
    let mut referring = lists.filter(|(_, field)| field.refers.iter().any(|refers| refers == node));
    referring.find_map(|(list, field)| {
        let refers = |values: &Values| {
            values.get(&field.name).is_some_and(|value| value.split(',').any(|part| part == id))
        };
        config
            .rows(list)
            .find(|(_, values)| refers(values))
            .map(|(other, _)| format!("Item in use by {list} {other}"))
    })
}

/// An item of one list that names this one in a field.
fn named(name: &str, list: &str, field: &str, config: &Config) -> Option<String> {
    let facts = Facts::get().field(list, field)?;
    let names = |values: &Values| values.get(field).is_some_and(|value| parts(facts, value).contains(&name));
    config.rows(list).find(|(_, values)| names(values)).map(|(id, _)| format!("Item in use by {list} {id}"))
}

fn gateway(name: &str, config: &Config) -> Option<String> {
    let lists = [("Firewall/Filter:rules.rule", "gateway"), ("Routes/Route:route", "gateway")];
    let by_name = lists.iter().find_map(|(list, field)| named(name, list, field, config));
    by_name.or_else(|| {
        let list = "Routing/GatewayGroups:gateway_group";
        let holds = |values: &Values| values.values().any(|value| value.split(',').any(|part| part == name));
        config
            .rows(list)
            .find(|(_, values)| holds(values))
            .map(|(id, _)| format!("Gateway in use by {list} {id}"))
    })
}

fn parent(device: &str, config: &Config) -> Option<String> {
    let mut children = config.rows(VLANS);
    children
        .find(|(_, values)| values.get("if").is_some_and(|name| name == device))
        .map(|(id, _)| format!("{device} carries VLAN {id}"))
}

fn vip(address: &str, config: &Config) -> Option<String> {
    let lists = [("Firewall/DNat:rule", "destination.network"), ("Firewall/Filter:snatrules.rule", "target")];
    lists.iter().find_map(|(list, field)| named(address, list, field, config))
}

fn certificate(refid: &str, config: &Config) -> Option<String> {
    let lists = [
        "OpenVPN/OpenVPN:Instances.Instance",
        "IPsec/Swanctl:locals.local",
        "Syslog/Syslog:destinations.destination",
    ];
    let uses = |values: &Values| {
        !refid.is_empty() && values.values().any(|value| value.split(',').any(|part| part == refid))
    };
    let lists = lists.into_iter().chain(["CaptivePortal/CaptivePortal:zones.zone", "webgui"]);
    let mut items = lists.flat_map(|list| config.rows(list).map(move |(id, values)| (list, id, values)));
    items
        .find(|(_, _, values)| uses(values))
        .map(|(list, id, _)| format!("Certificate in use by {list} {id}"))
}
