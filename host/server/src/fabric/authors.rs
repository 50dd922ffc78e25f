//! Stops the Connections of an author who lost what they need, within seconds of the loss.
//!
//! Changes of users and of site grants are found by their times, in every process and whoever made them; an overlap
//! covers clocks that differ, and a full look now and then covers the rest. Who stops a Connection first wins.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_core::{OrgId, UserId};
use heddle_store::connections;

use super::author::author_of;
use super::connections::require_fit;
use super::run::break_off;
use crate::app::SharedApp;
use crate::http::error::Error;

const INTERVAL: Duration = Duration::from_secs(1);
/// How far clocks may differ.
const OVERLAP: TimeDelta = TimeDelta::seconds(30);
/// All authors are looked at when the process starts and every so often.
const FULL_LOOK: Duration = Duration::from_hours(1);
/// Authors of one read, and Connections of one transaction.
const BATCH: u32 = 200;

/// Looks until the service stops.
pub(crate) async fn watch(app: SharedApp) {
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

/// Stops what the author may not do any more in an organization, a few at a time.
async fn stop_unfit(app: &SharedApp, org: OrgId, author: UserId) -> Result<(), Error> {
    let mut tx = app.db.read().await?;
    let enabled = connections::enabled_of(&mut tx, org, author, i64::from(BATCH)).await?;
    let Some(first) = enabled.first() else { return Ok(()) };
    let standing = author_of(&mut tx, org, author, first.id).await?;
    drop(tx);
    let unfit: Vec<_> = enabled
        .iter()
        .filter_map(|row| {
            let why = match &standing {
                Err(reason) => Some(reason.clone()),
                Ok(author) => require_fit(app, author, row).err().map(|error| error.to_string()),
            };
            why.map(|why| (row, why))
        })
        .collect();
    if unfit.is_empty() {
        return Ok(());
    }
    let mut tx = app.db.write().await?;
    for (row, why) in unfit {
        break_off(&mut tx, app, row, &why, None).await?;
    }
    tx.commit().await?;
    app.hub.wake();
    Ok(())
}
