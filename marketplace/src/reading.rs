//! Whether the query and the form of a request are those that a rule of `reads` names.
//!
//! The host and the judgement of packages ask the same functions. What is not named does not fit: neither another
//! parameter, nor one that comes twice or is missing.

use std::collections::BTreeMap;

use crate::manifest::ReadRule;

/// Stands for any value, as the only one of a list.
pub(crate) const ANY: &str = "*";

/// Whether pairs are exactly those that are named; `fits` compares an accepted value with a found one.
fn are_exactly<'a>(
    named: &BTreeMap<String, Vec<String>>,
    found: impl IntoIterator<Item = (&'a str, &'a str)>,
    fits: impl Fn(&str, &str) -> bool,
) -> bool {
    let mut seen = Vec::new();
    for (name, value) in found {
        let accepted = named.get(name);
        let is_accepted =
            accepted.is_some_and(|values| values.iter().any(|one| one == ANY || fits(one, value)));
        if !is_accepted || seen.contains(&name) {
            return false;
        }
        seen.push(name);
    }
    seen.len() == named.len()
}

/// Whether the query of a path is that of the rule; a rule without one is for paths without one.
///
/// Names and values are compared as they are sent. One that is escaped, or that a device could take for several, fits
/// at most where any value does, and there without such characters.
#[must_use]
pub fn query_fits(rule: &ReadRule, path: &str, fits: impl Fn(&str, &str) -> bool) -> bool {
    match path.split_once('?') {
        None => rule.query.is_empty(),
        Some((_, query)) => {
            let pairs: Option<Vec<(&str, &str)>> =
                query.split('&').map(|pair| pair.split_once('=')).collect();
            let is_clear = !query.contains([';', '?']);
            is_clear
                && !rule.query.is_empty()
                && pairs.is_some_and(|pairs| are_exactly(&rule.query, pairs, fits))
        }
    }
}

/// Whether a body is what the rule takes beside its JSON: the named form or, where none is named, what the rule says of
/// bodies. `form` has the fields of a body that is one.
#[must_use]
pub fn body_fits<'a>(
    rule: &ReadRule,
    has_body: bool,
    form: Option<impl IntoIterator<Item = (&'a str, &'a str)>>,
    fits: impl Fn(&str, &str) -> bool,
) -> bool {
    if rule.form.is_empty() {
        return rule.only_reads || !rule.json.is_empty() || !has_body;
    }
    form.is_some_and(|form| are_exactly(&rule.form, form, fits))
}

/// What is wrong with the names and values of a rule's form or query.
pub(crate) fn problem(named: &BTreeMap<String, Vec<String>>) -> Option<&'static str> {
    // As they are sent: neither a query nor a form escapes any of these.
    let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    for (name, values) in named {
        if name.is_empty() || !is_plain(name) {
            return Some("a name of 'form' or 'query' has letters, digits, '-', '.' and '_' only");
        }
        if values.is_empty() {
            return Some("an empty list of values fits no request");
        }
        if values.iter().any(|value| value == ANY) {
            if values.len() > 1 {
                return Some("'*' stands for any value, and for that alone");
            }
        } else if !values.iter().all(|value| is_plain(value)) {
            return Some(
                "a value of 'form' or 'query' has letters, digits, '-', '.' and '_' only, or is '*'",
            );
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rule(form: Value, query: Value) -> ReadRule {
        let rule = json!({ "method": "POST", "path": "/x", "form": form, "query": query });
        serde_json::from_value(rule).unwrap()
    }

    #[test]
    fn a_query_has_exactly_what_is_named() {
        let rule = rule(json!({}), json!({ "type": ["vm", "node"], "limit": ["*"] }));
        let fits = |path: &str| query_fits(&rule, path, |one, found| one == found);
        for path in ["/x?type=vm&limit=5", "/x?limit=&type=node", "/x?type=vm&limit=a%20b"] {
            assert!(fits(path), "{path}");
        }
        for path in [
            "/x",
            "/x?",
            "/x?type=vm",
            "/x?type=pool&limit=5",
            "/x?type=vm&limit=5&force=1",
            "/x?type=vm&limit=5&type=vm",
            "/x?type=vm&limit=5&limit=6",
            "/x?type=vm&limit=5;force=1",
            "/x?type=vm&limit=5?force=1",
            "/x?type=vm&limit",
            "/x?type=vm&limit=5&",
            "/x?t%79pe=vm&limit=5",
            "/x?type=v%6d&limit=5",
            "/x?Type=vm&limit=5",
        ] {
            assert!(!fits(path), "{path}");
        }
    }

    #[test]
    fn a_rule_without_a_query_is_for_paths_without_one() {
        let rule = rule(json!({ "op": ["get"] }), json!({}));
        let fits = |path: &str| query_fits(&rule, path, |one, found| one == found);
        assert!(fits("/x"));
        assert!(!fits("/x?") && !fits("/x?a=b"));
    }

    #[test]
    fn a_form_has_exactly_what_is_named() {
        let rule = rule(json!({ "op": ["get", "list"], "id": ["*"] }), json!({}));
        let fits = |form: &[(&str, &str)]| {
            body_fits(&rule, true, Some(form.iter().copied()), |one, found| one == found)
        };
        assert!(fits(&[("id", "a&op=set"), ("op", "list")]));
        for form in [
            &[][..],
            &[("op", "get")],
            &[("op", "set"), ("id", "1")],
            &[("op", "get"), ("id", "1"), ("force", "1")],
            &[("op", "get"), ("id", "1"), ("op", "get")],
        ] {
            assert!(!fits(form), "{form:?}");
        }
    }
}
