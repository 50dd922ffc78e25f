//! The change of packages up to which the server shows them.

use heddle_runtime::Runtime;
use tokio::sync::watch;

use crate::app::App;

/// The change that features have taken up and that routes show.
#[derive(Debug, Default)]
pub(crate) struct Shown(watch::Sender<u64>);

impl Shown {
    /// Begins with what was installed while the features opened.
    pub(crate) fn new(runtime: &Runtime) -> Self {
        Self(watch::Sender::new(*runtime.installed().borrow()))
    }

    pub(crate) fn is_before(&self, change: u64) -> bool {
        *self.0.borrow() < change
    }

    pub(crate) fn reaches(&self, change: u64) {
        self.0.send_replace(change);
    }
}

impl App {
    /// Waits until routes, operations and the API document are those of everything that is installed now, or the log says
    /// why they cannot be. A server that has not begun to listen, or stops, does not get there: the wait then ends with the
    /// task that waits.
    pub async fn all_installed_shown(&self) {
        let wanted = *self.runtime.installed().borrow();
        // The sender is in the state that is waited with, so there is no other end.
        drop(self.shown.0.subscribe().wait_for(|shown| *shown >= wanted).await);
    }
}
