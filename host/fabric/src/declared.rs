//! What declared schemas rule out, refused when steps and conditions are saved: fields that no covered event has, outputs
//! that no earlier step gives, objects that the organization does not have, values that an operation can never take.

use heddle_core::OrgId;
use heddle_core::condition::Conditions;
use heddle_core::shape::{Shape, path_fault};
use heddle_core::template::{self, Reference, is_template};
use heddle_kernel::app::App;
use heddle_kernel::http::error::{Detail, Error};
use heddle_kernel::resource::StepObject;
use heddle_store::Tx;
use serde_json::Value;
use uuid::Uuid;

use super::each;
use super::operations::Operations;
use super::steps::Step;

/// Returns which conditions and steps can never be right for what starts them.
pub(crate) fn faults(
    app: &App,
    shape: &Shape,
    conditions: Option<&Conditions>,
    steps: &[Step],
) -> Vec<Detail> {
    let mut faults = Vec::new();
    for (at, message) in conditions.into_iter().flat_map(|conditions| conditions.unknown_fields(shape)) {
        faults.push(fault(format!("conditions.conditions.{at}.field"), message));
    }
    for (at, step) in steps.iter().enumerate() {
        let field = format!("steps.{at}.params");
        let params = Value::Object(step.params.clone());
        let mut found = Vec::new();
        texts(&params, String::new(), &mut found);
        if let Some(each) = &step.for_each {
            let references = template::references(&Value::String(each.items.clone())).unwrap_or_default();
            let wrong = references.iter().find_map(|one| reference_fault(app, shape, steps, one));
            faults.extend(wrong.map(|message| fault(format!("steps.{at}.for_each.items"), message)));
        }
        for (pointer, references) in found {
            let wrong = references.iter().find_map(|one| reference_fault(app, shape, steps, one));
            faults.extend(wrong.map(|message| fault(format!("{field}{pointer}"), message)));
        }
        if let Some(operation) = Operations::of(app).find(&step.operation_id) {
            let of_values = operation.value_faults(&params).into_iter();
            faults.extend(of_values.map(|(name, message)| fault(format!("{field}.{name}"), message)));
        }
    }
    faults
}

/// Returns why a key of pauses does not fit the events that it is for.
pub(crate) fn key_fault(shape: &Shape, key: Option<&str>) -> Vec<Detail> {
    let Some(key) = key else { return Vec::new() };
    let references = match template::references(&Value::String(key.to_owned())) {
        Ok(references) => references,
        Err(error) => return vec![fault("cooldown_key".to_owned(), error.to_string())],
    };
    if references.is_empty() {
        let message = "must name what tells events apart, such as '{{trigger.device_id}}'".to_owned();
        return vec![fault("cooldown_key".to_owned(), message)];
    }
    let wrong = references.iter().find_map(|one| match (one.in_trigger(), one.in_event()) {
        (Some(segments), _) => shape.payload_fault(segments),
        (_, Some(segments)) => shape.event_fault(segments),
        _ => Some(format!("'{}' is not of the event: give 'trigger.…' or 'event.…'", one.path())),
    });
    wrong.into_iter().map(|message| fault("cooldown_key".to_owned(), message)).collect()
}

/// Returns why neither what starts the steps nor an earlier step gives what a reference names.
fn reference_fault(app: &App, shape: &Shape, steps: &[Step], reference: &Reference) -> Option<String> {
    if let Some(segments) = reference.in_trigger() {
        return shape.payload_fault(segments);
    }
    if let Some(segments) = reference.in_event() {
        return shape.event_fault(segments);
    }
    let (step, segments) = reference.in_output()?;
    let given = steps.get(step)?;
    let operation = Operations::of(app).find(&given.operation_id)?;
    let of_items = given.for_each.as_ref().map(|_| each::output_schema());
    path_fault(of_items.as_ref().unwrap_or(operation.declaration().output_schema.as_ref()), segments)
        .map(|message| format!("the output of step {step} ('{}'): {message}", operation.declaration().id))
}

/// Finds every text with references, and where it is. What cannot be read as a reference is reported elsewhere.
fn texts(value: &Value, at: String, found: &mut Vec<(String, Vec<Reference>)>) {
    match value {
        Value::String(text) if is_template(text) => {
            found.extend(template::references(value).ok().map(|references| (at, references)));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(place, item)| texts(item, format!("{at}.{place}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| texts(field, format!("{at}.{name}"), found));
        }
        _ => {}
    }
}

/// Refuses steps that name objects which the organization does not have.
///
/// One statement for each kind of object, however many steps there are.
pub(crate) async fn require_known_ids(
    tx: &mut Tx,
    app: &App,
    org: OrgId,
    steps: &[Step],
) -> Result<(), Error> {
    let mut faults = Vec::new();
    for StepObject { parameter, noun, known, .. } in app.features().step_objects() {
        let mut named: Vec<(Uuid, String)> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let Some(text) = step.params.get(*parameter).and_then(Value::as_str) else { continue };
            if is_template(text) {
                continue;
            }
            let field = format!("steps.{at}.params.{parameter}");
            match text.parse::<Uuid>() {
                Ok(id) => named.push((id, field)),
                Err(_) => faults.push(fault(field, format!("'{}' is not the id of a {noun}", shown(text)))),
            }
        }
        let ids: Vec<Uuid> = named.iter().map(|(id, _)| *id).collect();
        let known = known(tx, org, &ids).await?;
        for (id, field) in named.into_iter().filter(|(id, _)| !known.contains(id)) {
            faults.push(fault(field, format!("{noun} '{id}' does not exist in the organization")));
        }
    }
    faults.sort_by(|one, other| one.field.cmp(&other.field));
    if faults.is_empty() { Ok(()) } else { Err(Error::Validation(faults)) }
}

/// Enough of a text to find it by.
fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

fn fault(field: String, message: String) -> Detail {
    Detail::new(field, message, "value_error")
}
