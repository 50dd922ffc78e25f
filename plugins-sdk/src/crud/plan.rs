//! Plans: every call of every stage, computed on what the changes before have left.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Vendor;
use super::binding::{Activation, FeatureBinding, FieldType, KindBinding, NewId, Shape, operation_word};
use super::calls::{self, Planned};
use super::field::Content;
use super::model::{Model, WithField, key_texts};
use super::part::{Draft, Part};
use super::token::{Role, Token};
use crate::{
    Change, ChangePlan, Danger, Fault, FaultExt, Host, Operation, PlanStep, Stage, fault, json as sdk_json,
};

const TOUCHES_MAX: usize = 256;
/// Most objects of which a plan remembers the ids, to tell later what others added.
const IDS_MAX: usize = 1000;
const MARK_CHARS: usize = 6;
const AS_ASKED: &str = "the device is already as asked";

/// Plans changes of objects that bindings describe.
pub fn plan(vendor: &dyn Vendor, host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
    let mut drafts = Drafts { model: Model::new(vendor, host), all: Vec::new(), features: BTreeMap::new() };
    let mut steps = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        let step = drafts
            .take(host, index, change)
            .map_err(|fault| if changes.len() > 1 { say_which(fault, index) } else { fault })?;
        steps.push(step);
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

struct Drafts<'h> {
    model: Model<'h>,
    all: Vec<Draft>,
    features: BTreeMap<String, FeatureBinding>,
}

