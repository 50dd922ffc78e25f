//! Aliases and the tables behind them: their own apply, import and export, entries that act at once.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::call::{Answer, Call, scalar};
use crate::choices::{ALIASES, USER_GROUPS, effective};
use crate::config::Values;
use crate::crud::{having, is_uuid};
use crate::device::Firewall;
use crate::filter::categories;
use crate::hardware::BUILT_IN_ALIASES;
use crate::hooks::with;
use crate::{grid, validate};

pub(crate) fn alias(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match call.command {
        "reconfigure" => apply_aliases(firewall),
        "getaliasuuid" => {
            let found = having(&firewall.stored, ALIASES, "name", call.param(0)).next();
            Ok(found.map_or_else(Answer::empty, |(id, _)| Answer::json(&json!({ "uuid": id }))))
        }
        "gettablesize" => {
            let names = firewall.running.rows(ALIASES).filter_map(|(_, values)| values.get("name"));
            let details: Map<String, Value> = names
                .map(|name| (name.clone(), json!({ "count": firewall.table(name).len(), "updated": null })))
                .collect();
            let used: usize = details
                .values()
                .filter_map(|table| table["count"].as_u64())
                .map(|count| usize::try_from(count).unwrap_or(0))
                .sum();
            Ok(Answer::json(&json!({ "status": "ok", "size": 1_000_000, "used": used, "details": details })))
        }
        "getgeoip" => Ok(Answer::json(&json!({ "alias": { "geoip": {
            "url": firewall.stored.value("Firewall/Alias:", "", "geoip.url"), "subscription": "",
            "address_count": 0, "file_count": 0, "timestamp": null, "usages": 0
        } } }))),
        "listcountries" => {
            let countries = [
                ("DE", "Germany", "Europe"),
                ("NL", "Netherlands", "Europe"),
                ("US", "United States", "America"),
            ];
            let map = countries
                .map(|(code, name, region)| (code.to_owned(), json!({ "name": name, "region": region })));
            Ok(Answer::json(&Value::Object(map.into_iter().collect())))
        }
        "listnetworkaliases" => {
            let networks = firewall.stored.rows(ALIASES).filter(|(_, values)| {
                ["host", "network", "networkgroup", "external"].contains(&effective(ALIASES, "type", values))
            });
            let map: Map<String, Value> = networks
                .filter_map(|(_, values)| values.get("name"))
                .map(|name| (name.clone(), json!({ "name": name })))
                .collect();
            Ok(Answer::json(&Value::Object(map)))
        }
        "listusergroups" => {
            let groups = firewall.stored.rows(USER_GROUPS);
            let map = groups.map(|(_, values)| {
                (effective(USER_GROUPS, "gid", values).to_owned(), json!({ "name": values.get("name") }))
            });
            Ok(Answer::json(&Value::Object(map.collect())))
        }
        "listcategories" => Ok(categories(firewall, call)),
        "export" => Ok(export(firewall, call)),
        "import" => import(firewall, call),
        _ => return None,
    })
}

/// Loads every alias. Lists that cannot be fetched are an error, although the rest is active.
fn apply_aliases(firewall: &mut Firewall) -> Result<Answer, Answer> {
    firewall.apply("firewall/alias/reconfigure");
    let broken = firewall.running.rows(ALIASES).find(|(_, values)| {
        effective(ALIASES, "type", values).starts_with("url")
            && effective(ALIASES, "content", values).contains(".invalid")
    });
    match broken {
        Some((_, values)) => {
            let text = format!("fetch alias url for {} failed", effective(ALIASES, "name", values));
            Err(Answer::refused(firewall.release, "Alias", &text))
        }
        None => Ok(Answer::status("ok")),
    }
}

fn export(firewall: &Firewall, call: &Call) -> Answer {
    let ids = match call.body.get("ids").or_else(|| call.query.get("ids")) {
        Some(Value::Array(ids)) => ids.iter().filter_map(scalar).collect(),
        Some(ids) => scalar(ids).unwrap_or_default().split(',').map(str::to_owned).collect::<Vec<_>>(),
        None => Vec::new(),
    };
    let wanted = |id: &str| ids.iter().all(String::is_empty) || ids.iter().any(|own| own == id);
    let aliases: Map<String, Value> = firewall
        .stored
        .rows(ALIASES)
        .filter(|(id, _)| wanted(id))
        .map(|(id, values)| (id.to_owned(), json!(**values)))
        .collect();
    Answer::json(&json!({ "aliases": { "alias": aliases } }))
}

