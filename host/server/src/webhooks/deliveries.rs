//! How deliveries went, and sending them again.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use heddle_core::page::{Cursor, CursorPage};
use heddle_core::webhook::DeliveryState;
use heddle_core::{DeliveryId, Permission, SubscriptionId};
use heddle_store::webhooks::deliveries::{self, Delivery};
use heddle_store::{events, webhooks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::queue;
use super::rights::is_for;
use super::subscriptions::{NOT_FOUND, deed, require_events};
use crate::app::SharedApp;
use crate::auth::Caller;
use crate::auth::trail;
use crate::http::access::Access;
use crate::http::error::Error;
use crate::http::extract::{At, Json, Origin, PER_PAGE_MAX, Params, walk_request};
use crate::http::routes::{Routes, doc};
use crate::tenancy::checks::Checks;
use crate::tenancy::organization_scope;

/// Events of one range that are queued anew.
const RANGE_MAX: i64 = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    /// The `next_cursor` of the rows before; not together with `page`.
    cursor: Option<String>,
    state: Option<DeliveryState>,
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
    /// Only deliveries that ended so, of a range of any length: `dead` sends again what nobody tries any more. Absent,
    /// events that are still there are sent although they never were, and the range has at most 1000 numbers.
    state: Option<DeliveryState>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookReplayed")]
struct Replayed {
    /// Deliveries that are pending now and were not before.
    queued: u64,
}

pub(super) fn routes() -> Routes {
    let one = "/webhooks/deliveries/{delivery_id}";
    let read = Access::Permission(Permission::SettingsRead);
    let write = Access::Permission(Permission::SettingsWrite);
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
            doc("Send a range of events again").body::<RangeBody>().answers::<Replayed>(202),
        )
        .get(one, read, get, doc("One delivery").answers::<Delivery>(200))
        .post(
            &format!("{one}/replay"),
            write,
            replay,
            doc("Send a delivery again, under the same id").answers::<Delivery>(202),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<SubscriptionId>,
    Params(query): Params<ListQuery>,
) -> Result<Answer<CursorPage<Delivery>>, Error> {
    // What was delivered is of all sites.
    caller.require_all_sites()?;
    let request = walk_request(query.page, query.per_page, query.cursor.as_deref(), PER_PAGE_MAX)?;
    let scope = organization_scope(&caller);
    let mut tx = app.db.read().await?;
    webhooks::find(&mut tx, &scope, id).await?.ok_or(NOT_FOUND)?;
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
    let mut tx = app.db.read().await?;
    let found = deliveries::find(&mut tx, &organization_scope(&caller), id).await?;
    found.map(Answer).ok_or(Error::NotFound("delivery"))
}

async fn replay(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<DeliveryId>,
) -> Result<(StatusCode, Answer<Delivery>), Error> {
    caller.require_all_sites()?;
    let scope = organization_scope(&caller);
    let mut tx = app.db.write().await?;
    let found = deliveries::find(&mut tx, &scope, id).await?.ok_or(Error::NotFound("delivery"))?;
    let subscription = webhooks::find(&mut tx, &scope, found.subscription_id).await?.ok_or(NOT_FOUND)?;
    require_events(&caller, std::slice::from_ref(&found.event_type))?;
    if !deliveries::replay(&mut tx, id, app.clock.now()).await? {
        return Err(Error::conflict("delivery is on its way already: wait until it is delivered or dead"));
    }
    let detail = json!({ "delivery_id": id, "seq": found.seq });
    trail::record(&mut tx, &app, &origin, deed(&caller, &subscription, "webhook.replayed", detail)).await?;
    let now = deliveries::find(&mut tx, &scope, id).await?.ok_or(Error::NotFound("delivery"))?;
    tx.commit().await?;
    app.webhooks.wake();
    Ok((StatusCode::ACCEPTED, Answer(now)))
}

async fn replay_range(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<SubscriptionId>,
    Json(body): Json<RangeBody>,
) -> Result<(StatusCode, Answer<Replayed>), Error> {
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    checks.require(body.from_seq >= 1, "from_seq", "must be 1 or more");
    checks.require(body.to_seq >= body.from_seq, "to_seq", "must not be less than from_seq");
    let is_long = body.to_seq.saturating_sub(body.from_seq) >= RANGE_MAX;
    let fits = body.state.is_some() || !is_long;
    checks.require(fits, "to_seq", "the range must not have more than 1000 numbers; go on behind it");
    let is_end = body.state != Some(DeliveryState::Pending);
    checks.require(is_end, "state", "must be delivered or dead: what is pending is on its way");
    checks.done()?;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let subscription = webhooks::lock(&mut tx, &organization_scope(&caller), id).await?.ok_or(NOT_FOUND)?;
    let listening = webhooks::listening(&mut tx, subscription.org_id).await?;
    let Some(listening) = listening.into_iter().find(|one| one.id == id) else {
        return Err(Error::conflict(
            "subscription is disabled, or its author may not have events sent: enable it, or change its events",
        ));
    };
    require_events(&caller, &subscription.events)?;
    let range = (body.from_seq, body.to_seq);
    let mut queued = deliveries::replay_range(&mut tx, id, range, body.state, now).await?;
    if body.state.is_none() {
        let limit = u32::try_from(RANGE_MAX).unwrap_or(u32::MAX);
        let found = events::list(&mut tx, subscription.org_id, body.from_seq - 1, &[], limit).await?;
        let wanted = found
            .events
            .iter()
            .filter(|stored| stored.event.seq <= body.to_seq && is_for(&listening, stored));
        let new: Vec<_> = wanted.map(|stored| queue::of(&app, &listening, stored, now)).collect();
        queued += deliveries::insert(&mut tx, &new).await?;
    }
    let detail =
        json!({ "from_seq": body.from_seq, "to_seq": body.to_seq, "state": body.state, "queued": queued });
    trail::record(&mut tx, &app, &origin, deed(&caller, &subscription, "webhook.replayed", detail)).await?;
    tx.commit().await?;
    app.webhooks.wake();
    Ok((StatusCode::ACCEPTED, Answer(Replayed { queued })))
}
