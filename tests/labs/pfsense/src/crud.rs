//! Reading and writing objects and settings, the same for all models.

use serde_json::{Value, json};

use crate::api::shown;
use crate::call::Call;
use crate::device::Pfsense;
use crate::draft::{Draft, Parent};
use crate::facts::Model;
use crate::lists::{list_of, parent_model, place, place_and_sort, put_list, sort};
use crate::reply::Refusal;
use crate::represent::{self, Row};
use crate::store::{NAME, Object, id_of, place_of};
use crate::{hooks, jobs, query, status};

/// Objects of one kind at most.
const OBJECTS_MAX: usize = 65_535;

pub(crate) fn list(firewall: &Pfsense, call: &Call) -> Result<Value, Refusal> {
    status::check(firewall, call.model)?;
    let rows = selected(firewall, call)?;
    Ok(shown(firewall, call, &rows))
}

pub(crate) fn selected(firewall: &Pfsense, call: &Call) -> Result<Vec<Row>, Refusal> {
    let rows = represent::rows(firewall, call.model);
    let is_plain = call.data.is_empty() && call.sort_by.is_none();
    let mut rows = query::select(firewall, call.model, rows, &call.data)?;
    if let Some(fields) = &call.sort_by {
        let flags = call.sort_flags.as_deref().unwrap_or("SORT_REGULAR");
        query::sort(&mut rows, fields, call.is_descending, flags);
    }
    Ok(query::page(rows, call, is_plain))
}

pub(crate) fn read(firewall: &Pfsense, call: &Call) -> Result<Value, Refusal> {
    status::check(firewall, call.model)?;
    let row = match (call.model.many, call.data.get("id")) {
        (true, None | Some(Value::Null)) => {
            return Err(Refusal::invalid("MODEL_REQUIRES_ID", "Field 'id' is required."));
        }
        (true, Some(id)) => find(firewall, call, id)?,
        (false, _) => {
            let object = represent::objects(firewall, call.model).into_iter().next();
            let object = object.map(|(_, object)| object).unwrap_or_default();
            represent::row(firewall, call.model, None, None, &object)
        }
    };
    Ok(represent::shown(firewall, call.model, &row))
}

/// The object that a request names, or the vendor's way to say that there is none.
pub(crate) fn find(firewall: &Pfsense, call: &Call, id: &Value) -> Result<Row, Refusal> {
    let missing = || {
        let text = format!("Object with ID '{}' does not exist.", crate::php::text(id));
        Refusal::not_found("MODEL_OBJECT_NOT_FOUND", &text)
    };
    if id.is_null() {
        let text = "An ID is required when refreshing objects from config.";
        return Err(Refusal::server("MODEL_ID_REQUIRED_FOR_REFRESH", text));
    }
    if let Some(parent) = parent_model(call.model) {
        let object = parent_object(firewall, call, parent)?;
        let children = represent::children(call.model, &object.1);
        let list: Vec<Object> = children.iter().map(|(_, child)| child.clone()).collect();
        let at = place_of(call.model, id, &list).ok_or_else(missing)?;
        return Ok(represent::child(firewall, call.model, Some(json!(at)), object.0, &object.1, &list[at]));
    }
    let (ids, list): (Vec<Value>, Vec<Object>) = represent::objects(firewall, call.model).into_iter().unzip();
    let found =
        if call.model.named { ids.iter().position(|own| own == id) } else { place_of(call.model, id, &list) };
    let at = found.ok_or_else(missing)?;
    Ok(represent::row(firewall, call.model, Some(ids[at].clone()), None, &list[at]))
}

/// The parent that a request names, with its id.
fn parent_object(
    firewall: &Pfsense,
    call: &Call,
    parent: &'static Model,
) -> Result<(Option<Value>, Object), Refusal> {
    let objects = represent::objects(firewall, parent);
    if !parent.many {
        return Ok((None, objects.into_iter().next().map(|(_, object)| object).unwrap_or_default()));
    }
    let id = match call.data.get("parent_id") {
        Some(id) if !id.is_null() => id,
        _ if call.method == "DELETE" => {
            let text = "A parent ID is required when refreshing objects from config.";
            return Err(Refusal::server("MODEL_PARENT_ID_REQUIRED_FOR_REFRESH", text));
        }
        _ => {
            let text = "The path of the configuration needs the parent.";
            return Err(Refusal::server("MODEL_CANNOT_GET_CONFIG_PATH_WITHOUT_PARENT_MODEL", text));
        }
    };
    let found =
        objects.into_iter().find(|(own, _)| own == id || crate::php::text(own) == crate::php::text(id));
    let (id, object) = found.ok_or_else(|| {
        let text = format!("Parent object with ID '{}' does not exist.", crate::php::text(id));
        Refusal::not_found("MODEL_PARENT_OBJECT_NOT_FOUND", &text)
    })?;
    Ok((Some(id), object))
}

