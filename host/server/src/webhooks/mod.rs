//! Events by HTTP: who subscribed to them, what they are sent, and how it went.
//!
//! What follows from an event is queued in the transaction that moves the purpose's place on, and sent by whichever
//! process claims it: at least once, under an id that stays the same. Connections are opened by `outgoing`, not here.

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

use self::queue::Queue;
pub(crate) use self::send::Outbox;
use futures::FutureExt as _;
use heddle_core::webhook::DeliveryState;
use heddle_store::sealed::SealedColumn;
use heddle_store::webhooks::deliveries as stored;

use self::measures::Measures;
use crate::app::{App, SharedApp};
use crate::events::consumer::consume;
use crate::feature::{Feature, Forget, Parts, Sealing, Worker};
use crate::http::routes::Routes;

/// Long enough that a receiver can be mended and what it missed sent again.
const DEAD_DAYS: i64 = 30;

const FORGETS: &[Forget] = &[
    // Not forgotten: put in their places.
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
pub(crate) struct Webhooks;

#[async_trait::async_trait]
impl Feature for Webhooks {
    fn name(&self) -> &'static str {
        "webhooks"
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
