//! Requests of a recorded call whose secrets have a place in the query or in the body.
//!
//! A recorded request has no secrets, since the host puts them in after the plugin has made the request. In a replay each
//! secret is the text [`SECRET`]. Where a request of the replay has this text, the recorded one has nothing, an empty text, or
//! the same text.

use serde_json::Value;
use url::form_urlencoded::parse;

/// What stands in the place of each secret.
pub(crate) const SECRET: &str = "a secret of a recorded call";

/// Whether a path with its query is the recorded one.
pub(crate) fn is_path(recorded: &str, sent: &str) -> bool {
    without_secrets(recorded) == without_secrets(sent)
}

/// The path, and the pairs of its query that are no secrets, as they are written.
fn without_secrets(path: &str) -> (&str, Vec<&str>) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let is_plain = |pair: &&str| !pair.is_empty() && parse(pair.as_bytes()).all(|(_, value)| value != SECRET);
    (path, query.split('&').filter(is_plain).collect())
}

/// Whether a JSON value is the recorded one.
pub(crate) fn is_json(recorded: Option<&Value>, sent: Option<&Value>) -> bool {
    match (recorded, sent) {
        (None | Some(Value::Null), Some(Value::String(text))) if text == SECRET => true,
        (Some(Value::String(own)), Some(Value::String(text))) if text == SECRET => {
            own.is_empty() || own == SECRET
        }
        (Some(Value::Object(recorded)), Some(Value::Object(sent))) => {
            let names = recorded.keys().chain(sent.keys());
            names.into_iter().all(|name| is_json(recorded.get(name), sent.get(name)))
        }
        (Some(Value::Array(recorded)), Some(Value::Array(sent))) => {
            recorded.len() == sent.len()
                && recorded.iter().zip(sent).all(|(recorded, sent)| is_json(Some(recorded), Some(sent)))
        }
        (recorded, sent) => recorded == sent,
    }
}

/// Whether a body is a form with the recorded fields.
pub(crate) fn is_form(recorded: &[(String, String)], body: &[u8]) -> bool {
    let (secret, sent): (Vec<_>, Vec<_>) = parse(body).partition(|(_, value)| value == SECRET);
    // The host puts a secret in the place of an empty field.
    let is_place = |(name, value): &&(String, String)| {
        value == SECRET || value.is_empty() && secret.iter().any(|(found, _)| found == name)
    };
    let recorded = recorded.iter().filter(|field| !is_place(field));
    recorded.map(|(name, value)| (name.as_str(), value.as_str())).eq(sent.iter().map(|(n, v)| (&**n, &**v)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use url::form_urlencoded::Serializer;

    use super::*;

    #[test]
    fn a_secret_of_the_query_is_in_the_sent_path_only() {
        let query = |pairs: &[(&str, &str)]| Serializer::new(String::new()).extend_pairs(pairs).finish();
        let sent = format!("/v1/a?b=c&{}", query(&[("key", SECRET)]));
        for (recorded, fits) in [
            ("/v1/a?b=c", true),
            (sent.as_str(), true),
            ("/v1/a?b=d", false),
            ("/v1/a", false),
            ("/v1/b?b=c", false),
            ("/v1/a?b=c&key=x", false),
        ] {
            assert_eq!(is_path(recorded, &sent), fits, "{recorded}");
        }
        assert!(is_path("/v1/a", &format!("/v1/a?{}", query(&[("key", SECRET)]))));
    }

    #[test]
    fn a_secret_of_a_json_body_is_absent_or_empty_in_the_recorded_one() {
        let sent = json!({ "auth": { "key": SECRET }, "n": [1, { "key": SECRET }] });
        for (recorded, fits) in [
            (json!({ "auth": {}, "n": [1, {}] }), true),
            (json!({ "auth": { "key": "" }, "n": [1, { "key": null }] }), true),
            (json!({ "auth": { "key": SECRET }, "n": [1, {}] }), true),
            (json!({ "auth": { "key": "x" }, "n": [1, {}] }), false),
            (json!({ "auth": {}, "n": [2, {}] }), false),
            (json!({ "auth": {}, "n": [1] }), false),
            (json!({ "auth": {}, "n": [1, {}], "more": null }), false),
        ] {
            assert_eq!(is_json(Some(&recorded), Some(&sent)), fits, "{recorded}");
        }
    }

    #[test]
    fn a_secret_of_a_form_is_absent_or_empty_in_the_recorded_one() {
        let own = |fields: &[(&str, &str)]| -> Vec<(String, String)> {
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let body =
            Serializer::new(String::new()).extend_pairs([("a", "1"), ("e", ""), ("key", SECRET)]).finish();
        for (recorded, fits) in [
            (own(&[("a", "1"), ("e", "")]), true),
            (own(&[("key", ""), ("a", "1"), ("e", "")]), true),
            (own(&[("a", "1"), ("e", ""), ("key", SECRET)]), true),
            (own(&[("a", "2"), ("e", "")]), false),
            (own(&[("a", "1")]), false),
            (own(&[("a", "1"), ("e", ""), ("key", "x")]), false),
        ] {
            assert_eq!(is_form(&recorded, body.as_bytes()), fits, "{recorded:?}");
        }
    }
}
