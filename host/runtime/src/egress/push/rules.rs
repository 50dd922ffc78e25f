//! What a message asks for. Pure: nothing here waits, and nothing is kept of a message but digests.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};

use heddle_marketplace::push::{Channel, Differs, PushRule};
use serde_json::Value;

use super::limits::KEYS_MAX;
use super::site;
use super::told::{Place, Told, ToldSite};

/// What is remembered of the messages of a channel: digests of 8 bytes under a key that no controller knows.
#[derive(Debug, Default)]
pub(super) struct Memory {
    key: RandomState,
    seen: HashMap<u64, u64>,
}

impl Memory {
    /// A digest of values, in their order.
    pub(super) fn digest<'v>(&self, values: impl IntoIterator<Item = Option<&'v Value>>) -> u64 {
        let mut hasher = self.key.build_hasher();
        for value in values {
            match value {
                // What is not there is not the same as null.
                None => 0_u8.hash(&mut hasher),
                Some(value) => value.to_string().hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    /// Whether a message differs from the last one of the same thing, by the rule at this place. All of its things are
    /// remembered. A message that names no thing counts, and so does a thing for which there is no room.
    fn differs(&mut self, rule: usize, differs: &Differs, message: &Value) -> bool {
        let segments = segments(&differs.by);
        let star = segments.iter().rposition(|segment| segment == "*");
        let (walked, key) = segments.split_at(star.map_or(0, |star| star + 1));
        let mut things = Vec::new();
        walk(message, walked, &mut |thing| {
            things.push(thing);
            false
        });
        let mut is_other = things.is_empty();
        for thing in things {
            let Some(named) = at(thing, key) else {
                is_other = true;
                continue;
            };
            let number = Value::from(rule);
            let name = self.digest([Some(&number), Some(named)]);
            let values = self.digest(differs.of.iter().map(|pointer| thing.pointer(pointer)));
            is_other |= self.replace(name, values);
        }
        is_other
    }

    /// Remembers the digest of a thing; whether it is another one than before.
    fn replace(&mut self, name: u64, values: u64) -> bool {
        if self.seen.len() >= KEYS_MAX && !self.seen.contains_key(&name) {
            return true;
        }
        self.seen.insert(name, values) != Some(values)
    }
}

/// What a message asks for: one entry for each rule that fits.
pub(super) fn wanted(channel: &Channel, place: &Place, message: &Value, memory: &mut Memory) -> Vec<Told> {
    let mut told = Vec::new();
    for (number, rule) in channel.rules.iter().enumerate() {
        if !fits(rule, message) {
            continue;
        }
        if rule.differs.as_ref().is_some_and(|differs| !memory.differs(number, differs, message)) {
            continue;
        }
        told.push(Told {
            reads: rule.reads.clone(),
            site: site::of(channel, place, message),
            again_s: rule.again_s,
            every_s: rule.every_s,
            rule: Some(number),
        });
    }
    told
}

/// Messages may be missing: everything that the channel can tell has to be read.
pub(super) fn gap(channel: &Channel, place: &Place) -> Told {
    let site = match place {
        Place::Controller => ToldSite::All,
        Place::Site(id) => ToldSite::Id(id.clone()),
    };
    let reads = channel.reads().into_iter().map(str::to_owned).collect();
    Told { reads, site, again_s: None, every_s: None, rule: None }
}

/// Whether all conditions of a rule hold.
fn fits(rule: &PushRule, message: &Value) -> bool {
    rule.when.iter().all(|(pointer, accepted)| {
        walk(message, &segments(pointer), &mut |found| {
            accepted.iter().any(|accepted| is_like(accepted, found))
        })
    })
}

fn is_like(accepted: &Value, found: &Value) -> bool {
    match (accepted, found) {
        (Value::String(pattern), Value::String(text)) => like(pattern, text),
        _ => accepted == found,
    }
}

/// Whether a text is like a pattern, in which each `*` stands for any text.
pub(super) fn like(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(found) = left.find(part) else { return false };
        left = left.get(found + part.len()..).unwrap_or_default();
    }
    left.ends_with(last)
}

/// The segments of a JSON pointer (RFC 6901).
fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect()
}

fn at<'v>(value: &'v Value, segments: &[String]) -> Option<&'v Value> {
    segments.iter().try_fold(value, |value, segment| child(value, segment))
}

fn child<'v>(value: &'v Value, segment: &str) -> Option<&'v Value> {
    match value {
        Value::Object(fields) => fields.get(segment),
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Shows each value at a pointer, whose `*` stand for any element, until one satisfies; whether one did.
fn walk<'v>(value: &'v Value, segments: &[String], satisfies: &mut impl FnMut(&'v Value) -> bool) -> bool {
    let Some((segment, rest)) = segments.split_first() else { return satisfies(value) };
    match value {
        Value::Array(items) if segment == "*" => items.iter().any(|item| walk(item, rest, satisfies)),
        Value::Object(fields) if segment == "*" => fields.values().any(|field| walk(field, rest, satisfies)),
        _ => child(value, segment).is_some_and(|child| walk(child, rest, satisfies)),
    }
}

#[cfg(test)]
mod tests;
