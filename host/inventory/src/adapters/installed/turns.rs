//! Whose turn it is to change which packages serve, and why this process does not serve what is installed.

use std::collections::BTreeMap;
use std::sync::{Mutex as Short, MutexGuard as ShortGuard, PoisonError};

use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::modules::{LastRefused, RefusedPackages};
use heddle_store::installed_packages::Installed;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

use super::{Seen, kept, name_of};

/// Requests that may wait for their turn to install, each with a package in memory.
const WAITING_MAX: usize = 4;

/// Whose turn it is to change which packages serve: one change follows another.
pub(in crate::adapters) struct Turns {
    turn: Mutex<Seen>,
    waiting: Semaphore,
    /// Why this process does not serve what is installed, by the id of the adapter.
    behind: Short<BTreeMap<String, Behind>>,
}

/// An installed package that this process does not serve.
struct Behind {
    /// How messages call it.
    name: String,
    reason: String,
}

impl Turns {
    pub(in crate::adapters) fn new() -> Self {
        Self { turn: Mutex::default(), waiting: Semaphore::new(WAITING_MAX), behind: Short::default() }
    }

    /// Waits for the turn to change which packages serve.
    pub(in crate::adapters) async fn take(&self) -> MutexGuard<'_, Seen> {
        self.turn.lock().await
    }

    /// A place among the requests that wait for the turn.
    pub(super) fn place(&self) -> Result<SemaphorePermit<'_>, Error> {
        self.waiting.try_acquire().map_err(|_| Error::Conflict {
            kind: "install_under_way",
            message: "other packages are being installed; try again when they are".to_owned(),
        })
    }

    /// Why this process does not serve what is installed; `None` where it does.
    pub(in crate::adapters) fn behind(&self, id: &str) -> Option<String> {
        self.lock().get(id).map(|behind| behind.reason.clone())
    }

    /// Notes what is installed from now on, and why it cannot serve in this process; `None` where it does. What was said
    /// of the package before is no longer so.
    pub(super) fn note(&self, app: &App, seen: &mut Seen, installed: Installed, problem: Option<&str>) {
        let name = name_of(&installed);
        let before = seen.insert(installed.adapter_id.clone(), installed.clone());
        if let Some(before) = before.map(|before| name_of(&before)).filter(|before| *before != name) {
            app.part::<LastRefused>().renew(&before, None);
        }
        let reason = problem.map(|problem| not_served(&installed, problem, "at SIGHUP and at a start"));
        self.say(app, &installed, reason);
    }

    /// Notes why an installed package does not serve in this process yet.
    pub(super) fn falls_behind(&self, app: &App, installed: &Installed, problem: &str) {
        self.say(app, installed, Some(not_served(installed, problem, "after a pause")));
    }

    fn say(&self, app: &App, installed: &Installed, reason: Option<String>) {
        let (name, refused) = (name_of(installed), app.part::<LastRefused>());
        let mut behind = self.lock();
        let before = behind.remove(&installed.adapter_id);
        if let Some(before) = before.filter(|before| before.name != name) {
            refused.renew(&before.name, None);
        }
        refused.renew(&name, reason.clone());
        if let Some(reason) = reason {
            behind.insert(installed.adapter_id.clone(), Behind { name, reason });
        }
    }

    /// Notes which of these do not serve in this process, after all packages were read from the beginning.
    pub(in crate::adapters) fn begin_anew(&self, app: &App, installed: &Seen, refused: &RefusedPackages) {
        let behind = installed.values().filter_map(|one| {
            let name = name_of(one);
            let problem = &refused.0.iter().find(|refused| refused.package == name)?.reason;
            let is_met =
                app.runtime.adapter(&one.adapter_id).is_some_and(|serving| kept::is_met(one, &serving));
            let reason = not_served(one, problem, "at SIGHUP and at a start");
            (!is_met).then(|| (one.adapter_id.clone(), Behind { name, reason }))
        });
        *self.lock() = behind.collect();
    }

    fn lock(&self) -> ShortGuard<'_, BTreeMap<String, Behind>> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sentence that says why an installed package does not serve, and when it is tried again.
fn not_served(installed: &Installed, problem: &str, again: &str) -> String {
    format!(
        "version {} was installed and cannot serve here: {problem}; tried again {again}",
        installed.version
    )
}
