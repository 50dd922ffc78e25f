//! Plans: what each change makes of the objects that it is about, on what the changes before have left.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::asked::{self, id_of_field, is_there, lay_over, refuse_create_only, refuse_unknown};
use super::binding::{FeatureBinding, KindBinding, NewId, Shape, operation_word};
use super::field::{self, Content, plain};
use super::model::{Model, WithField};
use super::part::Draft;
use super::{Place, Vendor, holes, key, place};
use crate::{Change, ChangePlan, Fault, FaultExt, Host, Operation, PlanStep, fault, json as sdk_json};

const MARK_CHARS: usize = 6;

/// Plans changes of objects that bindings describe.
pub fn plan(vendor: &dyn Vendor, host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
    let mut drafts = Drafts {
        model: Model::new(vendor, host),
        all: Vec::new(),
        features: BTreeMap::new(),
        is_unseen: false,
    };
    let mut steps = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        let step = drafts
            .take(index, change)
            .map_err(|fault| if changes.len() > 1 { say_which(fault, index) } else { fault })?;
        steps.push(step);
    }
    if drafts.is_unseen && changes.len() > 1 {
        return Err(fault::invalid(
            "one of the changes leaves nothing that can be read afterwards; apply it by itself",
        ));
    }
    drafts.assemble(vendor, steps, changes)
}

fn say_which(mut fault: Fault, index: usize) -> Fault {
    let info = fault.info_mut();
    info.message = format!("change {}: {}", index + 1, info.message);
    fault
}

/// The short mark of an id in a token.
pub(crate) fn mark(id: &str) -> String {
    hex::encode(&sdk_json::digest(&json!(id))[..MARK_CHARS / 2])
}

pub(crate) struct Drafts<'h> {
    pub(crate) model: Model<'h>,
    pub(crate) all: Vec<Draft>,
    pub(crate) features: BTreeMap<String, FeatureBinding>,
    /// What some action does cannot be read.
    pub(crate) is_unseen: bool,
}

/// One change while it is planned.
#[derive(Clone, Copy)]
pub(crate) struct Taking<'a> {
    /// Its place among the changes.
    pub(crate) index: usize,
    pub(crate) change: &'a Change,
    pub(crate) payload: &'a Value,
    /// The list that it is about.
    pub(crate) list: usize,
}

/// Which object a change is about.
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) place: Place,
    pub(crate) name: String,
    pub(crate) key: Vec<String>,
}

