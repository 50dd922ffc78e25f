//! Events by HTTP: who subscribed to them, what they are sent, and how it went.
//!
//! What follows from an event is queued in the transaction that moves the purpose's place on, and sent by whichever
//! process claims it: at least once, under an id that stays the same. Connections are opened by `outgoing`, not here.

mod body;
mod deliveries;
mod message;
mod queue;
mod rights;
mod sealed;
mod send;
mod subscriptions;
mod templates;

use self::queue::Queue;
pub(crate) use self::send::Outbox;
use crate::app::{App, SharedApp};
use crate::events::consumer::consume;
use crate::feature::{Feature, Parts, Worker};
use crate::http::routes::Routes;

/// Subscriptions to events by HTTP.
pub(crate) struct Webhooks;

#[async_trait::async_trait]
impl Feature for Webhooks {
    fn name(&self) -> &'static str {
        "webhooks"
    }

    async fn open(&self, _: &App, parts: &mut Parts) {
        parts.add(Outbox::default());
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
}
