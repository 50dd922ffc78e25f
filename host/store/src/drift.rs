//! Differences between what is wanted of objects and what was observed. What is wanted is in [`crate::wanted`].

use heddle_core::drift::{DriftChange, DriftLabel, DriftStatus, FieldDrift, WantedBasis};
use heddle_core::{ChangeId, ControllerId, OrgId, SiteId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::FromRow;
use sqlx::types::Json;

use crate::db::Tx;
use crate::error::Result;
use crate::model_objects::record::List;
use crate::object::{Object, Table, revised, table};
use crate::select::{Bind, Scope, Select, affected};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    pub DriftId,
}

/// An object that is not as it is wanted, or was not for a while.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Drift {
    pub id: DriftId,
    /// How often its differences, or people's decision about it, changed.
    #[serde(skip)]
    pub revision: i64,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub site_id: SiteId,
    /// The vendor's id of the site, where the kind is of the vendor's sites.
    pub site_ref: Option<String>,
    pub controller_id: ControllerId,
    /// Kind of the model, such as `vlan`.
    pub kind: String,
    /// Key of the object, unique in its kind and site of the vendor's.
    pub key: String,
    /// The object, as people call it.
    pub object_label: String,
    /// Identity of the device that the object belongs to.
    pub device_key: Option<String>,
    /// What became of the object.
    pub change: DriftChange,
    /// Originator of the differences; `unknown` also where they have different originators.
    pub label: DriftLabel,
    /// The fields that are not as they are wanted.
    #[sqlx(json)]
    pub differences: Vec<FieldDrift>,
    /// Where what is wanted comes from.
    pub basis: WantedBasis,
    /// The change that was applied to the object last.
    pub wanted_change_id: Option<ChangeId>,
    pub status: DriftStatus,
    /// The staged change that brings back what is wanted.
    pub put_back_id: Option<ChangeId>,
    /// The user that named the originator.
    pub said_by: Option<UserId>,
    /// What people wrote about it.
    pub notes: Option<String>,
    /// The user that adopted it.
    pub closed_by: Option<UserId>,
    pub closed_at: Option<Timestamp>,
    /// When a reading found it.
    pub created_at: Timestamp,
    /// When its differences, or people's decision about it, changed last.
    pub updated_at: Timestamp,
}

revised!(Drift);

impl Object for Drift {
    type Id = DriftId;
    const TABLE: Table = table!(
        "drift",
        "drift.id, drift.revision, drift.org_id, drift.site_id, NULLIF(drift.site_ref, '') AS site_ref,
        drift.controller_id, drift.kind, drift.key, drift.object_label, drift.device_key, drift.change, drift.label,
        drift.differences, drift.basis, drift.wanted_change_id, drift.status, drift.put_back_id, drift.said_by,
        drift.notes, drift.closed_by, drift.closed_at, drift.created_at, drift.updated_at",
        org: "org_id",
        site: "site_id"
    );

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

impl Sorted for Drift {
    const KEYS: &'static [Key] = &[
        Key::of("created_at", "drift.created_at"),
        Key::of("updated_at", "drift.updated_at"),
        Key::of("kind", "drift.kind"),
        Key::of("object_label", "LOWER(drift.object_label)"),
    ];
    const DEFAULT: &'static str = "-updated_at";
    const LAST: &'static [&'static str] = &["drift.id"];
}

/// Narrows a list within its scope. A field that is `None` has no effect; all others must hold.
#[derive(Debug, Clone, Default)]
pub struct DriftFilter {
    pub site_id: Option<SiteId>,
    pub controller_id: Option<ControllerId>,
    pub kind: Option<String>,
    pub label: Option<DriftLabel>,
    pub status: Option<DriftStatus>,
    /// Part of the object's label or key.
    pub search: Option<String>,
}

