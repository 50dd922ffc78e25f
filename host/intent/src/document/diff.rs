//! How a document differs from what readings found, and which verbs bring it about. Pure.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::adapter::Description;
use heddle_core::words;
use heddle_marketplace::model::ModelKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::bounds::{Problem, below};
use super::model::{Objects, Wanted};
use crate::settable::{self, Content, has, is_as_asked};

/// Most pairs of objects that are compared to find those that are alike.
const PAIRS_MAX: usize = 2_000_000;

words! {
    /// What is done with an object.
    pub enum ObjectAction {
        Create = "create",
        Update = "update",
        Delete = "delete",
    }
}

/// A field that a document wants to be another one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "IntentFieldChange")]
pub(crate) struct FieldChange {
    /// Name of the field; a field of a field is dotted, as in `poe.enabled`.
    field: String,
    /// Value that was read; null where there is none.
    from: Option<Value>,
    /// Value of the document; null where it empties the field.
    to: Option<Value>,
}

/// One difference, with the change that brings it about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) action: ObjectAction,
    /// Key of the object; of one that is created, as the document calls it.
    pub(crate) key: String,
    pub(crate) label: String,
    pub(crate) fields: Vec<FieldChange>,
    /// Secrets are never read, so a new one always differs.
    pub(crate) sets_secret: bool,
    /// Of the verb that is staged.
    pub(crate) payload: Value,
}

/// An object as it was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LiveObject {
    pub(crate) key: String,
    pub(crate) label: String,
    /// The fields that people can set and the vendor says.
    pub(crate) content: Content,
}

/// What a vendor can be asked about the objects of a kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Can {
    create: Option<BTreeSet<String>>,
    update: Option<BTreeSet<String>>,
    /// Fields that readings say.
    read: BTreeSet<String>,
    delete: bool,
    /// Whether the kind itself can be deleted, at some vendor.
    is_deleted: bool,
}

impl Can {
    pub(crate) fn of(description: &Description, kind: &'static ModelKind) -> Self {
        let fields = |verb: &str| {
            let written = description.written(kind.id, verb)?;
            Some(written.fields.iter().cloned().collect())
        };
        Self {
            create: fields("create"),
            update: fields("update"),
            read: settable::filled(description, kind.id)
                .map(|filled| filled.fields.iter().cloned().collect())
                .unwrap_or_default(),
            delete: description.written(kind.id, "delete").is_some(),
            is_deleted: kind.verbs().any(|verb| verb == "delete"),
        }
    }

    /// Whether documents have the kind: something of it can be set.
    pub(crate) fn is_any(&self) -> bool {
        self.create.is_some() || self.update.is_some()
    }

    /// Fields that the vendor can write in some way.
    pub(crate) fn has(&self, field: &str) -> bool {
        [&self.create, &self.update].into_iter().flatten().any(|fields| has(fields, field))
    }
}

/// Whether a live object has a field as it is wanted. What readings do not say is taken for what was set.
fn is_met(can: &Can, field: &str, wanted: &Value, live: &LiveObject) -> bool {
    !has(&can.read, field) || is_as_asked(field, wanted, live.content.get(field))
}

/// Objects of one kind at one place.
#[derive(Debug)]
pub(crate) struct Compared<'a> {
    pub(crate) kind: &'static ModelKind,
    pub(crate) can: &'a Can,
    /// The place in the document.
    pub(crate) path: &'a str,
    pub(crate) wanted: &'a Objects,
    pub(crate) live: &'a [LiveObject],
    /// Objects that the document does not have are to go: the list is whole, and the caller did not ask to keep them.
    pub(crate) removes: bool,
}

