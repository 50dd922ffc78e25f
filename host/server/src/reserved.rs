//! What the interface gives to modules that this version does not have: roles hold these permissions, API keys can name
//! them, and events of these prefixes can be subscribed to.

use heddle_core::declared::SubscriptionAccess;
use heddle_inventory::devices::declarations::DEVICE_READ;
use heddle_kernel::feature::Feature;
use heddle_kernel::feature::Names;

heddle_core::permissions! { PERMISSIONS {
    ALERT_READ = "alert:read", Viewer, "See alerts";
    ANALYTICS_READ = "analytics:read", Viewer, "See statistics";
    DISCOVERY_RUN = "discovery:run", Operator, "Scan networks for devices";
    DISCOVERY_WRITE = "discovery:write", SiteAdmin, "Adopt devices that were found";
    VPN_READ = "vpn:read", Viewer, "See VPN tunnels";
    FIREWALL_MANAGE_RULES = "firewall.manage_rules", Operator, "Manage firewall rules";
    CAMERAS_VIEW = "cameras.view", Viewer, "Watch cameras";
    VOIP_MANAGE_PHONES = "voip.manage_phones", Operator, "Manage phones";
} }

const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] = &[
    ("discovery", SubscriptionAccess::Permission(DEVICE_READ)),
    ("pbx", SubscriptionAccess::Permission(DEVICE_READ)),
    ("camera", SubscriptionAccess::Permission(DEVICE_READ)),
    ("nvr", SubscriptionAccess::Permission(DEVICE_READ)),
    ("vpn", SubscriptionAccess::Permission(VPN_READ)),
    ("alert", SubscriptionAccess::Permission(ALERT_READ)),
    ("sla", SubscriptionAccess::Permission(ANALYTICS_READ)),
];

/// Words of modules to come.
pub(crate) struct Reserved;

impl Feature for Reserved {
    fn name(&self) -> &'static str {
        "reserved"
    }

    fn declares(&self) -> &'static Names {
        const { &Names { permissions: PERMISSIONS, subscriptions: SUBSCRIPTIONS, ..Names::NONE } }
    }
}
