//! The device, as far as a plan touches it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::binding::{KindBinding, Shape};
use super::field::{self, Content};
use super::holes;
use super::key::Key;
use super::part::{Found, Part};
use super::plan::mark;
use super::read::{self, Ask, Row};
use super::token::Token;
use super::{Place, Vendor, key, place};
use crate::{Fault, Host};
use serde_json::json;

/// Most changes of others that are told, and the most of a list.
const FOREIGN_MAX: usize = 100;
const FOREIGN_CHARS: usize = 300;

pub(crate) struct State {
    /// By list of the token.
    lists: Vec<Listed>,
    /// By part.
    objects: Vec<Now>,
}

/// A list as it is now.
struct Listed {
    binding: KindBinding,
    rows: Vec<Row>,
    /// The natural keys of the rows.
    keys: Vec<Key>,
    /// Ids of rows that the plan takes away; an object that it adds may have the key of one.
    going: BTreeSet<String>,
}

/// An object as it is now.
struct Now {
    /// The vendor's id; none where it is not known.
    id: Option<String>,
    place: Place,
    /// None where the object does not exist.
    content: Option<Content>,
    /// Several objects have its natural key, by which it is found.
    is_ambiguous: bool,
}

/// Reads what a plan touches.
pub(crate) fn read(vendor: &dyn Vendor, host: &dyn Host, token: &Token) -> Result<State, Fault> {
    let all = 0..token.lists.len();
    let lists = all.map(|at| listed(vendor, host, token, at)).collect::<Result<Vec<_>, _>>()?;
    let mut objects = Vec::with_capacity(token.parts.len());
    for part in &token.parts {
        objects.push(now(vendor, host, &lists[part.list], &token.lists[part.list].place, part)?);
    }
    Ok(State { lists, objects })
}

/// The ids that some objects have by now, by their place in the plan: none where an object is not there, or several times.
pub(crate) fn ids(
    vendor: &dyn Vendor,
    host: &dyn Host,
    token: &Token,
    parts: &BTreeSet<usize>,
) -> Result<BTreeMap<usize, Option<String>>, Fault> {
    let mut lists: BTreeMap<usize, Listed> = BTreeMap::new();
    let mut out = BTreeMap::new();
    for at in parts {
        let Some(part) = token.parts.get(*at) else { continue };
        let list = match lists.entry(part.list) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(listed(vendor, host, token, part.list)?),
        };
        let found = list.rows_of(part);
        let id = if let [row] = found[..] { Some(row.id.clone()) } else { None };
        out.insert(*at, id);
    }
    Ok(out)
}

fn listed(vendor: &dyn Vendor, host: &dyn Host, token: &Token, at: usize) -> Result<Listed, Fault> {
    let list = &token.lists[at];
    let binding = KindBinding::of(host, &list.kind)?;
    let rows = match binding.shape {
        Shape::Items => match read::all(vendor, host, &binding, Ask::of(&list.place)) {
            // With a parent goes what belongs to it.
            Err(Fault::NotFound(_)) if binding.within.is_some() => Vec::new(),
            other => other?,
        },
        _ => Vec::new(),
    };
    let keys = rows.iter().map(|row| key::parts(&binding, &row.value)).collect();
    let is_going = |part: &&Part| part.list == at && part.is_there == (true, false) && !part.is_open();
    let going = token.parts.iter().filter(is_going).map(|part| part.id.clone()).collect();
    Ok(Listed { binding, rows, keys, going })
}

impl Listed {
    /// The rows that may be an object of the plan: one by its id, any by its natural key.
    fn rows_of<'s>(&'s self, part: &'s Part) -> Vec<&'s Row> {
        if part.is_open() {
            let is_own = |row: &Row| part.is_there.0 || !self.going.contains(&row.id);
            self.with_key(&part.key).filter(|row| is_own(row)).collect()
        } else {
            self.rows.iter().filter(|row| row.id == part.id && !row.id.is_empty()).collect()
        }
    }