impl Drafts<'_> {
    /// Carries out one change on the model.
    fn take(&mut self, host: &dyn Host, index: usize, change: &Change) -> Result<PlanStep, Fault> {
        let feature = FeatureBinding::of(host, &change.feature)?;
        let kind = feature.kind.clone();
        self.model.load(&kind)?;
        let payload: Value =
            serde_json::from_str(&change.payload).map_err(|_| fault::invalid("the payload is not JSON"))?;
        let key = key_texts(&self.model.kind(&kind).binding, &payload);
        self.features.insert(change.feature.clone(), feature);
        let found = self.find(&kind, &key)?;
        match (change.operation, found) {
            (Operation::Create, found) => self.create(host, index, change, (&kind, key, &payload), found),
            (Operation::Update, Some(at)) => self.update(index, change, (&kind, key, &payload), at),
            (Operation::Update, None) => {
                let noun = &self.model.kind(&kind).binding.noun;
                let message = format!("there is no {noun} '{}'; use operation create", key.join(":"));
                Err(fault::not_found(message))
            }
            (Operation::Delete, found) => self.delete(index, change, (&kind, key), found),
        }
    }

    /// The one object that a key names.
    fn find(&self, kind: &str, key: &[String]) -> Result<Option<usize>, Fault> {
        let loaded = self.model.kind(kind);
        if loaded.binding.shape == Shape::Object {
            return Ok(Some(0));
        }
        let found = self.model.find(kind, key);
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

    fn create(
        &mut self,
        host: &dyn Host,
        index: usize,
        change: &Change,
        (kind, key, payload): (&str, Vec<String>, &Value),
        found: Option<usize>,
    ) -> Result<PlanStep, Fault> {
        let feature = &self.features[&change.feature];
        let create = feature.create.as_ref().ok_or_else(|| not_offered(change))?;
        if matches!(create.id, NewId::Answer(_)) {
            return Err(fault::unsupported(format!(
                "'{}' cannot create: the device chooses the id of a new object, and a plan cannot name that yet",
                change.feature
            )));
        }
        let Some(at) = found else {
            let template = self.model.template(kind)?;
            let asked = self.model.asked(kind, payload, None)?;
            let binding = &self.model.kind(kind).binding;
            if let Some(template) = &template {
                refuse_unknown(binding, template, &asked)?;
            }
            let mut content = template.unwrap_or_default();
            content.retain(|name, _| !binding.fields.get(name).is_some_and(|field| field.generated));
            content.extend(asked.clone());
            let id = new_uuid(host, change, index);
            let noun = binding.noun.clone();
            let name = self.model.add(kind, &id, content.clone());
            self.touch(index, change, kind, (&id, &name, key), None, Some(content.clone()), asked);
            return Ok(self.step(format!("create {noun} '{name}'"), kind, None, Some(&content)));
        };
        let before = self.model.read(kind, at)?;
        let asked = self.model.asked(kind, payload, Some(at))?;
        let binding = &self.model.kind(kind).binding;
        if asked.iter().all(|(name, value)| before.get(name).unwrap_or(&Value::Null) == value) {
            let summary = format!("{} '{}' is there as asked", binding.noun, key.join(":"));
            return Ok(self.step(summary, kind, Some(&before), Some(&before)));
        }
        Err(fault::invalid(format!(
            "the {} '{}' exists and differs; use operation update",
            binding.noun,
            key.join(":")
        ))
        .with_code("exists"))
    }

    fn update(
        &mut self,
        index: usize,
        change: &Change,
        (kind, key, payload): (&str, Vec<String>, &Value),
        at: usize,
    ) -> Result<PlanStep, Fault> {
        if self.features[&change.feature].update.is_none() {
            return Err(not_offered(change));
        }
        let before = self.model.read(kind, at)?;
        let mut asked = self.model.asked(kind, payload, Some(at))?;
        let (id, name) = {
            let entry = &self.model.kind(kind).entries[at];
            (entry.id.clone(), entry.name.clone())
        };
        let binding = &self.model.kind(kind).binding;
        // What names the object is how the device wrote it.
        asked.retain(|name, _| !binding.key.contains(name));
        if self.model.tells_fields(kind, at) {
            refuse_unknown(binding, &before, &asked)?;
        }
        let mut after = before.clone();
        after.extend(asked.clone());
        let noun = binding.noun.clone();
        self.model.set(kind, at, after.clone());
        self.touch(index, change, kind, (&id, &name, key), Some(before.clone()), Some(after.clone()), asked);
        let summary = if noun == name { format!("update {noun}") } else { format!("update {noun} '{name}'") };
        Ok(self.step(summary, kind, Some(&before), Some(&after)))
    }

    fn delete(
        &mut self,
        index: usize,
        change: &Change,
        (kind, key): (&str, Vec<String>),
        found: Option<usize>,
    ) -> Result<PlanStep, Fault> {
        let delete = self.features[&change.feature].delete.clone().ok_or_else(|| not_offered(change))?;
        let noun = self.model.kind(kind).binding.noun.clone();
        let Some(at) = found else {
            let summary = format!("there is no {noun} '{}'", key.join(":"));
            return Ok(PlanStep { summary, before: None, after: None });
        };
        let before = self.model.read(kind, at)?;
        let (id, name) = {
            let entry = &self.model.kind(kind).entries[at];
            (entry.id.clone(), entry.name.clone())
        };
        for dependent in &delete.takes {
            let names = self.model.dependents(&dependent.kind, &dependent.field, &id)?;
            if !names.is_empty() {
                let message = format!(
                    "the device would delete with {noun} '{name}' what belongs to it ({}): {}; delete that first",
                    dependent.kind,
                    names.join(", ")
                );
                return Err(fault::invalid(message).with_code("in-use"));
            }
        }
        // What a new object has is needed to write this one back.
        self.model.template(kind)?;
        self.model.remove(kind, at);
        self.touch(index, change, kind, (&id, &name, key), Some(before.clone()), None, Content::new());
        Ok(self.step(format!("delete {noun} '{name}'"), kind, Some(&before), None))
    }

    #[expect(clippy::too_many_arguments, reason = "one object of one change, in words of the plan")]
    fn touch(
        &mut self,
        index: usize,
        change: &Change,
        kind: &str,
        (id, name, key): (&str, &str, Vec<String>),
        before: Option<Content>,
        after: Option<Content>,
        asked: Content,
    ) {
        let known = self.all.iter_mut().find(|draft| draft.kind == kind && draft.id == id);
        if let Some(draft) = known {
            draft.after = after;
            draft.items.push(index);
            draft.asked.extend(asked.into_keys());
            return;
        }
        self.all.push(Draft {
            feature: change.feature.clone(),
            kind: kind.to_owned(),
            id: id.to_owned(),
            name: name.to_owned(),
            key,
            items: vec![index],
            before,
            after,
            asked: asked.into_keys().collect(),
        });
    }

    fn step(
        &self,
        summary: String,
        kind: &str,
        before: Option<&Content>,
        after: Option<&Content>,
    ) -> PlanStep {
        let binding = &self.model.kind(kind).binding;
        let shown = |content: &Content| shown(binding, content).to_string();
        PlanStep { summary, before: before.map(shown), after: after.map(shown) }
    }

    fn assemble(
        self,
        vendor: &dyn Vendor,
        steps: Vec<PlanStep>,
        changes: &[Change],
    ) -> Result<ChangePlan, Fault> {
        let mut facts = Facts::default();
        let mut planned: Vec<Planned> = Vec::new();
        for (at, draft) in self.all.iter().enumerate() {
            let (kind, feature) = (&self.model.kind(&draft.kind).binding, &self.features[&draft.feature]);
            if let Some(call) = calls::write(vendor, Stage::Apply, at, draft, (kind, feature), None)? {
                planned.push(call);
                facts.note(draft, kind, feature);
            }
        }
        let is_restorable = facts.is_restorable;
        planned.extend(calls::activations(vendor, Stage::Apply, &facts.activations));
        if is_restorable && !planned.is_empty() {
            for (at, draft) in self.all.iter().enumerate().rev() {
                let loaded = self.model.kind(&draft.kind);
                let feature = &self.features[&draft.feature];
                let template = self.model.template_of(&draft.kind);
                let both = (&loaded.binding, feature);
                planned.extend(calls::write(vendor, Stage::Restore, at, draft, both, template.as_ref())?);
            }
            planned.extend(calls::activations(vendor, Stage::Restore, &facts.activations));
        }
        self.finish(planned, facts, steps, changes)
    }

    fn finish(
        self,
        planned: Vec<Planned>,
        facts: Facts,
        steps: Vec<PlanStep>,
        changes: &[Change],
    ) -> Result<ChangePlan, Fault> {
        let inverse = self.inverse(changes);
        let parts: Vec<Part> =
            self.all.iter().map(|draft| draft.part(&self.model.kind(&draft.kind).binding)).collect();
        let mut warnings = facts.warnings;
        if planned.is_empty() {
            warnings.push(AS_ASKED.to_owned());
        }
        if inverse.is_none() && facts.is_restorable {
            warnings
                .push("no staged change can take this back; it can be restored while it waits".to_owned());
        }
        let base = Value::Array(parts.iter().map(Part::base).collect());
        let touches = parts.iter().map(Part::path).take(TOUCHES_MAX).collect();
        let roles = |stage: Stage| -> Vec<Role> {
            let of_stage = planned.iter().filter(|one| one.call.stage == stage);
            of_stage.map(|one| Role::new(one.purpose, one.part)).collect()
        };
        let token = Token {
            items: steps.len(),
            apply: roles(Stage::Apply),
            restore: roles(Stage::Restore),
            ids: self.ids(),
            parts,
        };
        Ok(ChangePlan {
            steps,
            native: planned.into_iter().map(|one| one.call).collect(),
            holes: Vec::new(),
            danger: facts.danger,
            lockout_risk: facts.lockout_risk,
            warnings,
            base_digest: sdk_json::digest(&base).to_vec(),
            inverse,
            holds: false,
            undo_takes_all: false,
            touches,
            token: token.write()?,
        })
    }

    /// The ids of the kinds that the plan writes, while they are not too many.
    fn ids(&self) -> BTreeMap<String, Vec<String>> {
        let kinds = self.all.iter().map(|draft| &draft.kind);
        let ids: BTreeMap<String, Vec<String>> = kinds
            .map(|kind| (kind.clone(), self.model.kind(kind).ids.iter().map(|id| mark(id)).collect()))
            .collect();
        if ids.values().map(Vec::len).sum::<usize>() > IDS_MAX { BTreeMap::new() } else { ids }
    }

    /// The changes that bring the state before back.
    fn inverse(&self, changes: &[Change]) -> Option<Vec<Change>> {
        let mut out = Vec::new();
        for draft in self.all.iter().rev() {
            let (kind, feature) = (&self.model.kind(&draft.kind).binding, &self.features[&draft.feature]);
            if draft.loses_secret(kind) {
                return None;
            }
            let mut payload: Map<String, Value> =
                kind.key.iter().cloned().zip(key_values(kind, draft)).collect();
            let operation = match (&draft.before, &draft.after) {
                (None, None) => continue,
                (None, Some(_)) => feature.delete.as_ref().map(|_| Operation::Delete)?,
                (Some(before), None) => {
                    let known = before.iter().filter(|(_, value)| !value.is_null());
                    payload.extend(known.map(|(name, value)| (name.clone(), value.clone())));
                    feature.create.as_ref().map(|_| Operation::Create)?
                }
                (Some(_), Some(_)) => {
                    let touched = draft.touched(kind);
                    if touched.is_empty() {
                        continue;
                    }
                    payload.extend(touched.into_iter().map(|(name, (before, _))| (name, before)));
                    Operation::Update
                }
            };
            let site = draft.items.first().and_then(|at| changes.get(*at)?.site.clone());
            let payload = Value::Object(payload).to_string();
            out.push(Change { feature: draft.feature.clone(), operation, site, payload });
        }
        Some(out)
    }
}

