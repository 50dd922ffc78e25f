//! References that stand for secrets: equal for equal secrets of a controller, and of no use to a party that holds only
//! them.

use aho_corasick::AhoCorasick;
use heddle_core::bounds::{JsonRoom, TooMuch};
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

/// An answer's body, parsed at most once.
#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    Json(Value),
    /// It is no JSON.
    Other,
    /// It was not looked at: nothing asks what is in it.
    Unread,
}

impl Content {
    pub(super) fn json(&self) -> Option<&Value> {
        match self {
            Content::Json(value) => Some(value),
            Content::Other | Content::Unread => None,
        }
    }

    /// Parses a body that has no more values than are accepted.
    pub(crate) fn of(body: &[u8]) -> Result<Self, Fault> {
        let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        // The request was carried out, whatever became of its answer.
        let withheld = |message: String, code: &str| {
            Fault::new(FaultKind::Generic, message).with_code(code).with_effect(Effect::Possible)
        };
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        let starts_like_json = first.is_some_and(|byte| matches!(byte, b'{' | b'['));
        if starts_like_json {
            JsonRoom::default().take(text).map_err(|too_much| match too_much {
                TooMuch::Depth => withheld(
                    "the answer is nested too deep to be checked for secrets".to_owned(),
                    "answer-too-deep",
                ),
                TooMuch::Nodes => withheld(format!("the answer {too_much}"), "answer-too-complex"),
            })?;
        }
        // A device may put any bytes into a name; what is not UTF-8 is replaced, so that it can be searched.
        match serde_json::from_str(&String::from_utf8_lossy(text)) {
            Ok(value) => Ok(Content::Json(value)),
            Err(_) if starts_like_json => Err(withheld(
                "the answer begins like JSON and is not; it cannot be checked for secrets".to_owned(),
                "answer-not-json",
            )),
            Err(_) => Ok(Content::Other),
        }
    }
}

/// The fields of a component that hold secrets, and what finds their names in a text.
#[derive(Debug)]
pub(crate) struct SecretFields {
    names: Vec<String>,
    /// `None` where it cannot be made; then any text may hold one.
    finder: Option<AhoCorasick>,
}

impl SecretFields {
    pub(crate) fn of(names: &[String]) -> Self {
        let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(names).ok();
        Self { names: names.to_vec(), finder }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether one of the names may stand in a JSON text; an escape may spell any of them.
    fn may_occur(&self, body: &[u8]) -> bool {
        body.contains(&b'\\') || self.finder.as_ref().is_none_or(|finder| finder.is_match(body))
    }
}

/// Types of answers that have no fields a component could read: it only needs to know that one came.
fn has_no_fields(content_type: Option<&str>) -> bool {
    let kind = content_type.unwrap_or_default().trim_start().to_ascii_lowercase();
    ["text/html", "text/css", "image/", "audio/", "video/", "font/"]
        .iter()
        .any(|begin| kind.starts_with(begin))
}

/// Replaces secrets in a JSON answer by references, and remembers them.
///
/// A body that is no JSON cannot be searched for the manifest's secret fields: of a page, a picture or a refusal only
/// the status and the headers are handed on, anything else is a fault.
pub(crate) fn replace(
    body: Vec<u8>,
    content: Content,
    (status, content_type): (u16, Option<&str>),
    fields: &SecretFields,
    key: &[u8; 32],
    book: &mut SecretBook,
) -> Result<Vec<u8>, Fault> {
    if fields.is_empty() || body.iter().all(u8::is_ascii_whitespace) {
        return Ok(body);
    }
    let Content::Json(mut value) = content else {
        if has_no_fields(content_type) || !(200..300).contains(&status) {
            return Ok(Vec::new());
        }
        let mut fault = Fault::new(
            FaultKind::Generic,
            format!("the device answered status {status} without JSON; it cannot be checked for secrets"),
        )
        .with_code("answer-not-json")
        .with_effect(Effect::Possible);
        fault.upstream_status = Some(status);
        return Err(fault);
    };
    // Of two fields of one name only the last was walked: a text that may name a secret field anywhere is written anew.
    if !walk(&mut value, &fields.names, key, book) && !fields.may_occur(&body) {
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
        let fields = SecretFields::of(&["key".to_owned(), "password".to_owned()]);
        let content = Content::of(body.as_bytes()).unwrap();
        let body = replace(body.as_bytes().to_vec(), content, (200, None), &fields, &KEY, &mut book).unwrap();
        (String::from_utf8(body).unwrap(), book)
    }

    #[track_caller]
    fn without_json(body: &str, status: u16, kind: Option<&str>, expected: Result<&str, &str>) {
        let (fields, book) = (SecretFields::of(&["key".to_owned()]), &mut SecretBook::default());
        let content = Content::of(body.as_bytes()).unwrap();
        let found = replace(body.as_bytes().to_vec(), content, (status, kind), &fields, &KEY, book);
        let found = found.map(|body| String::from_utf8(body).unwrap());
        assert_eq!(
            found.map_err(|fault| fault.code.unwrap()),
            expected.map(str::to_owned).map_err(str::to_owned)
        );
    }

    #[test]
    fn what_cannot_be_searched_for_secrets_is_withheld() {
        without_json("key=geheim", 200, Some("text/plain"), Err("answer-not-json"));
        without_json("key=geheim", 200, None, Err("answer-not-json"));
        without_json("<config><key>geheim</key></config>", 200, Some("text/xml"), Err("answer-not-json"));
        without_json("<html>geheim</html>", 200, Some("Text/HTML; charset=utf-8"), Ok(""));
        without_json("no such path: geheim", 404, Some("text/plain"), Ok(""));
        without_json("\n", 200, None, Ok("\n"));
        without_json("\"seen\"", 200, None, Ok("\"seen\""));
    }

    #[test]
    fn an_answer_of_very_many_values_is_not_parsed() {
        let body = format!("[{}0]", "{\"a\":0},".repeat(400_000));
        assert_eq!(Content::of(body.as_bytes()).unwrap_err().code.as_deref(), Some("answer-too-complex"));
        assert_eq!(Content::of(b"{\"a\":").unwrap_err().code.as_deref(), Some("answer-not-json"));
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
    fn a_secret_in_an_object_that_stands_twice_is_no_way_out() {
        for body in [r#"{"a": {"key": "geheim"}, "a": {}}"#, r#"{"a": {"\u006bey": "geheim"}, "a": {}}"#] {
            assert!(!replaced(body).0.contains("geheim"), "{body}");
        }
    }

    #[test]
    fn an_answer_without_secret_fields_keeps_its_text() {
        let text = r#"{ "n": 1.50, "id": 12345678901234567890123 }"#;
        assert_eq!(replaced(text).0, text);
    }

    #[test]
    fn an_answer_too_deep_to_check_is_withheld() {
        let body = format!("{}{}", "[".repeat(500), "]".repeat(500));
        assert_eq!(Content::of(body.as_bytes()).unwrap_err().code.as_deref(), Some("answer-too-deep"));
    }

    #[test]
    fn references_are_found_in_texts() {
        let name = reference(&KEY, "x");
        assert_eq!(find(&format!("psk={name};{name} hdl-secret:12")), vec![name.as_str(), name.as_str()]);
    }
}
