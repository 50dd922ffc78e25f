//! Whose turn it is to change which plugins serve, and why this process does not serve what it should.

use std::collections::BTreeMap;
use std::sync::{Mutex as Short, PoisonError};

use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

/// Requests with a package in memory that may wait for their turn.
const WAITING_MAX: usize = 4;

/// The revision of each plugin that this process has taken up.
pub(crate) type Seen = BTreeMap<String, i64>;

/// Whose turn it is: one change follows another.
///
/// Packages are prepared before a turn is taken, one after the other: a compilation can take minutes, and switching a plugin
/// off does not wait for it.
pub(crate) struct Turns {
    turn: Mutex<Seen>,
    preparing: Mutex<()>,
    waiting: Semaphore,
    /// Why a plugin that is active does not serve here, by its id.
    behind: Short<BTreeMap<String, String>>,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self {
            turn: Mutex::default(),
            preparing: Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
            behind: Short::default(),
        }
    }

    /// Those of this process.
    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Waits for the turn.
    pub(crate) async fn take(&self) -> MutexGuard<'_, Seen> {
        self.turn.lock().await
    }

    /// Waits until no other package is prepared. Who waits for this has no turn.
    pub(crate) async fn prepare(&self) -> MutexGuard<'_, ()> {
        self.preparing.lock().await
    }

    /// A place among the requests that wait for the turn with a package in memory. Taking a plugin out of service needs none.
    pub(crate) fn place(&self) -> Result<SemaphorePermit<'_>, Error> {
        self.waiting.try_acquire().map_err(|_| Error::Conflict {
            kind: "install_under_way",
            message: "other plugins are being installed; try again when they are".to_owned(),
        })
    }

    /// Why a plugin that is active does not serve in this process; `None` where it does.
    pub(crate) fn behind(&self, plugin: &str) -> Option<String> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).get(plugin).cloned()
    }

    /// Notes why it does not serve, or that it does.
    pub(crate) fn note(&self, plugin: &str, reason: Option<String>) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        match reason {
            Some(reason) => {
                if behind.get(plugin) != Some(&reason) {
                    tracing::error!(
                        component = plugin,
                        reason,
                        "plugin {plugin} does not serve here: {reason}"
                    );
                }
                behind.insert(plugin.to_owned(), reason);
            }
            None => {
                behind.remove(plugin);
            }
        }
    }
}
