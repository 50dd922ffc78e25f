//! Permissions that changes need, and events of changes.

/// Most characters of the notes on a change.
pub const NOTES_CHARS_MAX: usize = 2000;

heddle_core::permissions! { pub PERMISSIONS {
    NETWORK_WRITE = "network:write", Operator, "Stage and apply changes of networks";
    FIREWALL_WRITE = "firewall:write", Operator, "Stage and apply changes of firewalls";
    VPN_WRITE = "vpn:write", Operator, "Stage and apply changes of VPN tunnels";
    HYPERVISOR_WRITE = "hypervisor:write", SiteAdmin, "Stage and apply changes of virtual machines";
} }

heddle_core::events! { pub EVENTS {
    CHANGE_STAGED = "controller.change.staged", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid", "plan_hash": "string?" };
    CHANGE_APPLIED = "controller.change.applied", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
    CHANGE_FAILED = "controller.change.failed", "change", High,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?", "state": "string", "message": "string" };
    CHANGE_DISCARDED = "controller.change.discarded", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
    CHANGE_REVERTED = "controller.change.reverted", "change", High,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?", "message": "string" };
    CHANGE_EXPIRED = "controller.change.expired", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
} }
