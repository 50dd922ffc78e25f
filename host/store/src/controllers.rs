//! Controllers: what they are and how to reach them. When they are read is in [`reading`].

mod reading;
pub mod syncs;

use heddle_core::adapter::DeviceStatus;
use heddle_core::change::ChangeStatus;
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, CredentialId, OrgId, SiteId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;
use sqlx::types::Json;

pub use reading::{
    Except, Held, SyncResult, abandoned, claim, due, hold, record_sync, release, release_all,
    schedule_all_now, schedule_now,
};

use crate::select::{Bind, Select, affected};
use crate::sort::{InOrder, Key, Sorted};
use crate::{Result, Scope, Tx};

#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Controller {
    pub id: ControllerId,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub credential_id: CredentialId,
    pub name: String,
    pub vendor: String,
    pub url: String,
    #[sqlx(json)]
    pub tls: TlsPolicy,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub settings: Value,
    pub status: DeviceStatus,
    pub firmware: Option<String>,
    pub product: Option<String>,
    /// When it was last read without an error.
    pub last_sync_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub sync_interval_secs: i64,
    pub next_sync_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Controller {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(c.name)"),
        Key::of("vendor", "c.vendor"),
        Key::of("status", "c.status"),
        Key::of("created_at", "c.created_at"),
        Key::of("updated_at", "c.updated_at"),
        Key::nullable("last_sync_at", "c.last_sync_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["c.id"];
}

/// What a call to the controller needs.
#[derive(Debug, Clone, FromRow)]
pub struct ControllerTarget {
    pub id: ControllerId,
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub name: String,
    pub vendor: String,
    pub url: String,
    pub tls: Value,
    pub settings: Value,
    pub status: DeviceStatus,
    pub sync_interval_secs: i64,
    pub credential_id: CredentialId,
    pub credential_version: i64,
}

#[derive(Debug, Clone)]
pub struct NewController {
    pub id: ControllerId,
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub credential_id: CredentialId,
    pub name: String,
    pub vendor: String,
    pub url: String,
    pub tls: TlsPolicy,
    pub settings: Value,
    pub sync_interval_secs: i64,
    pub next_sync_at: Option<Timestamp>,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Debug, Clone, Default)]
pub struct ControllerUpdate {
    pub name: Option<String>,
    pub url: Option<String>,
    pub site_id: Option<SiteId>,
    pub credential_id: Option<CredentialId>,
    pub tls: Option<TlsPolicy>,
    pub settings: Option<Value>,
    pub sync_interval_secs: Option<i64>,
}

impl ControllerUpdate {
    /// Whether the last reading says nothing of the controller as it will be.
    fn is_reached_otherwise(&self, current: &Controller) -> bool {
        self.url.as_ref().is_some_and(|url| *url != current.url)
            || self.credential_id.is_some_and(|id| id != current.credential_id)
            || self.tls.as_ref().is_some_and(|tls| *tls != current.tls)
    }
}

#[derive(Debug, Clone, Default)]
pub struct ControllerFilter {
    pub site_id: Option<SiteId>,
    pub credential_id: Option<CredentialId>,
    pub vendor: Option<String>,
    pub status: Option<DeviceStatus>,
    /// Part of the name or the address.
    pub search: Option<String>,
}

const SELECT: &str =
    "SELECT c.id, c.org_id, c.site_id, c.credential_id, c.name, c.vendor, c.url, c.tls, c.settings,
    c.status, c.firmware, c.product, c.last_sync_at, c.last_error, c.sync_interval_secs, c.next_sync_at,
    c.created_at, c.updated_at, c.deleted_at";
const FROM: &str = "FROM controller c";

const SELECT_TARGET: &str =
    "SELECT c.id, c.org_id, c.site_id, c.name, c.vendor, c.url, c.tls, c.settings, c.status,
    c.sync_interval_secs, c.credential_id, k.version AS credential_version";
/// A removed organization's controllers are not called.
const FROM_TARGET: &str = "FROM controller c JOIN credential k ON k.id = c.credential_id
    JOIN organization o ON o.id = c.org_id AND o.deleted_at IS NULL";

pub async fn insert(tx: &mut Tx, new: &NewController) -> Result<Controller> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO controller (id, org_id, site_id, credential_id, name, vendor, url, tls, settings, status,
            sync_interval_secs, next_sync_at, created_at, updated_at, sync_requested)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, FALSE)
        RETURNING id, org_id, site_id, credential_id, name, vendor, url, tls, settings,
            status, firmware, product, last_sync_at, last_error, sync_interval_secs, next_sync_at,
            created_at, updated_at, deleted_at")
        .bind(new.id).bind(new.org_id).bind(new.site_id).bind(new.credential_id).bind(&new.name)
        .bind(&new.vendor).bind(&new.url).bind(Json(&new.tls)).bind(&new.settings).bind(DeviceStatus::Unknown)
        .bind(new.sync_interval_secs).bind(new.next_sync_at).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

