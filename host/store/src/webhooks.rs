//! Receivers of events by HTTP: subscriptions, their templates, and what is on its way to them.

pub mod deliveries;
mod lanes;
pub mod sending;
pub mod templates;

use std::collections::HashMap;

use heddle_core::{OrgId, Role, SiteId, Timestamp, UserId};
use serde_json::json;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::{Bind, Scope, Select, Set, affected};
use crate::sort::{InOrder, Key, Sorted};
use crate::webhooks::templates::WebhookTemplateId;

heddle_core::ids! {
    /// A receiver of events by HTTP.
    pub SubscriptionId,
}

/// A receiver of events: a row of `webhook_subscription` with its author, and without its sealed secrets.
/// `url` is the one that is shown, without its query. Events up to the number `after_seq` are not for it.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Subscription {
    pub id: SubscriptionId,
    /// How often people have edited it.
    pub revision: i64,
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
        Key::of("name", "LOWER(webhook_subscription.name)"),
        Key::of("created_at", "webhook_subscription.created_at"),
        Key::of("updated_at", "webhook_subscription.updated_at"),
        Key::nullable("last_delivered_at", "webhook_subscription.last_delivered_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["webhook_subscription.id"];
}

/// The author whose rights a subscription sends by, as they are now.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Author {
    #[sqlx(rename = "author_name")]
    pub username: String,
    #[sqlx(rename = "author_role")]
    pub role: Role,
    /// The account is there, and is not disabled.
    #[sqlx(rename = "author_is_active")]
    pub is_active: bool,
    /// Of the subscription's organization, or of all.
    #[sqlx(rename = "author_is_member")]
    pub is_member: bool,
    #[sqlx(rename = "author_has_all_sites")]
    pub has_all_sites: bool,
}

/// A row of `webhook_subscription` about to be written. `url` is the one that is shown, without its query.
/// `secret` holds the whole URL, the signing secret and the values of the headers, sealed for its id.
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

/// A subscription that waits for events of an organization, and what its author may see now.
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
    /// The problem of the subscription that administrators were notified of.
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

/// The columns of [`Author`]: of a subscription under this name, and of `u`, its user.
macro_rules! author {
    ($subscription:literal) => {
        concat!(
            "u.username AS author_name, u.role AS author_role,
        (u.is_active AND u.deleted_at IS NULL) AS author_is_active,
        (u.org_id = ",
            $subscription,
            ".org_id OR u.role = 'super_admin') AS author_is_member,
        (NOT EXISTS (SELECT 1 FROM site_grant sg WHERE sg.user_id = u.id)) AS author_has_all_sites"
        )
    };
}
use author;

revised!(Subscription);

impl Object for Subscription {
    type Id = SubscriptionId;
    const TABLE: Table = table!(
        "webhook_subscription",
        concat!(
            "webhook_subscription.id, webhook_subscription.revision, webhook_subscription.org_id, webhook_subscription.name, webhook_subscription.url,
            webhook_subscription.events, webhook_subscription.site_id, webhook_subscription.template_id,
            webhook_subscription.header_names, webhook_subscription.is_enabled, webhook_subscription.after_seq,
            webhook_subscription.author_id, webhook_subscription.consecutive_failures,
            webhook_subscription.last_delivered_at, webhook_subscription.last_failed_at,
            webhook_subscription.last_error, webhook_subscription.unqueued, webhook_subscription.unqueued_from,
            webhook_subscription.unqueued_to, webhook_subscription.created_at, webhook_subscription.updated_at, ",
            author!("webhook_subscription")
        ),
        org: "org_id",
        join: "JOIN app_user u ON u.id = webhook_subscription.author_id"
    );

    fn organization(&self) -> OrgId {
        self.org_id
    }

    /// Makes its pending deliveries dead letters. The caller has locked the subscription.
    async fn remove(tx: &mut Tx, scope: &Scope, id: SubscriptionId, now: Timestamp) -> Result<bool> {
        if !object::hide::<Self>(tx, scope, id, Columns::default().null("due_at"), now).await? {
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
        Ok(true)
    }
}

/// Most subscriptions of one organization.
pub const SUBSCRIPTIONS_MAX: i64 = 100;
/// Some may be made at the same moment, beyond the most.
const LISTENING_MAX: i64 = 1_000;

/// Writes the subscription and returns it. The caller checks [`SUBSCRIPTIONS_MAX`], and that the site and the
/// template belong to the organization.
pub async fn insert(tx: &mut Tx, new: &NewSubscription) -> Result<Subscription> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("name", &new.name)
        .with("url", &new.url)
        .with("events", json!(new.events))
        .or_null("site_id", new.site_id.map(|id| id.0))
        .or_null("template_id", new.template_id.map(|id| id.0))
        .with("header_names", json!(new.header_names))
        .with("secret", &new.secret)
        .with("is_enabled", new.is_enabled)
        .with("after_seq", new.after_seq)
        .with("author_id", new.author_id.0)
        .with("consecutive_failures", 0)
        .with("unqueued", 0);
    object::insert(tx, new.id, columns, new.now).await
}

/// Locks those of these subscriptions that exist and are not removed, until the transaction ends; returns whether each
/// is enabled.
///
/// Every function that queues, claims, finishes or removes deliveries locks their subscriptions in this one order, and
/// before the deliveries.
pub async fn lock_all(tx: &mut Tx, ids: &[SubscriptionId]) -> Result<HashMap<SubscriptionId, bool>> {
    locked(tx, ids, true).await
}

/// The same without those that another transaction has locked: they have their turn another time.
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

/// Returns a page of the subscriptions that are not removed, and how many there are on all pages.
/// Disabled ones are among them. The oldest come first unless the page names another order.
/// `search` finds a part of the name.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    page: impl Into<InOrder<Subscription>>,
) -> Result<(Vec<Subscription>, i64)> {
    object::live::<Subscription>(scope).search(&["webhook_subscription.name"], search).page(tx, page).await
}

