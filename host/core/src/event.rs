//! The catalogue of events. What is not declared here cannot be emitted.

use chrono::SecondsFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{ControllerId, DeviceId, EventId, OrgId, RunId, SiteId, Timestamp};

stored_words! {
    pub enum Priority {
        Low = "low",
        Normal = "normal",
        High = "high",
    }
}

/// Declares event types in one line each: name, category, priority, payload fields.
macro_rules! events {
    ($($variant:ident = $name:literal, $category:literal, $priority:ident, { $($field:literal : $kind:literal),* };)+) => {
        stored_words! {
            pub enum EventType { $($variant = $name,)+ }
        }

        impl EventType {
            pub const fn category(self) -> &'static str {
                match self { $(EventType::$variant => $category,)+ }
            }
            pub const fn priority(self) -> Priority {
                match self { $(EventType::$variant => Priority::$priority,)+ }
            }
            /// JSON Schema of the payload. `?` behind a kind means that the field may be null.
            pub fn payload_schema(self) -> Value {
                match self { $(EventType::$variant => object_schema(&[$(($field, $kind)),*]),)+ }
            }
        }
    };
}

events! {
    ChangeStaged = "controller.change.staged", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid", "plan_hash": "string?" };
    ChangeApplied = "controller.change.applied", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
    ChangeFailed = "controller.change.failed", "change", High,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?", "state": "string", "message": "string" };
    ChangeDiscarded = "controller.change.discarded", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
    ChangeReverted = "controller.change.reverted", "change", High,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?", "message": "string" };
    ChangeExpired = "controller.change.expired", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
    ControllerStatusChanged = "controller.status.changed", "controller", High,
        { "controller_id": "uuid", "site_id": "uuid", "new_status": "string", "message": "string?" };
    ControllerSynced = "controller.sync.finished", "controller", Low,
        { "controller_id": "uuid", "site_id": "uuid", "devices_seen": "integer", "devices_changed": "integer", "duration_ms": "integer" };
    DeviceStateChanged = "device.state_changed", "device", Normal,
        { "device_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "changed": "strings" };
    DeviceStatusChanged = "device.status.changed", "device", Normal,
        { "device_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "new_status": "string" };
    DeviceOffline = "device.offline", "device", High,
        { "device_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "name": "string" };
    UserCreated = "user.created", "user", Normal,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid" };
    UserUpdated = "user.updated", "user", Normal,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid", "changed": "strings" };
    UserRoleChanged = "user.role_changed", "user", High,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid", "old_role": "string" };
    UserRemoved = "user.removed", "user", Normal,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid" };
    UserRestored = "user.restored", "user", Normal,
        { "user_id": "uuid", "username": "string", "role": "string", "actor_id": "uuid" };
    RefreshReuse = "security.refresh_reuse", "security", High,
        { "user_id": "uuid", "username": "string", "session_id": "uuid", "spent_at": "string", "ip": "string" };
    AccountLocked = "security.account_locked", "security", High,
        { "user_id": "uuid", "username": "string", "step": "string", "failures": "integer", "locked_until": "string", "ip": "string" };
    MfaFailed = "security.mfa_failed", "security", Normal,
        { "user_id": "uuid", "username": "string", "failures": "integer", "ip": "string" };
    MfaEnabled = "security.mfa_enabled", "security", Normal,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?" };
    MfaDisabled = "security.mfa_disabled", "security", High,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?" };
    MfaReset = "security.mfa_reset", "security", High,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?" };
    PasswordChanged = "security.password_changed", "security", High,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?", "way": "string", "sessions_revoked": "integer", "api_keys_revoked": "integer" };
    ApiKeyCreated = "security.api_key_created", "security", High,
        { "user_id": "uuid", "username": "string", "api_key_id": "uuid", "name": "string", "scopes": "strings?", "expires_at": "string?" };
    ApiKeyRevoked = "security.api_key_revoked", "security", Normal,
        { "user_id": "uuid", "username": "string", "api_key_id": "uuid", "name": "string" };
    RoleChanged = "security.role_changed", "security", High,
        { "user_id": "uuid", "username": "string", "actor_id": "uuid?", "role": "string", "old_role": "string" };
    AccessWidened = "security.access_widened", "security", High,
        { "user_id": "uuid", "username": "string", "site_id": "uuid", "actor_id": "uuid" };
    IngestExternal = "ingest.external", "external", Normal,
        { "name": "string", "data": "object" };
    RunFailed = "automation.run.failed", "automation", High,
        { "run_id": "uuid", "kind": "string", "connection_id": "uuid?", "name": "string?", "state": "string", "reason": "string", "step": "integer?", "operation_id": "string?", "error_code": "string?", "trigger_event_type": "string?" };
    ConnectionBroken = "automation.connection.broken", "automation", High,
        { "connection_id": "uuid", "kind": "string", "name": "string", "reason": "string", "run_id": "uuid?" };
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

/// An event as clients see it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_what_an_event_has() {
        let clock = crate::Clock::default();
        let event = Event {
            id: clock.new_id(),
            seq: 1,
            event_type: EventType::DeviceOffline,
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
