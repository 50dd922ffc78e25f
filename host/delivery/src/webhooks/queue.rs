//! Follows the events, queues deliveries for their subscriptions, and notifies administrators of problems.
//!
//! The number of waiting deliveries is limited, for each subscription and each organization. Events beyond the limit
//! are not queued: the subscription shows how many and which, and they are sent when a user replays their numbers.

use std::collections::HashMap;

use heddle_core::notification::Severity;
use heddle_core::{Declared, OrgId, Timestamp};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::events::Published;
use heddle_kernel::events::consumer::{Consumer, Took};
use heddle_kernel::http::error::Error;
use heddle_store::Tx;
use heddle_store::events::StoredEvent;
use heddle_store::webhooks::deliveries::{self, NewDelivery};
use heddle_store::webhooks::{self, Listening, SubscriptionId, Unqueued};
use serde_json::json;

use super::Outbox;
use super::rights::{self, Asked};
use crate::notifications::Message;
use crate::notifications::notices::tell_administrators;

/// Most deliveries of one subscription that wait at once.
pub(super) const WAITING_MAX: i64 = 10_000;
/// Most deliveries of all subscriptions of one organization that wait at once.
const WAITING_PER_ORGANIZATION_MAX: i64 = 50_000;
/// Deliveries that are built before they are written.
const PORTION: usize = 500;

pub(crate) struct Queue;

impl Consumer for Queue {
    const NAME: &'static str = "webhooks";
    const BATCH: u32 = 100;

