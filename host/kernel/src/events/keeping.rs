//! How long the events of an organization are kept.

use serde_json::Value;

/// Most days that events are kept.
pub const EVENT_RETENTION_DAYS_MAX: u32 = 3650;
/// Days that events are kept where the organization does not say.
const EVENT_RETENTION_DAYS: i64 = 90;

/// Days that the events of an organization with these settings are kept.
pub(crate) fn event_retention_days(settings: &Value) -> i64 {
    let days = settings.get("event_retention_days").and_then(Value::as_i64);
    days.filter(|days| (1..=i64::from(EVENT_RETENTION_DAYS_MAX)).contains(days))
        .unwrap_or(EVENT_RETENTION_DAYS)
}
