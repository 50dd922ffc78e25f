//! From the facts of a field to its part of a binding and its part of a schema.

use std::collections::BTreeMap;

use heddle_adapter_kit::say;
use heddle_adapter_kit::schema::{bounded, nullable, secret};
use serde_json::{Map, Value, json};

use super::overlay::{FieldFacts, FieldJudgements};

pub(super) const TEXT_CHARS_MAX: u32 = 8192;
pub(super) const LIST_ITEMS_MAX: u32 = 1024;

/// What only rows show, in whatever form.
const SHOWN: &str = "shown";
/// Types that the firewall fills by itself, or whose content has routes of its own.
const NOT_WRITTEN: [&str; 4] = ["array-of-items", "generated-id", "legacy-link", "ApiKeyField"];
const NUMBERS: [&str; 8] = [
    "integer-string",
    "auto-number",
    "FilterSequenceField",
    "DNatSequenceField",
    "VPNIdField",
    "UidField",
    "GidField",
    "CharonLogLevelField",
];
/// Choices beside which other values are accepted.
const OPEN: [&str; 4] = ["network-or-alias", "NetworkMappedField", "AliasContentField", "PortMappedField"];
/// Fields of the vendor's own classes that are read as choices, which their facts do not say.
const CHOICES: [&str; 16] = [
    "AliasContentField",
    "BridgeMemberField",
    "CategoryField",
    "CheckipField",
    "DeviceField",
    "GatewayGroupItemField",
    "GroupMembershipField",
    "IPsecProposalField",
    "LaggInterfaceField",
    "MemberField",
    "OpenVPNServerField",
    "PrivField",
    "ServiceField",
    "UnboundInterfaceField",
    "VipInterfaceField",
    "VlanInterfaceField",
];
/// Texts with one value a line.
const LINES: [&str; 2] = ["AliasContentField", "KeaPoolsField"];

/// One field of an item.
#[expect(clippy::struct_excessive_bools, reason = "a record of independent facts")]
pub(super) struct Field {
    /// Its name in payloads.
    pub(super) name: String,
    pub(super) binding: Value,
    pub(super) schema: Value,
    /// It is written and never read.
    pub(super) is_unread: bool,
    /// A create needs it.
    pub(super) is_required: bool,
    /// It names its item only together with others, and may be empty.
    pub(super) is_optional_in_key: bool,
    /// Only a create takes it.
    pub(super) is_create_only: bool,
    /// It is shown, and nothing writes it.
    pub(super) is_shown: bool,
    /// The schema of a create that must name it.
    pub(super) new_is: Option<Value>,
}

/// The name that payloads have for a field: objects of the vendor are flat there.
pub(super) fn payload_name(name: &str) -> String {
    name.replace('.', "_")
}

/// The fields that payloads of an item with this key can have. `kinds` has the kinds by their lists, in lower case.
pub(super) fn all(
    facts: &[FieldFacts],
    judged: &FieldJudgements,
    key: &[String],
    kinds: &BTreeMap<String, (String, String)>,
) -> Vec<Field> {
    let is_written = |field: &&FieldFacts| {
        !NOT_WRITTEN.contains(&field.kind.as_str())
            && (!field.volatile || judged.inputs.contains(&field.name))
            && !judged.omit.contains(&field.name)
    };
    facts.iter().filter(is_written).chain(&judged.extra).map(|field| one(field, judged, key, kinds)).collect()
}

