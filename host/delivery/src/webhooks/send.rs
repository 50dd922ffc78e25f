//! Sends deliveries that are due: claims one, checks again whether it may be sent, sends it, and records the outcome.
//!
//! Orphaned deliveries of a process that is gone are taken over by the others, which send them again under the same id.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::webhook::DeliveryState;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_kernel::outgoing::{self, Undelivered};
use heddle_kernel::process::membership::Term;
use heddle_store::webhooks;
use heddle_store::webhooks::deliveries::DeliveryId;
use heddle_store::webhooks::sending::{self, Attempt, Due, Room};
use tokio::sync::Notify;

use super::measures::{DeliveryOutcome, Measures};
use super::message::{Message, Unsendable};
use super::rights::{self, Asked};

/// Time between checks without a wake-up: for retries, and for deliveries that other processes left.
const INTERVAL: Duration = Duration::from_secs(1);
/// Most deliveries in flight of one process.
const IN_ALL: u32 = 128;
/// Most deliveries in flight to one subscription, so that one that hangs does not delay others.
const PER_SUBSCRIPTION: u32 = 4;
/// Most deliveries in flight of one organization, over all processes: an organization with hanging receivers delays no
/// other.
const PER_ORGANIZATION: u32 = 32;
/// Places that are reserved for organizations with few deliveries in flight.
const RESERVED: u32 = 32;
/// How long an answer is waited for once the service stops.
const GRACE: Duration = Duration::from_secs(2);
/// Delays after the first, second, … failure; after the last of them there is no retry.
const RETRIES: [TimeDelta; 6] = [
    TimeDelta::seconds(10),
    TimeDelta::minutes(1),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(6),
];
/// Most characters of an answer that are stored with the delivery.
const RESPONSE_CHARS_MAX: usize = 2000;
const ERROR_CHARS_MAX: usize = 500;

/// The deliveries that this process is sending, and the signal that wakes the sender.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    called: Notify,
    in_flight: Mutex<HashSet<DeliveryId>>,
}

impl Outbox {
    /// Returns the outbox of this process.
    pub(super) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Wakes the sender: a delivery may be due.
    pub(crate) fn wake(&self) {
        self.called.notify_one();
    }

    fn in_flight(&self) -> HashSet<DeliveryId> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take(&self, id: DeliveryId) {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    fn put_down(&self, id: DeliveryId) {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

/// A delivery is in flight while this lives, however its task ends.
struct InFlight<'a>(&'a App, DeliveryId);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        Outbox::of(self.0).put_down(self.1);
        // Its place is free.
        Outbox::of(self.0).wake();
    }
}

pub(super) async fn send_due(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = Outbox::of(&app).called.notified() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
        if let Err(error) = round(&app).await {
            tracing::warn!(error = %error, "deliveries of webhooks cannot be read; tried again");
        }
    }
}

async fn round(app: &SharedApp) -> Result<(), Error> {
    let Ok(term) = app.membership.term() else { return Ok(()) };
    let now = app.clock.now();
    let in_flight = Outbox::of(app).in_flight();
    let room = Room {
        per_subscription: PER_SUBSCRIPTION,
        per_organization: PER_ORGANIZATION,
        in_all: IN_ALL.saturating_sub(u32::try_from(in_flight.len()).unwrap_or(IN_ALL)),
        reserved: RESERVED,
    };
    let mut tx = app.db.read().await?;
    let gone = sending::gone_owners(&mut tx, term.id).await?;
    let owned = sending::owned(&mut tx, term.id).await?;
    let has_due = sending::has_due(&mut tx, now, room).await?;
    drop(tx);
    // Deliveries that have ended since are also not in flight, but no longer owned, so releasing them has no effect.
    let lost: Vec<DeliveryId> =
        owned.into_iter().map(|(id, _)| id).filter(|id| !in_flight.contains(id)).collect();
    if gone.is_empty() && lost.is_empty() && !has_due {
        return Ok(());
    }
    if !gone.is_empty() || !lost.is_empty() {
        for owner in gone {
            // One transaction for each owner, so that subscriptions are always locked in the same order.
            let mut tx = app.db.write().await?;
            let count = sending::release(&mut tx, owner, now).await?;
            tx.commit().await?;
            tracing::warn!(process.id = %owner, count, "sending {count} deliveries again that a process left");
        }
        let mut tx = app.db.write().await?;
        sending::release_some(&mut tx, term.id, &lost, now).await?;
        tx.commit().await?;
    }
    let mut tx = app.db.write().await?;
    let due = sending::claim(&mut tx, term.id, now, room).await?;
    tx.commit().await?;
    if !due.is_empty() {
        // Places that one subscription did not need are free for another.
        Outbox::of(app).wake();
    }
    for due in due {
        Outbox::of(app).take(due.id);
        let (app2, term) = (app.clone(), term.clone());
        app.tasks.spawn("webhooks.deliver", async move { deliver(&app2, &term, due).await });
    }
    Ok(())
}

