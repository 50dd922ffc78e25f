//! Permissions of organizations, sites and users, events of the access to sites, and settings.

use heddle_core::declared::SubscriptionAccess;

heddle_core::permissions! { pub PERMISSIONS {
    SITE_READ = "site:read", Guest, "See sites";
    SITE_WRITE = "site:write", OrgAdmin, "Create, change and remove sites";
    ORGANIZATION_READ = "organization:read", Viewer, "See the organization";
    ORGANIZATION_WRITE = "organization:write", OrgAdmin, "Change what the organization shares";
    USER_READ = "user:read", OrgAdmin, "See users";
    USER_WRITE = "user:write", OrgAdmin, "Nothing more by itself: users are managed by people only";
} }

heddle_core::events! { pub EVENTS {
    ACCESS_WIDENED = "security.access_widened", "security", High,
        { "user_id": "uuid", "username": "string", "site_id": "uuid", "actor_id": "uuid" };
} }

pub(super) const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] =
    &[("user", SubscriptionAccess::Permission(USER_READ))];

heddle_kernel::settings! {
    /// Which organizations there can be, and how large.
    pub struct TenancySettings {
        /// Lets anybody register an organization of their own.
        allow_registration: bool = "ALLOW_REGISTRATION", "false";
        /// Refuses what goes beyond the quota of an organization's tier.
        enforce_org_quotas: bool = "ENFORCE_ORG_QUOTAS", "false";
    }
}
