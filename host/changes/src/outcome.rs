//! The records of a step in a change's life: its event and its audit entry, in one transaction.

use heddle_core::UserId;
use heddle_core::change::OutcomeState;
use heddle_core::event::{EventType, NewEvent};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_store::audit::NewAudit;
use heddle_store::changes::ChangeRow;
use heddle_store::{Tx, audit, changes, events};
use serde_json::{Value, json};

use crate::declarations::{CHANGE_EXPIRED, CHANGE_FAILED, CHANGE_REVERTED};

/// The originator of a step.
#[derive(Debug, Clone)]
pub(super) struct Actor {
    pub(super) user: Option<UserId>,
    pub(super) name: String,
    pub(super) request_id: Option<String>,
    pub(super) ip: Option<String>,
    /// A key or an app that acted for the user.
    pub(super) via: Option<Value>,
}

impl Actor {
    /// The service itself: a timer, a restart.
    pub(super) fn service() -> Self {
        Self { user: None, name: "heddle".to_owned(), request_id: None, ip: None, via: None }
    }

    /// The author of a step that runs on their behalf.
    pub(super) fn author(caller: &Caller) -> Self {
        Self {
            user: Some(caller.user_id),
            name: caller.username.clone(),
            request_id: None,
            ip: None,
            via: caller.credential.via(),
        }
    }

    pub(super) fn caller(caller: &Caller, origin: &Origin) -> Self {
        Self {
            user: Some(caller.user_id),
            name: caller.username.clone(),
            request_id: Some(origin.request_id.clone()),
            ip: Some(origin.ip.clone()),
            via: caller.credential.via(),
        }
    }
}

/// One step to record.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) action: &'static str,
    pub(super) event: Option<EventType>,
    pub(super) actor: Actor,
    pub(super) message: Option<String>,
    pub(super) detail: Value,
}

impl Step {
    pub(super) fn new(action: &'static str, actor: Actor) -> Self {
        Self { action, event: None, actor, message: None, detail: json!({}) }
    }

    pub(super) fn expired() -> Self {
        Self::new("change.expired", Actor::service()).event(CHANGE_EXPIRED)
    }

    pub(super) fn event(mut self, event: EventType) -> Self {
        self.event = Some(event);
        self
    }

    pub(super) fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

/// Writes the step's audit entry and event.
pub(super) async fn record(tx: &mut Tx, app: &App, change: &ChangeRow, step: &Step) -> Result<(), Error> {
    let plan_hash = change.plan.as_ref().map(|plan| plan.hash.clone());
    let mut detail = step.detail.clone();
    detail["feature"] = json!(change.feature);
    detail["operation"] = json!(change.operation);
    detail["controller_id"] = json!(change.controller_id);
    detail["plan_hash"] = json!(plan_hash);
    if let Some(via) = &step.actor.via {
        detail["via"] = via.clone();
    }
    let members = if change.is_set { changes::members(tx, change.id).await? } else { Vec::new() };
    if change.is_set {
        detail["change_ids"] = json!(members.iter().map(|member| member.id).collect::<Vec<_>>());
    }
    if let Some(run) = change.run_id {
        detail["run_id"] = json!(run);
    }
    if let Some(message) = &step.message {
        detail["message"] = json!(message);
    }
    heddle_core::redact::sanitize(&mut detail);
    let entry = NewAudit {
        org_id: change.org_id,
        actor_id: step.actor.user,
        actor_name: step.actor.name.clone(),
        action: step.action.to_owned(),
        target_type: if change.is_set { "change_set" } else { "change" }.to_owned(),
        target_id: Some(change.id.0),
        detail,
        request_id: step.actor.request_id.clone(),
        ip: step.actor.ip.clone(),
    };
    audit::append(tx, &entry, &app.clock, &app.audit_key).await?;
    let Some(event_type) = step.event else { return Ok(()) };
    // Each member of a set reports its own end.
    let own = (!change.is_set).then_some(change);
    for change in members.iter().chain(own) {
        // A member can be in effect although its set failed.
        if event_type == CHANGE_FAILED && change.outcome_state == OutcomeState::Applied {
            continue;
        }
        let event = NewEvent {
            event_type,
            org_id: change.org_id,
            site_id: Some(change.site_id),
            controller_id: Some(change.controller_id),
            device_id: None,
            causation_id: None,
            run_id: change.run_id,
            payload: event_payload(event_type, change, step, plan_hash.as_deref()),
        };
        events::append(tx, &event, &app.clock).await?;
    }
    Ok(())
}

fn event_payload(event_type: EventType, change: &ChangeRow, step: &Step, plan_hash: Option<&str>) -> Value {
    let mut payload = json!({
        "change_id": change.id,
        "controller_id": change.controller_id,
        "site_id": change.site_id,
        "site_ref": change.site_ref,
        "feature": change.feature,
        "operation": change.operation,
        "user_id": step.actor.user,
        "plan_hash": plan_hash,
    });
    let message = step.message.as_deref().unwrap_or_default();
    if event_type == CHANGE_FAILED {
        payload["state"] = json!(change.outcome_state);
    }
    if [CHANGE_FAILED, CHANGE_REVERTED].contains(&event_type) {
        payload["message"] = json!(message);
    }
    heddle_core::redact::sanitize(&mut payload);
    payload
}
