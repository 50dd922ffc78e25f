//! Which controller of a site holds the intent of its VLANs, and when the site was last compared with it.

use chrono::TimeDelta;
use heddle_core::vlan::OnDrift;
use heddle_core::{ControllerId, OrgId, SiteId, Timestamp, UserId};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select, affected};

/// How far clocks may differ, with the time that a reading takes to be stored.
const OVERLAP: TimeDelta = TimeDelta::seconds(30);
/// Time until differences are tried again for which a policy could not stage anything.
const RETRY: TimeDelta = TimeDelta::minutes(5);

/// The brain of a site.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SiteBrain {
    pub site_id: SiteId,
    pub org_id: OrgId,
    pub controller_id: ControllerId,
    /// The controllers that follow it; `None` where all others of the site do.
    #[sqlx(json(nullable))]
    pub limb_ids: Option<Vec<ControllerId>>,
    pub on_drift: OnDrift,
    /// How often people have set it.
    pub revision: i64,
    /// With this user's rights differences are staged by policy.
    pub set_by: UserId,
    pub set_at: Timestamp,
    /// When the intent was last taken from the readings of the brain.
    pub read_at: Option<Timestamp>,
    /// When the site was last compared; empty makes it due.
    pub checked_at: Option<Timestamp>,
}

/// What people set a brain to.
#[derive(Debug, Clone)]
pub struct NewBrain<'a> {
    pub site_id: SiteId,
    pub org_id: OrgId,
    pub controller_id: ControllerId,
    pub limb_ids: Option<&'a [ControllerId]>,
    pub on_drift: OnDrift,
    pub set_by: UserId,
    pub now: Timestamp,
}

const SELECT: &str =
    "SELECT b.site_id, b.org_id, b.controller_id, b.limb_ids, b.on_drift, b.revision, b.set_by, b.set_at,
    b.read_at, b.checked_at";
/// A site that was removed has none.
const FROM: &str = "FROM site_brain b JOIN site s ON s.id = b.site_id AND s.deleted_at IS NULL";

/// The brain of a site; `None` where it has none, or is outside of the scope.
pub async fn find(tx: &mut Tx, scope: &Scope, site: SiteId) -> Result<Option<SiteBrain>> {
    Select::new(SELECT, FROM)
        .within(scope, "b.org_id", Some("b.site_id"))
        .and_bind("b.site_id = ?", Bind::Id(site.0))
        .one(tx)
        .await
}

/// The same, as it is until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, site: SiteId) -> Result<Option<SiteBrain>> {
    Select::new(SELECT, FROM)
        .within(scope, "b.org_id", Some("b.site_id"))
        .and_bind("b.site_id = ?", Bind::Id(site.0))
        .one_locked(tx, "b")
        .await
}

/// Sets the brain of a site, or sets it anew: what was read of another one is not read of this one, and the site is due.
pub async fn set(tx: &mut Tx, new: &NewBrain<'_>) -> Result<()> {
    let limbs = new.limb_ids.map(|ids| serde_json::json!(ids));
    affected!(
        tx,
        sqlx::query(
            "INSERT INTO site_brain (site_id, org_id, controller_id, limb_ids, on_drift, revision, set_by, set_at)
            VALUES ($1, $2, $3, $4, $5, 1, $6, $7)
            ON CONFLICT (site_id) DO UPDATE SET
                read_at = CASE WHEN site_brain.controller_id = excluded.controller_id
                    THEN site_brain.read_at ELSE NULL END,
                controller_id = excluded.controller_id, limb_ids = excluded.limb_ids, on_drift = excluded.on_drift,
                revision = site_brain.revision + 1, set_by = excluded.set_by, set_at = excluded.set_at,
                checked_at = NULL"
        )
        .bind(new.site_id)
        .bind(new.org_id)
        .bind(new.controller_id)
        .bind(limbs)
        .bind(new.on_drift)
        .bind(new.set_by)
        .bind(new.now)
    );
    Ok(())
}

