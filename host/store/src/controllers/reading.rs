//! When a controller is read next, and what reading it gave.
//!
//! A reading takes a while. What changed at the controller's row meanwhile wins over what the reading
//! began with: [`hold`] comes first in the transaction that records it.
//!
//! One process at a time reads a controller: the one that [`claim`]ed it.

use std::collections::HashSet;

use heddle_core::adapter::DeviceStatus;
use heddle_core::release::ReleaseState;
use heddle_core::{ControllerId, OrgId, ProcessId, SiteId, Timestamp};
use sqlx::{AssertSqlSafe, FromRow};

use super::{Controller, ControllerTarget, FROM_TARGET, SELECT_TARGET};
use crate::db::Tx;
use crate::error::Result;
use crate::object::Object as _;
use crate::processes::gone_among;
use crate::select::{Bind, Scope, Select, affected, bind_all, lock, lock_free};

/// A controller whose reading is being recorded, as it is now.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Held {
    pub site_id: SiteId,
    pub status: DeviceStatus,
    /// When it was last read.
    pub last_sync_at: Option<Timestamp>,
    pub release_state: ReleaseState,
    pub allowed_release: Option<String>,
    /// Whether the last reading of all its sites listed all of its devices. Where not, no reading says that one is gone.
    pub lists_all_devices: bool,
    next_sync_at: Option<Timestamp>,
    sync_requested: bool,
}

impl Held {
    /// Whether a caller asked for the reading that began then, and not for another one after it.
    pub fn was_requested(&self, started_at: Timestamp) -> bool {
        self.sync_requested && self.next_sync_at.is_none_or(|next| next <= started_at)
    }
}

/// How reading a controller ended.
#[derive(Debug, Clone)]
pub struct SyncResult {
    pub status: DeviceStatus,
    /// Whether it was read, if not every site of it.
    pub is_read: bool,
    /// Why it was not read, or what of it could not be.
    pub error: Option<String>,
    /// `None` keeps what is known.
    pub firmware: Option<String>,
    /// `None` keeps what is known.
    pub product: Option<String>,
    /// `None` keeps what is known.
    pub release_state: Option<ReleaseState>,
    pub started_at: Timestamp,
    /// Not taken when the controller became due after `started_at`: then it is read again at once.
    pub next_sync_at: Timestamp,
    /// The process that goes on reading it; none where the reading is over.
    pub owner: Option<ProcessId>,
    pub now: Timestamp,
}

/// Controllers and organizations that are not looked for although they are due. A few hundred of each at most.
#[derive(Debug, Clone, Default)]
pub struct Except {
    pub controllers: Vec<ControllerId>,
    pub organizations: Vec<OrgId>,
}

impl Except {
    /// What is looked for among controllers, without these.
    pub(crate) fn of(&self, mut select: Select) -> Select {
        for id in &self.controllers {
            select = select.and_bind("c.id <> ?", Bind::Id(id.0));
        }
        for id in &self.organizations {
            select = select.and_bind("c.org_id <> ?", Bind::Id(id.0));
        }
        select
    }
}

/// Holds the controller's row until the transaction ends, to record a reading of it.
///
/// `None` when it was removed, or has another address, credential or settings than the one that was read: the reading says
/// nothing of it. `None` also when the controller is another process's to read by now.
pub async fn hold(tx: &mut Tx, read: &ControllerTarget, owner: ProcessId) -> Result<Option<Held>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE controller SET updated_at = updated_at
        WHERE id = $1 AND deleted_at IS NULL AND url = $2 AND credential_id = $3 AND sync_owner = $4
            AND settings = $5
            AND org_id IN (SELECT id FROM organization WHERE deleted_at IS NULL)
        RETURNING site_id, status, last_sync_at, release_state, allowed_release, lists_all_devices,
            next_sync_at, sync_requested")
        .bind(read.id).bind(&read.url).bind(read.credential_id).bind(owner).bind(&read.settings)
        .fetch_optional(conn)
        .await)?)
}