/// Returns a page of the differences, and how many there are on all pages. Those of removed controllers are not listed.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    filter: &DriftFilter,
    page: impl Into<InOrder<Drift>>,
) -> Result<(Vec<Drift>, i64)> {
    Select::new(Drift::TABLE.select, Drift::TABLE.from)
        .within(scope, "drift.org_id", Some("drift.site_id"))
        .and("drift.controller_id IN (SELECT id FROM controller WHERE deleted_at IS NULL)")
        .and_some("drift.site_id = ?", filter.site_id.map(|id| Bind::Id(id.0)))
        .and_some("drift.controller_id = ?", filter.controller_id.map(|id| Bind::Id(id.0)))
        .and_some("drift.kind = ?", filter.kind.clone().map(Bind::Text))
        .and_some("drift.label = ?", filter.label.map(|label| Bind::Text(label.to_string())))
        .and_some("drift.status = ?", filter.status.map(|status| Bind::Text(status.to_string())))
        .search(&["drift.object_label", "drift.key"], filter.search.as_deref())
        .page(tx, page)
        .await
}

/// Most differences of one controller that are open.
pub const OPEN_MAX: i64 = 1_000;

/// The open differences of the objects of a list.
pub async fn open_of(tx: &mut Tx, list: &List<'_>) -> Result<Vec<Drift>> {
    Select::new(Drift::TABLE.select, Drift::TABLE.from)
        .and("drift.closed_at IS NULL")
        .and_bind("drift.controller_id = ?", Bind::Id(list.controller_id.0))
        .and_bind("drift.kind = ?", Bind::Text(list.kind.to_owned()))
        .and_bind("drift.site_ref = ?", Bind::Text(list.site_ref.to_owned()))
        .all(tx, "drift.key", OPEN_MAX)
        .await
}

/// How many differences of a controller are open.
pub async fn open_at(tx: &mut Tx, controller: ControllerId) -> Result<i64> {
    Select::new("SELECT drift.id", Drift::TABLE.from)
        .and("drift.closed_at IS NULL")
        .and_bind("drift.controller_id = ?", Bind::Id(controller.0))
        .count(tx)
        .await
}

/// A difference about to be written; it begins as open.
#[derive(Debug, Clone)]
pub struct NewDrift<'a> {
    pub id: DriftId,
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub list: List<'a>,
    pub key: &'a str,
    pub object_label: &'a str,
    pub device_key: Option<&'a str>,
    pub basis: WantedBasis,
    pub wanted_change_id: Option<ChangeId>,
    pub found: &'a Found,
    pub now: Timestamp,
}

/// What a comparison found of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub change: DriftChange,
    pub label: DriftLabel,
    pub differences: Vec<FieldDrift>,
}

/// Inserts a difference.
///
/// # Errors
/// [`crate::error::Error::Unique`] when one of the object is open.
pub async fn insert(tx: &mut Tx, new: &NewDrift<'_>) -> Result<Drift> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO drift (id, revision, org_id, site_id, controller_id, kind, site_ref, key, object_label, device_key,
            change, label, differences, basis, wanted_change_id, status, created_at, updated_at)
        VALUES ($1, 1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16)
        RETURNING drift.id, drift.revision, drift.org_id, drift.site_id, NULLIF(drift.site_ref, '') AS site_ref,
            drift.controller_id, drift.kind, drift.key, drift.object_label, drift.device_key, drift.change, drift.label,
            drift.differences, drift.basis, drift.wanted_change_id, drift.status, drift.put_back_id, drift.said_by,
            drift.notes, drift.closed_by, drift.closed_at, drift.created_at, drift.updated_at")
        .bind(new.id).bind(new.org_id).bind(new.site_id)
        .bind(new.list.controller_id).bind(new.list.kind).bind(new.list.site_ref)
        .bind(new.key).bind(new.object_label).bind(new.device_key)
        .bind(new.found.change).bind(new.found.label).bind(Json(&new.found.differences))
        .bind(new.basis).bind(new.wanted_change_id).bind(DriftStatus::Open).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

