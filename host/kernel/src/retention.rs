//! Forgets what need not be kept: old events, sessions that ended, processes that are gone.
//!
//! One process does it for all, once an hour, a bounded number of rows at a
//! time. The audit log is never trimmed.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::Timestamp;
use heddle_store::{Tx, events, idempotency, organizations, processes};

use crate::app::SharedApp;
use crate::events::keeping::event_retention_days;
use crate::feature::{Feature, Forget};
use crate::http::error::Error;

/// Time between two looks whether a round is due.
const INTERVAL: Duration = Duration::from_mins(10);
/// Delay before the first look, so that a start is not slowed down.
const START_DELAY: Duration = Duration::from_secs(30);
/// Name of the duty among those of all processes.
const DUTY: &str = "retention";
const EVERY: TimeDelta = TimeDelta::hours(1);
/// The longest that one round takes; the next one continues.
const ROUND_LIMIT: Duration = Duration::from_mins(30);
/// Rows that one transaction forgets.
const BATCH: u32 = 1_000;

/// What the service itself keeps for a while. Features declare what they keep.
const OWN: &[Forget] = &[
    Forget { days: 7, batch: |tx, before, rows| processes::trim(tx, before, rows).boxed() },
    // As long as a request with an `Idempotency-Key` may be sent again.
    Forget { days: 1, batch: |tx, before, rows| idempotency::trim(tx, before, rows).boxed() },
];

pub(crate) async fn run(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut nap = START_DELAY;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(nap) => {}
        }
        nap = INTERVAL;
        match round_if_due(&app).await {
            Ok(Some(forgotten)) => tracing::info!(rows = forgotten, "retention forgot {forgotten} rows"),
            Ok(None) => {}
            Err(error) => tracing::warn!(error = %error, "retention did not end; tried again later"),
        }
    }
}

/// Does one round, unless a process did one within the hour. Returns how many rows it forgot.
pub async fn round_if_due(app: &SharedApp) -> Result<Option<u64>, Error> {
    let (owner, now) = (app.membership.term()?.id, app.clock.now());
    let mut tx = app.db.write().await?;
    let is_ours = processes::take_duty(&mut tx, DUTY, owner, now, EVERY).await?;
    tx.commit().await?;
    if is_ours { round(app, now).await.map(Some) } else { Ok(None) }
}

async fn round(app: &SharedApp, now: Timestamp) -> Result<u64, Error> {
    let end = Instant::now() + ROUND_LIMIT;
    let mut tx = app.db.read().await?;
    let settings = organizations::settings(&mut tx).await?;
    drop(tx);
    let of_features = app.features().iter().flat_map(Feature::forgets);
    let mut forgets: Vec<&Forget> = of_features.chain(OWN).collect();
    // Rows that have their own end come first: deliveries that have to be put in their places do not wait for a backlog
    // of others.
    forgets.sort_by_key(|forget| forget.days != 0);
    let mut done = Vec::new();
    for forget in forgets {
        let before = now - TimeDelta::days(forget.days);
        done.push(batches(app, end, &|tx| (forget.batch)(tx, before, BATCH)).await);
    }
    for (org, settings) in settings {
        let before = now - TimeDelta::days(event_retention_days(&settings));
        done.push(batches(app, end, &|tx| events::trim(tx, org, before, BATCH).boxed()).await);
    }
    // The first error is reported, after all were tried.
    done.into_iter().sum()
}

/// Forgets some rows, and returns their number.
type Batch<'f> = dyn for<'a> Fn(&'a mut Tx) -> BoxFuture<'a, heddle_store::Result<u64>> + Sync + 'f;

/// Forgets batch after batch until nothing is left or the round has to end; returns the number of rows.
async fn batches(app: &SharedApp, end: Instant, batch: &Batch<'_>) -> Result<u64, Error> {
    let mut forgotten = 0;
    while !app.tasks.stopping().is_cancelled() && Instant::now() < end {
        // Each batch is a transaction of its own, so that other writers do not wait long.
        let mut tx = app.db.write().await?;
        let rows = batch(&mut tx).await?;
        tx.commit().await?;
        forgotten += rows;
        if rows == 0 {
            break;
        }
    }
    Ok(forgotten)
}
