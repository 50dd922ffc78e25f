//! From the facts of a field to its part of a binding and its part of a schema.

use anyhow::Context as _;
use heddle_adapter_kit::say;
use heddle_adapter_kit::schema::{bounded, nullable, object};
use serde_json::{Map, Value, json};

use super::facts::{Facts, Field, Model};
use super::overlay::FieldJudgements;

const TEXT_CHARS_MAX: u64 = 8192;
/// A certificate, or a file, in characters.
const BASE64_CHARS_MAX: u64 = 900_000;
const LIST_ITEMS_MAX: u64 = 1024;

/// One field of an item.
pub(super) struct Made {
    pub(super) name: String,
    pub(super) binding: Value,
    pub(super) schema: Value,
    pub(super) is_unread: bool,
    /// A create needs it, whatever else it has.
    pub(super) is_required: bool,
    pub(super) is_create_only: bool,
}

/// The fields that payloads of a model can have.
pub(super) fn all(facts: &Facts, model: &Model, judged: &FieldJudgements) -> anyhow::Result<Vec<Made>> {
    let is_written = |field: &&Field| !field.shown && !judged.omit.contains(&field.name);
    let one =
        |field: &Field| one(facts, (model, field), judged).with_context(|| format!("field '{}'", field.name));
    model.fields.iter().filter(is_written).map(one).collect()
}

fn one(facts: &Facts, (model, field): (&Model, &Field), judged: &FieldJudgements) -> anyhow::Result<Made> {
    let has = |names: &[String]| names.contains(&field.name);
    let is_unread = field.secret || field.unread;
    let is_create_only = field.fixed || has(&judged.create_only);
    let mut binding = json!({ "type": "json" });
    say(&mut binding, "merge", field.nested.is_some());
    say(&mut binding, "always", has(&judged.always));
    // The firewall empties a field whose condition is not met; of objects in lists, it keeps those that it has.
    let judged_of_field = judged.kept_with.get(&field.name).cloned();
    if field.nested.is_none() {
        say(&mut binding, "kept-with", judged_of_field.unwrap_or_else(|| kept_with(model, field)));
    }
    // No items are the same as none, where the firewall takes both.
    if field.kind.starts_with("array<")
        && (field.empty || !field.when.is_empty())
        && !field.null
        && !is_unread
    {
        binding["default"] = json!([]);
    }
    say(&mut binding, "unread", is_unread);
    say(&mut binding, "create-only", is_create_only);
    say(&mut binding, "rewritten", has(&judged.rewritten));
    if binding.as_object().is_some_and(|words| words.len() == 1) {
        binding = json!("json");
    }
    Ok(Made {
        name: field.name.clone(),
        binding,
        schema: schema(facts, field, judged.only.get(&field.name).map(Vec::as_slice))?,
        is_unread,
        is_required: field.required && field.when.is_empty(),
        is_create_only,
    })
}

/// What other fields have to be, so that the firewall keeps the value of a field.
fn kept_with(model: &Model, field: &Field) -> Value {
    let one = |(name, wanted): (&String, &Value)| {
        let (name, is_not) = name.strip_prefix('!').map_or((name.as_str(), false), |name| (name, true));
        let known = model.fields.iter().find(|other| other.name == name && !other.secret && !other.unread)?;
        let mut values = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
        // A field that always exists is its default where it is none.
        if known.when.is_empty() && known.default.as_ref().is_some_and(|default| values.contains(default)) {
            values.push(Value::Null);
        }
        Some((name.to_owned(), if is_not { json!({ "not": values }) } else { json!(values) }))
    };
    Value::Object(field.when.iter().filter_map(one).collect())
}

/// Fields that a new object has to have beside others: the firewall looks at conditions in the order of the fields, and fills
/// in a default only afterwards.
pub(super) fn beside(model: &Model) -> Map<String, Value> {
    let needed = |(at, field): (usize, &Field)| {
        let behind = model.fields[at..].iter().filter(|other| !other.required);
        let needed = behind.filter(|other| field.when.contains_key(&other.name) && !other.shown);
        let names: Vec<&str> = needed.map(|other| other.name.as_str()).collect();
        (!names.is_empty() && !field.shown).then(|| (field.name.clone(), json!(names)))
    };
    model.fields.iter().enumerate().filter_map(needed).collect()
}

/// The schema of a field; `only` has the fields of its objects that are offered.
pub(super) fn schema(facts: &Facts, field: &Field, only: Option<&[String]>) -> anyhow::Result<Value> {
    let mut schema = match field.kind.strip_prefix("array<").and_then(|kind| kind.strip_suffix('>')) {
        None => single(field, &field.kind),
        Some(kind) => {
            let items = match &field.nested {
                Some(model) => of_objects(facts, model, only)?,
                None => single(&Field { empty: false, ..plain(field) }, kind),
            };
            let list = json!({ "type": "array", "items": items });
            let least = field.min_items.filter(|least| *least > 0).or((!field.empty).then_some(1));
            bounded(
                list,
                [
                    ("minItems", least),
                    ("maxItems", Some(field.max_items.unwrap_or(LIST_ITEMS_MAX).min(LIST_ITEMS_MAX))),
                ],
            )
        }
    };
    if field.null {
        schema = nullable(schema);
    }
    if field.secret {
        schema["writeOnly"] = json!(true);
    }
    Ok(schema)
}

/// What counts for one value of a list.
fn plain(field: &Field) -> Field {
    Field {
        options: field.options.clone(),
        min: field.min.clone(),
        max: field.max.clone(),
        min_length: field.min_length,
        max_length: field.max_length,
        ..Field::default()
    }
}

fn single(field: &Field, kind: &str) -> Value {
    if !field.options.is_empty() {
        let mut options = field.options.clone();
        if field.empty && kind == "string" && !options.contains(&json!("")) {
            options.push(json!(""));
        }
        return json!({ "type": if kind == "integer" { "integer" } else { "string" }, "enum": options });
    }
    let of_number = |kind: &str| {
        let bounds = [("minimum", field.min.clone()), ("maximum", field.max.clone())];
        bounded(json!({ "type": kind }), bounds.map(|(word, bound)| (word, bound.map(Value::Number))))
    };
    match kind {
        "boolean" => json!({ "type": "boolean" }),
        "integer" | "unix-time" => of_number("integer"),
        "number" => of_number("number"),
        "object" => json!({ "type": "object" }),
        _ => {
            let longest = if kind == "base64" { BASE64_CHARS_MAX } else { TEXT_CHARS_MAX };
            let least = field.min_length.unwrap_or(1);
            let bounds = [
                ("minLength", Some(least).filter(|_| !field.empty)),
                ("maxLength", Some(field.max_length.unwrap_or(longest))),
            ];
            bounded(json!({ "type": "string" }), bounds)
        }
    }
}

/// The objects of a list. What no answer shows cannot be a part of it: the whole list is compared.
fn of_objects(facts: &Facts, model: &str, only: Option<&[String]>) -> anyhow::Result<Value> {
    let known = facts.models.get(model).with_context(|| format!("there is no model {model}"))?;
    let is_offered = |field: &&Field| match only {
        Some(names) => names.contains(&field.name),
        None => !field.shown && !field.secret && !field.unread,
    };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in known.fields.iter().filter(is_offered) {
        properties.insert(field.name.clone(), schema(facts, field, None)?);
        if field.required && field.when.is_empty() {
            required.push(field.name.clone());
        }
    }
    Ok(object(properties, &required))
}
