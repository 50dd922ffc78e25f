//! The event and the setting of channels.

heddle_core::events! { pub(crate) EVENTS {
    CONTROLLER_PUSH_CHANGED = "controller.push.changed", "controller", High,
        { "controller_id": "uuid", "site_id": "uuid", "push_state": "string", "since": "string?", "reason": "string?" };
} }

heddle_kernel::settings! {
    /// Whether controllers tell that something changed.
    pub(crate) struct PushSettings {
        /// Opens the channels on which controllers tell that something changed, where their adapters have any.
        enabled: bool = "PUSH_ENABLED", "true";
    }
}