impl Drafts<'_> {
    /// Carries out one change on the model.
    fn take(&mut self, index: usize, change: &Change) -> Result<PlanStep, Fault> {
        let feature = FeatureBinding::of(self.model.host, &change.feature)?;
        let payload: Value =
            serde_json::from_str(&change.payload).map_err(|_| fault::invalid("the payload is not JSON"))?;
        self.features.insert(change.feature.clone(), feature.clone());
        if let Some(action) = &feature.action {
            return self.act(index, change, &payload, (&feature, action));
        }
        let kind = feature.kind.as_ref().ok_or_else(|| not_offered(change))?;
        let list = self.model.locate(kind, change.site.as_deref(), &payload)?;
        let key = key::texts(&self.model.lists[list].binding, &payload);
        let found = self.find(list, &key)?;
        let taking = Taking { index, change, payload: &payload, list };
        match (change.operation, found) {
            (Operation::Create, found) => self.create(taking, key, found),
            (Operation::Update, Some(at)) => self.update(taking, key, at),
            (Operation::Update, None) => {
                let noun = &self.model.lists[list].binding.noun;
                let message = format!("there is no {noun} '{}'; use operation create", key.join(":"));
                Err(fault::not_found(message))
            }
            (Operation::Delete, found) => self.delete(taking, key, found),
        }
    }

    /// The one object that a key names.
    pub(crate) fn find(&self, list: usize, key: &[String]) -> Result<Option<usize>, Fault> {
        let loaded = &self.model.lists[list];
        if loaded.binding.shape == Shape::Object {
            return Ok(Some(0));
        }
        let found = self.model.find(list, key);
        let field = loaded.binding.key.first().cloned().unwrap_or_default();
        let (noun, name) = (&loaded.binding.noun, key.join(":"));
        match found[..] {
            [] => Ok(None),
            [at] if loaded.entries[at].is_writable => Ok(Some(at)),
            [_] => Err(fault::invalid(format!("the {noun} '{name}' is built in and cannot be changed"))
                .with(&field, "names a built-in object")),
            _ => Err(fault::invalid(format!(
                "{} objects are a {noun} '{name}'; give them different keys first",
                found.len()
            ))
            .with(&field, "names several objects")),
        }
    }

    /// The object at a place of a list. Where ids do not last, what stands for its id.
    pub(crate) fn named(&mut self, list: usize, at: usize, key: Vec<String>) -> Result<Named, Fault> {
        let next = self.all.len();
        if self.model.lists[list].binding.volatile {
            self.model.read(list, at)?;
        }
        let of = &mut self.model.lists[list];
        let entry = &mut of.entries[at];
        let name = place::full_key(&of.binding, &entry.place, &entry.name);
        let name = if name.is_empty() { of.binding.noun.clone() } else { name };
        if of.binding.volatile && !holes::is_reference(&entry.id) {
            entry.id = holes::id_reference(next);
        }
        Ok(Named { id: entry.id.clone(), place: entry.place.clone(), name, key })
    }

    /// What stands for the id of a new object, of which the plan may have taken one away.
    pub(crate) fn reference(&self, list: usize, key: &[String]) -> String {
        let known =
            self.all.iter().position(|draft| draft.list == Some(list) && draft.key == key && draft.is_open());
        holes::id_reference(known.unwrap_or(self.all.len()))
    }

    fn create(
        &mut self,
        taking: Taking<'_>,
        key: Vec<String>,
        found: Option<usize>,
    ) -> Result<PlanStep, Fault> {
        let Taking { index, change, payload, list } = taking;
        let feature = &self.features[&change.feature];
        let create = feature.create.clone().ok_or_else(|| not_offered(change))?;
        let Some(at) = found else {
            let template = self.model.template(list)?;
            let mut asked = self.model.asked(list, payload, None)?;
            let binding = &self.model.lists[list].binding;
            lay_over(binding, None, &mut asked);
            if let Some(template) = &template {
                refuse_unknown(binding, template, &asked)?;
            }
            let mut content = template.unwrap_or_default();
            if binding.sparse {
                content = field::content(binding, &json!({}));
            }
            content.retain(|name, _| !binding.fields.get(name).is_some_and(|field| field.generated));
            content.extend(asked.clone());
            let id = match &create.id {
                NewId::Chosen if !binding.volatile => new_uuid(self.model.host, change, index),
                NewId::Field(name) if !binding.volatile => id_of_field(binding, name, &asked, payload)?,
                _ => self.reference(list, &key),
            };
            let place = self.new_place(list, payload);
            let noun = binding.noun.clone();
            let own = self.model.add(list, (&id, &place), (&key, content.clone()));
            let name = place::full_key(&self.model.lists[list].binding, &place, &own);
            let step = self.step(format!("create {noun} '{name}'"), list, None, Some(&content));
            self.touch(taking, Named { id, place, name, key }, (None, Some(content)), asked)?;
            return Ok(step);
        };
        let before = self.model.read(list, at)?;
        let mut asked = self.model.asked(list, payload, Some(at))?;
        let binding = &self.model.lists[list].binding;
        lay_over(binding, Some(&before), &mut asked);
        if asked.iter().all(|(name, value)| is_there(binding, &before, (name, value))) {
            let summary = format!("{} '{}' is there as asked", binding.noun, key.join(":"));
            return Ok(self.step(summary, list, Some(&before), Some(&before)));
        }
        Err(fault::invalid(format!(
            "the {} '{}' exists and differs; use operation update",
            binding.noun,
            key.join(":")
        ))
        .with_code("exists"))
    }

    /// The parameters of a new object's paths: those of its list, and what its payload says of its own.
    fn new_place(&self, list: usize, payload: &Value) -> Place {
        let list = &self.model.lists[list];
        let own = list.binding.params.iter().filter_map(|(name, at)| {
            let field = payload.get(name).or_else(|| payload.get(list.binding.name_at(at)));
            let value = field.map(plain).filter(|text| !text.is_empty())?;
            Some((name.clone(), value))
        });
        list.place.clone().into_iter().chain(own).collect()
    }

    fn update(&mut self, taking: Taking<'_>, key: Vec<String>, at: usize) -> Result<PlanStep, Fault> {
        let Taking { change, payload, list, .. } = taking;
        if self.features[&change.feature].update.is_none() {
            return Err(not_offered(change));
        }
        let before = self.model.read(list, at)?;
        let mut asked = self.model.asked(list, payload, Some(at))?;
        let named = self.named(list, at, key)?;
        let binding = &self.model.lists[list].binding;
        // What names the object is how the device wrote it.
        asked.retain(|name, _| !binding.key.contains(name));
        if self.model.tells_fields(list, at) {
            refuse_unknown(binding, &before, &asked)?;
        }
        lay_over(binding, Some(&before), &mut asked);
        if !self.model.lists[list].entries[at].is_new {
            refuse_create_only(binding, &before, &asked)?;
        }
        let mut after = before.clone();
        after.extend(asked.clone());
        let lost = asked::lost(binding, &before, &asked);
        for (name, _) in asked::kept(binding, &before, &lost) {
            if let Some(value) = after.get_mut(name) {
                *value = Value::Null;
            }
        }
        let noun = &binding.noun;
        let summary = if *noun == named.name {
            format!("update {noun}")
        } else {
            format!("update {noun} '{}'", named.name)
        };
        let step = self.step(summary, list, Some(&before), Some(&after));
        self.model.set(list, at, after.clone());
        self.touch(taking, named, (Some(before), Some(after)), asked)?;
        Ok(step)
    }

    fn delete(
        &mut self,
        taking: Taking<'_>,
        key: Vec<String>,
        found: Option<usize>,
    ) -> Result<PlanStep, Fault> {
        let Taking { change, list, .. } = taking;
        let delete = self.features[&change.feature].delete.clone().ok_or_else(|| not_offered(change))?;
        let noun = self.model.lists[list].binding.noun.clone();
        let Some(at) = found else {
            let summary = format!("there is no {noun} '{}'", key.join(":"));
            return Ok(PlanStep { summary, before: None, after: None });
        };
        let before = self.model.read(list, at)?;
        let named = self.named(list, at, key)?;
        self.refuse_needed((list, at), &delete, &named)?;
        // What a new object has is needed to write this one back.
        self.model.template(list)?;
        self.model.remove(list, at);
        let step = self.step(format!("delete {noun} '{}'", named.name), list, Some(&before), None);
        self.touch(taking, named, (Some(before), None), Content::new())?;
        Ok(step)
    }

    pub(crate) fn step(
        &self,
        summary: String,
        list: usize,
        before: Option<&Content>,
        after: Option<&Content>,
    ) -> PlanStep {
        let binding = &self.model.lists[list].binding;
        let shown = |content: &Content| shown(binding, content).to_string();
        PlanStep { summary, before: before.map(shown), after: after.map(shown) }
    }
}

/// How a payload names the parent of an object.
pub(crate) fn parent_of(binding: &KindBinding, payload: &Value) -> Map<String, Value> {
    let keys = binding.within.iter().flat_map(|within| &within.key);
    keys.filter_map(|name| Some((name.clone(), payload.get(name)?.clone()))).collect()
}

pub(crate) fn not_offered(change: &Change) -> Fault {
    let word = operation_word(change.operation);
    fault::unsupported(format!("'{}' has no operation '{word}'", change.feature))
}

/// A version 4 UUID that no other change of the controller gets.
fn new_uuid(host: &dyn Host, change: &Change, index: usize) -> String {
    let seed = json!([host.now_ms(), change.feature, change.payload, index]);
    let mut bytes = sdk_json::digest(&seed);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::encode(&bytes[..16]);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..32]].join("-")
}

/// What a person sees of an object.
fn shown(binding: &KindBinding, content: &Content) -> Value {
    let known = content.iter().filter(|(_, value)| !value.is_null());
    let one =
        |(name, value): (&String, &Value)| (name.clone(), field::shown(binding.fields.get(name), value));
    Value::Object(known.map(one).collect())
}
