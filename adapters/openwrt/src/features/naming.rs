//! What sections are called: their natural keys, and the names of those that have none of their own.
//!
//! Sections that share a key are told apart by their order, `Allow-Web#2`. A section without a key is named by its
//! type and a digest of what it says, `@rule.1f3a9c02`: that holds until it is written.

use std::collections::BTreeMap;

use heddle_sdk::{Fault, FaultExt, fault, json as sdk_json};
use serde_json::{Map, Value, json};

use super::{Naming, SectionFeature, Type, values};
use crate::identity::short_digest;
use crate::uci::{Config, Entry, Section};

/// The natural key, a part for each key field; none when the section lacks one.
pub(crate) fn natural(feature: &SectionFeature, section: &Section) -> Option<Vec<String>> {
    match feature.naming {
        Naming::Single => Some(Vec::new()),
        Naming::Key => (!section.is_anonymous).then(|| vec![section.id.clone()]),
        Naming::Derived(_) => feature
            .key
            .iter()
            .map(|field| {
                let entry = section.options.get(field.name)?;
                match field.takes {
                    Type::List(_) => entry.words().first().map(|word| (*word).to_owned()),
                    Type::Number(..) => {
                        entry.as_text().filter(|text| text.parse::<u32>().is_ok()).map(str::to_owned)
                    }
                    _ => entry.as_text().filter(|text| !text.is_empty()).map(str::to_owned),
                }
            })
            .collect(),
    }
}

/// What a section without a name is about, for people.
pub(crate) fn glimpse(section: &Section) -> String {
    let words: Vec<String> =
        ["src", "dest", "proto", "src_dport", "dest_port", "dest_ip", "target", "interface", "name", "ip"]
            .iter()
            .filter_map(|name| Some(format!("{name} {}", section.options.get(*name)?.words().join(" "))))
            .collect();
    if words.is_empty() { "no options".to_owned() } else { words.join(", ") }
}

/// The name of every section of the feature, in file order: no two are the same.
pub(crate) fn names(feature: &SectionFeature, config: &Config) -> Vec<(usize, Vec<String>)> {
    let name_of = |section: &Section| {
        natural(feature, section)
            .unwrap_or_else(|| vec![format!("@{}.{}", section.kind, short_digest(&section.options_json()))])
    };
    let mut all: Vec<(usize, Vec<String>)> =
        config.of_kind(feature.section).map(|section| (section.uid, name_of(section))).collect();
    let mut alike: BTreeMap<Vec<String>, (usize, usize)> = BTreeMap::new();
    for (_, name) in &all {
        alike.entry(name.clone()).or_default().0 += 1;
    }
    for (_, name) in &mut all {
        let Some((count, seen)) = alike.get_mut(name) else { continue };
        if let (2.., Some(first)) = (*count, name.first_mut()) {
            *seen += 1;
            *first = format!("{first}#{seen}");
        }
    }
    all
}

/// The name of one section.
pub(crate) fn name_of(feature: &SectionFeature, config: &Config, uid: usize) -> Vec<String> {
    names(feature, config).into_iter().find(|(of, _)| *of == uid).map(|(_, name)| name).unwrap_or_default()
}

/// The key that a payload gives.
pub(crate) fn key_of(feature: &SectionFeature, payload: &Value) -> Result<Vec<String>, Fault> {
    let mut key = Vec::with_capacity(feature.key.len());
    for field in feature.key {
        key.push(values::key_text(field, payload)?);
        if key[0].starts_with('@') {
            break;
        }
    }
    Ok(key)
}

