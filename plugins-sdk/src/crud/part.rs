//! What a plan touches: one object, before and after, in a form that a later call can compare with the device.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::binding::{Field, FieldType, KindBinding};
use super::field::{Content, equal, to_json};
use crate::json as sdk_json;

const DIGEST_BYTES: usize = 8;

/// An object while the plan is made.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) feature: String,
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) name: String,
    /// The texts of its natural key.
    pub(crate) key: Vec<String>,
    /// Places of the changes that touch it.
    pub(crate) items: Vec<usize>,
    pub(crate) before: Option<Content>,
    pub(crate) after: Option<Content>,
    /// Fields that the changes name.
    pub(crate) asked: BTreeSet<String>,
}

/// The same as later calls need it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) key: Vec<String>,
    pub(crate) items: Vec<usize>,
    /// Whether it exists before, and after.
    pub(crate) is_there: (bool, bool),
    /// Digest of the whole object before.
    pub(crate) whole: String,
    /// Digest of what the plan leaves alone of it.
    pub(crate) rest: String,
    /// Touched fields, before and after.
    pub(crate) touched: BTreeMap<String, (Value, Value)>,
}

/// Where an object stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// As before and as after: the plan changes nothing of it that can be seen.
    Both,
    Before,
    After,
    /// Neither; what differs from what is wanted.
    Other(Value),
}

fn digest(value: &Value) -> String {
    hex::encode(&sdk_json::digest(value)[..DIGEST_BYTES])
}

fn whole(content: Option<&Content>) -> String {
    content.map(|content| digest(&to_json(content))).unwrap_or_default()
}

fn rest(content: Option<&Content>, touched: &BTreeMap<String, (Value, Value)>) -> String {
    let Some(content) = content else { return String::new() };
    let left: Content = content
        .iter()
        .filter(|(name, _)| !touched.contains_key(*name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    digest(&to_json(&left))
}

impl Draft {
    /// Fields that a write changes, with their values before and after.
    pub(crate) fn touched(&self, binding: &KindBinding) -> BTreeMap<String, (Value, Value)> {
        let Some(after) = &self.after else { return BTreeMap::new() };
        let value = |content: Option<&Content>, name: &str| {
            content.and_then(|content| content.get(name)).cloned().unwrap_or_default()
        };
        let asked = self.asked.iter().filter_map(|name| {
            let field = binding.fields.get(name)?;
            let (old, new) = (value(self.before.as_ref(), name), value(Some(after), name));
            let is_changed = self.before.is_none() || field.unread || !equal(field, &old, &new);
            is_changed.then(|| (name.clone(), (old, new)))
        });
        asked.collect()
    }

    /// Whether the plan replaces or removes a value of a field that no answer shows: nothing can write it back.
    pub(crate) fn loses_unread(&self, binding: &KindBinding) -> bool {
        self.loses(binding, |field| field.unread)
    }

    /// Whether the plan replaces or removes a secret: no staged change can hold it.
    pub(crate) fn loses_secret(&self, binding: &KindBinding) -> bool {
        self.loses(binding, |field| field.unread || field.kind == FieldType::Secret)
    }

    fn loses(&self, binding: &KindBinding, is_meant: fn(&Field) -> bool) -> bool {
        let Some(before) = &self.before else { return false };
        let touched = self.touched(binding);
        let mut meant = binding.fields.iter().filter(|(_, field)| is_meant(field));
        meant.any(|(name, field)| {
            let is_written = self.after.is_none() || touched.contains_key(name);
            let had_one = field.unread || before.get(name).is_some_and(|value| !value.is_null());
            is_written && had_one
        })
    }

    pub(crate) fn part(&self, binding: &KindBinding) -> Part {
        let touched = self.touched(binding);
        Part {
            kind: self.kind.clone(),
            id: self.id.clone(),
            name: self.name.clone(),
            key: self.key.clone(),
            items: self.items.clone(),
            is_there: (self.before.is_some(), self.after.is_some()),
            whole: whole(self.before.as_ref()),
            rest: rest(self.before.as_ref(), &touched),
            touched,
        }
    }
}

impl Part {
    /// What the plan is bound to of it.
    pub(crate) fn base(&self) -> Value {
        json!([self.kind, self.key, self.id, self.whole])
    }

    /// "firewall.alias/web".
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.kind, self.name).chars().take(200).collect()
    }

    /// Whether it is exactly as the plan saw it.
    pub(crate) fn is_unmoved(&self, now: Option<&Content>) -> bool {
        self.is_there.0 == now.is_some() && self.whole == whole(now)
    }

    /// Whether somebody else changed what the plan leaves alone.
    pub(crate) fn is_changed_beside(&self, now: Option<&Content>) -> bool {
        self.is_there == (true, true) && now.is_some() && self.rest != rest(now, &self.touched)
    }

    pub(crate) fn stands(&self, binding: &KindBinding, now: Option<&Content>) -> Found {
        let value = |name: &str| now.and_then(|now| now.get(name)).cloned().unwrap_or_default();
        let holds = |pick: fn(&(Value, Value)) -> &Value| {
            self.touched.iter().all(|(name, pair)| {
                let field = binding.fields.get(name);
                field.is_none_or(|field| field.unread || equal(field, pick(pair), &value(name)))
            })
        };
        let is_before = match self.is_there.0 {
            false => now.is_none(),
            true if !self.is_there.1 => self.is_unmoved(now),
            true => now.is_some() && holds(|(before, _)| before),
        };
        let is_after = self.is_there.1 == now.is_some() && (now.is_none() || holds(|(_, after)| after));
        match (is_before, is_after) {
            (true, true) => Found::Both,
            (true, false) => Found::Before,
            (false, true) => Found::After,
            (false, false) => Found::Other(self.differing(binding, now)),
        }
    }

    fn differing(&self, binding: &KindBinding, now: Option<&Content>) -> Value {
        let Some(now) = now else { return json!({ "object": self.path(), "is": "absent" }) };
        if !self.is_there.1 {
            return json!({ "object": self.path(), "is": "another" });
        }
        let shown = |name: &str, value: &Value| match binding.fields.get(name).map(|field| field.kind) {
            Some(FieldType::Secret) => json!("another secret"),
            _ => value.clone(),
        };
        let fields: serde_json::Map<String, Value> = self
            .touched
            .iter()
            .map(|(name, (_, after))| (name, after, now.get(name).cloned().unwrap_or_default()))
            .filter(|(name, after, is)| {
                binding.fields.get(*name).is_none_or(|field| !field.unread && !equal(field, after, is))
            })
            .map(|(name, after, is)| {
                (name.clone(), json!({ "wanted": shown(name, after), "is": shown(name, &is) }))
            })
            .collect();
        json!({ "object": self.path(), "fields": fields })
    }
}
