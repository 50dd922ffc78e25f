//! What metrics say of deliveries.

use futures::FutureExt as _;
use heddle_kernel::app::App;
use heddle_kernel::metrics::Families;
use heddle_kernel::recent::Recent;
use heddle_store::webhooks::deliveries;
use prometheus::{IntCounterVec, IntGauge};

heddle_core::words! {
    /// How one attempt to deliver an event by HTTP ended.
    pub enum DeliveryOutcome {
        Delivered = "delivered",
        /// It is tried again later.
        Failed = "failed",
        /// It failed for the last time.
        Dead = "dead",
    }
}

/// Counters and gauges of deliveries.
pub(super) struct Measures {
    attempts: IntCounterVec,
    pending: IntGauge,
    counted: Recent<i64>,
}

impl Measures {
    pub(super) fn new(families: &Families<'_>) -> Self {
        Self {
            attempts: families.counters_of(
                "heddle_webhook_attempts_total",
                "Attempts to deliver an event to a webhook subscription, by how they ended.",
                "outcome",
                DeliveryOutcome::ALL.iter().map(|outcome| outcome.as_str()),
            ),
            pending: families.gauge(
                "heddle_webhook_deliveries_pending",
                "Deliveries to webhook subscriptions that are neither delivered nor given up, of all organizations.",
            ),
            counted: Recent::default(),
        }
    }

    pub(super) fn of(app: &App) -> &Self {
        app.part()
    }

    pub(super) fn attempt_ended(&self, outcome: DeliveryOutcome) {
        self.attempts.with_label_values(&[outcome.as_str()]).inc();
    }

    pub(super) async fn measure(&self, app: &App) {
        self.pending.set(self.counted.read(&app.db, |tx| deliveries::count_pending(tx).boxed()).await);
    }
}
