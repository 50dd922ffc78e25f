//! What a plan touches: one object, before and after, in a form that a later call can compare with the device.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Place;
use super::asked;
use super::binding::{Field, FieldType, KindBinding};
use super::field::{self, Content, completed, equal, to_json};
use super::holes;
use super::rewritten;
use super::token::ListMark;
use crate::{Danger, json as sdk_json};

const DIGEST_BYTES: usize = 8;

/// An object while the plan is made.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) feature: String,
    /// Its list among those of the model; none where an action is about no object.
    pub(crate) list: Option<usize>,
    pub(crate) place: Place,
    /// The vendor's id, or what stands for it until it is known.
    pub(crate) id: String,
    /// What people call it, its parent before it.
    pub(crate) name: String,
    /// The texts of its own natural key.
    pub(crate) key: Vec<String>,
    /// How the payload names its parent.
    pub(crate) parent: Map<String, Value>,
    /// Places of the changes that touch it.
    pub(crate) items: Vec<usize>,
    pub(crate) before: Option<Content>,
    pub(crate) after: Option<Content>,
    /// Fields that the changes name.
    pub(crate) asked: BTreeSet<String>,
    /// What the vendor takes away with what is asked, as it was before.
    pub(crate) lost: Content,
    /// What values of payloads raise the danger to.
    pub(crate) danger: Danger,
    /// The call of an action that leads to this, and the one that takes it back.
    pub(crate) act: Option<Act>,
    pub(crate) beside: Beside,
}

/// What other drafts of the plan do to the same object.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// One before this creates it: what it is until then is not known.
    pub(crate) is_made: bool,
    /// One before this changes it, or only that it is there counts: what is not touched does not.
    pub(crate) is_partial: bool,
    /// One behind this takes it away, or another one alone says where the plan stands.
    pub(crate) is_gone: bool,
    /// Fields that one behind this writes.
    pub(crate) later: BTreeSet<String>,
    /// What the device has in fields that one before this writes.
    pub(crate) earlier: Content,
    /// What those before this make of them.
    pub(crate) between: BTreeMap<String, Vec<Value>>,
}

/// The calls of an action.
#[derive(Debug)]
pub(crate) struct Act {
    /// Parameters of its paths: of the object that it is about, and what the payload says.
    pub(crate) place: Place,
    /// The id of that object.
    pub(crate) id: String,
    /// The name of that object, as the review says it.
    pub(crate) name: String,
    /// What the payload gives the body.
    pub(crate) asked: Content,
    /// Whether it is to be done: what it leads to is not there yet.
    pub(crate) is_due: bool,
}

/// The same as later calls need it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of an object in a plan")]
pub(crate) struct Part {
    /// Its list among those of the token.
    pub(crate) list: usize,
    /// Parameters of its paths beyond those of the list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) own: Place,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) key: Vec<String>,
    pub(crate) items: Vec<usize>,
    /// Whether it exists before, and after.
    pub(crate) is_there: (bool, bool),
    /// An earlier part creates it: whatever is not as wanted is as before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_made: bool,
    /// Another part says alone where the plan stands: one that takes it away, or what an action with it leads to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_gone: bool,
    /// The answer to its call gives its id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_answered: bool,
    /// Bodies have its id as a number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_number: bool,
    /// Digest of the whole object before; empty where only what is touched counts.
    pub(crate) whole: String,
    /// Digest of what the plan leaves alone of it.
    pub(crate) rest: String,
    /// Fields that the vendor takes away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lost: Vec<String>,
    /// Touched fields, before and after.
    pub(crate) touched: BTreeMap<String, (Value, Value)>,
    /// What earlier calls of the plan make of touched fields in between.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) between: BTreeMap<String, Vec<Value>>,
}

/// Where an object stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// As before and as after: the plan changes nothing of it that can be seen.
    Both,
    Before,
    After,
    /// As after, but for values that the device writes in its own way.
    Adjusted(Value),
    /// As some call of the plan has left it, and another one will not.
    Between(Value),
    /// Neither; what differs from what is wanted.
    Other(Value),
}

fn digest(value: &Value) -> String {
    hex::encode(&sdk_json::digest(value)[..DIGEST_BYTES])
}

fn whole(content: Option<&Content>) -> String {
    content.map(|content| digest(&to_json(content))).unwrap_or_default()
}

