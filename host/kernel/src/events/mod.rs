//! Events: from the table to the listeners.
//!
//! An event is a row of its cause's transaction. Every process follows the
//! organizations' sequences by itself, from where they were when it started,
//! and publishes what is committed to its own listeners: once each, in the
//! order of the organization. A listener that was away resumes by number.

pub(crate) mod bus;
mod connection;
mod connection_slots;
pub mod consumer;
mod fanout;
mod frames;
pub(crate) mod hub;
pub mod keeping;
mod list;
mod meter;
mod pace;
pub mod patterns;
mod published;
mod revocation;
mod routes;
mod socket;
mod wake;
mod wakes;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::OrgId;
pub use published::Published;
pub(crate) use revocation::watch as watch_access;
use tokio::time::Instant;
pub(crate) use wake::{announce, hear};

use crate::app::SharedApp;
use crate::feature::{Feature, Pages};
use crate::http::error::Error;
use crate::http::glossary::Glossary;
use crate::http::routes::Routes;

/// Events of one read of the table.
const BATCH: u32 = 500;
/// Organizations of one read.
const ORGANIZATIONS: usize = 100;
/// Least time between the beginnings of two looks, where the first left nothing to publish: while many events are committed,
/// one look takes several. The first event after a pause is published without delay.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Time to the next look at the table without a call, for events of other processes.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
/// An organization's sequence that moved did so within this time, unless clocks are far apart.
const RECENT: TimeDelta = TimeDelta::minutes(10);
/// One in so many looks compares all sequences, in case clocks are far apart.
const FULL_LOOK: u32 = 60;

const GLOSSARY: Glossary = Glossary {
    groups: &[
        ("events", "Events", "Every change of state, numbered without gaps within its organization."),
        ("ws", "Event stream", "The WebSocket `/api/v1/ws` tells events at once; here is what it carries."),
    ],
    nouns: &[("/events", "event", "events")],
    ..Glossary::EMPTY
};

/// The stream and the list of events.
pub struct Stream;

impl Feature for Stream {
    fn name(&self) -> &'static str {
        "events"
    }

    fn glossary(&self) -> &'static Glossary {
        &GLOSSARY
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes()
    }

    fn pages(&self) -> Pages {
        Pages::new(routes::socket_routes(), &[routes::SOCKET_PATH])
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
        let news = heddle_store::events::behind(&mut tx, &app.declared().events, &asked, BATCH).await?;
        drop(tx);
        for stored in news.events {
            app.metrics.event_published(stored.event.event_type);
            app.hub.fanout.send(&Arc::new(Published::from(stored)));
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
        let began = Instant::now();
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
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep_until(began + LOOK_INTERVAL) => {}
        }
    }
}
