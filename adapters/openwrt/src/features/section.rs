//! Editing one section of a table: finding it by its natural key, the edits,
//! and the change that brings the state back.

use heddle_sdk::{Change, Danger, Fault, FaultExt, Operation, PlanStep, fault};
use serde_json::{Map, Value, json};

use super::{Edited, Naming, Notes, SectionFeature, Type, values};
use crate::features::order;
use crate::uci::{Config, Edit, Entry, Options, Section};

/// What one change does to the model.
pub(crate) struct Done {
    pub(crate) calls: Vec<Value>,
    /// Takes the change back, in order.
    pub(crate) back: Vec<Edit>,
    pub(crate) step: PlanStep,
    pub(crate) danger: Danger,
    pub(crate) notes: Notes,
    pub(crate) inverse: Option<Vec<Change>>,
}

/// The natural key of a section, as one text.
pub(crate) fn key_of(feature: &SectionFeature, section: &Section) -> String {
    let part = |name: &str| match feature.naming {
        Naming::Key => section.id.clone(),
        _ => section.options.get(name).map(|entry| entry.words().join(" ")).unwrap_or_default(),
    };
    let key = feature.key.iter().map(|field| part(field.name)).collect::<Vec<_>>().join(":");
    if feature.naming == Naming::Single { feature.section.to_owned() } else { key }
}

fn has_key(feature: &SectionFeature, section: &Section, wanted: &[String]) -> bool {
    feature.key.iter().zip(wanted).all(|(field, wanted)| {
        match (feature.naming, section.options.get(field.name)) {
            (Naming::Key, _) => section.id == *wanted,
            (_, Some(entry)) => match field.takes {
                Type::List(_) => entry.words().iter().any(|word| word.eq_ignore_ascii_case(wanted)),
                _ => entry.as_text() == Some(wanted.as_str()),
            },
            (_, None) => false,
        }
    })
}

fn find<'a>(
    feature: &SectionFeature,
    config: &'a Config,
    key: &[String],
) -> Result<Option<&'a Section>, Fault> {
    let mut matching = config.of_kind(feature.section).filter(|section| has_key(feature, section, key));
    let first = matching.next();
    let others = matching.count();
    if others > 0 && feature.naming != Naming::Single {
        return Err(fault::invalid(format!(
            "{} sections are called '{}'; rename all but one at the device first",
            others + 1,
            key.join(":")
        ))
        .with_code("ambiguous"));
    }
    Ok(first)
}

/// A name for a new section: letters, digits and underscores only.
fn new_name(feature: &SectionFeature, config: &Config, key: &[String]) -> String {
    let Naming::Derived(prefix) = feature.naming else { return key.join("_") };
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let mut name: String = prefix.chars().chain(key.join("_").chars().map(word)).take(48).collect();
    let base = name.clone();
    let mut next = 2;
    while config.by_id(&name).is_some() {
        name = format!("{base}_{next}");
        next += 1;
    }
    name
}

/// What people see of a section.
fn shown(feature: &SectionFeature, section: &Section) -> String {
    let mut body = section.options_json();
    if feature.naming == Naming::Key {
        body["name"] = json!(section.id);
    }
    body.to_string()
}

/// Applies one change to the model.
pub(crate) fn apply(
    feature: &'static SectionFeature,
    change: &Change,
    config: &mut Config,
) -> Result<Done, Fault> {
    let payload: Value =
        serde_json::from_str(&change.payload).map_err(|_| fault::invalid("the payload is not JSON"))?;
    let key =
        feature.key.iter().map(|field| values::key_text(field, &payload)).collect::<Result<Vec<_>, _>>()?;
    let found = find(feature, config, &key)?.cloned();
    let names = key.join(":");
    let config_before = config.clone();
    let (mut calls, mut back) = (Vec::new(), Vec::new());
    let mut send = |config: &mut Config, edit: Edit| {
        let (sent, undone) = config.apply(edit);
        calls.extend(sent);
        back.splice(0..0, undone);
    };
    let uid = match (change.operation, &found) {
        (Operation::Create, Some(_)) => {
            return Err(fault::invalid(format!("'{names}' exists; use operation update")).with_code("exists"));
        }
        (Operation::Create, None) => {
            let uid = create(feature, &payload, &key, config, &mut send)?;
            Some(uid)
        }
        (Operation::Update | Operation::Delete, None) => {
            return Err(fault::not_found(format!("there is no '{names}' of '{}'", feature.id)));
        }
        (Operation::Update, Some(section)) => {
            update(feature, &payload, section, config, &mut send)?;
            Some(section.uid)
        }
        (Operation::Delete, Some(section)) => {
            send(config, Edit::Delete { uid: section.uid });
            None
        }
    };
    let after = uid.and_then(|uid| config.section(uid));
    let mut notes = Notes::default();
    (feature.review)(&Edited { before: found.as_ref(), after, config }, &mut notes);
    refuse_errors(&notes)?;
    let inverse = inverse(feature, change, &key, found.as_ref(), after, &config_before);
    let verb = match change.operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
    };
    let title = feature.title.to_lowercase();
    let summary =
        if names.is_empty() { format!("{verb} {title}") } else { format!("{verb} {title} '{names}'") };
    let step = PlanStep {
        summary,
        before: found.as_ref().map(|section| shown(feature, section)),
        after: after.map(|section| shown(feature, section)),
    };
    let danger = if change.operation == Operation::Delete { feature.delete_danger } else { Danger::Normal };
    Ok(Done { calls, back, step, danger, notes, inverse })
}

