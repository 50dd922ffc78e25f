//! Runs as clients see them: parameters for their author, outputs for viewers who may have asked for them.

use axum::Json as Answer;
use axum::extract::State;
use axum::response::Response;
use heddle_core::operation::{ConnectionKind, ConnectionState, RunKind, RunState, StepErrorCode, StepRecord};
use heddle_core::page::{Cursor, CursorPage, Walked};
use heddle_core::{ConnectionId, EventId, OrgId, Role, RunId, Timestamp, UserId};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{One, Tag, Tagged, UNEDITED};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, PER_PAGE_DEFAULT, PER_PAGE_MAX, Params, walk_request};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_store::runs::{self, RunFilter, RunRow};
use heddle_store::{Scope, SiteScope, Sort, Tx, connections};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::negotiator::WAITING_MAX;
use super::operations::Operations;
use super::state::FabricState;
use super::steps::{self, hidden, open_run};
use super::wait;
use crate::declarations::SHOWS_RUNS;

/// One firing.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ConnectionRun")]
pub(crate) struct RunView {
    pub(crate) id: RunId,
    organization_id: OrgId,
    kind: RunKind,
    /// The Connection, rule or schedule; null for an action and for what calls a plugin.
    connection_id: Option<ConnectionId>,
    event_id: Option<EventId>,
    event_type: Option<String>,
    /// When it was scheduled to start.
    due_at: Option<Timestamp>,
    /// The user whose rights it has.
    author_id: UserId,
    timestamp: Timestamp,
    /// Null until it has ended. A step that failed where the chain goes on does not make it false.
    success: Option<bool>,
    state: RunState,
    /// Why it did not fire, failed, or what it waits for. Null for a viewer who may not read what it quotes.
    reason: Option<String>,
    /// What references to the trigger read, without secrets; null for a viewer who may not read the event.
    #[schemars(with = "Option<Map<String, Value>>")]
    payload: Option<Value>,
    /// The run that this one repeats.
    rerun_of: Option<RunId>,
    /// It waits until this time at most.
    resume_at: Option<Timestamp>,
    steps: Vec<RunStepView>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunStep")]
struct RunStepView {
    operation_id: String,
    /// As they were sent; `{"hidden": true}` for viewers who did not write them.
    params: Map<String, Value>,
    /// `{"hidden": true}` for viewers who could not have asked for it.
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
        /// It was not carried out: its own conditions did not hold (`message` says which), or a dry run only shows what it
        /// would send.
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
    /// Only runs with this outcome, or in this state.
    outcome: Option<RunState>,
    /// Order by time, the newest first by default. A cursor keeps the order that it came with.
    sort: Option<Sort<RunRow>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AllQuery {
    /// From 1.
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 200; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The `next_cursor` of the rows before; not together with `page`.
    cursor: Option<String>,
    /// Only runs with this outcome, or in this state.
    outcome: Option<RunState>,
    /// Only runs of this Connection, rule or schedule.
    connection_id: Option<ConnectionId>,
    /// Only runs that were started in this way.
    kind: Option<RunKind>,
    /// Only runs that an event of this type started.
    event_type: Option<String>,
    /// Only runs that began at this time or later.
    since: Option<Timestamp>,
    /// Only runs that began before this time.
    until: Option<Timestamp>,
    /// Order by time, the newest first by default. A cursor keeps the order that it came with.
    sort: Option<Sort<RunRow>>,
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
            Access::Authenticated(SHOWS_RUNS),
            |state, caller, id, query| list_of(ConnectionKind::Connection, state, caller, id, query),
            list_doc(),
        )
        .get(
            "/automation/rules/{rule_id}/runs",
            Access::Authenticated(SHOWS_RUNS),
            |state, caller, id, query| list_of(ConnectionKind::Rule, state, caller, id, query),
            list_doc(),
        )
        .get(
            "/fabric/runs",
            Access::Authenticated(SHOWS_RUNS),
            list_all,
            doc("Runs of all Connections, rules, schedules, actions and triggers of plugins, the newest first")
                .query::<AllQuery>()
                .answers::<CursorPage<RunView>>(200),
        )
        .post(
            "/fabric/runs/{run_id}/rerun",
            Access::Role(Role::OrgAdmin, SHOWS_RUNS),
            rerun,
            doc("Run the steps again with what started this run; they have their author's rights")
                .answers::<RunView>(201)
                .tagged(),
        )
        .get(
            "/fabric/runs/{run_id}",
            Access::Authenticated(SHOWS_RUNS),
            get,
            doc("One run").answers::<RunView>(200).tagged(),
        )
}

async fn get(State(app): State<SharedApp>, caller: Caller, At(id): At<RunId>) -> Result<One<RunView>, Error> {
    let mut tx = app.db.single().await?;
    let row = runs::find(&mut tx, &caller.organization_scope(), id).await?.ok_or(Error::NotFound("run"))?;
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
    let scope = caller.organization_scope();
    let mut tx = app.db.read().await?;
    connections::find(&mut tx, &scope, kind, id).await?.ok_or(Error::NotFound(kind.as_str()))?;
    drop(tx);
    let filter = RunFilter { connection_id: Some(id), state: query.outcome, ..RunFilter::default() };
    let window = Window { page: query.page, limit: query.limit, cursor: query.cursor, sort: query.sort };
    list(&app, &caller, &scope, &filter, window).await
}

/// The runs of an organization, whatever started them.
async fn list_all(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<AllQuery>,
) -> Result<Answer<CursorPage<RunView>>, Error> {
    let filter = RunFilter {
        connection_id: query.connection_id,
        kind: query.kind,
        state: query.outcome,
        event_type: query.event_type,
        since: query.since,
        until: query.until,
    };
    let window = Window { page: query.page, limit: query.limit, cursor: query.cursor, sort: query.sort };
    list(&app, &caller, &caller.organization_scope(), &filter, window).await
}

/// Runs a Connection again with what started one of its runs.
///
/// Any administrator may do so: the run reads what was there, and the steps are their author's as they are now.
async fn rerun(by: By, creation: Creation, At(id): At<RunId>) -> Result<Response, Error> {
    let By { app, caller, origin } = &by;
    caller.require_all_sites()?;
    let mut tx = app.db.write().await?;
    let original = runs::find(&mut tx, &caller.organization_scope(), id).await?;
    let original = original.ok_or(Error::NotFound("run"))?;
    let (row, author) = repeatable(&mut tx, &original).await?;
    let now = app.clock.now();
    let again = RunRow {
        connection_id: original.connection_id,
        event_type: original.event_type,
        event_seq: original.event_seq,
        chain: vec![row],
        payload: original.payload,
        cooldown_key: original.cooldown_key,
        rerun_of: Some(original.id),
        ..RunRow::queued(app.clock.new_id(), RunKind::Rerun, original.org_id, author, now)
    };
    runs::insert_all(&mut tx, std::slice::from_ref(&again)).await?;
    let entry = NewEntry {
        org: again.org_id,
        actor: caller.actor(),
        action: "run.repeated",
        target: ("run", again.id.0),
        detail: json!({ "rerun_of": again.rerun_of, "connection_id": again.connection_id }),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    let path = format!("/fabric/runs/{}", again.id);
    let answer = creation.finish(tx, app, &path, &view(app, caller, again)?).await?;
    FabricState::of(app).wake.notify_one();
    Ok(answer)
}

/// Returns the Connection of a run that can be repeated, and the user whose rights it has.
async fn repeatable(tx: &mut Tx, run: &RunRow) -> Result<(ConnectionId, UserId), Error> {
    let refused = |message: &str| Error::conflict(message.to_owned());
    let id = match (run.kind, run.connection_id) {
        (RunKind::Trigger, _) => {
            return Err(refused(
                "a trigger is called again by what called it: an event, a timer or a request",
            ));
        }
        (RunKind::Test | RunKind::Action, _) | (_, None) => {
            return Err(refused("a test or an action is repeated by asking for it again"));
        }
        (_, Some(id)) => id,
    };
    if matches!(run.state, RunState::Queued | RunState::Running | RunState::Waiting) {
        return Err(refused("the run has not ended yet"));
    }
    if run.state == RunState::Skipped && run.payload.as_object().is_none_or(Map::is_empty) {
        return Err(refused("the run did not fire, and what came is not kept with it; see its event"));
    }
    let row = connections::find_any(tx, &Scope::organization(run.org_id), id).await?;
    let row = row.filter(|row| row.deleted_at.is_none());
    let row = row.ok_or_else(|| refused("what it is a run of was removed; restore it first"))?;
    if row.state != ConnectionState::Enabled {
        return Err(Error::conflict(format!("'{}' is {}; enable it first", row.name, row.state)));
    }
    if runs::are_waiting(tx, run.org_id, WAITING_MAX).await? {
        return Err(refused("too many runs of the organization are queued; try again later"));
    }
    Ok((id, row.author_id))
}

/// The actions of an organization.
pub(crate) async fn list_actions(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<CursorPage<RunView>>, Error> {
    let scope = Scope::organization(caller.org_id);
    let filter = RunFilter { kind: Some(RunKind::Action), state: query.outcome, ..RunFilter::default() };
    let window = Window { page: query.page, limit: query.limit, cursor: query.cursor, sort: query.sort };
    list(&app, &caller, &scope, &filter, window).await
}

/// Which part of a list of runs is asked for, and in which order.
struct Window {
    page: Option<u32>,
    limit: Option<u32>,
    cursor: Option<String>,
    sort: Option<Sort<RunRow>>,
}

async fn list(
    app: &App,
    caller: &Caller,
    scope: &Scope,
    filter: &RunFilter,
    Window { page, limit, cursor, sort }: Window,
) -> Result<Answer<CursorPage<RunView>>, Error> {
    let limit = limit.unwrap_or(PER_PAGE_DEFAULT);
    if !(1..=PER_PAGE_MAX).contains(&limit) {
        return Err(Error::field("limit", format!("limit must be from 1 to {PER_PAGE_MAX}")));
    }
    let request = walk_request((page, Some(limit), cursor.as_deref()), sort, PER_PAGE_MAX)?;
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
    Ok(Answer(page.map(|(view, _)| view)))
}

fn cursor_of(row: &RunRow) -> Cursor {
    Cursor { occurred_at: row.created_at, seq: row.event_seq, id: row.id.0 }
}

/// A run for this viewer.
impl Tagged for RunView {
    fn tag(&self) -> Result<Tag, Error> {
        Ok(Tag::of(self.id, UNEDITED))
    }
}

pub(crate) fn view(app: &App, caller: &Caller, row: RunRow) -> Result<RunView, Error> {
    let is_author = caller.is_author(row.author_id);
    let is_readable = is_author || may_read(app, caller, row.event_type.as_deref());
    // A test is skipped as a whole in a dry run only.
    let is_dry = row.kind == RunKind::Test && row.state == RunState::Skipped;
    let params = match &row.secret {
        Some(sealed) if is_author => open_run(&app.keys, row.id, sealed)?,
        _ => Vec::new(),
    };
    // A reason can quote what a step said.
    let reads_steps = is_author || row.steps.iter().all(|step| may_ask(app, caller, step));
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
                None if is_dry || step.skipped => StepState::Skipped,
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
            RunState::Success | RunState::Partial => Some(true),
            RunState::Failed | RunState::Skipped | RunState::Interrupted => Some(false),
            RunState::Queued | RunState::Running | RunState::Waiting => None,
        },
        state: row.state,
        reason: row.reason.filter(|_| is_readable && reads_steps),
        payload: is_readable.then_some(row.payload),
        rerun_of: row.rerun_of,
        resume_at: row.resume_at.filter(|_| row.state == RunState::Waiting),
        steps: steps.collect(),
        started_at: row.started_at,
        ended_at: row.ended_at,
    })
}

/// Whether the viewer may read events of this type of all sites: a run quotes the event that started it.
fn may_read(app: &App, caller: &Caller, event_type: Option<&str>) -> bool {
    let may = match event_type.map(|name| app.declared().events.find(name)) {
        Some(Some(event_type)) => steps::may_read(app, caller, event_type).is_ok(),
        Some(None) => false,
        None => true,
    };
    may && caller.sites == SiteScope::All
}

/// Whether the viewer could have asked for what the step gave: run history is for all members, data is not.
fn may_ask(app: &App, caller: &Caller, step: &StepRecord) -> bool {
    // These quote events and outputs of other steps.
    if step.skipped || step.operation_id == wait::ID {
        return caller.require_unscoped_role(Role::OrgAdmin).is_ok() && caller.sites == SiteScope::All;
    }
    let operation = Operations::of(app).find(&step.operation_id);
    let permission = operation.map(|operation| operation.declaration().permission);
    let may = permission.is_some_and(|needed| needed.is_none_or(|permission| caller.holds(permission)));
    may && caller.sites == SiteScope::All
}