/// Takes the brain of a site away; false where it had none.
pub async fn remove(tx: &mut Tx, site: SiteId) -> Result<bool> {
    Ok(affected!(tx, sqlx::query("DELETE FROM site_brain WHERE site_id = $1").bind(site)) == 1)
}

/// Notes that the intent was taken from the readings of the brain. The site is due.
pub async fn note_read(tx: &mut Tx, site: SiteId, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE site_brain SET read_at = $2, checked_at = NULL WHERE site_id = $1")
            .bind(site)
            .bind(now)
    );
    Ok(())
}

/// Notes that the site was compared with what was read until then.
pub async fn note_checked(tx: &mut Tx, site: SiteId, at: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE site_brain SET checked_at = $2 WHERE site_id = $1").bind(site).bind(at)
    );
    Ok(())
}

/// Brains whose site is to be compared, at most `limit`:
/// - it was not compared since it was set or its intent was read, or since one of its controllers was last read; the site
///   that was compared longest ago comes first;
/// - it was compared [`OVERLAP`] ago, and something was read shortly before. The time of a reading is taken before it is
///   stored, by the clock of another process, so the comparison may not have seen it. This ends when the reading is
///   older than three times the overlap;
/// - its policy stages differences, and some were left out by the comparison [`RETRY`] ago.
pub async fn due(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<Vec<SiteBrain>> {
    const ORDER: &str = "b.checked_at NULLS FIRST, b.site_id";
    let not_seen = Select::new(SELECT, FROM).and(
        "(b.checked_at IS NULL OR EXISTS (
            SELECT 1 FROM model_reading r JOIN controller c ON c.id = r.controller_id AND c.deleted_at IS NULL
            LEFT JOIN vendor_site v ON v.controller_id = r.controller_id AND v.site_ref = r.site_ref
            WHERE c.org_id = b.org_id AND COALESCE(v.site_id, c.site_id) = b.site_id
                AND r.kind IN ('vlan', 'port', 'neighbour', 'ssid') AND r.read_at > b.checked_at))",
    );
    let perhaps_not_seen =
        Select::new(SELECT, FROM).and_bind("b.checked_at <= ?", Bind::Time(now - OVERLAP)).and_bind(
            "EXISTS (
                SELECT 1 FROM model_reading r JOIN controller c ON c.id = r.controller_id AND c.deleted_at IS NULL
                LEFT JOIN vendor_site v ON v.controller_id = r.controller_id AND v.site_ref = r.site_ref
                WHERE c.org_id = b.org_id AND COALESCE(v.site_id, c.site_id) = b.site_id
                    AND r.kind IN ('vlan', 'port', 'neighbour', 'ssid') AND r.read_at > ?)",
            Bind::Time(now - OVERLAP * 3),
        );
    let not_staged = Select::new(SELECT, FROM)
        .and_bind("b.on_drift = ?", Bind::Text(OnDrift::Stage.to_string()))
        .and_bind("b.checked_at <= ?", Bind::Time(now - RETRY))
        .and("EXISTS (SELECT 1 FROM vlan_drift d WHERE d.site_id = b.site_id AND d.staged_at IS NULL)");
    let mut found: Vec<SiteBrain> = not_seen.all(tx, ORDER, limit).await?;
    for select in [perhaps_not_seen, not_staged] {
        let more: Vec<SiteBrain> = select.all(tx, ORDER, limit).await?;
        for brain in more {
            if !found.iter().any(|known| known.site_id == brain.site_id) {
                found.push(brain);
            }
        }
    }
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found)
}

/// Sites whose brain is this controller.
pub async fn of_controller(tx: &mut Tx, controller: ControllerId) -> Result<Vec<SiteBrain>> {
    Select::new(SELECT, FROM)
        .and_bind("b.controller_id = ?", Bind::Id(controller.0))
        .all(tx, "b.site_id", crate::select::PER_PAGE_MAX)
        .await
}

#[cfg(test)]
mod tests;
