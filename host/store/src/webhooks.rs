//! Who gets events by HTTP: subscriptions, their templates, and what is on its way to them.

pub mod deliveries;
mod lanes;
pub mod sending;
pub mod templates;

use std::collections::HashMap;

use heddle_core::{OrgId, Role, SiteId, SubscriptionId, Timestamp, UserId, WebhookTemplateId};
use sqlx::FromRow;
use sqlx::types::Json;

use crate::select::{Bind, Select, affected};
use crate::sort::{InOrder, Key, Sorted};
use crate::{Result, Scope, Set, Tx};

#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Subscription {
    pub id: SubscriptionId,
    pub org_id: OrgId,
    pub name: String,
    pub url: String,
    #[sqlx(json)]
    pub events: Vec<String>,
    pub site_id: Option<SiteId>,
    pub template_id: Option<WebhookTemplateId>,
    #[sqlx(json)]
    pub header_names: Vec<String>,
    pub is_enabled: bool,
    pub after_seq: i64,
    pub author_id: UserId,
    pub consecutive_failures: i64,
    pub last_delivered_at: Option<Timestamp>,
    pub last_failed_at: Option<Timestamp>,
    pub last_error: Option<String>,
    /// Events that were not queued because too many were waiting.
    pub unqueued: i64,
    /// Number of the first of them.
    pub unqueued_from: Option<i64>,
    /// Number of the last of them.
    pub unqueued_to: Option<i64>,
    #[sqlx(flatten)]
    pub author: Author,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Sorted for Subscription {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(s.name)"),
        Key::of("created_at", "s.created_at"),
        Key::of("updated_at", "s.updated_at"),
        Key::nullable("last_delivered_at", "s.last_delivered_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["s.id"];
}

/// Whoever a subscription sends by the rights of, as they are now.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Author {
    #[sqlx(rename = "author_name")]
    pub username: String,
    #[sqlx(rename = "author_role")]
    pub role: Role,
    /// The account is there, and nobody has disabled it.
    #[sqlx(rename = "author_is_active")]
    pub is_active: bool,
    /// Of the subscription's organization, or of all.
    #[sqlx(rename = "author_is_member")]
    pub is_member: bool,
    #[sqlx(rename = "author_has_all_sites")]
    pub has_all_sites: bool,
}

#[derive(Clone)]
pub struct NewSubscription {
    pub id: SubscriptionId,
    pub org_id: OrgId,
    pub name: String,
    pub url: String,
    pub events: Vec<String>,
    pub site_id: Option<SiteId>,
    pub template_id: Option<WebhookTemplateId>,
    pub header_names: Vec<String>,
    pub secret: Vec<u8>,
    pub is_enabled: bool,
    pub after_seq: i64,
    pub author_id: UserId,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Clone, Default)]
pub struct SubscriptionUpdate {
    pub name: Option<String>,
    pub url: Option<String>,
    pub events: Option<Vec<String>>,
    pub site_id: Set<SiteId>,
    pub template_id: Set<WebhookTemplateId>,
    pub header_names: Option<Vec<String>>,
    pub secret: Option<Vec<u8>>,
    pub is_enabled: Option<bool>,
    pub after_seq: Option<i64>,
    pub author_id: Option<UserId>,
}

/// Who waits for events of an organization, and what its author may see now.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Listening {
    pub id: SubscriptionId,
    pub name: String,
    #[sqlx(json)]
    pub events: Vec<String>,
    pub site_id: Option<SiteId>,
    pub after_seq: i64,
    /// How many events were not queued.
    pub unqueued: i64,
    /// What administrators were told that stands against it.
    pub told_problem: Option<String>,
    #[sqlx(flatten)]
    pub author: Author,
}

/// Events that were not queued.
#[derive(Debug, Clone, Copy)]
pub struct Unqueued {
    pub count: i64,
    /// Number of the first.
    pub from: i64,
    /// Number of the last.
    pub to: i64,
}

/// The columns of [`Author`]: `s` is the subscription, `u` the user.
macro_rules! author {
    () => {
        "u.username AS author_name, u.role AS author_role,
        (u.is_active AND u.deleted_at IS NULL) AS author_is_active,
        (u.org_id = s.org_id OR u.role = 'super_admin') AS author_is_member,
        (NOT EXISTS (SELECT 1 FROM site_grant sg WHERE sg.user_id = u.id)) AS author_has_all_sites"
    };
}
use author;

