//! What metrics say of changes.

use futures::FutureExt as _;
use heddle_core::change::OutcomeState;
use heddle_kernel::app::App;
use heddle_kernel::metrics::Families;
use heddle_kernel::recent::Recent;
use heddle_store::changes;
use prometheus::{IntCounterVec, IntGaugeVec};

/// Counters and gauges of changes.
pub(super) struct Measures {
    applies: IntCounterVec,
    changes: IntGaugeVec,
    pending: Recent<Vec<(OutcomeState, i64)>>,
}

impl Measures {
    pub(super) fn new(families: &Families<'_>) -> Self {
        Self {
            applies: families.counters(
                "heddle_applies_total",
                "Applies of changes that ended, by what the device showed.",
                &["adapter", "outcome"],
            ),
            changes: families.gauges(
                "heddle_changes",
                "Pending changes in all organizations, by what became of their last attempt.",
                &["status", "outcome"],
            ),
            pending: Recent::default(),
        }
    }

    pub(super) fn of(app: &App) -> &Self {
        app.part()
    }

    pub(super) fn apply_ended(&self, adapter: &str, outcome: OutcomeState) {
        self.applies.with_label_values(&[adapter, outcome.as_str()]).inc();
    }

    pub(super) async fn measure(&self, app: &App) {
        let pending = self.pending.read(&app.db, |tx| changes::count_pending(tx).boxed()).await;
        for state in OutcomeState::ALL {
            let counted = pending.iter().find(|(counted, _)| counted == state);
            let count = counted.map_or(0, |(_, count)| *count);
            self.changes.with_label_values(&["pending", state.as_str()]).set(count);
        }
    }
}