fn one(
    facts: &FieldFacts,
    judged: &FieldJudgements,
    key: &[String],
    kinds: &BTreeMap<String, (String, String)>,
) -> Field {
    let has = |names: &[String]| names.contains(&facts.name);
    let name = payload_name(&facts.name);
    let kind = kind_of(facts, has(&judged.secrets));
    let of: Vec<&(String, String)> =
        facts.refers.iter().filter_map(|list| kinds.get(&list.to_lowercase())).collect();
    let is_generated = has(&judged.generated) || facts.kind == "auto-number";
    let mut binding = Map::new();
    if name != facts.name {
        binding.insert("at".to_owned(), json!(facts.name));
    }
    binding.insert("type".to_owned(), json!(kind));
    let mut say = |word: &str, is_so: bool| {
        if is_so {
            binding.insert(word.to_owned(), json!(true));
        }
    };
    say("choice", facts.map || CHOICES.contains(&facts.kind.as_str()));
    say("open", OPEN.contains(&facts.kind.as_str()));
    say("generated", is_generated || kind == "json");
    // The firewall takes a name that is not posted for an empty one, and follows the change everywhere.
    say("always", has(&judged.always) || has(key));
    say("fold", has(&judged.fold));
    say("ordered", facts.sorted);
    let is_made = has(&judged.made);
    let is_unread = facts.kind == "secret-write-only" || is_made;
    say("unread", is_unread);
    say("create-only", is_made);
    if LINES.contains(&facts.kind.as_str()) {
        binding.insert("separator".to_owned(), json!("\n"));
    }
    if !of.is_empty() {
        binding.insert("of".to_owned(), json!(of.iter().map(|(kind, _)| kind).collect::<Vec<_>>()));
    }
    let binding = if binding.len() == 1 { json!(kind) } else { Value::Object(binding) };
    // One model has a default that is none of its choices.
    let is_default = |default: &String| facts.options.is_empty() || facts.options.contains(default);
    let has_default = facts.default.as_ref().is_some_and(is_default);
    let is_required = facts.required && !has_default && !is_generated && kind != "flag";
    let mut schema = schema(facts, kind, &of);
    if let Some(options) = judged.options.get(&facts.name) {
        schema = json!({ "type": "string", "enum": options });
    }
    if !facts.required && kind != "flag" {
        schema = nullable(schema);
    }
    let is_optional_in_key = !facts.required && facts.default.is_none();
    Field {
        name,
        binding,
        schema,
        is_unread,
        is_required,
        is_optional_in_key,
        is_create_only: is_made,
        is_shown: facts.kind == SHOWN,
        new_is: judged.new_is.get(&facts.name).cloned(),
    }
}

fn kind_of(facts: &FieldFacts, is_secret: bool) -> &'static str {
    match facts.kind.as_str() {
        _ if is_secret => "secret",
        SHOWN => "json",
        "secret-write-only" => "secret",
        "bool01" => "flag",
        number if NUMBERS.contains(&number) => "number",
        lines if LINES.contains(&lines) => "list",
        "csv" => "list",
        _ if facts.multiple => "list",
        _ => "text",
    }
}

fn schema(facts: &FieldFacts, kind: &str, of: &[&(String, String)]) -> Value {
    match kind {
        "flag" => json!({ "type": "boolean" }),
        "number" => {
            let number = |bound: &Option<String>| bound.as_ref().and_then(|bound| bound.parse::<i64>().ok());
            let bounds = [("minimum", number(&facts.min)), ("maximum", number(&facts.max))];
            bounded(json!({ "type": "integer" }), bounds)
        }
        "secret" => secret(TEXT_CHARS_MAX),
        "list" => {
            json!({ "type": "array", "maxItems": LIST_ITEMS_MAX, "items": text(facts, of, false) })
        }
        _ => text(facts, of, true),
    }
}

fn text(facts: &FieldFacts, of: &[&(String, String)], takes_pattern: bool) -> Value {
    if !facts.options.is_empty() {
        return json!({ "type": "string", "enum": facts.options });
    }
    let mut schema = plain_text();
    say(&mut schema, "pattern", facts.pattern.clone().filter(|_| takes_pattern));
    if !of.is_empty() {
        let nouns: Vec<&str> = of.iter().map(|(_, noun)| noun.as_str()).collect();
        schema["description"] = json!(format!("name or id: {}", nouns.join(", ")));
    }
    schema
}

/// Any text.
pub(super) fn plain_text() -> Value {
    heddle_adapter_kit::schema::text(TEXT_CHARS_MAX)
}
