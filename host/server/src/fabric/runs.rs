//! Runs as clients see them: parameters for their author, outputs for who may have asked for them.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::operation::{ConnectionKind, RunKind, RunState, StepErrorCode, StepRecord};
use heddle_core::page::{Cursor, CursorPage, Walked};
use heddle_core::{ConnectionId, EventId, OrgId, RunId, Timestamp, UserId};
use heddle_store::connections;
use heddle_store::runs::{self, RunFilter, RunRow};
use heddle_store::{Scope, SiteScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::steps::{hidden, open_run};
use crate::app::{App, SharedApp};
use crate::auth::Caller;
use crate::http::access::Access;
use crate::http::conditional::One;
use crate::http::error::Error;
use crate::http::extract::{At, PER_PAGE_DEFAULT, PER_PAGE_MAX, Params, walk_request};
use crate::http::routes::{Routes, doc};
use crate::tenancy::organization_scope;

/// One firing.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ConnectionRun")]
pub(crate) struct RunView {
    pub(crate) id: RunId,
    organization_id: OrgId,
    kind: RunKind,
    /// The Connection, rule or schedule; null for an action.
    connection_id: Option<ConnectionId>,
    event_id: Option<EventId>,
    event_type: Option<String>,
    /// When the clock was to start it.
    due_at: Option<Timestamp>,
    /// Whose rights it has.
    author_id: UserId,
    timestamp: Timestamp,
    /// Null until it has ended. A step that failed where the chain goes on does not make it false.
    success: Option<bool>,
    state: RunState,
    /// Why it did not fire, or failed as a whole.
    reason: Option<String>,
    steps: Vec<RunStepView>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunStep")]
struct RunStepView {
    operation_id: String,
    /// As they were sent; `{"hidden": true}` for who did not write them.
    params: Map<String, Value>,
    /// `{"hidden": true}` for who could not have asked for it.
    #[schemars(with = "Option<Value>")]
    output: Value,
    success: bool,
    state: StepState,
    error_code: Option<StepErrorCode>,
    message: Option<String>,
    duration_ms: i64,
}

heddle_core::words! {
    /// How a step ended.
    pub enum StepState {
        Success = "success",
        Failed = "failed",
        /// It was not carried out: a dry run only shows what it would send.
        Skipped = "skipped",
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 200; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The `next_cursor` of the rows before; not together with `page`.
    cursor: Option<String>,
    /// Only runs that ended so, or stand so.
    outcome: Option<RunState>,
}

pub(super) fn routes() -> Routes {
    let list_doc = || {
        doc("Its runs, the newest first, with those that did not fire")
            .query::<ListQuery>()
            .answers::<CursorPage<RunView>>(200)
    };
    Routes::default()
        .get(
            "/fabric/connections/{connection_id}/runs",
            Access::Authenticated,
            |state, caller, id, query| list_of(ConnectionKind::Connection, state, caller, id, query),
            list_doc(),
        )
        .get(
            "/automation/rules/{rule_id}/runs",
            Access::Authenticated,
            |state, caller, id, query| list_of(ConnectionKind::Rule, state, caller, id, query),
            list_doc(),
        )
        .get(
            "/fabric/runs/{run_id}",
            Access::Authenticated,
            get,
            doc("One run").answers::<RunView>(200).tagged(),
        )
}

async fn get(State(app): State<SharedApp>, caller: Caller, At(id): At<RunId>) -> Result<One<RunView>, Error> {
    let mut tx = app.db.read().await?;
    let row = runs::find(&mut tx, &organization_scope(&caller), id).await?.ok_or(Error::NotFound("run"))?;
    view(&app, &caller, row).map(One)
}

/// The runs of one Connection, rule or schedule.
pub(crate) async fn list_of(
    kind: ConnectionKind,
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ConnectionId>,
    Params(query): Params<ListQuery>,
) -> Result<Answer<CursorPage<RunView>>, Error> {
    let scope = organization_scope(&caller);
    let mut tx = app.db.read().await?;
    connections::find(&mut tx, &scope, kind, id).await?.ok_or(Error::NotFound(kind.as_str()))?;
    drop(tx);
    let filter = RunFilter { connection_id: Some(id), kind: None, state: query.outcome };
    list(&app, &caller, &scope, &filter, &query).await
}

/// The actions of an organization.
pub(crate) async fn list_actions(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<CursorPage<RunView>>, Error> {
    let scope = Scope::organization(caller.org_id);
    let filter = RunFilter { connection_id: None, kind: Some(RunKind::Action), state: query.outcome };
    list(&app, &caller, &scope, &filter, &query).await
}

async fn list(
    app: &App,
    caller: &Caller,
    scope: &Scope,
    filter: &RunFilter,
    query: &ListQuery,
) -> Result<Answer<CursorPage<RunView>>, Error> {
    let limit = query.limit.unwrap_or(PER_PAGE_DEFAULT);
    if !(1..=PER_PAGE_MAX).contains(&limit) {
        return Err(Error::field("limit", format!("limit must be from 1 to {PER_PAGE_MAX}")));
    }
    let request = walk_request(query.page, Some(limit), query.cursor.as_deref(), PER_PAGE_MAX)?;
    let mut tx = app.db.read().await?;
    let walked = runs::walk(&mut tx, scope, filter, request).await?;
    drop(tx);
    let cursors: Vec<Cursor> = walked.items.iter().map(cursor_of).collect();
    let views: Result<Vec<RunView>, Error> =
        walked.items.into_iter().map(|row| view(app, caller, row)).collect();
    let shown = Walked {
        items: views?.into_iter().zip(cursors).collect(),
        total: walked.total,
        total_is_capped: walked.total_is_capped,
        has_more: walked.has_more,
    };
    let page = request.of(shown, |(_, cursor): &(RunView, Cursor)| *cursor);
    Ok(Answer(CursorPage {
        items: page.items.into_iter().map(|(view, _)| view).collect(),
        total: page.total,
        total_is_capped: page.total_is_capped,
        page: page.page,
        per_page: page.per_page,
        pages: page.pages,
        next_cursor: page.next_cursor,
    }))
}

fn cursor_of(row: &RunRow) -> Cursor {
    Cursor { occurred_at: row.created_at, seq: row.event_seq, id: row.id.0 }
}

/// A run for this viewer.
pub(crate) fn view(app: &App, caller: &Caller, row: RunRow) -> Result<RunView, Error> {
    let is_author = caller.is_author(row.author_id);
    // What is tried by hand is skipped as a whole in a dry run only.
    let is_dry = row.kind == RunKind::Test && row.state == RunState::Skipped;
    let params = match &row.secret {
        Some(sealed) if is_author => open_run(&app.keys, row.id, sealed)?,
        _ => Vec::new(),
    };
    let mut params = params.into_iter();
    let steps = row.steps.into_iter().map(|step| {
        let params = params.next().unwrap_or_else(|| if is_author { Map::new() } else { hidden() });
        let is_shown = is_author || may_ask(app, caller, &step);
        RunStepView {
            operation_id: step.operation_id,
            params,
            output: if is_shown { step.output.unwrap_or_default() } else { json!(hidden()) },
            success: step.success && !is_dry,
            state: match step.error_code {
                Some(_) => StepState::Failed,
                None if is_dry => StepState::Skipped,
                None => StepState::Success,
            },
            error_code: step.error_code,
            // It can quote what is hidden.
            message: step.message.filter(|_| is_shown),
            duration_ms: step.duration_ms,
        }
    });
    Ok(RunView {
        id: row.id,
        organization_id: row.org_id,
        kind: row.kind,
        connection_id: row.connection_id,
        event_id: row.event_id,
        event_type: row.event_type,
        due_at: row.due_at,
        author_id: row.author_id,
        timestamp: row.created_at,
        success: match row.state {
            RunState::Success => Some(true),
            RunState::Failed | RunState::Skipped | RunState::Interrupted => Some(false),
            RunState::Queued | RunState::Running => None,
        },
        state: row.state,
        reason: row.reason,
        steps: steps.collect(),
        started_at: row.started_at,
        ended_at: row.ended_at,
    })
}

/// Whether the viewer could have asked for what the step gave: run history is for all members, data is not.
fn may_ask(app: &App, caller: &Caller, step: &StepRecord) -> bool {
    let operation = app.operations.find(&step.operation_id);
    let permission = operation.map(|operation| operation.declaration().permission);
    let may = permission.is_some_and(|needed| needed.is_none_or(|permission| caller.holds(permission)));
    may && caller.sites == SiteScope::All
}
