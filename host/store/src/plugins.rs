//! Plugins, their packages, and what people agreed to that these may do.

pub mod organizations;
pub mod ratings;
pub mod storage;
pub mod timers;
pub mod triggers;
pub mod values;

use heddle_core::plugin::{PackageOrigin, PluginState};
use heddle_core::{Timestamp, UserId};
use serde_json::Value;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::revised;
use crate::select::{Bind, Select, affected};

heddle_core::ids! {
    /// A plugin, whichever package of it serves.
    pub PluginUid,
    /// What a person agreed to.
    pub PluginGrantId,
}

/// More than there are plugins.
const PLUGINS_MAX: i64 = 1_000;
/// Packages of a plugin that are listed.
const VERSIONS_MAX: i64 = 100;
/// Different lists of types of events that are read. Few packages change that of the version before.
const EVENT_TYPES_MAX: i64 = 10 * PLUGINS_MAX;

/// A plugin, and how it stands.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct PluginRow {
    pub id: PluginUid,
    /// Its id in its manifest.
    pub plugin_id: String,
    pub state: PluginState,
    pub reason: Option<String>,
    /// SHA-256 of the manifest of the package that serves when the plugin is active.
    pub serving_sha256: Option<String>,
    /// The one that served before it.
    pub before_sha256: Option<String>,
    /// The one that waits for consent.
    pub waiting_sha256: Option<String>,
    /// Counts changes of how it stands.
    pub revision: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When it was removed. It stays when a package is sent again, until one is agreed to: what it kept has its end by this.
    pub removed_at: Option<Timestamp>,
}

revised!(PluginRow);

/// A package of a plugin that was sent and is what its publisher signed.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct VersionRow {
    pub manifest_sha256: String,
    pub plugin_uid: PluginUid,
    pub version: String,
    pub component_sha256: String,
    pub publisher: String,
    pub key_id: String,
    /// Ids of all keys that signed it: a list.
    pub signed_by: Value,
    /// SHA-256 of the archive that it came in, lower-case hex; empty where an older version of this program took it.
    pub archive_sha256: String,
    pub origin: PackageOrigin,
    pub manifest: Value,
    pub state: PluginState,
    pub reason: Option<String>,
    /// What a rejected one failed at.
    pub step: Option<PluginState>,
    pub installed_at: Timestamp,
    /// Name of the user.
    pub installed_by: String,
}

/// What a person agreed to that a package may do.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct GrantRow {
    pub id: PluginGrantId,
    pub plugin_uid: PluginUid,
    pub manifest_sha256: String,
    pub version: String,
    pub grant_hash: String,
    pub granted: Value,
    pub granted_by: Option<UserId>,
    pub granted_by_name: String,
    pub granted_at: Timestamp,
}

const SELECT: &str = "SELECT p.*";
const FROM: &str = "FROM plugin p";

/// Every plugin that was ever installed, by its id.
pub async fn all(tx: &mut Tx) -> Result<Vec<PluginRow>> {
    Select::new(SELECT, FROM).all(tx, "p.plugin_id", PLUGINS_MAX).await
}

/// Number of plugins and the sum of their revisions: it grows with each change of any.
pub async fn stamp(tx: &mut Tx) -> Result<(i64, i64)> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT COUNT(*), CAST(COALESCE(SUM(p.revision), 0) AS BIGINT) FROM plugin p")
        .fetch_one(conn)
        .await)?)
}

/// The plugin with this id in its manifest, also a removed one.
pub async fn find(tx: &mut Tx, plugin_id: &str) -> Result<Option<PluginRow>> {
    named(plugin_id).one(tx).await
}

/// The same, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, plugin_id: &str) -> Result<Option<PluginRow>> {
    named(plugin_id).one_locked(tx, "p").await
}

fn named(plugin_id: &str) -> Select {
    Select::new(SELECT, FROM).and_bind("p.plugin_id = ?", Bind::Text(plugin_id.to_owned()))
}

/// Writes a plugin that was never installed before.
pub async fn insert(tx: &mut Tx, new: &PluginRow) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO plugin (id, plugin_id, state, reason, serving_sha256, before_sha256, waiting_sha256, revision,
            created_at, updated_at, removed_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
        )
        .bind(new.id)
        .bind(&new.plugin_id)
        .bind(new.state)
        .bind(&new.reason)
        .bind(&new.serving_sha256)
        .bind(&new.before_sha256)
        .bind(&new.waiting_sha256)
        .bind(new.revision)
        .bind(new.created_at)
        .bind(new.updated_at)
        .bind(new.removed_at)
    );
    Ok(())
}

