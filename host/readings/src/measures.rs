//! What metrics say of readings.

use heddle_core::Timestamp;
use heddle_kernel::app::App;
use heddle_kernel::metrics::Families;
use heddle_store::ControllerTarget;
use prometheus::{HistogramVec, IntCounterVec};

heddle_core::words! {
    /// How one reading of a controller ended.
    pub enum ReadingOutcome {
        Read = "read",
        Failed = "failed",
        /// It was made, and could not be kept.
        Lost = "lost",
    }
}

/// Counters of readings that ended.
pub(crate) struct Ended(IntCounterVec);

impl Ended {
    pub(crate) fn new(families: &Families<'_>) -> Self {
        let help = "Readings of controllers that ended.";
        Self(families.counters("heddle_sync_readings_total", help, &["adapter", "outcome"]))
    }

    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    pub(crate) fn count(&self, adapter: &str, outcome: ReadingOutcome) {
        self.0.with_label_values(&[adapter, outcome.as_str()]).inc();
    }
}

/// How long it takes from a message of a controller until what it asks for is read.
pub(crate) struct Delays(HistogramVec);

impl Delays {
    pub(crate) fn new(families: &Families<'_>) -> Self {
        let help = "Seconds from a message of a controller until what it asked for was read.";
        let buckets = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
        Self(families.histogram("heddle_push_delay_seconds", help, &["adapter"], &buckets))
    }

    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Notes what was read, by the times at which it was told.
    pub(crate) fn note(&self, app: &App, controller: &ControllerTarget, told: &[Timestamp]) {
        let now = app.clock.now();
        let delays = self.0.with_label_values(&[&controller.vendor]);
        told.iter().for_each(|at| delays.observe((now - *at).as_seconds_f64().max(0.0)));
    }
}
