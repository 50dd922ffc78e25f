//! Routes of the VLANs of a site.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;
use heddle_changes::Cause;
use heddle_changes::declarations::{NETWORK_WRITE, NOTES_CHARS_MAX};
use heddle_core::page::{Page, PageRequest};
use heddle_core::{ControllerId, SiteId};
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::refuse_longer;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{Json, PER_PAGE_MAX, Params, page_request};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::{self, By};
use heddle_kernel::task;
use heddle_store::canonical_vlans::CanonicalVlan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::align::{self, Asked, Compared, ComparedWith, Narrowed, With};
use crate::canonical::{CanonicalVlans, ListQuery};
use crate::intent::{self, IntentRead};
use crate::site::gathered::KINDS;
use crate::site::load;
use crate::staging::Staging;
use crate::views::{ControllerView, FindingView, SideBySide, TruthMap};

/// Most findings of an answer.
const FINDINGS_MAX: usize = 5_000;
/// Most VLANs that a request names.
const VLANS_MAX: usize = 200;
/// Most controllers that a request names.
const CONTROLLERS_MAX: usize = 100;
/// Most characters of the name of a VLAN.
const NAME_CHARS_MAX: usize = 200;
/// Numbers that a VLAN can have beside the default one.
const NUMBERS: std::ops::RangeInclusive<u16> = 2..=4094;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ViewQuery {
    site_id: SiteId,
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// From 1 to 200; 50 when absent.
    #[schemars(range(min = 1, max = PER_PAGE_MAX))]
    per_page: Option<u32>,
}

