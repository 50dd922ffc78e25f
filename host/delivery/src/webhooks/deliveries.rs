//! The outcomes of deliveries, and their replay.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use heddle_core::OrgId;
use heddle_core::page::{Cursor, CursorPage};
use heddle_core::webhook::DeliveryState;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::Checks;
use heddle_kernel::declarations::{SETTINGS_READ, SETTINGS_WRITE};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Params};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_kernel::walk_query;
use heddle_store::object::Object as _;
use heddle_store::webhooks::deliveries::{self, Delivery, DeliveryId, Range, Replay};
use heddle_store::webhooks::{Listening, Subscription, SubscriptionId};
use heddle_store::{StoredEvent, Tx, events, webhooks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::queue::{self, is_for};
use super::subscriptions::{NOT_FOUND, Subscriptions, require_events};
use super::{Outbox, rights};

/// Most deliveries that one replay queues.
const RANGE_MAX: u32 = 1_000;

walk_query! {
    struct ListQuery of Delivery {
        state: Option<DeliveryState>,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WebhookReplay")]
struct RangeBody {
    /// Number of the first event.
    #[schemars(range(min = 1))]
    from_seq: i64,
    /// Number of the last event.
    #[schemars(range(min = 1))]
    to_seq: i64,
    /// Only deliveries with this outcome, of a range of any length: `dead` replays deliveries that are no longer
    /// retried. When absent, events that still exist are sent even if they never were, and the range has at most 1000
    /// numbers.
    state: Option<DeliveryState>,
}

/// At most 1000 deliveries at a time, and no more than the limit of waiting deliveries allows.

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookReplayed")]
struct Replayed {
    /// Deliveries that are pending now and were not before.
    queued: u64,
    /// Number with which to continue: the first event of the range that was not handled; null when all were.
    next_seq: Option<i64>,
}

/// The outcome of a replay of one delivery.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WebhookReplayOutcome")]
enum Done {
    /// The delivery had ended, and starts again from its first attempt.
    Queued,
    /// The delivery was waiting for a retry, and is due now. It keeps its attempts.
    Hurried,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookDeliveryReplayed")]
struct ReplayedOne {
    #[serde(flatten)]
    delivery: Delivery,
    replay: Done,
}

pub(super) fn routes() -> Routes {
    let one = "/webhooks/deliveries/{delivery_id}";
    let read = Access::Permission(SETTINGS_READ);
    let write = Access::Permission(SETTINGS_WRITE);
    Routes::default()
        .get(
            "/webhooks/{subscription_id}/deliveries",
            read,
            list,
            doc("Deliveries of a subscription, newest first")
                .query::<ListQuery>()
                .answers::<CursorPage<Delivery>>(200),
        )
        .post(
            "/webhooks/{subscription_id}/replay",
            write,
            replay_range,
            doc("Send a range of events again, also those that were never queued")
                .body::<RangeBody>()
                .answers::<Replayed>(202),
        )
        .get(one, read, get, doc("One delivery").answers::<Delivery>(200))
        .post(
            &format!("{one}/replay"),
            write,
            replay,
            doc("Send a delivery again, under the same id; one that waits to be tried again is due at once")
                .answers::<ReplayedOne>(202),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<SubscriptionId>,
    Params(query): Params<ListQuery>,
) -> Result<Answer<CursorPage<Delivery>>, Error> {
    // Deliveries concern all sites.
    caller.require_all_sites()?;
    let request = query.walk()?;
    let scope = caller.organization_scope();
    let mut tx = app.db.read().await?;
    Subscription::find(&mut tx, &scope, id).await?.ok_or(NOT_FOUND)?;
    let walked = deliveries::walk(&mut tx, &scope, id, query.state, request).await?;
    let cursor = |row: &Delivery| Cursor { occurred_at: row.created_at, seq: row.seq, id: row.id.0 };
    Ok(Answer(request.of(walked, cursor)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<DeliveryId>,
) -> Result<Answer<Delivery>, Error> {
    caller.require_all_sites()?;
    let mut tx = app.db.single().await?;
    let found = deliveries::find(&mut tx, &caller.organization_scope(), id).await?;
    found.map(Answer).ok_or(Error::NotFound("delivery"))
}

async fn replay(by: By, At(id): At<DeliveryId>) -> Result<(StatusCode, Answer<ReplayedOne>), Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let scope = caller.organization_scope();
    let mut tx = app.db.write().await?;
    let found = deliveries::find(&mut tx, &scope, id).await?.ok_or(Error::NotFound("delivery"))?;
    let (subscription, _) = lock_listening(&mut tx, caller, found.subscription_id).await?;
    require_events(&app.declared(), caller, std::slice::from_ref(&found.event_type))?;
    // Read again now that it is locked.
    let found = deliveries::find(&mut tx, &scope, id).await?.ok_or(Error::NotFound("delivery"))?;
    if found.state != DeliveryState::Pending {
        room(&mut tx, &subscription).await?;
    }
    let done = match deliveries::replay(&mut tx, &found, app.clock.now()).await? {
        Replay::Again => Done::Queued,
        Replay::Hurried => Done::Hurried,
        Replay::InFlight => return Err(Error::conflict("delivery is being sent at this moment")),
        Replay::Behind => {
            return Err(Error::conflict(
                "delivery waits for an earlier event of its device: replay that one, or wait until it ended",
            ));
        }
    };
    let detail = json!({ "delivery_id": id, "seq": found.seq, "replay": done });
    by.record::<Subscriptions>(&mut tx, &subscription, "webhook.replayed", detail).await?;
    let delivery = deliveries::find(&mut tx, &scope, id).await?.ok_or(Error::NotFound("delivery"))?;
    tx.commit().await?;
    Outbox::of(app).wake();
    Ok((StatusCode::ACCEPTED, Answer(ReplayedOne { delivery, replay: done })))
}

async fn replay_range(
    by: By,
    At(id): At<SubscriptionId>,
    Json(body): Json<RangeBody>,
) -> Result<(StatusCode, Answer<Replayed>), Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    body.check()?;
    let mut tx = app.db.write().await?;
    let (subscription, listening) = lock_listening(&mut tx, caller, id).await?;
    require_events(&app.declared(), caller, &subscription.events)?;
    let room = room(&mut tx, &subscription).await?;
    let replayed = match body.state {
        Some(_) => {
            let range = Range { from: body.from_seq, to: body.to_seq, state: body.state, limit: room };
            let done = deliveries::replay_range(&mut tx, id, range, app.clock.now()).await?;
            Replayed { queued: done.count, next_seq: done.next_seq }
        }
        None => replay_events(&mut tx, app, &listening, subscription.org_id, &body, room).await?,
    };
    let detail = json!({
        "from_seq": body.from_seq, "to_seq": body.to_seq, "state": body.state, "queued": replayed.queued,
        "next_seq": replayed.next_seq,
    });
    by.record::<Subscriptions>(&mut tx, &subscription, "webhook.replayed", detail).await?;
    tx.commit().await?;
    Outbox::of(app).wake();
    Ok((StatusCode::ACCEPTED, Answer(replayed)))
}

/// Replays deliveries of the range that have ended, and queues events of it that were never sent to the subscription.
async fn replay_events(
    tx: &mut Tx,
    app: &App,
    listening: &Listening,
    org: OrgId,
    body: &RangeBody,
    room: u32,
) -> Result<Replayed, Error> {
    let now = app.clock.now();
    // Each number is at most one delivery.
    let to = body.to_seq.min(body.from_seq.saturating_add(i64::from(room) - 1));
    let range = Range { from: body.from_seq, to, state: None, limit: room };
    let again = deliveries::replay_range(tx, listening.id, range, now).await?;
    let found = events::list(tx, &app.declared().events, org, body.from_seq - 1, None, room).await?;
    let is_wanted =
        |stored: &&StoredEvent| stored.event.seq <= to && is_for(&app.declared(), listening, stored);
    let wanted = found.events.iter().filter(is_wanted);
    let new: Vec<_> = wanted.map(|stored| queue::of(app, listening, stored, now)).collect();
    let queued = deliveries::insert(tx, &new).await?;
    webhooks::note_caught_up(tx, listening.id, (body.from_seq, to), queued).await?;
    Ok(Replayed { queued: again.count + queued, next_seq: (to < body.to_seq).then_some(to + 1) })
}

/// Returns the locked subscription, in a state in which events can be queued for it.
async fn lock_listening(
    tx: &mut Tx,
    caller: &Caller,
    id: SubscriptionId,
) -> Result<(Subscription, Listening), Error> {
    let subscription = Subscription::lock(tx, &caller.organization_scope(), id).await?.ok_or(NOT_FOUND)?;
    let listening = webhooks::listening(tx, subscription.org_id).await?;
    let Some(listening) = listening.into_iter().find(|one| one.id == id) else {
        return Err(Error::conflict("subscription is disabled: enable it first"));
    };
    match rights::author_problem(&listening.author) {
        Some(problem) => Err(Error::conflict(format!("subscription sends nothing: {problem}"))),
        None => Ok((subscription, listening)),
    }
}

/// Returns how many more deliveries may wait, up to the limit of one call.
async fn room(tx: &mut Tx, subscription: &Subscription) -> Result<u32, Error> {
    let waiting = queue::Waiting(webhooks::pending(tx, subscription.org_id).await?);
    match u32::try_from(waiting.room(subscription.id)).unwrap_or(u32::MAX).min(RANGE_MAX) {
        0 => Err(Error::conflict(format!(
            "too many deliveries are waiting (at most {} of a subscription): wait until some ended",
            queue::WAITING_MAX
        ))),
        room => Ok(room),
    }
}

impl RangeBody {
    fn check(&self) -> Result<(), Error> {
        let mut checks = Checks::default();
        checks.require(self.from_seq >= 1, "from_seq", "must be 1 or more");
        checks.require(self.to_seq >= self.from_seq, "to_seq", "must not be less than from_seq");
        let is_long = self.to_seq.saturating_sub(self.from_seq) >= i64::from(RANGE_MAX);
        let fits = self.state.is_some() || !is_long;
        checks.require(fits, "to_seq", "the range must not have more than 1000 numbers; go on behind it");
        let is_end = self.state != Some(DeliveryState::Pending);
        checks.require(is_end, "state", "must be delivered or dead: what is pending is on its way");
        checks.done()
    }
}
