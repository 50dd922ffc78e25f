//! What paths such as `trigger.name`, `event.seq` and `steps.0.output.total` can name, as far as schemas tell it
//! before anything has happened.
//!
//! A path that no schema rules out passes: a schema that does not list its fields says nothing about them.

use serde_json::{Value, json};

use crate::event::{ENVELOPE, EventType, EventTypes, matches};
use crate::nearest::suggestion;

/// What events are about, and the fields of each that conditions can name.
const ABOUT: [(&str, &[&str]); 3] = [
    ("device", &["name", "display_name", "kind", "status", "state", "model", "firmware", "mac", "tags"]),
    ("controller", &["name", "vendor", "status"]),
    ("site", &["name", "slug"]),
];

/// The object that a path of a condition names, and its fields.
pub(crate) fn about_fields(path: &str) -> Option<(&'static str, &'static [&'static str])> {
    let (first, _) = path.split_once('.')?;
    ABOUT.into_iter().find(|(object, _)| *object == first)
}

/// What starts steps, or is sent.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Schemas of the payloads: a path is right if one of them has it.
    payloads: Vec<Value>,
    /// Whether there is an envelope in addition to the payload.
    has_event: bool,
    /// What it is, in messages.
    name: String,
}

impl Shape {
    /// Of the declared events that a pattern covers.
    pub fn of_pattern(all: &EventTypes, pattern: &str) -> Self {
        Self::of_types(all.covered(pattern), format!("events of '{pattern}'"))
    }

    /// Of the declared events that any of these patterns covers.
    pub fn of_patterns(all: &EventTypes, patterns: &[String]) -> Self {
        let is_covered = |event: &EventType| patterns.iter().any(|pattern| matches(pattern, event.as_str()));
        Self::of_types(all.iter().filter(is_covered), format!("events of '{}'", patterns.join("', '")))
    }

    /// Of every declared event.
    pub fn of_any_event(all: &EventTypes) -> Self {
        Self::of_types(all.iter(), "any declared event".to_owned())
    }

    /// Of something that the clock starts, with this schema of its payload.
    pub fn of_schedule() -> Self {
        Self { payloads: vec![schedule_schema()], has_event: false, name: "a schedule".to_owned() }
    }

    fn of_types(types: impl Iterator<Item = EventType>, name: String) -> Self {
        Self { payloads: types.map(EventType::payload_schema).collect(), has_event: true, name }
    }

    /// What is wrong with a path into the payload: `trigger.` and these segments.
    pub fn payload_fault(&self, segments: &[String]) -> Option<String> {
        // A pattern that covers nothing is refused as such.
        let is_open = segments.is_empty() || self.payloads.is_empty();
        if is_open || self.payloads.iter().any(|schema| fault(schema, segments).is_none()) {
            return None;
        }
        // Where no payload has even the first field, fields are named; else what is behind it.
        let known = self.payloads.iter().find(|schema| schema["properties"].get(&segments[0]).is_some());
        if let Some(found) = known.and_then(|schema| fault(schema, segments)) {
            return Some(found.message());
        }
        let hint = if self.has_event && ENVELOPE.contains(&segments[0].as_str()) {
            format!("did you mean 'event.{}'?", segments.join("."))
        } else {
            suggestion(&segments[0], self.fields().iter().map(String::as_str))
        };
        Some(format!("'{}' is no field of the payload of {}: {hint}", segments[0], self.name))
    }

    /// What is wrong with a path into the envelope: `event.` and these segments.
    pub fn event_fault(&self, segments: &[String]) -> Option<String> {
        if !self.has_event {
            return Some(format!("{} has no event: '{{{{trigger.…}}}}' is what it gives", self.name));
        }
        let first = segments.first()?;
        if first == "payload" {
            return self.payload_fault(&segments[1..]);
        }
        if !ENVELOPE.contains(&first.as_str()) {
            let hint = if self.fields().contains(first) {
                format!("did you mean 'trigger.{}'?", segments.join("."))
            } else {
                suggestion(first, ENVELOPE.iter().copied())
            };
            return Some(format!("'{first}' is no field of an event: {hint}"));
        }
        segments.get(1).map(|inner| format!("'event.{first}' is one value and has no '{inner}'"))
    }

    /// What is wrong with a path into an object that events are about.
    pub(crate) fn about_fault(&self, object: &str, fields: &[&str], segments: &[String]) -> Option<String> {
        let id = format!("{object}_id");
        let has_one = self.payloads.is_empty()
            || self.payloads.iter().any(|schema| schema["properties"].get(&id).is_some());
        if !has_one {
            return Some(format!("{} are not about a {object}: they have no '{id}'", self.name));
        }
        match segments {
            [field] if fields.contains(&field.as_str()) => None,
            [field] => Some(format!(
                "a {object} has no '{field}' here: {}",
                suggestion(field, fields.iter().copied())
            )),
            _ => Some(format!("name one field of the {object}, such as '{object}.{}'", fields[0])),
        }
    }

    /// Every field of the first level, sorted.
    pub fn fields(&self) -> Vec<String> {
        let all = self.payloads.iter().filter_map(|schema| schema["properties"].as_object());
        let mut fields: Vec<String> = all.flat_map(|fields| fields.keys().cloned()).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }
}

/// JSON Schema of what `trigger` is in the steps of a schedule.
pub fn schedule_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "schedule_id": {
                "type": "string", "format": "uuid", "description": "The schedule that the clock started.",
            },
            "due_at": {
                "type": "string", "format": "date-time",
                "description": "When it was due: RFC 3339, UTC. A late start does not move it.",
            },
        },
        "required": ["schedule_id", "due_at"],
        "additionalProperties": false,
    })
}

