//! What an adapter manages, as data: areas, kinds of object, features with their payload schemas, and the kinds of the
//! model that it fills.
//!
//! It is a file of the package of its own ([`DESCRIPTION`](crate::DESCRIPTION)), so that it is signed, shown and
//! compared without running the component. Keys are kebab-case; unknown keys are refused.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::PackageError;
use crate::json::{self, StrictError};
use crate::model::{self, ModelKind};
use crate::release::{self, Span, Tested};

/// Areas, kinds and features together.
const ENTRIES_MAX: usize = 8_192;
const TITLE_CHARS_MAX: usize = 120;
const FILE_NAME_CHARS_MAX: usize = 100;
const CONTENT_TYPE_CHARS_MAX: usize = 100;
const DEPTH_MAX: usize = 64;
/// Largest binding of a kind or feature, in bytes of JSON.
pub const BINDING_BYTES_MAX: usize = 16 << 10;

/// The content of `description.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Description {
    pub areas: Vec<Area>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<Feature>,
    /// Kinds of the model that are read from this vendor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<Filled>,
    /// The releases that all of this was made from and tested with. Without an entry nothing is said of any release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<Tested>,
}

/// A kind of the model (`wit/model`) that the adapter fills.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Filled {
    /// Such as `vlan`; one entry for each kind.
    pub kind: String,
    /// The fields that can be known of an object, as the kind's schema names them.
    pub fields: Vec<String>,
    #[serde(default, skip_serializing_if = "Per::is_site")]
    pub per: Per,
    /// What people can ask of its objects, in the words of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Written>,
    /// The releases that have it; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases: Option<Span>,
    /// What the package says of it to its own component; opaque to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Box<RawValue>>,
}

/// A verb of a kind of the model that the adapter can express in its own features.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Written {
    /// Such as `create` or `poe-cycle`, as the `x-writes` of the kind's schema has it; one entry for each.
    pub verb: String,
    /// Those of the fields of the verb that the vendor has something for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Operations of features of this package that it may become. The danger of the verb is that of the worst of them.
    pub uses: Vec<Used>,
}

/// An operation of a feature of the package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Used {
    pub feature: String,
    pub operation: Operation,
}

/// What objects are of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// A site of the vendor; the controller where the vendor has no sites.
    #[default]
    Site,
    /// The controller, whatever sites it has.
    Controller,
}

impl Per {
    /// Whether each site has objects of its own.
    pub fn is_site(&self) -> bool {
        *self == Self::Site
    }
}

/// A part of the API surface: `firewall` of the adapter `acme` is mounted as `/gateway-acme-firewall/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Area {
    pub id: String,
    pub title: String,
}

/// A kind of object that can be read live, below its area.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Kind {
    pub id: String,
    pub area: String,
    pub title: String,
    /// A site's when absent. A kind that is a file says it in any case: the file of a controller has what all sites have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<Per>,
    /// The device answers it as a file, which the host keeps for a person; it has no objects, and nothing writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<KindFile>,
    /// The releases that have it; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases: Option<Span>,
    /// What the package says of the kind to its own component; opaque to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Box<RawValue>>,
}

/// A kind that the device answers as a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KindFile {
    /// What it is called where neither the device nor a person says a name: a plain file name such as `config.xml`.
    pub name: String,
    /// Its media type, where it is always the same. Of a file of JSON it must be there: the answers of others that are JSON
    /// say why there is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// Something that can be staged: `acme.firewall.rule`. An ordering is a feature of its own, whose payload names
/// natural keys in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Feature {
    pub id: String,
    pub area: String,
    pub title: String,
    /// The kind of object that it writes, when there is one to read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Per::is_site")]
    pub per: Per,
    /// Payload fields that make the natural key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub natural_key: Vec<String>,
    pub operations: Vec<FeatureOperation>,
    /// The releases that have it; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases: Option<Span>,
    /// What the package says of the feature to its own component; opaque to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FeatureOperation {
    pub operation: Operation,
    /// The least danger; a plan may raise it for its arguments.
    pub danger: Danger,
    /// JSON Schema 2020-12 of the payload. A field that holds a secret says `"writeOnly": true`; the component only
    /// ever sees a reference to it.
    pub payload_schema: Box<RawValue>,
    /// Wall time that the host grants to a write; the usual limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u32>,
    /// Whether a plan of this operation normally has an inverse.
    pub invertible: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    Create,
    Update,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Danger {
    Normal,
    Destructive,
    Catastrophic,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        })
    }
}

