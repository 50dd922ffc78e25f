//! Fills an approved body when it is sent: secrets for their references, and
//! the seconds that a device shall hold a change.

use heddle_core::fault::Fault;
use heddle_core::redact::REFERENCE;
use serde_json::Value;

use super::references;
use super::request::{Approved, Body, denied};

const HOLD: &str = "{{host.hold_secs}}";

/// The body to send for an approved one.
pub(super) fn body(approved_body: Option<&Value>, approved: &Approved) -> Result<Body, Fault> {
    let Some(body) = approved_body else { return Ok(Body::None) };
    let mut body = body.clone();
    fill(&mut body, approved)?;
    Ok(Body::Json(body))
}

fn fill(value: &mut Value, approved: &Approved) -> Result<(), Fault> {
    match value {
        Value::String(text) if text == HOLD => *value = approved.hold_secs.into(),
        Value::String(text) if text.contains(REFERENCE) => *text = secrets(text, approved)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, approved))?,
        Value::Object(fields) => fields.values_mut().try_for_each(|item| fill(item, approved))?,
        _ => {}
    }
    Ok(())
}

fn secrets(text: &str, approved: &Approved) -> Result<String, Fault> {
    let found = references::find(text);
    // Every beginning of a reference must be a whole one: a cut one would be sent as a password.
    if found.len() != text.matches(REFERENCE).count() {
        return Err(unknown());
    }
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    for name in found {
        let secret = approved.secrets.entries.get(name).ok_or_else(unknown)?;
        let (before, after) = rest.split_once(name).unwrap_or((rest, ""));
        filled.push_str(before);
        filled.push_str(secret.expose());
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn unknown() -> Fault {
    denied(
        "unknown-secret",
        "the approved call refers to a secret that the host does not have; plan the change again",
    )
}

#[cfg(test)]
mod tests {
    use heddle_core::secret::Secret;
    use serde_json::json;

    use super::*;
    use crate::api::SecretBook;

    fn approved(secrets: &[&str]) -> Approved {
        let entries = secrets.iter().map(|s| (references::reference(&[1; 32], s), Secret::new(*s))).collect();
        Approved { calls: Vec::new(), hold_secs: 90, secrets: SecretBook { entries } }
    }

    fn filled(value: &Value, secrets: &[&str]) -> Result<Value, Fault> {
        match body(Some(value), &approved(secrets))? {
            Body::Json(value) => Ok(value),
            _ => unreachable!("a body stays one"),
        }
    }

    #[test]
    fn the_hold_time_is_a_number_and_only_as_a_whole_text() {
        let value = json!({"timeout": "{{host.hold_secs}}", "text": "x{{host.hold_secs}}"});
        assert_eq!(filled(&value, &[]).unwrap(), json!({"timeout": 90, "text": "x{{host.hold_secs}}"}));
    }

    #[test]
    fn references_become_secrets_inside_of_texts_and_cannot_break_out() {
        let (one, two) = (references::reference(&[1; 32], "a\"b"), references::reference(&[1; 32], "zwei"));
        let value = json!([{"psk": format!("{one}/{two}/{one}")}]);
        assert_eq!(filled(&value, &["a\"b", "zwei"]).unwrap(), json!([{"psk": "a\"b/zwei/a\"b"}]));
    }

    #[test]
    fn a_secret_that_looks_like_a_reference_is_not_filled_again() {
        let inner = references::reference(&[1; 32], "innen");
        let outer = references::reference(&[1; 32], &inner);
        assert_eq!(filled(&json!(outer), &[&inner, "innen"]).unwrap(), json!(inner));
    }

    #[test]
    fn an_unknown_or_cut_reference_sends_nothing() {
        let known = references::reference(&[1; 32], "x");
        for text in
            [references::reference(&[1; 32], "y"), known[..20].to_owned(), format!("{known} hdl-secret:zz")]
        {
            assert_eq!(
                filled(&json!(text), &["x"]).unwrap_err().code.as_deref(),
                Some("unknown-secret"),
                "{text}"
            );
        }
    }
}
