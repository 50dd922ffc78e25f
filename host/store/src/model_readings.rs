//! How the readings of the model went, by kind and controller or vendor's site, and the differences that no event tells
//! of yet.

use heddle_core::adapter::Completeness;
use heddle_core::{ControllerId, SiteId, Timestamp};
use serde_json::Value;
use sqlx::{FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::model_objects::record::List;
use crate::select::{Bind, Scope, Select, affected};
use crate::sort::{InOrder, Key, Sorted};

/// Rows of one statement.
const ROWS_PER_STATEMENT: usize = 500;

/// How the readings of one list went.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Row {
    pub kind: String,
    /// The vendor's id of the site; empty where the objects are the controller's.
    pub site_ref: String,
    /// When the last reading of it began; empty makes it due.
    pub begun_at: Option<Timestamp>,
    /// When a reading last came to the end of the list.
    pub read_at: Option<Timestamp>,
    /// When the component was last stopped while it was read.
    pub stopped_at: Option<Timestamp>,
    pub objects: i64,
    /// Objects of the last reading that could not be stored.
    pub left_out: i64,
    pub complete: Completeness,
    pub error: Option<String>,
    /// Differences that no event tells of yet.
    pub created: i64,
    pub changed: i64,
    pub removed: i64,
}

impl Row {
    /// A list that was never read.
    pub fn new(kind: &str, site_ref: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            site_ref: site_ref.to_owned(),
            begun_at: None,
            read_at: None,
            stopped_at: None,
            objects: 0,
            left_out: 0,
            complete: Completeness::Unknown,
            error: None,
            created: 0,
            changed: 0,
            removed: 0,
        }
    }

    /// All differences that no event tells of yet.
    pub fn differences(&self) -> i64 {
        self.created + self.changed + self.removed
    }
}

const COLUMNS: &str =
    "SELECT r.kind, r.site_ref, r.begun_at, r.read_at, r.stopped_at, r.objects, r.left_out, r.complete,
    r.error, r.created, r.changed, r.removed";

/// Most lists of one controller.
pub const LISTS_MAX: i64 = 100_000;

/// How the readings of all lists of a controller went.
pub async fn of_controller(tx: &mut Tx, controller: ControllerId) -> Result<Vec<Row>> {
    Select::new(COLUMNS, "FROM model_reading r")
        .and_bind("r.controller_id = ?", Bind::Id(controller.0))
        .all(tx, "r.kind, r.site_ref", LISTS_MAX)
        .await
}

/// How the readings of one list went.
pub async fn find(tx: &mut Tx, list: &List<'_>) -> Result<Option<Row>> {
    Select::new(COLUMNS, "FROM model_reading r")
        .and_bind("r.controller_id = ?", Bind::Id(list.controller_id.0))
        .and_bind("r.kind = ?", Bind::Text(list.kind.to_owned()))
        .and_bind("r.site_ref = ?", Bind::Text(list.site_ref.to_owned()))
        .one(tx)
        .await
}

/// What clients see of the readings of a list.
#[derive(Debug, Clone, FromRow)]
pub struct Shown {
    #[sqlx(flatten)]
    pub row: Row,
    /// The site of ours that the objects belong to.
    pub site_id: SiteId,
}

impl Sorted for Shown {
    const KEYS: &'static [Key] = &[Key::of("kind", "r.kind")];
    const DEFAULT: &'static str = "kind";
    const LAST: &'static [&'static str] = &["r.site_ref"];
}

/// Returns a page of the lists of a controller that belong to sites of the scope, and how many there are on all pages.
pub async fn page(
    tx: &mut Tx,
    scope: &Scope,
    controller: ControllerId,
    page: impl Into<InOrder<Shown>>,
) -> Result<(Vec<Shown>, i64)> {
    Select::new(
        "SELECT r.kind, r.site_ref, r.begun_at, r.read_at, r.stopped_at, r.objects, r.left_out, r.complete, r.error,
            r.created, r.changed, r.removed, COALESCE(s.id, c.site_id) AS site_id",
        "FROM model_reading r JOIN controller c ON c.id = r.controller_id
            LEFT JOIN vendor_site v ON v.controller_id = r.controller_id AND v.site_ref = r.site_ref
            LEFT JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL",
    )
    .within(scope, "c.org_id", Some("COALESCE(s.id, c.site_id)"))
    .and_bind("r.controller_id = ?", Bind::Id(controller.0))
    .page(tx, page)
    .await
}

