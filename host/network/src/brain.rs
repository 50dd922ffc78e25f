//! Which controller of a site holds the intent of its VLANs, which ones follow it, and what becomes of differences.

use axum::extract::State;
use axum::http::StatusCode;
use futures::FutureExt as _;
use heddle_changes::declarations::NETWORK_WRITE;
use heddle_core::vlan::OnDrift;
use heddle_core::{ControllerId, OrgId, SiteId, SiteLevel, Timestamp, UserId};
use heddle_inventory::controllers::declarations::{CONTROLLER_READ, CONTROLLER_WRITE};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::feature::Guard;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_store::canonical_vlans;
use heddle_store::model_objects::of_site;
use heddle_store::object::{Object as _, Revised, Revision};
use heddle_store::site_brains::{self, NewBrain, SiteBrain};
use heddle_store::{Site, Tx, vlan_drift};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Most controllers that follow.
pub(crate) const LIMBS_MAX: usize = 100;
/// Kinds of the model that a firewall fills.
const OF_FIREWALLS: [&str; 2] = ["vlan", "firewall-rule"];

/// The controller that holds the intent of a site's VLANs. It is only read.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SiteBrain")]
struct BrainView {
    site_id: SiteId,
    controller_id: ControllerId,
    /// The controllers that follow it; null where all others of the site do that use VLANs.
    limb_ids: Option<Vec<ControllerId>>,
    on_drift: OnDrift,
    /// With the rights of this user differences are staged, where they are.
    set_by: UserId,
    /// When it was last set.
    set_at: Timestamp,
    /// When the intent was last taken from its readings; null if never.
    read_at: Option<Timestamp>,
    /// When the site was last compared with the intent; null where that is due.
    checked_at: Option<Timestamp>,
    #[serde(skip)]
    tag: Revision,
}

impl From<SiteBrain> for BrainView {
    fn from(brain: SiteBrain) -> Self {
        Self {
            tag: Revision::of(brain.site_id.0, brain.revision),
            site_id: brain.site_id,
            controller_id: brain.controller_id,
            limb_ids: brain.limb_ids,
            on_drift: brain.on_drift,
            set_by: brain.set_by,
            set_at: brain.set_at,
            read_at: brain.read_at,
            checked_at: brain.checked_at,
        }
    }
}

impl Revised for BrainView {
    fn revision(&self) -> Revision {
        self.tag
    }
}

/// What the brain of a site is to be, whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SiteBrainUpdate")]
struct BrainBody {
    /// A firewall of the site. Nothing is ever written to it.
    controller_id: ControllerId,
    /// The controllers that follow, also where they have no VLAN yet; all others of the site that use VLANs when absent.
    #[schemars(length(max = LIMBS_MAX))]
    limb_ids: Option<Vec<ControllerId>>,
    /// What becomes of differences; `report` when absent. What is staged, a person applies. `stage` asks
    /// for `network:write`, and for a credential without scopes.
    on_drift: Option<OnDrift>,
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get(
            "/sites/{site_id}/brain",
            Access::Permission(CONTROLLER_READ),
            get,
            doc("The controller that holds the intent of a site's VLANs")
                .named("get_site_brain")
                .answers::<BrainView>(200)
                .tagged(),
        )
        .put(
            "/sites/{site_id}/brain",
            Access::Permission(CONTROLLER_WRITE),
            set,
            doc("Set the controller that holds the intent of a site's VLANs; it is only read")
                .named("set_site_brain")
                .body::<BrainBody>()
                .answers::<BrainView>(200)
                .as_seen()
                .tagged(),
        )
        .delete(
            "/sites/{site_id}/brain",
            Access::Permission(CONTROLLER_WRITE),
            remove,
            doc("Take the intent of a site's VLANs away; no controller is changed")
                .named("delete_site_brain")
                .untagged()
                .empty(204),
        )
}

async fn found_site(tx: &mut Tx, caller: &Caller, site: SiteId) -> Result<Site, Error> {
    Site::find(tx, &caller.scope(), site).await?.ok_or(Error::NotFound("site"))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(site): At<SiteId>,
) -> Result<One<BrainView>, Error> {
    let mut tx = app.db.read().await?;
    found_site(&mut tx, &caller, site).await?;
    let brain = site_brains::find(&mut tx, &caller.scope(), site).await?;
    Ok(One(brain.ok_or(Error::NotFound("brain"))?.into()))
}

