//! The one way in which rooms above stage changes: by the same rules as for requests of clients, with their own rows in the
//! same transaction where they have some.

use heddle_core::ChangeId;
use heddle_core::change::Operation;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_store::changes::{self, ChangeRow, RunStep};

use super::asking::Asking;
use super::cause::Cause;
pub use super::model_routes::{InModel, request};
use super::plan::{self, Request, STAGED_ALREADY};
pub use super::plan::{Ready, Staged, answer, prepare};
use super::{apply, settle};

/// Checks and plans what a change asked for, once more, if it was of this operation.
///
/// # Errors
/// 404 where the caller does not see the change, 409 where it was of another operation; else as for a request of a client.
pub async fn prepare_again(
    by: &By,
    (id, operation): (ChangeId, Operation),
    notes: String,
) -> Result<Ready, Error> {
    let row = apply::find_row(&by.app, &by.caller, id).await?.ok_or(Error::NotFound("change"))?;
    if row.operation != operation {
        let message = format!(
            "change {id}, which was applied last, is a {}, and a {operation} is needed",
            row.operation
        );
        return Err(Error::Conflict { kind: "not_writable", message });
    }
    plan::prepare_again(&by.app, &by.caller, Cause::Request(&by.origin), row, notes).await
}

/// Stages a change. For a step of a run this is idempotent: the same step gets the same change.
///
/// # Errors
/// As for a request of a client, and a conflict where the step has staged something else before.
pub async fn stage(
    app: &App,
    caller: &Caller,
    cause: Cause<'_>,
    request: Request,
) -> Result<ChangeRow, Error> {
    let Cause::Run(step) = cause else { return stage_new(app, caller, cause, request).await };
    let asking = Asking {
        controller: request.controller_id,
        feature: request.feature.clone(),
        operation: request.operation,
    };
    if let Some(row) = staged_by(app, caller, step, &asking).await? {
        return Ok(row);
    }
    match stage_new(app, caller, cause, request).await {
        Err(Error::Conflict { kind: STAGED_ALREADY, .. }) => {
            staged_by(app, caller, step, &asking).await?.ok_or(Error::NotFound("change"))
        }
        ended => ended,
    }
}

async fn stage_new(
    app: &App,
    caller: &Caller,
    cause: Cause<'_>,
    request: Request,
) -> Result<ChangeRow, Error> {
    let ready = prepare(app, caller, cause, request).await?;
    let mut tx = app.db.write().await?;
    let staged = ready.write(app, caller, &mut tx).await?;
    staged.record(&mut tx, app).await?;
    tx.commit().await?;
    plan::log_staged(&staged.row);
    Ok(staged.row)
}

async fn staged_by(
    app: &App,
    author: &Caller,
    step: &RunStep,
    asking: &Asking,
) -> Result<Option<ChangeRow>, Error> {
    let mut tx = app.db.single().await?;
    let staged = changes::find_by_run_key(&mut tx, &author.scope(), &step.key).await?;
    staged.map(|row| asking.answered_by(row)).transpose()
}

/// Discards a pending change, which is in no set.
///
/// # Errors
/// As for a request of a client.
pub async fn discard(by: &By, id: ChangeId) -> Result<(), Error> {
    let row = apply::find_row(&by.app, &by.caller, id).await?.ok_or(Error::NotFound("change"))?;
    settle::discard(&by.app, &by.caller, &by.origin, row, false).await.map(drop)
}
