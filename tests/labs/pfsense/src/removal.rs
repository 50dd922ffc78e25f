//! Deleting objects one by one, many at once, and replacing all of them.

use serde_json::{Map, Value, json};

use crate::api::shown;
use crate::call::Call;
use crate::crud::{check_packages, find, finish, selected};
use crate::device::Pfsense;
use crate::draft::Draft;
use crate::facts::Facts;
use crate::lists::{list_of, put_list, sort};
use crate::reply::Refusal;
use crate::represent::{self, Row};
use crate::store::{Object, place_of};
use crate::{hooks, php, query, status};

pub(crate) fn delete(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    if !call.model.many {
        return status::delete_all(firewall, call).unwrap_or_else(|| Ok(json!([])));
    }
    let id = call.data.get("id").cloned().unwrap_or(Value::Null);
    let row = find(firewall, call, &id)?;
    one(firewall, call, &row)?;
    Ok(represent::shown(firewall, call.model, &row))
}

/// Deletes one object, unless something stands against it.
fn one(firewall: &mut Pfsense, call: &Call, row: &Row) -> Result<(), Refusal> {
    let model = call.model;
    check_packages(firewall, model)?;
    let id = row.id.clone().unwrap_or(Value::Null);
    if !model.keeps.is_empty() && !query::select(firewall, model, vec![row.clone()], &model.keeps)?.is_empty()
    {
        let text =
            format!("Model object with ID `{}` cannot be deleted because it is protected.", php::text(&id));
        return Err(Refusal::forbidden("MODEL_CANNOT_DELETE_PROTECTED_OBJECT", &text));
    }
    let references = references(firewall, call, row)?;
    if !references.is_empty() {
        let text = "Object cannot be deleted because it is referenced by another existing object.";
        let refusal = Refusal::conflict("MODEL_CANNOT_BE_DELETED_WHILE_REFERENCED", text);
        return Err(refusal.with_data(json!(references)));
    }
    let list = list_of(&firewall.stored, model, row.parent.as_ref());
    if model.stored && model.min > 0 && list.len() <= model.min {
        let text = format!("Object deletion denied: at least {} must remain.", model.min);
        return Err(Refusal::forbidden("MODEL_MANY_MINIMUM_REACHED", &text));
    }
    if call.is_dry_run {
        return Ok(());
    }
    if let Some(done) = status::delete(firewall, call, row) {
        return done;
    }
    let mut config = firewall.stored.clone();
    hooks::before_delete(call, row, &mut config)?;
    let mut list = list_of(&config, model, row.parent.as_ref());
    if let Some(at) = place_of(model, &id, &list) {
        list.remove(at);
    }
    put_list(&mut config, model, row.parent.as_ref(), list);
    firewall.save(&format!(" Deleted {} via API", model.name), config)?;
    firewall.mark(model);
    hooks::after_delete(firewall, call, row);
    finish(firewall, call)
}

/// The objects that keep an object from being deleted. Those of a second model hide behind those of the first.
fn references(firewall: &Pfsense, call: &Call, row: &Row) -> Result<Vec<Value>, Refusal> {
    let mut out: Vec<Value> = Vec::new();
    for field in &call.model.fields {
        for (name, own) in &field.referenced_by {
            let Some(model) = Facts::get().model(name) else { continue };
            let value = row.values.get(&field.name).cloned().unwrap_or(Value::Null);
            let wanted = Map::from_iter([(own.clone(), value)]);
            let rows = query::select(firewall, model, represent::rows(firewall, model), &wanted)?;
            let done = out.len();
            out.extend(rows.iter().skip(done).map(|row| represent::shown(firewall, model, row)));
        }
    }
    Ok(out)
}

pub(crate) fn delete_many(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let takes_all = call.data.get("all") == Some(&json!(true));
    if !takes_all && call.data.is_empty() {
        let text = "At least one query parameter is required to perform mass deletion.";
        return Err(Refusal::invalid("MODEL_DELETE_MANY_REQUIRES_QUERY_PARAMS", text));
    }
    if takes_all && let Some(done) = status::delete_all(firewall, call) {
        return done;
    }
    let rows = if takes_all { represent::rows(firewall, call.model) } else { selected(firewall, call)? };
    // From the last one on, so that ids stay right. What was deleted before a refusal stays deleted.
    for row in rows.iter().rev() {
        one(firewall, call, row)?;
    }
    Ok(shown(firewall, call, &rows))
}

pub(crate) fn replace_all(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let model = call.model;
    if call.items.len() < model.min {
        let text = format!("A minimum of {} new objects is required.", model.min);
        return Err(Refusal::invalid("MODEL_REPLACE_ALL_MINIMUM_NOT_MET", &text));
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut list: Vec<Object> = Vec::new();
    if !model.keeps.is_empty() {
        rows = query::select(firewall, model, represent::rows(firewall, model), &model.keeps)?;
        let stored = firewall.stored.list(&model.name);
        let kept = rows.iter().filter_map(|row| stored.get(place_of(model, row.id.as_ref()?, stored)?));
        list.extend(kept.cloned());
    }
    for item in &call.items {
        let Value::Object(item) = item else {
            let text = "Representation data must be of type `array`.";
            return Err(Refusal::invalid("MODEL_NON_ARRAY_REPRESENTATION_DATA", text));
        };
        check_packages(firewall, model)?;
        let mut draft = Draft::new(firewall, model, &call.client);
        draft.lay_over(item);
        draft.siblings.clone_from(&rows);
        let id = hooks::next_id(&draft, &list);
        draft.id = Some(id.clone());
        draft.validate()?;
        let mut stored = draft.stored(None);
        if model.named {
            stored.insert(crate::store::NAME.to_owned(), id.clone());
        }
        rows.push(Row { id: Some(id), parent: None, values: draft.values });
        list.push(stored);
    }
    if call.is_dry_run {
        return Ok(shown(firewall, call, &rows));
    }
    let newest = list.len().saturating_sub(1);
    sort(firewall, call, &mut list, newest);
    let mut config = firewall.stored.clone();
    put_list(&mut config, model, None, list);
    firewall.save(&format!(" Replaced all {} via API", model.name), config)?;
    firewall.mark(model);
    // An apply that is asked for is not looked at.
    if model.immediate {
        finish(firewall, call)?;
    }
    Ok(shown(firewall, call, &rows))
}
