//! What metrics say of runs.

use futures::FutureExt as _;
use heddle_core::operation::RunState;
use heddle_kernel::app::App;
use heddle_kernel::metrics::Families;
use heddle_kernel::recent::Recent;
use heddle_store::runs::{self, Backlog};
use prometheus::{Gauge, IntCounterVec, IntGauge};

/// Counters and gauges of runs.
pub(crate) struct Measures {
    ended: IntCounterVec,
    queued: IntGauge,
    wait: Gauge,
    backlog: Recent<Backlog>,
}

impl Measures {
    pub(super) fn new(families: &Families<'_>) -> Self {
        let ends = RunState::ALL
            .iter()
            .filter(|state| !matches!(state, RunState::Queued | RunState::Running | RunState::Waiting));
        Self {
            ended: families.counters_of(
                "heddle_fabric_runs_total",
                "Runs of Connections, schedules and actions that ended, by how.",
                "outcome",
                ends.map(|state| state.as_str()),
            ),
            queued: families
                .gauge("heddle_fabric_runs_queued", "Runs that wait to be carried out, of all processes."),
            wait: families.gauge_of_seconds(
                "heddle_fabric_runs_wait_seconds",
                "Seconds that the first of them has waited.",
            ),
            backlog: Recent::default(),
        }
    }

    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    pub(crate) fn runs_ended(&self, state: RunState, count: usize) {
        self.ended.with_label_values(&[state.as_str()]).inc_by(u64::try_from(count).unwrap_or_default());
    }

    /// Runs that wait, in all organizations; at most five seconds old.
    pub(super) async fn backlog(&self, app: &App) -> Backlog {
        self.backlog.read(&app.db, |tx| runs::backlog(tx).boxed()).await
    }

    pub(super) async fn measure(&self, app: &App) {
        let backlog = self.backlog(app).await;
        self.queued.set(backlog.queued);
        self.wait.set(backlog.age(app.clock.now()).as_seconds_f64());
    }
}
