//! Conditions of a Connection: what must hold of an event before its steps run.
//!
//! They compare fields with given values and compute nothing. What is not there is false, and its negation true.

use std::borrow::Cow;
use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::Event;
use crate::redact::{FIELD_NAMES, MASK, sanitize};
use crate::shape::{Shape, about_fields};
use crate::template::child;

/// Most conditions of one Connection.
pub const CONDITIONS_MAX: usize = 50;
/// Longest path of a field, in characters.
pub const FIELD_CHARS_MAX: usize = 200;
/// Largest value that a field is compared with, as JSON.
pub const VALUE_BYTES_MAX: usize = 4096;
/// Of a value that a reason quotes.
const SHOWN_CHARS_MAX: usize = 100;

stored_words! {
    pub enum Logic {
        And = "and",
        Or = "or",
    }
}

stored_words! {
    /// How a field is compared. A field that is not there, or of another type, compares false.
    pub enum Operator {
        Eq = "eq",
        Ne = "ne",
        Gt = "gt",
        Gte = "gte",
        Lt = "lt",
        Lte = "lte",
        /// A text contains a text, an array an item.
        Contains = "contains",
        NotContains = "not_contains",
        /// The value is an array that has the field's value.
        In = "in",
        NotIn = "not_in",
        StartsWith = "starts_with",
        EndsWith = "ends_with",
        /// It is there and not null.
        Exists = "exists",
        NotExists = "not_exists",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// A path into the payload, such as `trigger.data.site`, or into the envelope, such as `event.priority`. Without
    /// `trigger.` it names a field of the payload, or else `event_type`, `category` or `priority` of the event. What the
    /// event is about is named by `device.` (`name`, `display_name`, `kind`, `status`, `state`, `model`, `firmware`, `mac`,
    /// `tags`), `controller.` (`name`, `vendor`, `status`) and `site.` (`name`, `slug`), as it is when the event is
    /// handled. Up to 200 characters.
    #[schemars(length(min = 1, max = FIELD_CHARS_MAX))]
    pub field: String,
    pub operator: Operator,
    /// Up to 4096 bytes of JSON.
    #[serde(default)]
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    pub logic: Logic,
    #[schemars(length(max = CONDITIONS_MAX))]
    pub conditions: Vec<Condition>,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { logic: Logic::And, conditions: Vec::new() }
    }
}

impl Conditions {
    /// Returns the faults of the conditions, by field.
    pub fn faults(&self) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        if self.conditions.len() > CONDITIONS_MAX {
            faults.push(("conditions".to_owned(), format!("must not be more than {CONDITIONS_MAX}")));
        }
        for (at, condition) in self.conditions.iter().enumerate() {
            if condition.field.is_empty() || condition.field.split('.').any(str::is_empty) {
                let message = "must be a path such as 'new_status' or 'data.site'".to_owned();
                faults.push((format!("conditions.{at}.field"), message));
            }
            if condition.field.chars().count() > FIELD_CHARS_MAX {
                let message = format!("must not have more than {FIELD_CHARS_MAX} characters");
                faults.push((format!("conditions.{at}.field"), message));
            }
            if let Some(message) = condition.value_fault() {
                faults.push((format!("conditions.{at}.value"), message));
            }
        }
        faults
    }

    /// Fields that no event of this shape has, by the place of their condition.
    pub fn unknown_fields(&self, shape: &Shape) -> Vec<(usize, String)> {
        // [`Conditions::faults`] reports a text that is no path.
        let is_path = |condition: &Condition| !condition.field.split('.').any(str::is_empty);
        let faults = self.conditions.iter().take(CONDITIONS_MAX).enumerate().filter(|(_, one)| is_path(one));
        faults.filter_map(|(at, condition)| Some((at, condition.field_fault(shape)?))).collect()
    }

    /// Whether they hold of an event; if not, which one does not, and what was found instead. `about` has what the event
    /// is about under `device`, `controller` and `site`.
    pub fn check(&self, event: &Event, about: &Value) -> Result<(), String> {
        self.judge(|path| {
            let found = find(&event.payload, path).map(Cow::Borrowed);
            let found = found.or_else(|| own_field(event, path).map(Cow::Owned));
            found.or_else(|| path.split('.').try_fold(about, child).map(Cow::Borrowed))
        })
    }

    /// Whether one of them names what events are about.
    pub fn join(&self) -> bool {
        self.conditions.iter().any(|condition| about_fields(&condition.field).is_some())
    }

    /// Whether they hold of what a path names in this object, such as `steps.0.output.total`.
    pub fn check_in(&self, context: &Value) -> Result<(), String> {
        self.judge(|path| path.split('.').try_fold(context, child).map(Cow::Borrowed))
    }

    fn judge<'a>(&self, find: impl Fn(&str) -> Option<Cow<'a, Value>>) -> Result<(), String> {
        let holds = |condition: &Condition| condition.holds(find(&condition.field).as_deref());
        let words = |condition: &Condition| condition.words(find(&condition.field).as_deref());
        match self.logic {
            Logic::And => match self.conditions.iter().position(|one| !holds(one)) {
                None => Ok(()),
                Some(at) => Err(format!("condition {at} is false: {}", words(&self.conditions[at]))),
            },
            Logic::Or if self.conditions.is_empty() || self.conditions.iter().any(holds) => Ok(()),
            Logic::Or => {
                let all: Vec<String> = self.conditions.iter().map(words).collect();
                Err(format!("none of {} conditions holds: {}", all.len(), all.join("; ")))
            }
        }
    }
}

