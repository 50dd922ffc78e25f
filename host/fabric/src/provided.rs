//! Operations that others offer in addition to the host and its adapters, each to some organizations only.
//!
//! A Connection whose operation is no longer offered in its organization is broken, with a notice, and waits for the
//! operation's owner. It is enabled again when the operation is offered again; what happened meanwhile does not start it.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

use heddle_core::event::NewEvent;
use heddle_core::notification::Severity;
use heddle_core::operation::{ConnectionKind, ConnectionState, OperationKind, StepErrorCode, StepOutline};
use heddle_core::{ConnectionId, OrgId};
use heddle_delivery::notifications::message::Message;
use heddle_delivery::notifications::notices;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_store::audit::{self, NewAudit};
use heddle_store::connections::{self, ConnectionRow};
use heddle_store::{Tx, events};
use serde_json::{Value, json};

use super::connections::{refuse_more_of_pattern, require_fit};
use super::kinds::{Kind as _, Schedules};
use super::operation::{Operation, StepCall, StepError, Template};
use super::operations::{Operations, Registry};
use crate::author::author_of;
use crate::declarations::CONNECTION_RECOVERED;

/// Connections of one read.
const BATCH: u32 = 200;

/// Says where operations are offered that some organizations only have.
#[async_trait::async_trait]
pub trait Provider: Send + Sync + 'static {
    /// Ids of the operations that an organization has now, whether this process can carry them out or not.
    async fn offered_in(&self, app: &App, tx: &mut Tx, org: OrgId) -> Result<BTreeSet<String>, Error>;
    /// Whose an operation is that some organizations only have; `None` for one that all have. Its id alone says it: the
    /// operation need not exist.
    fn owner_of<'a>(&self, operation: &'a str) -> Option<&'a str>;
    /// The Connections that are proposed in an organization, whether this process has their operations or not.
    async fn templates(&self, app: &App, tx: &mut Tx, org: OrgId) -> Result<Vec<Template>, Error>;
}

/// Names the provider. It is named once, before any request.
pub fn set_provider(app: &App, provider: Arc<dyn Provider>) {
    app.part::<Registry>().set_provider(provider);
}

/// Replaces the operations that the provider has in this process.
pub fn provide(app: &App, operations: Vec<Arc<dyn Operation>>) {
    app.part::<Registry>().provide(operations);
}

/// What an operation of this process does to the world; `None` where there is no such operation.
pub fn kind_of(app: &App, operation: &str) -> Option<OperationKind> {
    Operations::of(app).find(operation).map(|found| found.declaration().kind)
}

/// Carries out an operation for a step that is under way, with the rights of the step's author at this moment.
pub async fn call(call: &StepCall<'_>, operation: &str, params: Value) -> Result<Value, StepError> {
    let operations = Operations::of(call.app);
    let unknown = || {
        let message =
            format!("operation '{operation}' does not exist; GET /fabric/catalog lists those that do");
        StepError::new(StepErrorCode::UnknownOperation, message)
    };
    let found = operations.find(operation).ok_or_else(unknown)?;
    if let Some(permission) = found.declaration().permission {
        call.author.require(permission)?;
    }
    operations.check_params(operation, &params).await?;
    found.run(call, params).await
}

/// Which of the operations of this process an organization has.
pub(crate) struct OfferedIn(Option<BTreeSet<String>>);

impl OfferedIn {
    /// Asks the provider, where the registry has an operation that not every organization has.
    pub(crate) async fn in_organization(app: &App, org: OrgId) -> Result<Self, Error> {
        if !Operations::of(app).has_switched() {
            return Ok(Self(None));
        }
        Self::within(app, &mut app.db.single().await?, org).await
    }

    async fn within(app: &App, tx: &mut Tx, org: OrgId) -> Result<Self, Error> {
        let Some(provider) = app.part::<Registry>().provider() else { return Ok(Self(None)) };
        provider.offered_in(app, tx, org).await.map(|offered| Self(Some(offered)))
    }

    pub(crate) fn has(&self, operation: &Arc<dyn Operation>) -> bool {
        let declaration = operation.declaration();
        !declaration.is_switched || self.0.as_ref().is_some_and(|offered| offered.contains(&declaration.id))
    }
}

