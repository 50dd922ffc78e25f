//! Permissions that changes need, their events, and their settings.

use heddle_kernel::config::{ConfigError, Environment};

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
    CHANGE_CANCEL_REQUESTED = "controller.change.cancel_requested", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
    CHANGE_EXPIRED = "controller.change.expired", "change", Normal,
        { "change_id": "uuid", "controller_id": "uuid", "site_id": "uuid", "feature": "string", "operation": "string", "user_id": "uuid?", "plan_hash": "string?" };
} }

heddle_kernel::settings! {
    /// How long the parts of a change may take.
    pub struct ChangesSettings checked by check {
        /// Seconds within which a change must be readable at the device when no confirm window is asked for.
        apply_hold_secs: u32 = "APPLY_HOLD_SECS", "30", from 1 to 600;
        /// Milliseconds that a device gets to carry a change out before it is read back over a new connection; three times as long where the path to it is at risk.
        apply_settle_ms: u32 = "APPLY_SETTLE_MS", "3000";
        /// Hours until a pending change expires, where the organization does not say.
        change_ttl_hours: u32 = "CHANGE_TTL_HOURS", "168", from 1 to 8760;
    }
}

fn check(settings: &ChangesSettings, _: Environment, faults: &mut Vec<ConfigError>) {
    if settings.apply_settle_ms.saturating_mul(3) >= settings.apply_hold_secs.saturating_mul(1000) {
        faults.push(ConfigError::Value {
            name: "APPLY_SETTLE_MS",
            value: settings.apply_settle_ms.to_string(),
            accepted: "less than a third of APPLY_HOLD_SECS, so that the device can be read in time"
                .to_owned(),
        });
    }
}
