//! Packages that are installed, replaced and put back over the API, while the server runs.
//!
//! They are kept in the database, so every process of it serves the same ones. A package is written there before it
//! serves: after a crash between the two, the start loads what was written.

mod before;
mod changes;
mod follow;
mod install;
mod kept;
mod roll_back;
mod routes;
mod view;

use std::collections::BTreeMap;
use std::sync::{Mutex as Short, PoisonError};

use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::modules::LastRefused;
use heddle_store::installed_packages::Installed;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

pub(super) use self::follow::follow;
pub(super) use self::kept::{candidate, name_of, seen};
pub(super) use self::routes::routes;

/// Requests that may wait for their turn to install, each with a package in memory.
const WAITING_MAX: usize = 4;

/// What this process has last seen in the database, by the id of the adapter.
pub(super) type Seen = BTreeMap<String, Installed>;

/// Whose turn it is to change which packages serve: one change follows another.
pub(super) struct Turns {
    turn: Mutex<Seen>,
    waiting: Semaphore,
    /// Why this process does not serve what is installed, by the id of the adapter.
    behind: Short<BTreeMap<String, String>>,
}

impl Turns {
    /// Begins with what was loaded at the start.
    pub(super) fn new(seen: Seen) -> Self {
        Self { turn: Mutex::new(seen), waiting: Semaphore::new(WAITING_MAX), behind: Short::default() }
    }

    /// Waits for the turn to change which packages serve.
    pub(super) async fn take(&self) -> MutexGuard<'_, Seen> {
        self.turn.lock().await
    }

    /// A place among the requests that wait for the turn.
    fn place(&self) -> Result<SemaphorePermit<'_>, Error> {
        self.waiting.try_acquire().map_err(|_| Error::Conflict {
            kind: "install_under_way",
            message: "other packages are being installed; try again when they are".to_owned(),
        })
    }

    /// Why this process does not serve what is installed; `None` where it does.
    pub(super) fn behind(&self, id: &str) -> Option<String> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Notes what is installed from now on, and why this process does not serve it; `None` where it does. What was said
    /// of the package before is no longer so.
    fn note(&self, app: &App, seen: &mut Seen, installed: Installed, reason: Option<String>) {
        let (id, refused) = (installed.adapter_id.clone(), app.part::<LastRefused>());
        let name = name_of(&installed);
        let before = seen.insert(id.clone(), installed).map(|before| name_of(&before));
        if let Some(before) = before.filter(|before| *before != name) {
            refused.renew(&before, None);
        }
        refused.renew(&name, reason.clone());
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        match reason {
            Some(reason) => behind.insert(id, reason),
            None => behind.remove(&id),
        };
    }

    /// Nothing is behind what was read from the beginning.
    pub(super) fn forget_behind(&self) {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Carries a change out to its end, although its client goes away.
async fn to_its_end<T: Send + 'static>(
    app: &App,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    app.tasks.spawn("adapters.install", work).await.map_err(Error::internal)?
}

/// Waits until routes and the API document show what serves. A server that stops does not get there.
async fn shown(app: &App) {
    let stop = app.tasks.stopping();
    tokio::select! {
        () = stop.cancelled() => {}
        () = app.all_installed_shown() => {}
    }
}
