//! Events, and how their types are declared. A row of a type that no feature declares is passed over by every reader.

use chrono::SecondsFormat;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::declared::declared_name;
use crate::{ControllerId, DeviceId, EventId, OrgId, RunId, SiteId, Timestamp};

stored_words! {
    pub enum Priority {
        Low = "low",
        Normal = "normal",
        High = "high",
    }
}

/// What a feature declares of a type of events.
#[derive(Debug)]
pub struct EventDeclaration {
    /// Such as `device.status.changed`; unique in a program.
    pub name: &'static str,
    /// Group of types, such as `device`.
    pub category: &'static str,
    pub priority: Priority,
    pub payload: Payload,
}

/// What events of a type carry.
#[derive(Debug, PartialEq)]
pub enum Payload {
    /// Fields and what they are: `uuid`, `string`, `integer`, `object` or `strings`, with `?` behind it where the field can
    /// be null.
    Fields(&'static [(&'static str, &'static str)]),
    /// What an installed package says in a JSON Schema of its own.
    Schema(Value),
}

/// A declared type of events. Two are equal when they have the same name.
#[derive(Debug, Clone, Copy)]
pub struct EventType(&'static EventDeclaration);

impl EventType {
    /// The type that this declaration makes.
    pub const fn declared(declaration: &'static EventDeclaration) -> Self {
        Self(declaration)
    }

    pub const fn as_str(self) -> &'static str {
        self.0.name
    }

    /// Group of types, such as `device`.
    pub const fn category(self) -> &'static str {
        self.0.category
    }

    pub const fn priority(self) -> Priority {
        self.0.priority
    }

    /// JSON Schema of the payload.
    pub fn payload_schema(self) -> Value {
        match &self.0.payload {
            Payload::Fields(fields) => object_schema(fields),
            Payload::Schema(schema) => schema.clone(),
        }
    }
}

declared_name!(EventType);

/// Declares event types, each with its category, its priority and the fields of its payload; and a constant with all of
/// them. What the kinds of fields are, [`Payload::Fields`] says.
///
/// ```
/// heddle_core::events! { pub EVENTS {
///     DEVICE_OFFLINE = "device.offline", "device", High, { "device_id": "uuid", "name": "string?" };
/// } }
/// ```
#[macro_export]
macro_rules! events {
    ($vis:vis $all:ident {
        $($const:ident = $name:literal, $category:literal, $priority:ident, { $($field:literal : $kind:literal),* };)+
    }) => {
        $($vis const $const: $crate::event::EventType =
            $crate::event::EventType::declared(&$crate::event::EventDeclaration {
                name: $name,
                category: $category,
                priority: $crate::event::Priority::$priority,
                payload: $crate::event::Payload::Fields(&[$(($field, $kind)),*]),
            });)+
        $vis const $all: &[$crate::event::EventType] = &[$($const),+];
    };
}

/// All event types of a program, sorted by their names. What is not among them cannot be read.
#[derive(Debug, Clone, Default)]
pub struct EventTypes(Vec<EventType>);

impl EventTypes {
    /// # Panics
    /// Where two of them have the same name.
    pub fn new(declared: impl IntoIterator<Item = EventType>) -> Self {
        Self(crate::declared::sorted(declared, EventType::as_str))
    }

    pub fn iter(&self) -> impl Iterator<Item = EventType> + '_ {
        self.0.iter().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of them that are wanted.
    #[must_use]
    pub fn only(&self, is_wanted: impl Fn(EventType) -> bool) -> Self {
        Self(self.iter().filter(|event_type| is_wanted(*event_type)).collect())
    }

    /// The type with this name.
    pub fn find(&self, name: &str) -> Option<EventType> {
        self.0.binary_search_by(|one| one.as_str().cmp(name)).ok().map(|at| self.0[at])
    }

    /// The types that a pattern covers.
    pub fn covered<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = EventType> + 'a {
        self.iter().filter(move |event| matches(pattern, event.as_str()))
    }
}

fn object_schema(fields: &[(&str, &str)]) -> Value {
    let mut properties = serde_json::Map::new();
    for (name, kind) in fields {
        let (kind, nullable) = kind.strip_suffix('?').map_or((*kind, false), |kind| (kind, true));
        let mut schema = match kind {
            "uuid" => json!({"type": "string", "format": "uuid"}),
            "integer" => json!({"type": "integer"}),
            "object" => json!({"type": "object"}),
            "strings" => json!({"type": "array", "items": {"type": "string"}}),
            _ => json!({"type": "string"}),
        };
        if nullable {
            schema["type"] = json!([schema["type"], "null"]);
        }
        properties.insert((*name).to_owned(), schema);
    }
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// An event about to be written, in the transaction of its cause.
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub event_type: EventType,
    pub org_id: OrgId,
    pub site_id: Option<SiteId>,
    pub controller_id: Option<ControllerId>,
    pub device_id: Option<DeviceId>,
    pub causation_id: Option<EventId>,
    /// The run of a Connection that caused it.
    pub run_id: Option<RunId>,
    pub payload: Value,
}