/// 409 unless the organization has every operation of these steps that not every organization has.
pub(crate) async fn require_offered(
    tx: &mut Tx,
    app: &App,
    org: OrgId,
    steps: &[StepOutline],
) -> Result<(), Error> {
    let switched = switched(app, steps);
    if switched.is_empty() {
        return Ok(());
    }
    let offered = OfferedIn::within(app, tx, org).await?;
    match switched.iter().find(|operation| !offered.has(operation)) {
        Some(missing) => Err(not_offered(&missing.declaration().id, &missing.declaration().owner)),
        None => Ok(()),
    }
}

/// The operations of these steps that not every organization has.
fn switched(app: &App, steps: &[StepOutline]) -> Vec<Arc<dyn Operation>> {
    let operations = Operations::of(app);
    let found = steps.iter().filter_map(|step| operations.find(&step.operation_id));
    found.filter(|operation| operation.declaration().is_switched).collect()
}

/// The refusal of an operation that the organization does not have.
pub(crate) fn not_offered(operation: &str, owner: &str) -> Error {
    Error::Conflict {
        kind: "operation_not_offered",
        message: format!(
            "operation '{operation}' is not offered in the organization: an administrator switches '{owner}' on first"
        ),
    }
}

/// Breaks what has steps of this owner's operations that are no longer offered, and enables what waits for the owner and
/// is whole again: in one organization, or in all. `prefix` is what the ids of the owner's operations begin with.
///
/// Each Connection has its own transaction, so that no lock is waited for while another one is held.
///
/// # Errors
/// The database gives no answer. Called again, it does the rest.
pub async fn settle(app: &SharedApp, owner: &str, prefix: &str, org: Option<OrgId>) -> Result<(), Error> {
    let Some(provider) = app.part::<Registry>().provider() else { return Ok(()) };
    // What organizations have, each asked once; who breaks a Connection asks again.
    let mut known: BTreeMap<OrgId, BTreeSet<String>> = BTreeMap::new();
    let mut after = None;
    loop {
        let mut tx = app.db.single().await?;
        let some = connections::enabled_with(&mut tx, org, prefix, after, BATCH).await?;
        drop(tx);
        for row in &some {
            let offered = match known.entry(row.org_id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let mut tx = app.db.single().await?;
                    unknown.insert(provider.offered_in(app, &mut tx, row.org_id).await?)
                }
            };
            if gone(provider.as_ref(), row, offered).is_some() {
                break_until(app, provider.as_ref(), row).await?;
            }
        }
        after = some.last().map(|row| row.id);
        if some.len() < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            break;
        }
    }
    let mut after: Option<ConnectionId> = None;
    loop {
        let mut tx = app.db.single().await?;
        let some = connections::waiting_for(&mut tx, org, owner, after, BATCH).await?;
        drop(tx);
        for row in &some {
            recover(app, provider.as_ref(), row.clone()).await?;
        }
        after = some.last().map(|row| row.id);
        if some.len() < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            return Ok(());
        }
    }
}

/// An operation that a Connection has and its organization has not.
pub(crate) struct Missing {
    operation: String,
    owner: String,
}

impl Missing {
    fn reason(&self) -> String {
        format!(
            "operation '{}' is not offered any more; it is enabled by itself when '{}' offers it again",
            self.operation, self.owner
        )
    }
}

/// The first operation of a Connection that its organization does not have, of whatever owner.
pub(crate) async fn missing(tx: &mut Tx, app: &App, row: &ConnectionRow) -> Result<Option<Missing>, Error> {
    match app.part::<Registry>().provider() {
        Some(provider) => missing_of(tx, app, provider.as_ref(), row).await,
        None => Ok(None),
    }
}

async fn missing_of(
    tx: &mut Tx,
    app: &App,
    provider: &dyn Provider,
    row: &ConnectionRow,
) -> Result<Option<Missing>, Error> {
    if row.steps.iter().all(|step| provider.owner_of(&step.operation_id).is_none()) {
        return Ok(None);
    }
    let offered = provider.offered_in(app, tx, row.org_id).await?;
    Ok(gone(provider, row, &offered))
}

fn gone(provider: &dyn Provider, row: &ConnectionRow, offered: &BTreeSet<String>) -> Option<Missing> {
    row.steps.iter().find_map(|step| {
        let owner = provider.owner_of(&step.operation_id)?;
        let is_gone = !offered.contains(&step.operation_id);
        is_gone.then(|| Missing { operation: step.operation_id.clone(), owner: owner.to_owned() })
    })
}

