//! Which values of a plugin are its storage in an organization, and in the form of which version.
//!
//! Values are of a generation. A newer version works on a copy, the draft, which becomes the storage in one step; what was
//! the storage before is kept for a while.

use heddle_core::{OrgId, Timestamp};
use sqlx::FromRow;

use super::PluginUid;
use super::values::{Generation, Keeper};
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected};

/// The storage of a plugin in an organization.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct StorageRow {
    pub org_id: OrgId,
    pub plugin_uid: PluginUid,
    /// The version that took the values last.
    pub version: String,
    /// The version that brought them to its own form; `None` where none did.
    pub migrated_to: Option<String>,
    /// That of the values that the plugin sees.
    pub generation: i64,
    /// The last number that was given: none is given twice.
    pub last_generation: i64,
    /// That of a copy which a newer version is bringing to its form. Nothing else is written meanwhile.
    pub draft_generation: Option<i64>,
    /// The version whose form the kept values have.
    pub kept_version: Option<String>,
    /// The version that brought the kept values to its own form; `None` where none did.
    pub kept_migrated_to: Option<String>,
    pub kept_generation: Option<i64>,
    /// Until when they are kept; `None` while the last of them are being forgotten.
    pub kept_until: Option<Timestamp>,
    /// When values of generations that this row does not name may be deleted: by then no call can still read them.
    pub sweep_at: Option<Timestamp>,
}

impl StorageRow {
    /// Whose storage it is.
    #[must_use]
    pub fn keeper(&self) -> Keeper {
        Keeper { org: self.org_id, plugin: self.plugin_uid }
    }

    /// The values that the plugin sees.
    #[must_use]
    pub fn living(&self) -> Generation {
        Generation { keeper: self.keeper(), number: self.generation }
    }
}

fn of(keeper: Keeper) -> Select {
    Select::new("SELECT s.*", "FROM plugin_storage s")
        .and_bind("s.org_id = ?", Bind::Id(keeper.org.0))
        .and_bind("s.plugin_uid = ?", Bind::Id(keeper.plugin.0))
}

/// The storage; `None` before the plugin was first switched on in the organization.
pub async fn find(tx: &mut Tx, keeper: Keeper) -> Result<Option<StorageRow>> {
    of(keeper).one(tx).await
}

/// Opens an empty storage in the form of a version. One that is there stays as it is.
pub async fn open(tx: &mut Tx, keeper: Keeper, version: &str) -> Result<StorageRow> {
    affected!(
        tx,
        sqlx::query(
            "INSERT INTO plugin_storage (org_id, plugin_uid, version) VALUES ($1, $2, $3)
            ON CONFLICT (org_id, plugin_uid) DO NOTHING"
        )
        .bind(keeper.org)
        .bind(keeper.plugin)
        .bind(version)
    );
    of(keeper).one(tx).await?.ok_or_else(|| sqlx::Error::RowNotFound.into())
}

/// Makes every storage of a plugin an empty one in the form of a version. Its number is new: a call that began before finds
/// nothing and writes nothing.
pub(super) async fn begin_anew(tx: &mut Tx, plugin: PluginUid, version: &str) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_storage
        SET version = $2, migrated_to = NULL, generation = last_generation + 1, last_generation = last_generation + 1,
            draft_generation = NULL, kept_version = NULL, kept_migrated_to = NULL, kept_generation = NULL,
            kept_until = NULL, sweep_at = NULL
        WHERE plugin_uid = $1"
        )
        .bind(plugin)
        .bind(version)
    );
    Ok(())
}

/// Whether anything is stored that has not expired.
pub async fn is_empty(tx: &mut Tx, of: Generation, now: Timestamp) -> Result<bool> {
    let found: Option<i64> = on!(tx, conn => sqlx::query_scalar("
        SELECT v.version FROM plugin_value v
        WHERE v.org_id = $1 AND v.plugin_uid = $2 AND v.generation = $3
            AND (v.expires_at IS NULL OR v.expires_at > $4)
        LIMIT 1")
        .bind(of.keeper.org).bind(of.keeper.plugin).bind(of.number).bind(now)
        .fetch_optional(conn)
        .await)?;
    Ok(found.is_none())
}

/// Lets a version take the values as they are; `migrated_to` says in whose own form they are.
pub async fn take_over(
    tx: &mut Tx,
    keeper: Keeper,
    (version, migrated_to): (&str, Option<&str>),
) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE plugin_storage SET version = $3, migrated_to = $4, draft_generation = NULL
            WHERE org_id = $1 AND plugin_uid = $2"
        )
        .bind(keeper.org)
        .bind(keeper.plugin)
        .bind(version)
        .bind(migrated_to)
    );
    Ok(())
}

