//! Sites of the vendor's own below controllers, and the site of ours that each is.

use std::collections::HashMap;

use heddle_core::adapter::VendorSite;
use heddle_core::change::ChangeStatus;
use heddle_core::{ControllerId, SiteId, Timestamp};
use sqlx::{FromRow, QueryBuilder};

use crate::controllers::{ControllerTarget, from_target, select_target};
use crate::db::Tx;
use crate::error::Result;
use crate::model_objects;
use crate::select::{Bind, Scope, Select, affected};

/// Most sites of one controller; of those that are gone as many are kept.
pub const VENDOR_SITES_MAX: usize = 2_000;
/// Rows of one statement.
const ROWS_PER_STATEMENT: usize = 500;

/// A site of the vendor's.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Row {
    /// The vendor's id of it.
    pub site_ref: String,
    /// As the vendor calls it.
    pub name: String,
    /// The site of ours that a person chose for it.
    pub mapped_to: Option<SiteId>,
    /// The site of ours that it is: the chosen one, else the controller's own.
    pub site_id: SiteId,
    /// A person wants nothing of it to be read.
    pub is_ignored: bool,
    /// Whether the last reading found it.
    pub is_present: bool,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
}

const SELECT: &str =
    "SELECT v.site_ref, v.name, s.id AS mapped_to, COALESCE(s.id, c.site_id) AS site_id, v.is_ignored, v.is_present,
    v.first_seen_at, v.last_seen_at";
/// A chosen site that was removed counts as none.
const FROM: &str = "FROM vendor_site v JOIN controller c ON c.id = v.controller_id
    LEFT JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL";
const SELECT_BESIDE: &str = concat!(
    select_target!(),
    ", v.site_ref AS of_vendor, v.name AS vendor_name, COALESCE(s.id, c.site_id) AS place_id, v.is_ignored"
);
const FROM_BESIDE: &str = concat!(
    from_target!(),
    " LEFT JOIN vendor_site v ON v.controller_id = c.id AND v.is_present
    LEFT JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL"
);
/// More rows than one controller has.
const ROWS_MAX: i64 = 10_000;

fn of(controller: ControllerId) -> Select {
    Select::new(SELECT, FROM).and_bind("v.controller_id = ?", Bind::Id(controller.0))
}

/// Returns the sites of a controller by their names, and those that are gone for which a person chose something.
pub async fn list(tx: &mut Tx, controller: ControllerId) -> Result<Vec<Row>> {
    of(controller).all(tx, "v.name, v.site_ref", ROWS_MAX).await
}

/// Returns the sites of a controller that its last reading found, by their names.
pub async fn present(tx: &mut Tx, controller: ControllerId) -> Result<Vec<Row>> {
    of(controller).and("v.is_present").all(tx, "v.name, v.site_ref", ROWS_MAX).await
}

/// A site that the last reading found, as far as a place is chosen by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub site_ref: String,
    pub name: String,
    /// The site of ours that it is.
    pub site_id: SiteId,
    pub is_ignored: bool,
}

/// A controller beside one of its sites; without one where it has none.
#[derive(FromRow)]
struct Beside {
    #[sqlx(flatten)]
    target: ControllerTarget,
    of_vendor: Option<String>,
    vendor_name: Option<String>,
    place_id: SiteId,
    is_ignored: Option<bool>,
}

impl Beside {
    /// The controller, and its site where there is one.
    fn split(self) -> (ControllerTarget, Option<Place>) {
        let Self { target, of_vendor, vendor_name, place_id: site_id, is_ignored } = self;
        let named = of_vendor.zip(vendor_name);
        let is_ignored = is_ignored.unwrap_or_default();
        (target, named.map(|(site_ref, name)| Place { site_ref, name, site_id, is_ignored }))
    }
}

/// Returns a controller, to call it, and the sites that its last reading found, by their names. One statement: most requests
/// that reach a device begin with it.
pub async fn target_with_sites(
    tx: &mut Tx,
    scope: &Scope,
    id: ControllerId,
) -> Result<Option<(ControllerTarget, Vec<Place>)>> {
    let rows: Vec<Beside> = Select::new(SELECT_BESIDE, FROM_BESIDE)
        .within(scope, "c.org_id", Some("c.site_id"))
        .and("c.deleted_at IS NULL")
        .and_bind("c.id = ?", Bind::Id(id.0))
        .all(tx, "v.name, v.site_ref", ROWS_MAX)
        .await?;
    let mut rows = rows.into_iter().map(Beside::split);
    let Some((target, first)) = rows.next() else { return Ok(None) };
    Ok(Some((target, first.into_iter().chain(rows.filter_map(|(_, site)| site)).collect())))
}

/// Returns one site of a controller, also one that is gone; `None` where it is not known.
pub async fn find(tx: &mut Tx, controller: ControllerId, site_ref: &str) -> Result<Option<Row>> {
    of(controller).and_bind("v.site_ref = ?", Bind::Text(site_ref.to_owned())).one(tx).await
}

/// A controller of which a vendor's site belongs to a site of ours.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct MappedFrom {
    pub name: String,
    /// The controller's own site.
    pub site_id: SiteId,
}