impl NewEvent {
    /// An event about an organization, and none of its sites, controllers and devices. Struct update syntax adds those.
    pub fn of(event_type: EventType, org_id: OrgId, payload: Value) -> Self {
        Self {
            event_type,
            org_id,
            site_id: None,
            controller_id: None,
            device_id: None,
            causation_id: None,
            run_id: None,
            payload,
        }
    }
}

/// An event as clients see it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Event {
    pub id: EventId,
    /// Number of the event in its organization; counts from 1, without gaps.
    pub seq: i64,
    /// One of the declared types: `GET /events/types`.
    pub event_type: EventType,
    /// Group of types, such as `device`.
    pub category: String,
    pub priority: Priority,
    pub organization_id: OrgId,
    /// When it was written. Never goes back from one number to the next.
    pub occurred_at: Timestamp,
    /// The event that this one follows from: the event that started the run of a Connection which did it. Null where no
    /// event caused it.
    pub causation_id: Option<EventId>,
    /// Version of the payload's schema.
    pub schema_version: u32,
    /// What happened, as the type's schema declares it.
    pub payload: Value,
}

/// The fields of an [`Event`]: what `{{event.…}}` and conditions on `event.…` can name.
pub const ENVELOPE: &[&str] = &[
    "id",
    "seq",
    "event_type",
    "category",
    "priority",
    "organization_id",
    "occurred_at",
    "causation_id",
    "schema_version",
    "payload",
];

/// The form that times have everywhere outside: RFC 3339, UTC, microseconds, `Z`.
pub fn format_time(time: Timestamp) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Whether `pattern` (`device.*`, `controller.change.applied`, `*`) covers `event_type`.
pub fn matches(pattern: &str, event_type: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(prefix) => prefix.ends_with('.') && event_type.starts_with(prefix),
        None => pattern == event_type,
    }
}

/// Types for tests of this crate.
#[cfg(test)]
pub(crate) mod samples {
    use super::EventTypes;

    crate::events! { pub(crate) EVENTS {
        DEVICE_OFFLINE = "device.offline", "device", High,
            { "device_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "name": "string" };
        DEVICE_STATUS_CHANGED = "device.status.changed", "device", Normal,
            { "device_id": "uuid", "new_status": "string", "changed": "strings" };
        USER_UPDATED = "user.updated", "user", Normal, { "username": "string", "actor_id": "uuid?" };
        INGEST_EXTERNAL = "ingest.external", "external", Normal, { "name": "string", "data": "object" };
    } }

    pub(crate) fn all() -> EventTypes {
        EventTypes::new(EVENTS.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_is_found_by_its_name_and_by_patterns() {
        let types = samples::all();
        let names: Vec<&str> = types.iter().map(EventType::as_str).collect();
        assert!(names.is_sorted() && names.len() == samples::EVENTS.len(), "{names:?}");
        assert_eq!(types.find("device.offline"), Some(samples::DEVICE_OFFLINE));
        assert_eq!(types.find("device.gone"), None);
        assert_eq!(types.covered("device.*").count(), 2);
        let schema = samples::USER_UPDATED.payload_schema();
        assert_eq!(schema["properties"]["actor_id"]["type"], json!(["string", "null"]));
    }

    #[test]
    fn the_envelope_is_what_an_event_has() {
        let clock = crate::Clock::default();
        let event = Event {
            id: clock.new_id(),
            seq: 1,
            event_type: samples::DEVICE_OFFLINE,
            category: "device".to_owned(),
            priority: Priority::High,
            organization_id: clock.new_id(),
            occurred_at: clock.now(),
            causation_id: None,
            schema_version: 1,
            payload: json!({}),
        };
        let value = json!(event);
        let mut fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut known = ENVELOPE.to_vec();
        fields.sort_unstable();
        known.sort_unstable();
        assert_eq!(fields, known);
    }

    #[test]
    fn a_pattern_covers_whole_segments() {
        assert!(matches("device.*", "device.status.changed"));
        assert!(matches("*", "device.offline"));
        assert!(matches("device.offline", "device.offline"));
        assert!(!matches("device.*", "devices.x"));
        assert!(!matches("dev*", "device.offline"));
    }
}