impl ViewQuery {
    fn asked(&self) -> Result<PageRequest, Error> {
        page_request(self.page, self.per_page, PER_PAGE_MAX)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompareQuery {
    site_id: SiteId,
    /// The controller to compare with. When absent the site is compared with its intent, or else with what most of its
    /// controllers have.
    controller_id: Option<ControllerId>,
}

/// How the VLANs of the controllers of a site differ.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanComparison")]
pub(crate) struct Comparison {
    site_id: SiteId,
    compared_with: ComparedWith,
    controllers: Vec<ControllerView>,
    /// By class, VLAN and controller; the first 5,000.
    findings: Vec<FindingView>,
    /// How many there are in all.
    total: usize,
    /// Whether every object of the site was looked at.
    is_complete: bool,
}

impl Comparison {
    pub(crate) fn of(site_id: SiteId, compared: &Compared) -> Self {
        let Compared { facts, with, findings, .. } = compared;
        let shown = findings.iter().take(FINDINGS_MAX);
        Self {
            site_id,
            compared_with: *with,
            controllers: ControllerView::all(facts),
            findings: shown.map(|finding| FindingView::of(facts, finding)).collect(),
            total: findings.len(),
            is_complete: facts.are_whole,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VlanAlignment")]
struct AlignBody {
    site_id: SiteId,
    /// The controller whose VLANs the others are to have. When absent it is the intent of the site, or else what most of its
    /// controllers have.
    controller_id: Option<ControllerId>,
    /// The controllers that are changed, also where they have no VLAN yet; all that use VLANs when absent.
    #[serde(default)]
    #[schemars(length(max = CONTROLLERS_MAX))]
    controller_ids: Vec<ControllerId>,
    /// The VLANs that are aligned; all when absent.
    #[serde(default)]
    #[schemars(length(max = VLANS_MAX), inner(range(min = 1, max = 4094)))]
    vlan_ids: Vec<u16>,
    /// Also stages the removal of VLANs that should not be there.
    #[serde(default)]
    remove_extra: bool,
    /// What the changes say.
    #[schemars(length(max = NOTES_CHARS_MAX))]
    notes: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VlanDistribution")]
struct DistributeBody {
    site_id: SiteId,
    /// The VLANs that controllers are to have, beside those that they have.
    #[schemars(length(min = 1, max = VLANS_MAX))]
    vlans: Vec<GivenVlan>,
    /// The controllers that are changed, also where they have no VLAN yet; all of the site that use VLANs, but its brain, when
    /// absent.
    #[serde(default)]
    #[schemars(length(max = CONTROLLERS_MAX))]
    controller_ids: Vec<ControllerId>,
    /// What the changes say.
    #[schemars(length(max = NOTES_CHARS_MAX))]
    notes: Option<String>,
}

/// A VLAN that controllers are to have.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GivenVlan {
    /// Number in tags.
    #[schemars(range(min = 2, max = 4094))]
    vlan_id: u16,
    /// Absent leaves names as they are.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CanonicalVlanReading")]
struct ReadBody {
    site_id: SiteId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CanonicalVlanDistribution")]
struct DistributeIntentBody {
    site_id: SiteId,
    /// The limbs that are changed, also where they have no VLAN yet; all when absent.
    #[serde(default)]
    #[schemars(length(max = CONTROLLERS_MAX))]
    controller_ids: Vec<ControllerId>,
    /// The VLANs that are distributed; all when absent.
    #[serde(default)]
    #[schemars(length(max = VLANS_MAX), inner(range(min = 1, max = 4094)))]
    vlan_ids: Vec<u16>,
    /// Also stages the removal of VLANs of limbs that are not in the intent.
    #[serde(default)]
    remove_extra: bool,
    /// What the changes say.
    #[schemars(length(max = NOTES_CHARS_MAX))]
    notes: Option<String>,
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get(
            "/network/vlans",
            Access::Permission(CONTROLLER_READ),
            side_by_side,
            doc("VLANs of all controllers of a site, side by side; no device is asked")
                .named("list_vlans")
                .query::<ViewQuery>()
                .answers::<SideBySide>(200),
        )
        .get(
            "/network/vlans/compare",
            Access::Permission(CONTROLLER_READ),
            compare,
            doc("Where the VLANs of the controllers of a site differ; no device is asked")
                .named("compare_vlans")
                .query::<CompareQuery>()
                .answers::<Comparison>(200),
        )
        .get(
            "/network/vlans/truth-map",
            Access::Permission(CONTROLLER_READ),
            truth_map,
            doc("Which VLANs pass which links of a site, and whether both ends agree; no device is asked")
                .named("map_vlans")
                .query::<ViewQuery>()
                .answers::<TruthMap>(200),
        )
        .post(
            "/network/vlans/align",
            Access::Permission(NETWORK_WRITE),
            align_vlans,
            doc("Stage what brings the controllers of a site to the same VLANs; devices are only read")
                .named("align_vlans")
                .fails_with(404)
                .body::<AlignBody>()
                .answers::<Staging>(200)
                .calls_adapter(),
        )
        .post(
            "/network/vlans/distribute",
            Access::Permission(NETWORK_WRITE),
            distribute_vlans,
            doc("Stage what brings these VLANs to the controllers of a site; devices are only read")
                .named("distribute_vlans")
                .fails_with(404)
                .body::<DistributeBody>()
                .answers::<Staging>(200)
                .calls_adapter(),
        )
        .merge(of_intent())
}

fn of_intent() -> Routes {
    Routes::default()
        .get(
            "/network/canonical-vlans",
            Access::Permission(CONTROLLER_READ),
            resource::list::<CanonicalVlans>,
            doc("VLANs that sites are to have, as their brains last said")
                .named("list_canonical_vlans")
                .query::<ListQuery>()
                .answers::<Page<CanonicalVlan>>(200),
        )
        .post(
            "/network/canonical-vlans/read",
            Access::Permission(NETWORK_WRITE),
            read_intent,
            doc("Take the intent of a site from the last reading of its brain; no device is asked")
                .named("read_canonical_vlans")
                .fails_with(404)
                .body::<ReadBody>()
                .answers::<IntentRead>(200),
        )
        .post(
            "/network/canonical-vlans/distribute",
            Access::Permission(NETWORK_WRITE),
            distribute_intent,
            doc("Stage what brings the limbs of a site to its intent; devices are only read")
                .named("distribute_canonical_vlans")
                .fails_with(404)
                .body::<DistributeIntentBody>()
                .answers::<Staging>(200)
                .calls_adapter(),
        )
}

async fn side_by_side(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ViewQuery>,
) -> Result<Answer<SideBySide>, Error> {
    let asked = query.asked()?;
    let mut tx = app.db.read().await?;
    let stored = load::stored(&mut tx, &app, &caller.scope(), query.site_id, &["vlan"]).await?;
    drop(tx);
    Ok(Answer(task::block(move || SideBySide::of(&stored.facts(), asked)).await))
}

async fn compare(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<CompareQuery>,
) -> Result<Answer<Comparison>, Error> {
    let compared = align::compared(&app, &caller, query.site_id, (with(query.controller_id), &[])).await?;
    Ok(Answer(task::block(move || Comparison::of(query.site_id, &compared)).await))
}

pub(crate) fn with(controller: Option<ControllerId>) -> With {
    controller.map_or(With::IntentOrMajority, With::Controller)
}

async fn truth_map(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ViewQuery>,
) -> Result<Answer<TruthMap>, Error> {
    let asked = query.asked()?;
    let mut tx = app.db.read().await?;
    let stored = load::stored(&mut tx, &app, &caller.scope(), query.site_id, &KINDS).await?;
    drop(tx);
    Ok(Answer(task::block(move || TruthMap::of(&stored.facts(), asked)).await))
}

/// Refuses lists and texts that are too long.
fn check(controllers: &[ControllerId], vlans: &[u16], notes: Option<&str>) -> Result<(), Error> {
    if controllers.len() > CONTROLLERS_MAX {
        return Err(Error::field(
            "controller_ids",
            format!("at most {CONTROLLERS_MAX} controllers are named"),
        ));
    }
    if vlans.len() > VLANS_MAX {
        return Err(Error::field("vlan_ids", format!("at most {VLANS_MAX} VLANs are named")));
    }
    if let Some(at) = vlans.iter().position(|vlan| !(1..=*NUMBERS.end()).contains(vlan)) {
        return Err(Error::field(&format!("vlan_ids.{at}"), "a VLAN has a number from 1 to 4094"));
    }
    refuse_longer("notes", notes.unwrap_or_default(), NOTES_CHARS_MAX)
}

async fn align_vlans(by: By, Json(body): Json<AlignBody>) -> Result<Answer<Staging>, Error> {
    check(&body.controller_ids, &body.vlan_ids, body.notes.as_deref())?;
    let asked = Asked {
        site: body.site_id,
        narrowed: Narrowed { controllers: body.controller_ids, vlans: body.vlan_ids },
        removes_extra: body.remove_extra,
        notes: body.notes.as_deref(),
        cause: Cause::Request(&by.origin),
    };
    let staging = align::align(&by.app, &by.caller, &asked, with(body.controller_id)).await?;
    Ok(Answer(staging))
}

async fn distribute_vlans(by: By, Json(body): Json<DistributeBody>) -> Result<Answer<Staging>, Error> {
    check(&body.controller_ids, &[], body.notes.as_deref())?;
    let vlans = given(&body.vlans)?;
    let asked = Asked {
        site: body.site_id,
        narrowed: Narrowed { controllers: body.controller_ids, vlans: Vec::new() },
        removes_extra: false,
        notes: body.notes.as_deref(),
        cause: Cause::Request(&by.origin),
    };
    align::distribute(&by.app, &by.caller, &asked, vlans).await.map(Answer)
}

/// The VLANs of a body by their numbers, each named once.
fn given(vlans: &[GivenVlan]) -> Result<BTreeMap<u16, Option<String>>, Error> {
    if !(1..=VLANS_MAX).contains(&vlans.len()) {
        return Err(Error::field("vlans", format!("from 1 to {VLANS_MAX} VLANs are distributed")));
    }
    let mut all = BTreeMap::new();
    for (at, vlan) in vlans.iter().enumerate() {
        let field = format!("vlans.{at}.vlan_id");
        if !NUMBERS.contains(&vlan.vlan_id) {
            return Err(Error::field(&field, "a VLAN that is distributed has a number from 2 to 4094"));
        }
        let name = vlan.name.as_deref().map(str::trim);
        if let Some(name) = name {
            let field = format!("vlans.{at}.name");
            refuse_longer(&field, name, NAME_CHARS_MAX)?;
            if name.is_empty() {
                return Err(Error::field(&field, "is empty: leave it out, or give the VLAN a name"));
            }
        }
        if all.insert(vlan.vlan_id, name.map(str::to_owned)).is_some() {
            return Err(Error::field(&field, format!("VLAN {} is named twice", vlan.vlan_id)));
        }
    }
    Ok(all)
}

async fn read_intent(by: By, Json(body): Json<ReadBody>) -> Result<Answer<IntentRead>, Error> {
    intent::read(&by, body.site_id).await.map(Answer)
}

async fn distribute_intent(by: By, Json(body): Json<DistributeIntentBody>) -> Result<Answer<Staging>, Error> {
    check(&body.controller_ids, &body.vlan_ids, body.notes.as_deref())?;
    let asked = Asked {
        site: body.site_id,
        narrowed: Narrowed { controllers: body.controller_ids, vlans: body.vlan_ids },
        removes_extra: body.remove_extra,
        notes: body.notes.as_deref(),
        cause: Cause::Request(&by.origin),
    };
    intent::distribute(&by.app, &by.caller, &asked).await.map(Answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vlan(vlan_id: u16, name: Option<&str>) -> GivenVlan {
        GivenVlan { vlan_id, name: name.map(str::to_owned) }
    }

    #[test]
    fn each_vlan_is_given_once_with_a_number_and_perhaps_a_name() {
        let all = given(&[vlan(40, Some(" Cameras ")), vlan(2, None)]).unwrap();
        assert_eq!(all, BTreeMap::from([(2, None), (40, Some("Cameras".to_owned()))]));
        for (vlans, said) in [
            (vec![], "from 1 to 200"),
            (vec![vlan(1, None)], "from 2 to 4094"),
            (vec![vlan(4095, None)], "from 2 to 4094"),
            (vec![vlan(40, None), vlan(40, None)], "named twice"),
            (vec![vlan(40, Some(" "))], "is empty"),
            (vec![vlan(40, Some(&"x".repeat(201)))], "200"),
        ] {
            let refused = format!("{:?}", given(&vlans).unwrap_err());
            assert!(refused.contains(said), "{refused}");
        }
    }
}
