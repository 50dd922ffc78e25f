//! Settings of an organization, as they are stored.

use serde::Serialize;
use serde_json::Value;

/// Most hours until a pending change expires.
pub const CHANGE_TTL_HOURS_MAX: u32 = 8760;
/// Most days that events are kept.
pub const EVENT_RETENTION_DAYS_MAX: u32 = 3650;

/// Settings of an organization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OrganizationSettings {
    /// Whether a user that staged a change may not apply it.
    pub require_second_person: bool,
    /// Hours until a pending change expires; the service's default when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_ttl_hours: Option<u32>,
    /// Days that events are kept; the service's default when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_retention_days: Option<u32>,
}

impl OrganizationSettings {
    /// Reads stored settings, each by itself: one that another version wrote and that does not fit counts as not set, and
    /// takes no other with it.
    pub fn read(stored: &Value) -> Self {
        let within = |name: &str, max: u32| {
            let value = stored.get(name).and_then(Value::as_u64).and_then(|value| u32::try_from(value).ok());
            value.filter(|value| (1..=max).contains(value))
        };
        Self {
            require_second_person: stored
                .get("require_second_person")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            change_ttl_hours: within("change_ttl_hours", CHANGE_TTL_HOURS_MAX),
            event_retention_days: within("event_retention_days", EVENT_RETENTION_DAYS_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_stored_is_read_and_nothing_else_counts() {
        let stored = json!({ "require_second_person": true, "change_ttl_hours": 8760, "event_retention_days": 3651, "x": 1 });
        let read = OrganizationSettings::read(&stored);
        assert!(read.require_second_person);
        assert_eq!((read.change_ttl_hours, read.event_retention_days), (Some(8760), None));
        assert_eq!(OrganizationSettings::read(&json!({})), OrganizationSettings::default());
        let partly =
            json!({ "require_second_person": true, "change_ttl_hours": "a", "event_retention_days": -1 });
        let read = OrganizationSettings::read(&partly);
        assert_eq!(
            read,
            OrganizationSettings { require_second_person: true, ..OrganizationSettings::default() }
        );
    }
}
