//! Actions: what a feature does instead of writing an object, and what it leads to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::binding::{Action, Effected, FeatureBinding, KindBinding};
use super::field::{Content, equal, normal, plain};
use super::part::{Act, Beside, Draft};
use super::path::filled_json;
use super::plan::{Drafts, Named, Taking, not_offered, parent_of};
use super::{Place, key, related};
use crate::{Change, Fault, FileBody, Operation, PlanStep, fault};

/// What an action is about.
struct Target {
    noun: String,
    name: String,
    id: String,
    place: Place,
    /// Its place in the model.
    at: Option<(usize, usize)>,
    key: Vec<String>,
}

impl Drafts<'_> {
    /// Carries out one action on the model.
    pub(crate) fn act(
        &mut self,
        index: usize,
        change: &Change,
        payload: &Value,
        (feature, action): (&FeatureBinding, &Action),
    ) -> Result<PlanStep, Fault> {
        if change.operation != Operation::Create {
            return Err(not_offered(change));
        }
        let payload = &with_plain_names(action, payload);
        let target = match &feature.kind {
            None => self.no_target(change)?,
            Some(kind) => {
                let list = self.model.locate(kind, change.site.as_deref(), payload)?;
                let key = key::texts(&self.model.lists[list].binding, payload);
                match self.find(list, &key)? {
                    Some(at) => self.target(list, at, key)?,
                    None => return self.without_target(feature, action, (list, &key)),
                }
            }
        };
        let (place, asked) = (place_of(&target.place, payload), asked(action, payload));
        let name = [target.noun.as_str(), target.name.as_str()].into_iter().filter(|text| !text.is_empty());
        let about = match name.collect::<Vec<_>>()[..] {
            [noun, name] if noun != name => format!(" {noun} '{name}'"),
            [one, ..] => format!(" {one}"),
            [] => String::new(),
        };
        let act = Act {
            place,
            id: target.id.clone(),
            name: format!("{}{about}", action.summary),
            asked,
            is_due: true,
        };
        match &action.effect {
            None => self.unseen(index, change, payload, (target, act)),
            Some(effect) => {
                let kind =
                    effect.kind.as_ref().or(feature.kind.as_ref()).ok_or_else(|| not_offered(change))?;
                if feature.kind.as_ref().is_some_and(|own| own != kind) {
                    self.depend(index, change, payload, target)?;
                }
                self.seen(index, change, payload, (kind, effect, act))
            }
        }
    }

    fn no_target(&mut self, change: &Change) -> Result<Target, Fault> {
        let place = self.model.bare(change.site.as_deref())?;
        let (noun, name, id) = (String::new(), String::new(), String::new());
        Ok(Target { noun, name, id, place, at: None, key: Vec::new() })
    }

    fn target(&mut self, list: usize, at: usize, key: Vec<String>) -> Result<Target, Fault> {
        let Named { id, place, name, key } = self.named(list, at, key)?;
        let noun = self.model.lists[list].binding.noun.clone();
        Ok(Target { noun, name, id, place, at: Some((list, at)), key })
    }

    /// What is gone already is where some actions lead to; the others need an object.
    fn without_target(
        &self,
        feature: &FeatureBinding,
        action: &Action,
        (list, key): (usize, &[String]),
    ) -> Result<PlanStep, Fault> {
        let noun = &self.model.lists[list].binding.noun;
        let summary = format!("there is no {noun} '{}'", key.join(":"));
        let leads_away = action.effect.as_ref().is_some_and(|effect| {
            effect.field.is_none()
                && !effect.there
                && effect.kind.as_ref().is_none_or(|kind| Some(kind) == feature.kind.as_ref())
        });
        if leads_away {
            Ok(PlanStep { summary, before: None, after: None })
        } else {
            Err(fault::not_found(summary))
        }
    }

    /// Binds the plan to the object that an action is about, where the action leads to another one: that it is there, and
    /// where.
    fn depend(
        &mut self,
        index: usize,
        change: &Change,
        payload: &Value,
        target: Target,
    ) -> Result<(), Fault> {
        let Some((list, at)) = target.at else { return Ok(()) };
        let content = Some(self.model.read(list, at)?);
        let Target { id, place, name, key, .. } = target;
        let drafts = self.of_object(list, &id);
        self.refuse_moved(&drafts)?;
        let mut beside = self.beside(&drafts, &BTreeSet::new(), false);
        beside.is_partial = true;
        // What becomes of it is not what the plan is about.
        beside.is_gone = true;
        let named = Named { id, place, name, key };
        let draft = related::of(Taking { index, change, payload, list }, named);
        self.all.push(Draft { before: content.clone(), after: content, beside, ..draft });
        Ok(())
    }

    /// An action whose answer alone says that it was done.
    fn unseen(
        &mut self,
        index: usize,
        change: &Change,
        payload: &Value,
        (target, act): (Target, Act),
    ) -> Result<PlanStep, Fault> {
        self.is_unseen = true;
        let step = PlanStep { summary: act.name.clone(), before: None, after: None };
        let danger = self.features[&change.feature].danger_of_values(payload);
        let (list, content) = match target.at {
            Some((list, at)) => (Some(list), Some(self.model.read(list, at)?)),
            None => (None, None),
        };
        self.all.push(Draft {
            feature: change.feature.clone(),
            list,
            place: target.place,
            id: target.id,
            name: if target.name.is_empty() { change.feature.clone() } else { target.name },
            key: target.key,
            parent: Map::new(),
            items: vec![index],
            before: content.clone(),
            after: content,
            asked: BTreeSet::new(),
            danger,
            act: Some(act),
            lost: Content::new(),
            beside: Beside::default(),
        });
        Ok(step)
    }

    /// An action that leads to something that can be read.
    fn seen(
        &mut self,
        index: usize,
        change: &Change,
        payload: &Value,
        (kind, effect, mut act): (&str, &Effected, Act),
    ) -> Result<PlanStep, Fault> {
        let named = renamed(payload, effect);
        for name in effect.key.keys() {
            act.place.entry(name.clone()).or_insert_with(|| plain(&named[name]));
        }
        let list = self.model.locate(kind, change.site.as_deref(), &named)?;
        let key = key::texts(&self.model.lists[list].binding, &named);
        let found = self.find(list, &key)?;
        let before = found.map(|at| self.model.read(list, at)).transpose()?;
        let (before, after, asked) = self.states((list, &key), effect, payload, before)?;
        act.is_due = match (&before, &after) {
            (Some(before), Some(after)) => !is_so(&self.model.lists[list].binding, before, after),
            (before, after) => before.is_some() != after.is_some(),
        };
        let taking = Taking { index, change, payload: &named, list };
        let name = match found {
            Some(at) => self.named(list, at, key)?,
            None => self.absent(taking, key)?,
        };
        let summary = if act.is_due { act.name.clone() } else { format!("{}: it is so already", act.name) };
        let step = self.step(summary, list, before.as_ref(), after.as_ref());
        let danger = self.features[&change.feature].danger_of_values(payload);
        self.refuse_moved(&self.of_object(list, &name.id))?;
        let mut beside = self.beside_action((list, &name.id), asked.as_deref(), after.is_none());
        // What the object is beside that may change all the time.
        beside.is_partial = true;
        match (found, &after, &effect.field) {
            (Some(at), Some(after), Some(field)) => {
                let mut content = self.model.read(list, at)?;
                content.insert(field.clone(), after.get(field).cloned().unwrap_or_default());
                self.model.set(list, at, content);
            }
            (Some(at), None, _) => self.model.remove(list, at),
            (None, Some(_), _) => {
                let content = key::content(&self.model.lists[list].binding, &name.key);
                self.model.add(list, (&name.id, &name.place), (&name.key, content));
            }
            _ => {}
        }
        let parent = parent_of(&self.model.lists[list].binding, &named);
        let asked = asked.into_iter().collect();
        let draft = related::of(taking, name);
        self.all.push(Draft { before, after, parent, asked, danger, act: Some(act), beside, ..draft });
        Ok(step)
    }

    /// The object before and after, in what the action leads to alone, and the field that it changes.
    fn states(
        &self,
        (list, key): (usize, &[String]),
        effect: &Effected,
        payload: &Value,
        before: Option<Content>,
    ) -> Result<(Option<Content>, Option<Content>, Option<String>), Fault> {
        let Some(field) = &effect.field else {
            let exists = before.map(|_| Content::new());
            return Ok((exists, effect.there.then(Content::new), None));
        };
        let binding = &self.model.lists[list].binding;
        let before = before
            .ok_or_else(|| fault::not_found(format!("there is no {} '{}'", binding.noun, key.join(":"))))?;
        let described = binding.fields.get(field).ok_or_else(|| {
            fault::unsupported(format!("the kind of {} has no field '{field}'", binding.noun))
        })?;
        let wanted = match &effect.from {
            Some(name) => payload.get(name).cloned().unwrap_or_default(),
            None => effect.is.clone().unwrap_or_default(),
        };
        let of = |value: Value| Some(Content::from([(field.clone(), value)]));
        let is = before.get(field).cloned().unwrap_or_default();
        Ok((of(is), of(normal(described, &wanted)), Some(field.clone())))
    }

    /// An object that is not there yet; what stands for its id is looked up by its natural key.
    fn absent(&self, taking: Taking<'_>, key: Vec<String>) -> Result<Named, Fault> {
        let list = &self.model.lists[taking.list];
        let name = super::place::full_key(&list.binding, &list.place, &key.join(":"));
        let is_going = |draft: &Draft| {
            draft.list == Some(taking.list)
                && draft.key == key
                && draft.before.is_some()
                && draft.after.is_none()
        };
        if self.all.iter().any(is_going) {
            return Err(related::anew(&name));
        }
        Ok(Named { id: self.reference(taking.list, &key), place: list.place.clone(), name, key })
    }
}