/// Records how reading it ended; true when the status is another one than before.
///
/// `last_sync_at` moves only when it was read. What becomes of the devices of a controller that is offline now is
/// [`crate::devices::lose_sight`], in the same transaction.
pub async fn record_sync(tx: &mut Tx, id: ControllerId, result: &SyncResult) -> Result<bool> {
    let is_changed = set_status(tx, id, result.status, result.now).await?;
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE controller
        SET last_error = $2, last_sync_at = CASE WHEN $3 THEN $4 ELSE last_sync_at END,
            firmware = COALESCE($5, firmware), product = COALESCE($6, product),
            next_sync_at = CASE WHEN next_sync_at > $8 THEN next_sync_at ELSE $7 END,
            sync_requested = CASE WHEN $3 AND (next_sync_at IS NULL OR next_sync_at <= $8)
                THEN FALSE ELSE sync_requested END,
            sync_owner = $9, release_state = COALESCE($10, release_state), updated_at = $4
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(result.error.as_ref())
        .bind(result.is_read)
        .bind(result.now)
        .bind(result.firmware.as_ref())
        .bind(result.product.as_ref())
        .bind(result.next_sync_at)
        .bind(result.started_at)
        .bind(result.owner)
        .bind(result.release_state)
    );
    Ok(is_changed)
}

/// Records how reading a part of it ended; true when the status is another one than before.
///
/// When it is read next, and what a user asked for, stay as they are; one that was never read as a whole becomes due. Of what
/// is wrong it says something only where `is_told`: the sites that a part leaves out may be to blame for what is shown.
pub async fn record_part(tx: &mut Tx, id: ControllerId, result: &SyncResult, is_told: bool) -> Result<bool> {
    let is_changed = set_status(tx, id, result.status, result.now).await?;
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE controller
        SET last_error = CASE WHEN $3 THEN $2 ELSE last_error END, firmware = COALESCE($4, firmware),
            product = COALESCE($5, product), release_state = COALESCE($6, release_state), sync_owner = $7,
            updated_at = $8,
            next_sync_at = CASE WHEN $9 AND last_sync_at IS NULL THEN $8 ELSE next_sync_at END
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(result.error.as_ref())
        .bind(is_told || is_changed)
        .bind(result.firmware.as_ref())
        .bind(result.product.as_ref())
        .bind(result.release_state)
        .bind(result.owner)
        .bind(result.now)
        .bind(result.is_read)
    );
    Ok(is_changed)
}

/// Notes whether a reading of all its sites listed all of its devices.
pub async fn note_lists(tx: &mut Tx, id: ControllerId, lists_all_devices: bool) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE controller SET lists_all_devices = $2 WHERE id = $1 AND lists_all_devices <> $2")
            .bind(id)
            .bind(lists_all_devices)
    );
    Ok(())
}

