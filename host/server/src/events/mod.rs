//! Events: from the outbox to whoever listens.
//!
//! An event is a row of its cause's transaction. It is published after the
//! commit, in order, and again after a crash in between: listeners know an
//! event by its id. A batch that could not be marked is remembered, and is not
//! sent twice by the same process.

pub(crate) mod bus;
mod connection;
mod frames;
mod places;
mod routes;
mod socket;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use heddle_core::event::Event;
use heddle_core::redact::sanitize;
use heddle_core::{EventId, SiteId};
use heddle_store::events::StoredEvent;
use tokio::sync::{Notify, broadcast};

use self::bus::Bus;
use self::places::Places;
use crate::app::SharedApp;
use crate::http::error::Error;

pub(crate) use routes::{routes, socket_routes};

/// Events that wait for a slow listener before it is dropped.
const BACKLOG: usize = 4096;
/// Events of one read of the outbox.
const BATCH: u32 = 500;
/// Looks at the outbox although nobody called, for events of other processes.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);

/// An event on its way, with what decides who may see it.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) event: Event,
    pub(crate) site_id: Option<SiteId>,
}

impl From<StoredEvent> for Published {
    fn from(stored: StoredEvent) -> Self {
        let StoredEvent { mut event, site_id, .. } = stored;
        sanitize(&mut event.payload);
        Self { event, site_id }
    }
}

/// Where published events meet open connections.
#[derive(Debug)]
pub struct Hub {
    outbox: Notify,
    sender: broadcast::Sender<Arc<Published>>,
    places: Places,
    pub(crate) bus: Bus,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            outbox: Notify::new(),
            sender: broadcast::channel(BACKLOG).0,
            places: Places::default(),
            bus: Bus::default(),
        }
    }
}

impl Hub {
    /// Something was committed to the outbox.
    pub fn wake(&self) {
        self.outbox.notify_one();
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Published>> {
        self.sender.subscribe()
    }

    /// Open connections of everybody who has said who they are.
    pub fn connections(&self) -> usize {
        self.places.named()
    }
}

/// Events that were sent, but not marked as published: marking them failed.
#[derive(Debug, Default)]
struct Unmarked(HashSet<EventId>);

impl Unmarked {
    /// Those of a batch that were not sent yet; from now on they count as sent.
    fn unsent(&mut self, batch: Vec<StoredEvent>) -> Vec<StoredEvent> {
        batch.into_iter().filter(|stored| self.0.insert(stored.event.id)).collect()
    }

    fn marked(&mut self) {
        self.0.clear();
    }
}

/// Whether the outbox can be read at all.
pub(crate) async fn check(app: &SharedApp) -> Result<(), Error> {
    let mut tx = app.db.read().await?;
    heddle_store::events::oldest_unpublished(&mut tx).await?;
    Ok(())
}

/// Publishes the outbox, oldest first, until the service stops.
pub(crate) async fn dispatch(app: SharedApp) {
    let stop = app.tasks.stopping();
    let _dispatching = app.hub.bus.begin(app.clock.now());
    let mut unmarked = Unmarked::default();
    loop {
        let published = match publish_batch(&app, &mut unmarked).await {
            Ok(published) => {
                app.hub.bus.progressed(app.clock.now());
                published
            }
            Err(error) => {
                tracing::warn!(error = %error, "events wait in the outbox; tried again");
                0
            }
        };
        if published > 0 {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.hub.outbox.notified() => {}
            () = tokio::time::sleep(IDLE_INTERVAL) => {}
        }
    }
}

async fn publish_batch(app: &SharedApp, unmarked: &mut Unmarked) -> Result<usize, Error> {
    let mut tx = app.db.read().await?;
    let waiting = heddle_store::events::unpublished(&mut tx, BATCH).await?;
    drop(tx);
    if waiting.is_empty() {
        return Ok(0);
    }
    let ids: Vec<_> = waiting.iter().map(|stored| stored.event.id).collect();
    for stored in unmarked.unsent(waiting) {
        app.metrics.event_published(stored.event.event_type);
        // No receiver is no error: nobody listens right now.
        let _ = app.hub.sender.send(Arc::new(Published::from(stored)));
    }
    let mut tx = app.db.write().await?;
    heddle_store::events::mark_published(&mut tx, &ids, app.clock.now()).await?;
    tx.commit().await?;
    unmarked.marked();
    Ok(ids.len())
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_core::event::EventType;

    use super::*;

    fn stored(clock: &Clock) -> StoredEvent {
        let event_type = EventType::ALL[0];
        let event = Event {
            id: clock.new_id(),
            seq: 1,
            event_type,
            category: event_type.category().to_owned(),
            priority: event_type.priority(),
            organization_id: clock.new_id(),
            occurred_at: clock.now(),
            causation_id: None,
            schema_version: 1,
            payload: serde_json::json!({}),
        };
        StoredEvent { event, site_id: None, controller_id: None, device_id: None }
    }

    #[test]
    fn what_could_not_be_marked_is_not_sent_again() {
        let clock = Clock::default();
        let (first, second) = (stored(&clock), stored(&clock));
        let mut unmarked = Unmarked::default();
        assert_eq!(unmarked.unsent(vec![first.clone()]).len(), 1);
        let again = unmarked.unsent(vec![first, second.clone()]);
        assert_eq!(again.iter().map(|stored| stored.event.id).collect::<Vec<_>>(), [second.event.id]);
        unmarked.marked();
        assert!(unmarked.0.is_empty());
    }
}
