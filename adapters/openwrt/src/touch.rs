//! What a plan touches: the options it sets, unsets, adds or deletes, and the relative order that it depends on.
//! Everything else in the files belongs to other people.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::identity::{self, Finder, Ident};
use crate::uci::{Config, Entry, Section};

pub(crate) type Configs = BTreeMap<String, Config>;

/// What one change says that it touches.
#[derive(Debug, Clone)]
pub(crate) enum Touch {
    /// Options of a section that is there before and after.
    Options(usize, Vec<String>),
    /// A section that is added or deleted.
    Whole(usize),
    /// Sections of one type, whose order among themselves matters.
    Order(Vec<usize>),
}

/// Before and after of one option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pair(pub(crate) Option<Value>, pub(crate) Option<Value>);

/// One section that the plan touches.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) config: String,
    pub(crate) kind: String,
    pub(crate) label: String,
    pub(crate) path: String,
    pub(crate) ident: Ident,
    /// The changes of the plan that touch it, by their places.
    pub(crate) items: Vec<usize>,
    /// Whether it is there before and after.
    pub(crate) there: (bool, bool),
    pub(crate) options: BTreeMap<String, Pair>,
}

/// Sections whose relative order the plan changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) config: String,
    pub(crate) kind: String,
    pub(crate) items: Vec<usize>,
    /// In the order before.
    pub(crate) idents: Vec<Ident>,
    /// The order after, as places in `idents`.
    pub(crate) after: Vec<usize>,
}

/// How a part of the device stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// As before and as after: the plan leaves it.
    Both,
    Before,
    After,
    /// What differs, one object an option.
    Other(Vec<Value>),
}

fn named(touched: &BTreeMap<String, Pair>) -> BTreeSet<String> {
    touched.keys().cloned().collect()
}

impl Part {
    pub(crate) fn section<'a>(&self, finder: &Finder<'a>) -> Option<&'a Section> {
        finder.find(&self.ident, &named(&self.options))
    }

    /// Whether other people changed options of the section that the plan does not touch.
    pub(crate) fn is_changed_beside(&self, section: &Section) -> bool {
        self.there == (true, true) && identity::rest_digest(section, &named(&self.options)) != self.ident.rest
    }

    pub(crate) fn stands(&self, found: Option<&Section>) -> Found {
        let value = |name: &String| found.and_then(|section| section.options.get(name)).map(Entry::to_json);
        let fits = |there: bool, side: fn(&Pair) -> &Option<Value>| {
            found.is_some() == there
                && (!there || self.options.iter().all(|(name, pair)| value(name) == *side(pair)))
        };
        match (fits(self.there.0, |pair| &pair.0), fits(self.there.1, |pair| &pair.1)) {
            (true, true) => Found::Both,
            (true, false) => Found::Before,
            (false, true) => Found::After,
            (false, false) => Found::Other(self.differences(found)),
        }
    }

    fn differences(&self, found: Option<&Section>) -> Vec<Value> {
        if found.is_none() {
            return vec![json!({"object": self.path, "found": "absent"})];
        }
        if !self.there.0 && self.there.1 {
            let other = found.is_some_and(|section| !section.options.is_empty());
            return vec![
                json!({"object": self.path, "found": if other { "another section of this name" } else { "empty" }}),
            ];
        }
        let value = |name: &String| found.and_then(|section| section.options.get(name)).map(Entry::to_json);
        self.options
            .iter()
            .filter(|(name, pair)| value(name) != pair.0 || value(name) != pair.1)
            .map(|(name, pair)| {
                json!({"object": self.path, "option": name, "before": pair.0, "wanted": pair.1, "found": value(name)})
            })
            .collect()
    }

    /// Pointers and words for what is not as it should be: "was '1', is '0'".
    pub(crate) fn moved(&self, found: Option<&Section>, is_restore: bool) -> Vec<(String, String)> {
        let should_be = if is_restore { self.there.1 } else { self.there.0 };
        let pointer = format!("/{}", self.path);
        match (should_be, found) {
            (true, None) => vec![(pointer, format!("{} is not there any more", self.label))],
            (false, Some(_)) => vec![(pointer, format!("{} is there already", self.label))],
            (false, None) => Vec::new(),
            (true, Some(section)) => {
                let wrong = self.options.iter().filter_map(|(name, pair)| {
                    let wanted = if is_restore { &pair.1 } else { &pair.0 };
                    let is = section.options.get(name).map(Entry::to_json);
                    (is != *wanted).then(|| {
                        (
                            format!("{pointer}/{name}"),
                            format!("was {}, is {}", say(wanted.as_ref()), say(is.as_ref())),
                        )
                    })
                });
                wrong.collect()
            }
        }
    }
}