/// Writes how a locked plugin stands from now on. Returns it with its next revision. A package that begins to serve is to be
/// told of the settings of the organizations that use it. Events from the time in which the plugin was not active do not call
/// it.
pub async fn update(tx: &mut Tx, row: &PluginRow, now: Timestamp) -> Result<PluginRow> {
    let before: Option<(PluginState, Option<String>)> = on!(tx, conn => sqlx::query_as("
        SELECT p.state, p.serving_sha256 FROM plugin p WHERE p.id = $1")
        .bind(row.id)
        .fetch_optional(conn)
        .await)?;
    let updated: PluginRow = on!(tx, conn => sqlx::query_as("
        UPDATE plugin
        SET state = $2, reason = $3, serving_sha256 = $4, before_sha256 = $5, waiting_sha256 = $6, removed_at = $7,
            revision = revision + 1, updated_at = $8
        WHERE id = $1
        RETURNING *")
        .bind(row.id).bind(row.state).bind(&row.reason).bind(&row.serving_sha256).bind(&row.before_sha256)
        .bind(&row.waiting_sha256).bind(row.removed_at).bind(now)
        .fetch_one(conn)
        .await)?;
    let was_inactive = before.as_ref().is_some_and(|(state, _)| *state != PluginState::Active);
    if updated.state == PluginState::Active && was_inactive {
        triggers::wait_on(tx, updated.id).await?;
        organizations::listen_from_now(tx, updated.id).await?;
    }
    let begins = was_inactive || before.is_none_or(|(_, serving)| serving != updated.serving_sha256);
    if updated.state == PluginState::Active
        && begins
        && let Some(serving) = &updated.serving_sha256
    {
        organizations::configure_again(tx, updated.id, serving, now).await?;
    }
    Ok(updated)
}

/// Writes a package; one that was sent before is written anew.
pub async fn put_version(tx: &mut Tx, version: &VersionRow) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO plugin_version (manifest_sha256, plugin_uid, version, component_sha256, publisher, key_id,
            manifest, state, reason, step, installed_at, installed_by, signed_by, archive_sha256, origin)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        ON CONFLICT (manifest_sha256) DO UPDATE
        SET key_id = excluded.key_id, signed_by = excluded.signed_by, archive_sha256 = excluded.archive_sha256,
            origin = excluded.origin, state = excluded.state, reason = excluded.reason, step = excluded.step,
            installed_at = excluded.installed_at, installed_by = excluded.installed_by"
        )
        .bind(&version.manifest_sha256)
        .bind(version.plugin_uid)
        .bind(&version.version)
        .bind(&version.component_sha256)
        .bind(&version.publisher)
        .bind(&version.key_id)
        .bind(&version.manifest)
        .bind(version.state)
        .bind(&version.reason)
        .bind(version.step)
        .bind(version.installed_at)
        .bind(&version.installed_by)
        .bind(&version.signed_by)
        .bind(&version.archive_sha256)
        .bind(version.origin)
    );
    Ok(())
}

/// Writes how a package stands from now on.
pub async fn set_version_state(
    tx: &mut Tx,
    manifest_sha256: &str,
    state: PluginState,
    reason: Option<&str>,
) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE plugin_version SET state = $2, reason = $3 WHERE manifest_sha256 = $1")
            .bind(manifest_sha256)
            .bind(state)
            .bind(reason)
    );
    Ok(())
}

/// Writes where a package comes from, and nothing else of it.
pub async fn set_version_origin(tx: &mut Tx, manifest_sha256: &str, origin: PackageOrigin) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE plugin_version SET origin = $2 WHERE manifest_sha256 = $1")
            .bind(manifest_sha256)
            .bind(origin)
    );
    Ok(())
}

/// The package with this SHA-256 of its manifest.
pub async fn find_version(tx: &mut Tx, manifest_sha256: &str) -> Result<Option<VersionRow>> {
    Select::new("SELECT v.*", "FROM plugin_version v")
        .and_bind("v.manifest_sha256 = ?", Bind::Text(manifest_sha256.to_owned()))
        .one(tx)
        .await
}

/// The packages of a plugin, the latest first: at most 100.
pub async fn versions(tx: &mut Tx, plugin: PluginUid) -> Result<Vec<VersionRow>> {
    Select::new("SELECT v.*", "FROM plugin_version v")
        .and_bind("v.plugin_uid = ?", Bind::Id(plugin.0))
        .all(tx, "v.installed_at DESC, v.manifest_sha256", VERSIONS_MAX)
        .await
}