/// Why a schema rules a path out.
#[derive(Debug)]
struct Fault<'a> {
    /// What was reached.
    at: String,
    missing: &'a str,
    fields: Vec<&'a str>,
}

impl Fault<'_> {
    fn message(&self) -> String {
        let at = if self.at.is_empty() { "the value".to_owned() } else { format!("'{}'", self.at) };
        if self.fields.is_empty() {
            format!("{at} is no object and has no '{}'", self.missing)
        } else {
            format!(
                "{at} has no '{}': {}",
                self.missing,
                suggestion(self.missing, self.fields.iter().copied())
            )
        }
    }
}

/// What is wrong with a path into a value of this schema, in words.
pub fn path_fault(schema: &Value, segments: &[String]) -> Option<String> {
    fault(schema, segments).map(|fault| fault.message())
}

fn fault<'a>(schema: &'a Value, segments: &'a [String]) -> Option<Fault<'a>> {
    let mut schema = schema;
    for (at, segment) in segments.iter().enumerate() {
        let reached = || segments[..at].join(".");
        let properties = schema.get("properties").and_then(Value::as_object);
        if let Some(inner) = properties.and_then(|fields| fields.get(segment)) {
            schema = inner;
            continue;
        }
        let is_item = segment.bytes().all(|b| b.is_ascii_digit());
        if let Some(items) = schema.get("items").filter(|items| items.is_object() && is_item) {
            schema = items;
            continue;
        }
        let fields: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        return (is_closed || is_scalar(schema)).then(|| Fault { at: reached(), missing: segment, fields });
    }
    None
}

/// Whether no value of the schema has fields or items.
fn is_scalar(schema: &Value) -> bool {
    let is_plain =
        |word: &Value| matches!(word.as_str(), Some("string" | "integer" | "number" | "boolean" | "null"));
    match schema.get("type") {
        Some(Value::Array(words)) => words.iter().all(is_plain),
        Some(word) => is_plain(word),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::samples;

    fn of(pattern: &str) -> Shape {
        Shape::of_pattern(&samples::all(), pattern)
    }

    fn path(text: &str) -> Vec<String> {
        if text.is_empty() { Vec::new() } else { text.split('.').map(str::to_owned).collect() }
    }

    #[track_caller]
    fn payload(shape: &Shape, text: &str, expected: Option<&str>) {
        let found = shape.payload_fault(&path(text));
        assert_eq!(found.is_some(), expected.is_some(), "{text}: {found:?}");
        assert!(
            found.as_deref().unwrap_or_default().contains(expected.unwrap_or_default()),
            "{text}: {found:?}"
        );
    }

    #[test]
    fn a_field_that_no_covered_event_has_is_named_with_the_nearest() {
        let offline = of("device.offline");
        payload(&offline, "", None);
        payload(&offline, "device_id", None);
        payload(&offline, "devcie_id", Some("did you mean 'device_id'?"));
        payload(&offline, "name.first", Some("no object"));
        payload(&offline, "event_type", Some("did you mean 'event.event_type'?"));
        payload(&offline, "payload.name", Some("'event.payload.name'"));
        payload(&offline, "colour", Some("there are: controller_id, device_id, name, site_id"));
        // One covered type that has it is enough.
        payload(&of("device.*"), "new_status", None);
        payload(&of("*"), "data.any.thing", None);
        payload(&of("device.*"), "changed.0", None);
        payload(&of("ingest.external"), "name.x", Some("no object"));
        let both = Shape::of_patterns(&samples::all(), &["device.offline".to_owned(), "user.*".to_owned()]);
        payload(&both, "username", None);
        payload(&both, "devices_seen", Some("is no field"));
    }

    #[test]
    fn an_envelope_has_its_own_fields_and_the_payload() {
        let offline = of("device.offline");
        let check = |text: &str| offline.event_fault(&path(text));
        for right in ["", "id", "seq", "occurred_at", "payload", "payload.name"] {
            assert_eq!(check(right), None, "{right}");
        }
        assert!(check("sqe").unwrap().contains("'seq'"));
        assert!(check("name").unwrap().contains("'trigger.name'"));
        assert!(check("payload.nmae").unwrap().contains("'name'"));
        assert!(check("id.x").unwrap().contains("one value"));
        assert!(Shape::of_schedule().event_fault(&path("id")).unwrap().contains("no event"));
        payload(&Shape::of_schedule(), "due_at", None);
        payload(&Shape::of_schedule(), "deu_at", Some("'due_at'"));
    }

    #[test]
    fn what_a_schema_does_not_list_is_not_judged() {
        let open =
            json!({ "type": "object", "properties": { "body": {}, "n": { "type": ["integer", "null"] } } });
        for right in ["body.ticket.id", "more", "body"] {
            assert_eq!(path_fault(&open, &path(right)), None, "{right}");
        }
        assert!(path_fault(&open, &path("n.x")).is_some());
        let closed = json!({
            "properties": { "items": { "type": "array", "items": { "properties": { "id": {} }, "additionalProperties": false } } },
            "additionalProperties": false,
        });
        assert_eq!(path_fault(&closed, &path("items.0.id")), None);
        assert!(path_fault(&closed, &path("items.0.nmae")).unwrap().contains("'items.0' has no 'nmae'"));
        assert!(path_fault(&closed, &path("itmes")).unwrap().contains("did you mean 'items'?"));
    }
}