    fn with_key<'s>(&'s self, key: &'s [String]) -> impl Iterator<Item = &'s Row> {
        let rows = self.rows.iter().zip(&self.keys);
        rows.filter(move |(_, own)| key::is(&self.binding, own, key)).map(|(row, _)| row)
    }
}

fn now(vendor: &dyn Vendor, host: &dyn Host, of: &Listed, list: &Place, part: &Part) -> Result<Now, Fault> {
    let binding = &of.binding;
    let listed = of.rows_of(part);
    let id = if part.is_open() { listed.first().map(|row| row.id.clone()) } else { Some(part.id.clone()) };
    // Parameters of an object's own row move with it.
    let planned =
        || list.iter().chain(&part.own).map(|(name, value)| (name.clone(), value.clone())).collect();
    let place = listed.first().map_or_else(planned, |row| row.place.clone());
    let is_ambiguous = part.is_open() && listed.len() > 1;
    let object = match (&id, &binding.get) {
        (None, _) => None,
        (Some(_), None) if binding.shape == Shape::Items => listed.first().map(|row| row.value.clone()),
        // A list may hide what a mode of the device leaves without effect.
        (Some(id), _) => read::object(vendor, host, binding, &place, id)?,
    };
    let known = listed
        .first()
        .map_or_else(|| key::content(binding, &part.key), |row| field::key_content(binding, &row.value));
    let content = object.map(|object| field::with_key(field::content(binding, &object), &known));
    Ok(Now { id, place, content, is_ambiguous })
}

impl State {
    /// Whether a part is exactly as the plan saw it, and what it adds is not there under another id.
    pub(crate) fn is_unmoved(&self, token: &Token, at: usize) -> bool {
        let part = &token.parts[at];
        let (list, now) = (&self.lists[part.list], &self.objects[at]);
        let is_added = !part.is_there.0 && part.is_there.1 && !part.is_made;
        // An object that the same plan deletes makes room.
        let is_taken = || list.with_key(&part.key).any(|row| !list.going.contains(&row.id));
        if now.is_ambiguous || self.is_elsewhere(token, at) || (is_added && is_taken()) {
            return false;
        }
        part.is_unmoved(&list.binding, now.content.as_ref())
    }

    /// Whether the paths of an object that the plan knew are other ones by now: it moved to where the plan's calls do not
    /// lead. What the plan itself moves is not meant.
    fn is_elsewhere(&self, token: &Token, at: usize) -> bool {
        let (part, now) = (&token.parts[at], &self.objects[at]);
        let binding = &self.lists[part.list].binding;
        let is_touched = |name: &str| {
            let source = binding.params.get(name).map(String::as_str);
            part.touched.keys().any(|field| Some(binding.place(field)) == source)
        };
        let is_other = |(name, value): (&String, &String)| {
            now.place.get(name).is_some_and(|is| is != value) && !is_touched(name)
        };
        part.is_there.0 && now.content.is_some() && part.own.iter().any(is_other)
    }

    pub(crate) fn stands(&self, token: &Token, at: usize) -> Found {
        let (now, part) = (&self.objects[at], &token.parts[at]);
        if now.is_ambiguous {
            return Found::Other(json!({ "object": part.name, "is": "there several times" }));
        }
        // What an action leads to may be the move itself.
        let is_led_to = part.is_there == (true, true) && part.whole.is_empty();
        if !is_led_to && self.is_elsewhere(token, at) {
            return Found::Other(json!({ "object": part.name, "is": "moved", "at": now.place }));
        }
        self.resolved(part).stands(&self.lists[part.list].binding, now.content.as_ref())
    }

    /// Whether an object is seen to be as before, or was not there and is not.
    pub(crate) fn is_back(&self, token: &Token, at: usize) -> bool {
        let was_there = token.parts[at].is_there.0;
        self.stands(token, at) == Found::Before || (!was_there && self.objects[at].content.is_none())
    }

