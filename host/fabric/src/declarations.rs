//! Permissions, events and settings of the Fabric.

use heddle_core::secret::Secret;
use heddle_kernel::config::{ConfigError, Environment, is_weak};
use heddle_kernel::http::access::Unscoped;

/// Why no scope opens Connections, rules and schedules.
pub(crate) const ACTS_AS_AUTHOR: Unscoped =
    Unscoped("it acts with all rights of its author, also beyond the scopes of a key");

/// Why no scope opens runs.
pub(crate) const SHOWS_RUNS: Unscoped = Unscoped("a run shows what was done with all rights of its author");

heddle_core::permissions! { pub(crate) PERMISSIONS {
    EVENT_WRITE = "event:write", SiteAdmin, "Send events";
} }

heddle_core::events! { pub(crate) EVENTS {
    INGEST_EXTERNAL = "ingest.external", "external", Normal, { "name": "string", "data": "object" };
    RUN_FAILED = "automation.run.failed", "automation", High,
        { "run_id": "uuid", "kind": "string", "connection_id": "uuid?", "name": "string?", "state": "string", "reason": "string", "step": "integer?", "operation_id": "string?", "error_code": "string?", "trigger_event_type": "string?" };
    CONNECTION_RECOVERED = "automation.connection.recovered", "automation", Normal,
        { "connection_id": "uuid", "kind": "string", "name": "string" };
    CONNECTION_BROKEN = "automation.connection.broken", "automation", High,
        { "connection_id": "uuid", "kind": "string", "name": "string", "reason": "string", "run_id": "uuid?" };
} }

heddle_kernel::settings! {
    /// What webhooks of steps are signed with.
    pub struct FabricSettings checked by check {
        /// Signs the requests of `fabric.webhook`; they are not signed when empty.
        webhook_signing_secret: Option<Secret> = "FABRIC_WEBHOOK_SIGNING_SECRET", "";
    }
}

fn check(settings: &FabricSettings, environment: Environment, faults: &mut Vec<ConfigError>) {
    if environment != Environment::Development
        && let Some(secret) = &settings.webhook_signing_secret
        && is_weak(secret.expose(), 16)
    {
        faults.push(ConfigError::Value {
            name: "FABRIC_WEBHOOK_SIGNING_SECRET",
            value: "(hidden)".to_owned(),
            accepted: "at least 16 random bytes, for example from 'openssl rand -hex 24'".to_owned(),
        });
    }
}
