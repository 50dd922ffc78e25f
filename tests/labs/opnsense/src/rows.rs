//! What the lists and forms of single models show beside their fields, and rows that are not stored items.

use serde_json::{Map, Value, json};

use crate::call::{Call, scalar};
use crate::choices::{ASSIGNMENTS, GATEWAYS, USER_GROUPS, USERS, description, effective};
use crate::config::{Config, Values};
use crate::device::Firewall;
use crate::hardware::{self, BUILT_IN_ALIASES};
use crate::hooks::{INSTANCES, PEERS, VIPS, VLANS};
use crate::{present, trust};

const RULES: &str = "Firewall/Filter:rules.rule";
const OUTBOUND: &str = "Firewall/Filter:snatrules.rule";

/// Adds what a row shows beside its fields.
pub(crate) fn complete(
    firewall: &Firewall,
    call: &Call,
    id: &str,
    values: &Values,
    row: &mut Map<String, Value>,
) {
    let config = &firewall.stored;
    let mut put = |name: &str, value: Value| drop(row.insert(name.to_owned(), value));
    match call.node() {
        RULES | OUTBOUND | "Firewall/Filter:npt.rule" | "Firewall/Filter:onetoone.rule" => {
            put("prio_group", json!(place(call.node(), values, config).0.to_string()));
            put("sort_order", json!(sort_order(call.node(), values, config)));
            if call.text("show_all") == "1" && call.node() == RULES {
                let (evaluations, packets) = firewall.hits(id);
                put("evaluations", json!(evaluations.to_string()));
                put("packets", json!(packets.to_string()));
            }
        }
        "Firewall/Alias:aliases.alias" => {
            let name = effective(call.node(), "name", values);
            put("current_items", json!(firewall.table(name).len().to_string()));
        }
        VLANS => {
            let device = effective(VLANS, "vlanif", values);
            if let Some(key) = hardware::assigned(config, device) {
                let name =
                    config.find(ASSIGNMENTS, key).map_or_else(String::new, |values| description(key, values));
                put("vlanif", json!(format!("{device} [{name}]")));
            }
        }
        PEERS => put("servers", json!(instances_of(id, config))),
        USERS => put("group_memberships", json!(groups_of(values, config))),
        VIPS => {
            let text = |field: &str| effective(VIPS, field, values).to_owned();
            put("address", json!(format!("{}/{}", text("subnet"), text("subnet_bits"))));
        }
        GATEWAYS => gateway(values, row),
        "Trust/Ca:ca" | "Trust/Cert:cert" => trust::show(values, row),
        "Unbound/Unbound:hosts.host" => {
            let list = "Unbound/Unbound:aliases.alias";
            let aliases: Vec<Value> = crate::crud::having(config, list, "host", id)
                .map(|(alias, values)| {
                    Value::Object(present::Table::new(list, config, firewall.release).row(alias, values))
                })
                .collect();
            put("_children", json!(aliases));
        }
        _ => {}
    }
}

/// Adds what a form shows beside its fields.
pub(crate) fn complete_form(firewall: &Firewall, call: &Call, values: &Values, form: &mut Value) {
    let config = &firewall.stored;
    let id = call.param(0);
    match (call.node(), form) {
        (VIPS, Value::Object(form)) => {
            let text = |field: &str| effective(VIPS, field, values).to_owned();
            form.shift_remove("subnet");
            form.shift_remove("subnet_bits");
            let is_set = !text("subnet").is_empty();
            let network =
                if is_set { format!("{}/{}", text("subnet"), text("subnet_bits")) } else { String::new() };
            form.insert("network".to_owned(), json!(network));
        }
        (ASSIGNMENTS, Value::Object(form)) => drop(form.insert("identifier".to_owned(), json!(id))),
        (PEERS, Value::Object(form)) => {
            let own = instances_of(id, config);
            let options = config.rows(INSTANCES).map(|(server, values)| {
                let selected = i32::from(own.split(',').any(|part| part == server));
                (
                    server.to_owned(),
                    json!({ "value": effective(INSTANCES, "name", values), "selected": selected }),
                )
            });
            let options: Map<String, Value> = options.collect();
            form.insert(
                "servers".to_owned(),
                if options.is_empty() { json!([]) } else { Value::Object(options) },
            );
        }
        (USERS, Value::Object(form)) => {
            let own = groups_of(values, config);
            let options = config.rows(USER_GROUPS).map(|(_, group)| {
                let gid = effective(USER_GROUPS, "gid", group).to_owned();
                let selected = i32::from(own.split(',').any(|part| part == gid));
                (gid, json!({ "value": effective(USER_GROUPS, "name", group), "selected": selected }))
            });
            form.insert("group_memberships".to_owned(), Value::Object(options.collect()));
        }
        ("Trust/Ca:ca" | "Trust/Cert:cert", Value::Object(form)) => trust::show(values, form),
        _ => {}
    }
}