    async fn wants(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> Result<bool, Error> {
        let listening = webhooks::listening(tx, org).await?;
        Ok(listening.iter().any(|one| is_concerned(&app.declared(), one, events)))
    }

    async fn take(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> Result<Took, Error> {
        let mut concerned = webhooks::listening(tx, org).await?;
        concerned.retain(|one| is_concerned(&app.declared(), one, events));
        let ids: Vec<SubscriptionId> = concerned.iter().map(|one| one.id).collect();
        let there = webhooks::lock_all(tx, &ids).await?;
        if !ids.is_empty() {
            // Read again, now that the locks keep other processes from changing them.
            concerned = webhooks::listening(tx, org).await?;
            concerned.retain(|one| {
                is_concerned(&app.declared(), one, events) && there.get(&one.id).copied().unwrap_or(false)
            });
        }
        let mut waiting = Waiting(webhooks::pending(tx, org).await?);
        let now = app.clock.now();
        let mut new = Vec::new();
        for one in &concerned {
            tell_of_problem(tx, app, org, one).await?;
            let wanted: Vec<&StoredEvent> =
                events.iter().filter(|stored| is_new_for(&app.declared(), one, stored)).collect();
            let (queued, missed) = wanted.split_at(waiting.room(one.id).min(wanted.len()));
            waiting.add(one.id, queued.len());
            for stored in queued {
                new.push(of(app, one, stored, now));
                if new.len() >= PORTION {
                    deliveries::insert(tx, &std::mem::take(&mut new)).await?;
                }
            }
            miss(tx, app, org, one, missed).await?;
        }
        deliveries::insert(tx, &new).await?;
        Ok(Took::All)
    }

    fn taken(&self, app: &SharedApp) {
        Outbox::of(app).wake();
    }
}

/// How many deliveries wait, by subscription.
pub(super) struct Waiting(pub(super) HashMap<SubscriptionId, i64>);

impl Waiting {
    /// Returns how many more deliveries may wait.
    pub(super) fn room(&self, id: SubscriptionId) -> usize {
        let of_all: i64 = self.0.values().sum();
        let of_one = self.0.get(&id).copied().unwrap_or(0);
        usize::try_from((WAITING_MAX - of_one).min(WAITING_PER_ORGANIZATION_MAX - of_all)).unwrap_or(0)
    }

    fn add(&mut self, id: SubscriptionId, count: usize) {
        *self.0.entry(id).or_default() += i64::try_from(count).unwrap_or(i64::MAX);
    }
}

/// Some of the events are for it, or there is something to tell of it.
fn is_concerned(declared: &Declared, one: &Listening, events: &[StoredEvent]) -> bool {
    problem(declared, one) != one.told_problem
        || events.iter().any(|stored| is_new_for(declared, one, stored))
}

/// What happened before the subscription is not for it.
fn is_new_for(declared: &Declared, one: &Listening, stored: &StoredEvent) -> bool {
    stored.event.seq > one.after_seq && is_for(declared, one, stored)
}

pub(super) fn is_for(declared: &Declared, one: &Listening, stored: &StoredEvent) -> bool {
    let asked = Asked { events: &one.events, site_id: one.site_id, author: &one.author };
    rights::why_not_now(declared, asked, stored.event.event_type.as_str(), stored.site_id).is_none()
}

fn problem(declared: &Declared, one: &Listening) -> Option<String> {
    rights::problem(declared, &one.events, &one.author)
}

/// Notifies administrators once that a subscription is silent, until it is no longer silent.
async fn tell_of_problem(tx: &mut Tx, app: &App, org: OrgId, one: &Listening) -> Result<(), Error> {
    let problem = problem(&app.declared(), one);
    if problem == one.told_problem {
        return Ok(());
    }
    webhooks::note_told(tx, one.id, problem.as_deref()).await?;
    let Some(problem) = problem else { return Ok(()) };
    tell(tx, app, org, format!("Webhook '{}' does not send what it should", one.name), problem).await
}

/// Records events for which there is no room, and notifies administrators of the first.
async fn miss(
    tx: &mut Tx,
    app: &App,
    org: OrgId,
    one: &Listening,
    missed: &[&StoredEvent],
) -> Result<(), Error> {
    let (Some(first), Some(last)) = (missed.first(), missed.last()) else { return Ok(()) };
    let count = i64::try_from(missed.len()).unwrap_or(i64::MAX);
    let (from, to) = (first.event.seq, last.event.seq);
    webhooks::note_unqueued(tx, one.id, Unqueued { count, from, to }).await?;
    if one.unqueued > 0 {
        return Ok(());
    }
    let body = format!(
        "Events from number {from} on are not queued for it: {WAITING_MAX} deliveries of it are waiting, or \
        {WAITING_PER_ORGANIZATION_MAX} of all webhooks. Mend its receiver; once there is room, replay the numbers that \
        the webhook shows as 'unqueued'."
    );
    tell(tx, app, org, format!("Webhook '{}' does not keep up", one.name), body).await
}

async fn tell(tx: &mut Tx, app: &App, org: OrgId, subject: String, body: String) -> Result<(), Error> {
    let message = Message { subject, body, severity: Severity::Warning, source: "webhooks" };
    tell_administrators(tx, app, org, &message, None).await?;
    Ok(())
}

pub(super) fn of(app: &App, to: &Listening, stored: &StoredEvent, now: Timestamp) -> NewDelivery {
    let event = Published::from(stored.clone()).event;
    NewDelivery {
        id: app.clock.new_id(),
        org_id: event.organization_id,
        subscription_id: to.id,
        event_id: event.id,
        event_type: event.event_type.to_string(),
        seq: event.seq,
        site_id: stored.site_id,
        device_id: stored.device_id,
        event: json!(event),
        now,
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn one_subscription_and_one_organization_have_a_most() {
        let clock = Clock::default();
        let (one, other): (SubscriptionId, SubscriptionId) = (clock.new_id(), clock.new_id());
        let mut waiting = Waiting(HashMap::from([(one, WAITING_MAX - 3)]));
        assert_eq!((waiting.room(one), waiting.room(other)), (3, 10_000));
        waiting.add(one, 3);
        assert_eq!((waiting.room(one), waiting.room(other)), (0, 10_000));
        for _ in 0..4 {
            waiting.add(clock.new_id(), 10_000);
        }
        assert_eq!(waiting.room(other), 0);
        waiting.add(one, 5);
        assert_eq!(waiting.room(one), 0);
    }
}
