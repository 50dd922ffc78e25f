//! The records of a step of a set over several controllers: its audit entry, and an event for each site that it is about.

use std::collections::BTreeSet;

use heddle_changes::Cause;
use heddle_core::UserId;
use heddle_core::event::{EventType, NewEvent};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_store::audit::NewAudit;
use heddle_store::{Tx, audit, events};
use serde_json::{Value, json};

use crate::saga::Saga;

/// The originator of a step.
pub(crate) struct Actor {
    user: Option<UserId>,
    name: String,
    request_id: Option<String>,
    ip: Option<String>,
    via: Option<Value>,
}

impl Actor {
    pub(crate) fn caller(by: &By) -> Self {
        Self::of(&by.caller, Cause::Request(&by.origin))
    }

    pub(crate) fn of(caller: &Caller, cause: Cause<'_>) -> Self {
        let origin = cause.origin();
        Self {
            user: Some(caller.user_id),
            name: caller.username.clone(),
            request_id: origin.map(|origin| origin.request_id.clone()),
            ip: origin.map(|origin| origin.ip.clone()),
            via: caller.credential.via(),
        }
    }

    /// The service itself, for the user that began the last attempt.
    pub(crate) fn service(saga: &Saga) -> Self {
        let attempt = saga.row.attempts.last();
        Self {
            user: attempt.map(|attempt| attempt.started_by),
            name: "heddle".to_owned(),
            request_id: None,
            ip: None,
            via: attempt.and_then(|attempt| attempt.via.clone()),
        }
    }
}

/// Writes the audit entry of a step, and its events where it has a type of them. `saga` is as it is after the step.
pub(crate) async fn record(
    tx: &mut Tx,
    app: &App,
    saga: &Saga,
    (action, event): (&'static str, Option<EventType>),
    actor: &Actor,
) -> Result<(), Error> {
    let plan_hash = saga.plan_hash();
    let mut detail = json!({
        "state": saga.row.state,
        "step": saga.row.step,
        "plan_hash": plan_hash,
        "controller_ids": saga.parts.iter().map(|part| part.of.controller_id).collect::<Vec<_>>(),
        "change_ids": saga.parts.iter().map(|part| part.row.id).collect::<Vec<_>>(),
    });
    for (name, value) in [("message", &saga.row.message), ("reason", &saga.row.reason)] {
        if let Some(value) = value {
            detail[name] = json!(value);
        }
    }
    if let Some(via) = &actor.via {
        detail["via"] = via.clone();
    }
    heddle_core::redact::sanitize(&mut detail);
    let entry = NewAudit {
        org_id: saga.row.org_id,
        actor_id: actor.user,
        actor_name: actor.name.clone(),
        action: action.to_owned(),
        target_type: "change_set".to_owned(),
        target_id: Some(saga.row.id.0),
        detail,
        request_id: actor.request_id.clone(),
        ip: actor.ip.clone(),
    };
    audit::append(tx, &entry, &app.clock, &app.audit_key).await?;
    let Some(event_type) = event else { return Ok(()) };
    // A receiver that is limited to some sites learns of the set at those, and nothing of the others.
    let sites: BTreeSet<_> = saga.parts.iter().map(|part| part.row.site_id).collect();
    for site_id in sites {
        let event = NewEvent {
            event_type,
            org_id: saga.row.org_id,
            site_id: Some(site_id),
            controller_id: None,
            device_id: None,
            causation_id: None,
            run_id: None,
            payload: json!({
                "set_id": saga.row.id,
                "site_id": site_id,
                "state": saga.row.state,
                "user_id": actor.user,
                "plan_hash": plan_hash,
            }),
        };
        events::append(tx, &event, &app.clock).await?;
    }
    Ok(())
}