/// The differences, those that create and change before those that delete.
pub(crate) fn diff(of: &Compared<'_>) -> Result<Vec<Difference>, Vec<Problem>> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let matched = matched(of, &mut problems);
    for (key, wanted) in of.wanted {
        let path = below(of.path, key);
        let difference = match matched.get(key.as_str()) {
            Some(live) => update(of, &path, wanted, live, &mut problems),
            None => create(of, &path, (key.as_str(), wanted), &mut problems),
        };
        found.extend(difference);
    }
    if of.removes && of.can.is_deleted {
        let kept: BTreeSet<&str> = matched.values().map(|live| live.key.as_str()).collect();
        for gone in of.live.iter().filter(|live| !kept.contains(live.key.as_str())) {
            if of.can.delete {
                found.push(delete(gone));
            } else {
                let message = format!(
                    "'{}' is not in the document, and the vendor has nothing that deletes a {}: list it, or plan with \
                     keep_unlisted=true",
                    gone.key, of.kind.id
                );
                problems.push(Problem::at(of.path, message, "not_writable"));
            }
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// The live object of each wanted one: by its key, else by all of its fields, else by what tells objects of its kind apart.
///
/// The vendor chooses the keys of new objects, so that a document is also found again under the name that people gave.
fn matched<'a>(of: &Compared<'a>, problems: &mut Vec<Problem>) -> BTreeMap<&'a str, &'a LiveObject> {
    let by_key: BTreeMap<&str, &LiveObject> = of.live.iter().map(|live| (live.key.as_str(), live)).collect();
    let mut matched: BTreeMap<&str, &LiveObject> =
        of.wanted.keys().filter_map(|key| Some((key.as_str(), *by_key.get(key.as_str())?))).collect();
    let mut free: Vec<&LiveObject> =
        of.live.iter().filter(|live| !of.wanted.contains_key(&live.key)).collect();
    let unknown = of.wanted.keys().filter(|key| !matched.contains_key(key.as_str())).count();
    if unknown.saturating_mul(free.len()) > PAIRS_MAX {
        let message = format!(
            "{unknown} objects have keys that the controller does not, and {} of its objects may be meant: write the keys that \
             an export shows, or plan a part",
            free.len()
        );
        problems.push(Problem::at(of.path, message, "too_large"));
        return matched;
    }
    for is_alike in [is_whole as fn(&Compared<'_>, &Wanted, &LiveObject) -> bool, is_same_by_name] {
        for (key, wanted) in of.wanted {
            if matched.contains_key(key.as_str()) {
                continue;
            }
            let alike: Vec<usize> = (0..free.len()).filter(|at| is_alike(of, wanted, free[*at])).collect();
            match alike.as_slice() {
                [at] => {
                    matched.insert(key, free.remove(*at));
                }
                [] => {}
                several => {
                    let keys: Vec<&str> = several.iter().take(5).map(|at| free[*at].key.as_str()).collect();
                    let message = format!(
                        "several objects are like this one: write the key of one: {}",
                        keys.join(", ")
                    );
                    problems.push(Problem::at(below(of.path, key), message, "ambiguous"));
                    matched.insert(key, free[several[0]]);
                }
            }
        }
    }
    matched
}

/// Whether a live object is all that is wanted.
fn is_whole(of: &Compared<'_>, wanted: &Wanted, live: &LiveObject) -> bool {
    let mut read = wanted.fields.iter().filter(|(field, _)| has(&of.can.read, field)).peekable();
    read.peek().is_some() && read.all(|(field, value)| is_met(of.can, field, value, live))
}

/// Fields that tell objects of a kind apart.
fn telling(kind: &str) -> &'static [&'static str] {
    match kind {
        "vlan" => &["vlan_id"],
        "dhcp-pool" => &["interface"],
        "dhcp-reservation" => &["mac", "scope"],
        "dns-record" => &["name", "type", "value"],
        "route" => &["destination", "next_hop"],
        "vpn-peer" => &["public_key"],
        _ => &["name"],
    }
}

fn is_same_by_name(of: &Compared<'_>, wanted: &Wanted, live: &LiveObject) -> bool {
    let fields = telling(of.kind.id);
    let said: Vec<&&str> = fields.iter().filter(|field| wanted.fields.contains_key(**field)).collect();
    // What tells them apart must be there, except what the vendor does not say.
    wanted.fields.contains_key(fields[0])
        && has(&of.can.read, fields[0])
        && said.iter().all(|field| is_met(of.can, field, &wanted.fields[**field], live))
}

fn update(
    of: &Compared<'_>,
    path: &str,
    wanted: &Wanted,
    live: &LiveObject,
    problems: &mut Vec<Problem>,
) -> Option<Difference> {
    let mut fields = Vec::new();
    let mut payload = Map::new();
    payload.insert("key".to_owned(), json!(live.key));
    for (field, value) in &wanted.fields {
        let from = live.content.get(field);
        if is_met(of.can, field, value, live) {
            continue;
        }
        if !may_write(of, path, field, of.can.update.as_ref(), "change", problems) {
            continue;
        }
        settable::put(&mut payload, field, value.clone());
        let to = Some(value.clone()).filter(|value| !value.is_null());
        fields.push(FieldChange { field: field.clone(), from: from.cloned(), to });
    }
    let secrets = new_secrets(wanted);
    for (secret, value) in &secrets {
        if may_write(of, path, secret, of.can.update.as_ref(), "change", problems) {
            payload.insert((*secret).to_owned(), (*value).clone());
        }
    }
    let sets_secret = !secrets.is_empty();
    let (key, label) = (live.key.clone(), live.label.clone());
    let is_any = !fields.is_empty() || sets_secret;
    let payload = Value::Object(payload);
    is_any.then_some(Difference { action: ObjectAction::Update, key, label, fields, sets_secret, payload })
}

fn create(
    of: &Compared<'_>,
    path: &str,
    (key, wanted): (&str, &Wanted),
    problems: &mut Vec<Problem>,
) -> Option<Difference> {
    if of.can.create.is_none() {
        let message =
            format!("there is no {} '{key}', and the vendor has nothing that creates one", of.kind.id);
        problems.push(Problem::at(path, message, "not_writable"));
        return None;
    }
    let mut fields = Vec::new();
    let mut payload = Map::new();
    for (field, value) in wanted.fields.iter().filter(|(_, value)| !value.is_null()) {
        if may_write(of, path, field, of.can.create.as_ref(), "set at a new object", problems) {
            settable::put(&mut payload, field, value.clone());
            fields.push(FieldChange { field: field.clone(), from: None, to: Some(value.clone()) });
        }
    }
    for (secret, value) in &wanted.secrets {
        match value {
            Some(value)
                if may_write(of, path, secret, of.can.create.as_ref(), "set at a new object", problems) =>
            {
                payload.insert(secret.clone(), value.clone());
            }
            Some(_) => {}
            None => {
                let message = "a new object has no secret that could be kept; write the value";
                problems.push(Problem::at(below(path, secret), message, "missing"));
            }
        }
    }
    let sets_secret = !new_secrets(wanted).is_empty();
    let label = wanted.fields.get("name").and_then(Value::as_str).unwrap_or(key).to_owned();
    let payload = Value::Object(payload);
    Some(Difference {
        action: ObjectAction::Create,
        key: key.to_owned(),
        label,
        fields,
        sets_secret,
        payload,
    })
}

fn delete(live: &LiveObject) -> Difference {
    let gone = |(field, value): (&String, &Value)| FieldChange {
        field: field.clone(),
        from: Some(value.clone()),
        to: None,
    };
    Difference {
        action: ObjectAction::Delete,
        key: live.key.clone(),
        label: live.label.clone(),
        fields: live.content.0.iter().map(gone).collect(),
        sets_secret: false,
        payload: json!({ "key": live.key }),
    }
}

fn new_secrets(wanted: &Wanted) -> Vec<(&String, &Value)> {
    wanted.secrets.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))).collect()
}

/// Whether the vendor can write a field; a problem where it cannot.
fn may_write(
    of: &Compared<'_>,
    path: &str,
    field: &str,
    fields: Option<&BTreeSet<String>>,
    done: &str,
    problems: &mut Vec<Problem>,
) -> bool {
    let may = fields.is_some_and(|fields| has(fields, field));
    if !may {
        let message = format!("the vendor cannot {done} the '{field}' of a {}", of.kind.id);
        problems.push(Problem::at(below(path, field), message, "not_writable"));
    }
    may
}

/// Where a kind stands among those that are staged together: what others name comes first.
pub(crate) fn rank(kind: &str) -> usize {
    const ORDER: [&str; 15] = [
        "vlan",
        "dhcp-pool",
        "dhcp-reservation",
        "dns-record",
        "address-group",
        "radius-profile",
        "radius-user",
        "ssid",
        "port",
        "radio",
        "route",
        "vpn-tunnel",
        "vpn-peer",
        "firewall-rule",
        "nat-rule",
    ];
    ORDER.iter().position(|one| *one == kind).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests;
