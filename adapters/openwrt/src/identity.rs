//! Finding a section again on a device that others write to as well.
//!
//! A named section is found by its name. The device numbers the others by their place in the file, so they are
//! found by their natural key, or, where they have none of their own, by what the plan leaves alone of them.

use std::collections::{BTreeMap, BTreeSet};

use heddle_sdk::json as sdk_json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::features::{SECTIONS, SectionFeature, naming};
use crate::uci::{Config, Section};

const LABEL_CHARS_MAX: usize = 120;

/// The feature that edits sections of this type.
pub(crate) fn feature_of(config: &str, kind: &str) -> Option<&'static SectionFeature> {
    SECTIONS.iter().copied().find(|feature| feature.config == config && feature.section == kind)
}

/// The first eight hex digits of the digest of a value: enough to see that something changed.
pub(crate) fn short_digest(value: &Value) -> String {
    hex::encode(&sdk_json::digest(value)[..4])
}

/// The natural key as one text; none where the section has none.
fn key(config: &str, section: &Section) -> Option<String> {
    let feature = feature_of(config, &section.kind)?;
    naming::natural(feature, section).map(|parts| parts.join(":"))
}

/// What people call a section: "firewall rule 'Allow-Ping'".
pub(crate) fn label(config: &str, section: &Section) -> String {
    let text = match feature_of(config, &section.kind) {
        Some(feature) => {
            let title = feature.title.to_lowercase();
            match naming::natural(feature, section) {
                Some(parts) if parts.is_empty() => title,
                Some(parts) => format!("{title} '{}'", parts.join(":")),
                None => format!("{title} without a name ({})", naming::glimpse(section)),
            }
        }
        None if section.is_anonymous => format!("unnamed section '{}' of '{config}'", section.kind),
        None => format!("section '{}' ({}) of '{config}'", section.id, section.kind),
    };
    text.chars().take(LABEL_CHARS_MAX).collect()
}

/// The object's name in `touches` and in fields of a fault: "firewall/rule/Allow-Ping".
pub(crate) fn path(config: &str, section: &Section) -> String {
    let name = key(config, section).filter(|key| !key.is_empty()).unwrap_or_else(|| {
        if section.is_anonymous {
            format!("@{}", short_digest(&section.options_json()))
        } else {
            section.id.clone()
        }
    });
    format!("{config}/{}/{name}", section.kind).chars().take(200).collect()
}

/// Returns the digest of the options other than `touched`.
pub(crate) fn rest_digest(section: &Section, touched: &BTreeSet<String>) -> String {
    let rest: BTreeMap<&String, Value> = section
        .options
        .iter()
        .filter(|(name, _)| !touched.contains(*name))
        .map(|(name, entry)| (name, entry.to_json()))
        .collect();
    short_digest(&json!([section.kind, rest]))
}

/// What an anonymous id must still name when a call uses it.
pub(crate) fn mark(config: &str, section: &Section) -> String {
    match key(config, section) {
        Some(key) => short_digest(&json!([section.kind, key])),
        None => short_digest(&json!([section.kind, section.options_json()])),
    }
}

/// How one section is found again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ident {
    /// The section's name; none where the device numbers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Its natural keys before and after, where no other section shares them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<String>,
    pub(crate) rest: String,
    /// Which one of those that look the same.
    #[serde(default)]
    nth: usize,
}

impl Ident {
    /// `before` is the section as the plan saw it in `config`; `after` as the plan leaves it.
    pub(crate) fn of(
        config: &Config,
        before: &Section,
        after: Option<&Section>,
        touched: &BTreeSet<String>,
    ) -> Self {
        let rest = rest_digest(before, touched);
        if !before.is_anonymous {
            return Ident { id: Some(before.id.clone()), keys: Vec::new(), rest, nth: 0 };
        }
        let own = key(&config.name, before);
        let alike = |other: &&Section| key(&config.name, other) == own;
        let is_unique = own.is_some() && config.of_kind(&before.kind).filter(alike).count() == 1;
        let mut keys = Vec::new();
        if is_unique {
            keys.extend(own);
            keys.extend(after.and_then(|after| key(&config.name, after)).filter(|new| !keys.contains(new)));
        }
        let same: Vec<usize> = config
            .of_kind(&before.kind)
            .filter(|other| rest_digest(other, touched) == rest)
            .map(|other| other.uid)
            .collect();
        // Of sections that are the same, a deleted one is there while there are as many as before.
        let nth = match after {
            None => same.len().saturating_sub(1),
            Some(_) => same.iter().position(|uid| *uid == before.uid).unwrap_or(0),
        };
        Ident { id: None, keys, rest, nth }
    }

    /// Of a section that the plan adds: it always has a name.
    pub(crate) fn of_new(section: &Section) -> Self {
        Ident { id: Some(section.id.clone()), keys: Vec::new(), rest: String::new(), nth: 0 }
    }
}

/// The sections of one type in a file, by their natural keys.
pub(crate) struct Finder<'a> {
    config: &'a Config,
    kind: &'a str,
    by_key: BTreeMap<String, Vec<&'a Section>>,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(config: &'a Config, kind: &'a str) -> Self {
        let mut by_key: BTreeMap<String, Vec<&Section>> = BTreeMap::new();
        for section in config.of_kind(kind) {
            if let Some(key) = key(&config.name, section) {
                by_key.entry(key).or_default().push(section);
            }
        }
        Finder { config, kind, by_key }
    }

    pub(crate) fn find(&self, ident: &Ident, touched: &BTreeSet<String>) -> Option<&'a Section> {
        if let Some(id) = &ident.id {
            return self.config.by_id(id).filter(|section| section.kind == self.kind);
        }
        let looks_the_same = |section: &&&Section| rest_digest(section, touched) == ident.rest;
        if !ident.keys.is_empty() {
            let named: Vec<&Section> = ident
                .keys
                .iter()
                .flat_map(|key| self.by_key.get(key).into_iter().flatten())
                .copied()
                .collect();
            return match named[..] {
                [] => None,
                [one] => Some(one),
                // Another person added a section of the same name.
                _ => named.iter().find(looks_the_same).copied(),
            };
        }
        let all: Vec<&Section> = self.config.of_kind(self.kind).collect();
        all.iter().filter(looks_the_same).nth(ident.nth).copied()
    }
}
