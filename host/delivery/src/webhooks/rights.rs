//! The rights of subscriptions: an author may have events sent that they may read by REST.
//!
//! Checked when a subscription is created or its target changes, when an event is queued, and again right before it is
//! sent.

use heddle_core::declared::ReadingAccess;
use heddle_core::event::matches;
use heddle_core::{Declared, Permission, Role, SiteId};
use heddle_kernel::caller::Caller;
use heddle_store::webhooks::Author;

/// How to reactivate a subscription whose author lacks the rights.
const REMEDY: &str = "somebody who may have them has to save its events anew";

/// The events of a subscription, and the author whose rights apply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) events: &'a [String],
    pub(super) site_id: Option<SiteId>,
    pub(super) author: &'a Author,
}

/// Returns why the caller cannot subscribe to a pattern.
pub(super) fn why_not(declared: &Declared, caller: &Caller, pattern: &str) -> Option<String> {
    match declared.for_reading(pattern) {
        // Scopes name permissions, so they cover none of these events.
        ReadingAccess::Role(_) => caller.require_unscoped().err().map(|error| error.to_string()),
        ReadingAccess::Permission(_) => None,
    }
    .or_else(|| refusal(declared, pattern, caller.role, |permission| caller.holds(permission)))
}

/// Returns why an event is not for a subscription, with the subscription and its author's rights as they are now.
pub(super) fn why_not_now(
    declared: &Declared,
    asked: Asked<'_>,
    event_type: &str,
    site: Option<SiteId>,
) -> Option<String> {
    if let Some(why) = author_problem(asked.author) {
        return Some(why);
    }
    if asked.site_id.is_some() && asked.site_id != site {
        return Some("the subscription is for events of another site".to_owned());
    }
    let mut covering = asked.events.iter().filter(|pattern| matches(pattern, event_type)).peekable();
    if covering.peek().is_none() {
        return Some(format!("the subscription is not for events of type '{event_type}'"));
    }
    let refused: Option<Vec<String>> =
        covering.map(|pattern| pattern_problem(declared, pattern, asked.author)).collect();
    // A pattern such as '*' covers types that need more rights than the pattern itself.
    refused
        .and_then(|refused| refused.into_iter().next())
        .or_else(|| pattern_problem(declared, event_type, asked.author))
}

/// Returns the problem of a subscription as a whole, or of some of its events.
pub(super) fn problem(declared: &Declared, events: &[String], author: &Author) -> Option<String> {
    author_problem(author)
        .or_else(|| events.iter().find_map(|pattern| pattern_problem(declared, pattern, author)))
}

/// Returns the problem that stops all events of an author.
pub(super) fn author_problem(author: &Author) -> Option<String> {
    let name = &author.username;
    if !author.is_active {
        Some(format!("its author '{name}' is disabled or removed: {REMEDY}"))
    } else if !author.is_member {
        Some(format!("its author '{name}' is not in the organization any more: {REMEDY}"))
    } else if !author.has_all_sites {
        Some(format!("its author '{name}' has access to some sites only: {REMEDY}"))
    } else {
        None
    }
}

fn pattern_problem(declared: &Declared, pattern: &str, author: &Author) -> Option<String> {
    let role = author.role;
    let why = refusal(declared, pattern, role, |permission| role.holds(permission))?;
    Some(format!("its author '{}' may not have '{pattern}' any more ({why}): {REMEDY}", author.username))
}

fn refusal(
    declared: &Declared,
    pattern: &str,
    role: Role,
    holds: impl Fn(Permission) -> bool,
) -> Option<String> {
    match declared.for_reading(pattern) {
        ReadingAccess::Permission(permission) => {
            (!holds(permission)).then(|| format!("permission '{permission}' is required"))
        }
        ReadingAccess::Role(needed) => {
            (!role.is_at_least(needed)).then(|| format!("role '{needed}' or higher is required"))
        }
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_core::declared::SubscriptionAccess;

    use super::*;

    heddle_core::permissions! { PERMISSIONS {
        DEVICE_READ = "device:read", Guest, "See devices";
        USER_READ = "user:read", OrgAdmin, "See users";
    } }

    /// The rules of these subscriptions, where no type is declared.
    fn declared() -> Declared {
        let rules = [
            ("device", SubscriptionAccess::Permission(DEVICE_READ)),
            ("user", SubscriptionAccess::Permission(USER_READ)),
            ("system", SubscriptionAccess::SuperAdmin),
            ("*", SubscriptionAccess::SuperAdmin),
        ];
        Declared::new(PERMISSIONS.iter().copied(), [], rules)
    }

    fn author(role: Role) -> Author {
        Author { username: "ada".to_owned(), role, is_active: true, is_member: true, has_all_sites: true }
    }

    #[track_caller]
    fn check(role: Role, events: &[&str], event_type: &str, expected: bool) {
        let events: Vec<String> = events.iter().map(|pattern| (*pattern).to_owned()).collect();
        let asked = Asked { events: &events, site_id: None, author: &author(role) };
        assert_eq!(
            why_not_now(&declared(), asked, event_type, None).is_none(),
            expected,
            "{role} {events:?}"
        );
    }

    #[test]
    fn an_author_who_lost_a_right_gets_nothing_by_it() {
        check(Role::OrgAdmin, &["user.*"], "user.created", true);
        check(Role::Viewer, &["user.*"], "user.created", false);
        check(Role::Viewer, &["user.*", "device.*"], "device.offline", true);
        check(Role::SuperAdmin, &["*"], "user.created", true);
        check(Role::OrgAdmin, &["*"], "user.created", true);
        check(Role::OrgAdmin, &["*"], "ingest.external", true);
        check(Role::OrgAdmin, &["*"], "system.started", false);
        check(Role::SuperAdmin, &["*"], "system.started", true);
        check(Role::SiteAdmin, &["*"], "device.offline", false);
        check(Role::OrgAdmin, &["*", "user.*"], "user.created", true);
        check(Role::OrgAdmin, &["device.offline"], "device.status.changed", false);
        check(Role::OrgAdmin, &[], "device.offline", false);
    }

    #[test]
    fn a_site_narrows_to_its_own_events() {
        let clock = Clock::default();
        let (site, other): (SiteId, SiteId) = (clock.new_id(), clock.new_id());
        let (events, author) = (vec!["device.*".to_owned()], author(Role::OrgAdmin));
        let asked = Asked { events: &events, site_id: Some(site), author: &author };
        for (of, expected) in [(Some(site), true), (Some(other), false), (None, false)] {
            assert_eq!(why_not_now(&declared(), asked, "device.offline", of).is_none(), expected);
        }
    }

    #[test]
    fn what_stands_against_a_subscription_is_said() {
        let fine = author(Role::OrgAdmin);
        let events = ["device.*".to_owned(), "user.*".to_owned()];
        assert_eq!(problem(&declared(), &events, &fine), None);
        for (changed, word) in [
            (Author { is_active: false, ..fine.clone() }, "disabled"),
            (Author { is_member: false, ..fine.clone() }, "organization"),
            (Author { has_all_sites: false, ..fine.clone() }, "some sites only"),
            (Author { role: Role::Viewer, ..fine.clone() }, "'user.*'"),
        ] {
            let said = problem(&declared(), &events, &changed).unwrap();
            assert!(said.contains(word) && said.contains("'ada'") && said.ends_with(REMEDY), "{said}");
            let asked = Asked { events: &events[1..], site_id: None, author: &changed };
            assert_eq!(why_not_now(&declared(), asked, "user.created", None).as_ref(), Some(&said));
        }
    }
}
