//! What fills the body of a reviewed call when it is sent, beside its holes: secrets for their references, and the
//! seconds that a device shall hold a change.

use heddle_core::change::NativeCall;
use heddle_core::fault::Fault;
use heddle_core::redact::REFERENCE;
use serde_json::Value;

use super::holes::Pieces;
use super::references;
use super::request::denied;
use crate::api::Filling;

const HOLD: &str = "{{host.hold_secs}}";

/// Refuses references where they are not filled in: in paths and headers.
pub(super) fn check_places(call: &NativeCall) -> Result<(), Fault> {
    let headers = call.headers.iter().map(|(_, value)| value);
    match headers.chain([&call.path]).find(|text| text.contains(REFERENCE) || text.contains(HOLD)) {
        None => Ok(()),
        Some(_) => Err(denied(
            "reference",
            format!(
                "{} {} has a secret or the hold time in its path or headers; only a body is filled with them",
                call.method, call.path
            ),
        )),
    }
}

/// The texts of a reviewed body as they are sent.
impl Pieces for Filling {
    fn whole(&self, text: &str) -> Result<Value, Fault> {
        if text == HOLD {
            return Ok(self.hold_secs.into());
        }
        self.beside(text).map(Value::from)
    }

    fn beside(&self, piece: &str) -> Result<String, Fault> {
        if piece.contains(REFERENCE) { secrets(piece, self) } else { Ok(piece.to_owned()) }
    }
}

fn secrets(text: &str, with: &Filling) -> Result<String, Fault> {
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
    use std::sync::Arc;

    use heddle_core::change::{HoleValues, Stage};
    use heddle_core::secret::Secret;
    use serde_json::json;

    use super::super::holes;
    use super::*;
    use crate::api::SecretBook;

    fn filling(secrets: &[&str]) -> Filling {
        let entries = secrets.iter().map(|s| (references::reference(&[1; 32], s), Secret::new(*s))).collect();
        let secrets = Arc::new(SecretBook { entries });
        Filling {
            hold_secs: 90,
            secrets,
            files: Arc::default(),
            holes: Arc::from([]),
            values: HoleValues::new(),
        }
    }

    fn call(body: Option<Value>, form: Option<Vec<(String, String)>>) -> NativeCall {
        NativeCall { body, form, ..NativeCall::new(Stage::Apply, "POST", "/x") }
    }

    fn sent(call: &NativeCall, secrets: &[&str], values: &HoleValues) -> Result<NativeCall, Fault> {
        holes::fill(call, values, &filling(secrets))
    }

    #[test]
    fn a_form_is_filled_like_json() {
        let key = references::reference(&[1; 32], "a&b=c");
        let form = vec![
            ("timeout".to_owned(), "{{host.hold_secs}}".to_owned()),
            ("psk".to_owned(), format!("x{key}")),
        ];
        let form = sent(&call(None, Some(form)), &["a&b=c"], &HoleValues::new()).unwrap().form.unwrap();
        assert_eq!(form[0].1, "90");
        assert_eq!(form[1].1, "xa&b=c");
        let unknown = sent(&call(None, Some(vec![("psk".to_owned(), key)])), &[], &HoleValues::new());
        assert_eq!(unknown.unwrap_err().code.as_deref(), Some("unknown-secret"));
    }

    fn filled(value: &Value, secrets: &[&str]) -> Result<Value, Fault> {
        let sent = sent(&call(Some(value.clone()), None), secrets, &HoleValues::new())?;
        Ok(sent.body.expect("a body stays one"))
    }

    #[test]
    fn no_value_completes_a_reference_or_the_hold_time() {
        let reference = references::reference(&[1; 32], "geheim");
        let (begin, end) = reference.split_at(10);
        let values = HoleValues::from([
            ("a".to_owned(), json!(begin)),
            ("b".to_owned(), json!(end)),
            ("h".to_owned(), json!("{{host.")),
        ]);
        let body = json!(["{{hole.a}}{{hole.b}}", format!("{begin}{{{{hole.b}}}}"), "{{hole.h}}hold_secs}}"]);
        let sent = sent(&call(Some(body), None), &["geheim"], &values).unwrap();
        assert_eq!(
            sent.body.unwrap(),
            json!([reference, reference, "{{host.hold_secs}}"]),
            "as texts, not as secrets"
        );
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
