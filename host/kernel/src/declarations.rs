//! Permissions that the whole server shares, and event types of the service itself.

use heddle_core::declared::SubscriptionAccess;

heddle_core::permissions! { pub PERMISSIONS {
    SETTINGS_READ = "settings:read", SiteAdmin, "See settings and the names of stored credentials";
    SETTINGS_WRITE = "settings:write", OrgAdmin, "Change settings and stored credentials";
} }

pub(crate) const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] = &[
    ("settings", SubscriptionAccess::Permission(SETTINGS_READ)),
    ("admin", SubscriptionAccess::SuperAdmin),
    ("system", SubscriptionAccess::SuperAdmin),
    ("*", SubscriptionAccess::SuperAdmin),
];
