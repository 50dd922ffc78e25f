//! Where notifications go. Secrets are sealed by the caller and never serialize.

use heddle_core::notification::ChannelKind;
use heddle_core::{ChannelId, OrgId, Timestamp};
use serde_json::Value;
use sqlx::FromRow;

use crate::select::{Bind, Select, Set, affected};
use crate::sort::{InOrder, Key, Sorted};
use crate::{Result, Scope, Tx};

#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Channel {
    pub id: ChannelId,
    pub org_id: OrgId,
    pub kind: ChannelKind,
    pub label: String,
    pub is_enabled: bool,
    /// What the kind needs, without its secret.
    pub settings: Value,
    pub has_secret: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Channel {
    const KEYS: &'static [Key] = &[
        Key::of("label", "LOWER(c.label)"),
        Key::of("kind", "c.kind"),
        Key::of("created_at", "c.created_at"),
        Key::of("updated_at", "c.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["c.id"];
}

/// A channel with its sealed secret.
#[derive(Clone, FromRow)]
pub struct SealedChannel {
    #[sqlx(flatten)]
    pub channel: Channel,
    pub secret: Option<Vec<u8>>,
}

#[derive(Clone)]
pub struct NewChannel {
    pub id: ChannelId,
    pub org_id: OrgId,
    pub kind: ChannelKind,
    pub label: String,
    pub is_enabled: bool,
    pub settings: Value,
    pub secret: Option<Vec<u8>>,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Clone, Default)]
pub struct ChannelUpdate {
    pub label: Option<String>,
    pub is_enabled: Option<bool>,
    pub settings: Option<Value>,
    pub secret: Set<Vec<u8>>,
}

const SELECT: &str = "SELECT c.id, c.org_id, c.kind, c.label, c.is_enabled, c.settings,
    (c.secret IS NOT NULL) AS has_secret, c.created_at, c.updated_at, c.deleted_at";
const SELECT_SEALED: &str = "SELECT c.id, c.org_id, c.kind, c.label, c.is_enabled, c.settings,
    (c.secret IS NOT NULL) AS has_secret, c.created_at, c.updated_at, c.deleted_at, c.secret";
const FROM: &str = "FROM channel c";

pub async fn insert(tx: &mut Tx, new: &NewChannel) -> Result<Channel> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO channel (id, org_id, kind, label, is_enabled, settings, secret, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
        RETURNING id, org_id, kind, label, is_enabled, settings, (secret IS NOT NULL) AS has_secret,
            created_at, updated_at, deleted_at")
        .bind(new.id).bind(new.org_id).bind(new.kind).bind(&new.label).bind(new.is_enabled)
        .bind(&new.settings).bind(new.secret.as_ref()).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

pub async fn find(tx: &mut Tx, scope: &Scope, id: ChannelId) -> Result<Option<Channel>> {
    live(SELECT, scope).and_bind("c.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The channel as it is until the transaction ends: nobody else changes it meanwhile.
pub async fn lock(tx: &mut Tx, scope: &Scope, id: ChannelId) -> Result<Option<Channel>> {
    live(SELECT, scope).and_bind("c.id = ?", Bind::Id(id.0)).one_locked(tx, "c").await
}

/// The channel with what it takes to send there.
pub async fn find_sealed(tx: &mut Tx, scope: &Scope, id: ChannelId) -> Result<Option<SealedChannel>> {
    live(SELECT_SEALED, scope).and_bind("c.id = ?", Bind::Id(id.0)).one(tx).await
}

pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    kind: Option<ChannelKind>,
    search: Option<&str>,
    page: impl Into<InOrder<Channel>>,
) -> Result<(Vec<Channel>, i64)> {
    live(SELECT, scope)
        .and_some("c.kind = ?", kind.map(|kind| Bind::Text(kind.to_string())))
        .search(&["c.label"], search)
        .page(tx, page)
        .await
}

pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: ChannelId,
    update: &ChannelUpdate,
    now: Timestamp,
) -> Result<Option<Channel>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE channel
        SET label = COALESCE($3, label), is_enabled = COALESCE($4, is_enabled),
            settings = COALESCE($5, settings), secret = CASE WHEN $6 THEN $7 ELSE secret END, updated_at = $8
        WHERE id = $1 AND deleted_at IS NULL AND ($9 OR org_id = $2)
        RETURNING id, org_id, kind, label, is_enabled, settings, (secret IS NOT NULL) AS has_secret,
            created_at, updated_at, deleted_at")
        .bind(id).bind(scope.org).bind(update.label.as_ref()).bind(update.is_enabled)
        .bind(update.settings.as_ref()).bind(update.secret.is_set()).bind(update.secret.value())
        .bind(now).bind(scope.org.is_none())
        .fetch_optional(conn)
        .await)?)
}