/// Parses a description of untrusted origin and refuses one whose parts do not fit together. Its schemas are judged
/// by [`judge_schemas`](crate::judge_schemas).
pub(crate) fn parse(text: &[u8], id: &str) -> Result<Description, PackageError> {
    json::check_strict(text, DEPTH_MAX).map_err(|error| {
        PackageError::Description(match error {
            StrictError::Duplicate(key) => format!("key '{key}' occurs twice in one object"),
            StrictError::TooDeep => format!("it is nested deeper than {DEPTH_MAX} levels"),
            StrictError::Syntax(problem) => problem,
        })
    })?;
    let mut description: Description =
        serde_json::from_slice(text).map_err(|error| PackageError::Description(error.to_string()))?;
    description.compact();
    match problem(&description, id) {
        Some(problem) => Err(PackageError::Description(problem)),
        None => Ok(description),
    }
}

impl Description {
    /// Takes the space out of what is kept as text.
    fn compact(&mut self) {
        let operations = self.features.iter_mut().flat_map(|feature| &mut feature.operations);
        operations.for_each(|one| one.payload_schema = json::compact(&one.payload_schema));
        let of_features = self.features.iter_mut().filter_map(|feature| feature.binding.as_mut());
        let of_kinds = self.kinds.iter_mut().filter_map(|kind| kind.binding.as_mut());
        let of_model = self.model.iter_mut().filter_map(|filled| filled.binding.as_mut());
        of_kinds.chain(of_features).chain(of_model).for_each(|binding| *binding = json::compact(binding));
    }
}

/// The first thing that is wrong with a description, if anything is.
fn problem(description: &Description, id: &str) -> Option<String> {
    if description.areas.len() + description.kinds.len() + description.features.len() > ENTRIES_MAX {
        return Some(format!("it has more than {ENTRIES_MAX} areas, kinds and features"));
    }
    let areas = ids("area", description.areas.iter().map(|area| area.id.as_str()));
    let kinds = ids("kind", description.kinds.iter().map(|kind| kind.id.as_str()));
    let features = ids("feature", description.features.iter().map(|feature| feature.id.as_str()));
    let (areas, kinds) = match (areas, kinds, features) {
        (Ok(areas), Ok(kinds), Ok(_)) => (areas, kinds),
        (Err(problem), ..) | (_, Err(problem), _) | (.., Err(problem)) => return Some(problem),
    };
    let in_area = |what: &str, id: &str, area: &str| {
        (!areas.contains(area))
            .then(|| format!("{what} '{id}' is in the area '{area}', which is not declared"))
    };
    let titles = description.areas.iter().find_map(|area| title("area", &area.id, &area.title));
    let of_kinds = || {
        description.kinds.iter().find_map(|kind| {
            title("kind", &kind.id, &kind.title)
                .or_else(|| in_area("kind", &kind.id, &kind.area))
                .or_else(|| file(kind))
                .or_else(|| span("kind", &kind.id, kind.releases.as_ref()))
                .or_else(|| binding("kind", &kind.id, kind.binding.as_deref()))
        })
    };
    let of_features = || {
        description.features.iter().find_map(|feature| {
            in_area("feature", &feature.id, &feature.area)
                .or_else(|| of_feature(feature, id, &kinds))
                .or_else(|| writes_file(feature, &description.kinds))
        })
    };
    titles
        .or_else(of_kinds)
        .or_else(of_features)
        .or_else(|| of_model(description))
        .or_else(|| release::problem(&description.releases))
}

