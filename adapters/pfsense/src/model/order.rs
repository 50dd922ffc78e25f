//! Places of rules within their lists, counted through all pages.

use std::collections::BTreeMap;

use heddle_sdk::ModelObject;
use serde_json::{Value, json};

/// What stands between the cursor of the list and the counts.
const MARK: char = '#';

/// How many rules of each list were seen so far.
#[derive(Default)]
pub(super) struct Order(BTreeMap<String, u64>);

impl Order {
    /// The counts in a cursor, and the rest of it.
    pub(super) fn of(cursor: Option<&str>) -> (Self, Option<&str>) {
        let Some((inner, counts)) = cursor.and_then(|cursor| cursor.split_once(MARK)) else {
            return (Self::default(), cursor);
        };
        (Self(serde_json::from_str(counts).unwrap_or_default()), Some(inner))
    }

    /// The cursor of the next page with the counts.
    pub(super) fn cursor(&self, next: &str) -> String {
        if self.0.is_empty() { next.to_owned() } else { format!("{next}{MARK}{}", json!(self.0)) }
    }

    /// Gives the rules of a page their places.
    pub(super) fn number(&mut self, kind: &str, items: &mut [ModelObject]) {
        if kind != "firewall-rule" && kind != "nat-rule" {
            return;
        }
        for item in items {
            let Ok(Value::Object(mut fields)) = serde_json::from_str(&item.fields) else { continue };
            let list = match kind {
                "nat-rule" => item.native.as_ref().map(|native| native.kind.clone()),
                _ => fields.get("scope").map(Value::to_string),
            };
            let seen = self.0.entry(list.unwrap_or_default()).or_default();
            fields.insert("position".to_owned(), json!(seen));
            *seen += 1;
            item.fields = Value::Object(fields).to_string();
        }
    }
}