/// Begins a draft: from now on nothing is written to the storage. It is empty until [`copy`] has filled it. What is left of
/// drafts and copies from before is forgotten from `sweep_at` on.
pub async fn begin(tx: &mut Tx, keeper: Keeper, sweep_at: Timestamp) -> Result<StorageRow> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE plugin_storage
        SET last_generation = last_generation + 1, draft_generation = last_generation + 1,
            sweep_at = COALESCE(sweep_at, $3)
        WHERE org_id = $1 AND plugin_uid = $2
        RETURNING *")
        .bind(keeper.org).bind(keeper.plugin).bind(sweep_at)
        .fetch_one(conn)
        .await)?)
}

/// Copies values into a draft, some at a time: those behind a name. Returns the last name, or `None` when there were no more.
pub async fn copy(
    tx: &mut Tx,
    from: Generation,
    draft: i64,
    (after, limit): (&str, u32),
) -> Result<Option<String>> {
    let names: Vec<String> = on!(tx, conn => sqlx::query_scalar("
        SELECT v.name FROM plugin_value v
        WHERE v.org_id = $1 AND v.plugin_uid = $2 AND v.generation = $3 AND v.name > $4
        ORDER BY v.name LIMIT CAST($5 AS BIGINT)")
        .bind(from.keeper.org).bind(from.keeper.plugin).bind(from.number).bind(after).bind(i64::from(limit))
        .fetch_all(conn)
        .await)?;
    let Some(last) = names.into_iter().next_back() else { return Ok(None) };
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO plugin_value
            (org_id, plugin_uid, generation, name, bytes, size_bytes, version, expires_at, updated_at)
        SELECT v.org_id, v.plugin_uid, CAST($4 AS BIGINT), v.name, v.bytes, v.size_bytes, v.version, v.expires_at,
            v.updated_at
        FROM plugin_value v
        WHERE v.org_id = $1 AND v.plugin_uid = $2 AND v.generation = $3 AND v.name > $5 AND v.name <= $6"
        )
        .bind(from.keeper.org)
        .bind(from.keeper.plugin)
        .bind(from.number)
        .bind(draft)
        .bind(after)
        .bind(&last)
    );
    Ok(Some(last))
}

/// Makes a draft the storage, in the form of a version, and keeps what was the storage until a time. What was kept before is
/// forgotten from `sweep_at` on.
pub async fn finish(
    tx: &mut Tx,
    draft: Generation,
    version: &str,
    (kept_until, sweep_at): (Timestamp, Timestamp),
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_storage
        SET kept_version = version, kept_migrated_to = migrated_to, kept_generation = generation, kept_until = $5,
            sweep_at = $6,
            version = $4, migrated_to = $4, generation = draft_generation, draft_generation = NULL
        WHERE org_id = $1 AND plugin_uid = $2 AND draft_generation = $3"
        )
        .bind(draft.keeper.org)
        .bind(draft.keeper.plugin)
        .bind(draft.number)
        .bind(version)
        .bind(kept_until)
        .bind(sweep_at)
    );
    Ok(rows == 1)
}

/// Gives a draft up: the storage is as it was. What the draft has is forgotten from `sweep_at` on, or by [`forget_draft`].
pub async fn give_up(tx: &mut Tx, draft: Generation, sweep_at: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE plugin_storage SET draft_generation = NULL, sweep_at = COALESCE(sweep_at, $4)
            WHERE org_id = $1 AND plugin_uid = $2 AND draft_generation = $3"
        )
        .bind(draft.keeper.org)
        .bind(draft.keeper.plugin)
        .bind(draft.number)
        .bind(sweep_at)
    );
    Ok(())
}