/// The section of a key or name.
pub(crate) fn find<'a>(
    feature: &SectionFeature,
    config: &'a Config,
    wanted: &[String],
) -> Result<Option<&'a Section>, Fault> {
    let is_list = feature.key.first().is_some_and(|field| matches!(field.takes, Type::List(_)));
    let same = |a: &[String], b: &[String]| {
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| if is_list { a.eq_ignore_ascii_case(b) } else { a == b })
    };
    let by_key = |section: &&Section| natural(feature, section).is_some_and(|key| same(&key, wanted));
    let mut found: Vec<&Section> = config.of_kind(feature.section).filter(by_key).collect();
    if found.is_empty() && is_list {
        let holds = |section: &&Section| {
            section.options.get(feature.key[0].name).is_some_and(|entry| {
                entry
                    .words()
                    .iter()
                    .any(|word| wanted.first().is_some_and(|key| word.eq_ignore_ascii_case(key)))
            })
        };
        found = config.of_kind(feature.section).filter(holds).collect();
    }
    match found[..] {
        [] => {}
        [one] => return Ok(Some(one)),
        [first, ..] if feature.naming == Naming::Single => return Ok(Some(first)),
        _ => {
            let name = wanted.join(":");
            return Err(fault::invalid(format!(
                "{} sections are called '{name}'; say which: '{name}#1' is the first in the file",
                found.len()
            ))
            .with_code("ambiguous")
            .with_field(
                feature.key.first().map_or(String::new(), |field| format!("/{}", field.name)),
                format!("stands for {} sections", found.len()),
            ));
        }
    }
    let named = names(feature, config).into_iter().find(|(_, name)| name.as_slice() == wanted);
    Ok(named.and_then(|(uid, _)| config.section(uid)))
}

/// A name for the section of a new object: letters, digits and underscores. It follows from the key alone, so that
/// the ids of a plan hold whatever is added meanwhile.
pub(crate) fn section_name(feature: &SectionFeature, config: &Config, key: &[String]) -> String {
    let Naming::Derived(prefix) = feature.naming else { return key.join("_") };
    let text = key.join("_");
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let mut name: String = prefix.chars().chain(text.chars().map(word)).take(48).collect();
    // Keys that differ only in what a name cannot hold must not share one.
    if prefix.chars().chain(text.chars()).ne(name.chars()) {
        name = format!("{name}_{}", &hex::encode(sdk_json::digest(&json!(key)))[..4]);
    }
    let base = name.clone();
    let mut next = 2;
    while config.by_id(&name).is_some() {
        name = format!("{base}_{next}");
        next += 1;
    }
    name
}

/// The key fields with these values.
pub(crate) fn key_payload(feature: &SectionFeature, key: &[String]) -> Map<String, Value> {
    let value = |takes: Type, text: &String| match takes {
        Type::Number(..) => text.parse::<u32>().map_or_else(|_| json!(text), |number| json!(number)),
        _ => json!(text),
    };
    let fields = feature.key.iter().zip(key);
    fields.map(|(field, text)| (field.name.to_owned(), value(field.takes, text))).collect()
}

/// Options that no field of the feature says, as they are in the file. Secrets are never among them.
pub(crate) fn other_options(
    feature: &SectionFeature,
    section: &Section,
    name: &[String],
) -> Map<String, Value> {
    let mut others = Map::new();
    for (option, entry) in &section.options {
        let key = feature.key.iter().position(|field| field.name == option);
        let is_said = match key {
            Some(at) if feature.naming != Naming::Key => {
                matches!(entry.words()[..], [only] if name.get(at).is_some_and(|part| part == only))
                    || (name.get(at).map(String::as_str) == entry.as_text())
            }
            _ => feature
                .fields
                .iter()
                .find(|field| field.name == option)
                .is_some_and(|field| values::to_payload(field, entry).is_some()),
        };
        if !is_said && !holds_secret(entry) {
            others.insert(option.clone(), entry.to_json());
        }
    }
    others
}

fn holds_secret(entry: &Entry) -> bool {
    entry.words().iter().any(|word| word.contains("hdl-secret:"))
}

/// What is shown of a section: the fields of its feature as an update takes them, and `options` for the rest.
pub(crate) fn body(feature: &SectionFeature, section: &Section, name: &[String]) -> Map<String, Value> {
    let mut body = key_payload(feature, name);
    for field in feature.fields.iter().filter(|field| !matches!(field.takes, Type::Secret)) {
        if let Some(value) =
            section.options.get(field.name).and_then(|entry| values::to_payload(field, entry))
        {
            body.insert(field.name.to_owned(), value);
        }
    }
    let others = other_options(feature, section, name);
    if !others.is_empty() {
        body.insert("options".to_owned(), Value::Object(others));
    }
    body
}