/// Refuses writes of what a package brings that is not installed. Reads are not refused.
pub(crate) fn check_packages(firewall: &Pfsense, model: &Model) -> Result<(), Refusal> {
    match model.packages.iter().find(|package| !firewall.packages.contains(*package)) {
        None => Ok(()),
        Some(package) => {
            let text =
                format!("The requested action requires the '{package}' package but it is not installed.");
            Err(Refusal::not_found("MODEL_MISSING_REQUIRED_PACKAGE", &text))
        }
    }
}

/// The parent of a draft, with its values as they are shown.
fn parent_of(firewall: &Pfsense, call: &Call) -> Result<Option<Parent>, Refusal> {
    let Some(above) = parent_model(call.model) else { return Ok(None) };
    if above.many && call.data.get("parent_id").is_none_or(Value::is_null) {
        return Err(Refusal::invalid("MODEL_PARENT_ID_REQUIRED", "Field `parent_id` is required."));
    }
    let (id, object) = parent_object(firewall, call, above)?;
    let values = represent::values(firewall, above, id.as_ref(), &object);
    Ok(Some(Parent { id: id.unwrap_or(Value::Null), values }))
}

pub(crate) fn create(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let model = call.model;
    let parent = parent_of(firewall, call)?;
    check_packages(firewall, model)?;
    let mut draft = Draft::new(firewall, model, &call.client);
    draft.lay_over(&call.data);
    draft.parent = parent;
    draft.take_siblings();
    let parent_id = draft.parent.as_ref().map(|parent| parent.id.clone()).filter(|id| !id.is_null());
    let list = list_of(&firewall.stored, model, parent_id.as_ref());
    let id = hooks::next_id(&draft, &list);
    draft.id = Some(id.clone());
    draft.validate()?;
    if list.len() >= model.max_objects.unwrap_or(OBJECTS_MAX) {
        let text = "Object creation denied: the number of objects would exceed its maximum.";
        return Err(Refusal::forbidden("MODEL_MANY_MAXIMUM_REACHED", text));
    }
    if call.is_dry_run {
        return Ok(answer(&draft, parent_id));
    }
    hooks::before_create(&mut draft)?;
    let mut stored = draft.stored(None);
    if model.named {
        stored.insert(NAME.to_owned(), id);
    }
    let (mut values, nested) = (draft.values, draft.nested);
    let mut config = firewall.stored.clone();
    let mut list = list;
    list.push(stored);
    let at = place_and_sort(firewall, call, &mut list)?;
    let id = id_of(model, at, &list[at]);
    put_list(&mut config, model, parent_id.as_ref(), list);
    firewall.save(&format!(" Added {} via API", model.name), config)?;
    firewall.mark(model);
    hooks::after_create(firewall, call, &id, &mut values)?;
    finish(firewall, call)?;
    let mut draft = Draft::new(firewall, model, &call.client);
    (draft.values, draft.nested, draft.id) = (values, nested, Some(id));
    Ok(answer(&draft, parent_id))
}

/// What a write leaves to do: the apply that was asked for, or that is always part of it.
pub(crate) fn finish(firewall: &mut Pfsense, call: &Call) -> Result<(), Refusal> {
    let model = call.model;
    let acts = call.applies || model.immediate || (model.apply.is_none() && !model.inline);
    if firewall.met.is_overwritten || !acts {
        return Ok(());
    }
    let Some(route) = &model.apply else {
        firewall.activate(model);
        if let Some(subsystem) = &model.subsystem {
            firewall.dirty.remove(subsystem);
        }
        return hooks::applied(firewall, call);
    };
    jobs::spawn(firewall, route, call.is_async)?;
    // The mark goes before the job ends, where it is no file that the job removes.
    let is_file = |own: &&String| ["vip", "interfaces"].contains(&own.as_str());
    if let Some(subsystem) = model.subsystem.as_ref().filter(|own| !is_file(own)) {
        firewall.dirty.remove(subsystem);
    }
    Ok(())
}