const SELECT: &str = concat!(
    "SELECT s.id, s.org_id, s.name, s.url, s.events, s.site_id, s.template_id, s.header_names, s.is_enabled,
    s.after_seq, s.author_id, s.consecutive_failures, s.last_delivered_at, s.last_failed_at, s.last_error, s.unqueued,
    s.unqueued_from, s.unqueued_to, s.created_at, s.updated_at, ",
    author!()
);
const FROM: &str = "FROM webhook_subscription s JOIN app_user u ON u.id = s.author_id";
/// Most subscriptions of one organization.
pub const SUBSCRIPTIONS_MAX: i64 = 100;
/// Some may be made at the same moment, beyond the most.
const LISTENING_MAX: i64 = 1_000;

fn within(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "s.org_id", None).and("s.deleted_at IS NULL")
}

pub async fn insert(tx: &mut Tx, new: &NewSubscription) -> Result<Subscription> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO webhook_subscription (id, org_id, name, url, events, site_id, template_id, header_names, secret,
            is_enabled, after_seq, author_id, consecutive_failures, unqueued, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, 0, $13, $13)"
        )
        .bind(new.id)
        .bind(new.org_id)
        .bind(&new.name)
        .bind(&new.url)
        .bind(Json(&new.events))
        .bind(new.site_id)
        .bind(new.template_id)
        .bind(Json(&new.header_names))
        .bind(&new.secret)
        .bind(new.is_enabled)
        .bind(new.after_seq)
        .bind(new.author_id)
        .bind(new.now)
    );
    let made = find(tx, &Scope::organization(new.org_id), new.id).await?;
    made.ok_or_else(|| crate::Error::Internal("a subscription that was just made is not there".into()))
}

pub async fn find(tx: &mut Tx, scope: &Scope, id: SubscriptionId) -> Result<Option<Subscription>> {
    within(scope).and_bind("s.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The subscription as it is until the transaction ends: nobody else changes it meanwhile.
pub async fn lock(tx: &mut Tx, scope: &Scope, id: SubscriptionId) -> Result<Option<Subscription>> {
    within(scope).and_bind("s.id = ?", Bind::Id(id.0)).one_locked(tx, "s").await
}

/// Those of these that are there and not removed, locked until the transaction ends, and whether each is enabled.
///
/// Everybody locks them in this one order, and before their deliveries: whoever queues, claims, finishes or removes what
/// is on its way to a subscription.
pub async fn lock_all(tx: &mut Tx, ids: &[SubscriptionId]) -> Result<HashMap<SubscriptionId, bool>> {
    locked(tx, ids, true).await
}

/// The same without those that somebody else has locked: they have their turn another time.
async fn lock_free(tx: &mut Tx, ids: &[SubscriptionId]) -> Result<HashMap<SubscriptionId, bool>> {
    locked(tx, ids, false).await
}

async fn locked(tx: &mut Tx, ids: &[SubscriptionId], waits: bool) -> Result<HashMap<SubscriptionId, bool>> {
    let rows: Vec<(SubscriptionId, bool)> =
        Select::new("SELECT s.id, s.is_enabled", "FROM webhook_subscription s")
            .and("s.deleted_at IS NULL")
            .and_in("s.id", ids.iter().map(|id| Bind::Id(id.0)))
            .all_locked(tx, "s.id", i64::try_from(ids.len()).unwrap_or(i64::MAX), ("s", waits))
            .await?;
    Ok(rows.into_iter().collect())
}

pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    page: impl Into<InOrder<Subscription>>,
) -> Result<(Vec<Subscription>, i64)> {
    within(scope).search(&["s.name"], search).page(tx, page).await
}

/// How many an organization has.
pub async fn count(tx: &mut Tx, org: OrgId) -> Result<i64> {
    within(&Scope::organization(org)).count(tx).await
}

/// The sealed secret of a subscription.
pub async fn find_sealed(tx: &mut Tx, id: SubscriptionId) -> Result<Option<Vec<u8>>> {
    Ok(on!(tx, conn => sqlx::query_scalar(
        "SELECT secret FROM webhook_subscription WHERE id = $1 AND deleted_at IS NULL")
        .bind(id)
        .fetch_optional(conn)
        .await)?)
}

pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: SubscriptionId,
    update: &SubscriptionUpdate,
    now: Timestamp,
) -> Result<Option<Subscription>> {
    if find(tx, scope, id).await?.is_none() {
        return Ok(None);
    }
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_subscription
        SET name = COALESCE($2, name), url = COALESCE($3, url), events = COALESCE($4, events),
            site_id = CASE WHEN $5 THEN $6 ELSE site_id END,
            template_id = CASE WHEN $7 THEN $8 ELSE template_id END,
            header_names = COALESCE($9, header_names), secret = COALESCE($10, secret),
            is_enabled = COALESCE($11, is_enabled), after_seq = COALESCE($12, after_seq),
            author_id = COALESCE($13, author_id), updated_at = $14
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(update.name.as_ref())
        .bind(update.url.as_ref())
        .bind(update.events.as_ref().map(Json))
        .bind(update.site_id.is_set())
        .bind(update.site_id.value().copied())
        .bind(update.template_id.is_set())
        .bind(update.template_id.value().copied())
        .bind(update.header_names.as_ref().map(Json))
        .bind(update.secret.as_ref())
        .bind(update.is_enabled)
        .bind(update.after_seq)
        .bind(update.author_id)
        .bind(now)
    );
    find(tx, scope, id).await
}

