//! The packet filter: applies with and without a way back, order of rules, choices for their forms.

use serde_json::{Map, Value, json};

use crate::call::{Answer, Call};
use crate::choices::{self, ALIASES, ASSIGNMENTS, CATEGORIES, PORT_NAMES, description};
use crate::crud::having;
use crate::device::Firewall;
use crate::{aliases, grid, rows};

/// Controllers that share the packet filter's applies and savepoints.
const RULE_LISTS: [&str; 5] =
    ["firewall/filter", "firewall/d_nat", "firewall/source_nat", "firewall/one_to_one", "firewall/npt"];

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    if RULE_LISTS.contains(&call.controller) {
        return rules(firewall, call);
    }
    match call.controller {
        "firewall/alias" => aliases::alias(firewall, call),
        "firewall/alias_util" => aliases::tables(firewall, call),
        "firewall/filter_util" => Some(Ok(statistics(firewall))),
        _ => None,
    }
}

fn rules(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match call.command {
        "savepoint" => Ok(savepoint(firewall)),
        "apply" => Ok(apply(firewall, call)),
        "cancelrollback" => {
            let is_waiting =
                firewall.rollback.as_ref().is_some_and(|rollback| rollback.revision == call.param(0));
            if is_waiting {
                firewall.rollback = None;
            }
            Ok(Answer::status("ok"))
        }
        "revert" => {
            firewall.rollback = None;
            Ok(Answer::status(if firewall.revert(call.param(0)) { "ok" } else { "failed" }))
        }
        "moverulebefore" => move_before(firewall, call),
        "listcategories" => Ok(categories(firewall, call)),
        "listnetworkselectoptions" => Ok(networks(firewall)),
        "listportselectoptions" => Ok(ports(firewall)),
        "getinterfacelist" => Ok(interfaces(firewall)),
        _ => return None,
    })
}

/// Notes the present configuration under the time, rounded to two decimals.
fn savepoint(firewall: &mut Firewall) -> Answer {
    let revision = format!("{:.2}", firewall.time.as_secs_f64());
    let config = firewall.stored.clone();
    firewall.live.savepoints.insert(revision.clone(), config);
    Answer::json(&json!({ "status": "ok", "retention": "100", "revision": revision }))
}

/// Makes every saved filter change active. With a savepoint, where the release has them, the timer starts.
fn apply(firewall: &mut Firewall, call: &Call) -> Answer {
    firewall.apply(&format!("{}/apply", call.controller));
    let revision = call.param(0);
    if firewall.release == crate::Release::V26_1 && !revision.is_empty() {
        firewall.wait_for_confirmation(revision);
    }
    Answer::status("OK\n\n")
}

/// Puts a rule before another of the same group: numbers behind the target change too.
fn move_before(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let node = call.node();
    let (selected, target) = (call.param(0), call.param(1));
    let mut config = firewall.stored.clone();
    let (Some(moved), Some(before)) = (config.find(node, selected), config.find(node, target)) else {
        return Ok(Answer::status("error"));
    };
    let (group, wanted) = rows::place(node, before, &config);
    if node.starts_with("Firewall/Filter:") && rows::place(node, moved, &config).0 != group {
        return Err(Answer::warned(
            firewall.release,
            "Move",
            "rules of different groups have no common order",
        ));
    }
    let mut behind: Vec<(u64, String)> = config
        .rows(node)
        .filter(|(id, values)| *id != selected && rows::place(node, values, &config).0 == group)
        .map(|(id, values)| (rows::place(node, values, &config).1, id.to_owned()))
        .filter(|(sequence, _)| *sequence >= wanted)
        .collect();
    behind.sort();
    config.set(node, selected, "sequence", &wanted.to_string());
    let mut last = wanted;
    for (sequence, id) in behind {
        if sequence > last {
            break;
        }
        last += 1;
        config.set(node, &id, "sequence", &last.to_string());
    }
    firewall.save(call, config)?;
    Ok(Answer::status("ok"))
}

pub(crate) fn categories(firewall: &Firewall, call: &Call) -> Answer {
    let rows = firewall.stored.rows(CATEGORIES).map(|(id, values)| {
        let rules = firewall.stored.rows("Firewall/Filter:rules.rule").filter(|(_, rule)| {
            rule.get("categories").is_some_and(|own| own.split(',').any(|part| part == id))
        });
        json!({ "uuid": id, "name": values.get("name"), "color": values.get("color"), "used": rules.count() })
    });
    grid::live(call, rows.collect())
}

fn networks(firewall: &Firewall) -> Answer {
    let config = &firewall.stored;
    let aliases: Map<String, Value> = config
        .rows(ALIASES)
        .filter_map(|(_, values)| values.get("name"))
        .map(|name| (name.clone(), json!(name)))
        .collect();
    let networks: Map<String, Value> = choices::networks(config)
        .into_iter()
        .filter(|(key, _)| !aliases.contains_key(key))
        .map(|(key, label)| (key, json!(label)))
        .collect();
    Answer::json(&json!({
        "single": { "label": "Single host or Network" },
        "aliases": { "label": "Aliases", "items": aliases },
        "networks": { "label": "Networks", "items": networks }
    }))
}

fn ports(firewall: &Firewall) -> Answer {
    let aliases =
        having(&firewall.stored, ALIASES, "type", "port").filter_map(|(_, values)| values.get("name"));
    let aliases: Map<String, Value> = aliases.map(|name| (name.clone(), json!(name))).collect();
    let known: Map<String, Value> = PORT_NAMES.iter().map(|name| ((*name).to_owned(), json!(name))).collect();
    Answer::json(&json!({
        "single": { "label": "Single port or range" },
        "aliases": { "label": "Aliases", "items": aliases },
        "ports": { "label": "Well-known ports", "items": known }
    }))
}

fn interfaces(firewall: &Firewall) -> Answer {
    let items = firewall.stored.rows(ASSIGNMENTS).map(|(key, values)| {
        let count = having(&firewall.stored, "Firewall/Filter:rules.rule", "interface", key).count();
        json!({ "value": key, "label": description(key, values), "count": count })
    });
    Answer::json(&json!({ "interfaces": { "label": "Interfaces", "items": items.collect::<Vec<_>>() } }))
}

/// Counters of the rules that run.
fn statistics(firewall: &Firewall) -> Answer {
    let rules = firewall.running.rows("Firewall/Filter:rules.rule").map(|(id, _)| {
        let (evaluations, packets) = firewall.hits(id);
        let counters = json!({ "evaluations": evaluations, "packets": packets, "bytes": packets * 800,
            "states": packets % 7 });
        (id.to_owned(), counters)
    });
    let rules: Map<String, Value> = rules.collect();
    Answer::json(&json!({ "status": "ok", "stats": rules }))
}