fn rest(content: Option<&Content>, touched: &BTreeMap<String, (Value, Value)>, lost: &[String]) -> String {
    let Some(content) = content else { return String::new() };
    let left: Content = content
        .iter()
        .filter(|(name, _)| !touched.contains_key(*name) && !lost.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    digest(&to_json(&left))
}

impl Draft {
    /// Whether its id is known only when the device was written, or moves with each write.
    pub(crate) fn is_open(&self) -> bool {
        holes::is_reference(&self.id)
    }

    /// Fields that a write changes, with their values before and after.
    pub(crate) fn touched(&self, binding: &KindBinding) -> BTreeMap<String, (Value, Value)> {
        let Some(after) = &self.after else { return BTreeMap::new() };
        let value = |content: Option<&Content>, name: &str| {
            content.and_then(|content| content.get(name)).cloned().unwrap_or_default()
        };
        let asked = self.asked.iter().filter_map(|name| {
            let field = binding.fields.get(name)?;
            let (old, new) = (value(self.before.as_ref(), name), value(Some(after), name));
            let old = if field.merge { completed(&old, &new) } else { old };
            let is_changed = self.before.is_none() || field.unread || !equal(field, &new, &old);
            is_changed.then(|| (name.clone(), (old, new)))
        });
        asked.collect()
    }

    /// Whether the plan replaces or removes a value that nothing can write back, as no answer shows it.
    pub(crate) fn loses_unread(&self, binding: &KindBinding) -> bool {
        self.loses(binding, |field| field.unread)
    }

    /// Whether the plan replaces or removes a secret: no staged change can hold it.
    pub(crate) fn loses_secret(&self, binding: &KindBinding) -> bool {
        self.loses(binding, |field| field.unread || field.kind == FieldType::Secret)
    }

    fn loses(&self, binding: &KindBinding, is_meant: fn(&Field) -> bool) -> bool {
        let Some(before) = &self.before else { return false };
        // An update cannot give it back.
        let is_fixed = |name: &String| binding.fields.get(name).is_some_and(|field| field.create_only);
        if asked::kept(binding, before, &self.lost).any(|(name, _)| is_fixed(name)) {
            return true;
        }
        let touched = self.touched(binding);
        let mut meant = binding.fields.iter().filter(|(_, field)| is_meant(field));
        meant.any(|(name, field)| {
            let is_written =
                self.after.is_none() || touched.contains_key(name) || self.lost.contains_key(name);
            let had_one = field.unread || before.get(name).is_some_and(|value| !value.is_null());
            is_written && had_one
        })
    }

    pub(crate) fn part(&self, binding: &KindBinding, list: usize, list_place: &Place) -> Part {
        let mut touched = self.touched(binding);
        let own = self.place.iter().filter(|(name, value)| list_place.get(*name) != Some(value));
        let is_whole = !self.beside.is_partial && !self.beside.is_made;
        let gone: Vec<String> = self.lost.keys().cloned().collect();
        let rest = if is_whole { rest(self.before.as_ref(), &touched, &gone) } else { String::new() };
        if self.act.as_ref().is_some_and(|act| !act.is_due) {
            // It counts that this is so already.
            let value = |of: &Option<Content>, name: &String| of.as_ref()?.get(name).cloned();
            let both = |name: &String| Some((value(&self.before, name)?, value(&self.after, name)?));
            touched.extend(self.asked.iter().filter_map(|name| Some((name.clone(), both(name)?))));
        }
        touched.retain(|name, _| !self.beside.later.contains(name));
        for (name, value) in &self.beside.earlier {
            touched.entry(name.clone()).and_modify(|(before, _)| before.clone_from(value));
        }
        Part {
            list,
            own: own.map(|(name, value)| (name.clone(), value.clone())).collect(),
            id: self.id.clone(),
            name: self.name.clone(),
            key: self.key.clone(),
            items: self.items.clone(),
            is_there: (self.before.is_some() && !self.beside.is_made, self.after.is_some()),
            is_made: self.beside.is_made,
            is_gone: self.beside.is_gone,
            is_answered: false,
            is_number: false,
            between: self.beside.between.clone(),
            whole: if is_whole { whole(self.before.as_ref()) } else { String::new() },
            rest,
            lost: gone,
            touched,
        }
    }
}

impl Part {
    /// What the plan is bound to of it.
    pub(crate) fn base(&self, list: &ListMark) -> Value {
        json!([list.kind, list.place, self.key, self.id, self.whole, self.touched])
    }

    pub(crate) fn is_open(&self) -> bool {
        holes::is_reference(&self.id)
    }

    /// "firewall.alias/web".
    pub(crate) fn path(&self, kind: &str) -> String {
        format!("{kind}/{}", self.name).chars().take(200).collect()
    }

    /// Whether it is exactly as the plan saw it.
    pub(crate) fn is_unmoved(&self, binding: &KindBinding, now: Option<&Content>) -> bool {
        if self.is_made {
            return true;
        }
        if self.is_there.0 != now.is_some() {
            return false;
        }
        if self.whole.is_empty() {
            self.holds(binding, now, |(before, _)| before)
        } else {
            self.whole == whole(now)
        }
    }

    /// Whether somebody else changed what the plan leaves alone.
    pub(crate) fn is_changed_beside(&self, now: Option<&Content>) -> bool {
        self.is_there == (true, true)
            && !self.rest.is_empty()
            && now.is_some()
            && self.rest != rest(now, &self.touched, &self.lost)
    }

    fn holds(
        &self,
        binding: &KindBinding,
        now: Option<&Content>,
        pick: fn(&(Value, Value)) -> &Value,
    ) -> bool {
        let value = |name: &str| now.and_then(|now| now.get(name)).cloned().unwrap_or_default();
        self.touched.iter().all(|(name, pair)| {
            let field = binding.fields.get(name);
            field.is_none_or(|field| field.unread || equal(field, pick(pair), &value(name)))
        })
    }

    pub(crate) fn stands(&self, binding: &KindBinding, now: Option<&Content>) -> Found {
        if self.is_gone && (now.is_none() || !self.is_there.1) {
            return Found::Both;
        }
        let is_before = match self.is_there {
            (false, _) => now.is_none() || (self.is_made && !self.is_as_wanted(binding, now)),
            (true, false) => self.is_unmoved(binding, now),
            (true, true) => now.is_some() && self.holds(binding, now, |(before, _)| before),
        };
        let is_after = self.is_as_wanted(binding, now);
        match (is_before, is_after) {
            // It is still there, and no more what it was.
            (false, _) if self.is_gone => Found::Between(self.differing(binding, now)),
            (true, true) => Found::Both,
            (true, false) => Found::Before,
            (false, true) => Found::After,
            (false, false) if self.is_adjusted(binding, now) => Found::Adjusted(self.differing(binding, now)),
            (false, false) if self.is_between(binding, now) => Found::Between(self.differing(binding, now)),
            (false, false) => Found::Other(self.differing(binding, now)),
        }
    }

    fn is_as_wanted(&self, binding: &KindBinding, now: Option<&Content>) -> bool {
        self.is_there.1 == now.is_some() && (now.is_none() || self.holds(binding, now, |(_, after)| after))
    }

    fn is_between(&self, binding: &KindBinding, now: Option<&Content>) -> bool {
        let Some(now) = now.filter(|_| self.is_there.1 && !self.between.is_empty()) else { return false };
        self.touched.iter().all(|(name, (before, after))| {
            let is = now.get(name).cloned().unwrap_or_default();
            let between = self.between.get(name).into_iter().flatten();
            let field = binding.fields.get(name);
            field.is_none_or(|field| between.chain([before, after]).any(|own| equal(field, own, &is)))
        })
    }

    /// Whether only values differ that the device may write in its own way, and none is as before.
    fn is_adjusted(&self, binding: &KindBinding, now: Option<&Content>) -> bool {
        let Some(now) = now.filter(|_| self.is_there.1) else { return false };
        self.touched.iter().all(|(name, (before, after))| {
            let Some(field) = binding.fields.get(name) else { return true };
            let is = now.get(name).cloned().unwrap_or_default();
            let is_moved = !self.is_there.0 || !equal(field, before, &is);
            field.unread
                || equal(field, after, &is)
                || (is_moved && rewritten::is(field, (before, after), &is))
        })
    }

    fn differing(&self, binding: &KindBinding, now: Option<&Content>) -> Value {
        let Some(now) = now else { return json!({ "object": self.name, "is": "absent" }) };
        if !self.is_there.1 {
            return json!({ "object": self.name, "is": "another" });
        }
        let shown = |name: &str, value: &Value| field::shown(binding.fields.get(name), value);
        let fields: Map<String, Value> = self
            .touched
            .iter()
            .map(|(name, (_, after))| (name, after, now.get(name).cloned().unwrap_or_default()))
            .filter(|(name, after, is)| {
                binding.fields.get(*name).is_none_or(|field| !field.unread && !equal(field, after, is))
            })
            .map(|(name, after, is)| match (shown(name, after), shown(name, &is)) {
                // Both are secrets.
                (wanted, is) if wanted == is => (name.clone(), json!("another secret")),
                (wanted, is) => (name.clone(), json!({ "wanted": wanted, "is": is })),
            })
            .collect();
        json!({ "object": self.name, "fields": fields })
    }
}
