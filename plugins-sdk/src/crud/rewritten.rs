//! Values that the vendor writes in its own way.

use std::collections::BTreeMap;

use serde_json::Value;

use super::binding::{Field, Rewritten};
use super::field::plain;

/// Whether a value can be what the vendor made of the one that the plan gave it.
pub(crate) fn is(field: &Field, (before, after): (&Value, &Value), found: &Value) -> bool {
    match &field.rewritten {
        Rewritten::Whole(is_free) => *is_free,
        Rewritten::Elements(by) => is_within(by, before, after, found),
    }
}

/// Whether only elements differ that the plan changes, and none of them is as before. What differs elsewhere is the work
/// of another person, which a write of the old list would take away.
fn is_within(by: &str, before: &Value, after: &Value, found: &Value) -> bool {
    let (old, new, now) = (named(by, before), named(by, after), named(by, found));
    let is_changed = |name: &str| !name.is_empty() && old.get(name) != new.get(name);
    let rest = |list| elements(list).iter().filter(|one| !is_changed(&name(by, one)));
    let mut changed = old.keys().chain(new.keys()).filter(|name| is_changed(name));
    rest(after).eq(rest(found)) && changed.all(|name| now.get(name) != old.get(name))
}

/// The elements of a list by their names, the first of each.
fn named<'v>(by: &str, list: &'v Value) -> BTreeMap<String, &'v Value> {
    elements(list).iter().rev().map(|one| (name(by, one), one)).collect()
}

fn name(by: &str, element: &Value) -> String {
    element.get(by).map(plain).unwrap_or_default()
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn port(number: u64, name: &str) -> Value {
        json!({ "port": number, "name": name })
    }

    #[test]
    fn only_elements_of_the_plan_may_differ() {
        let before = json!([port(1, "a"), port(2, "b"), { "odd": true }]);
        let after = json!([port(1, "a"), port(2, "wanted"), { "odd": true }]);
        let of = |found: Value| is_within("port", &before, &after, &found);
        assert!(of(json!([port(1, "a"), port(2, "WANTED"), { "odd": true }])));
        assert!(of(json!([port(1, "a"), { "port": "2", "name": "x" }, { "odd": true }])), "numbers as texts");
        assert!(!of(json!([port(1, "theirs"), port(2, "wanted"), { "odd": true }])), "another element");
        assert!(!of(json!([port(1, "a"), port(2, "b"), { "odd": true }])), "as before");
        assert!(!of(json!([port(1, "a"), port(2, "WANTED"), port(3, "new"), { "odd": true }])), "one more");
        assert!(!of(json!([port(1, "a"), port(2, "WANTED")])), "one less");
    }
}
