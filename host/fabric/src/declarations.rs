//! Permissions and events of the Fabric.

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
    CONNECTION_BROKEN = "automation.connection.broken", "automation", High,
        { "connection_id": "uuid", "kind": "string", "name": "string", "reason": "string", "run_id": "uuid?" };
} }
