//! Permissions and events of devices.

use heddle_core::declared::SubscriptionAccess;

heddle_core::permissions! { pub PERMISSIONS {
    DEVICE_READ = "device:read", Guest, "See devices and their state";
    DEVICE_WRITE = "device:write", Operator, "Change devices";
} }

heddle_core::events! { pub EVENTS {
    DEVICE_STATE_CHANGED = "device.state_changed", "device", Normal,
        { "device_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "changed": "strings" };
    DEVICE_STATUS_CHANGED = "device.status.changed", "device", Normal,
        { "device_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "new_status": "string" };
    DEVICE_OFFLINE = "device.offline", "device", High,
        { "device_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "name": "string" };
} }

pub(super) const SUBSCRIPTIONS: &[(&str, SubscriptionAccess)] =
    &[("device", SubscriptionAccess::Permission(DEVICE_READ))];
