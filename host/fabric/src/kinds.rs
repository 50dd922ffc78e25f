//! Connections, rules and schedules: what they are to clients in the same way. They are rows of one table.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::operation::{ConnectionKind, ConnectionState};
use heddle_core::page::Page;
use heddle_core::{ConnectionId, Role};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One, Tagged};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::list_query::{ListQuery as _, Listing};
use heddle_kernel::list_query;
use heddle_kernel::resource::{Actions, By, Done};
use heddle_store::Tx;
use heddle_store::connections::{self, ConnectionFilter, ConnectionRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::restoring;
use crate::declarations::ACTS_AS_AUTHOR;

/// One of the kinds, as a unit struct.
pub(crate) trait Kind: Send + Sync + 'static {
    const KIND: ConnectionKind;
    /// Where they are, below the prefix.
    const PATH: &'static str;
    /// One of them.
    const ONE: &'static str;
    const ACTIONS: Actions;
    /// The name of a trial in the audit log.
    const TESTED: &'static str;
    type View: Serialize + JsonSchema + Tagged + Send + Sync;

    /// Makes what this caller sees of it: parameters of steps are for their author.
    fn view(row: ConnectionRow, app: &App, caller: &Caller) -> Result<Self::View, Error>;

    /// Sets what a restored one begins with.
    fn begin_again(_row: &mut ConnectionRow, _app: &App) {}
}

/// Steps that events start.
pub(crate) struct Connections;
/// The same, written as rules.
pub(crate) struct Rules;
/// Steps that the clock starts.
pub(crate) struct Schedules;

list_query! {
    /// Part of the name.
    pub(crate) struct ListQuery of ConnectionRow {
        state: Option<ConnectionState>,
    }
}

/// Callers that read them.
pub(crate) const READ: Access = Access::Authenticated(ACTS_AS_AUTHOR);
/// Callers that write them.
pub(crate) const WRITE: Access = Access::Role(Role::OrgAdmin, ACTS_AS_AUTHOR);

/// Returns the name of a kind in errors.
pub(crate) fn noun(kind: ConnectionKind) -> &'static str {
    kind.as_str()
}

/// Records what was done to one of them: never a parameter.
pub(crate) async fn record(tx: &mut Tx, by: &By, row: &ConnectionRow, done: Done) -> Result<(), Error> {
    let actions = match row.kind {
        ConnectionKind::Connection => Connections::ACTIONS,
        ConnectionKind::Rule => Rules::ACTIONS,
        ConnectionKind::Schedule => Schedules::ACTIONS,
    };
    let target = (row.org_id, actions.target, row.id.0);
    by.record_of(tx, target, actions.of(done), detail(row)).await
}

pub(crate) fn detail(row: &ConnectionRow) -> Value {
    let operations: Vec<&str> = row.steps.iter().map(|step| step.operation_id.as_str()).collect();
    json!({
        "name": row.name,
        "source_event": row.source_event,
        "operations": operations,
        "state": row.state,
        "author_id": row.author_id,
    })
}

pub(crate) async fn list<K: Kind>(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<Page<K::View>>, Error> {
    let Listing { page, search, order } = query.listing()?;
    let filter = ConnectionFilter { kind: K::KIND, state: query.state, search };
    let mut tx = app.db.read().await?;
    let (rows, total) = connections::list(&mut tx, &caller.scope(), &filter, order).await?;
    drop(tx);
    let views: Result<Vec<K::View>, Error> =
        rows.into_iter().map(|row| K::view(row, &app, &caller)).collect();
    Ok(Answer(page.of(views?, total)))
}

pub(crate) async fn get<K: Kind>(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ConnectionId>,
) -> Result<One<K::View>, Error> {
    let mut tx = app.db.single().await?;
    let row = connections::find(&mut tx, &caller.scope(), K::KIND, id).await?;
    K::view(row.ok_or(Error::NotFound(noun(K::KIND)))?, &app, &caller).map(One)
}

/// The row, locked until the transaction ends.
pub(crate) async fn lock<K: Kind>(
    tx: &mut Tx,
    caller: &Caller,
    id: ConnectionId,
) -> Result<ConnectionRow, Error> {
    let row = connections::lock(tx, &caller.scope(), K::KIND, id).await?;
    row.ok_or(Error::NotFound(noun(K::KIND)))
}

/// Writes a new row, records it, keeps the answer for the request's key, commits, and answers 201.
pub(crate) async fn created<K: Kind>(
    mut tx: Tx,
    by: &By,
    creation: Creation,
    row: &ConnectionRow,
) -> Result<Response, Error> {
    let row = connections::insert(&mut tx, row).await?;
    record(&mut tx, by, &row, Done::Created).await?;
    let path = format!("{}/{}", K::PATH, row.id);
    let view = K::view(row, &by.app, &by.caller)?;
    creation.finish(tx, &by.app, &path, &view).await
}

/// Writes an edited row, records it, commits, and answers it as it is now.
pub(crate) async fn updated<K: Kind>(
    mut tx: Tx,
    by: &By,
    row: &ConnectionRow,
) -> Result<One<K::View>, Error> {
    let updated = connections::update(&mut tx, row, by.app.clock.now()).await?;
    let updated = updated.ok_or(Error::NotFound(noun(K::KIND)))?;
    record(&mut tx, by, &updated, Done::Updated).await?;
    tx.commit().await?;
    K::view(updated, &by.app, &by.caller).map(One)
}

pub(crate) async fn remove<K: Kind>(
    by: By,
    At(id): At<ConnectionId>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    let mut tx = by.app.db.write().await?;
    let row = lock::<K>(&mut tx, &by.caller, id).await?;
    by.caller.require_all_sites()?;
    if_match.check(&row)?;
    connections::remove(&mut tx, id, by.app.clock.now()).await?;
    record(&mut tx, &by, &row, Done::Removed).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn restore<K: Kind>(by: By, At(id): At<ConnectionId>) -> Result<One<K::View>, Error> {
    let mut tx = by.app.db.write().await?;
    let (mut row, unfit) = restoring::removed(&mut tx, &by.app, &by.caller, K::KIND, id).await?;
    K::begin_again(&mut row, &by.app);
    let restored = restoring::put_back(tx, &by, (row, unfit)).await?;
    K::view(restored, &by.app, &by.caller).map(One)
}
