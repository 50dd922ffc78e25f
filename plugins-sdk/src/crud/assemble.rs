//! The plan of what was drafted: its calls in their order, what they reach, and the way back.

use serde_json::{Map, Value};

use super::asked;
use super::binding::{FeatureBinding, FieldType, KindBinding};
use super::calls::{Planned, Writer, Writing};
use super::facts::Facts;
use super::field::{Content, completed};
use super::holes::{self, Holes};
use super::model::WithField;
use super::part::{Draft, Part};
use super::plan::{Drafts, mark};
use super::token::{ListMark, Role, Token};
use super::{Vendor, path};
use crate::{Change, ChangePlan, Fault, Operation, PlanStep, Stage, fault, json as sdk_json};

const TOUCHES_MAX: usize = 256;
/// Most values that a plan may leave open.
const HOLES_MAX: usize = 64;
/// Most objects of which a plan remembers the ids, to tell later what others added.
const IDS_MAX: usize = 1000;
const NOT_CANCELLABLE: &str =
    "its jobs cannot be cancelled while they run, because there are too many of them";
const AS_ASKED: &str = "the device is already as asked";

impl Drafts<'_> {
    pub(crate) fn assemble(
        self,
        vendor: &dyn Vendor,
        steps: Vec<PlanStep>,
        changes: &[Change],
    ) -> Result<ChangePlan, Fault> {
        let mut facts = Facts::default();
        let mut writer = Writer { vendor, holes: Holes::default() };
        let (mut planned, mut cancels): (Vec<Planned>, Vec<Planned>) = (Vec::new(), Vec::new());
        for at in 0..self.all.len() {
            let draft = &self.all[at];
            if draft.is_open() && (draft.before.is_some() || draft.act.is_some()) {
                writer.holes.found(at);
            }
            if let Some(call) = self.call(&mut writer, Stage::Apply, at)? {
                cancels.extend(writer.cancel(self.writing(at), call.purpose));
                planned.push(call);
                facts.note(draft, self.kind(draft), &self.features[&draft.feature]);
            }
        }
        planned.extend(writer.activations(Stage::Apply, &facts.activations));
        if facts.is_restorable && !planned.is_empty() {
            // What the plan itself creates goes with its object.
            let is_own = |at: &usize| self.all[*at].act.is_some() || !self.all[*at].beside.is_made;
            for at in (0..self.all.len()).rev().filter(is_own) {
                planned.extend(self.call(&mut writer, Stage::Restore, at)?);
            }
            planned.extend(writer.activations(Stage::Restore, &facts.activations));
        }
        with_cancels(&mut planned, cancels, &writer.holes, &mut facts);
        self.finish((planned, writer.holes), facts, steps, changes)
    }

    fn kind(&self, draft: &Draft) -> Option<&KindBinding> {
        draft.list.map(|list| &self.model.lists[list].binding)
    }

    fn call(&self, writer: &mut Writer<'_>, stage: Stage, at: usize) -> Result<Option<Planned>, Fault> {
        let draft = &self.all[at];
        let template = draft.list.filter(|_| stage == Stage::Restore);
        let template = template.and_then(|list| self.model.template_of(list));
        let writing = Writing { template: template.as_ref(), ..self.writing(at) };
        match &draft.act {
            Some(act) if act.is_due => Ok(writer.act(stage, writing)),
            Some(_) => Ok(None),
            None => writer.write(stage, writing),
        }
    }

    /// One object with its bindings.
    fn writing(&self, at: usize) -> Writing<'_> {
        let draft = &self.all[at];
        let feature = &self.features[&draft.feature];
        Writing { at, draft, kind: self.kind(draft), feature, template: None }
    }

    fn finish(
        self,
        (planned, holes): (Vec<Planned>, Holes),
        facts: Facts,
        steps: Vec<PlanStep>,
        changes: &[Change],
    ) -> Result<ChangePlan, Fault> {
        let inverse = self.inverse(changes);
        let has_number = |draft: &Draft| self.features[&draft.feature].has_id_as_number();
        let numbers: Vec<bool> = self.all.iter().map(has_number).collect();
        let lists = self.lists();
        let mut parts: Vec<Part> = self.all.iter().filter_map(|draft| self.part(draft, &lists)).collect();
        for (at, part) in parts.iter_mut().enumerate() {
            part.is_answered = holes.is_answered(at);
            part.is_number = numbers.get(at) == Some(&true);
        }
        let mut warnings = facts.warnings;
        if planned.is_empty() {
            warnings.push(AS_ASKED.to_owned());
        }
        if inverse.is_none() && facts.is_restorable && !planned.is_empty() {
            warnings
                .push("no staged change can take this back; it can be restored while it waits".to_owned());
        }
        let token = Token {
            items: steps.len(),
            apply: roles(&planned, Stage::Apply),
            restore: roles(&planned, Stage::Restore),
            abort: roles(&planned, Stage::Abort),
            is_unseen: self.is_unseen,
            lists: lists.iter().map(|at| self.mark(*at, self.is_small(&lists))).collect(),
            parts,
        };
        let base = token.parts.iter().map(|part| part.base(&token.lists[part.list])).collect();
        let touches =
            token.parts.iter().map(|part| part.path(token.kind_of(part))).take(TOUCHES_MAX).collect();
        let native: Vec<_> = planned.into_iter().map(|one| one.call).collect();
        if let Some(name) = native.iter().find_map(|call| path::unfilled(&call.path)) {
            let fault = fault::invalid(format!("'{name}' is needed to know where this is written"));
            return Err(fault.with(name, "is needed"));
        }
        let holes = holes.named_by(native.iter());
        let is_lost = |at: &usize| {
            let is_declared = holes.iter().any(|hole| hole.name == holes::id_name(*at));
            !is_declared && token.parts.get(*at).is_some_and(Part::is_open)
        };
        if let Some(at) = native.iter().flat_map(holes::ids_of).find(is_lost) {
            let name = &token.parts[at].name;
            return Err(fault::invalid(format!(
                "'{name}' would be created, named by another change, and taken away in one plan"
            )));
        }
        if holes.len() > HOLES_MAX {
            return Err(fault::invalid(format!(
                "the plan leaves {} values open and may leave {HOLES_MAX}; split the change",
                holes.len()
            )));
        }
        Ok(ChangePlan {
            steps,
            holes,
            native,
            danger: facts.danger,
            lockout_risk: facts.lockout_risk,
            warnings,
            also: facts.also,
            base_digest: sdk_json::digest(&Value::Array(base)).to_vec(),
            inverse,
            holds: false,
            undo_takes_all: false,
            touches,
            token: token.write()?,
        })
    }

    /// The lists of the model that hold what the plan touches.
    fn lists(&self) -> Vec<usize> {
        let mut lists: Vec<usize> = self.all.iter().filter_map(|draft| draft.list).collect();
        lists.sort_unstable();
        lists.dedup();
        lists
    }

    fn part(&self, draft: &Draft, lists: &[usize]) -> Option<Part> {
        let list = draft.list?;
        let of = &self.model.lists[list];
        let at = lists.iter().position(|known| *known == list)?;
        Some(draft.part(&of.binding, at, &of.place))
    }

    /// Whether the ids of what the lists hold are few enough to be kept.
    fn is_small(&self, lists: &[usize]) -> bool {
        lists.iter().map(|list| self.model.lists[*list].ids.len()).sum::<usize>() <= IDS_MAX
    }

    fn mark(&self, list: usize, has_ids: bool) -> ListMark {
        let list = &self.model.lists[list];
        let ids = if has_ids { list.ids.iter().map(|id| mark(id)).collect() } else { Vec::new() };
        ListMark { kind: list.kind.clone(), place: list.place.clone(), ids }
    }

    /// The changes that bring the state before back.
    fn inverse(&self, changes: &[Change]) -> Option<Vec<Change>> {
        let mut out = Vec::new();
        for draft in self.all.iter().rev() {
            let kind = self.kind(draft)?;
            let feature = &self.features[&draft.feature];
            let site = draft.items.first().and_then(|at| changes.get(*at)?.site.clone());
            let mut payload = draft.parent.clone();
            payload.extend(kind.key.iter().cloned().zip(key_values(kind, draft)));
            let change = |feature: &str, operation, payload: Map<String, Value>| Change {
                feature: feature.to_owned(),
                operation,
                site: site.clone(),
                payload: Value::Object(payload).to_string(),
            };
            if let Some(act) = &draft.act {
                if act.is_due {
                    let action = feature.action.as_ref()?;
                    let inverse = action.inverse.as_ref()?;
                    if action.inverse_deletes {
                        out.push(change(inverse, Operation::Delete, payload));
                        continue;
                    }
                    let asked = draft.items.first().and_then(|at| changes.get(*at))?;
                    out.push(change(inverse, Operation::Create, self.asked_back(draft, feature, asked)?));
                }
                continue;
            }
            if draft.loses_secret(kind) {
                return None;
            }
            let operation = match (&draft.before, &draft.after) {
                (None, None) => continue,
                (None, Some(_)) => feature.delete.as_ref().map(|_| Operation::Delete)?,
                // Another object without a name could not be told from it.
                (Some(_), None) if kind.key_or_id && payload.values().all(Value::is_null) => return None,
                (Some(before), None) => {
                    let known = before.iter().filter(|(_, value)| !value.is_null());
                    payload.extend(known.map(|(name, value)| (name.clone(), value.clone())));
                    feature.create.as_ref().map(|_| Operation::Create)?
                }
                (Some(before), Some(_)) => {
                    let touched = draft.touched(kind);
                    if touched.is_empty() {
                        continue;
                    }
                    // A part that the plan adds is taken away by its name.
                    let is_of_parts = |name: &String| {
                        kind.fields.get(name).is_some_and(|field| field.kind == FieldType::Properties)
                    };
                    let back = |(name, (before, after)): (String, (Value, Value))| {
                        let before = if is_of_parts(&name) { completed(&before, &after) } else { before };
                        (name, before)
                    };
                    let lost = asked::kept(kind, before, &draft.lost);
                    payload.extend(lost.map(|(name, value)| (name.clone(), value.clone())));
                    payload.extend(touched.into_iter().map(back));
                    if kind.key_or_id {
                        by_id(kind, draft, &mut payload);
                    }
                    Operation::Update
                }
            };
            out.push(change(&draft.feature, operation, payload));
        }
        Some(out)
    }
}