/// Matches by name and overwrites, all or nothing.
fn import(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let posted =
        call.body.get("data").and_then(|data| data.get("aliases")).and_then(|aliases| aliases.get("alias"));
    let posted = posted.and_then(Value::as_object).ok_or_else(Answer::failed)?;
    let mut config = firewall.stored.clone();
    let mut faults = Vec::new();
    let mut existing = 0;
    for (id, alias) in posted {
        let fields = alias.as_object().into_iter().flatten();
        let values: Values =
            fields.filter_map(|(name, value)| Some((name.clone(), scalar(value)?))).collect();
        let name = values.get("name").cloned().unwrap_or_default();
        let known = having(&config, ALIASES, "name", &name).next().map(|(id, _)| id.to_owned());
        existing += usize::from(known.is_some());
        let id = known.unwrap_or_else(|| if is_uuid(id) { id.clone() } else { firewall.new_uuid() });
        faults.extend(validate::item(ALIASES, &id, &values, &config, firewall.release, |_| true));
        config.put(ALIASES, &id, values);
    }
    if !faults.is_empty() {
        return Err(Answer::invalid("alias", &faults));
    }
    firewall.save(call, config)?;
    Ok(Answer::json(&json!({ "status": "ok", "existing": existing, "new": posted.len() - existing })))
}

pub(crate) fn tables(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let name = call.param(0);
    Some(match call.command {
        "aliases" => {
            let names = firewall.running.rows(ALIASES).filter_map(|(_, values)| values.get("name").cloned());
            let all: Vec<String> = names.chain(BUILT_IN_ALIASES.map(str::to_owned)).collect();
            Ok(Answer::json(&json!(all)))
        }
        "list" => {
            Ok(grid::live(call, firewall.table(name).iter().map(|entry| json!({ "ip": entry })).collect()))
        }
        "add" | "delete" => change_table(firewall, call, name),
        "flush" => {
            firewall.set_table(name, BTreeSet::new());
            Ok(Answer::status("done"))
        }
        "findreferences" => {
            let address = call.text("ip");
            let names = firewall.running.rows(ALIASES).filter_map(|(_, values)| values.get("name").cloned());
            let matches: Vec<String> = names
                .filter(|name| firewall.table(name).iter().any(|entry| validate::contains(entry, &address)))
                .collect();
            Ok(Answer::json(&json!({ "status": "ok", "matches": matches })))
        }
        _ => return None,
    })
}

/// Acts on the live table at once, and for hosts and networks on the stored content too.
fn change_table(firewall: &mut Firewall, call: &Call, name: &str) -> Result<Answer, Answer> {
    let mut address = call.text("address");
    let found = having(&firewall.stored, ALIASES, "name", name).next();
    let found = found.map(|(id, values)| (id.to_owned(), effective(ALIASES, "type", values).to_owned()));
    let is_built_in = BUILT_IN_ALIASES.contains(&name);
    if !validate::is_network(&address) || address == "any" || (found.is_none() && !is_built_in) {
        return Ok(Answer::status("failed"));
    }
    let kind = found.as_ref().map_or("external", |(_, kind)| kind.as_str());
    if kind == "network" && !address.contains('/') {
        address += if address.contains(':') { "/128" } else { "/32" };
    }
    let mut entries = firewall.table(name);
    if call.command == "add" {
        entries.insert(address.clone())
    } else {
        entries.remove(&address)
    };
    if let Some((id, kind)) = &found
        && ["host", "network"].contains(&kind.as_str())
    {
        let mut config = firewall.stored.clone();
        let content = config.value(ALIASES, id, "content").to_owned();
        let mut lines: Vec<&str> = content.lines().filter(|line| *line != address).collect();
        if call.command == "add" {
            lines.push(&address);
        }
        if let Some(values) = config.find(ALIASES, id) {
            let values = with(values, "content", &lines.join("\n"));
            config.put(ALIASES, id, values);
        }
        firewall.save(call, config)?;
    }
    firewall.set_table(name, entries);
    Ok(Answer::status("done"))
}
