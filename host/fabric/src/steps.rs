//! Steps: what they may be, who may write them, and how their parameters are kept.
//!
//! Parameters can hold secrets, such as a header of a webhook. They are sealed, and shown to their author only.

use heddle_core::condition::Conditions;
use heddle_core::declared::ReadingAccess;
use heddle_core::event::EventType;
use heddle_core::operation::{EACH_ITEMS_CHARS_MAX, EACH_MAX, ForEach, StepOutline};
use heddle_core::template::{self, Reference, is_template};
use heddle_core::{ConnectionId, RunId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::events::patterns;
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::keys::Keys;
use heddle_marketplace::Schema;
use heddle_store::connections::ConnectionRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::operations::Operations;

/// Most steps of one Connection.
pub(crate) const STEPS_MAX: usize = 20;

/// Most characters of an operation's id.
pub(crate) const OPERATION_ID_CHARS_MAX: usize = 200;

/// One thing to do.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    #[schemars(length(min = 1, max = OPERATION_ID_CHARS_MAX))]
    pub(crate) operation_id: String,
    /// What the operation's schema allows, with references such as `{{trigger.name}}`.
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
    /// Later steps follow although this one failed.
    #[serde(default)]
    pub(crate) continue_on_error: bool,
    /// The step is skipped unless these hold. Fields begin with `trigger.` (the payload), `event.` (the event
    /// itself) or `steps.N.` (`output`, `success` and `skipped` of an earlier step, from 0). A branch is such a step;
    /// the other branch asks for `steps.N.skipped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) when: Option<Conditions>,
    /// Does the step once for each item of a list. Its output has `items` (each with `index`, `success`, `output` and
    /// `message`), `count` and `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) for_each: Option<ForEach>,
    /// The step runs only where an earlier one failed and ended the others. Its parameters name the failure as
    /// `{{error.step}}`, `{{error.operation_id}}`, `{{error.code}}` and `{{error.message}}`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) on_error: bool,
}

impl Step {
    pub(crate) fn of(outline: &StepOutline, params: Map<String, Value>) -> Self {
        Self {
            operation_id: outline.operation_id.clone(),
            params,
            continue_on_error: outline.continue_on_error,
            when: outline.when.clone(),
            for_each: outline.for_each.clone(),
            on_error: outline.on_error,
        }
    }

    /// Returns the step without its parameters.
    fn outline(&self) -> StepOutline {
        StepOutline {
            operation_id: self.operation_id.clone(),
            continue_on_error: self.continue_on_error,
            when: self.when.clone(),
            for_each: self.for_each.clone(),
            on_error: self.on_error,
        }
    }
}

/// Returns what stands for parameters that the viewer may not see.
pub(crate) fn hidden() -> Map<String, Value> {
    [("hidden".to_owned(), json!(true))].into_iter().collect()
}

pub(crate) fn outlines(steps: &[Step]) -> Vec<StepOutline> {
    steps.iter().map(Step::outline).collect()
}

fn context(id: ConnectionId) -> String {
    format!("connection:{id}")
}

/// The parameters, sealed for their Connection.
pub(crate) fn seal(keys: &Keys, id: ConnectionId, steps: &[Step]) -> Vec<u8> {
    let params: Vec<&Map<String, Value>> = steps.iter().map(|step| &step.params).collect();
    keys.seal(&context(id), json!(params).to_string().as_bytes())
}

/// The steps as they were written.
pub(crate) fn open(
    keys: &Keys,
    id: ConnectionId,
    outlines: &[StepOutline],
    sealed: &[u8],
) -> Result<Vec<Step>, Error> {
    let plain = keys.open_sealed(&context(id), sealed).map_err(Error::internal)?;
    let params: Vec<Map<String, Value>> = serde_json::from_slice(&plain).map_err(Error::internal)?;
    Ok(outlines.iter().zip(params).map(|(outline, params)| Step::of(outline, params)).collect())
}

