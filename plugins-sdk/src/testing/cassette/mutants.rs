//! Answers, spoiled: by the status, as a whole, and at each place of their JSON.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::format::Answer;
use crate::{Header, Response};

/// What no adapter can take for an answer of its device.
const PAGE: &str =
    "<!DOCTYPE html><html><head><title>Login</title></head><body><form>Sign in</form></body></html>";
const STATUSES: [u16; 7] = [401, 403, 404, 429, 500, 502, 503];
/// Levels of a value that is nested deeper than anything that a device means.
const LEVELS: usize = 100;
const LONG_CHARS: usize = 20_000;
/// What one place of a document can be replaced by.
const KINDS: u64 = 6;

/// What proves that a write was carried out.
#[derive(Debug, Clone, Copy)]
pub struct Envelope {
    /// Places of an answer that say so, as JSON pointers. Those that an answer lacks do not count.
    pub proof: &'static [&'static str],
    /// Values of such a place that say that it was not, or that say what nobody knows: the place and JSON.
    pub turned: &'static [(&'static str, &'static str)],
}

/// What was done to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// Another status, and a page.
    Status(u16),
    /// Another status, and the same body.
    Relabelled(u16),
    /// The whole body is no answer: empty, cut, a page.
    Body,
    /// The whole body is JSON, and says nothing: `null`, `[]`, `{}`.
    Hollow,
    /// The envelope says that it failed, or what nobody knows.
    Turned,
    /// Something else stands at this place.
    Value(String),
    /// A list has an entry twice.
    Twice(String),
}

/// A spoiled answer.
#[derive(Debug)]
pub struct Mutant {
    pub damage: Damage,
    /// For people.
    pub name: String,
    pub answer: Response,
}

/// Numbers by chance, the same each time.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// All mutants of an answer. Each place of its JSON is spoiled, in every way where the answer has few places; of the rows of a
/// list the first has all its places spoiled, and of the others so many that there are about `budget`. The same seed gives
/// the same mutants.
#[must_use]
pub fn mutants(answer: &Answer, envelope: &Envelope, seed: u64, budget: usize) -> Vec<Mutant> {
    let mut all = Vec::new();
    statuses(answer, &mut all);
    bodies(answer, &mut all);
    if let Some(json) = &answer.json {
        for (place, value) in envelope.turned {
            turned(answer, json, place, value, &mut all);
        }
        values(answer, json, seed, budget, &mut all);
    }
    all
}

fn with_body(answer: &Answer, body: Vec<u8>) -> Response {
    Response { body, ..answer.response() }
}

fn statuses(answer: &Answer, all: &mut Vec<Mutant>) {
    for status in STATUSES.into_iter().filter(|status| *status != answer.status) {
        let mut page = Response { status, reason: None, body: PAGE.into(), ..answer.response() };
        page.headers = vec![Header { name: "content-type".to_owned(), value: b"text/html".to_vec() }];
        let same = Response { status, ..answer.response() };
        let damage = Damage::Status(status);
        all.push(Mutant { damage, name: format!("{status} with a page"), answer: page });
        let damage = Damage::Relabelled(status);
        all.push(Mutant { damage, name: format!("{status} with the same body"), answer: same });
    }
}

fn bodies(answer: &Answer, all: &mut Vec<Mutant>) {
    let body = answer.body();
    if body.is_empty() {
        return;
    }
    let mut cut: Vec<usize> = [1, body.len() / 3, body.len() / 2, body.len() - 1].into();
    cut.sort_unstable();
    cut.dedup();
    let cut = cut.into_iter().filter(|at| *at > 0 && *at < body.len());
    let mut damaged: Vec<(String, Vec<u8>)> = vec![("no body".to_owned(), Vec::new())];
    damaged.extend(cut.map(|at| (format!("cut at byte {at}"), body[..at].to_vec())));
    damaged.push(("a page".to_owned(), PAGE.into()));
    damaged.push(("no text".to_owned(), vec![0xff, 0xfe, 0x00]));
    for (name, body) in damaged {
        all.push(Mutant { damage: Damage::Body, name, answer: with_body(answer, body) });
    }
    for hollow in ["null", "[]", "{}"] {
        if body != hollow.as_bytes() {
            let answer = with_body(answer, hollow.into());
            all.push(Mutant { damage: Damage::Hollow, name: hollow.to_owned(), answer });
        }
    }
}

