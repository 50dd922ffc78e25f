//! Sites of the vendor's own below a controller: which of ours each is, and whether it is read.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::{ControllerId, SiteId, SiteLevel, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::nearest::nearest;
use heddle_kernel::resource::By;
use heddle_store::object::Object as _;
use heddle_store::vendor_sites::{self, Choice, Row};
use heddle_store::{Controller, Scope, SiteScope, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Controllers, refuse_under_way, site_for};
use crate::sync::Bell;

/// A site of the vendor's own, as the last readings of the controller found it.
#[derive(Debug, Serialize, JsonSchema)]
struct VendorSite {
    /// The vendor's id of it.
    site_ref: String,
    /// As the vendor calls it.
    name: String,
    /// The site that its devices, objects and changes belong to.
    site_id: SiteId,
    /// Whether a user chose that site; else it is the controller's own.
    is_mapped: bool,
    /// Whether nothing of it is read.
    is_ignored: bool,
    /// Whether the last reading found it.
    is_present: bool,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
}

impl From<Row> for VendorSite {
    fn from(row: Row) -> Self {
        Self {
            is_mapped: row.mapped_to.is_some(),
            site_ref: row.site_ref,
            name: row.name,
            site_id: row.site_id,
            is_ignored: row.is_ignored,
            is_present: row.is_present,
            first_seen_at: row.first_seen_at,
            last_seen_at: row.last_seen_at,
        }
    }
}

/// What a site of the vendor's is to us; absent keeps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VendorSiteMapping")]
struct MappingBody {
    /// The site that its devices, objects and changes belong to; null is the controller's own.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true))]
    site_id: Option<Option<SiteId>>,
    /// Nothing of it is read, and its devices are removed until it is read again.
    #[serde(default, deserialize_with = "given")]
    is_ignored: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct OnSite {
    controller_id: ControllerId,
    site_ref: String,
}

pub(super) fn routes(read: Access, write: Access) -> Routes {
    let all = "/controllers/{controller_id}/vendor-sites";
    Routes::default()
        .get(
            all,
            read,
            list,
            doc("Sites of the vendor's own below a controller, and the sites that they belong to")
                .named("list_vendor_sites")
                .answers::<Vec<VendorSite>>(200),
        )
        .post(
            &format!("{all}/{{site_ref}}"),
            write,
            map,
            doc("Choose the site that a vendor's site belongs to; its devices and pending changes go along")
                .named("map_vendor_site")
                .body::<MappingBody>()
                .answers::<VendorSite>(200),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ControllerId>,
) -> Result<Answer<Vec<VendorSite>>, Error> {
    let mut tx = app.db.read().await?;
    let controller = found_with_sites(&mut tx, &caller, id).await?;
    let mut sites = vendor_sites::list(&mut tx, controller.id).await?;
    sites.retain(|site| caller.may_access_site(site.site_id));
    Ok(Answer(sites.into_iter().map(VendorSite::from).collect()))
}

/// Returns the controller, if the caller sees it or what is at one of the vendor's sites below it.
pub(crate) async fn found_with_sites(
    tx: &mut Tx,
    caller: &Caller,
    id: ControllerId,
) -> Result<Controller, Error> {
    let missing = || Error::NotFound("controller");
    let scope = Scope { sites: SiteScope::All, ..caller.scope() };
    let controller = Controller::find(tx, &scope, id).await?.ok_or_else(missing)?;
    if caller.may_access_site(controller.site_id) {
        return Ok(controller);
    }
    let sites = vendor_sites::present(tx, id).await?;
    let is_seen = sites.iter().any(|site| caller.may_access_site(site.site_id));
    if is_seen { Ok(controller) } else { Err(missing()) }
}

/// The caller decides at the controller, at the site that the vendor's site leaves, and at the one that it goes to.
async fn map(
    by: By,
    At(path): At<OnSite>,
    Json(body): Json<MappingBody>,
) -> Result<Answer<VendorSite>, Error> {
    let By { app, caller, .. } = &by;
    let mut tx = app.db.write().await?;
    let controller = Controller::lock(&mut tx, &caller.scope(), path.controller_id).await?;
    let controller = controller.ok_or(Error::NotFound("controller"))?;
    caller.require_level(controller.site_id, SiteLevel::Admin)?;
    let before = one(&mut tx, caller, &controller, &path.site_ref).await?;
    caller.require_level(before.site_id, SiteLevel::Admin)?;
    let chosen = body.site_id.unwrap_or(before.mapped_to);
    let place = match chosen {
        Some(site) => site_for(&mut tx, caller, site).await?,
        None => site_for(&mut tx, caller, controller.site_id).await?,
    };
    if place.org_id != controller.org_id {
        return Err(Error::field("site_id", "site not found in the controller's organization"));
    }
    refuse_under_way(&mut tx, controller.id).await?;
    let choice = Choice { site_id: chosen, is_ignored: body.is_ignored.unwrap_or(before.is_ignored) };
    let now = app.clock.now();
    vendor_sites::choose(&mut tx, controller.id, &path.site_ref, &choice, place.id, now).await?;
    let after = one(&mut tx, caller, &controller, &path.site_ref).await?;
    let detail = json!({
        "name": controller.name, "site_ref": after.site_ref, "vendor_site": after.name,
        "before": { "site_id": before.mapped_to, "is_ignored": before.is_ignored },
        "after": { "site_id": after.mapped_to, "is_ignored": after.is_ignored },
    });
    by.record::<Controllers>(&mut tx, &controller, "controller.site_mapped", detail).await?;
    // What an ignored site has is found with the next reading.
    heddle_store::controllers::schedule_now(
        &mut tx,
        &Scope::organization(controller.org_id),
        controller.id,
        now,
    )
    .await?;
    tx.commit().await?;
    Bell::of(app).ring();
    Ok(Answer(after.into()))
}

/// The site of the vendor's that a path names, as far as the caller sees it.
async fn one(tx: &mut Tx, caller: &Caller, controller: &Controller, site_ref: &str) -> Result<Row, Error> {
    let mut sites = vendor_sites::list(tx, controller.id).await?;
    sites.retain(|site| caller.may_access_site(site.site_id));
    if let Some(at) = sites.iter().position(|site| site.site_ref == site_ref) {
        return Ok(sites.swap_remove(at));
    }
    let known = sites.iter().map(|site| site.site_ref.as_str());
    let hint = nearest(site_ref, known).map(|id| format!("; nearest is '{id}'"));
    Err(Error::Unknown(format!("vendor site not found{}", hint.unwrap_or_default())))
}
