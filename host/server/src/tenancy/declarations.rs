//! Permissions of organizations, sites and users.

use heddle_core::declared::SubscriptionAccess;

heddle_core::permissions! { pub(crate) PERMISSIONS {
    SITE_READ = "site:read", Guest, "See sites";
    SITE_WRITE = "site:write", OrgAdmin, "Create, change and remove sites";
    ORGANIZATION_READ = "organization:read", Viewer, "See the organization";
    ORGANIZATION_WRITE = "organization:write", OrgAdmin, "Change what the organization shares";
    USER_READ = "user:read", OrgAdmin, "See users";
    USER_WRITE = "user:write", OrgAdmin, "Nothing more by itself: users are managed by people only";
} }

pub(super) const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] =
    &[("user", SubscriptionAccess::Permission(USER_READ))];