fn of_model(description: &Description) -> Option<String> {
    let mut seen = HashSet::new();
    let operations: HashMap<(&str, Operation), Per> = description
        .features
        .iter()
        .flat_map(|feature| {
            feature.operations.iter().map(|one| ((feature.id.as_str(), one.operation), feature.per))
        })
        .collect();
    description.model.iter().find_map(|filled| {
        let kind = filled.kind.as_str();
        let Some(known) = model::find(kind) else {
            return Some(format!("the model has no kind '{}'", kind.chars().take(100).collect::<String>()));
        };
        if !seen.insert(kind) {
            return Some(format!("the kind '{kind}' of the model is filled twice"));
        }
        let strange = filled.fields.iter().find(|field| known.property(field).is_none());
        let secret = filled.fields.iter().find(|field| known.is_secret(field));
        let strange = strange.map(|field| format!("the kind '{kind}' of the model has no field '{field}'"));
        let secret = || {
            secret.map(|field| format!("the field '{field}' of '{kind}' is a secret, which is never read"))
        };
        strange
            .or_else(secret)
            .or_else(|| of_writes(known, filled, &operations))
            .or_else(|| span("model", kind, filled.releases.as_ref()))
            .or_else(|| binding("model", kind, filled.binding.as_deref()))
    })
}

fn of_writes(
    kind: &ModelKind,
    filled: &Filled,
    operations: &HashMap<(&str, Operation), Per>,
) -> Option<String> {
    let mut seen = HashSet::new();
    filled.writes.iter().find_map(|written| {
        let verb: String = written.verb.chars().take(100).collect();
        if !kind.verbs().any(|known| known == written.verb) {
            let known: Vec<&str> = kind.verbs().collect();
            let known = if known.is_empty() {
                "it is only read".to_owned()
            } else {
                format!("it has: {}", known.join(", "))
            };
            return Some(format!("the kind '{}' of the model has no verb '{verb}'; {known}", kind.id));
        }
        if !seen.insert(&written.verb) {
            return Some(format!("the verb '{verb}' of the kind '{}' is written twice", kind.id));
        }
        let strange =
            written.fields.iter().find(|field| !kind.written_fields(&verb).any(|one| one == *field));
        if let Some(field) = strange {
            return Some(format!("the verb '{verb}' of the kind '{}' takes no field '{field}'", kind.id));
        }
        if written.uses.is_empty() {
            return Some(format!("the verb '{verb}' of the kind '{}' uses no feature", kind.id));
        }
        written.uses.iter().find_map(|used| {
            let what = match operations.get(&(used.feature.as_str(), used.operation)) {
                None => "is not declared",
                // What is asked at a site is written there, and what is asked of the controller is written of the whole.
                Some(per) if *per != filled.per => "has another 'per' than the kind",
                Some(_) => return None,
            };
            Some(format!(
                "the verb '{verb}' of the kind '{}' uses the operation '{}' of '{}', which {what}",
                kind.id, used.operation, used.feature
            ))
        })
    })
}

fn of_feature(feature: &Feature, id: &str, kinds: &HashSet<&str>) -> Option<String> {
    if !feature.id.strip_prefix(id).is_some_and(|rest| rest.starts_with('.')) {
        return Some(format!("feature '{}' does not begin with '{id}.'", feature.id));
    }
    if let Some(kind) = feature.kind.as_deref().filter(|kind| !kinds.contains(kind)) {
        return Some(format!("feature '{}' writes the kind '{kind}', which is not declared", feature.id));
    }
    let mut seen = HashSet::new();
    for operation in &feature.operations {
        if !seen.insert(operation.operation) {
            return Some(format!(
                "feature '{}' has the operation '{}' twice",
                feature.id, operation.operation
            ));
        }
        if !operation.payload_schema.get().starts_with('{') {
            let verb = operation.operation;
            return Some(format!("the payload schema of '{}' ({verb}) is not a JSON object", feature.id));
        }
    }
    title("feature", &feature.id, &feature.title)
        .or_else(|| span("feature", &feature.id, feature.releases.as_ref()))
        .or_else(|| binding("feature", &feature.id, feature.binding.as_deref()))
}

/// What is only fetched as a file is not written.
fn writes_file(feature: &Feature, kinds: &[Kind]) -> Option<String> {
    let written = feature.kind.as_deref()?;
    let is_file = kinds.iter().any(|kind| kind.id == written && kind.file.is_some());
    is_file.then(|| format!("feature '{}' writes the kind '{written}', which is a file", feature.id))
}

/// Whether a text in lower case is a media type without parameters, of at most 100 characters.
#[must_use]
pub fn is_media_type(lower: &str) -> bool {
    let is_token = |part: &str| {
        let fits =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$&-^_.+".contains(&byte);
        !part.is_empty() && part.bytes().all(fits)
    };
    lower.len() <= CONTENT_TYPE_CHARS_MAX
        && lower.split_once('/').is_some_and(|(kind, name)| is_token(kind) && is_token(name))
}

