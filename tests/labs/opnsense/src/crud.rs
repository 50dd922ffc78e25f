//! The generic controllers: items and settings of any model, by the facts.

use serde_json::{Map, Value, json};

use crate::call::{Answer, Call, flatten};
use crate::choices::effective;
use crate::config::{Config, Values};
use crate::device::Firewall;
use crate::facts::{Facts, Operation};
use crate::grid::Paging;
use crate::present::{self, Table};
use crate::release::Release;
use crate::{hooks, in_use, names, rows, validate};

/// Serves a route by its facts alone, or `None` when its operation needs code.
pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let is_settings = call.node().ends_with(':');
    let has_node = !call.node().is_empty();
    Some(match call.facts.op {
        Operation::List if has_node => Ok(search(firewall, call)),
        Operation::Read if is_settings => Ok(settings(firewall, call)),
        Operation::Read if has_node && call.command.starts_with("get") => Ok(get(firewall, call)),
        Operation::Create if has_node => add(firewall, call),
        Operation::Update if has_node => set(firewall, call),
        Operation::Delete if has_node => delete(firewall, call),
        Operation::Toggle if has_node => toggle(firewall, call),
        Operation::SettingsWrite if has_node => set_settings(firewall, call),
        Operation::Apply => {
            firewall.apply(&format!("{}/{}", call.controller, call.command));
            Ok(Answer::status("ok"))
        }
        _ => return None,
    })
}

fn search(firewall: &Firewall, call: &Call) -> Answer {
    let node = call.node();
    let config = &firewall.stored;
    let table = Table::new(node, config, firewall.release);
    let paging = Paging::of_items(call);
    let complete = |id: &str, values: &Values| {
        let mut row = table.row(id, values);
        rows::complete(firewall, call, id, values, &mut row);
        row
    };
    let mut items: Vec<(&str, &Values)> = config.rows(node).map(|(id, values)| (id, &**values)).collect();
    items.retain(|(_, values)| rows::is_shown(firewall, call, values));
    if !paging.words.is_empty() {
        items.retain(|(id, values)| present::matches(&complete(id, values), &paging.words));
    }
    rows::sort(node, config, &mut items);
    if !paging.sort.is_empty() {
        let value = |values: &Values, name: &str| match name {
            "sort_order" => rows::sort_order(node, values, config),
            name => effective(node, name, values).to_owned(),
        };
        items.sort_by(|a, b| paging.order(|name| (value(a.1, name), value(b.1, name))));
    }
    let built_in = rows::built_in(firewall, call).into_iter().map(Err);
    let shown = built_in.chain(items.into_iter().map(Ok)).collect();
    paging.page(shown, |row: Result<(&str, &Values), Map<String, Value>>| match row {
        Ok((id, values)) => Value::Object(complete(id, values)),
        Err(row) => Value::Object(row),
    })
}

fn get(firewall: &Firewall, call: &Call) -> Answer {
    let empty = Values::new();
    let values = match call.param(0) {
        "" => &empty,
        id => match firewall.stored.find(call.node(), id) {
            Some(values) => &**values,
            None => return Answer::empty(),
        },
    };
    let mut form = present::form(call.node(), values, &firewall.stored, firewall.release);
    rows::complete_form(firewall, call, values, &mut form);
    Answer::json(&json!({ call.root(): form }))
}

fn settings(firewall: &Firewall, call: &Call) -> Answer {
    let empty = Values::new();
    let values = firewall.stored.find(call.node(), "").map_or(&empty, |values| values);
    let mut form = present::form(call.node(), values, &firewall.stored, firewall.release);
    if let Value::Object(form) = &mut form {
        match call.controller {
            "kea/dhcpv4" | "kea/dhcpv6" => {
                form.retain(|key, _| ["general", "lexpire", "ha"].contains(&key.as_str()));
            }
            "ids/settings" => form.retain(|key, _| key == "general"),
            _ => {}
        }
    }
    let mut out = json!({ call.root(): form });
    if call.controller == "interfaces/settings" {
        out["duids"] = json!([]);
    }
    Answer::json(&out)
}

/// The fields that were posted under the root key, or `failed` without them.
pub(crate) fn posted(call: &Call, node: &str, release: Release) -> Result<Values, Answer> {
    let fields = call.body.get(call.root()).filter(|fields| fields.is_object());
    flatten(node, release, fields.ok_or_else(Answer::failed)?)
}

fn add(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let posted = posted(call, call.node(), firewall.release)?;
    let asked = Some(call.param(0).to_owned()).filter(|id| is_uuid(id));
    let id = asked.unwrap_or_else(|| firewall.new_uuid());
    write(firewall, call, &id, posted, true)?;
    let is_silent = call.command == "addclientbuilder" || is_older(call.node());
    Ok(if is_silent { Answer::result("saved") } else { Answer::saved(&id) })
}

fn set(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let posted = posted(call, call.node(), firewall.release)?;
    let mut id = call.param(0).to_owned();
    if id.is_empty() && call.node() == hooks::CONNECTIONS {
        id = hooks::own_field(call, "uuid");
    }
    let exists = firewall.stored.find(call.node(), &id).is_some();
    if !exists {
        // An unknown id creates the item under that id, when it is a well-formed one.
        let makes_fresh = ["Routing/Gateways:gateway_item", "Core/Tunables:item"].contains(&call.node());
        let refuses = call.node() == "Cron/Cron:jobs.job" || is_older(call.node()) || id.is_empty();
        if makes_fresh && !is_uuid(&id) {
            id = firewall.new_uuid();
        } else if refuses || !is_uuid(&id) {
            return Err(Answer::failed());
        }
    }
    write(firewall, call, &id, posted, !exists)?;
    Ok(Answer::result("saved"))
}