/// The parameters of a run's steps so far, sealed for the run.
pub(crate) fn seal_run(keys: &Keys, id: RunId, params: &[Value]) -> Vec<u8> {
    keys.seal(&format!("connection_run:{id}"), json!(params).to_string().as_bytes())
}

/// The same for a run that waits: with all its steps, for when it goes on.
pub(crate) fn seal_resting(keys: &Keys, id: RunId, params: &[Value], steps: &[Step]) -> Vec<u8> {
    let sealed = json!({ "params": params, "steps": steps });
    keys.seal(&format!("connection_run:{id}"), sealed.to_string().as_bytes())
}

/// What is sealed with a run.
#[derive(Deserialize)]
#[serde(untagged)]
enum SealedRun {
    Params(Vec<Value>),
    Resting { params: Vec<Value>, steps: Vec<Step> },
}

fn open_sealed_run(keys: &Keys, id: RunId, sealed: &[u8]) -> Result<SealedRun, Error> {
    let plain = keys.open_sealed(&format!("connection_run:{id}"), sealed).map_err(Error::internal)?;
    serde_json::from_slice(&plain).map_err(Error::internal)
}

/// Returns the parameters of the steps that a waiting run has done, and all its steps.
pub(crate) fn open_resting(keys: &Keys, id: RunId, sealed: &[u8]) -> Result<(Vec<Value>, Vec<Step>), Error> {
    match open_sealed_run(keys, id, sealed)? {
        SealedRun::Resting { params, steps } => Ok((params, steps)),
        SealedRun::Params(_) => Err(Error::internal(std::io::Error::other("a run rested without its steps"))),
    }
}

pub(crate) fn open_run(keys: &Keys, id: RunId, sealed: &[u8]) -> Result<Vec<Map<String, Value>>, Error> {
    let (SealedRun::Params(params) | SealedRun::Resting { params, .. }) = open_sealed_run(keys, id, sealed)?;
    Ok(params.into_iter().map(|one| one.as_object().cloned().unwrap_or_default()).collect())
}

/// Returns the steps as this caller sees them: their author with their parameters, others with `{"hidden": true}`.
pub(crate) fn views(app: &App, caller: &Caller, row: &ConnectionRow) -> Result<Vec<Step>, Error> {
    if caller.is_author(row.author_id) {
        return open(&app.keys, row.id, &row.steps, &row.secret);
    }
    Ok(row.steps.iter().map(|outline| Step::of(outline, hidden())).collect())
}

/// Returns what is wrong with the steps, whichever user wrote them.
pub(crate) async fn faults(app: &App, steps: &[Step]) -> Result<Vec<Detail>, Error> {
    let mut faults = Vec::new();
    if !(1..=STEPS_MAX).contains(&steps.len()) {
        faults.push(fault("steps", format!("must be from 1 to {STEPS_MAX}")));
    }
    let operations = Operations::of(app);
    for (at, step) in steps.iter().enumerate() {
        let field = format!("steps.{at}");
        let params = Value::Object(step.params.clone());
        match template::references(&params) {
            Err(error) => faults.push(fault(&format!("{field}.params"), error.to_string())),
            Ok(references) => {
                let wrong = references.iter().filter_map(|one| misplaced(one, at, step));
                faults.extend(wrong.map(|message| fault(&format!("{field}.params"), message)));
            }
        }
        faults.extend(
            each_fault(step, at).map(|(name, message)| fault(&format!("{field}.for_each{name}"), message)),
        );
        if at == 0 && step.on_error {
            faults.push(fault(
                &format!("{field}.on_error"),
                "no step comes before the first one and could fail",
            ));
        }
        faults.extend(when_faults(step.when.as_ref(), at, &field));
        if let Some(message) = operation_id_fault(&step.operation_id) {
            faults.push(fault(&format!("{field}.operation_id"), message));
            continue;
        }
        let Some(schema) = operations.params_schema(&step.operation_id).await? else {
            let message = format!(
                "operation '{}' does not exist; GET /fabric/catalog lists those that do",
                step.operation_id
            );
            faults.push(fault(&format!("{field}.operation_id"), message));
            continue;
        };
        faults.extend(misfits(&schema, &params, &format!("{field}.params")));
    }
    Ok(faults)
}

