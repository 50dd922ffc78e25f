//! What one instance of a component knows and has used: the data of its store.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use heddle_core::Clock;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::filesystem::WasiFilesystemCtx;

use crate::apart::Turn;
use crate::egress::phase::Phase;
use crate::limits::Limiter;
use crate::lines::Lines;
use crate::reach::Reach;
use crate::runtime::Tap;

pub(crate) type Progress = Arc<dyn Fn(u8, String) + Send + Sync>;

/// What a guest learns of its call.
pub(crate) struct Surroundings {
    pub(crate) component: String,
    pub(crate) request_id: String,
    pub(crate) controller_id: Option<String>,
    pub(crate) site_ref: Option<String>,
    pub(crate) phase: Phase,
    pub(crate) deadline: Instant,
    /// The settings of the controller, or of the organization of a plugin's call, as JSON.
    pub(crate) settings: String,
    pub(crate) progress: Option<Progress>,
}

impl Surroundings {
    /// Of a component that is only instantiated, to see what it exports.
    pub(crate) fn of_trial(component: String, deadline: Instant) -> Self {
        Self {
            component,
            request_id: String::new(),
            controller_id: None,
            site_ref: None,
            phase: Phase::Probe,
            deadline,
            settings: "{}".to_owned(),
            progress: None,
        }
    }
}

/// The data of one store.
pub(crate) struct State {
    pub(crate) limiter: Limiter,
    pub(crate) table: ResourceTable,
    pub(crate) around: Surroundings,
    pub(crate) reach: Reach,
    pub(crate) clock: Clock,
    pub(crate) started: Instant,
    pub(crate) lines: Lines,
    /// Whether it called the host at all for something that waits.
    pub(crate) waited: bool,
    pub(crate) tap: Option<Tap>,
    /// It waits because it wants to, and for nothing outside.
    pub(crate) pausing: Arc<AtomicBool>,
    /// Bytes of the generator that it took by system interfaces.
    pub(crate) random_bytes: usize,
    /// Has no directory: nothing of a file system is reached through it.
    pub(crate) files: WasiFilesystemCtx,
    /// Held while it computes for long; given back whenever it waits.
    pub(crate) turn: HeldTurn,
}

pub(crate) type HeldTurn = Arc<Mutex<Option<Turn>>>;

impl State {
    /// The component waits for something outside: others may compute meanwhile.
    pub(crate) fn waits(&mut self) {
        self.waited = true;
        drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Shows the tap what goes into the guest's memory.
    pub(crate) fn lower(&self, what: &str, bytes: impl AsRef<[u8]>) {
        if let Some(tap) = &self.tap {
            tap(what, bytes.as_ref());
        }
    }
}