fn turned(answer: &Answer, json: &Value, place: &str, value: &str, all: &mut Vec<Mutant>) {
    let value: Value = serde_json::from_str(value).expect("an envelope has JSON");
    let mut changed = json.clone();
    let Some(found) = changed.pointer_mut(place).filter(|found| **found != value) else { return };
    *found = value.clone();
    let answer = with_body(answer, changed.to_string().into_bytes());
    all.push(Mutant { damage: Damage::Turned, name: format!("{place} is {value}"), answer });
}

fn values(answer: &Answer, json: &Value, seed: u64, budget: usize, all: &mut Vec<Mutant>) {
    let mut places = Vec::new();
    collect(json, String::new(), &mut places);
    let mut shapes = BTreeSet::new();
    let (first, others): (Vec<_>, Vec<_>) =
        places.into_iter().partition(|place| shapes.insert(shape(&place.0)));
    let is_few = first.len().saturating_mul(usize::try_from(KINDS).unwrap_or(1)) <= budget;
    let mut chance = Chance(seed);
    let most = others.len().min(budget.saturating_sub(first.len()));
    let step = others.len().div_ceil(most.max(1)).max(1);
    let sampled = others.into_iter().step_by(step).take(most);
    for (is_first, (place, is_list)) in
        first.into_iter().map(|place| (true, place)).chain(sampled.map(|place| (false, place)))
    {
        let one = chance.next(KINDS);
        let kinds = if is_few && is_first { 0..KINDS } else { one..one + 1 };
        for kind in kinds {
            let mut changed = json.clone();
            let Some(name) = spoil(&mut changed, &place, kind) else { continue };
            let answer = with_body(answer, changed.to_string().into_bytes());
            let name = format!("{place} {name}");
            all.push(Mutant { damage: Damage::Value(place.clone()), name, answer });
        }
        if is_list && is_first {
            all.extend(twice(answer, json, place));
        }
    }
}

/// The answer with the first entry of a list a second time.
fn twice(answer: &Answer, json: &Value, place: String) -> Option<Mutant> {
    let mut changed = json.clone();
    let Some(Value::Array(items)) = changed.pointer_mut(&place) else { return None };
    items.push(items.first().cloned()?);
    let answer = with_body(answer, changed.to_string().into_bytes());
    let name = format!("{place} has its first entry twice");
    Some(Mutant { damage: Damage::Twice(place), name, answer })
}

