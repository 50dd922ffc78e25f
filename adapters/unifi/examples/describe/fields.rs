//! From the facts of a field to its part of a binding and its part of a schema.

use heddle_adapter_kit::say;
use heddle_adapter_kit::schema::nullable;
use serde_json::{Map, Value, json};

use super::facts::{Api, Body};
use super::overlay::{Absent, Item};

/// The controller's names of secrets begin so.
const SECRET: &str = "x_";
/// Certificates and names, which people may see, begin so, too.
const PUBLIC: [&str; 9] = [
    "x_ca_crt",
    "x_certificate_arn",
    "x_client_crt",
    "x_client_private_key_filename",
    "x_element_essid",
    "x_mesh_essid",
    "x_server_crt",
    "x_shared_client_crt",
    "x_ssh_username",
];

/// One field of an item.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) schema: Value,
    pub(super) binding: Value,
    pub(super) is_secret: bool,
    pub(super) is_required: bool,
    pub(super) written: Written,
}

/// When a field is written.
#[derive(PartialEq, Eq)]
pub(super) enum Written {
    Always,
    AtCreation,
    Never,
}

/// Names of secrets.
pub(super) struct Secrets<'o> {
    pub(super) names: &'o [String],
}

impl Secrets<'_> {
    /// Whether a field is a secret: any that the overlay names, or a text with a name of secrets.
    pub(super) fn has(&self, name: &str, schema: &Value, own: &[String]) -> bool {
        let is_public = PUBLIC.iter().any(|public| name.starts_with(public));
        let is_text = schema["type"] == "string";
        self.is_named(name, own) || name.starts_with(SECRET) && !is_public && is_text
    }

    fn is_named(&self, name: &str, own: &[String]) -> bool {
        self.names.iter().chain(own).any(|secret| secret == name)
    }

    /// The schema with its secrets marked. The reference that stands for one is a text, also for a number.
    pub(super) fn marked(&self, name: &str, schema: &Value, own: &[String]) -> Value {
        let mut schema = schema.clone();
        if self.has(name, &schema, own) {
            if schema["type"] != "string" {
                schema = json!({ "type": "string" });
            }
            schema["writeOnly"] = json!(true);
        }
        self.inside(&mut schema);
        schema
    }

    fn inside(&self, schema: &mut Value) {
        if let Some(items) = schema.get_mut("items") {
            self.inside(items);
        }
        for (name, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
        {
            *field = self.marked(name, field, &[]);
        }
    }
}

/// Whether a name fits one of these, of which some end with `*`.
pub(super) fn fits(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    })
}

/// What is known of fields by their names.
#[derive(Clone, Copy)]
pub(super) struct Known<'o> {
    pub(super) secrets: &'o Secrets<'o>,
    pub(super) absent: &'o Absent,
}

/// The fields of an item.
pub(super) fn all(item: &Item, body: &Body, known: Known<'_>, keeps: bool) -> Vec<Field> {
    let is_meant = |name: &&String| {
        let is_key = item.key.contains(name);
        (item.only.is_empty() || fits(&item.only, name) || is_key) && !fits(&item.omit, name)
    };
    let names = body.properties.keys().filter(is_meant);
    let mut out: Vec<Field> =
        names.map(|name| one(item, (name, &body.properties[name]), body, known, keeps)).collect();
    let shown = item.key.iter().chain(&item.lay);
    for name in shown.filter(|name| !body.properties.contains_key(*name)) {
        if out.iter().all(|field| field.name != *name) {
            let schema = json!({ "type": ["string", "integer", "boolean"] });
            let binding = binding(item, name, &json!({}), false, None);
            out.push(Field {
                name: name.clone(),
                schema,
                binding,
                is_secret: false,
                is_required: false,
                written: Written::Never,
            });
        }
    }
    out
}

fn one(
    item: &Item,
    (name, told): (&String, &Value),
    body: &Body,
    Known { secrets, absent }: Known<'_>,
    keeps: bool,
) -> Field {
    let told = if item.flags.contains(name) { &json!({ "type": "boolean" }) } else { told };
    let is_secret = secrets.has(name, told, &item.secrets);
    let is_required = body.required.contains(name);
    let mut schema = secrets.marked(name, told, &item.secrets);
    // What is left out of a whole object is emptied.
    let is_emptied = !keeps && !is_required && !item.key.contains(name);
    if is_emptied && schema["type"].is_string() {
        schema = nullable(schema);
    }
    Field {
        name: name.clone(),
        binding: binding(item, name, told, is_secret, keeps.then_some(absent)),
        schema,
        is_secret,
        is_required,
        written: if item.create_only.contains(name) { Written::AtCreation } else { Written::Always },
    }
}

fn binding(item: &Item, name: &String, told: &Value, is_secret: bool, absent: Option<&Absent>) -> Value {
    if is_secret {
        return json!("secret");
    }
    let mut binding = json!({ "type": "json" });
    let kind = told["type"].as_str().unwrap_or_default();
    say(&mut binding, "merge", matches!(kind, "object" | "array") && !item.exact.contains(name));
    say(&mut binding, "fold", item.fold.contains(name));
    say(&mut binding, "rewritten", fits(&item.rewritten, name));
    say(&mut binding, "rewritten", item.rewritten_elements.get(name).map(String::as_str));
    say(&mut binding, "create-only", item.create_only.contains(name));
    if let Some(kinds) = item.of.get(name) {
        binding["of"] = json!(kinds);
    }
    // Where an update keeps what it leaves out, what was never set is taken back by what it means.
    let absent = absent.filter(|_| !item.key.contains(name));
    if let Some(value) = absent.and_then(|absent| meant(item, name, told, absent)) {
        binding["default"] = value;
    }
    if binding.as_object().is_some_and(|words| words.len() == 1) { json!("json") } else { binding }
}

/// What it means that an object does not have a field, where that is known.
fn meant(item: &Item, name: &str, told: &Value, absent: &Absent) -> Option<Value> {
    let may_be_empty = || {
        let is_listed = told["enum"].as_array().is_none_or(|values| values.iter().any(|value| value == ""));
        let is_long = told["minLength"].as_u64().is_some_and(|least| least > 0);
        is_listed && !is_long && told.get("pattern").is_none() && !fits(&absent.filled, name)
    };
    let is_of_list = item.list.is_some();
    match told["type"].as_str()? {
        "boolean" if is_of_list && fits(&absent.on, name) => Some(json!(true)),
        "boolean" if is_of_list && fits(&absent.off, name) => Some(json!(false)),
        "string" if may_be_empty() => Some(json!("")),
        "array" => Some(json!([])),
        _ => None,
    }
}

/// Whether an update of an interface keeps what it leaves out.
pub(super) fn keeps(api: Api) -> bool {
    api == Api::First
}

/// Fields by name, as schemas have them.
pub(super) fn properties<'f>(fields: impl Iterator<Item = &'f Field>) -> Map<String, Value> {
    fields.map(|field| (field.name.clone(), field.schema.clone())).collect()
}
