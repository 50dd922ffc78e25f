//! What an answer to an action means. Each controller has words of its own, and what none of them says is no success:
//! then the device is read, where the action leaves something to read.

use heddle_sdk::crud::Written;
use heddle_sdk::{Effect, Fault, FaultExt, Response, fault};
use serde_json::Value;

use crate::answer::{invalid, is_good, is_open, opened, refused, word_of};
use crate::jobs;

/// Words with which single controllers say that an action was done.
const DONE: [&str; 12] = [
    "saved",
    "deleted",
    "drop",
    "reverted",
    "activated",
    "killed",
    "found",
    "new",
    "no change",
    "repaired",
    "template",
    "started",
];
/// With these nothing was begun.
const NOT_BEGUN: [&str; 3] = ["failure", "unavailable", "not_found"];
const ROWS_TOLD: usize = 20;

/// Whether an action was done, or goes on as a job.
pub(crate) fn written(response: &Response) -> Result<Written, Fault> {
    let answer = opened(response).map_err(|fault| {
        if is_open(response.status) { fault.with_effect(Effect::Possible) } else { fault }
    })?;
    if let Some(text) = answer.get("errorMessage").and_then(Value::as_str) {
        return Err(refused(text, &answer, response.status).with_effect(Effect::Possible));
    }
    if let Some(id) = answer.get("msg_uuid") {
        // Without an id nothing tells that a job began.
        return match id.as_str() {
            Some(id) if !id.is_empty() => Ok(Written::Task(jobs::started())),
            _ => Err(unproven("the firewall names no job that it began".to_owned())),
        };
    }
    match answer.get("validations") {
        Some(fields @ Value::Object(all)) if !all.is_empty() => return Err(invalid(fields)),
        Some(Value::Array(rows)) if !rows.is_empty() => return imported(&answer, rows),
        _ => {}
    }
    if is_done(&answer) {
        return Ok(Written::Done);
    }
    let word = word_of(&answer);
    let said = ["status_msg", "message", "error"].iter().find_map(|field| answer.get(*field)?.as_str());
    let text = match said {
        Some(said) if said != word => format!("the firewall answered '{word}': {said}"),
        _ => format!("the firewall answered '{word}' instead of a success"),
    };
    let fault = unproven(text);
    Err(if NOT_BEGUN.contains(&word.as_str()) { fault.with_effect(Effect::None) } else { fault })
}

/// A fault after which the device has to be read.
fn unproven(text: String) -> Fault {
    fault::generic(text).with_code("vendor:failed").with_effect(Effect::Possible)
}

/// A file of which some rows were dropped; where none was taken, it failed.
fn imported(answer: &Value, rows: &[Value]) -> Result<Written, Fault> {
    let has_taken = |field: &str| answer.get(field).and_then(Value::as_u64).is_some_and(|count| count > 0);
    let warnings = dropped(rows);
    if has_taken("inserted") || has_taken("updated") {
        return Ok(Written::Warned(warnings));
    }
    Err(unproven(format!("the firewall took no row of the file: {}", warnings.join("; "))))
}

fn is_done(answer: &Value) -> bool {
    let word = word_of(answer);
    let has = |field: &str| answer.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    // A wake-up of several hosts says a word for each.
    let all_good = |rows: &Vec<Value>| rows.iter().all(|row| is_good(&word_of(row)));
    is_good(&word)
        || DONE.contains(&word.as_str())
        // What goes on in the background says only how it is called.
        || is_uuid(&word)
        || word.is_empty() && answer.get("results").and_then(Value::as_array).is_some_and(all_good)
        // A client of the portal: let in, in already, or out.
        || has("sessionId")
            && (answer["clientState"] == "AUTHORIZED" || has("ipAddress") || has("terminateCause"))
        // Saved pages answer their name and nothing else.
        || has("name") && answer.as_object().is_some_and(|fields| fields.len() == 1)
}

fn is_uuid(text: &str) -> bool {
    let parts = text.split('-').map(str::len);
    parts.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Rows of a file that were not taken, while the others were.
fn dropped(rows: &[Value]) -> Vec<String> {
    let text = |row: &Value, field: &str| match &row[field] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let one = |row: &Value| {
        format!("row {} was dropped: {}: {}", text(row, "sequence"), text(row, "field"), text(row, "message"))
    };
    rows.iter().take(ROWS_TOLD).map(one).collect()
}