/// Hides the channel; false when there is none to hide.
pub async fn remove(tx: &mut Tx, scope: &Scope, id: ChannelId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE channel SET deleted_at = $2, updated_at = $2
        WHERE id = $1 AND deleted_at IS NULL AND ($3 OR org_id = $4)"
        )
        .bind(id)
        .bind(now)
        .bind(scope.org.is_none())
        .bind(scope.org)
    );
    Ok(rows == 1)
}

/// Brings a removed channel back.
pub async fn restore(tx: &mut Tx, scope: &Scope, id: ChannelId, now: Timestamp) -> Result<Option<Channel>> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE channel SET deleted_at = NULL, updated_at = $2
        WHERE id = $1 AND deleted_at IS NOT NULL AND ($3 OR org_id = $4)"
        )
        .bind(id)
        .bind(now)
        .bind(scope.org.is_none())
        .bind(scope.org)
    );
    if rows == 1 { find(tx, scope, id).await } else { Ok(None) }
}

fn live(select: &'static str, scope: &Scope) -> Select {
    Select::new(select, FROM).within(scope, "c.org_id", None).and("c.deleted_at IS NULL")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, on_both, page};

    fn new(world: &World, label: &str) -> NewChannel {
        NewChannel {
            id: world.clock.new_id(),
            org_id: world.org,
            kind: ChannelKind::Ntfy,
            label: label.to_owned(),
            is_enabled: true,
            settings: serde_json::json!({ "topic": "alerts" }),
            secret: Some(vec![1, 2]),
            now: world.clock.now(),
        }
    }

    on_both! {
        async fn a_channel_is_seen_changed_removed_and_brought_back_within_its_organization(db) {
            let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
            let mut tx = db.write().await.unwrap();
            let made = insert(&mut tx, &new(&a, "Night shift")).await.unwrap();
            insert(&mut tx, &new(&b, "Others")).await.unwrap();
            assert!(made.has_secret && made.is_enabled);
            assert_eq!(find(&mut tx, &a.scope(), made.id).await.unwrap().unwrap(), made);
            assert_eq!(lock(&mut tx, &a.scope(), made.id).await.unwrap().unwrap(), made);
            assert!(find(&mut tx, &b.scope(), made.id).await.unwrap().is_none());
            let sealed = find_sealed(&mut tx, &a.scope(), made.id).await.unwrap().unwrap();
            assert_eq!((sealed.channel, sealed.secret), (made.clone(), Some(vec![1, 2])));
            let now = a.clock.now();
            let change = ChannelUpdate { is_enabled: Some(false), secret: Set::Clear, ..ChannelUpdate::default() };
            assert!(update(&mut tx, &b.scope(), made.id, &change, now).await.unwrap().is_none());
            let changed = update(&mut tx, &a.scope(), made.id, &change, now).await.unwrap().unwrap();
            assert_eq!((changed.is_enabled, changed.has_secret, changed.label.as_str()), (false, false, "Night shift"));
            let (all, total) = list(&mut tx, &Scope::everything(), None, Some("night"), page()).await.unwrap();
            assert_eq!((all.len(), total), (1, 1));
            let (none, _) = list(&mut tx, &a.scope(), Some(ChannelKind::Email), None, page()).await.unwrap();
            assert!(none.is_empty());
            assert!(!remove(&mut tx, &b.scope(), made.id, now).await.unwrap());
            assert!(remove(&mut tx, &a.scope(), made.id, now).await.unwrap());
            assert!(find(&mut tx, &a.scope(), made.id).await.unwrap().is_none());
            assert!(restore(&mut tx, &b.scope(), made.id, now).await.unwrap().is_none());
            assert!(restore(&mut tx, &a.scope(), made.id, now).await.unwrap().is_some());
        }
    }
}