/// Stores new values of an open difference. A change that was staged to put it back no longer fits.
pub async fn refind(tx: &mut Tx, id: DriftId, found: &Found, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE drift SET change = $2, label = $3, differences = $4, put_back_id = NULL, said_by = NULL,
                revision = revision + 1, updated_at = $5
            WHERE id = $1 AND closed_at IS NULL"
        )
        .bind(id)
        .bind(found.change)
        .bind(found.label)
        .bind(Json(&found.differences))
        .bind(now)
    );
    Ok(())
}

/// What people say of a difference.
#[derive(Debug, Clone, Default)]
pub struct Said<'a> {
    pub user: Option<UserId>,
    /// The originator, as the user names it.
    pub label: Option<DriftLabel>,
    pub notes: Option<&'a str>,
}

/// Closes an open difference; false when it is closed already.
pub async fn close(
    tx: &mut Tx,
    id: DriftId,
    status: DriftStatus,
    said: &Said<'_>,
    now: Timestamp,
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE drift SET status = $2, closed_by = $3, closed_at = $4, updated_at = $4, revision = revision + 1,
                label = COALESCE($5, label), notes = COALESCE($6, notes),
                said_by = CASE WHEN $7 THEN $3 ELSE said_by END
            WHERE id = $1 AND closed_at IS NULL"
        )
        .bind(id)
        .bind(status)
        .bind(said.user)
        .bind(now)
        .bind(said.label)
        .bind(said.notes)
        .bind(said.label.is_some())
    );
    Ok(rows == 1)
}

/// Names the staged change that brings back what is wanted; false when the difference is closed already.
pub async fn put_back(
    tx: &mut Tx,
    id: DriftId,
    change: ChangeId,
    said: &Said<'_>,
    now: Timestamp,
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE drift SET put_back_id = $2, updated_at = $3, revision = revision + 1, label = COALESCE($4, label),
                notes = COALESCE($5, notes), said_by = CASE WHEN $6 THEN $7 ELSE said_by END
            WHERE id = $1 AND closed_at IS NULL"
        )
        .bind(id)
        .bind(change)
        .bind(now)
        .bind(said.label)
        .bind(said.notes)
        .bind(said.label.is_some())
        .bind(said.user)
    );
    Ok(rows == 1)
}

/// Forgets up to so many differences that were closed before this time; returns how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, rows: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "DELETE FROM drift WHERE id IN (
                SELECT id FROM drift WHERE closed_at IS NOT NULL AND closed_at < $1
                ORDER BY closed_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(rows))
    ))
}

/// Closes up to so many open differences of lists that are read no more; returns how many.
pub async fn resolve_unread(tx: &mut Tx, now: Timestamp, rows: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "UPDATE drift SET status = 'resolved', closed_at = $1, updated_at = $1, revision = revision + 1
            WHERE closed_at IS NULL AND id IN (
                SELECT d.id FROM drift d LEFT JOIN model_reading r ON r.controller_id = d.controller_id
                    AND r.kind = d.kind AND r.site_ref = d.site_ref
                WHERE d.closed_at IS NULL AND r.kind IS NULL
                ORDER BY d.id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(now)
        .bind(i64::from(rows))
    ))
}

/// Takes the differences of a controller along to its new site, except those at a vendor's site for which a person chose
/// one.
pub(crate) async fn follow_controller(tx: &mut Tx, controller: ControllerId, site: SiteId) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE drift SET site_id = $2, revision = revision + 1
            WHERE controller_id = $1 AND site_id <> $2 AND site_ref NOT IN (
                SELECT v.site_ref FROM vendor_site v JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL
                WHERE v.controller_id = $1)"
        )
        .bind(controller)
        .bind(site)
    );
    Ok(())
}

/// Takes the differences of a vendor's site along to the site of ours that it is now.
pub(crate) async fn follow_vendor_site(
    tx: &mut Tx,
    controller: ControllerId,
    site_ref: &str,
    site: SiteId,
) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE drift SET site_id = $3, revision = revision + 1 WHERE controller_id = $1 AND site_ref = $2 AND site_id <> $3"
        )
        .bind(controller)
        .bind(site_ref)
        .bind(site)
    );
    Ok(())
}

#[cfg(test)]
mod tests;
