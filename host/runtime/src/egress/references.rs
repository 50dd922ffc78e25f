//! References that stand for secrets: equal for equal secrets of a controller,
//! and of no use to whoever holds only them.

use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_core::redact::{REFERENCE, REFERENCE_DIGITS};
use heddle_core::secret::Secret;
use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::api::SecretBook;

/// The reference of a secret under a controller's key: `hdl-secret:` and 32 hex digits.
pub fn reference(key: &[u8; 32], secret: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(secret.as_bytes());
    let digest = hex::encode(mac.finalize().into_bytes());
    format!("{REFERENCE}{}", &digest[..REFERENCE_DIGITS])
}

/// References that occur in a text.
pub(crate) fn find(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(REFERENCE) {
        let end = at + REFERENCE.len() + REFERENCE_DIGITS;
        if let Some(candidate) = text.get(at..end)
            && candidate[REFERENCE.len()..].bytes().all(|b| b.is_ascii_hexdigit())
        {
            found.push(candidate);
        }
    }
    found
}

/// Replaces secrets in a JSON answer by references, and remembers them.
///
/// What is no JSON passes as it is. An answer that is JSON but nested too deep
/// to look at is withheld.
pub(super) fn replace(
    body: Vec<u8>,
    fields: &[String],
    key: &[u8; 32],
    book: &mut SecretBook,
) -> Result<Vec<u8>, Fault> {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&body);
    let starts_like_json =
        text.iter().find(|b| !b.is_ascii_whitespace()).is_some_and(|b| matches!(b, b'{' | b'['));
    if fields.is_empty() || !starts_like_json {
        return Ok(body);
    }
    // A device may put any bytes into a name; what is not UTF-8 is replaced, so that it can be searched.
    let mut value: Value = serde_json::from_str(&String::from_utf8_lossy(text)).map_err(|error| {
        let is_deep = error.to_string().starts_with("recursion limit");
        let (message, code) = if is_deep {
            ("the answer is nested too deep to be checked for secrets", "answer-too-deep")
        } else {
            ("the answer begins like JSON and is not; it cannot be checked for secrets", "answer-not-json")
        };
        // The request was carried out, whatever became of its answer.
        Fault::new(FaultKind::Generic, message).with_code(code).with_effect(Effect::Possible)
    })?;
    if !walk(&mut value, fields, key, book) {
        return Ok(body);
    }
    Ok(serde_json::to_vec(&value).expect("a JSON value serializes"))
}

/// Whether a secret field was met. Then the answer is written anew even when
/// its value stayed: the field may occur twice in the text, and only one was seen.
fn walk(value: &mut Value, fields: &[String], key: &[u8; 32], book: &mut SecretBook) -> bool {
    match value {
        Value::Object(object) => object.iter_mut().fold(false, |met, (name, value)| {
            if fields.iter().any(|field| field.eq_ignore_ascii_case(name)) {
                hide(value, key, book);
                walk(value, fields, key, book);
                true
            } else {
                walk(value, fields, key, book) || met
            }
        }),
        Value::Array(items) => {
            let mut met = false;
            // Every item is walked, whatever the ones before it held.
            for item in items {
                met |= walk(item, fields, key, book);
            }
            met
        }
        _ => false,
    }
}

fn hide(value: &mut Value, key: &[u8; 32], book: &mut SecretBook) {
    match value {
        Value::String(text) if !text.is_empty() => {
            let name = reference(key, text);
            book.entries.entry(name.clone()).or_insert_with(|| Secret::new(text.as_str()));
            *text = name;
        }
        Value::Array(items) => {
            items.iter_mut().filter(|item| item.is_string()).for_each(|item| hide(item, key, book));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: [u8; 32] = [1; 32];

    fn replaced(body: &str) -> (String, SecretBook) {
        let mut book = SecretBook::default();
        let fields = ["key".to_owned(), "password".to_owned()];
        let body = replace(body.as_bytes().to_vec(), &fields, &KEY, &mut book).unwrap();
        (String::from_utf8(body).unwrap(), book)
    }

    #[test]
    fn equal_secrets_have_equal_references_that_differ_by_controller() {
        assert_eq!(reference(&KEY, "geheim"), reference(&KEY, "geheim"));
        assert_ne!(reference(&KEY, "geheim"), reference(&[2; 32], "geheim"));
        assert_eq!(reference(&KEY, "geheim").len(), REFERENCE.len() + REFERENCE_DIGITS);
    }

    #[test]
    fn secret_fields_become_references_at_any_depth() {
        let (body, book) =
            replaced(r#"[{"a": {"KEY": "geheim", "key2": "seen"}, "password": ["eins", "", 3]}]"#);
        for secret in ["geheim", "eins"] {
            assert!(!body.contains(secret), "{body}");
        }
        let body: Value = serde_json::from_str(&body).unwrap();
        let name = reference(&KEY, "geheim");
        assert_eq!(body[0]["a"], json!({"KEY": name, "key2": "seen"}));
        assert_eq!(book.entries[&name].expose(), "geheim");
        assert_eq!(book.entries.len(), 2);
    }

    #[test]
    fn a_second_field_of_the_same_name_is_no_way_out() {
        let (body, _) = replaced(r#"{"key": "geheim", "key": ""}"#);
        assert!(!body.contains("geheim"), "{body}");
    }

    #[test]
    fn an_answer_without_secret_fields_keeps_its_text() {
        let text = r#"{ "n": 1.50, "id": 12345678901234567890123 }"#;
        assert_eq!(replaced(text).0, text);
        assert_eq!(replaced("key: geheim").0, "key: geheim");
    }

    #[test]
    fn an_answer_too_deep_to_check_is_withheld() {
        let body = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let fields = ["key".to_owned()];
        assert!(replace(body.into_bytes(), &fields, &KEY, &mut SecretBook::default()).is_err());
    }

    #[test]
    fn references_are_found_in_texts() {
        let name = reference(&KEY, "x");
        assert_eq!(find(&format!("psk={name};{name} hdl-secret:12")), vec![name.as_str(), name.as_str()]);
    }
}
