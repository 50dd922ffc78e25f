//! One connection's rules: what it subscribed to, what it may see.
//!
//! Pure: frames in, frames out. The socket itself is in `connection`.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use heddle_core::event::{EventType, matches};
use heddle_core::permission::{SubscriptionAccess, for_subscription};
use heddle_core::{OrgId, Role, SiteId};
use heddle_store::SiteScope;

use super::Published;
use crate::auth::Caller;

const SUBSCRIPTIONS_MAX: usize = 200;
const PATTERN_CHARS_MAX: usize = 200;
const FRAMES_PER_SECOND: usize = 5;
/// A peer from which nothing came for so long is gone.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// What one connection listens to.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) caller: Caller,
    subscriptions: BTreeSet<String>,
    sites: Option<BTreeSet<SiteId>>,
    recent: VecDeque<Instant>,
    last_heard: Instant,
}

/// Why patterns were not subscribed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Denied {
    pub(super) patterns: Vec<String>,
    pub(super) reason: String,
}

impl Listener {
    pub(super) fn new(caller: Caller, now: Instant) -> Self {
        Self { caller, subscriptions: BTreeSet::new(), sites: None, recent: VecDeque::new(), last_heard: now }
    }

    /// The peer lives: a frame of any kind came.
    pub(super) fn heard(&mut self, now: Instant) {
        self.last_heard = now;
    }

    /// Whether nothing came for too long.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        now.duration_since(self.last_heard) >= SILENCE_MAX
    }

    /// Goes on as what the caller is by now; answers the subscriptions that ended with it.
    pub(super) fn renew(&mut self, caller: Caller) -> Option<Denied> {
        self.caller = caller;
        let mut ended = Denied { patterns: Vec::new(), reason: String::new() };
        for pattern in std::mem::take(&mut self.subscriptions) {
            match self.why_not(&pattern) {
                None => {
                    self.subscriptions.insert(pattern);
                }
                Some(reason) => {
                    ended.patterns.push(pattern);
                    ended.reason = reason;
                }
            }
        }
        if let Some(sites) = &mut self.sites {
            // An emptied filter stays one: without it, more events would come than before.
            sites.retain(|site| self.caller.may_access_site(*site));
        }
        (!ended.patterns.is_empty()).then_some(ended)
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
        if !is_pattern(pattern) {
            return Some("'*' stands alone, or behind the last dot: 'device.*'".to_owned());
        }
        match for_subscription(pattern) {
            SubscriptionAccess::Permission(permission) if self.caller.holds(permission) => None,
            SubscriptionAccess::Permission(permission) => {
                Some(format!("permission '{permission}' is required"))
            }
            SubscriptionAccess::SuperAdmin if self.caller.require_role(Role::SuperAdmin).is_ok() => None,
            SubscriptionAccess::SuperAdmin => {
                Some("role 'super_admin' is required, without a ceiling of scopes".to_owned())
            }
            SubscriptionAccess::Denied => Some("events with this prefix cannot be subscribed to".to_owned()),
        }
    }

    pub(super) fn unsubscribe(&mut self, patterns: &[String]) {
        self.subscriptions.retain(|pattern| !patterns.contains(pattern));
    }

    pub(super) fn subscriptions(&self) -> Vec<String> {
        self.subscriptions.iter().cloned().collect()
    }

    /// Narrows to these sites, which the caller can read; `None` lifts the filter.
    pub(super) fn set_sites(&mut self, sites: Option<Vec<SiteId>>) {
        self.sites = sites.map(BTreeSet::from_iter);
    }

    /// Whose events it may see; `None` when those of all organizations.
    pub(super) fn organization(&self) -> Option<OrgId> {
        self.caller.scope().org
    }

    /// The types that its subscriptions cover.
    pub(super) fn types(&self) -> Vec<EventType> {
        let covers = |t: &EventType| self.subscriptions.iter().any(|pattern| matches(pattern, t.as_str()));
        EventType::ALL.iter().copied().filter(covers).collect()
    }

    /// Whether this connection gets the event.
    pub(super) fn wants(&self, published: &Published) -> bool {
        let event = &published.event;
        let is_visible = self.organization().is_none_or(|org| org == event.organization_id);
        let site_fits = match published.site_id {
            Some(site) => {
                self.caller.may_access_site(site)
                    && self.sites.as_ref().is_none_or(|sites| sites.contains(&site))
            }
            None => may_read_without_site(&self.caller, event.event_type),
        };
        is_visible
            && site_fits
            && self.subscriptions.iter().any(|pattern| matches(pattern, event.event_type.as_str()))
    }
}

