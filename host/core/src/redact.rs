//! The one serializer that takes secrets out of what leaves the service.

use serde_json::Value;

use crate::work;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// How a reference to a secret begins. The digits behind it tell two secrets
/// apart and nothing else, so that a plan can say "changed" without knowing how.
pub const REFERENCE: &str = "hdl-secret:";
/// Hex digits behind [`REFERENCE`].
pub const REFERENCE_DIGITS: usize = 32;

/// Names of fields that are removed at any depth from every outgoing payload.
pub const FIELD_NAMES: &[&str] = &[
    "password",
    "hashed_password",
    "secret",
    "api_key",
    "api_secret",
    "client_secret",
    "token",
    "access_token",
    "refresh_token",
    "private_key",
    "ssh_key",
    "mfa_secret",
    "mfa_backup_codes",
    "credentials",
    "cookie",
    "session_token",
    "encryption_key",
];

/// Whether a field of this name is removed.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    FIELD_NAMES.iter().any(|secret| secret.eq_ignore_ascii_case(name))
}

/// Takes out secret fields by name, PEM blocks, and references to secrets.
///
/// For events, audit and logs, where a secret field has no business at all.
pub fn sanitize(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !is_secret_name(name));
            fields.values_mut().for_each(sanitize);
        }
        Value::Array(items) => items.iter_mut().for_each(sanitize),
        Value::String(text) => mask_text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks references to secrets and PEM blocks, and keeps every field.
///
/// For plans and payloads, where the reader must see that a field is set.
pub fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(mask),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) => mask_text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// How a PEM block begins.
const PEM: &str = "-----BEGIN ";

/// Whether [`mask`] would change anything of the value that this JSON text is of, or of the names of its fields.
pub fn may_need_mask(json: &str) -> bool {
    // Neither has a character that JSON escapes.
    json.contains(REFERENCE) || json.contains(PEM)
}

/// Masks references to secrets and PEM blocks inside a text.
///
/// One pass: what is before a reference is copied once and never looked at again. That is enough, because what is put in
/// its place can begin no other one, and no reference reaches into the next: its digits are not how one begins.
pub fn mask_text(text: &mut String) {
    work::count(text.len());
    if text.contains(PEM) {
        MASK.clone_into(text);
        return;
    }
    let mut masked = String::new();
    let mut kept = 0;
    work::count(text.len());
    for (at, _) in text.match_indices(REFERENCE) {
        if masked.is_empty() {
            masked.reserve(text.len());
        }
        masked.push_str(&text[kept..at]);
        masked.push_str(MASK);
        let behind = &text[at + REFERENCE.len()..];
        let digits = behind.bytes().take(REFERENCE_DIGITS).take_while(u8::is_ascii_hexdigit).count();
        work::count(at - kept + MASK.len() + digits);
        kept = at + REFERENCE.len() + digits;
    }
    if kept > 0 {
        work::count(text.len() - kept);
        masked.push_str(&text[kept..]);
        *text = masked;
    }
}

/// What stands in place of a URL's query. No URL has this sign in it.
pub const HIDDEN_QUERY: &str = "?…";

/// A URL as it may be shown: tokens are often in its query, and a user in front of its host.
pub fn shown_url(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (address, query) = url.split_once('?').map_or((url, ""), |(address, _)| (address, HIDDEN_QUERY));
    let Some((scheme, rest)) = address.split_once("://") else { return format!("{address}{query}") };
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn listed_names_go_at_any_depth_and_the_rest_stays() {
        let mut value = json!({"name": "wan", "deep": [{"Password": "x", "mtu": 1500}], "token": 1});
        sanitize(&mut value);
        assert_eq!(value, json!({"name": "wan", "deep": [{"mtu": 1500}]}));
    }

    #[test]
    fn references_are_masked_inside_a_text() {
        let reference = format!("{REFERENCE}{}", "0".repeat(REFERENCE_DIGITS));
        let mut value = json!({"password": reference, "line": format!("psk={reference};{reference}")});
        mask(&mut value);
        assert_eq!(value, json!({"password": "***", "line": "psk=***;***"}));
    }

    #[test]
    fn the_text_of_a_value_shows_whether_anything_of_it_is_masked() {
        let reference = format!("{REFERENCE}{}", "0".repeat(REFERENCE_DIGITS));
        let texts = [
            reference.as_str(),
            "-----BEGIN X-----\n\"",
            "psk=hdl-secret:",
            "plain \"hdl-secret\"",
            "-----BEGIN",
            "",
        ];
        for text in texts {
            let value = json!({ "deep": [{ "body": text }] });
            let mut masked = value.clone();
            mask(&mut masked);
            assert_eq!(may_need_mask(&value.to_string()), masked != value, "{value}");
        }
    }

    #[test]
    fn masking_takes_work_in_proportion_to_the_text() {
        let digits = "0123456789abcdef".repeat(2);
        for piece in [
            REFERENCE,
            "hdl-secret",
            "hdl-secret:hdl-",
            "hdl-hdl-secret:",
            &format!("{REFERENCE}{digits}"),
            &format!("{REFERENCE}{digits}{digits}"),
            "-----BEGIN",
            "h",
        ] {
            for length in [10_000, 80_000] {
                let mut text = piece.repeat(length / piece.len());
                let before = text.len();
                let worked = work::counted(|| mask_text(&mut text));
                assert!(worked <= 4 * before, "'{piece}': {worked} bytes of work for {before}");
                assert!(!text.contains(REFERENCE), "'{piece}'");
            }
        }
    }

    #[test]
    fn what_stays_around_references_is_as_it_was() {
        let mut text = format!("a{REFERENCE}b{REFERENCE}{}c", "0".repeat(REFERENCE_DIGITS + 1));
        mask_text(&mut text);
        assert_eq!(text, "a******0c");
        let mut text = "nothing hdl-secret of this kind".to_owned();
        mask_text(&mut text);
        assert_eq!(text, "nothing hdl-secret of this kind");
    }

    #[test]
    fn a_url_is_shown_without_its_user_and_its_query() {
        for (url, shown) in [
            ("https://hook.example/a", "https://hook.example/a"),
            ("https://hook.example/a?token=x&b=1#c", "https://hook.example/a?…"),
            ("https://me:pw@hook.example:8443/a@b", "https://hook.example:8443/a@b"),
            ("https://hook.example?x", "https://hook.example?…"),
            ("https://hook.example/a?…", "https://hook.example/a?…"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }
}
