//! Channels on which controllers tell that something changed: which process holds those of a controller, and how they stand.
//! What is to be read again because of it is in [`wanted`], and the channels that controllers open themselves are in [`hooks`].
//!
//! One process holds all channels of a controller: the one that [`claim`]ed it.

pub mod hooks;
pub mod wanted;

use std::collections::HashSet;

use heddle_core::push::PushState;
use heddle_core::{ControllerId, OrgId, ProcessId, SiteId, Timestamp};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use sqlx::{AssertSqlSafe, FromRow};

use crate::controllers::{ControllerTarget, FROM_TARGET, claim_by, select_target};
use crate::db::Tx;
use crate::error::Result;
use crate::processes::gone_among;
use crate::select::{Bind, Select, affected, bind_all, lock};

const SELECT_HELD: &str = concat!(
    select_target!(),
    ", c.push_enabled, c.push_secret IS NOT NULL AS has_push_secret, c.push_state, c.push_since, c.push_reason"
);
/// More rows than one process holds controllers.
const HELD_MAX: i64 = 20_000;
/// More rows than one controller has sites.
const SITES_MAX: i64 = 10_000;

/// How the channels of a controller stand.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct Push {
    #[sqlx(rename = "push_state")]
    pub state: Option<PushState>,
    #[sqlx(rename = "push_since")]
    pub since: Option<Timestamp>,
    #[sqlx(rename = "push_reason")]
    pub reason: Option<String>,
}

/// How the channels of a controller stand, as clients see it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ControllerPush")]
pub struct PushView<'a> {
    pub state: PushState,
    /// Since when it stands so.
    pub since: Option<Timestamp>,
    /// Why changes are not told at once; null while they are.
    pub reason: Option<&'a str>,
}

/// As a [`PushView`], or `null` where there is no channel.
impl Serialize for Push {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let view = |state| PushView { state, since: self.since, reason: self.reason.as_deref() };
        self.state.map(view).serialize(serializer)
    }
}

/// A controller whose channels a process holds, or could hold.
#[derive(Debug, Clone, FromRow)]
pub struct Held {
    #[sqlx(flatten)]
    pub target: ControllerTarget,
    /// What a person wants.
    pub push_enabled: bool,
    /// Whether requests of the controller can be proved.
    pub has_push_secret: bool,
    #[sqlx(flatten)]
    pub push: Push,
}

/// Which controllers without an owner are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Free {
    /// Those whose channels are to be opened, and those that do not say yet that they are switched off.
    All,
    /// Only those that do not say yet that changes are seen at the interval.
    Telling,
}

/// A vendor's site of a controller.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct PushSite {
    pub site_ref: String,
    pub name: String,
    /// It is not read: a person wants so.
    pub is_ignored: bool,
}

/// Where a controller is whose state is told in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct Told {
    pub org_id: OrgId,
    pub site_id: SiteId,
}

/// The controllers whose channels a process holds. Those that were removed, or whose organization was, are not among them.
pub async fn held(tx: &mut Tx, owner: ProcessId) -> Result<Vec<Held>> {
    Select::new(SELECT_HELD, FROM_TARGET)
        .and_bind("c.push_owner = ?", Bind::Id(owner.0))
        .and("c.deleted_at IS NULL")
        .all(tx, "c.id", HELD_MAX)
        .await
}

/// Controllers of these vendors whose channels no process holds, but for those of some organizations: those of the organization
/// with the fewest first that are held.
pub async fn free(
    tx: &mut Tx,
    vendors: &[String],
    which: Free,
    without: &[OrgId],
    limit: usize,
) -> Result<Vec<ControllerId>> {
    let select = Select::new(
        "SELECT c.id",
        "FROM controller c JOIN organization o ON o.id = c.org_id AND o.deleted_at IS NULL
        LEFT JOIN (SELECT h.org_id, COUNT(*) AS controllers FROM controller h
            WHERE h.push_owner IS NOT NULL GROUP BY h.org_id) held ON held.org_id = c.org_id",
    )
    .and("c.push_owner IS NULL")
    .and("c.deleted_at IS NULL")
    .and_in("c.vendor", vendors.iter().cloned().map(Bind::Text));
    let select = without.iter().fold(select, |select, org| select.and_bind("c.org_id <> ?", Bind::Id(org.0)));
    let select = match which {
        Free::All => select.and("(c.push_enabled OR c.push_state IS NULL OR c.push_state <> 'polling')"),
        Free::Telling => select.and("(c.push_state IS NULL OR c.push_state <> 'polling')"),
    };
    let order = "COALESCE(held.controllers, 0), c.created_at, c.id";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let free: Vec<(ControllerId,)> = select.all(tx, order, limit).await?;
    Ok(free.into_iter().map(|(id,)| id).collect())
}

