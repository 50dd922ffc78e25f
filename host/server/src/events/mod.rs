//! Events: from the table to the listeners.
//!
//! An event is a row of its cause's transaction. Every process follows the
//! organizations' sequences by itself, from where they were when it started,
//! and publishes what is committed to its own listeners: once each, in the
//! order of the organization. A listener that was away resumes by number.

pub(crate) mod bus;
mod connection;
pub(crate) mod consumer;
mod doubts;
mod frames;
pub(crate) mod keeping;
mod lines;
mod list;
mod meter;
mod pace;
pub(crate) mod patterns;
mod places;
mod routes;
mod socket;
mod wake;
mod wire;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::TimeDelta;
pub(crate) use doubts::watch as watch_access;
use heddle_core::event::Event;
use heddle_core::redact::sanitize;
use heddle_core::{OrgId, SiteId};
use heddle_store::events::StoredEvent;
use tokio::sync::{Notify, Semaphore, watch};
use tungstenite::Utf8Bytes;
pub(crate) use wake::{announce, hear};

use self::bus::Bus;
use self::frames::ServerFrame;
use self::lines::Lines;
use self::places::Places;
use self::wake::Wakes;
use crate::app::SharedApp;
use crate::feature::{Feature, Pages};
use crate::http::error::Error;
use crate::http::routes::Routes;

/// Connections that read their caller at the same time.
const PROOFS_AT_ONCE: usize = 8;
/// Events of one read of the table.
const BATCH: u32 = 500;
/// Organizations of one read.
const ORGANIZATIONS: usize = 100;
/// Time to the next look at the table without a call, for events of other processes.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
/// An organization's sequence that moved did so within this time, unless clocks are far apart.
const RECENT: TimeDelta = TimeDelta::minutes(10);
/// One in so many looks compares all sequences, in case clocks are far apart.
const FULL_LOOK: u32 = 60;

/// An event that is published, with what decides which callers may see it.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) event: Event,
    pub(crate) site_id: Option<SiteId>,
    frame: OnceLock<Utf8Bytes>,
}

impl From<StoredEvent> for Published {
    fn from(stored: StoredEvent) -> Self {
        let StoredEvent { mut event, site_id, .. } = stored;
        sanitize(&mut event.payload);
        Self::new(event, site_id)
    }
}

impl Published {
    fn new(event: Event, site_id: Option<SiteId>) -> Self {
        Self { event, site_id, frame: OnceLock::new() }
    }

    /// Returns the frame that connections are sent: written once for all of them.
    fn frame(&self) -> Result<Utf8Bytes, serde_json::Error> {
        if let Some(frame) = self.frame.get() {
            return Ok(frame.clone());
        }
        let frame = serde_json::to_string(&ServerFrame::Event { event: &self.event })?;
        Ok(self.frame.get_or_init(|| frame.into()).clone())
    }
}

/// The stream and the list of events.
pub(crate) struct Stream;

impl Feature for Stream {
    fn name(&self) -> &'static str {
        "events"
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes()
    }

    fn pages(&self) -> Pages {
        Pages::new(routes::socket_routes(), &[routes::SOCKET_PATH])
    }
}

/// Where published events meet open connections.
#[derive(Debug)]
pub struct Hub {
    outbox: Notify,
    lines: Lines,
    pub(crate) wakes: Wakes,
    /// Held by a connection while it reads its caller again: many may have to at the same time.
    proofs: Semaphore,
    /// Notifies the consumers that there are new events.
    rounds: watch::Sender<u64>,
    places: Places,
    pub(crate) bus: Bus,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            outbox: Notify::new(),
            lines: Lines::default(),
            wakes: Wakes::default(),
            proofs: Semaphore::new(PROOFS_AT_ONCE),
            rounds: watch::channel(0).0,
            places: Places::default(),
            bus: Bus::default(),
        }
    }
}

impl Hub {
    /// Reports that an event was committed. The database calls this for each transaction with events that is committed
    /// through it.
    pub(crate) fn wake(&self) {
        self.outbox.notify_one();
        self.wakes.call();
    }

    /// Reports that another process may have committed an event.
    fn look(&self) {
        self.outbox.notify_one();
    }

    /// Changes whenever events were published.
    pub(crate) fn published(&self) -> watch::Receiver<u64> {
        self.rounds.subscribe()
    }

    /// Returns the number of open connections that have authenticated.
    pub fn connections(&self) -> usize {
        self.places.named()
    }
}

/// How far each organization's events were published by this process.
#[derive(Debug)]
pub(crate) struct Follower {
    /// An organization that is not here had no event when the process started.
    positions: HashMap<OrgId, i64>,
    looks: u32,
}

impl Follower {
    /// Begins where the sequences are now.
    pub(crate) async fn start(app: &SharedApp) -> Result<Self, Error> {
        let mut tx = app.db.single().await?;
        let positions = heddle_store::events::heads(&mut tx, None).await?;
        Ok(Self { positions: positions.into_iter().collect(), looks: 0 })
    }

    /// Publishes new events, up to a batch. Returns whether there may be more.
    async fn publish(&mut self, app: &SharedApp) -> Result<bool, Error> {
        self.looks = self.looks.wrapping_add(1);
        let since = (!self.looks.is_multiple_of(FULL_LOOK)).then(|| app.clock.now() - RECENT);
        let mut tx = app.db.single().await?;
        let heads = heddle_store::events::heads(&mut tx, since).await?;
        drop(tx);
        let moved: Vec<(OrgId, i64)> =
            heads.into_iter().filter(|(org, seq)| *seq > self.position(*org)).collect();
        if moved.is_empty() {
            return Ok(false);
        }
        let (now, later) = moved.split_at(moved.len().min(ORGANIZATIONS));
        let asked: Vec<(OrgId, i64)> = now.iter().map(|(org, _)| (*org, self.position(*org))).collect();
        let mut tx = app.db.single().await?;
        let news = heddle_store::events::behind(&mut tx, &app.declared.events, &asked, BATCH).await?;
        drop(tx);
        for stored in news.events {
            app.metrics.event_published(stored.event.event_type);
            app.hub.lines.send(&Arc::new(Published::from(stored)));
        }
        app.hub.rounds.send_modify(|rounds| *rounds += 1);
        // The heads were read first, so the events may reach further.
        self.positions.extend(news.reached);
        if !news.is_full {
            for (org, head) in now {
                // Events that were removed, or whose type is not known, are skipped.
                let position = self.positions.entry(*org).or_default();
                *position = (*position).max(*head);
            }
        }
        Ok(news.is_full || !later.is_empty())
    }

    fn position(&self, org: OrgId) -> i64 {
        self.positions.get(&org).copied().unwrap_or_default()
    }
}

/// Publishes the events that any process commits, until the service stops.
pub(crate) async fn dispatch(app: SharedApp, mut follower: Follower) {
    let stop = app.tasks.stopping();
    let _dispatching = app.hub.bus.begin(app.clock.now());
    loop {
        let published = follower.publish(&app).await;
        if published.is_ok() {
            app.hub.bus.looked(app.clock.now());
        }
        match published {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(error = %error, "events cannot be read; tried again"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.hub.outbox.notified() => {}
            () = tokio::time::sleep(IDLE_INTERVAL) => {}
        }
    }
}
