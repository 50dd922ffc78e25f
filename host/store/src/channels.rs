//! Where notifications go. Secrets are sealed by the caller and never serialize.

use heddle_core::notification::ChannelKind;
use heddle_core::{OrgId, Timestamp};
use serde_json::Value;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::{Bind, Scope, Set};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    /// Where notifications go.
    pub ChannelId,
}

/// A destination of an organization's notifications: a row of `channel` without its sealed secret.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Channel {
    pub id: ChannelId,
    /// How often people have edited it.
    pub revision: i64,
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
        Key::of("label", "LOWER(channel.label)"),
        Key::of("kind", "channel.kind"),
        Key::of("created_at", "channel.created_at"),
        Key::of("updated_at", "channel.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["channel.id"];
}

/// A channel with its sealed secret.
#[derive(Clone, FromRow)]
pub struct SealedChannel {
    #[sqlx(flatten)]
    pub channel: Channel,
    pub secret: Option<Vec<u8>>,
}

/// A row of `channel` about to be written. `secret` is sealed for its id; a channel may have none.
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

/// The columns of [`Channel`].
macro_rules! channel {
    () => {
        "channel.id, channel.revision, channel.org_id, channel.kind, channel.label, channel.is_enabled, channel.settings,
        (channel.secret IS NOT NULL) AS has_secret, channel.created_at, channel.updated_at, channel.deleted_at"
    };
}

revised!(Channel);

impl Object for Channel {
    type Id = ChannelId;
    const TABLE: Table = table!("channel", channel!(), org: "org_id");

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

/// Writes the channel and returns it. Two channels of an organization may have the same label.
pub async fn insert(tx: &mut Tx, new: &NewChannel) -> Result<Channel> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("kind", new.kind.to_string())
        .with("label", &new.label)
        .with("is_enabled", new.is_enabled)
        .with("settings", &new.settings)
        .or_null("secret", new.secret.as_ref());
    object::insert(tx, new.id, columns, new.now).await
}

/// The channel with what it takes to send there.
pub async fn find_sealed(tx: &mut Tx, scope: &Scope, id: ChannelId) -> Result<Option<SealedChannel>> {
    let sealed = object::live_as::<Channel>(concat!("SELECT ", channel!(), ", channel.secret"), scope);
    sealed.and_bind(Channel::TABLE.is, Bind::Id(id.0)).one(tx).await
}

/// Returns a page of the channels that are not removed, enabled or not, and how many there are on all pages.
/// The oldest come first unless the page names another order. `search` finds a part of the label.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    kind: Option<ChannelKind>,
    search: Option<&str>,
    page: impl Into<InOrder<Channel>>,
) -> Result<(Vec<Channel>, i64)> {
    object::live::<Channel>(scope)
        .and_some("channel.kind = ?", kind.map(|kind| Bind::Text(kind.to_string())))
        .search(&["channel.label"], search)
        .page(tx, page)
        .await
}

/// Writes the given fields, raises the revision, and returns the channel as it is then.
/// `None` means that the scope's organization has no such channel, or that it is removed.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: ChannelId,
    update: &ChannelUpdate,
    now: Timestamp,
) -> Result<Option<Channel>> {
    let columns = Columns::default()
        .or_keep("label", update.label.as_ref())
        .or_keep("is_enabled", update.is_enabled)
        .or_keep("settings", update.settings.as_ref())
        .set("secret", &update.secret);
    object::update(tx, scope, id, columns, now).await
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
            assert_eq!(Channel::find(&mut tx, &a.scope(), made.id).await.unwrap().unwrap(), made);
            assert_eq!(Channel::lock(&mut tx, &a.scope(), made.id).await.unwrap().unwrap(), made);
            assert!(Channel::find(&mut tx, &b.scope(), made.id).await.unwrap().is_none());
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
            assert!(!Channel::remove(&mut tx, &b.scope(), made.id, now).await.unwrap());
            assert!(Channel::remove(&mut tx, &a.scope(), made.id, now).await.unwrap());
            assert!(Channel::find(&mut tx, &a.scope(), made.id).await.unwrap().is_none());
            assert!(Channel::restore(&mut tx, &b.scope(), made.id, now).await.unwrap().is_none());
            assert!(Channel::restore(&mut tx, &a.scope(), made.id, now).await.unwrap().is_some());
        }
    }
}