/// A value in words; a secret only as such.
fn say(value: Option<&Value>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(Value::String(text)) if text.contains("hdl-secret:") => "another secret".to_owned(),
        Some(Value::String(text)) => format!("'{}'", text.chars().take(80).collect::<String>()),
        Some(Value::Array(items)) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            say(Some(&json!(words.join(" "))))
        }
        Some(_) => "something else".to_owned(),
    }
}

impl Order {
    pub(crate) fn stands(&self, finder: &Finder<'_>, config: &Config) -> Found {
        let nothing = BTreeSet::new();
        let place = |ident: &Ident| {
            let uid = finder.find(ident, &nothing)?.uid;
            config.sections.iter().position(|section| section.uid == uid)
        };
        let places: Vec<Option<usize>> = self.idents.iter().map(place).collect();
        // A section that was removed has no position to compare.
        let before: Vec<usize> = places.iter().copied().flatten().collect();
        let after: Vec<usize> =
            self.after.iter().filter_map(|at| places.get(*at).copied().flatten()).collect();
        match (before.is_sorted(), after.is_sorted()) {
            (true, true) => Found::Both,
            (true, false) => Found::Before,
            (false, true) => Found::After,
            (false, false) => Found::Other(vec![
                json!({"object": format!("{}/{}", self.config, self.kind), "found": "another order"}),
            ]),
        }
    }
}

/// Gathers what all changes of a plan touch.
pub(crate) fn gather(
    before: &Configs,
    after: &Configs,
    touches: &[(&str, Vec<Touch>)],
) -> (Vec<Part>, Vec<Order>) {
    let (mut parts, mut orders) = (Vec::new(), Vec::new());
    for (name, config) in before {
        let last = &after[name];
        let mut by_uid: BTreeMap<usize, (BTreeSet<usize>, BTreeSet<String>)> = BTreeMap::new();
        for (item, (of, touches)) in touches.iter().enumerate().filter(|(_, (of, _))| of == name) {
            debug_assert_eq!(of, name);
            for touch in touches {
                match touch {
                    Touch::Options(uid, options) => {
                        let (items, all) = by_uid.entry(*uid).or_default();
                        items.insert(item);
                        all.extend(options.iter().cloned());
                    }
                    Touch::Whole(uid) => {
                        by_uid.entry(*uid).or_default().0.insert(item);
                    }
                    Touch::Order(uids) => orders.extend(order(config, last, item, uids)),
                }
            }
        }
        for (uid, (items, options)) in by_uid {
            parts.extend(part(config, last, uid, items, options));
        }
    }
    (parts, orders)
}

/// Absent for a section that the plan adds and deletes again.
fn part(
    before: &Config,
    after: &Config,
    uid: usize,
    items: BTreeSet<usize>,
    mut options: BTreeSet<String>,
) -> Option<Part> {
    let (old, new) = (before.section(uid), after.section(uid));
    let shown = old.or(new)?;
    if old.is_none() || new.is_none() {
        options.extend(shown.options.keys().cloned());
    }
    let ident = old.map_or_else(|| Ident::of_new(shown), |old| Ident::of(before, old, new, &options));
    let value = |section: Option<&Section>, name: &String| {
        section.and_then(|section| section.options.get(name)).map(Entry::to_json)
    };
    Some(Part {
        config: before.name.clone(),
        kind: shown.kind.clone(),
        label: identity::label(&before.name, shown),
        path: identity::path(&before.name, shown),
        ident,
        items: items.into_iter().collect(),
        there: (old.is_some(), new.is_some()),
        options: options
            .into_iter()
            .map(|name| (name.clone(), Pair(value(old, &name), value(new, &name))))
            .collect(),
    })
}

fn order(before: &Config, after: &Config, item: usize, uids: &[usize]) -> Option<Order> {
    let nothing = BTreeSet::new();
    let old: Vec<&Section> = before.sections.iter().filter(|section| uids.contains(&section.uid)).collect();
    let kind = old.first()?.kind.clone();
    let places =
        after.sections.iter().filter_map(|section| old.iter().position(|known| known.uid == section.uid));
    let after = places.collect();
    let idents = old.iter().map(|section| Ident::of(before, section, Some(section), &nothing)).collect();
    Some(Order { config: before.name.clone(), kind, items: vec![item], idents, after })
}
