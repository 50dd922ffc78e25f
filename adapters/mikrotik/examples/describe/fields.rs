//! From the facts of a field to its part of a binding and its part of a schema.

use heddle_adapter_kit::say;
use heddle_adapter_kit::schema::{bounded, nullable, secret, text};
use serde_json::{Value, json};

use super::overlay::{FieldFacts, Item};

pub(super) const TEXT_CHARS_MAX: u32 = 4096;
/// Scripts, keys and contents of files.
const LONG_CHARS_MAX: u32 = 60_000;
const LONG: [&str; 8] =
    ["source", "on-event", "contents", "key", "lease-script", "script", "rule", "config-string"];
const LIST_ITEMS_MAX: u32 = 512;
/// What stands in a payload for a value that shall not be met.
const NOT: &str = "not";
/// The field that says before which row a row stands.
pub(super) const PLACE: &str = "place-before";
/// Where a row has its id, and the name of that in payloads.
pub(super) const ID: &str = ".id";
pub(super) const ID_NAME: &str = "id";

/// One field of a row or of settings.
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct Field {
    /// Its name in payloads.
    pub(super) name: String,
    pub(super) binding: Value,
    pub(super) schema: Value,
    pub(super) is_required: bool,
    pub(super) is_unread: bool,
    pub(super) is_create_only: bool,
    /// It names its row, and nothing writes it.
    pub(super) is_shown: bool,
}

/// The name that payloads have for a field: a dot is a field within another there.
pub(super) fn payload_name(name: &str) -> String {
    if name == ID { ID_NAME.to_owned() } else { name.replace('.', "_") }
}

/// The fields of a menu, as the overlay judges them. `kind` is the kind of its rows.
pub(super) fn all(facts: &[FieldFacts], item: &Item, kind: &str) -> Vec<Field> {
    let extra = item.extra.iter().map(|name| FieldFacts {
        name: name.clone(),
        kind: "text".to_owned(),
        unset: true,
        ..FieldFacts::default()
    });
    let written: Vec<FieldFacts> =
        facts.iter().filter(|field| !item.omit.contains(&field.name)).cloned().chain(extra).collect();
    let is_written = |name: &String| written.iter().any(|field| field.name == *name);
    let shown = item.key.iter().filter(|name| !is_written(name));
    let shown: Vec<Field> = shown.map(|name| of_key(name)).collect();
    let typed = written.into_iter().map(|field| match field.name.as_str() {
        // It is the same switch in every menu, also where the facts have a text.
        "disabled" => FieldFacts { kind: "flag".to_owned(), ..field },
        _ => field,
    });
    typed.map(|field| one(&field, item, kind)).chain(shown).collect()
}

/// A field that only names its row.
fn of_key(name: &str) -> Field {
    let own = payload_name(name);
    let binding = if own == name { json!("text") } else { json!({ "at": name }) };
    Field {
        name: own,
        binding,
        schema: text(TEXT_CHARS_MAX),
        is_required: false,
        is_unread: false,
        is_create_only: false,
        is_shown: true,
    }
}

fn one(facts: &FieldFacts, item: &Item, kind: &str) -> Field {
    let has = |names: &[String]| names.contains(&facts.name);
    let name = payload_name(&facts.name);
    let is_secret = has(&item.secrets);
    let is_place = facts.name == PLACE;
    // Where a row stands is read from the list.
    let is_unread = (facts.write_only && !is_place) || has(&item.unread);
    let is_open = has(&item.open);
    let mut binding = json!({});
    if name != facts.name {
        binding["at"] = json!(facts.name);
    }
    let pair = |items: &str| json!({ "type": "list", "items": items, "separator": "/" });
    let of_type = match facts.kind.as_str() {
        _ if is_secret => json!({ "type": "secret" }),
        _ if has(&item.pairs) => pair("size"),
        _ if has(&item.spans) => pair("duration"),
        "flag" => json!({ "type": "bool" }),
        "number" => json!({ "type": "size" }),
        "duration" => json!({ "type": "duration" }),
        "mark" => json!({ "type": "mark", "default": false }),
        "mac" => json!({ "fold": true }),
        "list" => json!({ "type": "list" }),
        "set" => json!({ "type": "list", "choice": true, "open": true }),
        _ => json!({}),
    };
    for (word, value) in of_type.as_object().into_iter().flatten() {
        binding[word.as_str()] = value.clone();
    }
    if is_place {
        binding["of"] = json!([kind]);
    }
    say(&mut binding, "negated", facts.negated && !is_secret);
    say(&mut binding, "unread", is_unread);
    say(&mut binding, "create-only", facts.create_only);
    say(&mut binding, "rewritten", is_place || has(&item.rewritten));
    // What a row is known by is filled in by the router, where a create leaves it out.
    let is_known = facts.kind == "flag" || has(&item.key) && item.key.len() > 1;
    // Nothing is off by itself.
    let is_switch = facts.kind == "flag" && facts.name == "disabled";
    let default = item.defaults.get(&facts.name).or(facts.default.as_ref()).cloned();
    let default = default.or_else(|| is_switch.then_some(json!(false)));
    if is_known && let Some(default) = default {
        binding["default"] = default;
    }
    Field {
        name,
        binding: short(binding),
        schema: schema(facts, item, (is_secret, is_open)),
        is_required: (facts.required || has(&item.required)) && !has(&item.optional),
        is_unread,
        is_create_only: facts.create_only,
        is_shown: false,
    }
}