/// Hides the subscription, which the caller has locked; what was on its way to it is dead.
pub async fn remove(tx: &mut Tx, scope: &Scope, id: SubscriptionId, now: Timestamp) -> Result<bool> {
    if find(tx, scope, id).await?.is_none() {
        return Ok(false);
    }
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_delivery
        SET state = 'dead', next_at = NULL, owner = NULL, last_error = 'the subscription was removed', ended_at = $2
        WHERE subscription_id = $1 AND state = 'pending'"
        )
        .bind(id)
        .bind(now)
    );
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE webhook_subscription SET deleted_at = $2, updated_at = $2, due_at = NULL
            WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Enabled subscriptions of an organization, in the order in which they are locked.
pub async fn listening(tx: &mut Tx, org: OrgId) -> Result<Vec<Listening>> {
    Select::new(
        concat!(
            "SELECT s.id, s.name, s.events, s.site_id, s.after_seq, s.unqueued, s.told_problem, ",
            author!()
        ),
        FROM,
    )
    .and_bind("s.org_id = ?", Bind::Id(org.0))
    .and("s.is_enabled AND s.deleted_at IS NULL")
    .all(tx, "s.id", LISTENING_MAX)
    .await
}

/// How many deliveries are pending, by enabled subscription of an organization that has any.
pub async fn pending(tx: &mut Tx, org: OrgId) -> Result<HashMap<SubscriptionId, i64>> {
    let rows: Vec<(SubscriptionId, i64)> = on!(tx, conn => sqlx::query_as("
        SELECT d.subscription_id, COUNT(*) FROM webhook_subscription s
        JOIN webhook_delivery d ON d.subscription_id = s.id AND d.state = 'pending'
        WHERE s.org_id = $1 AND s.is_enabled AND s.deleted_at IS NULL
        GROUP BY d.subscription_id")
        .bind(org)
        .fetch_all(conn)
        .await)?;
    Ok(rows.into_iter().collect())
}

/// Notes events that were not queued.
pub async fn note_unqueued(tx: &mut Tx, id: SubscriptionId, missed: Unqueued) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_subscription
        SET unqueued = unqueued + $2, unqueued_from = COALESCE(unqueued_from, $3), unqueued_to = $4
        WHERE id = $1"
        )
        .bind(id)
        .bind(missed.count)
        .bind(missed.from)
        .bind(missed.to)
    );
    Ok(())
}

/// Events up to this number were queued although they were not at first: `queued` of them.
pub async fn note_caught_up(
    tx: &mut Tx,
    id: SubscriptionId,
    (from, to): (i64, i64),
    queued: u64,
) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_subscription
        SET unqueued = CASE WHEN unqueued_to <= $3 THEN 0 WHEN unqueued > $4 THEN unqueued - $4 ELSE 1 END,
            unqueued_from = CASE WHEN unqueued_to <= $3 THEN NULL ELSE $3 + 1 END,
            unqueued_to = CASE WHEN unqueued_to <= $3 THEN NULL ELSE unqueued_to END
        WHERE id = $1 AND unqueued_from >= $2 AND unqueued_from <= $3"
        )
        .bind(id)
        .bind(from)
        .bind(to)
        .bind(i64::try_from(queued).unwrap_or(i64::MAX))
    );
    Ok(())
}

/// Notes what administrators were told that stands against a subscription; `None` when nothing does any more.
pub async fn note_told(tx: &mut Tx, id: SubscriptionId, problem: Option<&str>) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE webhook_subscription SET told_problem = $2 WHERE id = $1").bind(id).bind(problem)
    );
    Ok(())
}

/// Notes how a delivery went; `None` is a success.
pub async fn note(tx: &mut Tx, id: SubscriptionId, failure: Option<&str>, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_subscription
        SET consecutive_failures = CASE WHEN CAST($2 AS TEXT) IS NULL THEN 0 ELSE consecutive_failures + 1 END,
            last_delivered_at = CASE WHEN CAST($2 AS TEXT) IS NULL THEN $3 ELSE last_delivered_at END,
            last_failed_at = CASE WHEN CAST($2 AS TEXT) IS NULL THEN last_failed_at ELSE $3 END,
            last_error = CAST($2 AS TEXT)
        WHERE id = $1"
        )
        .bind(id)
        .bind(failure)
        .bind(now)
    );
    Ok(())
}

#[cfg(test)]
mod tests;
