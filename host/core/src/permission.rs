//! Permissions, which role holds them, and which one a feature needs.
//!
//! This is the only table that says what a role may do.

use crate::Role;
use crate::change::Danger;

stored_words! {
    /// A right that a route or a rule asks for.
    pub enum Permission {
        DeviceRead = "device:read",
        DeviceWrite = "device:write",
        ControllerRead = "controller:read",
        ControllerWrite = "controller:write",
        NetworkWrite = "network:write",
        FirewallWrite = "firewall:write",
        VpnRead = "vpn:read",
        VpnWrite = "vpn:write",
        HypervisorWrite = "hypervisor:write",
        AlertRead = "alert:read",
        AnalyticsRead = "analytics:read",
        AuditRead = "audit:read",
        SettingsRead = "settings:read",
        SettingsWrite = "settings:write",
        SiteRead = "site:read",
        SiteWrite = "site:write",
        DiscoveryRun = "discovery:run",
        DiscoveryWrite = "discovery:write",
        EventWrite = "event:write",
        OrganizationRead = "organization:read",
        OrganizationWrite = "organization:write",
        UserRead = "user:read",
        UserWrite = "user:write",
        CamerasView = "cameras.view",
        FirewallManageRules = "firewall.manage_rules",
        VoipManagePhones = "voip.manage_phones",
    }
}

const GUEST: &[Permission] = &[Permission::DeviceRead, Permission::SiteRead];
const VIEWER: &[Permission] = &[
    Permission::DeviceRead,
    Permission::SiteRead,
    Permission::CamerasView,
    Permission::AlertRead,
    Permission::ControllerRead,
    Permission::VpnRead,
    Permission::AnalyticsRead,
    Permission::AuditRead,
    Permission::OrganizationRead,
];
const OPERATOR: &[Permission] = &[
    Permission::DeviceWrite,
    Permission::NetworkWrite,
    Permission::FirewallWrite,
    Permission::FirewallManageRules,
    Permission::VpnWrite,
    Permission::VoipManagePhones,
    Permission::DiscoveryRun,
];
const SITE_ADMIN: &[Permission] = &[
    Permission::ControllerWrite,
    Permission::HypervisorWrite,
    Permission::SettingsRead,
    Permission::DiscoveryWrite,
    Permission::EventWrite,
];
const ORG_ADMIN: &[Permission] = &[
    Permission::SettingsWrite,
    Permission::SiteWrite,
    Permission::OrganizationWrite,
    Permission::UserRead,
    Permission::UserWrite,
];

impl Role {
    /// Whether this role holds `permission`. A higher role holds all of the lower ones'.
    pub fn holds(self, permission: Permission) -> bool {
        match self {
            Role::SuperAdmin => true,
            Role::OrgAdmin => ORG_ADMIN.contains(&permission) || Role::SiteAdmin.holds(permission),
            Role::SiteAdmin => SITE_ADMIN.contains(&permission) || Role::Operator.holds(permission),
            Role::Operator => OPERATOR.contains(&permission) || Role::Viewer.holds(permission),
            Role::Viewer => VIEWER.contains(&permission),
            Role::Guest => GUEST.contains(&permission),
        }
    }

    /// The effective set as users see it: `["*"]` for `super_admin`.
    pub fn permissions(self) -> Vec<&'static str> {
        if self == Role::SuperAdmin {
            return vec!["*"];
        }
        Permission::ALL.iter().filter(|p| self.holds(**p)).map(|p| p.as_str()).collect()
    }
}

/// A scope of an API key: one permission, or all below a word.
///
/// `device:read` and `cameras.view` name a permission, `device:*` and
/// `cameras.*` all that begin so. `*` alone names no permission at all: it is
/// only what an exact check for `*` finds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope(String);

/// Text that is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a permission: give one such as 'device:read', or 'device:*' for all of a kind")]
pub struct UnknownScope(pub String);

