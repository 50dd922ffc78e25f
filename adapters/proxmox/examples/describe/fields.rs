//! From the facts of a field to its part of a binding and its part of a schema.

use std::collections::BTreeMap;

use heddle_adapter_kit::say;
use heddle_adapter_kit::schema::{self, nullable, object};
use serde_json::{Map, Number, Value, json};

use super::overlay::{FieldFacts, FieldJudgements, FileFacts};

const TEXT_CHARS_MAX: u32 = 32_768;
const LIST_ITEMS_MAX: u32 = 1024;
/// Characters of the id of an uploaded file.
const ID_CHARS: u32 = 36;
/// Parameters that steer a write and are no fields.
pub(super) const STEERING: [&str; 6] =
    ["digest", "delete", "background_delay", "skiplock", "revert", "lock-token"];

/// How many numbers each name takes.
fn count(name: &str) -> u32 {
    match name {
        "net" | "ipconfig" | "unused" => 32,
        "scsi" => 31,
        "virtio" | "hostpci" | "dev" => 16,
        "usb" => 14,
        "sata" => 6,
        "ide" | "serial" => 4,
        "parallel" => 3,
        "virtiofs" => 10,
        "mp" => 48,
        "link" | "numa" => 8,
        _ => 4,
    }
}

/// One field of an object.
pub(super) struct Field {
    /// Its name in payloads.
    pub(super) name: String,
    pub(super) binding: Value,
    pub(super) schema: Value,
    /// Definition that the schema refers to, with its name.
    pub(super) definition: Option<(String, Value)>,
    pub(super) is_required: bool,
    pub(super) in_create: bool,
    pub(super) in_update: bool,
}

/// Where a field is written.
#[derive(Clone, Copy)]
pub(super) struct Uses<'f> {
    pub(super) create: Option<&'f FieldFacts>,
    pub(super) update: Option<&'f FieldFacts>,
    /// The object is changed by some route at all.
    pub(super) has_update: bool,
}

/// The fields of a parameter: one, or one for each of its numbers.
pub(super) fn all(uses: Uses<'_>, judged: &FieldJudgements, key: &[String]) -> Vec<Field> {
    let Some(facts) = uses.create.or(uses.update) else { return Vec::new() };
    let (binding, mut schema, definition) = described(facts, judged);
    if let Some(text) = judged.describe.get(&facts.name) {
        schema["description"] = json!(text);
    }
    let judged_binding = with_judgements(binding, facts, uses, judged, key);
    let is_required = uses.create.is_some_and(|facts| facts.required) || judged.require.contains(&facts.name);
    let one = |name: String| Field {
        name,
        binding: judged_binding.clone(),
        schema: schema.clone(),
        definition: definition.clone(),
        is_required,
        in_create: uses.create.is_some(),
        in_update: uses.update.is_some() && !judged.create_only.contains(&facts.name),
    };
    if facts.indexed {
        (0..count(&facts.name)).map(|number| one(format!("{}{number}", facts.name))).collect()
    } else {
        vec![one(facts.name.clone())]
    }
}

/// The field of an uploaded file.
pub(super) fn file(facts: &FileFacts) -> Field {
    Field {
        name: "file".to_owned(),
        binding: json!({ "type": "file", "at": facts.param, "checksum": facts.checksum, "plain-name": true }),
        schema: json!({ "type": "string", "x-file": true, "maxLength": ID_CHARS, "description": facts.describe }),
        definition: None,
        is_required: true,
        in_create: true,
        in_update: false,
    }
}

fn with_judgements(
    binding: Map<String, Value>,
    facts: &FieldFacts,
    uses: Uses<'_>,
    judged: &FieldJudgements,
    key: &[String],
) -> Value {
    let has = |names: &[String]| names.contains(&facts.name);
    let mut binding = binding;
    let mut say = |word: &str, is_so: bool| {
        if is_so {
            binding.insert(word.to_owned(), json!(true));
        }
    };
    let is_needed = uses.update.is_some_and(|facts| facts.required);
    let is_fixed = uses.has_update && uses.update.is_none() && !has(key);
    say("always", has(&judged.always) || (is_needed && !has(key)));
    say("unread", has(&judged.unread));
    say("create-only", has(&judged.create_only) || is_fixed);
    // A number with a fraction has several spellings.
    say("rewritten", has(&judged.rewritten) || facts.kind == "number");
    say("fold", has(&judged.fold));
    if let Some(default) = judged.default.get(&facts.name) {
        binding.insert("default".to_owned(), default.clone());
    }
    if binding.len() == 1 { binding["type"].clone() } else { Value::Object(binding) }
}