/// How many an organization has.
pub async fn count(tx: &mut Tx, org: OrgId) -> Result<i64> {
    object::live::<Subscription>(&Scope::organization(org)).count(tx).await
}

/// The sealed secret of a subscription.
pub async fn find_sealed(tx: &mut Tx, id: SubscriptionId) -> Result<Option<Vec<u8>>> {
    Ok(on!(tx, conn => sqlx::query_scalar(
        "SELECT secret FROM webhook_subscription WHERE id = $1 AND deleted_at IS NULL")
        .bind(id)
        .fetch_optional(conn)
        .await)?)
}

/// Writes the given fields, raises the revision, and returns the subscription as it is then.
/// `None` means that the scope's organization has no such subscription, or that it is removed.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: SubscriptionId,
    update: &SubscriptionUpdate,
    now: Timestamp,
) -> Result<Option<Subscription>> {
    let columns = Columns::default()
        .or_keep("name", update.name.as_ref())
        .or_keep("url", update.url.as_ref())
        .or_keep("events", update.events.as_ref().map(|events| json!(events)))
        .set("site_id", &update.site_id.map(|id| id.0))
        .set("template_id", &update.template_id.map(|id| id.0))
        .or_keep("header_names", update.header_names.as_ref().map(|names| json!(names)))
        .or_keep("secret", update.secret.as_ref())
        .or_keep("is_enabled", update.is_enabled)
        .or_keep("after_seq", update.after_seq)
        .or_keep("author_id", update.author_id.map(|id| id.0));
    object::update(tx, scope, id, columns, now).await
}

/// Enabled subscriptions of an organization, in the order in which they are locked.
pub async fn listening(tx: &mut Tx, org: OrgId) -> Result<Vec<Listening>> {
    Select::new(
        concat!(
            "SELECT webhook_subscription.id, webhook_subscription.name, webhook_subscription.events, webhook_subscription.site_id, webhook_subscription.after_seq, webhook_subscription.unqueued, webhook_subscription.told_problem, ",
            author!("webhook_subscription")
        ),
        Subscription::TABLE.from,
    )
    .and_bind("webhook_subscription.org_id = ?", Bind::Id(org.0))
    .and("webhook_subscription.is_enabled AND webhook_subscription.deleted_at IS NULL")
    .all(tx, "webhook_subscription.id", LISTENING_MAX)
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

/// Records the problem of a subscription that administrators were notified of; `None` when there is no problem now.
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