async fn set_status(tx: &mut Tx, id: ControllerId, status: DeviceStatus, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE controller SET status = $2, updated_at = $3
        WHERE id = $1 AND status <> $2 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(status)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Controllers whose time to be read has come and that no other process reads, the longest waiting first.
pub async fn due(
    tx: &mut Tx,
    owner: ProcessId,
    now: Timestamp,
    except: &Except,
    limit: u32,
) -> Result<Vec<ControllerTarget>> {
    let select = Select::new(SELECT_TARGET, FROM_TARGET)
        .and_bind("(c.sync_owner IS NULL OR c.sync_owner = ?)", Bind::Id(owner.0))
        .and("c.deleted_at IS NULL")
        .and_bind("c.next_sync_at <= ?", Bind::Time(now));
    except.of(select).all(tx, "c.next_sync_at, c.id", i64::from(limit)).await
}

/// Whether the time for a controller's next reading has come.
pub async fn is_due(tx: &mut Tx, id: ControllerId, now: Timestamp) -> Result<bool> {
    let due = Select::new("SELECT c.id", "FROM controller c")
        .and_bind("c.id = ?", Bind::Id(id.0))
        .and("c.deleted_at IS NULL")
        .and_bind("c.next_sync_at <= ?", Bind::Time(now));
    Ok(due.count(tx).await? > 0)
}

/// Takes the readings of controllers that are due; gives those that no other process has.
///
/// One's own claim is taken again: its reading was lost on the way.
pub async fn claim(
    tx: &mut Tx,
    ids: &[ControllerId],
    owner: ProcessId,
    now: Timestamp,
) -> Result<HashSet<ControllerId>> {
    let free = "deleted_at IS NULL AND next_sync_at <= $2 AND (sync_owner IS NULL OR sync_owner = $1)";
    let update = "UPDATE controller SET sync_owner = $1";
    claim_by(tx, (update, free), vec![Bind::Id(owner.0), Bind::Time(now)], ids).await
}

/// Claims those of these controllers that are free; gives those that it claimed.
///
/// A controller whose row another transaction has locked is not claimed: waiting for it while others are locked could make
/// two transactions wait for each other.
pub(crate) async fn claim_by(
    tx: &mut Tx,
    (update, free): (&'static str, &'static str),
    mut values: Vec<Bind>,
    ids: &[ControllerId],
) -> Result<HashSet<ControllerId>> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let first = values.len() + 1;
    let places: Vec<String> = (first..first + ids.len()).map(|at| format!("${at}")).collect();
    let sql = format!(
        "{update} WHERE id IN (
            SELECT id FROM controller WHERE {free} AND id IN ({}) ORDER BY id{})
        RETURNING id",
        places.join(", "),
        lock_free(tx)
    );
    values.extend(ids.iter().map(|id| Bind::Id(id.0)));
    let claimed: Vec<ControllerId> = on!(tx, conn =>
        bind_all!(sqlx::query_scalar(AssertSqlSafe(sql)), &values).fetch_all(conn).await)?;
    Ok(claimed.into_iter().collect())
}

/// Gives a reading up without a result, or ends one that went on behind its result; false when the controller is another
/// process's to read by now.
pub async fn release(tx: &mut Tx, id: ControllerId, owner: ProcessId) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("UPDATE controller SET sync_owner = NULL WHERE id = $1 AND sync_owner = $2")
            .bind(id)
            .bind(owner)
    );
    Ok(rows == 1)
}

/// Returns the processes that took readings and are no longer alive.
pub async fn abandoned(tx: &mut Tx, me: ProcessId) -> Result<Vec<ProcessId>> {
    let owners: Vec<ProcessId> = on!(tx, conn => sqlx::query_scalar("
        SELECT DISTINCT sync_owner FROM controller WHERE sync_owner IS NOT NULL ORDER BY sync_owner")
        .fetch_all(conn)
        .await)?;
    gone_among(tx, me, owners).await
}

/// Releases the orphaned readings of a process that is gone.
pub async fn release_all(tx: &mut Tx, gone: ProcessId) -> Result<()> {
    let sql = format!(
        "UPDATE controller SET sync_owner = NULL WHERE id IN (
            SELECT id FROM controller WHERE sync_owner = $1 ORDER BY id{})",
        lock(tx)
    );
    affected!(tx, sqlx::query(AssertSqlSafe(sql)).bind(gone));
    Ok(())
}

/// Makes the controller due at a caller's request; false when there is no such controller.
pub async fn schedule_now(tx: &mut Tx, scope: &Scope, id: ControllerId, now: Timestamp) -> Result<bool> {
    if Controller::find(tx, scope, id).await?.is_none() {
        return Ok(false);
    }
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE controller SET next_sync_at = $2, sync_requested = TRUE
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Makes these controllers due, in one statement. The caller has checked which of them the user may see.
pub async fn schedule_all_now(tx: &mut Tx, ids: &[ControllerId], now: Timestamp) -> Result<u64> {
    if ids.is_empty() {
        return Ok(0);
    }
    let places: Vec<String> = (2..ids.len() + 2).map(|at| format!("${at}")).collect();
    let sql = format!(
        "UPDATE controller SET next_sync_at = $1, sync_requested = TRUE WHERE id IN (
            SELECT id FROM controller WHERE deleted_at IS NULL AND id IN ({}) ORDER BY id{})",
        places.join(", "),
        lock(tx)
    );
    let mut values = vec![Bind::Time(now)];
    values.extend(ids.iter().map(|id| Bind::Id(id.0)));
    Ok(affected!(tx, bind_all!(sqlx::query(AssertSqlSafe(sql)), &values)))
}
