//! One connection's rules: what it subscribed to, what it may see.
//!
//! Pure: frames in, frames out. The socket itself is in `connection`.

use std::collections::BTreeSet;
use std::sync::Arc;

use heddle_core::declared::SubscriptionAccess;
use heddle_core::event::{EventType, EventTypes, matches};
use heddle_core::{Declared, OrgId, Role, SiteId};
use heddle_store::SiteScope;

use super::frames::Denial;
use super::published::Published;
use crate::caller::Caller;

const SUBSCRIPTIONS_MAX: usize = 200;
const PATTERN_CHARS_MAX: usize = 200;

/// What one connection listens to.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) caller: Caller,
    declared: Arc<Declared>,
    subscriptions: BTreeSet<String>,
    sites: Option<BTreeSet<SiteId>>,
}

/// Patterns that were not subscribed, and why.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Denied {
    pub(super) patterns: Vec<String>,
    pub(super) denials: Vec<Denial>,
}

impl Denied {
    fn add(&mut self, pattern: String, reason: String) {
        self.patterns.push(pattern.clone());
        match self.denials.iter_mut().find(|denial| denial.reason == reason) {
            Some(denial) => denial.patterns.push(pattern),
            None => self.denials.push(Denial { reason, patterns: vec![pattern] }),
        }
    }

    /// All reasons in one text.
    pub(super) fn reason(&self) -> String {
        let reasons: Vec<&str> = self.denials.iter().map(|denial| denial.reason.as_str()).collect();
        reasons.join("; ")
    }

    fn if_any(self) -> Option<Self> {
        (!self.patterns.is_empty()).then_some(self)
    }
}

impl Listener {
    pub(super) fn new(caller: Caller, declared: Arc<Declared>) -> Self {
        Self { caller, declared, subscriptions: BTreeSet::new(), sites: None }
    }

    /// Replaces the caller by its present state; returns the subscriptions that ended with it.
    pub(super) fn renew(&mut self, caller: Caller) -> Option<Denied> {
        self.caller = caller;
        let mut ended = Denied::default();
        for pattern in std::mem::take(&mut self.subscriptions) {
            match self.why_not(&pattern) {
                None => {
                    self.subscriptions.insert(pattern);
                }
                Some(reason) => ended.add(pattern, reason),
            }
        }
        if let Some(sites) = &mut self.sites {
            // An emptied filter stays a filter: without it, more events would come than before.
            sites.retain(|site| self.caller.may_access_site(*site));
        }
        ended.if_any()
    }

    /// Takes up the names that are declared now: a subscription covers types that came after it.
    pub(super) fn learn(&mut self, declared: Arc<Declared>) {
        self.declared = declared;
    }