/// Why this cannot be the id of an operation.
pub(crate) fn operation_id_fault(id: &str) -> Option<String> {
    let is_long = id.chars().count() > OPERATION_ID_CHARS_MAX;
    is_long.then(|| format!("must not have more than {OPERATION_ID_CHARS_MAX} characters"))
}

/// Why this step cannot read what a reference names.
fn misplaced(reference: &Reference, at: usize, step: &Step) -> Option<String> {
    let path = reference.path();
    if reference.step().is_some_and(|other| other >= at) {
        return Some(format!("'{path}' is not the output of an earlier step; steps count from 0"));
    }
    match reference.own() {
        Some("error") if !step.on_error => Some(format!("'{path}' is there only in a step with 'on_error'")),
        Some("item" | "index") if step.for_each.is_none() => {
            Some(format!("'{path}' is there only in a step with 'for_each'"))
        }
        _ => None,
    }
}

/// What is wrong with the list that a step is done for, and where below `for_each`.
fn each_fault(step: &Step, at: usize) -> Option<(&'static str, String)> {
    let each = step.for_each.as_ref()?;
    if step.operation_id == super::wait::ID {
        return Some(("", "a run waits once: 'fabric.wait' cannot be done for each item".to_owned()));
    }
    if !(1..=EACH_MAX).contains(&each.max) {
        return Some((".max", format!("must be from 1 to {EACH_MAX}")));
    }
    if each.items.chars().count() > EACH_ITEMS_CHARS_MAX {
        return Some((".items", format!("must not have more than {EACH_ITEMS_CHARS_MAX} characters")));
    }
    let items = Value::String(each.items.clone());
    let references = match template::references(&items) {
        Ok(references) => references,
        Err(error) => return Some((".items", error.to_string())),
    };
    match references.as_slice() {
        [one] if each.items.trim() == each.items && each.items.matches("{{").count() == 1 => {
            let is_whole = each.items.starts_with("{{") && each.items.ends_with("}}");
            if !is_whole {
                return Some((".items", NO_LIST.to_owned()));
            }
            if one.own().is_some() {
                return Some((".items", format!("'{}' is no list that came before", one.path())));
            }
            misplaced(one, at, step).map(|message| (".items", message))
        }
        _ => Some((".items", NO_LIST.to_owned())),
    }
}

const NO_LIST: &str = "must be one reference to a list, such as '{{steps.0.output.items}}'";

/// What is wrong with what must hold for a step to run.
fn when_faults(when: Option<&Conditions>, at: usize, field: &str) -> Vec<Detail> {
    let Some(when) = when else { return Vec::new() };
    let mut faults: Vec<Detail> = when
        .faults()
        .into_iter()
        .map(|(name, message)| fault(&format!("{field}.when.{name}"), message))
        .collect();
    for (place, condition) in when.conditions.iter().enumerate() {
        let mut path = condition.field.split('.');
        let is_known = match (path.next(), path.next()) {
            (Some("trigger" | "event"), Some(_)) => true,
            (Some("steps"), Some(step)) => step.parse::<usize>().is_ok_and(|step| step < at),
            _ => false,
        };
        if !is_known {
            let message = format!(
                "'{}' must begin with 'trigger.', 'event.' or 'steps.N.' of an earlier step",
                condition.field
            );
            faults.push(fault(&format!("{field}.when.conditions.{place}.field"), message));
        }
    }
    faults
}

fn fault(field: &str, message: impl Into<String>) -> Detail {
    Detail::new(field, message, "value_error")
}