/// Merges, completes, validates and stores one item.
fn write(firewall: &mut Firewall, call: &Call, id: &str, posted: Values, is_new: bool) -> Result<(), Answer> {
    let node = call.node();
    let mut config = firewall.stored.clone();
    let mut values = config.find(node, id).map(|values| Values::clone(values)).unwrap_or_default();
    values.extend(posted.clone());
    hooks::number(node, id, &mut values, &config, is_new);
    hooks::complete(firewall, call, id, &posted, &mut values, &mut config)?;
    let mut faults = validate::item(node, id, &values, &config, firewall.release, |field| {
        is_new || posted.contains_key(field) || values.get(field).is_some_and(String::is_empty)
    });
    faults.extend(validate::whole(node, &values, &config));
    faults.extend(hooks::refusals(firewall, node, id, &values));
    if !faults.is_empty() {
        return Err(Answer::invalid(call.root(), &faults));
    }
    values.retain(|name, _| Facts::get().field(node, name).is_none_or(|field| !field.volatile));
    names::follow_rename(node, id, &posted, &mut config);
    config.put(node, id, values);
    firewall.save(call, config)
}

/// Removes the items of one or several ids. Only the outcome of the last one is told.
fn delete(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let mut config = firewall.stored.clone();
    let mut outcome = "not found";
    for id in call.param(0).split(',') {
        let Some(values) = config.find(call.node(), id).cloned() else {
            outcome = "not found";
            continue;
        };
        if let Some(reason) = in_use::reason(firewall, call, id, &values) {
            return Err(Answer::refused(firewall.release, "In use", &reason));
        }
        hooks::before_delete(call.node(), id, &mut config);
        config.remove(call.node(), id);
        outcome = "deleted";
    }
    if config != firewall.stored {
        firewall.save(call, config)?;
    }
    Ok(Answer::result(outcome))
}

fn toggle(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let node = call.node();
    let fields: Vec<&str> =
        Facts::get().fields(node, firewall.release).map(|field| field.name.as_str()).collect();
    // A log switch is set, never flipped; `disabled` of a port forward is what its path value says.
    let is_log = call.command == "togglerulelog";
    let field = match fields.contains(&"enabled") {
        _ if is_log => "log",
        true => "enabled",
        false => "disabled",
    };
    let is_reversed = node == "Routing/Gateways:gateway_item";
    let mut config = firewall.stored.clone();
    let ids: Vec<&str> = call.param(0).split(',').collect();
    let wanted = match call.param(1) {
        "" if ids.len() > 1 => return Err(Answer::failed()),
        "" => None,
        text => Some(if is_reversed { text != "1" } else { text == "1" }),
    };
    let (mut is_on, mut changed) = (false, false);
    for id in ids {
        let Some(values) = config.find(node, id).cloned() else { return Err(Answer::failed()) };
        let before = effective(node, field, &values) == "1";
        is_on = wanted.unwrap_or(!before);
        changed |= is_on != before;
        config.set(node, id, field, if is_on { "1" } else { "0" });
    }
    if changed {
        firewall.save(call, config)?;
    }
    if is_log {
        return Ok(Answer::status("ok"));
    }
    let word = if is_on == (field == "enabled") { "Enabled" } else { "Disabled" };
    Ok(Answer::json(&json!({ "result": word, "changed": changed })))
}

fn set_settings(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let node = call.node();
    let posted = posted(call, node, firewall.release)?;
    let mut config = firewall.stored.clone();
    let mut values = config.find(node, "").map(|values| Values::clone(values)).unwrap_or_default();
    values.extend(posted.clone());
    let faults =
        validate::item(node, "", &values, &config, firewall.release, |field| posted.contains_key(field));
    if !faults.is_empty() {
        return Err(Answer::invalid(call.root(), &faults));
    }
    config.put(node, "", values);
    hooks::after_settings(node, &mut config);
    firewall.save(call, config)?;
    Ok(Answer::result("saved"))
}

/// Lists of older controllers, which make no item of a set and answer no id.
fn is_older(node: &str) -> bool {
    ["Client", "Ldapgroup", "Proxy", "User"]
        .iter()
        .any(|model| node.starts_with(&format!("Freeradius/{model}:")))
}

/// Whether a text has the form of an id of an item.
pub(crate) fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() == lengths.len()
        && parts
            .iter()
            .zip(lengths)
            .all(|(part, length)| part.len() == length && part.chars().all(|c| c.is_ascii_hexdigit()))
}

/// The items of a list whose field has a value.
pub(crate) fn having<'c>(
    config: &'c Config,
    node: &'c str,
    field: &'c str,
    value: &'c str,
) -> impl Iterator<Item = (&'c str, &'c Values)> {
    let rows = config.rows(node).map(|(id, values)| (id, &**values));
    rows.filter(move |(_, values)| values.get(field).is_some_and(|own| own == value))
}
