//! Fills the body of a reviewed call when it is sent: secrets for their references, and
//! the seconds that a device shall hold a change.

use heddle_core::fault::Fault;
use heddle_core::redact::REFERENCE;
use serde_json::Value;

use super::references;
use super::request::{Body, Fill, denied};

const HOLD: &str = "{{host.hold_secs}}";

/// The body to send for a reviewed one.
pub(super) fn body(reviewed: Body, with: &Fill) -> Result<Body, Fault> {
    Ok(match reviewed {
        Body::Json(mut value) => {
            fill(&mut value, with)?;
            Body::Json(value)
        }
        Body::Form(fields) => {
            let filled = fields.into_iter().map(|(name, value)| Ok((name, field(value, with)?)));
            Body::Form(filled.collect::<Result<_, Fault>>()?)
        }
        other @ (Body::None | Body::Multipart(_) | Body::Bytes(..)) => other,
    })
}

fn field(text: String, with: &Fill) -> Result<String, Fault> {
    if text == HOLD {
        return Ok(with.hold_secs.to_string());
    }
    if text.contains(REFERENCE) { secrets(&text, with) } else { Ok(text) }
}

fn fill(value: &mut Value, with: &Fill) -> Result<(), Fault> {
    match value {
        Value::String(text) if text == HOLD => *value = with.hold_secs.into(),
        Value::String(text) if text.contains(REFERENCE) => *text = secrets(text, with)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, with))?,
        Value::Object(fields) => fields.values_mut().try_for_each(|item| fill(item, with))?,
        _ => {}
    }
    Ok(())
}

fn secrets(text: &str, with: &Fill) -> Result<String, Fault> {
    let found = references::find(text);
    // Every beginning of a reference must be a whole one: a cut one would be sent as a password.
    if found.len() != text.matches(REFERENCE).count() {
        return Err(unknown());
    }
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    for name in found {
        let secret = with.secrets.entries.get(name).ok_or_else(unknown)?;
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
        "the reviewed call refers to a secret that the host does not have; plan the change again",
    )
}

#[cfg(test)]
mod tests {
    use heddle_core::secret::Secret;
    use serde_json::json;

    use super::*;
    use crate::api::SecretBook;

    fn with(secrets: &[&str]) -> Fill {
        let entries = secrets.iter().map(|s| (references::reference(&[1; 32], s), Secret::new(*s))).collect();
        Fill { hold_secs: 90, secrets: SecretBook { entries } }
    }

    #[test]
    fn a_form_is_filled_like_json() {
        let key = references::reference(&[1; 32], "a&b=c");
        let form = vec![
            ("timeout".to_owned(), "{{host.hold_secs}}".to_owned()),
            ("psk".to_owned(), format!("x{key}")),
        ];
        let Body::Form(form) = body(Body::Form(form), &with(&["a&b=c"])).unwrap() else {
            panic!("a form stays one")
        };
        assert_eq!(form[0].1, "90");
        assert_eq!(form[1].1, "xa&b=c");
        let unknown = Body::Form(vec![("psk".to_owned(), key)]);
        assert_eq!(body(unknown, &with(&[])).unwrap_err().code.as_deref(), Some("unknown-secret"));
    }

    fn filled(value: &Value, secrets: &[&str]) -> Result<Value, Fault> {
        match body(Body::Json(value.clone()), &with(secrets))? {
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