impl Drafts<'_> {
    /// What the feature is asked that takes an action back: what names its objects, and the value before where the payload
    /// says the value.
    fn asked_back(
        &self,
        draft: &Draft,
        feature: &FeatureBinding,
        change: &Change,
    ) -> Option<Map<String, Value>> {
        let effect = feature.action.as_ref()?.effect.as_ref()?;
        let asked: Map<String, Value> = serde_json::from_str(&change.payload).ok()?;
        let own = self.model.lists.iter().find(|list| Some(&list.kind) == feature.kind.as_ref());
        let kinds = [self.kind(draft), own.map(|list| &list.binding)].into_iter().flatten();
        let names = kinds.flat_map(|kind| kind.within.iter().flat_map(|within| &within.key).chain(&kind.key));
        let names = names.map(|name| effect.key.get(name).unwrap_or(name));
        let mut back: Map<String, Value> =
            names.filter_map(|name| Some((name.clone(), asked.get(name)?.clone()))).collect();
        if let (Some(from), Some(field)) = (&effect.from, &effect.field) {
            back.insert(from.clone(), draft.before.as_ref()?.get(field)?.clone());
        }
        Some(back)
    }
}

/// Names an object without a natural key by what stands for it.
fn by_id(kind: &KindBinding, draft: &Draft, payload: &mut Map<String, Value>) {
    let first = kind.key.first().zip(draft.key.first());
    if let Some((name, id)) =
        first.filter(|_| kind.key.iter().all(|name| payload.get(name).is_none_or(Value::is_null)))
    {
        payload.insert(name.clone(), Value::from(id.clone()));
    }
}