/// A binding that is a type alone is written as its name.
fn short(binding: Value) -> Value {
    match binding.as_object() {
        Some(all) if all.is_empty() => json!("text"),
        Some(all) if all.len() == 1 && all.contains_key("type") => binding["type"].clone(),
        _ => binding,
    }
}

fn schema(facts: &FieldFacts, item: &Item, (is_secret, is_open): (bool, bool)) -> Value {
    let has = |names: &[String]| names.contains(&facts.name);
    let longest = if LONG.contains(&facts.name.as_str()) { LONG_CHARS_MAX } else { TEXT_CHARS_MAX };
    let words = |schema: Value| {
        if facts.words.is_empty() {
            return schema;
        }
        json!({ "anyOf": [schema, { "type": "string", "enum": facts.words }] })
    };
    let item_text = || {
        if facts.options.is_empty() || is_open {
            text(TEXT_CHARS_MAX)
        } else {
            json!({ "type": "string", "enum": facts.options })
        }
    };
    let list = |items: Value| json!({ "type": "array", "maxItems": LIST_ITEMS_MAX, "items": items });
    let own = match facts.kind.as_str() {
        _ if is_secret => secret(longest),
        _ if has(&item.pairs) => list(json!({ "type": "integer", "minimum": 0 })),
        _ if has(&item.spans) => list(json!({ "type": "number", "minimum": 0 })),
        "flag" | "mark" => json!({ "type": "boolean" }),
        "number" => {
            words(bounded(json!({ "type": "integer" }), [("minimum", facts.min), ("maximum", facts.max)]))
        }
        "duration" => words(json!({ "type": "number" })),
        "list" | "set" => list(item_text()),
        _ if !facts.options.is_empty() && !is_open => json!({ "type": "string", "enum": facts.options }),
        _ => {
            let mut schema = text(longest);
            say(&mut schema, "pattern", item.patterns.get(&facts.name).cloned());
            schema
        }
    };
    let own = if facts.negated && !is_secret {
        let mut negation = json!({
            "type": "object", "additionalProperties": false, "required": [NOT], "properties": {},
        });
        negation["properties"][NOT] = own.clone();
        json!({ "anyOf": [own, negation] })
    } else {
        own
    };
    let is_flag = matches!(facts.kind.as_str(), "flag" | "mark");
    if facts.unset && !facts.required && !facts.create_only && !is_flag || facts.name == PLACE {
        return or_none(own);
    }
    own
}

/// The same schema, where `null` takes the value away.
fn or_none(mut schema: Value) -> Value {
    match schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(all) => all.push(json!({ "type": "null" })),
        None => return nullable(schema),
    }
    schema
}

/// Any text.
pub(super) fn plain_text() -> Value {
    text(TEXT_CHARS_MAX)
}

/// What a command takes, as the facts have it.
pub(super) fn of_command(facts: &FieldFacts, is_secret: bool) -> (Value, Value) {
    let item =
        Item { secrets: if is_secret { vec![facts.name.clone()] } else { Vec::new() }, ..Item::default() };
    let own = FieldFacts { unset: false, create_only: false, write_only: false, ..facts.clone() };
    let field = one(&own, &item, "");
    (field.binding, field.schema)
}