impl Condition {
    fn field_fault(&self, shape: &Shape) -> Option<String> {
        let segments = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
        if let Some(path) = OF_PAYLOAD.iter().find_map(|prefix| self.field.strip_prefix(prefix)) {
            return shape.payload_fault(&segments(path));
        }
        if let Some(path) = self.field.strip_prefix(OF_EVENT) {
            return shape.event_fault(&segments(path));
        }
        if OWN_FIELDS.contains(&self.field.as_str()) {
            return None;
        }
        if let Some((object, fields)) = about_fields(&self.field) {
            return shape.about_fault(object, fields, &segments(&self.field)[1..]);
        }
        shape.payload_fault(&segments(&self.field))
    }

    fn value_fault(&self) -> Option<String> {
        let bytes = self.value.to_string().len();
        if bytes > VALUE_BYTES_MAX {
            return Some(format!("must not have more than {VALUE_BYTES_MAX} bytes as JSON; it has {bytes}"));
        }
        let (is_right, message) = match self.operator {
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => {
                (self.value.is_number() || self.value.is_string(), "must be a number or a text")
            }
            Operator::In | Operator::NotIn => (self.value.is_array(), "must be an array"),
            Operator::StartsWith | Operator::EndsWith => (self.value.is_string(), "must be a text"),
            _ => (true, ""),
        };
        (!is_right).then(|| message.to_owned())
    }

    fn words(&self, found: Option<&Value>) -> String {
        let asked = match self.operator {
            Operator::Exists | Operator::NotExists => format!("{} {}", self.field, self.operator),
            operator => format!("{} {operator} {}", self.field, self.value),
        };
        let name = self.field.rsplit('.').next().unwrap_or_default();
        format!("{asked}, and it is {}", shown(name, found))
    }

    fn holds(&self, found: Option<&Value>) -> bool {
        match self.operator {
            Operator::Exists => found.is_some_and(|value| !value.is_null()),
            Operator::NotExists => found.is_none_or(Value::is_null),
            Operator::Ne => !found.is_some_and(|value| equal(value, &self.value)),
            Operator::NotContains => !found.is_some_and(|value| contains(value, &self.value)),
            Operator::NotIn => !found.is_some_and(|value| compares(value, Operator::In, &self.value)),
            operator => found.is_some_and(|value| compares(value, operator, &self.value)),
        }
    }
}

/// A value with its type, short enough to read.
fn shown(name: &str, found: Option<&Value>) -> String {
    let Some(value) = found else { return "not there".to_owned() };
    if FIELD_NAMES.contains(&name.to_ascii_lowercase().as_str()) {
        return MASK.to_owned();
    }
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let mut value = value.clone();
    sanitize(&mut value);
    let text = value.to_string();
    let short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short}{more} ({kind})")
}

fn compares(value: &Value, operator: Operator, with: &Value) -> bool {
    let order = || order(value, with);
    match operator {
        Operator::Eq => equal(value, with),
        Operator::Gt => order() == Some(Ordering::Greater),
        Operator::Gte => matches!(order(), Some(Ordering::Greater | Ordering::Equal)),
        Operator::Lt => order() == Some(Ordering::Less),
        Operator::Lte => matches!(order(), Some(Ordering::Less | Ordering::Equal)),
        Operator::Contains => contains(value, with),
        Operator::In => with.is_array() && contains(with, value),
        Operator::StartsWith => both(value, with).is_some_and(|(text, with)| text.starts_with(with)),
        Operator::EndsWith => both(value, with).is_some_and(|(text, with)| text.ends_with(with)),
        Operator::Ne | Operator::NotContains | Operator::NotIn | Operator::Exists | Operator::NotExists => {
            false
        }
    }
}

/// The payload's field that the path names.
fn find<'a>(payload: &'a Value, path: &str) -> Option<&'a Value> {
    let walk = |path: &str| path.split('.').try_fold(payload, child);
    let inner = OF_PAYLOAD.iter().find_map(|prefix| path.strip_prefix(prefix));
    inner.and_then(walk).or_else(|| walk(path))
}

/// What may stand before a path into the payload.
const OF_PAYLOAD: [&str; 3] = ["trigger.", "payload.", "event.payload."];
/// What stands before a field of the envelope.
const OF_EVENT: &str = "event.";
/// Fields of the envelope that need nothing before them.
pub const OWN_FIELDS: [&str; 3] = ["event_type", "category", "priority"];

/// A field of the envelope.
fn own_field(event: &Event, field: &str) -> Option<Value> {
    let name = match field.strip_prefix(OF_EVENT) {
        Some(name) => name,
        None if OWN_FIELDS.contains(&field) => field,
        None => return None,
    };
    match name {
        "id" => Some(json!(event.id)),
        "seq" => Some(json!(event.seq)),
        "event_type" => Some(json!(event.event_type)),
        "category" => Some(json!(event.category)),
        "priority" => Some(json!(event.priority)),
        "organization_id" => Some(json!(event.organization_id)),
        "occurred_at" => Some(json!(event.occurred_at)),
        "causation_id" => Some(json!(event.causation_id)),
        "schema_version" => Some(json!(event.schema_version)),
        _ => None,
    }
}

fn both<'a>(one: &'a Value, other: &'a Value) -> Option<(&'a str, &'a str)> {
    one.as_str().zip(other.as_str())
}

fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        _ => None,
    }
}

fn equal(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && order(one, other) == Some(Ordering::Equal))
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => whole.contains(part.as_str()),
        (Value::Array(items), part) => items.iter().any(|item| equal(item, part)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