fn file(Kind { id, per, file, .. }: &Kind) -> Option<String> {
    let file = file.as_ref()?;
    if per.is_none() {
        return Some(format!(
            "the file of kind '{id}' must say whose it is: 'per' is 'site' or 'controller', whose file has what all sites have"
        ));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let chars = file.name.chars().count();
    if !(1..=FILE_NAME_CHARS_MAX).contains(&chars)
        || !file.name.chars().all(is_plain)
        || file.name.starts_with('.')
    {
        return Some(format!(
            "the file of kind '{id}' needs a name of 1 to {FILE_NAME_CHARS_MAX} letters, digits, '.', '_' and '-', which \
             does not begin with '.'"
        ));
    }
    let content_type = file.content_type.as_deref()?;
    (!is_media_type(content_type)).then(|| {
        format!("the content type of the file of kind '{id}' must be a media type in lower case, such as 'text/csv'")
    })
}

fn title(what: &str, id: &str, title: &str) -> Option<String> {
    let chars = title.chars().count();
    let fits = (1..=TITLE_CHARS_MAX).contains(&chars) && !title.chars().any(char::is_control);
    (!fits).then(|| {
        format!("the title of {what} '{id}' needs 1 to {TITLE_CHARS_MAX} characters, none of them a control character")
    })
}

fn span(what: &str, id: &str, releases: Option<&Span>) -> Option<String> {
    let problem = releases?.problem()?;
    Some(format!("the releases of {what} '{id}': {problem}"))
}

fn binding(what: &str, id: &str, binding: Option<&RawValue>) -> Option<String> {
    let bytes = binding?.get().len();
    (bytes > BINDING_BYTES_MAX)
        .then(|| format!("the binding of {what} '{id}' has {bytes} bytes, {BINDING_BYTES_MAX} are accepted"))
}

fn ids<'a>(what: &str, all: impl Iterator<Item = &'a str>) -> Result<HashSet<&'a str>, String> {
    let mut seen = HashSet::new();
    for id in all {
        let fits = (1..=80).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
        if !fits {
            let shown: String = id.chars().take(100).collect();
            return Err(format!(
                "'{shown}' cannot name {what}s; use 1 to 80 characters of a-z, 0-9, '.', '_' and '-'"
            ));
        }
        if !seen.insert(id) {
            return Err(format!("{what} '{id}' is declared twice"));
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn good() -> Value {
        json!({
            "areas": [{ "id": "firewall", "title": "Firewall" }],
            "kinds": [{
                "id": "rule", "area": "firewall", "title": "Rule", "releases": { "from": "24.10" },
                "binding": { "list": "/rules" },
            }, {
                "id": "backup", "area": "firewall", "title": "Backup", "per": "controller",
                "file": { "name": "config.xml", "content-type": "application/xml" },
            }],
            "features": [{
                "id": "acme.firewall.rule", "area": "firewall", "title": "Rule", "kind": "rule",
                "natural-key": ["name"],
                "operations": [{
                    "operation": "create", "danger": "normal", "invertible": true,
                    "payload-schema": { "type": "object" },
                }],
                "releases": { "from": "24.10", "to": "25.2" },
            }],
            "releases": [{ "product": "Acme Edge", "tested": ["24.10", { "from": "25.1", "to": "25.2" }] }],
        })
    }

    fn parsed(description: &Value) -> Result<Description, String> {
        parse(description.to_string().as_bytes(), "acme").map_err(|error| error.to_string())
    }

    #[test]
    fn a_sound_description_passes_and_is_written_as_it_was_read() {
        assert_eq!(serde_json::to_value(parsed(&good()).unwrap()).unwrap(), good());
        assert!(parsed(&json!({ "areas": [] })).unwrap().areas.is_empty());
    }

    #[test]
    fn what_is_written_in_the_words_of_the_model_is_checked() {
        let with = |writes: Value| {
            let mut description = good();
            description["model"] = json!([{ "kind": "vlan", "fields": ["vlan_id"], "writes": writes }]);
            parsed(&description)
        };
        let uses = json!([{ "feature": "acme.firewall.rule", "operation": "create" }]);
        let create = json!({ "verb": "create", "fields": ["vlan_id"], "uses": uses });
        assert_eq!(with(json!([create])).unwrap().model[0].writes.len(), 1);
        let not_declared = json!([{ "feature": "acme.firewall.rule", "operation": "delete" }]);
        let mut elsewhere = good();
        elsewhere["features"][0]["per"] = json!("controller");
        elsewhere["model"] = json!([{ "kind": "vlan", "fields": ["vlan_id"], "writes": [create] }]);
        let refusal = parsed(&elsewhere).unwrap_err();
        assert!(refusal.contains("'create' of 'acme.firewall.rule', which has another 'per'"), "{refusal}");
        elsewhere["model"][0]["per"] = json!("controller");
        parsed(&elsewhere).unwrap();
        for (writes, said) in [
            (json!([create, create]), "is written twice"),
            (json!([{ "verb": "reboot", "uses": uses }]), "has no verb 'reboot'; it has: "),
            (json!([{ "verb": "delete", "fields": ["name"], "uses": uses }]), "takes no field 'name'"),
            (json!([{ "verb": "delete", "uses": [] }]), "uses no feature"),
            (
                json!([{ "verb": "delete", "uses": not_declared }]),
                "'delete' of 'acme.firewall.rule', which is not",
            ),
        ] {
            let refusal = with(writes).unwrap_err();
            assert!(refusal.contains(said), "{refusal}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_named() {
        let operation = good()["features"][0]["operations"][0].clone();
        let cases = [
            ("/areas/0/id", json!("Fire wall"), "'Fire wall' cannot name areas"),
            ("/areas/0/title", json!(""), "the title of area 'firewall'"),
            ("/areas/0/colour", json!("red"), "unknown field `colour`"),
            ("/kinds/0/area", json!("wifi"), "kind 'rule' is in the area 'wifi'"),
            ("/kinds/1", good()["kinds"][0].clone(), "kind 'rule' is declared twice"),
            (
                "/kinds/0/binding",
                json!("x".repeat(BINDING_BYTES_MAX)),
                "the binding of kind 'rule' has 16386 bytes",
            ),
            ("/kinds/0/releases", json!({}), "the releases of kind 'rule': a range of releases needs"),
            ("/features/0/releases/to", json!("24.9"), "the releases from '24.10' to '24.9' are none"),
            ("/releases/0/tested", json!([{ "from": "new" }]), "'new' is no bound of releases"),
            ("/releases/0/tested", json!([""]), "a release has 1 to 64 characters"),
            ("/features/0/binding", json!(vec![0; 10_000]), "the binding of feature 'acme.firewall.rule'"),
            ("/features/0/id", json!("firewall.rule"), "does not begin with 'acme.'"),
            ("/features/0/id", json!("acmefirewall.rule"), "does not begin with 'acme.'"),
            ("/features/0/area", json!("wifi"), "is in the area 'wifi'"),
            ("/features/0/kind", json!("zone"), "writes the kind 'zone'"),
            ("/features/0/kind", json!("backup"), "writes the kind 'backup', which is a file"),
            ("/kinds/1/file/name", json!("a/b"), "needs a name of 1 to 100 letters"),
            ("/kinds/1/file/name", json!(".htaccess"), "does not begin with '.'"),
            ("/kinds/1/file/content-type", json!("XML"), "must be a media type"),
            ("/features/0/operations/1", operation, "has the operation 'create' twice"),
            ("/features/0/operations/0/danger", json!("grave"), "unknown variant `grave`"),
            ("/features/0/operations/0/payload-schema", json!(true), "is not a JSON object"),
        ];
        for (pointer, value, wanted) in cases {
            let mut bad = good();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            match bad.pointer_mut(parent).unwrap() {
                Value::Array(items) if key == "1" => items.push(value),
                Value::Array(items) => items[0] = value,
                other => other[key] = value,
            }
            let refusal = parsed(&bad).unwrap_err();
            assert!(refusal.contains(wanted), "{pointer}: {refusal}");
        }
        let twice = parse(br#"{"areas": [], "areas": []}"#, "acme").unwrap_err().to_string();
        assert!(twice.contains("key 'areas' occurs twice"), "{twice}");
        let many: Vec<Value> =
            (0..=ENTRIES_MAX).map(|n| json!({ "id": n.to_string(), "title": "A" })).collect();
        assert!(parsed(&json!({ "areas": many })).unwrap_err().contains("more than 8192"));
    }
}
