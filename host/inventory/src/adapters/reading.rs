//! Reads the packages again while the server runs, when the process gets the signal SIGHUP.

use std::io::IsTerminal as _;

use heddle_kernel::app::SharedApp;
use heddle_kernel::modules::LastRefused;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Mutex;

use super::packages::{Serving, load_all};

/// The packages that serve, and the signal to read them again. One reading follows another.
pub(super) struct Packages(Mutex<(Serving, Option<Signal>)>);

impl Packages {
    pub(super) fn new(serving: Serving, asked: Option<Signal>) -> Self {
        Self(Mutex::new((serving, asked)))
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
    let mut held = app.part::<Packages>().0.lock().await;
    let (serving, Some(asked)) = &mut *held else { return };
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(()) = asked.recv() => {}
        }
        // A stop does not wait for a reading: what it has not put into service is read at the next start.
        tokio::select! {
            () = stop.cancelled() => return,
            () = read(&app, serving) => {}
        }
    }
}

/// The same packages serve afterwards as after a restart. Returns when routes and operations show them.
async fn read(app: &SharedApp, serving: &mut Serving) {
    let refused = load_all(app, serving).await;
    let count = refused.0.len();
    app.part::<LastRefused>().replace(refused);
    app.all_installed_shown().await;
    tracing::info!(
        serving = serving.len(),
        refused = count,
        "packages were read again: {} serve, {count} were refused",
        serving.len()
    );
}