/// Where parameters do not fit their schema, apart from values that are not known before their references are filled.
fn misfits(schema: &Schema, params: &Value, field: &str) -> Vec<Detail> {
    let mut open = Vec::new();
    templates(params, String::new(), &mut open);
    let is_open = |at: &str, keyword: &str| {
        let depends_on_parts = matches!(
            keyword,
            "anyOf" | "oneOf" | "allOf" | "not" | "if" | "const" | "enum" | "uniqueItems" | "contains"
        );
        open.iter().any(|path| path == at || (depends_on_parts && path.starts_with(&format!("{at}/"))))
    };
    schema
        .validator()
        .iter_errors(params)
        .filter(|error| !is_open(&error.instance_path().to_string(), error.kind().keyword()))
        .map(|error| {
            let at = format!("{field}{}", error.instance_path().to_string().replace('/', "."));
            Detail::new(at, error.masked_with("the value").to_string(), error.kind().keyword())
        })
        .collect()
}

/// JSON pointers of the texts that hold references.
fn templates(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::String(text) if is_template(text) => found.push(at),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(place, item)| templates(item, format!("{at}/{place}"), found));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            templates(field, format!("{at}/{name}"), found);
        }),
        _ => {}
    }
}

/// Requires that the author may do what the steps do.
pub(crate) fn require(app: &App, author: &Caller, steps: &[StepOutline]) -> Result<(), Error> {
    let operations = steps.iter().filter_map(|step| Operations::of(app).find(&step.operation_id));
    let mut needed = operations.filter_map(|operation| operation.declaration().permission);
    needed.try_for_each(|permission| author.require(permission))
}

/// What is wrong with a pattern of events.
pub(crate) fn pattern_fault(app: &App, pattern: &str) -> Option<String> {
    patterns::fault(&app.declared().events, pattern)
}

/// Requires that the author may read at least one event that the pattern covers.
pub(crate) fn require_readable(app: &App, author: &Caller, pattern: &str) -> Result<(), Error> {
    let mut refusal = None;
    for event in app.declared().events.covered(pattern) {
        match may_read(app, author, event) {
            Ok(()) => return Ok(()),
            Err(error) => refusal = Some(error),
        }
    }
    refusal.map_or(Ok(()), Err)
}

pub(crate) fn may_read(app: &App, author: &Caller, event: EventType) -> Result<(), Error> {
    match app.declared().for_reading(event.as_str()) {
        ReadingAccess::Permission(permission) => author.require(permission),
        ReadingAccess::Role(role) => author.require_unscoped_role(role),
    }
}

pub(crate) fn condition_faults(conditions: &Conditions) -> Vec<Detail> {
    let detail = |(field, message): (String, String)| fault(&format!("conditions.{field}"), message);
    conditions.faults().into_iter().map(detail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(params: Value, fields: &[&str]) {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "format": "uuid" },
                "count": { "type": "integer", "maximum": 9 },
                "deep": { "type": "object", "properties": { "list": { "type": "array", "items": { "type": "integer" } } } },
                "either": { "anyOf": [{ "type": "object", "properties": { "n": { "type": "integer" } } }, { "type": "null" }] },
            },
            "required": ["id"],
            "additionalProperties": false,
        });
        let schema = Schema::compile(&schema).unwrap();
        let found: Vec<String> =
            misfits(&schema, &params, "p").into_iter().map(|detail| detail.field).collect();
        assert_eq!(found, fields, "{params}");
    }

    #[test]
    fn what_is_not_known_yet_is_not_judged_and_the_rest_is() {
        check(json!({ "id": "x", "count": 3 }), &[]);
        check(json!({ "id": "{{trigger.id}}", "count": "{{trigger.count}}" }), &[]);
        check(json!({ "id": "x", "count": "3" }), &["p.count"]);
        check(json!({ "count": "{{trigger.count}}" }), &["p"]);
        check(json!({ "id": "x", "deep": { "list": [1, "{{trigger.x}}", "y"] } }), &["p.deep.list.2"]);
        check(json!({ "id": "x", "either": { "n": "{{trigger.x}}" } }), &[]);
        check(json!({ "id": "x", "either": 5 }), &["p.either"]);
        check(json!({ "id": "x", "more": "{{trigger.x}}" }), &["p"]);
    }
}