/// Forgets values of a draft that was given up, some at a time; none where it became the storage.
pub async fn forget_draft(tx: &mut Tx, draft: Generation, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM plugin_value WHERE (org_id, plugin_uid, generation, name) IN (
            SELECT v.org_id, v.plugin_uid, v.generation, v.name FROM plugin_value v
            JOIN plugin_storage s ON s.org_id = v.org_id AND s.plugin_uid = v.plugin_uid
            WHERE v.org_id = $1 AND v.plugin_uid = $2 AND v.generation = $3
                AND v.generation NOT IN (s.generation, COALESCE(s.kept_generation, -1), COALESCE(s.draft_generation, -1))
            ORDER BY v.name LIMIT CAST($4 AS BIGINT))"
        )
        .bind(draft.keeper.org)
        .bind(draft.keeper.plugin)
        .bind(draft.number)
        .bind(i64::from(limit))
    ))
}

/// Makes what is kept the storage again; false where nothing is kept. What was the storage is forgotten from `sweep_at` on.
pub async fn put_back(tx: &mut Tx, keeper: Keeper, sweep_at: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_storage
        SET version = kept_version, migrated_to = kept_migrated_to, generation = kept_generation, draft_generation = NULL,
            sweep_at = $3, kept_version = NULL, kept_migrated_to = NULL, kept_generation = NULL,
            kept_until = NULL
        WHERE org_id = $1 AND plugin_uid = $2 AND kept_version IS NOT NULL AND kept_generation IS NOT NULL"
        )
        .bind(keeper.org)
        .bind(keeper.plugin)
        .bind(sweep_at)
    );
    Ok(rows == 1)
}

/// Forgets values that are neither a storage nor kept nor a draft, where that may be done before this time.
pub async fn sweep(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    let forgotten = affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM plugin_value WHERE (org_id, plugin_uid, generation, name) IN (
            SELECT v.org_id, v.plugin_uid, v.generation, v.name FROM plugin_storage s
            JOIN plugin_value v ON v.org_id = s.org_id AND v.plugin_uid = s.plugin_uid
            WHERE s.sweep_at IS NOT NULL AND s.sweep_at <= $1
                AND v.generation NOT IN (s.generation, COALESCE(s.kept_generation, -1), COALESCE(s.draft_generation, -1))
            ORDER BY v.org_id, v.plugin_uid, v.generation, v.name LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    );
    if forgotten == 0 {
        affected!(
            tx,
            sqlx::query(
                "UPDATE plugin_storage SET sweep_at = NULL WHERE sweep_at IS NOT NULL AND sweep_at <= $1"
            )
            .bind(before)
        );
    }
    Ok(forgotten)
}

/// Forgets values that were kept until before this time, but for those of the version that serves: they are about to be put
/// back.
pub async fn forget_kept(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    // They cannot be put back from now on; only then are they deleted.
    affected!(
        tx,
        sqlx::query(
            "UPDATE plugin_storage SET kept_version = NULL, kept_migrated_to = NULL, kept_until = NULL
            WHERE kept_generation IS NOT NULL AND kept_until <= $1
                AND NOT EXISTS (
                    SELECT 1 FROM plugin p JOIN plugin_version v ON v.manifest_sha256 = p.serving_sha256
                    WHERE p.id = plugin_storage.plugin_uid AND v.version = plugin_storage.kept_version)"
        )
        .bind(before)
    );
    let forgotten = affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM plugin_value WHERE (org_id, plugin_uid, generation, name) IN (
            SELECT v.org_id, v.plugin_uid, v.generation, v.name FROM plugin_storage s
            JOIN plugin_value v
                ON v.org_id = s.org_id AND v.plugin_uid = s.plugin_uid AND v.generation = s.kept_generation
            WHERE s.kept_generation IS NOT NULL AND s.kept_until IS NULL
            ORDER BY v.org_id, v.plugin_uid, v.generation, v.name LIMIT CAST($1 AS BIGINT))"
        )
        .bind(i64::from(limit))
    );
    if forgotten == 0 {
        affected!(
            tx,
            sqlx::query(
                "UPDATE plugin_storage SET kept_generation = NULL
                WHERE kept_generation IS NOT NULL AND kept_until IS NULL"
            )
        );
    }
    Ok(forgotten)
}