/// Breaks a Connection one of whose operations is gone, and reports it.
async fn break_until(app: &SharedApp, provider: &dyn Provider, row: &ConnectionRow) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    let Some(gone) = missing_of(&mut tx, app, provider, row).await? else { return Ok(()) };
    break_off_until(&mut tx, app, row, &gone).await?;
    tx.commit().await?;
    Ok(())
}

/// Breaks an enabled Connection until its operation is offered again, and reports it.
pub(crate) async fn break_off_until(
    tx: &mut Tx,
    app: &App,
    row: &ConnectionRow,
    gone: &Missing,
) -> Result<(), Error> {
    let (at, reason) = ((row.id, row.revision), gone.reason());
    let broken = connections::break_off_until(tx, at, &gone.owner, &reason, app.clock.now()).await?;
    match broken {
        Some(row) => super::run::report_broken(tx, app, &row, &reason, None).await,
        None => Ok(()),
    }
}

/// Enables a Connection again whose operations are all offered again. Where another one is missing it waits for that one,
/// and it stays broken where its author has lost the rights to its steps.
async fn recover(app: &SharedApp, provider: &dyn Provider, mut row: ConnectionRow) -> Result<(), Error> {
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let at = (row.id, row.revision);
    if let Some(gone) = missing_of(&mut tx, app, provider, &row).await? {
        if row.waits_for.as_deref() != Some(gone.owner.as_str()) {
            connections::wait_for(&mut tx, at, Some(&gone.owner), &gone.reason(), now).await?;
            tx.commit().await?;
        }
        return Ok(());
    }
    // The operation is offered, and this process may not have it yet: another look comes when it has.
    let operations = Operations::of(app);
    if row.steps.iter().any(|step| operations.find(&step.operation_id).is_none()) {
        return Ok(());
    }
    let unfit = match author_of(&mut tx, row.org_id, row.author_id, row.id).await? {
        Ok(author) => require_fit(app, &author, &row).err().map(|error| error.to_string()),
        Err(reason) => Some(reason),
    };
    let refused = if unfit.is_none() {
        refuse_more_of_pattern(&mut tx, row.org_id, &row.source_event).await.err()
    } else {
        None
    };
    if let Some(reason) = unfit.or_else(|| refused.map(|error| error.to_string())) {
        connections::wait_for(&mut tx, at, None, &reason, now).await?;
        tx.commit().await?;
        return Ok(());
    }
    row.after_seq = events::last_seq(&mut tx, row.org_id).await?;
    if row.kind == ConnectionKind::Schedule {
        row.state = ConnectionState::Enabled;
        Schedules::begin_again(&mut row, app);
    }
    let recovered = connections::mend(&mut tx, &row, now).await?;
    let Some(row) = recovered else { return Ok(()) };
    report_recovered(&mut tx, app, &row).await?;
    tx.commit().await?;
    Ok(())
}

async fn report_recovered(tx: &mut Tx, app: &App, row: &ConnectionRow) -> Result<(), Error> {
    let entry = NewAudit {
        org_id: row.org_id,
        actor_id: None,
        actor_name: "heddle".to_owned(),
        action: format!("{}.recovered", row.kind),
        target_type: row.kind.to_string(),
        target_id: Some(row.id.0),
        detail: json!({ "name": row.name, "author_id": row.author_id }),
        request_id: None,
        ip: None,
    };
    audit::append(tx, &entry, &app.clock, &app.audit_key).await?;
    let payload = json!({ "connection_id": row.id, "kind": row.kind, "name": row.name });
    events::append(tx, &NewEvent::of(CONNECTION_RECOVERED, row.org_id, payload), &app.clock).await?;
    let message = Message {
        severity: Severity::Info,
        source: "fabric",
        subject: format!("{} '{}' is enabled again", row.kind, row.name),
        body: "All its operations are offered again. What happened meanwhile does not start it.".to_owned(),
    };
    let origin = format!("recovered:{}:{}", row.id, row.revision);
    notices::tell_administrators(tx, app, row.org_id, &message, Some(origin)).await?;
    tracing::info!(connection.id = %row.id, "{} {} is enabled again", row.kind, row.id);
    Ok(())
}
