//! Permissions and events of drift.

heddle_core::permissions! { pub PERMISSIONS {
    DRIFT_WRITE = "drift:write", Operator, "Adopt what others changed at devices";
} }

heddle_core::events! { pub EVENTS {
    DRIFT_FOUND = "controller.drift.found", "controller", High,
        { "drift_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "kind": "string", "key": "string", "object_label": "string", "device_key": "string?", "change": "string", "label": "string", "fields": "strings", "before": "object", "after": "object" };
    DRIFT_CHANGED = "controller.drift.changed", "controller", Normal,
        { "drift_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "kind": "string", "key": "string", "object_label": "string", "device_key": "string?", "change": "string", "label": "string", "fields": "strings", "before": "object", "after": "object" };
    DRIFT_CLOSED = "controller.drift.closed", "controller", Normal,
        { "drift_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "kind": "string", "key": "string", "object_label": "string", "device_key": "string?", "status": "string", "label": "string", "user_id": "uuid?" };
    DRIFT_COUNTED = "controller.drift.counted", "controller", High,
        { "controller_id": "uuid", "site_id": "uuid", "kind": "string", "found": "integer" };
} }