impl Scope {
    /// The scope that names everything and covers nothing.
    pub const EVERYTHING: &'static str = "*";

    pub fn parse(text: &str) -> Result<Self, UnknownScope> {
        let is_known = text == Self::EVERYTHING || Permission::ALL.iter().any(|p| covers(text, p.as_str()));
        if is_known { Ok(Self(text.to_owned())) } else { Err(UnknownScope(text.to_owned())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn covers(&self, permission: Permission) -> bool {
        covers(&self.0, permission.as_str())
    }

    /// Whether a user of this role holds everything that the scope names.
    pub fn is_held_by(&self, role: Role) -> bool {
        if self.0 == Self::EVERYTHING {
            return role == Role::SuperAdmin;
        }
        Permission::ALL.iter().filter(|p| self.covers(**p)).all(|p| role.holds(*p))
    }
}

/// A pattern covers what it is equal to, and, ending in `:*` or `.*`, what begins as it does.
fn covers(pattern: &str, permission: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(stem) if stem.len() > 1 && stem.ends_with([':', '.']) => permission.starts_with(stem),
        _ => pattern == permission,
    }
}

/// Which permission staging and applying a feature needs.
///
/// The feature's first segment decides: a word of the field, or the vendor's id. What destroys something at one of
/// the switching and router vendors' needs more than what changes it.
pub fn for_feature(feature: &str, danger: Danger) -> Permission {
    match feature.split('.').next().unwrap_or_default() {
        "vpn" => Permission::VpnWrite,
        "firewall" | "opnsense" | "pfsense" => Permission::FirewallWrite,
        "proxmox" => Permission::HypervisorWrite,
        "system" | "monitoring" => Permission::ControllerWrite,
        "omada" | "mikrotik" | "openwrt" | "unifi" if danger != Danger::Normal => Permission::ControllerWrite,
        _ => Permission::NetworkWrite,
    }
}

/// What a subscriber of events with this type must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionAccess {
    Permission(Permission),
    SuperAdmin,
    Denied,
}

/// The permission that a subscription to `pattern` needs, by the pattern's first segment.
pub fn for_subscription(pattern: &str) -> SubscriptionAccess {
    use SubscriptionAccess::{Denied, Permission as Needs, SuperAdmin};
    match pattern.split('.').next().unwrap_or_default() {
        "device" | "discovery" | "pbx" | "camera" | "nvr" => Needs(Permission::DeviceRead),
        "alert" => Needs(Permission::AlertRead),
        "sla" => Needs(Permission::AnalyticsRead),
        "controller" => Needs(Permission::ControllerRead),
        "vpn" => Needs(Permission::VpnRead),
        "audit" | "security" => Needs(Permission::AuditRead),
        "settings" => Needs(Permission::SettingsRead),
        "user" => Needs(Permission::UserRead),
        "admin" | "system" | "*" => SuperAdmin,
        _ => Denied,
    }
}

/// What reading events of a type needs, wherever it is not the stream: by REST, by a webhook, in a Connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingAccess {
    Permission(Permission),
    /// At least this role, without a ceiling of scopes.
    Role(Role),
}

/// What reading events of this type or pattern needs. The table of the stream decides for the prefixes that it opens; all
/// others are for administrators of the organization, except those of the service itself.
pub fn for_reading(pattern: &str) -> ReadingAccess {
    match for_subscription(pattern) {
        SubscriptionAccess::Permission(permission) => ReadingAccess::Permission(permission),
        // Each event that it covers is judged by its own type, too.
        SubscriptionAccess::SuperAdmin if pattern == "*" => ReadingAccess::Role(Role::OrgAdmin),
        SubscriptionAccess::SuperAdmin => ReadingAccess::Role(Role::SuperAdmin),
        SubscriptionAccess::Denied => ReadingAccess::Role(Role::OrgAdmin),
    }
}

#[cfg(test)]
mod tests;
