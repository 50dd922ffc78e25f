//! What asks for readings of controllers: how often they are read, and the bell that wakes the worker. It reads nothing.

use std::sync::Arc;

use heddle_kernel::app::App;
use tokio::sync::Notify;

heddle_kernel::settings! {
    /// How often controllers are read.
    pub struct SyncSettings {
        /// Seconds between two readings of a controller, where the controller does not say.
        interval_secs: u32 = "SYNC_INTERVAL_SECS", "60", from 1 to 86400;
    }
}

/// Wakes the worker when a controller became due.
#[derive(Debug, Default)]
pub struct Bell(Arc<Notify>);

impl Bell {
    /// Returns the bell of this process.
    pub fn of(app: &App) -> &Self {
        app.part()
    }

    pub fn ring(&self) {
        self.0.notify_one();
    }

    /// Returns what is notified when the bell rings; the worker waits for it.
    pub fn rung(&self) -> Arc<Notify> {
        self.0.clone()
    }
}