/// A list at a site, and how old what is known of it is.
#[derive(Debug, Clone, FromRow)]
pub struct SiteList {
    pub controller_id: ControllerId,
    pub vendor: String,
    /// Name of the controller.
    pub name: String,
    pub firmware: Option<String>,
    pub kind: String,
    /// The vendor's id of the site; empty where the objects are the controller's.
    pub site_ref: String,
    pub read_at: Option<Timestamp>,
    pub complete: Completeness,
    pub error: Option<String>,
}

/// The lists whose objects belong to a site.
pub async fn of_site(tx: &mut Tx, scope: &Scope, site: SiteId) -> Result<Vec<SiteList>> {
    Select::new(
        "SELECT r.controller_id, c.vendor, c.name, c.firmware, r.kind, r.site_ref, r.read_at, r.complete, r.error",
        "FROM model_reading r JOIN controller c ON c.id = r.controller_id AND c.deleted_at IS NULL
            LEFT JOIN vendor_site v ON v.controller_id = r.controller_id AND v.site_ref = r.site_ref
            LEFT JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL",
    )
    .within(scope, "c.org_id", Some("COALESCE(s.id, c.site_id)"))
    .and_bind("COALESCE(s.id, c.site_id) = ?", Bind::Id(site.0))
    .all(tx, "r.controller_id, r.kind, r.site_ref", LISTS_MAX)
    .await
}

/// Stores how the readings of a list went.
pub async fn save(tx: &mut Tx, controller: ControllerId, row: &Row) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "INSERT INTO model_reading (controller_id, kind, site_ref, begun_at, read_at, stopped_at, objects, left_out,
                complete, error, created, changed, removed)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
            ON CONFLICT (controller_id, kind, site_ref) DO UPDATE SET
                begun_at = excluded.begun_at, read_at = excluded.read_at, stopped_at = excluded.stopped_at,
                objects = excluded.objects, left_out = excluded.left_out, complete = excluded.complete,
                error = excluded.error, created = excluded.created, changed = excluded.changed,
                removed = excluded.removed"
        )
        .bind(controller)
        .bind(&row.kind)
        .bind(&row.site_ref)
        .bind(row.begun_at)
        .bind(row.read_at)
        .bind(row.stopped_at)
        .bind(row.objects)
        .bind(row.left_out)
        .bind(row.complete)
        .bind(row.error.as_ref())
        .bind(row.created)
        .bind(row.changed)
        .bind(row.removed)
    );
    Ok(())
}

/// Makes every list of a controller due whose last reading began before this time.
pub async fn make_due(tx: &mut Tx, controller: ControllerId, before: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE model_reading SET begun_at = NULL WHERE controller_id = $1 AND begun_at < $2")
            .bind(controller)
            .bind(before)
    );
    Ok(())
}

/// Forgets a list that is read no more. Its objects are gone, and its differences told.
pub async fn remove(tx: &mut Tx, list: &List<'_>) -> Result<()> {
    affected!(
        tx,
        sqlx::query("DELETE FROM model_reading WHERE controller_id = $1 AND kind = $2 AND site_ref = $3")
            .bind(list.controller_id)
            .bind(list.kind)
            .bind(list.site_ref)
    );
    Ok(())
}

/// Keeps differences of a list until its reading ends, numbered from `first`.
pub async fn keep_differences(tx: &mut Tx, list: &List<'_>, first: i64, payloads: &[Value]) -> Result<()> {
    let numbered: Vec<(i64, &Value)> = (first..).zip(payloads).collect();
    for rows in numbered.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO model_difference (controller_id, kind, site_ref, number, payload) ",
            );
            insert.push_values(rows, |mut row, (number, payload)| {
                row.push_bind(list.controller_id)
                    .push_bind(list.kind)
                    .push_bind(list.site_ref)
                    .push_bind(*number)
                    .push_bind(*payload);
            });
            insert.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

/// Takes the differences of a list out, in the order in which they were found.
pub async fn take_differences(tx: &mut Tx, list: &List<'_>) -> Result<Vec<Value>> {
    let taken: Vec<Value> = on!(tx, conn => sqlx::query_scalar("
        SELECT payload FROM model_difference WHERE controller_id = $1 AND kind = $2 AND site_ref = $3 ORDER BY number")
        .bind(list.controller_id)
        .bind(list.kind)
        .bind(list.site_ref)
        .fetch_all(conn)
        .await)?;
    affected!(
        tx,
        sqlx::query("DELETE FROM model_difference WHERE controller_id = $1 AND kind = $2 AND site_ref = $3")
            .bind(list.controller_id)
            .bind(list.kind)
            .bind(list.site_ref)
    );
    Ok(taken)
}
