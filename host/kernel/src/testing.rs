//! Names that tests of this crate declare, in place of features, and a caller.

use std::collections::BTreeMap;

use heddle_core::declared::SubscriptionAccess;
use heddle_core::{Clock, Declared, Role};
use heddle_store::SiteScope;

use crate::caller::{Caller, Credential};
use crate::declarations;

heddle_core::permissions! { PERMISSIONS {
    DEVICE_READ = "device:read", Guest, "See devices";
    DEVICE_WRITE = "device:write", Operator, "Change devices";
    SITE_READ = "site:read", Guest, "See sites";
    CONTROLLER_READ = "controller:read", Viewer, "See controllers";
    USER_READ = "user:read", OrgAdmin, "See users";
} }

heddle_core::events! { pub(crate) EVENTS {
    DEVICE_STATE_CHANGED = "device.state_changed", "device", Normal, {};
    DEVICE_STATUS_CHANGED = "device.status.changed", "device", Normal, {};
    DEVICE_OFFLINE = "device.offline", "device", High, {};
    CONTROLLER_SYNCED = "controller.sync.finished", "controller", Low, {};
    CHANGE_STAGED = "controller.change.staged", "controller", Normal, {};
    USER_CREATED = "user.created", "user", Normal, {};
    INGEST_EXTERNAL = "ingest.external", "external", Normal, {};
} }

const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] = &[
    ("device", SubscriptionAccess::Permission(DEVICE_READ)),
    ("controller", SubscriptionAccess::Permission(CONTROLLER_READ)),
    ("user", SubscriptionAccess::Permission(USER_READ)),
];

/// A user of this role in an organization of its own, with all sites.
pub(crate) fn caller(role: Role) -> Caller {
    let clock = Clock::default();
    Caller {
        user_id: clock.new_id(),
        username: "ada".to_owned(),
        org_id: clock.new_id(),
        role,
        credential: Credential::Session(clock.new_id()),
        scopes: None,
        sites: SiteScope::All,
        grants: BTreeMap::new(),
    }
}

/// What every server declares, and these names.
pub(crate) fn declared() -> Declared {
    Declared::new(
        declarations::PERMISSIONS.iter().chain(PERMISSIONS).copied(),
        EVENTS.iter().copied(),
        declarations::SUBSCRIPTIONS.iter().chain(SUBSCRIPTIONS).copied(),
    )
}