/// Events of security are about sites that they do not belong to: who is limited to some sees none of them.
pub(super) fn may_read_without_site(caller: &Caller, event_type: EventType) -> bool {
    caller.sites == SiteScope::All || !event_type.as_str().starts_with("security.")
}

/// Whether a wildcard is where one can be.
fn is_pattern(pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) => !stem.contains('*') && (stem.is_empty() || stem.ends_with('.')),
        None => !pattern.contains('*'),
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn listener(role: Role) -> Listener {
        let clock = Clock::default();
        let caller = Caller {
            user_id: clock.new_id(),
            username: "ada".to_owned(),
            org_id: clock.new_id(),
            role,
            credential: crate::auth::Credential::Session(clock.new_id()),
            scopes: None,
            sites: SiteScope::All,
            grants: std::collections::BTreeMap::new(),
        };
        Listener::new(caller, Instant::now())
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
    fn a_wildcard_that_could_cover_nothing_is_denied() {
        let mut admin = listener(Role::SuperAdmin);
        let odd = ["dev*", "device.*.changed", "**", "*.offline", "device*.*"];
        let denied = admin.subscribe(odd.map(str::to_owned).to_vec()).unwrap();
        assert_eq!(denied.patterns, odd);
        assert!(denied.reason.contains("device.*"), "{}", denied.reason);
        assert!(admin.subscribe(vec!["device.status.*".to_owned()]).is_none());
        assert_eq!(admin.types(), [EventType::DeviceStatusChanged]);
    }

    #[test]
    fn an_app_of_a_super_admin_hears_no_more_than_its_scopes_and_its_own_organization() {
        let mut listener = listener(Role::SuperAdmin);
        let scope = heddle_core::permission::Scope::parse("device:read").unwrap();
        listener.caller.scopes = Some([scope].into());
        let denied = listener.subscribe(vec!["*".into(), "system.*".into(), "user.*".into()]).unwrap();
        assert_eq!(denied.patterns, ["*", "system.*", "user.*"]);
        assert!(listener.subscribe(vec!["device.*".into()]).is_none());
        assert!(listener.wants(&published(listener.caller.org_id, None)));
        assert!(!listener.wants(&published(Clock::default().new_id(), None)));
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

    fn published(org: heddle_core::OrgId, site: Option<SiteId>) -> Published {
        let clock = Clock::default();
        let event_type = *EventType::ALL.iter().find(|t| t.as_str().starts_with("device.")).unwrap();
        let event = heddle_core::event::Event {
            id: clock.new_id(),
            seq: 1,
            event_type,
            category: event_type.category().to_owned(),
            priority: event_type.priority(),
            organization_id: org,
            occurred_at: clock.now(),
            causation_id: None,
            schema_version: 1,
            payload: serde_json::json!({}),
        };
        Published::new(event, site)
    }

    #[test]
    fn a_filter_narrows_until_it_is_lifted() {
        let (here, there) = (Clock::default().new_id(), Clock::default().new_id());
        let mut viewer = listener(Role::Viewer);
        let org = viewer.caller.org_id;
        assert!(viewer.subscribe(vec!["device.*".into()]).is_none());
        viewer.set_sites(Some(vec![here]));
        assert!(viewer.wants(&published(org, Some(here))));
        assert!(!viewer.wants(&published(org, Some(there))));
        assert!(viewer.wants(&published(org, None)));
        viewer.set_sites(Some(Vec::new()));
        assert!(!viewer.wants(&published(org, Some(here))), "no readable site is not every site");
        viewer.set_sites(None);
        assert!(viewer.wants(&published(org, Some(there))));
    }

    #[test]
    fn rights_that_shrink_end_what_they_covered() {
        let (here, there) = (Clock::default().new_id(), Clock::default().new_id());
        let mut listener = listener(Role::SuperAdmin);
        let org = listener.caller.org_id;
        assert!(listener.subscribe(vec!["*".into(), "device.*".into()]).is_none());
        listener.set_sites(Some(vec![here, there]));
        let now =
            Caller { role: Role::Viewer, sites: SiteScope::Only(vec![here]), ..listener.caller.clone() };
        assert_eq!(listener.renew(now).unwrap().patterns, ["*"]);
        assert_eq!(listener.subscriptions(), ["device.*"]);
        assert!(listener.wants(&published(org, Some(here))));
        assert!(!listener.wants(&published(org, Some(there))));
        assert_eq!(listener.renew(listener.caller.clone()), None);
    }

    #[test]
    fn a_peer_that_says_nothing_for_a_minute_is_silent() {
        let mut viewer = listener(Role::Viewer);
        let now = Instant::now();
        viewer.heard(now);
        assert!(!viewer.is_silent(now + Duration::from_secs(59)));
        assert!(viewer.is_silent(now + Duration::from_mins(1)));
    }
}
