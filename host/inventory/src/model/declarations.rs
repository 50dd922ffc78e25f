//! Events of objects in the words of the model. Each kind says what its events begin with.

use heddle_core::event::EventType;

heddle_core::events! { pub EVENTS {
    OBJECT_CHANGED = "device.object_changed", "device", Normal,
        { "object_id": "uuid", "kind": "string", "key": "string", "label": "string", "controller_id": "uuid", "site_id": "uuid", "device_key": "string?", "change": "string", "fields": "strings", "before": "object?", "after": "object?" };
    CONTROLLER_OBJECT_CHANGED = "controller.object_changed", "controller", Normal,
        { "object_id": "uuid", "kind": "string", "key": "string", "label": "string", "controller_id": "uuid", "site_id": "uuid", "device_key": "string?", "change": "string", "fields": "strings", "before": "object?", "after": "object?" };
    VPN_OBJECT_CHANGED = "vpn.object_changed", "vpn", Normal,
        { "object_id": "uuid", "kind": "string", "key": "string", "label": "string", "controller_id": "uuid", "site_id": "uuid", "device_key": "string?", "change": "string", "fields": "strings", "before": "object?", "after": "object?" };
    CAMERA_OBJECT_CHANGED = "camera.object_changed", "camera", Normal,
        { "object_id": "uuid", "kind": "string", "key": "string", "label": "string", "controller_id": "uuid", "site_id": "uuid", "device_key": "string?", "change": "string", "fields": "strings", "before": "object?", "after": "object?" };
    PBX_OBJECT_CHANGED = "pbx.object_changed", "pbx", Normal,
        { "object_id": "uuid", "kind": "string", "key": "string", "label": "string", "controller_id": "uuid", "site_id": "uuid", "device_key": "string?", "change": "string", "fields": "strings", "before": "object?", "after": "object?" };
    CONTROLLER_INVENTORY_CHANGED = "controller.inventory_changed", "controller", Normal,
        { "controller_id": "uuid", "site_id": "uuid", "kind": "string", "created": "integer", "changed": "integer", "removed": "integer" };
} }

/// The event of one object, by what the events of its kind begin with.
pub fn object_changed(prefix: &str) -> Option<EventType> {
    EVENTS.iter().copied().find(|event| event.as_str().strip_suffix(".object_changed") == Some(prefix))
}

#[cfg(test)]
mod tests {
    use heddle_marketplace::model;

    use super::*;

    #[test]
    fn objects_of_every_kind_have_an_event() {
        for kind in &model::KINDS {
            assert!(object_changed(kind.event_prefix()).is_some(), "{}", kind.id);
        }
    }
}