async fn set(
    by: By,
    At(id): At<SiteId>,
    if_match: IfMatch,
    Json(body): Json<BrainBody>,
) -> Result<One<BrainView>, Error> {
    let By { app, caller, .. } = &by;
    let mut tx = app.db.write().await?;
    let site = found_site(&mut tx, caller, id).await?;
    caller.require_level(site.id, SiteLevel::Admin)?;
    if body.on_drift == Some(OnDrift::Stage) {
        require_policy(caller)?;
    }
    let before = site_brains::lock(&mut tx, &caller.scope(), site.id).await?.map(BrainView::from);
    match &before {
        Some(before) => if_match.check(before)?,
        None if if_match.is_given() => return Err(Error::PreconditionFailed),
        None => {}
    }
    check(&mut tx, app, caller, site.id, &body).await?;
    let new = NewBrain {
        site_id: site.id,
        org_id: site.org_id,
        controller_id: body.controller_id,
        limb_ids: body.limb_ids.as_deref(),
        on_drift: body.on_drift.unwrap_or(OnDrift::Report),
        set_by: caller.user_id,
        now: app.clock.now(),
    };
    site_brains::set(&mut tx, &new).await?;
    let after =
        site_brains::find(&mut tx, &caller.scope(), site.id).await?.ok_or(Error::NotFound("brain"))?;
    let detail = json!({
        "controller_id": new.controller_id, "limb_ids": new.limb_ids, "on_drift": new.on_drift,
        "before": before.map(|before| json!({
            "controller_id": before.controller_id, "limb_ids": before.limb_ids, "on_drift": before.on_drift,
        })),
    });
    by.record_of(&mut tx, (site.org_id, "site", site.id.0), "site.brain_set", detail).await?;
    tx.commit().await?;
    Ok(One(after.into()))
}

/// Refuses a policy that would stage what its user may not. It acts with all rights of that user, so no ceiling of scopes
/// would hold.
fn require_policy(caller: &Caller) -> Result<(), Error> {
    caller.require_unscoped()?;
    caller.require(NETWORK_WRITE)
}

/// Refuses a brain that is no firewall of the site, and limbs that are not there.
async fn check(tx: &mut Tx, app: &App, caller: &Caller, site: SiteId, body: &BrainBody) -> Result<(), Error> {
    let limbs = body.limb_ids.as_deref().unwrap_or_default();
    if limbs.len() > LIMBS_MAX {
        return Err(Error::field("limb_ids", format!("at most {LIMBS_MAX} controllers follow")));
    }
    let there = of_site::lists(tx, &caller.scope(), site).await?;
    let brain = there.iter().find(|list| list.controller_id == body.controller_id);
    let brain = brain.ok_or_else(|| Error::field("controller_id", "the site has no such controller"))?;
    let adapter = app.adapter(&brain.vendor)?;
    let fills = |kind: &str| adapter.description().model.iter().any(|filled| filled.kind == kind);
    if !OF_FIREWALLS.into_iter().all(fills) {
        let message = format!(
            "a controller of '{}' has no VLANs and rules of a firewall to hold the intent",
            brain.vendor
        );
        return Err(Error::field("controller_id", message));
    }
    for (at, limb) in limbs.iter().enumerate() {
        let field = format!("limb_ids.{at}");
        if *limb == body.controller_id {
            return Err(Error::field(&field, "the brain does not follow itself"));
        }
        if limbs[..at].contains(limb) {
            return Err(Error::field(&field, "the controller is named twice"));
        }
        if !there.iter().any(|list| list.controller_id == *limb) {
            return Err(Error::field(&field, "the site has no such controller"));
        }
    }
    Ok(())
}

async fn remove(by: By, At(id): At<SiteId>) -> Result<StatusCode, Error> {
    let By { app, caller, .. } = &by;
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    let site = found_site(&mut tx, caller, id).await?;
    caller.require_level(site.id, SiteLevel::Admin)?;
    if !site_brains::remove(&mut tx, site.id).await? {
        return Err(Error::NotFound("brain"));
    }
    let vlans = canonical_vlans::of_site(&mut tx, site.id).await?;
    let ids: Vec<_> = vlans.iter().map(|vlan| vlan.id).collect();
    canonical_vlans::remove(&mut tx, &ids, now).await?;
    vlan_drift::replace(&mut tx, site.id, &[]).await?;
    let detail = json!({ "canonical_vlans": ids.len() });
    by.record_of(&mut tx, (site.org_id, "site", site.id.0), "site.brain_removed", detail).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A controller that holds the intent of a site is not removed.
pub(crate) const GUARDS: &[(&str, Guard)] =
    &[("controller", |tx, app, org, id| require_no_brain(tx, app, org, id.into()).boxed())];

async fn require_no_brain(tx: &mut Tx, _: &App, _: OrgId, controller: ControllerId) -> Result<(), Error> {
    let sites = site_brains::of_controller(tx, controller).await?;
    let Some(first) = sites.first() else { return Ok(()) };
    Err(Error::Conflict {
        kind: "in_use",
        message: format!(
            "the controller holds the intent of the VLANs of site {}: set another one, or DELETE /sites/{}/brain first",
            first.site_id, first.site_id
        ),
    })
}
