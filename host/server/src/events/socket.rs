//! One connection's rules: what it subscribed to, what it may see.
//!
//! Pure: frames in, frames out. The socket itself is in `connection`.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use heddle_core::event::{EventType, matches};
use heddle_core::permission::{SubscriptionAccess, for_subscription};
use heddle_core::{Role, SiteId};

use super::Published;
use crate::auth::Caller;

const SUBSCRIPTIONS_MAX: usize = 200;
const PATTERN_CHARS_MAX: usize = 200;
const FRAMES_PER_SECOND: usize = 5;

/// What one connection listens to.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) caller: Caller,
    subscriptions: BTreeSet<String>,
    sites: Option<BTreeSet<SiteId>>,
    recent: VecDeque<Instant>,
}

/// Why patterns were not subscribed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Denied {
    pub(super) patterns: Vec<String>,
    pub(super) reason: String,
}

impl Listener {
    pub(super) fn new(caller: Caller) -> Self {
        Self { caller, subscriptions: BTreeSet::new(), sites: None, recent: VecDeque::new() }
    }

    /// Counts a frame; false when there were too many within a second.
    pub(super) fn may_send(&mut self, now: Instant) -> bool {
        while self.recent.front().is_some_and(|at| now.duration_since(*at) >= Duration::from_secs(1)) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.recent.len() <= FRAMES_PER_SECOND
    }

    /// The event types that this caller could subscribe to.
    pub(super) fn available(&self) -> Vec<&'static str> {
        EventType::ALL.iter().map(|t| t.as_str()).filter(|name| self.why_not(name).is_none()).collect()
    }

    /// Adds what is allowed; answers what is not.
    pub(super) fn subscribe(&mut self, patterns: Vec<String>) -> Option<Denied> {
        let mut denied = Denied { patterns: Vec::new(), reason: String::new() };
        for pattern in patterns {
            let reason = self.why_not(&pattern).or_else(|| {
                let is_full =
                    self.subscriptions.len() >= SUBSCRIPTIONS_MAX && !self.subscriptions.contains(&pattern);
                is_full.then(|| format!("at most {SUBSCRIPTIONS_MAX} subscriptions per connection"))
            });
            match reason {
                Some(reason) => {
                    denied.patterns.push(pattern);
                    denied.reason = reason;
                }
                None => {
                    self.subscriptions.insert(pattern);
                }
            }
        }
        (!denied.patterns.is_empty()).then_some(denied)
    }

    fn why_not(&self, pattern: &str) -> Option<String> {
        if pattern.is_empty() || pattern.chars().count() > PATTERN_CHARS_MAX {
            return Some(format!("a pattern has 1 to {PATTERN_CHARS_MAX} characters"));
        }
        match for_subscription(pattern) {
            SubscriptionAccess::Permission(permission) if self.caller.holds(permission) => None,
            SubscriptionAccess::Permission(permission) => {
                Some(format!("permission '{permission}' is required"))
            }
            SubscriptionAccess::SuperAdmin if self.caller.role == Role::SuperAdmin => None,
            SubscriptionAccess::SuperAdmin => Some("role 'super_admin' is required".to_owned()),
            SubscriptionAccess::Denied => Some("events with this prefix cannot be subscribed to".to_owned()),
        }
    }

    pub(super) fn unsubscribe(&mut self, patterns: &[String]) {
        self.subscriptions.retain(|pattern| !patterns.contains(pattern));
    }

    pub(super) fn subscriptions(&self) -> Vec<String> {
        self.subscriptions.iter().cloned().collect()
    }

    /// Narrows to these sites; those that the caller cannot read are left out silently.
    pub(super) fn set_sites(&mut self, sites: Vec<SiteId>) -> Vec<SiteId> {
        let readable: BTreeSet<SiteId> =
            sites.into_iter().filter(|site| self.caller.may_access_site(*site)).collect();
        let shown = readable.iter().copied().collect();
        self.sites = Some(readable);
        shown
    }

    /// Whether this connection gets the event.
    pub(super) fn wants(&self, published: &Published) -> bool {
        let event = &published.event;
        let is_visible = self.caller.role == Role::SuperAdmin || event.organization_id == self.caller.org_id;
        let site_fits = published.site_id.is_none_or(|site| {
            self.caller.may_access_site(site) && self.sites.as_ref().is_none_or(|sites| sites.contains(&site))
        });
        is_visible
            && site_fits
            && self.subscriptions.iter().any(|pattern| matches(pattern, event.event_type.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_store::SiteScope;

    use super::*;

    fn listener(role: Role) -> Listener {
        let clock = Clock::default();
        Listener::new(Caller {
            user_id: clock.new_id(),
            username: "ada".to_owned(),
            org_id: clock.new_id(),
            role,
            session_id: clock.new_id(),
            sites: SiteScope::All,
        })
    }

    #[test]
    fn a_viewer_subscribes_to_what_its_permissions_cover() {
        let mut viewer = listener(Role::Viewer);
        let denied =
            viewer.subscribe(vec!["device.*".into(), "system.*".into(), "network.*".into()]).unwrap();
        assert_eq!(denied.patterns, ["system.*", "network.*"]);
        assert_eq!(viewer.subscriptions(), ["device.*"]);
        assert!(listener(Role::Guest).subscribe(vec!["controller.*".into()]).is_some());
        assert!(listener(Role::SuperAdmin).subscribe(vec!["*".into()]).is_none());
    }

    #[test]
    fn the_sixth_frame_within_a_second_is_too_many() {
        let mut viewer = listener(Role::Viewer);
        let now = Instant::now();
        assert!((0..5).all(|_| viewer.may_send(now)));
        assert!(!viewer.may_send(now));
        assert!(viewer.may_send(now + Duration::from_millis(1001)));
    }

    #[test]
    fn the_201st_subscription_is_denied_with_its_reason() {
        let mut viewer = listener(Role::Viewer);
        assert!(viewer.subscribe((0..200).map(|n| format!("device.n{n}")).collect()).is_none());
        let denied = viewer.subscribe(vec!["device.more".into(), "device.n1".into()]).unwrap();
        assert_eq!(denied.patterns, ["device.more"]);
        assert!(denied.reason.contains("200"));
        assert!(viewer.subscribe(vec!["device.".repeat(40)]).is_some());
    }
}