/// The object as the answer to its write shows it: the values of the request, not those that were stored.
fn answer(draft: &Draft, parent: Option<Value>) -> Value {
    let row = Row { id: draft.id.clone().filter(|_| draft.model.many), parent, values: draft.values.clone() };
    represent::shown(draft.firewall, draft.model, &row)
}

pub(crate) fn update(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let model = call.model;
    let mut draft = Draft::new(firewall, model, &call.client);
    let (at, before) = if model.many {
        let Some(id) = call.data.get("id").filter(|id| !id.is_null()) else {
            return Err(Refusal::invalid("MODEL_REQUIRES_ID", "Field 'id' is required."));
        };
        let row = find(firewall, call, id)?;
        let list = list_of(&firewall.stored, model, row.parent.as_ref());
        let at = row.id.as_ref().and_then(|id| place_of(model, id, &list)).unwrap_or(0);
        draft.id.clone_from(&row.id);
        draft.initial = Some(row.values.clone());
        draft.values = row.values;
        draft.parent = parent_of(firewall, call)?;
        (at, list.get(at).cloned().unwrap_or_default())
    } else {
        let before = firewall.stored.single(&model.name);
        draft.values = represent::values(firewall, model, None, &before);
        draft.initial = Some(draft.values.clone());
        (0, before)
    };
    draft.lay_over(&call.data);
    draft.take_siblings();
    if call.appends || call.removes {
        merge_lists(&mut draft, call);
    }
    check_packages(firewall, model)?;
    hooks::before_validation(&mut draft);
    draft.validate()?;
    let parent_id = draft.parent.as_ref().map(|parent| parent.id.clone()).filter(|id| !id.is_null());
    if call.is_dry_run {
        return Ok(answer(&draft, parent_id));
    }
    hooks::before_update(&mut draft)?;
    let stored = draft.stored(Some(&before));
    let (mut values, nested, id, initial) =
        (draft.values, draft.nested, draft.id, draft.initial.unwrap_or_default());
    let mut config = firewall.stored.clone();
    let mut id = id.unwrap_or(Value::Null);
    if model.many {
        let mut list = list_of(&config, model, parent_id.as_ref());
        if let Some(object) = list.get_mut(at) {
            *object = stored;
        }
        let at = place(call, &mut list, at)?;
        let at = sort(firewall, call, &mut list, at);
        id = id_of(model, at, &list[at]);
        put_list(&mut config, model, parent_id.as_ref(), list);
    } else {
        config.put_single(&model.name, stored);
    }
    firewall.save(&format!(" Modified {} via API", model.name), config)?;
    firewall.mark(model);
    hooks::after_update(firewall, call, &id, &mut values, &initial)?;
    finish(firewall, call)?;
    let mut draft = Draft::new(firewall, model, &call.client);
    (draft.values, draft.nested, draft.id) = (values, nested, Some(id));
    Ok(answer(&draft, parent_id))
}

/// Adds entries to lists, or takes them out, where a request changes a list.
fn merge_lists(draft: &mut Draft, call: &Call) {
    let initial = draft.initial.clone().unwrap_or_default();
    let lists = draft.model.fields.iter().filter(|field| field.many && call.data.contains_key(&field.name));
    for field in lists {
        let old = initial.get(&field.name).and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(sent) = draft.value(&field.name).as_array().cloned() else { continue };
        if sent == old {
            continue;
        }
        let merged: Vec<Value> = if call.appends {
            old.into_iter().chain(sent).collect()
        } else {
            let left = old.into_iter().filter(|item| !sent.iter().any(|gone| is_same_entry(item, gone)));
            left.collect()
        };
        draft.set(&field.name, json!(merged));
    }
}

/// Entries compare as texts, so that all objects are the same.
fn is_same_entry(one: &Value, other: &Value) -> bool {
    crate::php::text(one) == crate::php::text(other)
}