async fn deliver(app: &SharedApp, term: &Term, due: Due) {
    let _in_flight = InFlight(app, due.id);
    let stop = app.tasks.stopping();
    let attempt = tokio::select! {
        attempt = attempt(app, &due) => Some(attempt),
        () = async { stop.cancelled().await; tokio::time::sleep(GRACE).await; } => None,
        // Another process owns it now: a later event of the same device must not be overtaken.
        () = term.over().cancelled() => return,
    };
    let written = async {
        let mut tx = app.db.write().await?;
        match &attempt {
            Some(attempt) => {
                // The subscription is locked first, as everywhere that both are locked.
                webhooks::note(&mut tx, due.subscription_id, attempt.error.as_deref(), attempt.now).await?;
                if !sending::finish(&mut tx, due.id, term.id, attempt).await? {
                    // Another process owns the delivery: nothing of this attempt counts.
                    return Ok(false);
                }
            }
            None => {
                sending::release_some(&mut tx, term.id, &[due.id], app.clock.now()).await?;
            }
        }
        tx.commit().await?;
        Ok::<bool, Error>(true)
    };
    match written.await {
        Err(error) => {
            tracing::warn!(delivery.id = %due.id, error = %error, "how delivery {} went is not written; it is sent again", due.id);
        }
        Ok(is_ours) => {
            if let Some(attempt) = attempt.filter(|_| is_ours) {
                Measures::of(app).attempt_ended(outcome(attempt.state));
            }
        }
    }
}

fn outcome(state: DeliveryState) -> DeliveryOutcome {
    match state {
        DeliveryState::Delivered => DeliveryOutcome::Delivered,
        DeliveryState::Pending => DeliveryOutcome::Failed,
        DeliveryState::Dead => DeliveryOutcome::Dead,
    }
}

async fn attempt(app: &App, due: &Due) -> Attempt {
    let after = usize::try_from(due.attempts).ok().and_then(|done| RETRIES.get(done));
    if let Some(why) = rights::author_problem(&due.author) {
        // The author may have access again before the last attempt.
        let now = app.clock.now();
        return failed(after.map(|after| now + *after), format!("not sent: {why}"), now);
    }
    let asked = Asked { events: &due.events, site_id: due.site_id, author: &due.author };
    if let Some(why) = rights::why_not_now(&app.declared(), asked, &due.event_type, due.event_site_id) {
        return failed(None, format!("not sent: {why}"), app.clock.now());
    }
    let message = Message {
        delivery: due.id,
        subscription: due.subscription_id,
        url: &due.url,
        sealed: &due.secret,
        template: due.template.as_ref(),
        event_type: &due.event_type,
        event: &due.event,
    };
    let sent = match message.request(&app.keys) {
        Ok(request) => outgoing::send(app, request).await,
        Err(why) => {
            let now = app.clock.now();
            let retry = after.filter(|_| matches!(why, Unsendable::Secrets(_))).map(|after| now + *after);
            return failed(retry, why.to_string(), now);
        }
    };
    let now = app.clock.now();
    let retry = after.map(|after| now + *after);
    match sent {
        Ok(answered) => {
            let response: String = answered.text.chars().take(RESPONSE_CHARS_MAX).collect();
            let is_truncated = answered.is_truncated || response.len() < answered.text.len();
            let status = Some(i64::from(answered.status));
            let ended = if answered.is_success() {
                Attempt { state: DeliveryState::Delivered, error: None, ..failed(None, String::new(), now) }
            } else {
                failed(retry, format!("the receiver answered with status {}", answered.status), now)
            };
            Attempt { status, response: Some(response), response_is_truncated: is_truncated, ..ended }
        }
        Err(Undelivered::Blocked(why)) => failed(retry, format!("the destination is refused: {why}"), now),
        Err(Undelivered::Unreached(why) | Undelivered::Failed(why)) => failed(retry, why, now),
    }
}

/// Returns a failed attempt, to be retried at `retry`, or never.
fn failed(retry: Option<Timestamp>, why: String, now: Timestamp) -> Attempt {
    Attempt {
        state: if retry.is_some() { DeliveryState::Pending } else { DeliveryState::Dead },
        next_at: retry,
        status: None,
        error: Some(why.chars().take(ERROR_CHARS_MAX).collect()),
        response: None,
        response_is_truncated: false,
        now,
    }
}
