//! Reads the packages again while the server runs, when the process gets the signal SIGHUP.

use std::io::IsTerminal as _;

use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::modules::LastRefused;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;

use super::installed::{Seen, Turns};
use super::packages::load_all;
use super::revoked::withdraw_revoked;

/// The signal to read the packages again.
pub(super) struct Asked(Mutex<Option<Signal>>);

impl Asked {
    pub(super) fn new(asked: Option<Signal>) -> Self {
        Self(Mutex::new(asked))
    }
}

/// Receives SIGHUP from now on. A server that was started from a terminal does not: there the signal says that the terminal
/// was closed, and ends the process.
pub(super) fn asked() -> Option<Signal> {
    if std::io::stdin().is_terminal() {
        return None;
    }
    signal(SignalKind::hangup())
        .inspect_err(|error| {
            tracing::warn!(error = %error, "packages are read at a start only: SIGHUP cannot be received");
        })
        .ok()
}

/// Reads the packages at each SIGHUP, until the service stops.
pub(super) async fn read_when_asked(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut held = app.part::<Asked>().0.lock().await;
    let Some(asked) = &mut *held else { return };
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(()) = asked.recv() => {}
        }
        // A stop does not wait for a reading: what it has not put into service is read at the next start.
        tokio::select! {
            () = stop.cancelled() => return,
            () = read_again(&app) => {}
        }
    }
}

/// Takes adapters out of service at once that a catalogue has revoked. Then waits for its turn, and reads the packages again, so
/// that another one of theirs may stand in.
///
/// # Errors
/// The database gives no answer.
pub async fn take_up_revocations(app: &SharedApp) -> Result<(), Error> {
    withdraw_revoked(app).await?;
    let turns = app.part::<Turns>();
    let mut seen = turns.take().await;
    // Once more: what was put into service before the turn may not have been able to ask.
    withdraw_revoked(app).await?;
    read(app, turns, &mut seen).await;
    Ok(())
}

/// The same packages serve afterwards as after a restart. Returns when routes and operations show them.
async fn read_again(app: &SharedApp) {
    let turns = app.part::<Turns>();
    read(app, turns, &mut *turns.take().await).await;
}

async fn read(app: &SharedApp, turns: &Turns, seen: &mut Seen) {
    let refused = load_all(app, turns, seen).await;
    let (serving, count) = (app.runtime.adapters().len(), refused.0.len());
    app.part::<LastRefused>().replace(refused);
    app.all_installed_shown().await;
    tracing::info!(
        serving,
        refused = count,
        "packages were read again: {serving} serve, {count} were refused"
    );
}