/// The vendor's sites of a controller.
pub async fn sites(tx: &mut Tx, controller: ControllerId) -> Result<Vec<PushSite>> {
    Select::new("SELECT v.site_ref, v.name, v.is_ignored", "FROM vendor_site v")
        .and_bind("v.controller_id = ?", Bind::Id(controller.0))
        .and("v.is_present")
        .all(tx, "v.site_ref", SITES_MAX)
        .await
}

/// Takes the channels of controllers; gives those that no process had.
pub async fn claim(tx: &mut Tx, ids: &[ControllerId], owner: ProcessId) -> Result<HashSet<ControllerId>> {
    let free = "push_owner IS NULL AND deleted_at IS NULL";
    claim_by(tx, ("UPDATE controller SET push_owner = $1", free), vec![Bind::Id(owner.0)], ids).await
}

/// Gives the channels of a controller up.
pub async fn release(tx: &mut Tx, id: ControllerId, owner: ProcessId) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE controller SET push_owner = NULL WHERE id = $1 AND push_owner = $2")
            .bind(id)
            .bind(owner)
    );
    Ok(())
}

/// Returns the processes that held channels and are no longer alive.
pub async fn abandoned(tx: &mut Tx, me: ProcessId) -> Result<Vec<ProcessId>> {
    let owners: Vec<ProcessId> = on!(tx, conn => sqlx::query_scalar("
        SELECT DISTINCT push_owner FROM controller WHERE push_owner IS NOT NULL ORDER BY push_owner")
        .fetch_all(conn)
        .await)?;
    gone_among(tx, me, owners).await
}

/// Gives up all channels of a process. Those that were open are about to be opened by another one, of which no event tells.
pub async fn release_all(tx: &mut Tx, process: ProcessId, now: Timestamp) -> Result<()> {
    let sql = format!(
        "UPDATE controller SET push_owner = NULL,
            push_since = CASE WHEN push_state = 'live' THEN $2 ELSE push_since END,
            push_state = CASE WHEN push_state = 'live' THEN 'connecting' ELSE push_state END
        WHERE id IN (SELECT id FROM controller WHERE push_owner = $1 ORDER BY id{})",
        lock(tx)
    );
    affected!(tx, sqlx::query(AssertSqlSafe(sql)).bind(process).bind(now));
    Ok(())
}

/// Writes how the channels of a controller stand that a process holds. Returns where it is when an event is to tell of it: it
/// is `live` or `polling`, and the last event told the other one.
pub async fn set_state(tx: &mut Tx, id: ControllerId, owner: ProcessId, push: &Push) -> Result<Option<Told>> {
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE controller SET push_state = $3, push_since = $4, push_reason = $5,
                push_told = CASE WHEN CAST($3 AS TEXT) IS NULL THEN NULL ELSE push_told END
            WHERE id = $1 AND push_owner = $2 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(owner)
        .bind(push.state)
        .bind(push.since)
        .bind(push.reason.as_ref())
    );
    let tells = matches!(push.state, Some(PushState::Live | PushState::Polling));
    if rows == 0 || !tells {
        return Ok(None);
    }
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE controller SET push_told = $2 WHERE id = $1 AND (push_told IS NULL OR push_told <> $2)
        RETURNING org_id, site_id")
        .bind(id).bind(push.state)
        .fetch_optional(conn)
        .await)?)
}

/// Clears the state of channels of all controllers that no process holds and whose vendor is none of these.
pub async fn forget(tx: &mut Tx, vendors: &[String]) -> Result<u64> {
    let places: Vec<String> = (1..=vendors.len()).map(|at| format!("${at}")).collect();
    let others = if vendors.is_empty() {
        String::new()
    } else {
        format!(" AND vendor NOT IN ({})", places.join(", "))
    };
    let sql = format!(
        "UPDATE controller SET push_state = NULL, push_since = NULL, push_reason = NULL, push_told = NULL
        WHERE id IN (SELECT id FROM controller
            WHERE push_state IS NOT NULL AND push_owner IS NULL{others} ORDER BY id{})",
        lock(tx)
    );
    let values: Vec<Bind> = vendors.iter().cloned().map(Bind::Text).collect();
    Ok(affected!(tx, bind_all!(sqlx::query(AssertSqlSafe(sql)), &values)))
}

#[cfg(test)]
mod tests;
