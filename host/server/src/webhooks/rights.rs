//! Who may have which events sent: who could subscribe to them otherwise.

use heddle_core::event::matches;
use heddle_core::permission::{SubscriptionAccess, for_subscription};
use heddle_core::{Permission, Role};
use heddle_store::events::StoredEvent;
use heddle_store::webhooks::Listening;

use crate::auth::Caller;

/// Why the caller cannot subscribe to a pattern.
pub(super) fn why_not(caller: &Caller, pattern: &str) -> Option<String> {
    refusal(pattern, caller.role, |permission| caller.holds(permission))
}

/// Whether an event is for a subscription, by the rights that its author has now.
pub(super) fn is_for(listening: &Listening, stored: &StoredEvent) -> bool {
    let event_type = stored.event.event_type.as_str();
    let site_fits = match (listening.site_id, stored.site_id) {
        (Some(wanted), Some(site)) => wanted == site,
        (Some(_), None) => false,
        (None, _) => true,
    };
    let may_have = |pattern: &String| {
        let role = listening.role;
        matches(pattern, event_type) && refusal(pattern, role, |permission| role.holds(permission)).is_none()
    };
    site_fits && listening.events.iter().any(may_have)
}

fn refusal(pattern: &str, role: Role, holds: impl Fn(Permission) -> bool) -> Option<String> {
    match for_subscription(pattern) {
        SubscriptionAccess::Permission(permission) if holds(permission) => None,
        SubscriptionAccess::Permission(permission) => Some(format!("permission '{permission}' is required")),
        SubscriptionAccess::SuperAdmin if role == Role::SuperAdmin => None,
        SubscriptionAccess::SuperAdmin => Some("role 'super_admin' is required".to_owned()),
        SubscriptionAccess::Denied => Some("events with this prefix cannot be subscribed to".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::event::{Event, EventType};
    use heddle_core::{Clock, SiteId};
    use serde_json::json;

    use super::*;

    fn stored(event_type: EventType, site_id: Option<SiteId>) -> StoredEvent {
        let clock = Clock::default();
        StoredEvent {
            event: Event {
                id: clock.new_id(),
                seq: 1,
                event_type,
                category: event_type.category().to_owned(),
                priority: event_type.priority(),
                organization_id: clock.new_id(),
                occurred_at: clock.now(),
                causation_id: None,
                schema_version: 1,
                payload: json!({}),
            },
            site_id,
            controller_id: None,
            device_id: None,
            run_id: None,
        }
    }

    #[track_caller]
    fn check(role: Role, events: &[&str], event_type: EventType, expected: bool) {
        let events = events.iter().map(|pattern| (*pattern).to_owned()).collect();
        let listening =
            Listening { id: Clock::default().new_id(), events, site_id: None, after_seq: 0, role };
        assert_eq!(is_for(&listening, &stored(event_type, None)), expected, "{role} {:?}", listening.events);
    }

    #[test]
    fn an_author_who_lost_a_right_gets_nothing_by_it() {
        check(Role::OrgAdmin, &["user.*"], EventType::UserCreated, true);
        check(Role::Viewer, &["user.*"], EventType::UserCreated, false);
        check(Role::Viewer, &["user.*", "device.*"], EventType::DeviceOffline, true);
        check(Role::SuperAdmin, &["*"], EventType::UserCreated, true);
        check(Role::OrgAdmin, &["*"], EventType::UserCreated, false);
        check(Role::OrgAdmin, &["device.offline"], EventType::DeviceStatusChanged, false);
        check(Role::OrgAdmin, &[], EventType::DeviceOffline, false);
    }

    #[test]
    fn a_site_narrows_to_its_own_events() {
        let clock = Clock::default();
        let (site, other): (SiteId, SiteId) = (clock.new_id(), clock.new_id());
        let listening = Listening {
            id: clock.new_id(),
            events: vec!["device.*".to_owned()],
            site_id: Some(site),
            after_seq: 0,
            role: Role::OrgAdmin,
        };
        for (of, expected) in [(Some(site), true), (Some(other), false), (None, false)] {
            assert_eq!(is_for(&listening, &stored(EventType::DeviceOffline, of)), expected);
        }
    }
}
