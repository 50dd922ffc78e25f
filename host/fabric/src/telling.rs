//! Reports runs that failed: an event for each, and a notice once an hour for each Connection.

use heddle_core::event::NewEvent;
use heddle_core::notification::Severity;
use heddle_core::operation::{RunKind, RunState, StepRecord};
use heddle_delivery::notifications::message::Message;
use heddle_delivery::notifications::notices;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::runs::RunRow;
use heddle_store::{Scope, Tx, connections, events};
use serde_json::json;

use crate::declarations::RUN_FAILED;

/// Why a run failed: its first step that ended it, in words.
pub(super) fn reason_of(steps: &[StepRecord]) -> Option<String> {
    let (at, step) = steps.iter().enumerate().rfind(|(_, step)| !step.success)?;
    let code = step.error_code.map_or(String::new(), |code| format!("{code}: "));
    let message = step.message.as_deref().unwrap_or("no message");
    Some(format!("step {at} ({}) failed: {code}{message}", step.operation_id))
}

/// Writes the event and the notice of a run that failed or was interrupted. Only for runs that an event, a schedule or
/// a rerun started: no user waits for them at the screen.
pub(super) async fn of_failure(
    tx: &mut Tx,
    app: &App,
    run: &RunRow,
    (state, reason, steps): (RunState, &str, &[StepRecord]),
) -> Result<(), Error> {
    if !matches!(state, RunState::Failed | RunState::Interrupted)
        || matches!(run.kind, RunKind::Test | RunKind::Action)
    {
        return Ok(());
    }
    let connection = match run.connection_id {
        Some(id) => connections::find_any(tx, &Scope::organization(run.org_id), id).await?,
        None => None,
    };
    let name = connection.as_ref().map(|row| row.name.clone());
    let failed = steps.iter().enumerate().rfind(|(_, step)| !step.success);
    let event = NewEvent {
        causation_id: run.event_id,
        run_id: Some(run.id),
        ..NewEvent::of(
            RUN_FAILED,
            run.org_id,
            json!({
                "run_id": run.id,
                "kind": run.kind,
                "connection_id": run.connection_id,
                "name": name,
                "state": state,
                "reason": reason,
                "step": failed.map(|(at, _)| at),
                "operation_id": failed.map(|(_, step)| &step.operation_id),
                "error_code": failed.and_then(|(_, step)| step.error_code),
                "trigger_event_type": run.event_type,
            }),
        )
    };
    events::append(tx, &event, &app.clock).await?;
    let Some(row) = connection else { return Ok(()) };
    let message = Message {
        severity: Severity::Warning,
        source: "fabric",
        subject: format!("A run of {} '{}' failed", row.kind, row.name),
        body: format!("Run {}: {reason}", run.id),
    };
    // One an hour: the events and the list of runs have the rest.
    let hour = app.clock.now().timestamp() / 3600;
    let origin = format!("run_failed:{}:{hour}", row.id);
    notices::tell_administrators(tx, app, run.org_id, &message, Some(origin)).await?;
    Ok(())
}
