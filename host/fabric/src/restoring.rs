//! Restores what was removed: Connections, rules and schedules.
//!
//! A restored object is as it was before, but nothing that came or waited before the restore starts it.

use heddle_core::ConnectionId;
use heddle_core::operation::{ConnectionKind, ConnectionState, RunState};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::{By, Done};
use heddle_store::connections::{self, ConnectionRow};
use heddle_store::object::Object as _;
use heddle_store::{Organization, Scope, Tx, events};

use super::author::author_of;
use super::connections::{refuse_more, refuse_more_of_pattern, require_fit};
use super::kinds::{self, noun};
use super::measures::Measures;
use super::provided::{Missing, break_off_until, missing};
use super::run::break_off;

/// Why a restored object is broken.
pub(crate) enum Unfit {
    /// Its author may no longer have its steps run.
    Author(String),
    /// Its organization does not have one of its operations.
    Operation(Missing),
}

/// Returns what was removed, ready to be restored, and why it is broken then, if so.
pub(crate) async fn removed(
    tx: &mut Tx,
    app: &App,
    caller: &Caller,
    kind: ConnectionKind,
    id: ConnectionId,
) -> Result<(ConnectionRow, Option<Unfit>), Error> {
    let row = connections::lock_removed(tx, &caller.organization_scope(), kind, id).await?;
    let mut row = row.ok_or(Error::NotFound(noun(kind)))?;
    caller.require_all_sites()?;
    Organization::find(tx, &Scope::organization(row.org_id), row.org_id)
        .await?
        .ok_or(Error::NotFound(noun(kind)))?;
    refuse_more(tx, row.org_id).await?;
    let is_enabled = row.state == ConnectionState::Enabled;
    let unfit = if is_enabled { unfit(tx, app, &row).await? } else { None };
    if row.state == ConnectionState::Enabled {
        refuse_more_of_pattern(tx, row.org_id, &row.source_event).await?;
    }
    row.after_seq = events::last_seq(tx, row.org_id).await?;
    Ok((row, unfit))
}

/// Returns why its steps cannot be run; `None` when they can.
async fn unfit(tx: &mut Tx, app: &App, row: &ConnectionRow) -> Result<Option<Unfit>, Error> {
    if let Some(gone) = missing(tx, app, row).await? {
        return Ok(Some(Unfit::Operation(gone)));
    }
    let author = match author_of(tx, row.org_id, row.author_id, row.id).await? {
        Ok(author) => author,
        Err(reason) => return Ok(Some(Unfit::Author(reason))),
    };
    Ok(require_fit(app, &author, row).err().map(|error| Unfit::Author(error.to_string())))
}

/// Restores it and commits. What was waiting when it was removed does not run.
pub(crate) async fn put_back(
    mut tx: Tx,
    by: &By,
    (row, unfit): (ConnectionRow, Option<Unfit>),
) -> Result<ConnectionRow, Error> {
    let app = &by.app;
    let now = app.clock.now();
    let restored = connections::restore(&mut tx, &row, now).await?;
    let mut restored = restored.ok_or(Error::NotFound(noun(row.kind)))?;
    let reason = "it was removed before the run began";
    let skipped = connections::skip_waiting(&mut tx, restored.id, reason, now).await?;
    kinds::record(&mut tx, by, &restored, Done::Restored).await?;
    if let Some(unfit) = unfit {
        match &unfit {
            Unfit::Author(reason) => break_off(&mut tx, app, &restored, reason, None).await?,
            Unfit::Operation(gone) => break_off_until(&mut tx, app, &restored, gone).await?,
        }
        let broken = connections::find(&mut tx, &Scope::organization(row.org_id), row.kind, row.id).await?;
        restored = broken.ok_or(Error::NotFound(noun(row.kind)))?;
    }
    tx.commit().await?;
    Measures::of(app).runs_ended(RunState::Skipped, usize::try_from(skipped).unwrap_or_default());
    Ok(restored)
}
