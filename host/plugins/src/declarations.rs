//! Permissions and events of plugins themselves; those that a plugin brings are in its manifest.

use heddle_core::declared::SubscriptionAccess;

heddle_core::permissions! { pub PERMISSIONS {
    PLUGIN_READ = "plugin:read", Viewer, "See plugins and whether they are switched on";
    PLUGIN_MANAGE = "plugin:manage", OrgAdmin, "Switch plugins on, give them settings and secrets, and rate them";
} }

heddle_core::events! { pub(crate) EVENTS {
    PLUGIN_STATE_CHANGED = "plugin.state_changed", "plugin", High,
        { "plugin": "string", "version": "string", "state": "string", "previous_state": "string?", "reason": "string?" };
    PLUGIN_SWITCHED = "plugin.switched", "plugin", Normal,
        { "plugin": "string", "new_status": "string" };
} }

/// Events of plugins, also those that plugins declare.
pub(crate) const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] =
    &[("plugin", SubscriptionAccess::Permission(PLUGIN_READ))];
