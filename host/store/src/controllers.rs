//! Controllers: what they are and how to reach them. When they are read is in [`reading`].

mod reading;
pub mod releases;
pub mod syncs;

use heddle_core::adapter::DeviceStatus;
use heddle_core::change::ChangeStatus;
use heddle_core::organization_settings::OrganizationSettings;
use heddle_core::push::PushState;
use heddle_core::release::ReleaseState;
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, CredentialId, OrgId, SiteId, Timestamp};
pub(crate) use reading::claim_by;
pub use reading::{
    Except, Held, SyncResult, abandoned, claim, due, hold, is_due, note_lists, record_part, record_sync,
    release, release_all, schedule_all_now, schedule_now,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::model_objects;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::push::{Push, PushView};
use crate::select::{Bind, Scope, Select, affected};
use crate::sort::{InOrder, Key, Sorted};

/// A system that manages devices: how it is reached, and how its last reading ended.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Controller {
    pub id: ControllerId,
    /// How often people have edited it.
    #[serde(skip)]
    pub revision: i64,
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
    pub release_state: ReleaseState,
    /// Version with which changes are applied although the adapter was not tested with it; null where nobody allowed one.
    pub allowed_release: Option<String>,
    /// When it was last read.
    pub last_sync_at: Option<Timestamp>,
    /// Why it could not be read since, or what of it could not be read then; null where nothing was wrong.
    pub last_error: Option<String>,
    pub sync_interval_secs: i64,
    pub next_sync_at: Option<Timestamp>,
    /// Whether the channels are used on which it tells that something changed.
    pub push_enabled: bool,
    /// Whether changes are told at once; null where the adapter has no channel for it.
    #[sqlx(flatten)]
    #[schemars(with = "Option<PushView<'static>>")]
    pub push: Push,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Controller {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(controller.name)"),
        Key::of("vendor", "controller.vendor"),
        Key::of("status", "controller.status"),
        Key::of("created_at", "controller.created_at"),
        Key::of("updated_at", "controller.updated_at"),
        Key::nullable("last_sync_at", "controller.last_sync_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["controller.id"];
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
    pub product: Option<String>,
    /// The version that it runs, as it was last read.
    pub firmware: Option<String>,
    pub allowed_release: Option<String>,
    pub sync_interval_secs: i64,
    pub credential_id: CredentialId,
    pub credential_version: i64,
}

/// A row of `controller` about to be written. It is read for the first time at `next_sync_at`.
/// Without that time it is not read until a reading is requested.
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
    pub push_enabled: bool,
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
    pub push_enabled: Option<bool>,
}

impl ControllerUpdate {
    /// Whether the last reading says nothing of the controller as it will be.
    fn is_reached_otherwise(&self, current: &Controller) -> bool {
        self.url.as_ref().is_some_and(|url| *url != current.url)
            || self.credential_id.is_some_and(|id| id != current.credential_id)
            || self.tls.as_ref().is_some_and(|tls| *tls != current.tls)
            || self.settings.as_ref().is_some_and(|settings| *settings != current.settings)
    }
}

/// Narrows a list of controllers within its scope. A field that is `None` has no effect.
/// All others must hold.
#[derive(Debug, Clone, Default)]
pub struct ControllerFilter {
    pub site_id: Option<SiteId>,
    pub credential_id: Option<CredentialId>,
    pub vendor: Option<String>,
    pub status: Option<DeviceStatus>,
    pub release_state: Option<ReleaseState>,
    pub push_state: Option<PushState>,
    /// Part of the name or the address.
    pub search: Option<String>,
}

revised!(Controller);

impl Object for Controller {
    type Id = ControllerId;
    const TABLE: Table = table!(
        "controller",
        "controller.id, controller.revision, controller.org_id, controller.site_id, controller.credential_id, controller.name,
        controller.vendor, controller.url, controller.tls, controller.settings, controller.status, controller.firmware,
        controller.product, controller.release_state, controller.allowed_release, controller.last_sync_at, controller.last_error, controller.sync_interval_secs,
        controller.next_sync_at, controller.push_enabled, controller.push_state, controller.push_since, controller.push_reason,
        controller.created_at, controller.updated_at, controller.deleted_at",
        org: "org_id",
        site: "site_id"
    );

    fn organization(&self) -> OrgId {
        self.org_id
    }

    /// Its devices are hidden with it.
    async fn remove(tx: &mut Tx, scope: &Scope, id: ControllerId, now: Timestamp) -> Result<bool> {
        if !object::hide::<Self>(tx, scope, id, Columns::default(), now).await? {
            return Ok(false);
        }
        affected!(
            tx,
            sqlx::query(
                "
            UPDATE device SET deleted_at = $2, revision = revision + 1, updated_at = $2
            WHERE controller_id = $1 AND deleted_at IS NULL"
            )
            .bind(id)
            .bind(now)
        );
        Ok(true)
    }

    /// With the devices that went with it.
    async fn restore(tx: &mut Tx, scope: &Scope, id: ControllerId, now: Timestamp) -> Result<Option<Self>> {
        let Some(removed) = object::lock_removed::<Self>(tx, scope, id).await? else { return Ok(None) };
        let restored = object::unhide(tx, scope, id, now).await?;
        affected!(
            tx,
            sqlx::query(
                "
            UPDATE device SET deleted_at = NULL, revision = revision + 1, updated_at = $2
            WHERE controller_id = $1 AND deleted_at = $3"
            )
            .bind(id)
            .bind(now)
            .bind(removed.deleted_at)
        );
        Ok(restored)
    }
}

/// The columns of a [`ControllerTarget`]; a macro, so that others can be added to them.
macro_rules! select_target {
    () => {
        "SELECT c.id, c.org_id, c.site_id, c.name, c.vendor, c.url, c.tls, c.settings, c.status,
    c.product, c.firmware, c.allowed_release, c.sync_interval_secs, c.credential_id, k.version AS credential_version"
    };
}
/// A removed organization's controllers are not called.
macro_rules! from_target {
    () => {
        "FROM controller c JOIN credential k ON k.id = c.credential_id
    JOIN organization o ON o.id = c.org_id AND o.deleted_at IS NULL"
    };
}
pub(crate) use from_target;
pub(crate) use select_target;

pub(crate) const SELECT_TARGET: &str = select_target!();
pub(crate) const FROM_TARGET: &str = from_target!();

/// Writes the controller with the status `unknown`, and returns it.
/// The caller checks that the site and the credential belong to the organization.
pub async fn insert(tx: &mut Tx, new: &NewController) -> Result<Controller> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("site_id", new.site_id.0)
        .with("credential_id", new.credential_id.0)
        .with("name", &new.name)
        .with("vendor", &new.vendor)
        .with("url", &new.url)
        .with("tls", json!(new.tls))
        .with("settings", &new.settings)
        .with("status", DeviceStatus::Unknown.to_string())
        .with("sync_interval_secs", new.sync_interval_secs)
        .or_null("next_sync_at", new.next_sync_at)
        .with("push_enabled", new.push_enabled)
        .with("sync_requested", false);
    object::insert(tx, new.id, columns, new.now).await
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

/// Locks a controller until the transaction ends. Returns the site that it is at, and the settings of its organization: the
/// defaults where that was removed.
pub async fn lock_at_site(
    tx: &mut Tx,
    org: OrgId,
    id: ControllerId,
) -> Result<Option<(SiteId, OrganizationSettings)>> {
    let from = "FROM controller c LEFT JOIN organization o ON o.id = c.org_id AND o.deleted_at IS NULL";
    let locked: Option<(SiteId, Option<Value>)> = Select::new("SELECT c.site_id, o.settings", from)
        .within(&Scope::organization(org), "c.org_id", None)
        .and("c.deleted_at IS NULL")
        .and_bind("c.id = ?", Bind::Id(id.0))
        .one_locked(tx, "c")
        .await?;
    let settings =
        |stored: Option<Value>| stored.map(|stored| OrganizationSettings::read(&stored)).unwrap_or_default();
    Ok(locked.map(|(site, stored)| (site, settings(stored))))
}

/// Returns a page of the controllers that are not removed, and how many there are on all pages.
/// The oldest come first unless the page names another order.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    filter: &ControllerFilter,
    page: impl Into<InOrder<Controller>>,
) -> Result<(Vec<Controller>, i64)> {
    object::live::<Controller>(scope)
        .and_some("controller.site_id = ?", filter.site_id.map(|id| Bind::Id(id.0)))
        .and_some("controller.credential_id = ?", filter.credential_id.map(|id| Bind::Id(id.0)))
        .and_some("controller.vendor = ?", filter.vendor.clone().map(Bind::Text))
        .and_some("controller.status = ?", filter.status.map(|status| Bind::Text(status.to_string())))
        .and_some(
            "controller.release_state = ?",
            filter.release_state.map(|state| Bind::Text(state.to_string())),
        )
        .and_some("controller.push_state = ?", filter.push_state.map(|state| Bind::Text(state.to_string())))
        .search(&["controller.name", "controller.url"], filter.search.as_deref())
        .page(tx, page)
        .await
}

