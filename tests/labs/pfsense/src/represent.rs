//! Stored objects as the API shows them.

use serde_json::{Map, Value, json};

use crate::device::Pfsense;
use crate::facts::{Facts, Field, Kind, Model, Reference};
use crate::store::{Config, Object, id_of};
use crate::{interfaces, php, rules, status};

/// One object with its fields as they are shown, the secret ones among them.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) id: Option<Value>,
    pub(crate) parent: Option<Value>,
    pub(crate) values: Object,
}

/// All objects of a model; with parents, those of all of them.
pub(crate) fn rows(firewall: &Pfsense, model: &'static Model) -> Vec<Row> {
    if let Some(parent) = model.parent.as_deref().and_then(|parent| Facts::get().model(parent)) {
        let mut out = Vec::new();
        for (parent_id, above) in objects(firewall, parent) {
            let parent_id = parent.many.then_some(parent_id);
            let own = children(model, &above);
            out.extend(
                own.into_iter()
                    .map(|(id, object)| child(firewall, model, Some(id), parent_id.clone(), &above, &object)),
            );
        }
        return out;
    }
    objects(firewall, model)
        .into_iter()
        .map(|(id, object)| row(firewall, model, Some(id), None, &object))
        .collect()
}

/// The children of an object with their ids.
pub(crate) fn children(model: &Model, parent: &Object) -> Vec<(Value, Object)> {
    let stored = Config::children(parent, &model.name);
    stored.into_iter().enumerate().map(|(at, child)| (json!(at), child)).collect()
}

/// The objects of a model with their ids: configured ones, or those that the system tells.
pub(crate) fn objects(firewall: &Pfsense, model: &Model) -> Vec<(Value, Object)> {
    if let Some(found) = status::objects(firewall, model) {
        return found;
    }
    let list = firewall.stored.list(&model.name);
    list.iter().enumerate().map(|(at, object)| (id_of(model, at, object), object.clone())).collect()
}

pub(crate) fn row(
    firewall: &Pfsense,
    model: &'static Model,
    id: Option<Value>,
    parent: Option<Value>,
    object: &Object,
) -> Row {
    let values = values(firewall, model, id.as_ref(), object);
    Row { id, parent, values }
}

/// As [`row`], of an object inside of another one.
pub(crate) fn child(
    firewall: &Pfsense,
    model: &'static Model,
    id: Option<Value>,
    parent: Option<Value>,
    above: &Object,
    object: &Object,
) -> Row {
    let values = values_under(firewall, model, id.as_ref(), Some(above), object);
    Row { id, parent, values }
}

/// The fields of a stored object.
pub(crate) fn values(
    firewall: &Pfsense,
    model: &'static Model,
    id: Option<&Value>,
    object: &Object,
) -> Object {
    values_under(firewall, model, id, None, object)
}

/// As [`values`], under an object above. A condition sees only the fields before its own, as with the vendor.
fn values_under(
    firewall: &Pfsense,
    model: &'static Model,
    id: Option<&Value>,
    above: Option<&Object>,
    object: &Object,
) -> Object {
    let mut out = Object::new();
    for field in model.fields(firewall.release) {
        let is_met = are_conditions_met(field, &out, above);
        let value = value(firewall, model, field, id, object, is_met);
        out.insert(field.name.clone(), value);
    }
    rules::show(firewall, model, id, object, &mut out);
    out
}

fn value(
    firewall: &Pfsense,
    model: &Model,
    field: &Field,
    id: Option<&Value>,
    object: &Object,
    is_met: bool,
) -> Value {
    let config = &firewall.stored;
    if let Some(child) = field.nested.as_deref().and_then(|name| Facts::get().model(name)) {
        let children = children(child, object);
        let shown = children.into_iter().map(|(own, stored)| {
            let values = values_under(firewall, child, Some(&own), Some(object), &stored);
            shown(firewall, child, &Row { id: Some(own), parent: id.cloned(), values })
        });
        return Value::Array(shown.collect());
    }
    let stored = object.get(&field.name).filter(|stored| !stored.is_null() && !is_computed(model, field));
    match (stored, field.kind) {
        (Some(Value::Bool(_)) | None, Kind::Boolean) if !is_met => Value::Null,
        (None, Kind::Boolean) => json!(false),
        (None, _) => {
            let default = field.default.as_ref().filter(|default| !is_empty(default));
            default.filter(|_| is_met).cloned().unwrap_or(Value::Null)
        }
        (Some(Value::Array(items)), _) if field.many => {
            items.iter().map(|item| show(config, field, item)).collect()
        }
        (Some(stored), _) => show(config, field, stored),
    }
}

