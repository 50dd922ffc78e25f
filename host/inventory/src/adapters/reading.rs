//! Reads the packages again while the server runs, when the process gets the signal SIGHUP.

use std::io::IsTerminal as _;

use heddle_kernel::app::SharedApp;
use heddle_kernel::modules::LastRefused;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

use super::packages::{Serving, load_all};

/// The packages that serve. Held while they are read, so that two readings follow each other.
pub(super) struct Packages(Mutex<Serving>);

impl Packages {
    pub(super) fn new(serving: Serving) -> Self {
        Self(Mutex::new(serving))
    }
}

/// Reads the packages at each SIGHUP, until the service stops. A server that was started from a terminal does not: there the
/// signal says that the terminal was closed, and ends the process.
pub(super) async fn read_when_asked(app: SharedApp) {
    if std::io::stdin().is_terminal() {
        return;
    }
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            tracing::warn!(error = %error, "packages are read at a start only: SIGHUP cannot be received");
            return;
        }
    };
    let stop = app.tasks.stopping();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(()) = hangups.recv() => {}
        }
        // A stop does not wait for a reading: what it has not put into service is read at the next start.
        tokio::select! {
            () = stop.cancelled() => return,
            () = read(&app) => {}
        }
    }
}

/// The same packages serve afterwards as after a restart. Returns when routes and operations show them.
async fn read(app: &SharedApp) {
    let mut serving = app.part::<Packages>().0.lock().await;
    let refused = load_all(app, &mut serving).await;
    let count = refused.0.len();
    app.part::<LastRefused>().replace(refused);
    app.all_installed_shown().await;
    tracing::info!(
        serving = serving.len(),
        refused = count,
        "packages were read again: {} serve, {count} are refused",
        serving.len()
    );
}
