//! What an adapter says that it can write in the words of the model, tried at a practice device: what was asked for is
//! what the model shows afterwards.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{Checked, holds};
use crate::testing::{Package, Practice, Reviewed};
use crate::{Adapter, Completeness, FaultExt, ModelChange, ModelObject, Stage};

/// What is asked of the objects of a kind, on a device of its own.
#[derive(Debug, Default)]
pub struct ModelCase {
    pub kind: &'static str,
    /// The vendor's id of the site.
    pub site: Option<&'static str>,
    /// Payload of a create; null where the object is there.
    pub create: Value,
    /// Payloads of updates, one after the other, without the key.
    pub updates: Vec<Value>,
    /// Key of the object, where it is not created.
    pub key: Option<String>,
    /// Other verbs.
    pub actions: &'static [&'static str],
    /// The object is deleted in the end.
    pub deletes: bool,
}

/// Tries cases, each on a device that `device` makes, and that each verb and each field of the description is tried.
///
/// # Panics
///
/// Where the model does not show what was asked for, and where a verb or a field that the description names is not tried.
pub fn every_model_write<P: Practice>(
    package: &Package,
    device: impl Fn(&ModelCase) -> P,
    cases: &[ModelCase],
) {
    let mut problems = Vec::new();
    let mut tried = Tried::default();
    for case in cases {
        let device = device(case);
        tried.note(case);
        if let Err(problem) = (Trial { device: &device, case }).run() {
            problems.push(format!("{}: {problem}", case.kind));
        }
    }
    problems.extend(tried.missing(package));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The verbs that were tried, with their fields.
#[derive(Default)]
struct Tried(BTreeMap<(String, String), BTreeSet<String>>);

impl Tried {
    fn note(&mut self, case: &ModelCase) {
        let mut add = |verb: &str, payload: &Value| {
            let fields = self.0.entry((case.kind.to_owned(), verb.to_owned())).or_default();
            for (name, value) in payload.as_object().into_iter().flatten() {
                fields.insert(name.clone());
                let parts = value.as_object().into_iter().flatten().map(|(part, _)| format!("{name}.{part}"));
                fields.extend(parts);
            }
        };
        if !case.create.is_null() {
            add("create", &case.create);
        }
        case.updates.iter().for_each(|payload| add("update", payload));
        case.actions.iter().for_each(|verb| add(verb, &Value::Null));
        if case.deletes {
            add("delete", &Value::Null);
        }
    }

    fn missing(&self, package: &Package) -> Vec<String> {
        let mut out = Vec::new();
        for entry in package.description()["model"].as_array().into_iter().flatten() {
            let kind = entry["kind"].as_str().unwrap_or_default();
            for write in entry["writes"].as_array().into_iter().flatten() {
                let verb = write["verb"].as_str().unwrap_or_default();
                let Some(fields) = self.0.get(&(kind.to_owned(), verb.to_owned())) else {
                    out.push(format!("{kind}: no case tries '{verb}'"));
                    continue;
                };
                let named = write["fields"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let open: Vec<&str> = named.filter(|field| !fields.contains(*field)).collect();
                if !open.is_empty() {
                    out.push(format!("{kind}: no case of '{verb}' has {}", open.join(", ")));
                }
            }
        }
        out
    }
}

struct Trial<'t, P> {
    device: &'t P,
    case: &'t ModelCase,
}

impl<P: Practice> Trial<'_, P> {
    fn run(&self) -> Checked<()> {
        let before = self.listed()?;
        let key = if self.case.create.is_null() {
            self.case.key.clone().ok_or("names no object")?
        } else {
            self.write("create", &self.case.create)?;
            self.key_of_new(&before)?
        };
        if !self.case.create.is_null() {
            self.shows(&key, &self.case.create)?;
        }
        for update in &self.case.updates {
            self.write("update", &with_key(update, &key))?;
            self.shows(&key, update)?;
        }
        for verb in self.case.actions {
            self.write(verb, &json!({ "key": key }))?;
        }
        if self.case.deletes {
            let before = self.listed()?.len();
            self.write("delete", &json!({ "key": key }))?;
            // Where keys are places in a list, another object has the key now.
            if self.listed()?.len() != before - 1 {
                return Err(format!("'{key}' is still there"));
            }
        }
        Ok(())
    }

    /// Expresses, plans and applies.
    fn write(&self, verb: &str, payload: &Value) -> Checked<()> {
        let change = ModelChange {
            kind: self.case.kind.to_owned(),
            verb: verb.to_owned(),
            site: self.case.site.map(str::to_owned),
            payload: payload.to_string(),
        };
        let said = |fault: crate::Fault| {
            format!("{verb} {payload}: {} {:?}", fault.info().message, fault.info().fields)
        };
        let expressed = P::Adapter::express(&self.device.host(), &[change]).map_err(said)?;
        let changes: Vec<_> = expressed.into_iter().flatten().collect();
        let shown = format!("{changes:?}");
        let reviewed = Reviewed::of(self.device, changes).map_err(said)?;
        reviewed.run(self.device, Stage::Apply).map_err(said)?;
        if reviewed.has(Stage::Confirm) {
            reviewed.run(self.device, Stage::Confirm).map_err(said)?;
        }
        let standing = reviewed.standing(self.device);
        let is_done = ["after", "adjusted", "stored", "unseen"].iter().any(|word| standing.starts_with(word));
        if is_done { Ok(()) } else { Err(format!("{verb} {payload} as {shown} leads to: {standing}")) }
    }

    fn listed(&self) -> Checked<BTreeMap<String, ModelObject>> {
        let host = self.device.host();
        let (mut out, mut cursor) = (BTreeMap::new(), None::<String>);
        for _ in 0..1000 {
            let page = P::Adapter::list_model(&host, self.case.kind, self.case.site, cursor.as_deref())
                .map_err(|fault| fault.info().message.clone())?;
            if !matches!(page.complete, Completeness::Complete) {
                return Err("the list is not complete".to_owned());
            }
            out.extend(page.items.into_iter().map(|object| (object.key.clone(), object)));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(out);
            }
        }
        Err("the pages do not end".to_owned())
    }

    fn key_of_new(&self, before: &BTreeMap<String, ModelObject>) -> Checked<String> {
        let listed = self.listed()?;
        let is_new =
            |object: &&ModelObject| before.get(&object.key).is_none_or(|known| known.label != object.label);
        let new: Vec<&ModelObject> = listed.values().filter(is_new).collect();
        let shows = |object: &&&ModelObject| self.differs(object, &self.case.create).is_none();
        let meant = new.iter().find(shows).or(new.first());
        meant.map(|object| object.key.clone()).ok_or_else(|| "no object is new".to_owned())
    }

    /// Whether the object shows what was asked for; secrets are not shown.
    fn shows(&self, key: &str, asked: &Value) -> Checked<()> {
        let listed = self.listed()?;
        let object = listed.get(key).ok_or_else(|| format!("'{key}' is not there"))?;
        self.differs(object, asked).map_or(Ok(()), Err)
    }

    /// The first field that is not as it was asked for.
    fn differs(&self, object: &ModelObject, asked: &Value) -> Option<String> {
        let found: Map<String, Value> = serde_json::from_str(&object.fields).unwrap_or_default();
        asked.as_object().into_iter().flatten().find_map(|(name, wanted)| {
            let shown = found.get(name).unwrap_or(&Value::Null);
            let is_other = !is_secret(self.case.kind, name) && !same(wanted, shown);
            is_other.then(|| format!("'{name}' was asked to be {wanted} and is {shown} of {}", object.fields))
        })
    }
}

/// What is empty is not shown, or shown as empty.
fn same(wanted: &Value, shown: &Value) -> bool {
    let is_empty = |value: &Value| value.is_null() || *value == json!([]) || *value == json!("");
    (is_empty(wanted) && is_empty(shown)) || wanted == shown || holds(shown, wanted)
}

fn is_secret(kind: &str, field: &str) -> bool {
    heddle_marketplace::model::find(kind).is_some_and(|kind| kind.is_secret(field))
}

fn with_key(payload: &Value, key: &str) -> Value {
    let mut payload = payload.clone();
    payload["key"] = json!(key);
    payload
}