fn refuse_errors(notes: &Notes) -> Result<(), Fault> {
    let Some((_, first)) = notes.errors.first() else { return Ok(()) };
    let fault = fault::invalid(first.clone());
    Err(notes
        .errors
        .iter()
        .fold(fault, |fault, (pointer, message)| fault.with_field(pointer.clone(), message.clone())))
}

fn create(
    feature: &SectionFeature,
    payload: &Value,
    key: &[String],
    config: &mut Config,
    send: &mut impl FnMut(&mut Config, Edit),
) -> Result<usize, Fault> {
    if feature.naming == Naming::Single {
        return Err(fault::invalid(format!("'{}' cannot be created", feature.id)));
    }
    let mut options = Options::new();
    if feature.naming != Naming::Key {
        for (field, text) in feature.key.iter().zip(key) {
            let entry = if matches!(field.takes, Type::List(_)) {
                Entry::List(vec![text.clone()])
            } else {
                Entry::Text(text.clone())
            };
            options.insert(field.name.to_owned(), entry);
        }
    }
    for field in feature.fields {
        let Some(entry) =
            payload.get(field.name).map(|value| values::to_entry(field, value)).transpose()?.flatten()
        else {
            continue;
        };
        options.insert(field.name.to_owned(), entry);
    }
    if let Some(missing) = feature.required.iter().find(|name| !options.contains_key(**name)) {
        return Err(fault::invalid(format!("'{missing}' is missing"))
            .with_field(format!("/{missing}"), "is required"));
    }
    let name = new_name(feature, config, key);
    if config.by_id(&name).is_some() {
        return Err(fault::invalid(format!("another section is called '{name}'; choose another name"))
            .with_code("exists"));
    }
    let uid = config.fresh_uid();
    send(config, Edit::Add { uid, kind: feature.section.to_owned(), name: Some(name), options });
    Ok(uid)
}

fn update(
    feature: &SectionFeature,
    payload: &Value,
    section: &Section,
    config: &mut Config,
    send: &mut impl FnMut(&mut Config, Edit),
) -> Result<(), Fault> {
    let (mut set, mut unset) = (Options::new(), Vec::new());
    for field in feature.fields {
        let Some(value) = payload.get(field.name) else { continue };
        match values::to_entry(field, value)? {
            Some(entry) => {
                let entry = values::keep_shape(section.options.get(field.name), entry);
                set.insert(field.name.to_owned(), entry);
            }
            None => unset.push(field.name.to_owned()),
        }
    }
    send(config, Edit::Set { uid: section.uid, options: set });
    if !unset.is_empty() {
        send(config, Edit::Unset { uid: section.uid, options: unset });
    }
    Ok(())
}

fn key_payload(feature: &SectionFeature, key: &[String]) -> Map<String, Value> {
    let value = |takes: Type, text: &String| match takes {
        Type::Number(..) => text.parse::<u32>().map_or_else(|_| json!(text), |number| json!(number)),
        _ => json!(text),
    };
    feature
        .key
        .iter()
        .zip(key)
        .map(|(field, text)| (field.name.to_owned(), value(field.takes, text)))
        .collect()
}

/// The changes that bring the section back, when payloads can say them.
fn inverse(
    feature: &'static SectionFeature,
    change: &Change,
    key: &[String],
    before: Option<&Section>,
    after: Option<&Section>,
    config_before: &Config,
) -> Option<Vec<Change>> {
    let mut payload = key_payload(feature, key);
    let (operation, extra) = match (before, after) {
        (None, _) => (Operation::Delete, None),
        (Some(before), Some(after)) => {
            for field in feature.fields {
                match (before.options.get(field.name), after.options.get(field.name)) {
                    (old, new) if old == new => {}
                    (Some(old), _) => {
                        drop(payload.insert(field.name.to_owned(), values::to_payload(field, old)?));
                    }
                    (None, _) => drop(payload.insert(field.name.to_owned(), Value::Null)),
                }
            }
            if payload.len() == key.len() {
                return Some(Vec::new());
            }
            (Operation::Update, None)
        }
        (Some(before), None) => {
            for (name, entry) in &before.options {
                if feature.key.iter().any(|field| field.name == name) {
                    if entry.words().len() > 1 && matches!(feature.key[0].takes, Type::List(_)) {
                        return None;
                    }
                    continue;
                }
                let field = feature.fields.iter().find(|field| field.name == name)?;
                payload.insert(name.clone(), values::to_payload(field, entry)?);
            }
            if feature.required.iter().any(|name| !payload.contains_key(*name)) {
                return None;
            }
            (Operation::Create, feature.order.and_then(|id| order::change_back(id, config_before, change)))
        }
    };
    let first = Change {
        feature: feature.id.to_owned(),
        operation,
        site: change.site.clone(),
        payload: Value::Object(payload).to_string(),
    };
    Some(std::iter::once(first).chain(extra).collect())
}