    /// The part with the ids that objects of the plan have by now.
    fn resolved(&self, part: &Part) -> Part {
        let known = |at: usize| self.objects.get(at).and_then(|now| now.id.clone());
        let mut part = part.clone();
        for (before, after) in part.touched.values_mut() {
            *before = holes::resolved(before, &known);
            *after = holes::resolved(after, &known);
        }
        part
    }

    /// The ids of the objects that the plan did not know or that move, for the calls that name them.
    pub(crate) fn ids(&self, token: &Token) -> BTreeMap<usize, Option<String>> {
        let named: BTreeSet<usize> =
            token.apply.iter().chain(&token.restore).flat_map(|role| role.ids.iter().copied()).collect();
        let known = named.into_iter().filter_map(|at| Some((at, self.objects.get(at)?)));
        known.filter(|(_, now)| !now.is_ambiguous).map(|(at, now)| (at, now.id.clone())).collect()
    }

    /// What must still happen before the objects that exist are in effect.
    pub(crate) fn needs(
        &self,
        vendor: &dyn Vendor,
        host: &dyn Host,
        token: &Token,
    ) -> Result<Vec<String>, Fault> {
        let mut all: Vec<String> = Vec::new();
        for (part, now) in token.parts.iter().zip(&self.objects) {
            if now.content.is_none() || part.touched.is_empty() {
                continue;
            }
            let id = now.id.as_deref().unwrap_or_default();
            let new = vendor.needs(host, token.kind_of(part), &now.place, id)?;
            all.extend(new);
        }
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// What others changed meanwhile, a sentence each.
    pub(crate) fn foreign(&self, token: &Token) -> Vec<String> {
        let mut out = Vec::new();
        for (part, now) in token.parts.iter().zip(&self.objects) {
            let noun = &self.lists[part.list].binding.noun;
            if part.is_changed_beside(now.content.as_ref()) {
                out.push(format!("{noun} '{}' was changed in other fields, too", part.name));
            }
        }
        for (at, list) in token.lists.iter().enumerate().filter(|(_, list)| !list.ids.is_empty()) {
            self.foreign_in(token, (at, &list.ids), &mut out);
        }
        out.truncate(FOREIGN_MAX);
        out.into_iter().map(|text| text.chars().take(FOREIGN_CHARS).collect()).collect()
    }

    fn foreign_in(&self, token: &Token, (at, marks): (usize, &[String]), out: &mut Vec<String>) {
        let Listed { binding, rows, .. } = &self.lists[at];
        let own = |row: &Row| key::of(binding, &row.value);
        let mark_of = |row: &Row| if binding.volatile { mark(&own(row)) } else { mark(&row.id) };
        let mut ours: HashSet<String> = HashSet::new();
        for (part, now) in token.parts.iter().zip(&self.objects).filter(|(part, _)| part.list == at) {
            ours.insert(mark(&part.id));
            ours.extend(now.id.iter().map(|id| mark(id)));
            if binding.volatile {
                // What people call it may be in other words than those of the payload.
                let named = self.lists[at].rows_of(part).into_iter().map(own);
                ours.extend(named.chain([part.key.join(":"), part.name.clone()]).map(|name| mark(&name)));
            }
        }
        let before: HashSet<&str> = marks.iter().map(String::as_str).collect();
        let mut here: HashSet<String> = HashSet::new();
        for row in rows.iter().filter(|row| !row.id.is_empty()) {
            let mark = mark_of(row);
            if !before.contains(mark.as_str()) && !ours.contains(&mark) && out.len() < FOREIGN_MAX {
                let name = place::full_key(binding, &row.place, &own(row));
                out.push(format!("{} '{name}' was added", binding.noun));
            }
            here.insert(mark);
        }
        let is_gone = |mark: &&&str| !here.contains(**mark) && !ours.contains(**mark);
        let gone = before.iter().filter(is_gone).count();
        if gone > 0 {
            out.push(format!("{gone} of the kind '{}' went away", token.lists[at].kind));
        }
    }
}
