//! Stops the Connections of an author who lost what they need, within seconds of the loss.
//!
//! Every process finds changes of users and of site grants by their times, whichever process made them; an overlap
//! covers clocks that differ, and a full look now and then covers the rest. The process that stops a Connection first
//! wins.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_core::{OrgId, UserId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_store::object::Object as _;
use heddle_store::{Organization, Scope, connections};

use super::author::author_of;
use super::connections::require_rights;
use super::run::break_off;

const INTERVAL: Duration = Duration::from_secs(1);
/// How far clocks may differ.
const OVERLAP: TimeDelta = TimeDelta::seconds(30);
/// All authors are looked at when the process starts and every so often.
const FULL_LOOK: Duration = Duration::from_hours(1);
/// Authors, and Connections, of one read.
const BATCH: u32 = 200;

/// Looks until the service stops.
pub(super) async fn watch(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut full: Option<Instant> = None;
    loop {
        let is_full = full.is_none_or(|at| at.elapsed() >= FULL_LOOK);
        let looked = if is_full { look_at_all(&app).await } else { look_at_changed(&app).await };
        match looked {
            Ok(()) if is_full => full = Some(Instant::now()),
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(error = %error, "rights of authors cannot be checked; tried again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

async fn look_at_changed(app: &SharedApp) -> Result<(), Error> {
    let since = app.clock.now() - OVERLAP;
    let mut tx = app.db.read().await?;
    let changed = connections::authors_changed(&mut tx, since).await?;
    drop(tx);
    for (author, org) in changed {
        stop_unfit(app, org, author).await?;
    }
    Ok(())
}

async fn look_at_all(app: &SharedApp) -> Result<(), Error> {
    let mut last = None;
    loop {
        let mut tx = app.db.read().await?;
        let some = connections::authors(&mut tx, last, BATCH).await?;
        drop(tx);
        for (author, org) in &some {
            stop_unfit(app, *org, *author).await?;
        }
        last = some.last().copied();
        if last.is_none() || app.tasks.stopping().is_cancelled() {
            return Ok(());
        }
    }
}

/// Stops the author's Connections in an organization that do what the author may no longer do.
///
/// Each Connection has its own transaction, so that no lock is waited for while another one is held. Connections of a
/// removed organization stay as they are: they do not fire, and are as before when it is restored.
async fn stop_unfit(app: &SharedApp, org: OrgId, author: UserId) -> Result<(), Error> {
    let mut after = None;
    loop {
        let mut tx = app.db.read().await?;
        if Organization::find(&mut tx, &Scope::everything(), org).await?.is_none() {
            return Ok(());
        }
        let enabled = connections::enabled_of(&mut tx, org, author, after, i64::from(BATCH)).await?;
        let Some(last) = enabled.last() else { return Ok(()) };
        after = Some(last.id);
        let found = author_of(&mut tx, org, author, last.id).await?;
        drop(tx);
        for row in &enabled {
            let why = match &found {
                Err(reason) => Some(reason.clone()),
                // An operation that this process does not have is not a lost right.
                Ok(author) => require_rights(app, author, row).err().map(|error| error.to_string()),
            };
            if let Some(why) = why {
                let mut tx = app.db.write().await?;
                break_off(&mut tx, app, row, &why, None).await?;
                tx.commit().await?;
            }
        }
    }
}
