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

use crate::app::SharedApp;
use crate::feature::Feature;
use crate::http::routes::Routes;

pub(crate) use self::queue::Queue;
pub(crate) use self::send::{Outbox, send_due};

/// Subscriptions to events by HTTP.
pub(crate) struct Webhooks;

impl Feature for Webhooks {
    fn routes(&self, _: &SharedApp) -> Routes {
        subscriptions::routes().merge(templates::routes()).merge(deliveries::routes())
    }
}
