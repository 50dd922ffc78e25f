//! The identity of this process among those that serve the same database.
//!
//! A process is known by a lock that its end frees (see the store). While it holds the lock it has a [`Term`]. Work
//! that only one process may do is done in a term and ends with it. A process that loses its lock but still runs stops
//! such work, registers again under a new id, and continues like a newly started process.

pub mod limits;
pub mod membership;

use std::convert::Infallible;
use std::sync::PoisonError;
use std::time::Duration;

use heddle_core::ProcessId;
use heddle_store::processes::{self, NewProcess};
use heddle_store::{Presence, Result as Stored};

use crate::app::{App, SharedApp};
use crate::http::error::Error;
use crate::task;

/// How often a process records, for people, that it is alive.
const SEEN_INTERVAL: Duration = Duration::from_secs(30);
/// Time between two attempts to register again.
const RETRY: Duration = Duration::from_secs(1);
/// Longest time that leaving waits for the lock to be released.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);

/// Registers this process, and watches its lock until it leaves.
pub(crate) async fn join(app: &SharedApp) -> Stored<()> {
    let presence = register(app).await?;
    let watching = task::spawn_apart("process", watch(app.clone(), presence));
    *app.membership.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watching);
    Ok(())
}

async fn register(app: &App) -> Stored<Presence> {
    let id: ProcessId = app.clock.new_id();
    let presence = Presence::take(&app.db, id).await?;
    // The row is only for people: a full disk does not keep a process from serving.
    if let Err(error) = introduce(app, id).await {
        tracing::warn!(error = %error, "process is not listed in the database");
    }
    app.membership.begin(id);
    tracing::info!(process.id = %id, "registered as process {id}");
    Ok(presence)
}

async fn introduce(app: &App, id: ProcessId) -> Stored<()> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let new = NewProcess {
        id,
        host: host.trim().to_owned(),
        pid: std::process::id(),
        version: crate::version::VERSION.to_owned(),
        now: app.clock.now(),
    };
    let mut tx = app.db.write().await?;
    processes::insert(&mut tx, &new).await?;
    tx.commit().await
}

/// Holds the lock until the process leaves. When the lock is lost, takes a new one under a new id.
async fn watch(app: SharedApp, mut presence: Presence) {
    let leaving = app.membership.leaving.clone();
    loop {
        let error = tokio::select! {
            () = leaving.cancelled() => return presence.leave().await,
            never = say_seen(&app) => match never {},
            error = presence.lost() => error,
        };
        tracing::error!(
            error = %error, cause = ?std::error::Error::source(&error),
            "lock of this process is lost: its work is left to others, and it registers again"
        );
        app.membership.end();
        presence.leave().await;
        presence = tokio::select! {
            () = leaving.cancelled() => return,
            again = register_again(&app) => again,
        };
        if let Err(error) = app.begin_term().await {
            tracing::warn!(error = format!("{error:#}"), "unfinished work is not taken up yet");
        }
    }
}

async fn register_again(app: &App) -> Presence {
    loop {
        match register(app).await {
            Ok(presence) => return presence,
            Err(error) => tracing::warn!(error = %error, "process cannot register; tried again"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn say_seen(app: &App) -> Infallible {
    loop {
        tokio::time::sleep(SEEN_INTERVAL).await;
        let said = async {
            let id = app.membership.term()?.id;
            let mut tx = app.db.write().await?;
            processes::seen(&mut tx, id, app.clock.now()).await?;
            Ok::<(), Error>(tx.commit().await?)
        };
        if let Err(error) = said.await {
            tracing::debug!(error = %error, "process cannot say that it is there");
        }
    }
}

/// Leaves for good. `is_idle` says that all work has ended: then everything that the process owned is released first.
pub(crate) async fn leave(app: &App, is_idle: bool) {
    if let Some(term) = app.membership.end()
        && is_idle
    {
        let given_up = async {
            let mut tx = app.db.write().await?;
            processes::leave(&mut tx, term.id, app.clock.now()).await?;
            tx.commit().await
        };
        if let Err(error) = given_up.await {
            tracing::warn!(error = %error, "work of this process is not given up; others find it by its lock");
        }
    }
    app.membership.leaving.cancel();
    let watching = app.membership.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(watching) = watching {
        let _ = tokio::time::timeout(LEAVE_LIMIT, watching).await;
    }
}