/// Fields that only the code of a model fills. What the system tells is taken as it is.
fn is_computed(model: &Model, field: &Field) -> bool {
    field.representation_only && model.stored
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false))
        || value == &json!("")
        || value == &json!("0")
        || value == &json!([])
        || value.as_f64() == Some(0.0)
}

/// One stored value as it is shown.
fn show(config: &Config, field: &Field, stored: &Value) -> Value {
    let Value::String(text) = stored else {
        return field
            .refers
            .as_ref()
            .map_or_else(|| stored.clone(), |refers| resolve(config, refers, stored));
    };
    match field.kind {
        Kind::Interface => json!(interfaces::show(config, text)),
        Kind::FilterAddress => json!(interfaces::show_address(config, text)),
        Kind::SpecialNetwork => json!(interfaces::show_special(config, text)),
        _ => field.refers.as_ref().map_or_else(|| stored.clone(), |refers| resolve(config, refers, stored)),
    }
}

/// What a reference shows for what it stores.
fn resolve(config: &Config, refers: &Reference, stored: &Value) -> Value {
    let Some(inner) = &refers.stored else { return stored.clone() };
    let lists = refers.models.iter().flat_map(|model| config.list(model));
    let found =
        lists.into_iter().find(|object| object.get(inner).is_some_and(|own| php::equals(own, stored)));
    found.and_then(|object| object.get(&refers.field).cloned()).unwrap_or_else(|| stored.clone())
}

/// Whether a field exists, by the values of other fields, or of those of the parent.
pub(crate) fn are_conditions_met(field: &Field, values: &Object, parent: Option<&Object>) -> bool {
    field.when.iter().all(|(name, wanted)| {
        let (is_inverted, name) = name.strip_prefix('!').map_or((false, name.as_str()), |name| (true, name));
        let own = match name.strip_prefix("parent__") {
            Some(name) => parent.and_then(|parent| parent.get(name)),
            None => values.get(name),
        };
        let own = own.unwrap_or(&Value::Null);
        let fits = match wanted {
            Value::Array(options) => php::is_in(own, options),
            wanted => own == wanted,
        };
        fits != is_inverted
    })
}

/// What leaves the firewall: without fields that are hidden.
pub(crate) fn shown(firewall: &Pfsense, model: &'static Model, row: &Row) -> Value {
    let mut out = Map::new();
    if let Some(parent) = &row.parent {
        out.insert("parent_id".to_owned(), parent.clone());
    }
    if let Some(id) = &row.id {
        out.insert("id".to_owned(), id.clone());
    }
    for field in model.fields(firewall.release).filter(|field| !is_hidden(firewall, model, field)) {
        let value = row.values.get(&field.name).cloned().unwrap_or(Value::Null);
        out.insert(field.name.clone(), value);
    }
    if firewall.has_links() {
        out.insert("_links".to_owned(), links(model, row));
    }
    Value::Object(out)
}

fn is_hidden(firewall: &Pfsense, model: &Model, field: &Field) -> bool {
    if field.write_only || !field.sensitive {
        return field.write_only;
    }
    let settings = firewall.stored.single("RESTAPISettings");
    let is_exposed = crate::store::is_true(&settings, "expose_sensitive_fields");
    let own = json!(format!("{}:{}", model.name, field.name));
    let is_excepted = settings
        .get("override_sensitive_fields")
        .and_then(Value::as_array)
        .is_some_and(|names| names.contains(&own));
    !is_exposed && !is_excepted
}

/// The routes of an object.
fn links(model: &Model, row: &Row) -> Value {
    let mut out = Map::new();
    let own = Facts::get().routes.iter().find(|(_, route)| !route.many && route.model == model.name);
    let Some((path, route)) = own else { return json!({}) };
    let query = match (&row.parent, &row.id) {
        (Some(parent), Some(id)) => format!("?parent_id={}&id={}", php::text(parent), php::text(id)),
        (None, Some(id)) if model.many => format!("?id={}", php::text(id)),
        _ => String::new(),
    };
    for (name, method) in [("self", "GET"), ("update", "PATCH"), ("delete", "DELETE")] {
        if route.methods.iter().any(|own| own == method) {
            let query = if method == "PATCH" { "" } else { query.as_str() };
            let link = json!({ "href": format!("/api/v2{path}{query}"), "method": method,
                "id": row.id, "parent_id": row.parent, "title": model.name });
            out.insert(name.to_owned(), link);
        }
    }
    Value::Object(out)
}