/// Adds the calls that end jobs, unless the ids of the jobs are more than a plan may leave open.
fn with_cancels(planned: &mut Vec<Planned>, cancels: Vec<Planned>, holes: &Holes, facts: &mut Facts) {
    if cancels.is_empty() {
        return;
    }
    let calls = planned.iter().chain(&cancels).map(|one| &one.call);
    if holes.named_by(calls).len() > HOLES_MAX {
        facts.warn(NOT_CANCELLABLE.to_owned());
        return;
    }
    planned.extend(cancels);
}

fn roles(planned: &[Planned], stage: Stage) -> Vec<Role> {
    let of_stage = planned.iter().filter(|one| one.call.stage == stage);
    of_stage.map(|one| Role::new(one.purpose, one.part, holes::ids_of(&one.call))).collect()
}

/// The values of the natural key, in the payload's form.
fn key_values(kind: &KindBinding, draft: &Draft) -> Vec<Value> {
    let content: Option<&Content> = draft.before.as_ref().or(draft.after.as_ref());
    let value = |(name, text): (&String, &String)| {
        let known = content.and_then(|content| content.get(name)).cloned();
        known.unwrap_or_else(|| Value::from(text.clone()))
    };
    kind.key.iter().zip(&draft.key).map(value).collect()
}