/// What holds for the whole plan.
struct Facts {
    danger: Danger,
    lockout_risk: bool,
    is_restorable: bool,
    activations: Vec<Activation>,
    warnings: Vec<String>,
}

impl Default for Facts {
    fn default() -> Self {
        Facts {
            danger: Danger::Normal,
            lockout_risk: false,
            is_restorable: true,
            activations: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Facts {
    fn note(&mut self, draft: &Draft, kind: &KindBinding, feature: &FeatureBinding) {
        let operation = match (&draft.before, &draft.after) {
            (None, _) => Operation::Create,
            (Some(_), Some(_)) => Operation::Update,
            (Some(_), None) => Operation::Delete,
        };
        self.danger = worse(self.danger, feature.danger_of(operation));
        self.lockout_risk |= feature.lockout;
        let is_final = operation == Operation::Delete
            && (feature.delete.as_ref().is_some_and(|delete| delete.is_final)
                || feature.create.as_ref().is_none_or(|create| create.id != NewId::Chosen));
        if is_final || draft.loses_unread(kind) {
            self.is_restorable = false;
            let word = operation_word(operation);
            self.warn(format!("the {word} of {} '{}' cannot be taken back", kind.noun, draft.name));
        }
        for activation in &feature.activate {
            if let Some(reach) = &activation.reach {
                self.warn(format!("activating this also acts on what others have saved: {reach}"));
            }
            if !self.activations.iter().any(|known| known.path == activation.path) {
                self.activations.push(activation.clone());
            }
        }
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

fn worse(one: Danger, other: Danger) -> Danger {
    match (one, other) {
        (Danger::Catastrophic, _) | (_, Danger::Catastrophic) => Danger::Catastrophic,
        (Danger::Destructive, _) | (_, Danger::Destructive) => Danger::Destructive,
        (Danger::Normal, Danger::Normal) => Danger::Normal,
    }
}

fn not_offered(change: &Change) -> Fault {
    let word = operation_word(change.operation);
    fault::unsupported(format!("'{}' has no operation '{word}'", change.feature))
}

/// Refuses values for fields that this device does not have.
fn refuse_unknown(binding: &KindBinding, known: &Content, asked: &Content) -> Result<(), Fault> {
    let is_unknown = |name: &&String| {
        !known.contains_key(*name) && !binding.fields.get(*name).is_some_and(|field| field.unread)
    };
    let unknown: Vec<&String> =
        asked.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name).filter(is_unknown).collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    let fault = fault::invalid(format!("a {} of this device has no field '{first}'", binding.noun));
    Err(unknown
        .into_iter()
        .fold(fault, |fault, name| fault.with(name, "this version of the device does not have it")))
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

/// The values of the natural key, in the payload's form.
fn key_values(kind: &KindBinding, draft: &Draft) -> Vec<Value> {
    let content = draft.before.as_ref().or(draft.after.as_ref());
    let value = |name: &String| content.and_then(|content| content.get(name)).cloned().unwrap_or_default();
    kind.key.iter().map(value).collect()
}

/// What a person sees of an object.
fn shown(binding: &KindBinding, content: &Content) -> Value {
    let is_secret =
        |name: &str| binding.fields.get(name).is_some_and(|field| field.kind == FieldType::Secret);
    let one = |(name, value): (&String, &Value)| {
        let value = if is_secret(name) && !value.is_null() { json!("(secret)") } else { value.clone() };
        (name.clone(), value)
    };
    Value::Object(content.iter().filter(|(_, value)| !value.is_null()).map(one).collect())
}