/// The instances that list a peer.
fn instances_of(peer: &str, config: &Config) -> String {
    let holds = |values: &Values| effective(INSTANCES, "peers", values).split(',').any(|part| part == peer);
    let ids: Vec<&str> =
        config.rows(INSTANCES).filter(|(_, values)| holds(values)).map(|(id, _)| id).collect();
    ids.join(",")
}

/// The groups that list a user.
fn groups_of(user: &Values, config: &Config) -> String {
    let uid = effective(USERS, "uid", user);
    let holds = |group: &Values| {
        !uid.is_empty() && effective(USER_GROUPS, "member", group).split(',').any(|part| part == uid)
    };
    let gids: Vec<&str> = config
        .rows(USER_GROUPS)
        .filter(|(_, group)| holds(group))
        .map(|(_, group)| effective(USER_GROUPS, "gid", group))
        .collect();
    gids.join(",")
}

/// Lists of gateways hold real booleans.
fn gateway(values: &Values, row: &mut Map<String, Value>) {
    for field in ["disabled", "defaultgw", "fargw", "monitor_disable", "monitor_noroute", "force_down"] {
        row.insert(field.to_owned(), json!(effective(GATEWAYS, field, values) == "1"));
    }
}

/// The group and the sequence by which a rule stands in its list.
pub(crate) fn place(node: &str, values: &Values, config: &Config) -> (u32, u64) {
    let interface = effective(node, "interface", values);
    let is_group =
        || crate::crud::having(config, crate::choices::GROUPS, "ifname", interface).next().is_some();
    let is_floating =
        interface.is_empty() || interface.contains(',') || effective(node, "interfacenot", values) == "1";
    let group = match is_floating {
        true => 200_000,
        false if is_group() => 300_000,
        false => 400_000,
    };
    (group, effective(node, "sequence", values).parse().unwrap_or(1))
}

/// The place as the one number by which lists are ordered.
pub(crate) fn sort_order(node: &str, values: &Values, config: &Config) -> String {
    let (group, sequence) = place(node, values, config);
    format!("{group}.{sequence:07}")
}

/// Rules stand in the order in which they are evaluated.
pub(crate) fn sort(node: &str, config: &Config, items: &mut [(&str, &Values)]) {
    if node.starts_with("Firewall/Filter:") {
        items.sort_by_cached_key(|(_, values)| place(node, values, config));
    } else if node == "Firewall/DNat:rule" {
        items.sort_by_cached_key(|(_, values)| {
            effective(node, "sequence", values).parse::<u64>().unwrap_or(1)
        });
    }
}

/// Whether a list shows an item: two lists share a store, and others filter by what was asked.
pub(crate) fn is_shown(firewall: &Firewall, call: &Call, values: &Values) -> bool {
    let asked = |key: &str| call.body.get(key).and_then(scalar).filter(|text| !text.is_empty());
    match call.node() {
        "Unbound/Unbound:dots.dot" => {
            effective(call.node(), "type", values)
                == if call.command.ends_with("forward") { "forward" } else { "dot" }
        }
        OUTBOUND => snat_mode(&firewall.stored) != "automatic",
        // One store, and a list for each type of zone.
        "Bind/Domain:domains.domain" => {
            let kind = call.command.trim_start_matches("search").trim_end_matches("domain");
            let kind = match kind {
                "master" => "primary",
                "slave" => "secondary",
                other => other,
            };
            effective(call.node(), "type", values) == kind
        }
        RULES => {
            asked("interface").is_none_or(|interface| {
                effective(RULES, "interface", values).split(',').any(|part| part == interface)
            }) && has_category(call, values)
        }
        _ => true,
    }
}

