//! Where the device stands, seen from what a plan touches.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Vendor;
use super::binding::{KindBinding, Shape};
use super::field::{self, Content};
use super::part::Found;
use super::plan::mark;
use super::read::{self, Row};
use super::token::Token;
use crate::{Comparison, Fault, Host, Standing};

const FOREIGN_MAX: usize = 100;
const FOREIGN_CHARS: usize = 300;

/// The device, as far as a plan touches it.
pub(crate) struct State {
    kinds: BTreeMap<String, (KindBinding, Vec<Row>)>,
    /// By part; none where the object does not exist.
    objects: Vec<Option<Content>>,
}

/// Reads what a plan touches.
pub(crate) fn state(vendor: &dyn Vendor, host: &dyn Host, token: &Token) -> Result<State, Fault> {
    let mut kinds = BTreeMap::new();
    let mut objects = Vec::with_capacity(token.parts.len());
    for part in &token.parts {
        if !kinds.contains_key(&part.kind) {
            let binding = KindBinding::of(host, &part.kind)?;
            let rows = match binding.shape {
                Shape::Items => read::all(vendor, host, &binding)?,
                _ => Vec::new(),
            };
            kinds.insert(part.kind.clone(), (binding, rows));
        }
        // A list may hide what a mode of the device leaves without effect.
        let binding = &kinds[&part.kind].0;
        let object = read::object(vendor, host, binding, &part.id)?;
        objects.push(object.map(|object| field::content(binding, &object)));
    }
    Ok(State { kinds, objects })
}

impl State {
    /// Whether a part is exactly as the plan saw it, and what it adds is not there under another id.
    pub(crate) fn is_unmoved(&self, token: &Token, at: usize) -> bool {
        let part = &token.parts[at];
        let (binding, rows) = &self.kinds[&part.kind];
        let is_taken = || {
            rows.iter().any(|row| {
                let key = read::key_parts(binding, &row.value);
                let is_same = |((value, label), wanted): (&(String, Option<String>), &String)| {
                    value == wanted || label.as_ref() == Some(wanted)
                };
                !key.is_empty() && key.iter().zip(&part.key).all(is_same)
            })
        };
        part.is_unmoved(self.objects[at].as_ref()) && (part.is_there.0 || !is_taken())
    }

    pub(crate) fn stands(&self, token: &Token, at: usize) -> Found {
        let part = &token.parts[at];
        part.stands(&self.kinds[&part.kind].0, self.objects[at].as_ref())
    }

    /// What others changed meanwhile, a sentence each.
    fn foreign(&self, token: &Token) -> Vec<String> {
        let mut out = Vec::new();
        for (part, now) in token.parts.iter().zip(&self.objects) {
            let noun = &self.kinds[&part.kind].0.noun;
            if part.is_changed_beside(now.as_ref()) {
                out.push(format!("{noun} '{}' was changed in other fields, too", part.name));
            }
        }
        for (kind, marks) in &token.ids {
            let Some((binding, rows)) = self.kinds.get(kind) else { continue };
            let is_ours = |id: &str| token.parts.iter().any(|part| part.kind == *kind && part.id == id);
            let added = rows.iter().filter(|row| !row.id.is_empty() && !is_ours(&row.id));
            for row in added.filter(|row| !marks.contains(&mark(&row.id))) {
                out.push(format!("{} '{}' was added", binding.noun, read::key_of(binding, &row.value)));
            }
            let here: Vec<String> = rows.iter().map(|row| mark(&row.id)).collect();
            let ours: Vec<String> = token.parts.iter().map(|part| mark(&part.id)).collect();
            let gone = marks.iter().filter(|mark| !here.contains(mark) && !ours.contains(mark)).count();
            if gone > 0 {
                out.push(format!("{gone} of the kind '{kind}' went away"));
            }
        }
        out.truncate(FOREIGN_MAX);
        out.into_iter().map(|text| text.chars().take(FOREIGN_CHARS).collect()).collect()
    }
}

/// Compares the device with a plan.
pub fn compare(vendor: &dyn Vendor, host: &dyn Host, token: &[u8]) -> Result<Comparison, Fault> {
    let token = Token::read(token)?;
    let now = state(vendor, host, &token)?;
    let found: Vec<Found> = (0..token.parts.len()).map(|at| now.stands(&token, at)).collect();
    let of_item = |item: usize| {
        let own = token.parts.iter().zip(&found).filter(move |(part, _)| part.items.contains(&item));
        together(own.map(|(_, found)| found))
    };
    Ok(Comparison {
        standing: together(found.iter()),
        items: (0..token.items).map(of_item).collect(),
        foreign: now.foreign(&token),
    })
}

/// A change that changes nothing is before and after; after is what was asked for.
fn together<'a>(found: impl Iterator<Item = &'a Found>) -> Standing {
    let (mut is_before, mut is_after, mut differing) = (true, true, Vec::new());
    for one in found {
        is_before &= matches!(one, Found::Both | Found::Before);
        is_after &= matches!(one, Found::Both | Found::After);
        match one {
            Found::Other(what) => differing.push(what.clone()),
            Found::Before => differing.push(Value::from("one object is as before")),
            Found::Both | Found::After => {}
        }
    }
    if is_after {
        Standing::After
    } else if is_before {
        Standing::Before
    } else {
        Standing::Other(Value::Array(differing).to_string())
    }
}