/// Binding, schema, and definition of a parameter.
pub(super) fn described(
    facts: &FieldFacts,
    judged: &FieldJudgements,
) -> (Map<String, Value>, Value, Option<(String, Value)>) {
    let mut binding = Map::new();
    let mut kind = |word: &str| binding.insert("type".to_owned(), json!(word));
    if judged.secret.contains(&facts.name) {
        kind("secret");
        return (binding, schema::secret(TEXT_CHARS_MAX), None);
    }
    if let Some(parts) = judged.properties.get(&facts.name) {
        kind("properties");
        let named: Map<String, Value> = parts.iter().map(|part| (part.clone(), text_part())).collect();
        return (binding, object_of(named), None);
    }
    if let Some(part) = only_part(facts) {
        return described(part, judged);
    }
    if !facts.parts.is_empty() {
        kind("properties");
        if let Some(first) = facts.parts.iter().find(|part| part.first) {
            // A model stands before the address of a card; the part that needs no name is known by its name there.
            binding.insert("first".to_owned(), json!(first.name));
        }
        let name = format!("p-{}", facts.name);
        let schema = json!({ "$ref": format!("#/$defs/{name}") });
        return (binding, schema, Some((name, object_of(parts(facts)))));
    }
    let schema = match facts.kind.as_str() {
        _ if judged.flag.contains(&facts.name) => {
            kind("flag");
            json!({ "type": "boolean" })
        }
        "boolean" => {
            kind("flag");
            json!({ "type": "boolean" })
        }
        "integer" => {
            kind("number");
            bounded(json!({ "type": "integer" }), facts)
        }
        "number" => {
            kind("text");
            json!({ "type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?$" })
        }
        "array" => {
            kind("json");
            json!({ "type": "array", "minItems": 1, "maxItems": LIST_ITEMS_MAX, "items": { "type": "string", "maxLength": TEXT_CHARS_MAX } })
        }
        _ if facts.set || facts.tags => {
            binding.insert("type".to_owned(), json!("list"));
            binding.insert("choice".to_owned(), json!(true));
            if facts.tags {
                binding.insert("separator".to_owned(), json!(";"));
            }
            json!({ "type": "array", "maxItems": LIST_ITEMS_MAX, "items": { "type": "string", "minLength": 1, "maxLength": 256 } })
        }
        _ => {
            kind("text");
            text(facts)
        }
    };
    (binding, schema, None)
}

/// The only part of a property string that has no more.
fn only_part(facts: &FieldFacts) -> Option<&FieldFacts> {
    let own: Vec<&FieldFacts> = facts.parts.iter().filter(|part| part.alias.is_none()).collect();
    match own[..] {
        [one] if one.first => Some(one),
        _ => None,
    }
}

fn bounded(schema: Value, facts: &FieldFacts) -> Value {
    let number = |bound: &Option<Number>| bound.clone().map(Value::Number);
    schema::bounded(schema, [("minimum", number(&facts.min)), ("maximum", number(&facts.max))])
}

fn text(facts: &FieldFacts) -> Value {
    if !facts.options.is_empty() {
        return json!({ "type": "string", "enum": facts.options });
    }
    let most = facts.most.unwrap_or(TEXT_CHARS_MAX).min(TEXT_CHARS_MAX);
    let mut schema = schema::text(most);
    schema["minLength"] = json!(facts.least.unwrap_or(1).max(1));
    say(&mut schema, "pattern", facts.pattern.clone());
    schema
}

/// A part of a property string that is read as text, whatever was written.
fn text_part() -> Value {
    json!({ "type": ["string", "integer", "boolean", "null"] })
}

fn parts(facts: &FieldFacts) -> Map<String, Value> {
    let one = |part: &FieldFacts| {
        let target = part.alias.as_ref().and_then(|name| facts.parts.iter().find(|part| part.name == *name));
        let schema = match target.unwrap_or(part) {
            // A card's model stands before its address, which may be left out.
            known if part.alias.is_some() => bounded(text_part(), known),
            known if known.kind == "boolean" => json!({ "enum": [true, false, "0", "1", null] }),
            known if !known.options.is_empty() => {
                let mut options: Vec<Value> = known.options.iter().map(|option| json!(option)).collect();
                options.push(Value::Null);
                json!({ "enum": options })
            }
            known => bounded(text_part(), known),
        };
        (part.name.clone(), schema)
    };
    facts.parts.iter().map(one).collect()
}

fn object_of(properties: Map<String, Value>) -> Value {
    json!({ "type": ["object", "null"], "additionalProperties": false, "properties": properties })
}

/// The same schema, where `null` empties the field.
pub(super) fn emptied(field: &Field) -> Value {
    if field.definition.is_some() || field.schema["type"].is_array() {
        return field.schema.clone();
    }
    nullable(field.schema.clone())
}

/// An object schema with what its fields define.
pub(super) fn schema_of(
    properties: Map<String, Value>,
    required: &[String],
    definitions: BTreeMap<String, Value>,
) -> Value {
    let mut schema = object(properties, required);
    if !definitions.is_empty() {
        schema["$defs"] = json!(definitions);
    }
    schema
}
