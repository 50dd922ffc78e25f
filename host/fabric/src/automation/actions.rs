//! Actions: one operation that is executed at once with the caller's rights, kept as a run.

use axum::http::HeaderMap;
use axum::response::Response;
use chrono::TimeDelta;
use heddle_core::Role;
use heddle_core::operation::RunKind;
use heddle_core::page::CursorPage;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::{Caller, Credential};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::creation::{Creation, IDEMPOTENCY_KEY, KEEP_HOURS};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Json;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_store::runs;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::Operations;
use crate::declarations::SHOWS_RUNS;
use crate::in_flight::take_for_person;
use crate::provided::{OfferedIn, not_offered};
use crate::run::{Work, begin, carry_out_apart};
use crate::runs::{ListQuery, RunView, list_actions, view};
use crate::steps::{self, OPERATION_ID_CHARS_MAX, Step};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewAction")]
struct Body {
    #[schemars(length(min = 1, max = OPERATION_ID_CHARS_MAX))]
    operation_id: String,
    /// What the operation's schema allows.
    #[serde(default)]
    params: Map<String, Value>,
}

pub(super) fn routes() -> Routes {
    Routes::default()
        .post(
            "/actions",
            Access::ByFeature,
            act,
            doc("Have one operation carried out at once, with the caller's own rights; a write is staged")
                .named("run_action")
                .body::<Body>()
                .answers::<RunView>(201)
                .tagged(),
        )
        .get(
            "/actions",
            Access::Authenticated(SHOWS_RUNS),
            list_actions,
            doc("Actions of the own organization, the newest first")
                .query::<ListQuery>()
                .answers::<CursorPage<RunView>>(200),
        )
}

async fn act(
    by: By,
    creation: Creation,
    headers: HeaderMap,
    Json(body): Json<Body>,
) -> Result<Response, Error> {
    let By { app, caller, origin } = &by;
    if let Some(message) = steps::operation_id_fault(&body.operation_id) {
        return Err(Error::field("operation_id", message));
    }
    let operations = Operations::of(app);
    let operation = operations.find(&body.operation_id).ok_or_else(|| {
        let message = format!(
            "operation '{}' does not exist; GET /fabric/catalog lists those that do",
            body.operation_id
        );
        Error::field("operation_id", message)
    })?;
    let declaration = operation.declaration();
    match declaration.permission {
        Some(permission) => caller.require(permission)?,
        // The role that may have it in a Connection.
        None => caller.require_unscoped_role(Role::OrgAdmin)?,
    }
    if !OfferedIn::in_organization(app, caller.org_id).await?.has(&operation) {
        return Err(not_offered(&body.operation_id, &declaration.owner));
    }
    operations.check_params(&body.operation_id, &Value::Object(body.params.clone())).await?;
    let step = Step {
        operation_id: body.operation_id,
        params: body.params,
        continue_on_error: false,
        when: None,
        for_each: None,
        on_error: false,
    };
    let faults = steps::faults(app, std::slice::from_ref(&step)).await?;
    if !faults.is_empty() {
        return Err(Error::Validation(faults));
    }
    let term = app.membership.term()?;
    let mut run = begin(app, &term, RunKind::Action, caller.org_id, caller);
    run.run_key = key(caller, &headers);
    let in_flight = take_for_person(app, run.org_id, run.id)?;
    let mut tx = app.db.write().await?;
    if let Some(key) = &run.run_key {
        runs::forget_key(&mut tx, key, run.created_at - TimeDelta::hours(KEEP_HOURS)).await?;
    }
    if runs::insert_all(&mut tx, std::slice::from_ref(&run)).await? == 0 {
        // An action that was begun is not executed again, also where its answer was lost.
        return Err(Error::Conflict {
            kind: "idempotency_conflict",
            message:
                "an action with this Idempotency-Key was begun already; GET /actions shows how it stands"
                    .to_owned(),
        });
    }
    let target = ("run", run.id.0);
    let detail = json!({ "operation_id": step.operation_id });
    let entry = NewEntry { org: run.org_id, actor: caller.actor(), action: "action.begun", target, detail };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    // The action stays in its organization, as its history does, also when the caller sees all organizations.
    let author = Caller { credential: Credential::Action(run.id), ..caller.clone() };
    let work = Work { author, steps: vec![step], done: Vec::new(), event: None, connection: None };
    let ended = carry_out_apart(app, run, work, (term, in_flight)).await?;
    let view = view(app, caller, ended)?;
    let tx = app.db.write().await?;
    creation.finish(tx, app, &format!("/fabric/runs/{}", view.id), &view).await
}

/// Returns the idempotency key: the same request of the same user is the same action.
fn key(caller: &Caller, headers: &HeaderMap) -> Option<String> {
    let given = headers.get(IDEMPOTENCY_KEY)?;
    let mut digest = Sha256::new();
    digest.update(caller.user_id.0.as_bytes());
    digest.update(given.as_bytes());
    Some(format!("action:{}", hex::encode(digest.finalize())))
}
