//! How long the events of an organization are kept.

use heddle_core::organization_settings::OrganizationSettings;

/// Days that events are kept where the organization does not say.
const EVENT_RETENTION_DAYS: u32 = 90;

/// Days that the events of an organization with these settings are kept.
pub(crate) fn event_retention_days(settings: &OrganizationSettings) -> i64 {
    settings.event_retention_days.unwrap_or(EVENT_RETENTION_DAYS).into()
}