/// A place without the numbers of rows.
fn shape(place: &str) -> String {
    let part = |part: &str| if part.parse::<usize>().is_ok() { "*".to_owned() } else { part.to_owned() };
    place.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Every place below the whole, and whether it is a list with entries; the whole is a body of its own.
fn collect(value: &Value, place: String, places: &mut Vec<(String, bool)>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{place}/{index}"), places);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(field, format!("{place}/{name}"), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    let is_list = value.as_array().is_some_and(|items| !items.is_empty());
    if !place.is_empty() || is_list {
        places.push((place, is_list));
    }
}

/// Spoils one place; returns what was done, or none where that changes nothing.
fn spoil(whole: &mut Value, place: &str, kind: u64) -> Option<String> {
    let found = whole.pointer_mut(place)?;
    let (name, value) = match kind {
        0 => ("is null", Value::Null),
        1 => ("has another type", other_type(found)),
        2 => ("is a huge number", json!(1e300)),
        3 => ("is nested deeply", nested()),
        4 => ("is a long text", json!("ä".repeat(LONG_CHARS))),
        _ => return remove(whole, place),
    };
    if *found == value {
        return None;
    }
    *found = value;
    Some(name.to_owned())
}

fn other_type(value: &Value) -> Value {
    match value {
        Value::Null => json!(true),
        Value::Bool(flag) => json!(flag.to_string()),
        Value::Number(_) => json!([]),
        Value::String(_) => json!({ "a": 1 }),
        Value::Array(_) => json!("text"),
        Value::Object(_) => json!([1, "x"]),
    }
}

fn nested() -> Value {
    (0..LEVELS).fold(json!(1), |inner, _| {
        let mut outer = Map::new();
        outer.insert("a".to_owned(), inner);
        Value::Object(outer)
    })
}

fn remove(whole: &mut Value, place: &str) -> Option<String> {
    let (parent, name) = place.rsplit_once('/')?;
    match whole.pointer_mut(parent)? {
        Value::Object(fields) => {
            // The order of the others stays.
            fields.shift_remove(&name.replace("~1", "/").replace("~0", "~"))?;
        }
        Value::Array(items) => drop(items.remove(name.parse().ok()?)),
        _ => return None,
    }
    Some("is gone".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVELOPE: Envelope = Envelope { proof: &["/ok"], turned: &[("/ok", "false"), ("/other", "1")] };

    fn answer(json: &Value) -> Answer {
        Answer::of(200, None, &[], json.to_string().as_bytes())
    }

    #[test]
    fn every_place_is_spoiled_in_every_way_where_there_are_few_and_each_of_a_row_where_there_are_many() {
        let json = json!({ "ok": true, "rows": [{ "a/b": "x" }, { "a/b": "y", "c": null }] });
        let first = ["/ok", "/rows", "/rows/0", "/rows/0/a~1b", "/rows/1/c"];
        let places =
            first.map(str::to_owned).into_iter().chain(["/rows/1".to_owned(), "/rows/1/a~1b".to_owned()]);
        let places: BTreeSet<String> = places.collect();
        let of = |budget| {
            let all = mutants(&answer(&json), &ENVELOPE, 1, budget);
            let value = |mutant: Mutant| match mutant.damage {
                Damage::Value(place) => Some((place, mutant.answer.body)),
                _ => None,
            };
            all.into_iter().filter_map(value).collect::<Vec<_>>()
        };
        let (few, many) = (of(1000), of(1));
        let named = |found: &[(String, Vec<u8>)]| {
            found.iter().map(|(place, _)| place.clone()).collect::<BTreeSet<_>>()
        };
        assert_eq!(named(&few), places);
        assert!(few.len() >= first.len() * 6 - 1, "null is null already");
        assert!(many.len() <= first.len() && many.len() >= first.len() - 1, "{many:?}");
        let whole = json.to_string().into_bytes();
        assert!(few.iter().chain(&many).all(|(_, body)| *body != whole), "each says something else");
        assert_eq!(of(1), many, "the same seed gives the same mutants");
    }

    #[test]
    fn bodies_statuses_flags_and_double_rows_are_among_them() {
        let all = mutants(&answer(&json!({ "ok": true, "rows": [1] })), &ENVELOPE, 1, 10);
        let has = |damage: &Damage| all.iter().filter(|mutant| mutant.damage == *damage).count();
        for status in STATUSES {
            assert_eq!(has(&Damage::Status(status)), 1, "{status}");
            assert_eq!(has(&Damage::Relabelled(status)), 1, "{status}");
        }
        assert_eq!(has(&Damage::Body), 7);
        assert_eq!(has(&Damage::Hollow), 3);
        assert_eq!(has(&Damage::Turned), 1, "a place that the answer lacks is not turned");
        assert_eq!(has(&Damage::Twice("/rows".to_owned())), 1);
        let body = Answer::of(204, None, &[], b"");
        let is_of_status = |one: &Mutant| matches!(one.damage, Damage::Status(_) | Damage::Relabelled(_));
        assert!(mutants(&body, &ENVELOPE, 1, 10).iter().all(is_of_status));
    }
}