/// The package of each plugin that serves when the plugin is active, served last where the plugin was removed, or waits
/// where none ever served.
pub async fn current_versions(tx: &mut Tx) -> Result<Vec<VersionRow>> {
    let from = "FROM plugin_version v JOIN plugin p
        ON p.id = v.plugin_uid AND v.manifest_sha256 = COALESCE(p.serving_sha256, p.waiting_sha256)";
    Select::new("SELECT v.*", from).all(tx, "v.plugin_uid", PLUGINS_MAX).await
}

/// The types of events that packages declare, as JSON text, of every package that ever served, whatever became of it and of its
/// plugin: each list once, the one that began to serve last first.
pub async fn event_types_served(tx: &mut Tx) -> Result<Vec<String>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT t.event_types FROM (
            SELECT s.event_types, MAX(s.first_served_at) AS served_at FROM (
                SELECT v.manifest ->> 'event-types' AS event_types, k.first_served_at
                FROM plugin_version v JOIN adapter_package k ON k.manifest_sha256 = v.manifest_sha256) s
            WHERE s.event_types IS NOT NULL
            GROUP BY s.event_types) t
        ORDER BY t.served_at DESC, t.event_types LIMIT CAST($1 AS BIGINT)")
        .bind(EVENT_TYPES_MAX)
        .fetch_all(conn)
        .await)?)
}

/// The packages that serve or wait, of all plugins that are there, by their plugins.
pub async fn standing_versions(tx: &mut Tx) -> Result<Vec<VersionRow>> {
    let from = "FROM plugin_version v JOIN plugin p ON p.id = v.plugin_uid
        AND (v.manifest_sha256 = p.serving_sha256 OR v.manifest_sha256 = p.waiting_sha256)";
    Select::new("SELECT v.*", from)
        .and("p.state <> 'removed'")
        .all(tx, "v.plugin_uid, v.manifest_sha256", 2 * PLUGINS_MAX)
        .await
}

/// Writes what a person agreed to.
pub async fn put_grant(tx: &mut Tx, grant: &GrantRow) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO plugin_grant (id, plugin_uid, manifest_sha256, version, grant_hash, granted, granted_by,
            granted_by_name, granted_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        )
        .bind(grant.id)
        .bind(grant.plugin_uid)
        .bind(&grant.manifest_sha256)
        .bind(&grant.version)
        .bind(&grant.grant_hash)
        .bind(&grant.granted)
        .bind(grant.granted_by)
        .bind(&grant.granted_by_name)
        .bind(grant.granted_at)
    );
    Ok(())
}

/// What was agreed to last for this package.
pub async fn grant_of(tx: &mut Tx, plugin: PluginUid, manifest_sha256: &str) -> Result<Option<GrantRow>> {
    let found = Select::new("SELECT g.*", "FROM plugin_grant g")
        .and_bind("g.plugin_uid = ?", Bind::Id(plugin.0))
        .and_bind("g.manifest_sha256 = ?", Bind::Text(manifest_sha256.to_owned()))
        .all(tx, "g.granted_at DESC, g.id DESC", 1)
        .await?;
    Ok(found.into_iter().next())
}

/// Forgets what was agreed to, and the settings and secrets that organizations gave the plugin.
pub async fn forget_bindings(tx: &mut Tx, plugin: PluginUid) -> Result<()> {
    affected!(tx, sqlx::query("DELETE FROM plugin_grant WHERE plugin_uid = $1").bind(plugin));
    affected!(tx, sqlx::query("DELETE FROM plugin_secret WHERE plugin_uid = $1").bind(plugin));
    affected!(tx, sqlx::query("DELETE FROM plugin_organization WHERE plugin_uid = $1").bind(plugin));
    triggers::forget(tx, plugin, None).await?;
    timers::forget(tx, plugin, None).await?;
    Ok(())
}

/// Forgets all that the packages of a plugin were given and kept, in every organization. From then on it begins anew with this
/// version.
pub async fn begin_anew(tx: &mut Tx, plugin: PluginUid, version: &str) -> Result<()> {
    // A call that writes values first locks the row of its organization. After these rows are deleted, no call can write.
    forget_bindings(tx, plugin).await?;
    storage::begin_anew(tx, plugin, version).await?;
    values::forget_all(tx, plugin).await
}

#[cfg(test)]
mod tests;
