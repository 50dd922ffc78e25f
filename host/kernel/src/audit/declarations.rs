//! Permissions of the audit log, and of subscriptions to audit and security events.

use heddle_core::declared::SubscriptionAccess;

heddle_core::permissions! { pub PERMISSIONS {
    AUDIT_READ = "audit:read", Viewer, "See who did what, in the audit log";
} }

pub(super) const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] = &[
    ("audit", SubscriptionAccess::Permission(AUDIT_READ)),
    ("security", SubscriptionAccess::Permission(AUDIT_READ)),
];
