//! Gives sets over several controllers up: by a person, or because their time has run out. Nothing is sent; the record says
//! what remains at which controller.

use heddle_changes::parts;
use heddle_core::ChangeId;
use heddle_core::change::ChangeStatus;
use heddle_core::saga::{SagaState, SagaStep};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_store::sagas::{self, Transition};
use heddle_store::{Set, Tx, changes};

use crate::declarations::{SET_DISCARDED, SET_EXPIRED};
use crate::moves::{locked, under_way};
use crate::record::{Actor, record};
use crate::saga::{Saga, load, lock};

/// How a person gives a set up.
#[derive(Debug)]
pub(crate) struct Discard {
    /// Also where a device gives no answer.
    pub(crate) force: bool,
    /// The set alone: its changes become separate again.
    pub(crate) keep_changes: bool,
    pub(crate) reason: Option<String>,
}

/// Gives a set up. What is in effect stays so, as separate changes, and can be taken back one by one.
pub(crate) async fn discard(by: &By, saga: Saga, how: Discard) -> Result<Saga, Error> {
    let By { app, .. } = by;
    let mut tx = app.db.write().await?;
    let saga = locked(&mut tx, by, &saga).await?;
    if saga.row.status != ChangeStatus::Pending {
        let message = format!("set is already {}", saga.row.status);
        return Err(Error::Conflict { kind: "not_pending", message });
    }
    if !(saga.is_idle() || (how.force && saga.row.step == SagaStep::Compensating)) {
        return Err(under_way(&saga));
    }
    if how.keep_changes {
        return dissolve(tx, by, saga).await;
    }
    if saga.row.state == SagaState::Stuck && how.reason.is_none() {
        let message =
            "set is in effect at some controllers, or that is not known: say why it is given up as it is";
        return Err(Error::field("reason", message));
    }
    lock_parts(&mut tx, &saga).await?;
    for part in &saga.parts {
        parts::discard(&mut tx, app, part.row.clone(), Some(by), how.force).await?;
    }
    let to = Transition { reason: how.reason, ..Transition::default() };
    let saga = leave(&mut tx, app, &saga, to).await?;
    let step = ("change_set.discarded", Some(SET_DISCARDED));
    record(&mut tx, app, &saga, step, &Actor::caller(by)).await?;
    tx.commit().await?;
    Ok(saga)
}

/// Dissolves a set of which nothing is at any device: its changes become separate pending changes again.
async fn dissolve(mut tx: Tx, by: &By, saga: Saga) -> Result<Saga, Error> {
    let By { app, .. } = by;
    if !matches!(saga.row.state, SagaState::None | SagaState::Compensated) {
        let message =
            "set is in effect at some controllers, or that is not known: verify it, or take it back first";
        return Err(Error::Conflict { kind: "outcome_unknown", message: message.to_owned() });
    }
    for part in &saga.parts {
        if part.row.is_set {
            parts::dissolve_in(&mut tx, app, part.row.clone()).await?;
        }
    }
    let now = app.clock.now();
    sagas::free(&mut tx, saga.row.id, None, now).await?;
    let to = Transition {
        status: Some(ChangeStatus::Discarded),
        message: Set::To("set dissolved".to_owned()),
        ..Transition::default()
    };
    let row = sagas::advance(&mut tx, saga.row.id, SagaStep::Idle, &to, now).await?;
    let saga = load(&mut tx, row).await?;
    record(&mut tx, app, &saga, ("change_set.dissolved", None), &Actor::caller(by)).await?;
    tx.commit().await?;
    Ok(saga)
}

/// Discards a set whose time has run out, unless it was moved on meanwhile.
pub(crate) async fn expire(app: &SharedApp, id: ChangeId) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    let saga = lock(&mut tx, id).await?;
    let is_open = saga.row.status == ChangeStatus::Pending && saga.is_idle();
    if !is_open || saga.row.state == SagaState::Stuck || saga.row.expires_at > app.clock.now() {
        return Ok(());
    }
    lock_parts(&mut tx, &saga).await?;
    for part in &saga.parts {
        parts::discard(&mut tx, app, part.row.clone(), None, false).await?;
    }
    let to = Transition {
        state: Some(SagaState::Expired),
        message: Set::To("not applied before it expired".to_owned()),
        ..Transition::default()
    };
    let saga = leave(&mut tx, app, &saga, to).await?;
    let step = ("change_set.expired", Some(SET_EXPIRED));
    record(&mut tx, app, &saga, step, &Actor::service(&saga)).await?;
    tx.commit().await?;
    Ok(())
}

/// Locks all parts before the first record: whatever moves one writes its record with the part locked, too.
async fn lock_parts(tx: &mut Tx, saga: &Saga) -> Result<(), Error> {
    for part in &saga.parts {
        changes::lock(tx, part.row.id).await?;
    }
    Ok(())
}

/// Ends a set whose changes were discarded, or are in effect and separate from now on.
async fn leave(tx: &mut Tx, app: &SharedApp, saga: &Saga, to: Transition) -> Result<Saga, Error> {
    let (id, now) = (saga.row.id, app.clock.now());
    sagas::free(tx, id, Some(ChangeStatus::Applied), now).await?;
    sagas::unlock(tx, id, None).await?;
    let to = Transition { status: Some(ChangeStatus::Discarded), confirm_deadline: Set::Clear, ..to };
    let row = sagas::advance(tx, id, SagaStep::Idle, &to, now).await?;
    load(tx, row).await
}