/// Whether a rule has one of the categories that were asked for, which come as a list.
fn has_category(call: &Call, values: &Values) -> bool {
    let asked = call.body.get("category").and_then(Value::as_array).into_iter().flatten();
    let asked: Vec<String> = asked.filter_map(scalar).collect();
    asked.is_empty()
        || effective(RULES, "categories", values).split(',').any(|own| asked.iter().any(|id| id == own))
}

/// The mode of outbound translation.
pub(crate) fn snat_mode(config: &Config) -> &str {
    match config.value("Firewall/Filter:", "", "general.snat_mode") {
        "" => "automatic",
        mode => mode,
    }
}

/// Rows that stand in a list and are no stored items: their ids are no uuids.
pub(crate) fn built_in(firewall: &Firewall, call: &Call) -> Vec<Map<String, Value>> {
    let rows = match call.node() {
        "Firewall/Alias:aliases.alias" => BUILT_IN_ALIASES
            .iter()
            .map(|name| {
                json!({ "uuid": name, "enabled": "1", "name": name, "type": "external",
                "content": "" })
            })
            .collect(),
        RULES => vec![
            json!({ "uuid": "", "enabled": "1", "action": "block", "quick": "0", "interface": "",
                "direction": "in",
                "source_net": "any", "destination_net": "any",
                "description": "what no rule passes is blocked",
                "prio_group": "1", "sort_order": "1.0000001", "legacy": true, "is_automatic": true }),
            json!({ "uuid": "", "enabled": "1", "action": "pass", "quick": "1", "interface": "lan",
                "direction": "in",
                "source_net": "any", "destination_net": "(self)",
                "description": "keeps the way to the box open",
                "prio_group": "1", "sort_order": "1.0000002", "legacy": true, "is_automatic": true }),
        ],
        "Firewall/DNat:rule" => vec![json!({ "uuid": "lockout_0", "disabled": "0", "interface": "lan",
        "nordr": "1",
            "protocol": "tcp", "source.network": "any", "destination.network": "lanip",
            "descr": "keeps the way to the box open" })],
        OUTBOUND if ["automatic", "hybrid"].contains(&snat_mode(&firewall.stored)) => {
            let inside = firewall.stored.rows(ASSIGNMENTS).filter(|(key, _)| *key != "wan").enumerate();
            inside
                .map(|(at, (key, _))| {
                    json!({ "uuid": format!("automatic_{at}"), "enabled": "1", "interface": "wan",
                        "source_net": key,
                        "destination_net": "any", "target": "wanip", "description": "made by the box" })
                })
                .collect()
        }
        GATEWAYS => vec![json!({ "uuid": "WAN_DHCP", "name": "WAN_DHCP", "interface": "wan",
            "ipprotocol": "inet",
            "gateway": "198.51.100.1", "defaultgw": false, "disabled": false, "fargw": false,
            "monitor_disable": true,
            "monitor": "", "priority": "254", "weight": "1", "virtual": true,
            "descr": "gateway of the provider" })],
        "Core/Tunables:item" => vec![json!({ "uuid": "net.inet.ip.random_id",
        "tunable": "net.inet.ip.random_id",
            "value": "default", "default_value": "1", "descr": "", "type": "w" })],
        _ => Vec::new(),
    };
    let paging = crate::grid::Paging::of_items(call);
    let objects = rows.into_iter().filter_map(|row| match row {
        Value::Object(row) => Some(row),
        _ => None,
    });
    objects.filter(|row| present::matches(row, &paging.words)).collect()
}
