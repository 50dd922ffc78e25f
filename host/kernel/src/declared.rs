//! The names that this server knows: those of its features, and those that installed packages add while it runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use heddle_core::event::EventType;
use heddle_core::{Declared, Permission};
use tokio::sync::watch;

use crate::app::App;

/// Permissions and event types of one server.
#[derive(Debug)]
pub(crate) struct KnownNames {
    /// Those of the features.
    own: Declared,
    all: ArcSwap<Declared>,
    changes: watch::Sender<()>,
}

impl KnownNames {
    pub(crate) fn new(own: Declared) -> Self {
        Self { all: ArcSwap::from_pointee(own.clone()), own, changes: watch::Sender::default() }
    }

    /// Follows changes of the names.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}

impl App {
    /// Permissions and event types of the features, and of what is installed now.
    pub fn declared(&self) -> Arc<Declared> {
        self.names.all.load_full()
    }

    /// Replaces the names that installed packages declare. Call it before what uses them is put into service.
    pub fn declare(&self, permissions: &[Permission], events: &[EventType]) {
        self.names.all.store(Arc::new(self.names.own.with(permissions, events)));
        self.names.changes.send_replace(());
    }
}