    /// The event types that this caller could subscribe to.
    pub(super) fn available(&self) -> Vec<&'static str> {
        self.declared
            .events
            .iter()
            .map(EventType::as_str)
            .filter(|name| self.why_not(name).is_none())
            .collect()
    }

    /// Adds the subscriptions that are allowed; returns those that are not.
    pub(super) fn subscribe(&mut self, patterns: Vec<String>) -> Option<Denied> {
        let mut denied = Denied::default();
        for pattern in patterns {
            let reason = self.why_not(&pattern).or_else(|| {
                let is_full =
                    self.subscriptions.len() >= SUBSCRIPTIONS_MAX && !self.subscriptions.contains(&pattern);
                is_full.then(|| format!("at most {SUBSCRIPTIONS_MAX} subscriptions per connection"))
            });
            match reason {
                Some(reason) => denied.add(pattern, reason),
                None => {
                    self.subscriptions.insert(pattern);
                }
            }
        }
        denied.if_any()
    }

    fn why_not(&self, pattern: &str) -> Option<String> {
        if pattern.is_empty() || pattern.chars().count() > PATTERN_CHARS_MAX {
            return Some(format!("a pattern has 1 to {PATTERN_CHARS_MAX} characters"));
        }
        if !is_pattern(pattern) {
            return Some("'*' stands alone, or behind the last dot: 'device.*'".to_owned());
        }
        match self.declared.for_subscription(pattern) {
            SubscriptionAccess::Permission(permission) if self.caller.holds(permission) => None,
            SubscriptionAccess::Permission(permission) => {
                Some(format!("permission '{permission}' is required"))
            }
            SubscriptionAccess::SuperAdmin if self.caller.require_unscoped_role(Role::SuperAdmin).is_ok() => {
                None
            }
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

    /// Returns the organization whose events it may see; `None` when it may see those of all organizations.
    pub(super) fn organization(&self) -> Option<OrgId> {
        self.caller.scope().org
    }

    /// The types that its subscriptions cover.
    pub(super) fn types(&self) -> EventTypes {
        let covers = |one: EventType| self.subscriptions.iter().any(|pattern| matches(pattern, one.as_str()));
        self.declared.events.only(covers)
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

/// Whether the caller may see events of this type that belong to no site. Security events are about sites that they do
/// not belong to: a caller that is limited to some sites sees none of them.
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

    use super::super::published::sample;
    use super::*;

    fn listener(role: Role) -> Listener {
        Listener::new(crate::testing::caller(role), Arc::new(crate::testing::declared()))
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
        assert!(denied.reason().contains("device.*"), "{}", denied.reason());
        assert!(admin.subscribe(vec!["device.status.*".to_owned()]).is_none());
        let types: Vec<&str> = admin.types().iter().map(EventType::as_str).collect();
        assert_eq!(types, ["device.status.changed"]);
    }

    #[test]
    fn an_app_of_a_super_admin_hears_no_more_than_its_scopes_and_its_own_organization() {
        let mut listener = listener(Role::SuperAdmin);
        let scope =
            heddle_core::permission::KeyScope::parse("device:read", &listener.declared.permissions).unwrap();
        listener.caller.scopes = Some([scope].into());
        let denied = listener.subscribe(vec!["*".into(), "system.*".into(), "user.*".into()]).unwrap();
        assert_eq!(denied.patterns, ["*", "system.*", "user.*"]);
        assert!(listener.subscribe(vec!["device.*".into()]).is_none());
        assert!(listener.wants(&published(listener.caller.org_id, None)));
        assert!(!listener.wants(&published(Clock::default().new_id(), None)));
    }

    #[test]
    fn each_denied_pattern_has_its_own_reason() {
        let mut guest = listener(Role::Viewer);
        let asked = ["system.*", "dev*", "user.*", "admin.*", "network.*"];
        let denied = guest.subscribe(asked.map(str::to_owned).to_vec()).unwrap();
        assert_eq!(denied.patterns, asked);
        let denials: Vec<(&str, Vec<&str>)> = denied
            .denials
            .iter()
            .map(|denial| (denial.reason.as_str(), denial.patterns.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(
            denials,
            [
                ("role 'super_admin' is required, without a ceiling of scopes", vec!["system.*", "admin.*"]),
                ("'*' stands alone, or behind the last dot: 'device.*'", vec!["dev*"]),
                ("permission 'user:read' is required", vec!["user.*"]),
                ("events with this prefix cannot be subscribed to", vec!["network.*"]),
            ]
        );
        assert!(denials.iter().all(|(reason, _)| denied.reason().contains(reason)));
    }

    #[test]
    fn the_201st_subscription_is_denied_with_its_reason() {
        let mut viewer = listener(Role::Viewer);
        assert!(viewer.subscribe((0..200).map(|n| format!("device.n{n}")).collect()).is_none());
        let denied = viewer.subscribe(vec!["device.more".into(), "device.n1".into()]).unwrap();
        assert_eq!(denied.patterns, ["device.more"]);
        assert!(denied.reason().contains("200"));
        assert!(viewer.subscribe(vec!["device.".repeat(40)]).is_some());
    }

    fn published(org: OrgId, site: Option<SiteId>) -> Published {
        let event_type = crate::testing::declared().events.find("device.offline").unwrap();
        sample(org, event_type, site)
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
}