/// Changes a controller that the caller has locked. Its devices, objects and pending changes go along to a new site,
/// except those at a vendor's site for which a person chose one.
///
/// One that is reached in another way than before is due at `now`. It may be another device: what is known of its release
/// is forgotten, and so is the version that a person allowed.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    current: &Controller,
    update: &ControllerUpdate,
    now: Timestamp,
) -> Result<Option<Controller>> {
    let id = current.id;
    let mut columns = Columns::default()
        .or_keep("name", update.name.as_ref())
        .or_keep("url", update.url.as_ref())
        .or_keep("site_id", update.site_id.map(|id| id.0))
        .or_keep("credential_id", update.credential_id.map(|id| id.0))
        .or_keep("tls", update.tls.as_ref().map(|tls| json!(tls)))
        .or_keep("settings", update.settings.as_ref())
        .or_keep("sync_interval_secs", update.sync_interval_secs)
        .or_keep("push_enabled", update.push_enabled);
    if update.is_reached_otherwise(current) {
        columns = columns
            .with("next_sync_at", now)
            .null("firmware")
            .null("product")
            .null("allowed_release")
            .with("release_state", ReleaseState::Unknown.to_string());
    }
    let updated = object::update(tx, scope, id, columns, now).await?;
    if let Some(site) = update.site_id {
        affected!(
            tx,
            sqlx::query(
                "
            UPDATE device SET site_id = $2, revision = revision + 1, updated_at = $3
            WHERE controller_id = $1 AND site_id <> $2 AND (site_ref IS NULL OR site_ref NOT IN (
                SELECT v.site_ref FROM vendor_site v JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL
                WHERE v.controller_id = $1))"
            )
            .bind(id)
            .bind(site)
            .bind(now)
        );
        affected!(
            tx,
            sqlx::query(
                "
            UPDATE change SET site_id = $2, updated_at = $3
            WHERE controller_id = $1 AND site_id <> $2 AND status = $4 AND (site_ref IS NULL OR site_ref NOT IN (
                SELECT v.site_ref FROM vendor_site v JOIN site s ON s.id = v.site_id AND s.deleted_at IS NULL
                WHERE v.controller_id = $1))"
            )
            .bind(id)
            .bind(site)
            .bind(now)
            .bind(ChangeStatus::Pending)
        );
        model_objects::follow_controller(tx, id, site).await?;
    }
    Ok(updated)
}

#[cfg(test)]
mod tests;