/// The payload with the names of files as the vendor will write them.
fn with_plain_names(action: &Action, payload: &Value) -> Value {
    let mut payload = payload.clone();
    for (name, _) in action.fields.iter().filter(|(_, field)| field.plain_name) {
        if let Some(Value::String(name)) = payload.get_mut(name).and_then(|file| file.get_mut("name")) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            *name = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        }
    }
    payload
}

/// The payload under the names that the kind of the effect has for it.
fn renamed(payload: &Value, effect: &Effected) -> Value {
    let mut named = payload.clone();
    let place = place_of(&Place::new(), payload);
    for (own, other) in &effect.key {
        named[own.as_str()] = if other.contains('{') {
            filled_json(&Value::from(other.as_str()), &place, "")
        } else {
            payload.get(other).cloned().unwrap_or_default()
        };
    }
    named
}

/// The parameters of the paths: of the object, and beside them the single values of the payload and the names of its files.
fn place_of(target: &Place, payload: &Value) -> Place {
    let text_of = |value: &Value| match FileBody::of(value, "") {
        Some(file) => file.name,
        None => plain(value),
    };
    let all = payload.as_object().into_iter().flatten();
    let mut place: Place = all
        .map(|(name, value)| (name.clone(), text_of(value)))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    place.extend(target.clone());
    place
}

/// Whether an object is already what an action leads to.
fn is_so(binding: &KindBinding, before: &Content, after: &Content) -> bool {
    after.iter().all(|(name, wanted)| {
        let is = before.get(name).unwrap_or(&Value::Null);
        binding.fields.get(name).map_or(is == wanted, |field| equal(field, wanted, is))
    })
}

/// What the body takes of the payload.
fn asked(action: &Action, payload: &Value) -> Content {
    let fields = action.fields.iter();
    fields.filter_map(|(name, field)| Some((name.clone(), normal(field, payload.get(name)?)))).collect()
}
