//! Events by HTTP: the subscriptions, the requests to them, and the outcomes.
//!
//! Deliveries of an event are queued in the transaction that advances the consumer's position. The process that claims
//! a delivery sends it: at least once, under an id that stays the same. Connections are opened by `outgoing`, not here.

mod body;
mod deliveries;
mod measures;
mod message;
mod queue;
mod rights;
mod sealed;
mod send;
mod subscriptions;
mod templates;

use futures::FutureExt as _;
use heddle_core::webhook::DeliveryState;
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::events::consumer::consume;
use heddle_kernel::feature::{Feature, Forget, Sealing, Worker};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_store::sealed::SealedColumn;
use heddle_store::webhooks::deliveries as stored;

use self::measures::Measures;
use self::queue::Queue;
pub(crate) use self::send::Outbox;

/// Long enough to mend a receiver and to replay the events that it missed.
const DEAD_DAYS: i64 = 30;

const FORGETS: &[Forget] = &[
    // Nothing is deleted here: stuck deliveries are queued again.
    Forget { days: 0, batch: |tx, before, rows| stored::mend(tx, before, rows).boxed() },
    Forget {
        days: 7,
        batch: |tx, before, rows| stored::trim(tx, DeliveryState::Delivered, before, rows).boxed(),
    },
    Forget {
        days: DEAD_DAYS,
        batch: |tx, before, rows| stored::trim(tx, DeliveryState::Dead, before, rows).boxed(),
    },
    Forget { days: DEAD_DAYS, batch: |tx, before, rows| stored::trim_abandoned(tx, before, rows).boxed() },
];

const SEALED: &[Sealing] = &[Sealing::of(SealedColumn::of("webhook_subscription"))];

/// Subscriptions to events by HTTP.
pub struct Webhooks;

#[async_trait::async_trait]
impl Feature for Webhooks {
    fn name(&self) -> &'static str {
        "webhooks"
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::WEBHOOKS
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    async fn open(&self, app: &App, parts: &mut Parts) {
        parts.add(Outbox::default());
        parts.add(Measures::new(&app.metrics.families()));
    }

    async fn measure(&self, app: &SharedApp) {
        Measures::of(app).measure(app).await;
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        subscriptions::routes().merge(templates::routes()).merge(deliveries::routes())
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![
            Worker::new("webhooks.queue", consume(app.clone(), Queue)),
            Worker::new("webhooks.send", send::send_due(app.clone())),
        ]
    }

    fn forgets(&self) -> &'static [Forget] {
        FORGETS
    }
}
