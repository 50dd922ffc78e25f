//! Values that are not known when a plan is made: what a plan may leave open, and what may be filled in.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use heddle_core::change::{AdapterPlan, Hole, HoleSource, NativeCall, Stage};
use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_core::redact::{REFERENCE, is_secret_name};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::path;
use super::request::denied;

const BEGIN: &str = "{{hole.";
const END: &str = "}}";
const COUNT_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 40;
const NAME: &str = "a name has 1 to 40 characters of a-z, 0-9, '_' and '-'";
const POINTER_BYTES_MAX: usize = 200;
/// Most bytes of the values of one call.
const FILLED_BYTES_MAX: usize = 64 << 10;
/// Bytes of an escape in a path.
const ESCAPED: usize = 3;
/// What the host shows in the place of a secret.
const MASK: &str = "***";
const PATTERN_CHARS_MAX: usize = 200;
const PATTERN_MEMORY_MAX: usize = 1 << 20;
const VALUE_BYTES_MAX: u32 = 4_096;
/// Largest answer that a value is taken from. Answers to writes, and what tells the state of an object, are small.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// What a segment of a path holds without an escape.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Names of the holes in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(BEGIN).skip(1).filter_map(|rest| rest.split_once(END).map(|(name, _)| name))
}

/// Calls `seen` with every text of a reviewed call in which a hole may stand.
fn texts(call: &NativeCall, mut seen: impl FnMut(&str)) {
    fn walk(value: &Value, seen: &mut impl FnMut(&str)) {
        match value {
            Value::String(text) => seen(text),
            Value::Array(items) => items.iter().for_each(|item| walk(item, seen)),
            Value::Object(fields) => fields.values().for_each(|item| walk(item, seen)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    seen(&call.path);
    call.headers.iter().for_each(|(_, value)| seen(value));
    call.form.iter().flatten().for_each(|(_, value)| seen(value));
    call.multipart.iter().flatten().filter_map(|part| part.text.as_deref()).for_each(&mut seen);
    if let Some(body) = &call.body {
        walk(body, &mut seen);
    }
}

/// Names of the holes that a reviewed call has.
#[must_use]
pub fn of_call(call: &NativeCall) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    texts(call, |text| found.extend(names(text).map(str::to_owned)));
    found
}

/// Refuses a plan whose holes could not be filled as it says.
pub(crate) fn check(plan: &AdapterPlan) -> Result<(), Fault> {
    match problem(plan) {
        None => Ok(()),
        Some(problem) => Err(denied("holes", problem)),
    }
}

fn problem(plan: &AdapterPlan) -> Option<String> {
    if plan.holes.len() > COUNT_MAX {
        return Some(format!("a plan has at most {COUNT_MAX} holes"));
    }
    let mut sources = HashMap::new();
    for (at, call) in plan.native.iter().enumerate() {
        let Some(id) = &call.id else { continue };
        if !is_name(id) {
            return Some(format!("the id of call {at} is no name; {NAME}"));
        }
        if sources.insert(id.as_str(), (at, call.stage)).is_some() {
            return Some(format!("two calls of the plan have the id '{id}'"));
        }
    }
    let mut declared = BTreeMap::new();
    for hole in &plan.holes {
        if let Some(problem) = of_hole(hole) {
            return Some(format!("hole '{}': {problem}", hole.name));
        }
        if declared.insert(hole.name.as_str(), hole).is_some() {
            return Some(format!("hole '{}' is declared twice", hole.name));
        }
    }
    let mut used = BTreeSet::new();
    for (at, call) in plan.native.iter().enumerate() {
        if let Some(problem) = in_call(at, call, &declared, &sources, &mut used) {
            return Some(problem);
        }
    }
    let unused = plan.holes.iter().find(|hole| !used.contains(&hole.name));
    unused.map(|hole| format!("hole '{}' is named by no call", hole.name))
}

fn in_call(
    at: usize,
    call: &NativeCall,
    declared: &BTreeMap<&str, &Hole>,
    sources: &HashMap<&str, (usize, Stage)>,
    used: &mut BTreeSet<String>,
) -> Option<String> {
    if let Some(problem) = of_only_after(at, call, sources) {
        return Some(problem);
    }
    if call
        .path
        .match_indices(BEGIN)
        .any(|(begin, _)| call.path[..begin].chars().rev().take(2).any(|c| c == '%'))
    {
        return Some(format!("call {at} has a hole behind an unfinished escape of its path"));
    }
    let (mut problem, mut bytes) = (None, 0_usize);
    texts(call, |text| {
        for name in names(text) {
            let Some(hole) = declared.get(name) else {
                let missing =
                    format!("'{{{{hole.{name}}}}}' is named by a call, and the plan declares no such hole");
                problem.get_or_insert(missing);
                continue;
            };
            bytes = bytes.saturating_add(ESCAPED * hole.max_bytes as usize);
            used.insert(name.to_owned());
            if let HoleSource::Answer { call: id, .. } = &hole.source
                && !sources.get(id.as_str()).is_some_and(|source| comes_before(*source, (at, call.stage)))
            {
                let late = format!(
                    "hole '{name}' is filled from '{id}', which is no call before the one that names it"
                );
                problem.get_or_insert(late);
            }
        }
    });
    let too_large = || format!("the holes of call {at} may take more than {FILLED_BYTES_MAX} bytes");
    problem.or_else(|| (bytes > ESCAPED * FILLED_BYTES_MAX).then(too_large))
}

/// What is wrong with the call that another one takes back, or whose job it ends.
fn of_only_after(at: usize, call: &NativeCall, sources: &HashMap<&str, (usize, Stage)>) -> Option<String> {
    let named = call.only_after.as_deref();
    let stage = named.and_then(|id| sources.get(id)).map(|(_, stage)| *stage);
    let name = named.unwrap_or_default();
    match call.stage {
        Stage::Abort if named.is_none() => Some(format!(
            "call {at} of the stage abort does not say in 'only-after' which call's job it ends"
        )),
        Stage::Abort if !matches!(stage, Some(Stage::Apply | Stage::Restore)) => Some(format!(
            "'only-after' of call {at} ends the job of '{name}', which is no call of the apply or the restore"
        )),
        Stage::Abort => None,
        _ if named.is_none() => None,
        Stage::Undo | Stage::Restore if stage == Some(Stage::Apply) => None,
        _ => Some(format!("'only-after' of call {at} takes back '{name}', which is no call of the apply")),
    }
}

/// Whether a call is answered before another one leaves. What a stage behind `apply` did is known to itself alone; a
/// call that ends a job also knows what a restore was answered with.
fn comes_before((at, source): (usize, Stage), (of, stage): (usize, Stage)) -> bool {
    match stage {
        _ if source == stage => at < of,
        Stage::Abort => matches!(source, Stage::Apply | Stage::Restore),
        _ => source == Stage::Apply,
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
}

fn of_hole(hole: &Hole) -> Option<String> {
    if !is_name(&hole.name) {
        return Some(NAME.to_owned());
    }
    if !(1..=VALUE_BYTES_MAX).contains(&hole.max_bytes) {
        return Some(format!("its value has 1 to {VALUE_BYTES_MAX} bytes"));
    }
    if hole.pattern.chars().count() > PATTERN_CHARS_MAX {
        return Some(format!("a pattern has at most {PATTERN_CHARS_MAX} characters"));
    }
    if let Err(error) = whole(&hole.pattern) {
        return Some(format!("its pattern cannot be used: {error}"));
    }
    let (at, pointer) = match &hole.source {
        HoleSource::Answer { pointer, .. } => (None, pointer),
        HoleSource::Fresh { path, pointer } => (Some(path), pointer),
        HoleSource::Found => return None,
    };
    if pointer.len() > POINTER_BYTES_MAX || (!pointer.is_empty() && !pointer.starts_with('/')) {
        return Some(format!("'{}' is no JSON pointer", pointer.chars().take(80).collect::<String>()));
    }
    if is_secret_name(pointer.rsplit('/').next().unwrap_or_default()) {
        return Some(format!("'{pointer}' names a secret, and a hole never holds one"));
    }
    at.and_then(|at| path::check(at).err()).map(|fault| fault.message)
}

/// The pattern for the whole value. It has to be one by itself: else it could close the group that it is put into.
fn whole(pattern: &str) -> Result<Regex, regex::Error> {
    let build = |pattern: &str| RegexBuilder::new(pattern).size_limit(PATTERN_MEMORY_MAX).build();
    build(pattern)?;
    build(&format!("\\A(?:{pattern})\\z"))
}

/// The answer that values are taken from.
pub(crate) fn readable(body: &[u8]) -> Result<Value, String> {
    if body.len() > ANSWER_BYTES_MAX {
        return Err(format!("the answer has more than {ANSWER_BYTES_MAX} bytes"));
    }
    serde_json::from_slice(body).map_err(|_| "the answer is not JSON".to_owned())
}

/// The value at the hole's place in an answer, if it may be filled in.
pub(crate) fn pick(hole: &Hole, pointer: &str, answer: &Value) -> Result<Value, String> {
    let value = answer.pointer(pointer).ok_or_else(|| format!("the answer has nothing at '{pointer}'"))?;
    fitting(hole, value.clone())
}

/// The value, if it may be filled in. What stands for a secret is none, nor is the mask of one.
pub fn fitting(hole: &Hole, value: Value) -> Result<Value, String> {
    let Some(text) = text_of(&value) else {
        return Err("the value is neither a text nor a number nor a truth value".to_owned());
    };
    let is_sound = !text.is_empty() && !text.contains(char::is_control);
    let is_plain = !text.contains(REFERENCE) && !text.contains(MASK);
    let fits = is_sound
        && is_plain
        && text.len() <= hole.max_bytes as usize
        && whole(&hole.pattern).is_ok_and(|pattern| pattern.is_match(&text));
    if fits { Ok(value) } else { Err(format!("the value does not match '{}'", hole.pattern)) }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What the pieces of a text between its holes become.
pub(crate) trait Pieces {
    /// A text without holes, as a whole.
    fn whole(&self, text: &str) -> Result<Value, Fault>;
    /// A piece beside a hole.
    fn beside(&self, piece: &str) -> Result<String, Fault>;
}

/// They stay as they are.
pub(super) struct Unchanged;

impl Pieces for Unchanged {
    fn whole(&self, text: &str) -> Result<Value, Fault> {
        Ok(text.into())
    }
    fn beside(&self, piece: &str) -> Result<String, Fault> {
        Ok(piece.to_owned())
    }
}

/// The call as it would be with some value in each hole, for the checks that a call passes when it is planned.
pub(crate) fn with_samples(call: &NativeCall) -> Result<NativeCall, Fault> {
    let sample = |name: String| (name, Value::from("0"));
    fill(call, &of_call(call).into_iter().map(sample).collect(), &Unchanged)
}

/// The call with these values in its holes, and with what `pieces` makes of the rest of its body. Each text is looked at
/// once, as it was reviewed: no value completes a reference, and what is filled in is not looked at again.
pub(crate) fn fill(
    call: &NativeCall,
    values: &BTreeMap<String, Value>,
    pieces: &impl Pieces,
) -> Result<NativeCall, Fault> {
    let encoded = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
    let mut filled = call.clone();
    filled.path = replaced(&call.path, values, encoded, &Unchanged)?;
    for (_, value) in &mut filled.headers {
        *value = replaced(value, values, str::to_owned, &Unchanged)?;
    }
    let parts = filled.multipart.iter_mut().flatten().filter_map(|part| part.text.as_mut());
    for value in filled.form.iter_mut().flatten().map(|(_, value)| value).chain(parts) {
        *value = if value.contains(BEGIN) {
            replaced(value, values, str::to_owned, pieces)?
        } else {
            text_of(&pieces.whole(value)?).unwrap_or_default()
        };
    }
    if let Some(body) = &mut filled.body {
        fill_json(body, values, pieces)?;
    }
    Ok(filled)
}

fn fill_json(value: &mut Value, values: &BTreeMap<String, Value>, pieces: &impl Pieces) -> Result<(), Fault> {
    match value {
        Value::String(text) if text.contains(BEGIN) => {
            let alone = text.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
            *value = match alone.and_then(|name| values.get(name)) {
                Some(whole) => whole.clone(),
                None => replaced(text, values, str::to_owned, pieces)?.into(),
            };
        }
        Value::String(text) => *value = pieces.whole(text)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill_json(item, values, pieces))?,
        Value::Object(fields) => fields.values_mut().try_for_each(|item| fill_json(item, values, pieces))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

fn replaced(
    text: &str,
    values: &BTreeMap<String, Value>,
    shape: impl Fn(&str) -> String,
    pieces: &impl Pieces,
) -> Result<String, Fault> {
    let mut parts = text.split(BEGIN);
    let mut filled = pieces.beside(parts.next().unwrap_or_default())?;
    for part in parts {
        let Some((name, rest)) = part.split_once(END) else { return Err(open("?")) };
        let Some(value) = values.get(name).and_then(text_of) else { return Err(open(name)) };
        filled.push_str(&shape(&value));
        filled.push_str(&pieces.beside(rest)?);
    }
    Ok(filled)
}

fn open(name: &str) -> Fault {
    denied("holes", format!("'{{{{hole.{name}}}}}' cannot be filled in"))
}

/// A call was not sent because a value that it needs is not known.
pub(crate) fn unfilled(hole: &Hole, why: &str) -> Fault {
    let source = match &hole.source {
        HoleSource::Answer { call, .. } => format!("the answer to the call '{call}'"),
        HoleSource::Fresh { path, .. } => format!("GET {path}"),
        HoleSource::Found => "the adapter".to_owned(),
    };
    let message = format!("'{}', a value from {source}, is not known: {why}", hole.name);
    Fault::new(FaultKind::Generic, message).with_code("hole-unfilled").with_effect(Effect::None)
}

#[cfg(test)]
mod tests {
    use heddle_core::change::Danger;
    use serde_json::json;

    use super::*;

    fn hole(name: &str, source: HoleSource) -> Hole {
        Hole { name: name.to_owned(), source, pattern: "[A-Za-z0-9/ .-]+".to_owned(), max_bytes: 40 }
    }

    fn of_answer(call: &str) -> Hole {
        hole("id", HoleSource::Answer { call: call.to_owned(), pointer: "/id".to_owned() })
    }

    fn call(stage: Stage, id: Option<&str>, path: &str) -> NativeCall {
        NativeCall { id: id.map(str::to_owned), ..NativeCall::new(stage, "POST", path) }
    }

    fn plan(native: Vec<NativeCall>, holes: Vec<Hole>) -> AdapterPlan {
        AdapterPlan {
            steps: vec![],
            native,
            holes,
            danger: Danger::Normal,
            lockout_risk: false,
            warnings: vec![],
            also: Vec::new(),
            base_digest: vec![],
            inverse: None,
            holds: false,
            undo_takes_all: false,
            touches: vec![],
            token: vec![],
        }
    }

    fn of_answer_at(pointer: &str) -> HoleSource {
        HoleSource::Answer { call: "create".to_owned(), pointer: pointer.to_owned() }
    }

    const NAMED: &str = "/x/{{hole.id}}";

    #[test]
    fn what_could_grow_or_end_an_escape_is_refused() {
        let found = || hole("id", HoleSource::Found);
        let mut large = call(Stage::Apply, None, "/x");
        large.body = Some(json!("{{hole.id}}".repeat(1_639)));
        assert!(problem(&plan(vec![large], vec![found()])).unwrap().contains("65536 bytes"));
        for path in ["/x/%{{hole.id}}", "/x/%2{{hole.id}}"] {
            let escape = plan(vec![call(Stage::Apply, None, path)], vec![found()]);
            assert!(problem(&escape).unwrap().contains("unfinished escape"), "{path}");
        }
        let encoded = plan(vec![call(Stage::Apply, None, "/x/%20{{hole.id}}")], vec![found()]);
        assert_eq!(problem(&encoded), None);
    }

    #[test]
    fn a_call_of_a_way_back_may_depend_on_one_of_the_apply() {
        let create = || call(Stage::Apply, Some("create"), "/x");
        let back = |stage, only_after: &str| NativeCall {
            only_after: Some(only_after.to_owned()),
            ..call(stage, None, "/x")
        };
        assert_eq!(problem(&plan(vec![create(), back(Stage::Restore, "create")], vec![])), None);
        for bad in [back(Stage::Restore, "other"), back(Stage::Confirm, "create")] {
            assert!(problem(&plan(vec![create(), bad], vec![])).unwrap().contains("no call of the apply"));
        }
    }

    #[test]
    fn a_call_that_ends_a_job_says_whose_and_may_name_what_that_was_answered_with() {
        let starts = |stage| call(stage, Some("create"), "/x");
        let ends = |only_after: Option<&str>, path: &str| NativeCall {
            only_after: only_after.map(str::to_owned),
            ..call(Stage::Abort, None, path)
        };
        for stage in [Stage::Apply, Stage::Restore] {
            let good = plan(vec![starts(stage), ends(Some("create"), NAMED)], vec![of_answer("create")]);
            assert_eq!(problem(&good), None, "{stage}");
        }
        let nobody = problem(&plan(vec![starts(Stage::Apply), ends(None, "/x")], vec![])).unwrap();
        assert!(nobody.contains("does not say"), "{nobody}");
        for (stage, other) in [(Stage::Apply, "other"), (Stage::Confirm, "create")] {
            let bad = problem(&plan(vec![starts(stage), ends(Some(other), "/x")], vec![])).unwrap();
            assert!(bad.contains("no call of the apply or the restore"), "{bad}");
        }
    }

    #[test]
    fn a_hole_is_filled_from_an_earlier_call_of_its_stage_or_of_the_apply() {
        let create = || call(Stage::Apply, Some("create"), "/x");
        for stage in [Stage::Apply, Stage::Confirm, Stage::Undo, Stage::Restore] {
            let good = plan(vec![create(), call(stage, None, NAMED)], vec![of_answer("create")]);
            assert_eq!(problem(&good), None, "{stage}");
        }
        let later = plan(vec![call(Stage::Apply, None, NAMED), create()], vec![of_answer("create")]);
        assert!(problem(&later).unwrap().contains("no call before"));
        let undone = vec![call(Stage::Undo, Some("undo"), "/x"), call(Stage::Restore, None, NAMED)];
        assert!(problem(&plan(undone, vec![of_answer("undo")])).unwrap().contains("no call before"));
    }

    #[test]
    fn what_could_not_be_filled_is_named() {
        let create = || call(Stage::Apply, Some("create"), "/x");
        let named = || call(Stage::Restore, None, NAMED);
        let with = |change: fn(&mut Hole)| {
            let mut hole = of_answer("create");
            change(&mut hole);
            problem(&plan(vec![create(), named()], vec![hole])).unwrap()
        };
        assert!(with(|hole| hole.name = "A b".to_owned()).contains("a name has"));
        assert!(with(|hole| hole.pattern = "(".to_owned()).contains("cannot be used"));
        assert!(with(|hole| hole.pattern = "a".repeat(201)).contains("200"));
        assert!(with(|hole| hole.pattern = "[0-9]+)|(?:.*".to_owned()).contains("cannot be used"));
        assert!(with(|hole| hole.max_bytes = 5_000).contains("4096"));
        assert!(with(|hole| hole.source = of_answer_at("/private_key")).contains("names a secret"));
        assert!(with(|hole| hole.name = "other".to_owned()).contains("declares no such hole"));
        let away = HoleSource::Fresh { path: "//evil/".to_owned(), pointer: String::new() };
        assert!(problem(&plan(vec![named()], vec![hole("id", away)])).unwrap().contains("names no host"));
        assert!(
            problem(&plan(vec![create()], vec![of_answer("create")])).unwrap().contains("named by no call")
        );
        assert!(problem(&plan(vec![create(), create()], vec![])).unwrap().contains("the id 'create'"));
        let twice = vec![of_answer("create"), of_answer("create")];
        assert!(problem(&plan(vec![create(), named()], twice)).unwrap().contains("declared twice"));
        let many = (0..65).map(|n| hole(&format!("h{n}"), HoleSource::Found)).collect();
        assert!(problem(&plan(vec![], many)).unwrap().contains("at most 64"));
    }

    #[test]
    fn a_value_takes_the_form_of_its_place_and_is_not_looked_at_again() {
        let mut call = call(Stage::Restore, None, "/x/{{hole.id}}?next={{hole.n}}");
        call.headers = vec![("x-digest".to_owned(), "{{hole.n}}".to_owned())];
        call.form = Some(vec![("a".to_owned(), "{{hole.id}}-{{hole.n}}".to_owned())]);
        call.body = Some(json!({"n": "{{hole.n}}", "text": ["no {{hole.n}}", "{{hole.id}}"], "rest": 1}));
        let values = BTreeMap::from([("id".to_owned(), json!("a/b {{hole.n}}")), ("n".to_owned(), json!(7))]);
        let filled = fill(&call, &values, &Unchanged).unwrap();
        assert_eq!(filled.path, "/x/a%2Fb%20%7B%7Bhole.n%7D%7D?next=7");
        assert_eq!(filled.headers[0].1, "7");
        assert_eq!(filled.form.unwrap()[0].1, "a/b {{hole.n}}-7");
        assert_eq!(filled.body.unwrap(), json!({"n": 7, "text": ["no 7", "a/b {{hole.n}}"], "rest": 1}));
        let fault = fill(&call, &BTreeMap::new(), &Unchanged).unwrap_err();
        assert!(fault.message.contains("{{hole.id}}"), "{fault}");
    }

    #[test]
    fn only_what_fits_is_filled_in() {
        let hole = of_answer("create");
        let pick = |body: &str| readable(body.as_bytes()).and_then(|answer| pick(&hole, "/id", &answer));
        assert_eq!(pick(r#"{"id": "a-1"}"#).unwrap(), json!("a-1"));
        assert_eq!(pick(r#"{"id": 12}"#).unwrap(), json!(12));
        for body in [
            r#"{"id": "a;b"}"#,
            r#"{"id": "a-1
"}"#,
            r#"{"id": {}}"#,
            r#"{"id": null}"#,
            "{}",
            "<html>",
        ] {
            assert!(pick(body).is_err(), "{body}");
        }
        assert!(pick(&format!(r#"{{"id": "a-1", "x": "{}"}}"#, "x".repeat(ANSWER_BYTES_MAX))).is_err());
        assert!(fitting(&hole, json!("a".repeat(41))).is_err());
        let anything = Hole { pattern: ".*".to_owned(), max_bytes: 100, ..hole };
        let reference = super::super::references::reference(&[1; 32], "geheim");
        for value in [json!(reference), json!(""), json!("a\u{0}b"), json!("a\nb"), json!("owner-***")] {
            assert!(fitting(&anything, value.clone()).is_err(), "{value}");
        }
    }
}
