//! Permissions and events of controllers.

use heddle_core::declared::SubscriptionAccess;

heddle_core::permissions! { pub PERMISSIONS {
    CONTROLLER_READ = "controller:read", Viewer, "See controllers and what they are set to";
    CONTROLLER_WRITE = "controller:write", SiteAdmin, "Stage and apply changes of controllers' systems";
} }

heddle_core::events! { pub EVENTS {
    CONTROLLER_STATUS_CHANGED = "controller.status.changed", "controller", High,
        { "controller_id": "uuid", "site_id": "uuid", "new_status": "string", "message": "string?" };
    CONTROLLER_RELEASE_CHANGED = "controller.release.changed", "controller", High,
        { "controller_id": "uuid", "site_id": "uuid", "version": "string", "release_state": "string" };
    CONTROLLER_SYNCED = "controller.sync.finished", "controller", Low,
        { "controller_id": "uuid", "site_id": "uuid", "devices_seen": "integer", "devices_changed": "integer", "duration_ms": "integer" };
} }

pub(super) const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] =
    &[("controller", SubscriptionAccess::Permission(CONTROLLER_READ))];
