//! Events: from the outbox to whoever listens.
//!
//! An event is a row of its cause's transaction. It is published after the
//! commit, in order, and again after a crash in between: listeners know an
//! event by its id.

mod connection;
mod frames;
mod routes;
mod socket;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use heddle_core::event::Event;
use heddle_core::redact::sanitize;
use heddle_core::{SiteId, UserId};
use heddle_store::events::StoredEvent;
use tokio::sync::{Notify, broadcast};

use crate::app::SharedApp;
use crate::http::error::Error;

pub(crate) use routes::{routes, socket_routes};

/// Events that wait for a slow listener before it is dropped.
const BACKLOG: usize = 4096;
/// Events of one read of the outbox.
const BATCH: u32 = 500;
/// Looks at the outbox although nobody called, for events of other processes.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);
pub(crate) const CONNECTIONS_PER_USER: usize = 25;
pub(crate) const CONNECTIONS_MAX: usize = 5000;

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
    connections: Mutex<HashMap<UserId, usize>>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { outbox: Notify::new(), sender: broadcast::channel(BACKLOG).0, connections: Mutex::default() }
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

    /// Open connections, of everybody.
    pub fn connections(&self) -> usize {
        self.connections.lock().expect("no holder of this lock panics").values().sum()
    }

    /// A place among the connections, or `None` when there is none left.
    pub(crate) fn admit(self: &Hub, user: UserId) -> bool {
        let mut connections = self.connections.lock().expect("no holder of this lock panics");
        let total: usize = connections.values().sum();
        let own = connections.entry(user).or_default();
        if total >= CONNECTIONS_MAX || *own >= CONNECTIONS_PER_USER {
            return false;
        }
        *own += 1;
        true
    }

    pub(crate) fn leave(&self, user: UserId) {
        let mut connections = self.connections.lock().expect("no holder of this lock panics");
        if let Some(own) = connections.get_mut(&user) {
            *own -= 1;
            if *own == 0 {
                connections.remove(&user);
            }
        }
    }
}

/// Publishes the outbox, oldest first, until the service stops.
pub(crate) async fn dispatch(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        let published = match publish_batch(&app).await {
            Ok(published) => published,
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

async fn publish_batch(app: &SharedApp) -> Result<usize, Error> {
    let mut tx = app.db.read().await?;
    let waiting = heddle_store::events::unpublished(&mut tx, BATCH).await?;
    drop(tx);
    if waiting.is_empty() {
        return Ok(0);
    }
    let ids: Vec<_> = waiting.iter().map(|stored| stored.event.id).collect();
    for stored in waiting {
        // No receiver is no error: nobody listens right now.
        let _ = app.hub.sender.send(Arc::new(Published::from(stored)));
    }
    let mut tx = app.db.write().await?;
    heddle_store::events::mark_published(&mut tx, &ids, app.clock.now()).await?;
    tx.commit().await?;
    Ok(ids.len())
}