/// Returns the controllers of which a person mapped a vendor's site to this site, by their names.
pub async fn mapped_to(tx: &mut Tx, site: SiteId) -> Result<Vec<MappedFrom>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT c.name, c.site_id FROM controller c
        WHERE c.deleted_at IS NULL AND c.id IN (SELECT v.controller_id FROM vendor_site v WHERE v.site_id = $1)
        ORDER BY c.name, c.id")
        .bind(site)
        .fetch_all(conn)
        .await)?)
}

/// Records which sites a controller has: all of them. What people chose for a site stays while it is gone, of the
/// [`VENDOR_SITES_MAX`] that were seen last; a site that is gone and for which nobody chose anything is forgotten.
pub async fn record(
    tx: &mut Tx,
    controller: ControllerId,
    sites: &[VendorSite],
    now: Timestamp,
) -> Result<()> {
    let by_ref: HashMap<&str, &str> =
        sites.iter().map(|site| (site.id.as_str(), site.name.as_str())).collect();
    let mut rows: Vec<(&str, &str)> = by_ref.into_iter().collect();
    rows.sort_unstable();
    affected!(
        tx,
        sqlx::query(
            "UPDATE vendor_site SET is_present = FALSE
            WHERE controller_id = $1 AND is_present AND last_seen_at < $2"
        )
        .bind(controller)
        .bind(now)
    );
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO vendor_site (controller_id, site_ref, name, is_ignored, is_present, first_seen_at, last_seen_at) ",
            );
            insert.push_values(rows, |mut row, (site_ref, name)| {
                row.push_bind(controller)
                    .push_bind(*site_ref)
                    .push_bind(*name)
                    .push_bind(false)
                    .push_bind(true)
                    .push_bind(now)
                    .push_bind(now);
            });
            insert.push(
                " ON CONFLICT (controller_id, site_ref) DO UPDATE SET
                    name = excluded.name, is_present = TRUE, last_seen_at = excluded.last_seen_at",
            );
            insert.build().execute(conn).await.map(|_| ())
        })?;
    }
    forget_gone(tx, controller).await
}

/// Forgets sites that are gone.
async fn forget_gone(tx: &mut Tx, controller: ControllerId) -> Result<()> {
    let most = i64::try_from(VENDOR_SITES_MAX).unwrap_or(i64::MAX);
    affected!(
        tx,
        sqlx::query(
            "DELETE FROM vendor_site
            WHERE controller_id = $1 AND NOT is_present AND ((site_id IS NULL AND NOT is_ignored) OR site_ref NOT IN (
                SELECT v.site_ref FROM vendor_site v
                WHERE v.controller_id = $1 AND NOT v.is_present AND (v.site_id IS NOT NULL OR v.is_ignored)
                ORDER BY v.last_seen_at DESC, v.site_ref LIMIT CAST($2 AS BIGINT)))"
        )
        .bind(controller)
        .bind(most)
    );
    Ok(())
}

/// The site of ours that a vendor's site is, where that is there and is read; `None` else.
pub async fn place(tx: &mut Tx, controller: ControllerId, site_ref: &str) -> Result<Option<SiteId>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT COALESCE(s.id, c.site_id)
        FROM vendor_site v JOIN controller c ON c.id = v.controller_id
            LEFT JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL
        WHERE v.controller_id = $1 AND v.site_ref = $2 AND v.is_present AND NOT v.is_ignored")
        .bind(controller)
        .bind(site_ref)
        .fetch_optional(conn)
        .await)?)
}

/// What a person chose for a site of the vendor's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// `None` is the controller's own site.
    pub site_id: Option<SiteId>,
    pub is_ignored: bool,
}

/// Keeps what a person chose for a site; its devices, objects and pending changes go along to `place`, the site that it then is. The
/// devices and objects of one that is ignored are removed: a reading that finds them again brings them back. False where the controller has no such site.
pub async fn choose(
    tx: &mut Tx,
    controller: ControllerId,
    site_ref: &str,
    choice: &Choice,
    place: SiteId,
    now: Timestamp,
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE vendor_site SET site_id = $3, is_ignored = $4 WHERE controller_id = $1 AND site_ref = $2"
        )
        .bind(controller)
        .bind(site_ref)
        .bind(choice.site_id)
        .bind(choice.is_ignored)
    );
    if rows == 0 {
        return Ok(false);
    }
    affected!(
        tx,
        sqlx::query(
            "UPDATE device SET site_id = $3, revision = revision + 1, updated_at = $4
            WHERE controller_id = $1 AND site_ref = $2 AND site_id <> $3"
        )
        .bind(controller)
        .bind(site_ref)
        .bind(place)
        .bind(now)
    );
    if choice.is_ignored {
        affected!(
            tx,
            sqlx::query(
                "UPDATE device SET deleted_at = $3, revision = revision + 1, updated_at = $3
                WHERE controller_id = $1 AND site_ref = $2 AND deleted_at IS NULL"
            )
            .bind(controller)
            .bind(site_ref)
            .bind(now)
        );
        model_objects::forget_vendor_site(tx, controller, site_ref).await?;
    } else {
        model_objects::follow_vendor_site(tx, controller, site_ref, place).await?;
    }
    affected!(
        tx,
        sqlx::query(
            "UPDATE change SET site_id = $3, updated_at = $4
            WHERE controller_id = $1 AND site_ref = $2 AND site_id <> $3 AND status = $5"
        )
        .bind(controller)
        .bind(site_ref)
        .bind(place)
        .bind(now)
        .bind(ChangeStatus::Pending)
    );
    Ok(true)
}

#[cfg(test)]
mod tests;
