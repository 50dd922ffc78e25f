//! What each permission lets an app do, in words for the person who is asked.

use heddle_core::Permission;

pub(super) fn allows(permission: Permission) -> &'static str {
    match permission {
        Permission::DeviceRead => "See devices and their state",
        Permission::DeviceWrite => "Change devices",
        Permission::ControllerRead => "See controllers and what they are set to",
        Permission::ControllerWrite => "Stage and apply changes of controllers' systems",
        Permission::NetworkWrite => "Stage and apply changes of networks",
        Permission::FirewallWrite => "Stage and apply changes of firewalls",
        Permission::VpnRead => "See VPN tunnels",
        Permission::VpnWrite => "Stage and apply changes of VPN tunnels",
        Permission::HypervisorWrite => "Stage and apply changes of virtual machines",
        Permission::AlertRead => "See alerts",
        Permission::AnalyticsRead => "See statistics",
        Permission::AuditRead => "See who did what, in the audit log",
        Permission::SettingsRead => "See settings and the names of stored credentials",
        Permission::SettingsWrite => "Change settings and stored credentials",
        Permission::SiteRead => "See sites",
        Permission::SiteWrite => "Create, change and remove sites",
        Permission::DiscoveryRun => "Scan networks for devices",
        Permission::DiscoveryWrite => "Adopt devices that were found",
        Permission::EventWrite => "Send events",
        Permission::OrganizationRead => "See the organization",
        Permission::OrganizationWrite => "Change what the organization shares",
        Permission::UserRead => "See users",
        Permission::UserWrite => "Nothing more by itself: users are managed by people only",
        Permission::CamerasView => "Watch cameras",
        Permission::FirewallManageRules => "Manage firewall rules",
        Permission::VoipManagePhones => "Manage phones",
    }
}