pub async fn find(tx: &mut Tx, scope: &Scope, id: ControllerId) -> Result<Option<Controller>> {
    live(scope).and_bind("c.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The controller as it is until the transaction ends: nobody else changes it meanwhile.
pub async fn lock(tx: &mut Tx, scope: &Scope, id: ControllerId) -> Result<Option<Controller>> {
    live(scope).and_bind("c.id = ?", Bind::Id(id.0)).one_locked(tx, "c").await
}

/// The controller with its credential's version, to call it.
pub async fn find_target(tx: &mut Tx, scope: &Scope, id: ControllerId) -> Result<Option<ControllerTarget>> {
    Select::new(SELECT_TARGET, FROM_TARGET)
        .within(scope, "c.org_id", Some("c.site_id"))
        .and("c.deleted_at IS NULL")
        .and_bind("c.id = ?", Bind::Id(id.0))
        .one(tx)
        .await
}

/// Those of these controllers that are there, to call them; by id.
pub async fn find_targets(tx: &mut Tx, scope: &Scope, ids: &[ControllerId]) -> Result<Vec<ControllerTarget>> {
    Select::new(SELECT_TARGET, FROM_TARGET)
        .within(scope, "c.org_id", Some("c.site_id"))
        .and("c.deleted_at IS NULL")
        .and_in("c.id", ids.iter().map(|id| Bind::Id(id.0)))
        .all(tx, "c.id", i64::try_from(ids.len()).unwrap_or(i64::MAX))
        .await
}

pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    filter: &ControllerFilter,
    page: impl Into<InOrder<Controller>>,
) -> Result<(Vec<Controller>, i64)> {
    live(scope)
        .and_some("c.site_id = ?", filter.site_id.map(|id| Bind::Id(id.0)))
        .and_some("c.credential_id = ?", filter.credential_id.map(|id| Bind::Id(id.0)))
        .and_some("c.vendor = ?", filter.vendor.clone().map(Bind::Text))
        .and_some("c.status = ?", filter.status.map(|status| Bind::Text(status.to_string())))
        .search(&["c.name", "c.url"], filter.search.as_deref())
        .page(tx, page)
        .await
}

/// Changes a controller. Its devices and pending changes go along to a new site.
///
/// One that is reached in another way than before is due at `now`.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: ControllerId,
    update: &ControllerUpdate,
    now: Timestamp,
) -> Result<Option<Controller>> {
    let Some(current) = find(tx, scope, id).await? else { return Ok(None) };
    let updated = on!(tx, conn => sqlx::query_as("
        UPDATE controller
        SET name = COALESCE($2, name), url = COALESCE($3, url), site_id = COALESCE($4, site_id),
            credential_id = COALESCE($5, credential_id), tls = COALESCE($6, tls),
            settings = COALESCE($7, settings), sync_interval_secs = COALESCE($8, sync_interval_secs),
            next_sync_at = CASE WHEN $10 THEN $9 ELSE next_sync_at END, updated_at = $9
        WHERE id = $1 AND deleted_at IS NULL
        RETURNING id, org_id, site_id, credential_id, name, vendor, url, tls, settings,
            status, firmware, product, last_sync_at, last_error, sync_interval_secs, next_sync_at,
            created_at, updated_at, deleted_at")
        .bind(id).bind(update.name.as_ref()).bind(update.url.as_ref()).bind(update.site_id)
        .bind(update.credential_id).bind(update.tls.as_ref().map(Json)).bind(update.settings.as_ref())
        .bind(update.sync_interval_secs).bind(now).bind(update.is_reached_otherwise(&current))
        .fetch_optional(conn)
        .await)?;
    if let Some(site) = update.site_id {
        affected!(
            tx,
            sqlx::query("UPDATE device SET site_id = $2 WHERE controller_id = $1 AND site_id <> $2")
                .bind(id)
                .bind(site)
        );
        affected!(
            tx,
            sqlx::query(
                "
            UPDATE change SET site_id = $2, updated_at = $3
            WHERE controller_id = $1 AND site_id <> $2 AND status = $4"
            )
            .bind(id)
            .bind(site)
            .bind(now)
            .bind(ChangeStatus::Pending)
        );
    }
    Ok(updated)
}

/// Hides the controller and its devices; false when there is none to hide.
pub async fn remove(tx: &mut Tx, scope: &Scope, id: ControllerId, now: Timestamp) -> Result<bool> {
    if find(tx, scope, id).await?.is_none() {
        return Ok(false);
    }
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE controller SET deleted_at = $2, updated_at = $2 WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(now)
    );
    affected!(
        tx,
        sqlx::query(
            "UPDATE device SET deleted_at = $2, updated_at = $2 WHERE controller_id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Brings a removed controller back, with the devices that went with it.
pub async fn restore(
    tx: &mut Tx,
    scope: &Scope,
    id: ControllerId,
    now: Timestamp,
) -> Result<Option<Controller>> {
    let removed: Option<Controller> = Select::new(SELECT, FROM)
        .within(scope, "c.org_id", Some("c.site_id"))
        .and("c.deleted_at IS NOT NULL")
        .and_bind("c.id = ?", Bind::Id(id.0))
        .one(tx)
        .await?;
    let Some(removed) = removed else { return Ok(None) };
    affected!(
        tx,
        sqlx::query("UPDATE controller SET deleted_at = NULL, updated_at = $2 WHERE id = $1")
            .bind(id)
            .bind(now)
    );
    affected!(
        tx,
        sqlx::query(
            "UPDATE device SET deleted_at = NULL, updated_at = $2 WHERE controller_id = $1 AND deleted_at = $3"
        )
        .bind(id)
        .bind(now)
        .bind(removed.deleted_at)
    );
    find(tx, scope, id).await
}

fn live(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "c.org_id", Some("c.site_id")).and("c.deleted_at IS NULL")
}

#[cfg(test)]
mod tests;
