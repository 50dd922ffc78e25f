//! Events of the VLANs of a site. They begin with `controller`, which the stream lets pass.

heddle_core::events! { pub EVENTS {
    VLAN_DRIFTED = "controller.vlan.drifted", "controller", Normal,
        { "site_id": "uuid", "controller_id": "uuid", "site_ref": "string?", "vlan_id": "integer", "class": "string", "place": "string?", "expected": "string?", "found": "string?" };
    VLAN_SETTLED = "controller.vlan.settled", "controller", Normal,
        { "site_id": "uuid", "controller_id": "uuid", "site_ref": "string?", "vlan_id": "integer", "class": "string", "place": "string?", "expected": "string?", "found": "string?" };
    VLAN_DRIFT_CHANGED = "controller.vlan.drift_changed", "controller", Normal,
        { "site_id": "uuid", "drifted": "integer", "settled": "integer" };
    VLAN_INTENT_CHANGED = "controller.vlan.intent_changed", "controller", Normal,
        { "site_id": "uuid", "controller_id": "uuid", "added": "integer", "changed": "integer", "removed": "integer" };
} }
