//! Whether an answer is of a declared kind.

use heddle_core::bounds::JsonRoom;
use heddle_marketplace::manifest::{HeaderIs, Matcher, Session};
use serde_json::Value;

use crate::egress::wire::Answer;

/// What an answer says of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::egress) enum Expiry {
    Alive,
    Expired,
    /// A batch of which one part was refused and another was not.
    Mixed,
}

/// Looks for signs that the session is gone.
pub(in crate::egress) fn expired(
    session: &Session,
    answer: &Answer,
    body: Option<&Value>,
    write: bool,
) -> Expiry {
    let any = session.expired.iter().any(|matcher| fits(matcher, answer, body));
    if !any {
        return Expiry::Alive;
    }
    let Some(Value::Array(batch)) = body else { return Expiry::Expired };
    let all = batch.iter().all(|element| {
        session.expired.iter().any(|matcher| fits_shell(matcher, answer) && fits_json(matcher, element))
    });
    // A read can be repeated whatever came of its parts.
    if all || !write { Expiry::Expired } else { Expiry::Mixed }
}

/// Whether all conditions hold; of a batch, one element is enough.
pub(in crate::egress) fn fits(matcher: &Matcher, answer: &Answer, body: Option<&Value>) -> bool {
    if !fits_shell(matcher, answer) {
        return false;
    }
    match body {
        _ if matcher.json.is_empty() => true,
        None => false,
        Some(Value::Array(batch)) => batch.iter().any(|element| fits_json(matcher, element)),
        Some(body) => fits_json(matcher, body),
    }
}

/// The body as JSON; `None` where it is none, or larger than a login's answer can sensibly be.
pub(in crate::egress) fn json(answer: &Answer) -> Option<Value> {
    JsonRoom::default().take(&answer.body).ok()?;
    serde_json::from_slice(&answer.body).ok()
}

fn fits_shell(matcher: &Matcher, answer: &Answer) -> bool {
    let status = matcher.status.is_empty() || matcher.status.contains(&answer.status);
    let kind = matcher.content_type.as_ref().is_none_or(|wanted| {
        answer.header("content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with(wanted))
    });
    let empty = matcher.empty.is_none_or(|empty| answer.body.is_empty() == empty);
    status && kind && empty && matcher.header.iter().all(|(name, wanted)| has_header(answer, name, wanted))
}

fn has_header(answer: &Answer, name: &str, wanted: &HeaderIs) -> bool {
    answer.header(&name.to_ascii_lowercase()).is_some_and(|found| match wanted {
        HeaderIs::Values(values) => values.iter().any(|value| value == found),
        HeaderIs::Prefix(prefix) => found.starts_with(prefix),
    })
}

fn fits_json(matcher: &Matcher, body: &Value) -> bool {
    matcher
        .json
        .iter()
        .all(|(pointer, values)| body.pointer(pointer).is_some_and(|found| values.contains(found)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::egress::tests::{answer, manifest};

    #[test]
    fn one_refused_element_of_a_batch_is_a_sign_but_not_for_repeating_writes() {
        let session = manifest().auth.remove("main").unwrap();
        let (good, gone) = (json!({"result": 1}), json!({"error": {"code": -32002}}));
        let judge = |body: &Value, write| expired(&session, &answer(200, body), Some(body), write);
        assert_eq!(judge(&good, true), Expiry::Alive);
        assert_eq!(judge(&gone, true), Expiry::Expired);
        assert_eq!(judge(&json!([good, gone]), false), Expiry::Expired);
        assert_eq!(judge(&json!([good, gone]), true), Expiry::Mixed);
        assert_eq!(judge(&json!([gone, gone]), true), Expiry::Expired);
        assert_eq!(expired(&session, &answer(401, &good), Some(&good), true), Expiry::Expired);
    }

    #[test]
    fn all_conditions_must_hold() {
        let matcher = Matcher {
            status: vec![200],
            json: [("/code".to_owned(), vec![json!(0)])].into(),
            content_type: Some("application/json".to_owned()),
            ..Matcher::default()
        };
        let fit = |status, body: Value| fits(&matcher, &answer(status, &body), Some(&body));
        assert!(fit(200, json!({"code": 0})));
        assert!(!fit(201, json!({"code": 0})));
        assert!(!fit(200, json!({"code": 1})));
        assert!(!fit(200, json!({})));
    }
    #[test]
    fn headers_and_an_empty_body_are_conditions_too() {
        let mut answer = answer(200, &json!(1));
        answer.headers.push(("x-csrf".to_owned(), b"Token abc".to_vec()));
        let fit = |matcher: Value| fits(&serde_json::from_value(matcher).unwrap(), &answer, None);
        assert!(fit(json!({"header": {"X-CSRF": {"values": ["other", "Token abc"]}}})));
        assert!(fit(json!({"header": {"x-csrf": {"prefix": "Token "}}, "empty": false})));
        assert!(fit(json!({"header": {"x-csrf": {"prefix": ""}}})));
        assert!(!fit(json!({"header": {"x-csrf": {"values": ["Token"]}}})));
        assert!(!fit(json!({"header": {"x-csrf": {"prefix": "token"}}})));
        assert!(!fit(json!({"header": {"x-other": {"prefix": ""}}})));
        assert!(!fit(json!({"empty": true})));
    }
}
