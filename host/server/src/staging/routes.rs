//! The `gateway-…` families, mounted from what the adapters describe.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use heddle_core::adapter::{Area, Description, Feature, ObjectPage};
use heddle_core::bounds::is_small;
use heddle_core::change::{ChangeStatus, Operation};
use heddle_core::page::PageRequest;
use heddle_core::redact::mask;
use heddle_core::{ChangeId, ControllerId, OrgId, Permission, SiteId};
use heddle_runtime::LIGHT_BYTES;
use heddle_store::changes::{self, ChangeFilter, ChangeRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::apply::{self, ApplyRequest};
use super::plan::{self, Request, controller_on_path};
use super::view::{ChangeView, view};
use crate::adapters::call_for;
use crate::app::{App, SharedApp};
use crate::auth::Caller;
use crate::http::access::Access;
use crate::http::conditional::{IfMatch, One};
use crate::http::creation::Creation;
use crate::http::error::Error;
use crate::http::extract::{At, Json, Origin, Params};
use crate::http::routes::{Routes, doc};

/// Areas of the family whose paths name a site.
const SITE_SCOPED: &[&str] = &[
    "vpn",
    "firewall",
    "wifi",
    "switch-advanced",
    "firmware",
    "routing",
    "diagnostics",
    "hotspot",
    "raw",
    "bulk",
    "system",
    "profiles",
    "insights",
    "openapi",
];
/// The vendors that `by-gateway` accepts.
const GATEWAY_VENDORS: &[&str] = &["omada", "opnsense", "pfsense", "mikrotik", "openwrt"];
/// Most changes of one list.
const LIST_MAX: u32 = 200;
const LIVE_LIMIT_DEFAULT: u32 = 200;
const LIVE_LIMIT_MAX: u32 = 1000;

/// One area on one path family.
#[derive(Debug, Clone)]
struct Mounted {
    /// `None` where the family serves every vendor.
    vendor: Option<String>,
    area: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StageQuery {
    /// `create`, `update` or `delete`.
    operation: Operation,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StageBody {
    /// What the feature's own schema allows.
    #[schemars(with = "serde_json::Map<String, Value>")]
    payload: Value,
    #[serde(default)]
    notes: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    status: Option<ChangeStatus>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByGatewayQuery {
    vendor: String,
    status: Option<ChangeStatus>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LiveQuery {
    cursor: Option<String>,
    /// From 1 to 1000; 200 when absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyBody {
    /// Must be true.
    force: Option<bool>,
    /// What was reviewed: applied only while the plan still has this hash.
    plan_hash: Option<String>,
    /// From 10 to 600: taken back unless it is confirmed within these seconds.
    #[schemars(range(min = 10, max = 600))]
    confirm_within_secs: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiscardQuery {
    #[expect(
        dead_code,
        reason = "part of the interface; a discard sends nothing, so there is nothing to force"
    )]
    force: Option<bool>,
}

/// An area's features with their schemas, and the kinds that can be read live.
#[derive(Debug, Serialize, JsonSchema)]
struct AreaView {
    controller_id: ControllerId,
    vendor: String,
    area: Area,
    features: Vec<Feature>,
    resources: Vec<heddle_core::adapter::ObjectKind>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Verified {
    change: ChangeView,
    #[schemars(with = "StandingView")]
    standing: Value,
}

/// Where the device stands, seen from the plan.
#[derive(JsonSchema)]
#[schemars(rename = "Standing")]
#[expect(dead_code, reason = "the shape of what is masked as JSON before it is answered")]
struct StandingView {
    /// `before`, `after`, `stored` or `other`.
    state: String,
    /// What a stored change still needs to be in effect.
    #[schemars(skip_serializing_if = "Option::is_none")]
    needs: Option<Vec<String>>,
    /// What differs.
    #[schemars(skip_serializing_if = "Option::is_none")]
    difference: Option<Value>,
}

pub(crate) fn routes(app: &SharedApp) -> Routes {
    let mut routes = shared_routes();
    let mut site_areas = BTreeMap::new();
    for adapter in app.runtime.adapters() {
        let description = adapter.description();
        for area in &description.areas {
            let shown = Shown::of(description, &area.id);
            let mounted = Mounted { vendor: Some(adapter.id().to_owned()), area: area.id.clone() };
            let base = format!("/gateway-{}-{}/{{controller_id}}", adapter.id(), area.id);
            routes = mount(routes, &base, &mounted, &shown);
            if SITE_SCOPED.contains(&area.id.as_str()) {
                site_areas.entry(area.id.clone()).or_insert(shown);
            }
        }
    }
    for (area, shown) in site_areas {
        let base = format!("/gateway-{area}/{{controller_id}}/sites/{{site_id}}");
        routes = mount(routes, &base, &Mounted { vendor: None, area }, &shown);
    }
    routes
}

/// What the document gives as examples in an area.
struct Shown {
    feature: Option<String>,
    resource: Option<String>,
}

impl Shown {
    fn of(description: &Description, area: &str) -> Self {
        let feature = description.features.iter().find(|feature| feature.area == area);
        let resource = description.kinds.iter().find(|kind| kind.area == area);
        Self { feature: feature.map(|one| one.id.clone()), resource: resource.map(|one| one.id.clone()) }
    }
}

fn mount(routes: Routes, base: &str, mounted: &Mounted, shown: &Shown) -> Routes {
    let (feature, resource) = (shown.feature.as_deref(), shown.resource.as_deref());
    let read = Access::Permission(Permission::ControllerRead);
    let [described, listed, staged, read_all, read_one] = std::array::from_fn(|_| mounted.clone());
    routes
        .get(
            base,
            read,
            move |state, caller, path| features(described, state, caller, path),
            doc("Features of the area, with their schemas").answers::<AreaView>(200),
        )
        .get(
            &format!("{base}/changes"),
            read,
            move |state, caller, path, query| list(listed, state, caller, path, query),
            doc("Staged changes").query::<ListQuery>().answers::<Vec<ChangeView>>(200),
        )
        .post(
            &format!("{base}/changes/{{feature}}"),
            Access::ByFeature,
            move |state, caller, origin, path, query, creation, body| {
                stage(staged, (state, caller, origin), path, query, creation, body)
            },
            doc("Stage a change; the device is only read")
                .query::<StageQuery>()
                .body::<StageBody>()
                .answers::<ChangeView>(201)
                .example("feature", feature)
                .calls_adapter(),
        )
        .get(
            &format!("{base}/{{resource}}"),
            read,
            move |state, caller, origin, path, query| {
                live_list(read_all, (state, caller, origin), path, query)
            },
            doc("Read objects live through the adapter")
                .query::<LiveQuery>()
                .answers::<ObjectPage>(200)
                .example("resource", resource)
                .calls_adapter(),
        )
        .get(
            &format!("{base}/{{resource}}/{{key}}"),
            read,
            move |state, caller, origin, path| live_get(read_one, (state, caller, origin), path),
            doc("Read one object live through the adapter")
                .answers::<heddle_core::adapter::Object>(200)
                .example("resource", resource)
                .calls_adapter(),
        )
}

fn shared_routes() -> Routes {
    let change = "/gateway-vpn/changes/{change_id}";
    let read = Access::Permission(Permission::ControllerRead);
    Routes::default()
        .get(change, read, get_change, doc("One change").answers::<ChangeView>(200).tagged())
        .post(
            &format!("{change}/plan"),
            Access::ByFeature,
            plan_again,
            doc("Plan again").answers::<ChangeView>(200).calls_adapter().as_seen(),
        )
        .post(
            &format!("{change}/apply"),
            Access::ByFeature,
            apply_change,
            doc("Apply to the live device")
                .body::<ApplyBody>()
                .answers::<ChangeView>(200)
                .calls_adapter()
                .switched()
                .as_seen(),
        )
        .post(
            &format!("{change}/confirm"),
            Access::ByFeature,
            confirm,
            doc("Confirm in time").answers::<ChangeView>(200).calls_adapter(),
        )
        .post(
            &format!("{change}/verify"),
            Access::ByFeature,
            verify,
            doc("Read the device back").answers::<Verified>(200).calls_adapter(),
        )
        .post(
            &format!("{change}/discard"),
            Access::ByFeature,
            discard,
            doc("Give a pending change up").query::<DiscardQuery>().answers::<ChangeView>(200).as_seen(),
        )
        .post(
            &format!("{change}/revert"),
            Access::ByFeature,
            revert,
            doc("Stage the inverse").answers::<ChangeView>(201).calls_adapter(),
        )
        .get(
            "/gateway-vpn/changes/by-gateway/{gateway_id}",
            read,
            by_gateway,
            doc("Changes of a gateway across areas")
                .query::<ByGatewayQuery>()
                .answers::<Vec<ChangeView>>(200),
        )
}

/// Path parameters of both families.
#[derive(Debug, Deserialize)]
struct OnController {
    controller_id: ControllerId,
    site_id: Option<SiteId>,
    feature: Option<String>,
    resource: Option<String>,
    key: Option<String>,
}

type Who = (State<SharedApp>, Caller, Origin);

async fn features(
    mounted: Mounted,
    State(app): State<SharedApp>,
    caller: Caller,
    At(path): At<OnController>,
) -> Result<Answer<AreaView>, Error> {
    let controller =
        controller_on_path(&app, &caller, path.controller_id, path.site_id, mounted.vendor.as_deref())
            .await?;
    let adapter = app.adapter(&controller.vendor)?;
    let description = adapter.description();
    let area =
        description.areas.iter().find(|area| area.id == mounted.area).ok_or(Error::NotFound("area"))?;
    Ok(Answer(AreaView {
        controller_id: controller.id,
        vendor: controller.vendor.clone(),
        area: area.clone(),
        features: description.features.iter().filter(|f| f.area == mounted.area).cloned().collect(),
        resources: description.kinds.iter().filter(|k| k.area == mounted.area).cloned().collect(),
    }))
}

async fn stage(
    mounted: Mounted,
    (State(app), caller, origin): Who,
    At(path): At<OnController>,
    Params(query): Params<StageQuery>,
    creation: Creation,
    Json(body): Json<StageBody>,
) -> Result<Response, Error> {
    let request = Request {
        controller_id: path.controller_id,
        site_id: path.site_id,
        vendor: mounted.vendor,
        area: mounted.area,
        feature: path.feature.unwrap_or_default(),
        operation: query.operation,
        payload: body.payload,
        also: Vec::new(),
        notes: body.notes,
    };
    plan::stage(&app, &caller, &origin, creation, request).await
}

/// The change as clients see it, with its conflicts.
async fn shown(app: &App, row: ChangeRow) -> Result<ChangeView, Error> {
    let conflicts = if row.status == ChangeStatus::Pending {
        let mut tx = app.db.read().await?;
        changes::conflicts(&mut tx, row.controller_id, &row.area, row.id).await?
    } else {
        Vec::new()
    };
    view(row, conflicts)
}

async fn list(
    mounted: Mounted,
    State(app): State<SharedApp>,
    caller: Caller,
    At(path): At<OnController>,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Vec<ChangeView>>, Error> {
    let controller =
        controller_on_path(&app, &caller, path.controller_id, path.site_id, mounted.vendor.as_deref())
            .await?;
    let filter = ChangeFilter {
        controller_id: Some(controller.id),
        area: Some(mounted.area),
        status: query.status,
        ..ChangeFilter::default()
    };
    listed(&app, &caller, &filter).await
}

async fn listed(app: &App, caller: &Caller, filter: &ChangeFilter) -> Result<Answer<Vec<ChangeView>>, Error> {
    let mut tx = app.db.read().await?;
    let page = PageRequest { page: 1, per_page: LIST_MAX };
    let (rows, _) = changes::list(&mut tx, &caller.scope(), filter, page).await?;
    let mut conflicts = changes::conflicts_among(&mut tx, &rows).await?;
    let views = rows.into_iter().map(|row| {
        let rivals = conflicts.remove(&row.id).unwrap_or_default();
        view(row, rivals)
    });
    Ok(Answer(views.collect::<Result<_, _>>()?))
}

async fn by_gateway(
    State(app): State<SharedApp>,
    caller: Caller,
    At(controller): At<ControllerId>,
    Params(query): Params<ByGatewayQuery>,
) -> Result<Answer<Vec<ChangeView>>, Error> {
    if !GATEWAY_VENDORS.contains(&query.vendor.as_str()) {
        return Err(Error::BadRequest {
            kind: "unknown_vendor",
            message: format!("vendor '{}' is not one of {}", query.vendor, GATEWAY_VENDORS.join(", ")),
        });
    }
    let controller = controller_on_path(&app, &caller, controller, None, Some(&query.vendor)).await?;
    let filter =
        ChangeFilter { controller_id: Some(controller.id), status: query.status, ..ChangeFilter::default() };
    listed(&app, &caller, &filter).await
}

/// The kind that a path's resource names, in this area.
fn kind_of(
    description: &heddle_core::adapter::Description,
    area: &str,
    resource: &str,
) -> Result<String, Error> {
    let mut kinds = description.kinds.iter().filter(|kind| kind.area == area);
    kinds.find(|kind| kind.id == resource).map(|kind| kind.id.clone()).ok_or(Error::NotFound("resource"))
}

async fn live_list(
    mounted: Mounted,
    (State(app), caller, origin): Who,
    At(path): At<OnController>,
    Params(query): Params<LiveQuery>,
) -> Result<Response, Error> {
    let limit = query.limit.unwrap_or(LIVE_LIMIT_DEFAULT);
    if !(1..=LIVE_LIMIT_MAX).contains(&limit) {
        return Err(Error::field("limit", format!("limit must be from 1 to {LIVE_LIMIT_MAX}")));
    }
    let controller =
        controller_on_path(&app, &caller, path.controller_id, path.site_id, mounted.vendor.as_deref())
            .await?;
    let adapter = app.adapter(&controller.vendor)?;
    let kind = kind_of(adapter.description(), &mounted.area, path.resource.as_deref().unwrap_or_default())?;
    let call = call_for(&controller, &origin.request_id)?;
    let page = adapter.list_objects(&call, &kind, None, query.cursor.as_deref(), limit).await?;
    let hide = |page: &mut ObjectPage| page.items.iter_mut().for_each(|object| mask(&mut object.body));
    live(&app, controller.org_id, page, hide).await
}

/// Hides secrets in what was read live and writes it: away from the threads of the API where it is much.
async fn live<T: Serialize + Send + 'static>(
    app: &App,
    org: OrgId,
    mut read: T,
    hide: fn(&mut T),
) -> Result<Response, Error> {
    let bytes = if is_small(&read, LIGHT_BYTES) { 0 } else { usize::MAX };
    let work = move || {
        hide(&mut read);
        serde_json::to_vec(&read)
    };
    let written = app.runtime.apart(org, bytes, work).await?.map_err(Error::internal)?;
    Ok(([(CONTENT_TYPE, "application/json")], written).into_response())
}

async fn live_get(
    mounted: Mounted,
    (State(app), caller, origin): Who,
    At(path): At<OnController>,
) -> Result<Response, Error> {
    let controller =
        controller_on_path(&app, &caller, path.controller_id, path.site_id, mounted.vendor.as_deref())
            .await?;
    let adapter = app.adapter(&controller.vendor)?;
    let kind = kind_of(adapter.description(), &mounted.area, path.resource.as_deref().unwrap_or_default())?;
    let call = call_for(&controller, &origin.request_id)?;
    let object = adapter.get_object(&call, &kind, None, path.key.as_deref().unwrap_or_default()).await?;
    live(&app, controller.org_id, object, |object| mask(&mut object.body)).await
}

async fn get_change(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ChangeId>,
) -> Result<One<ChangeView>, Error> {
    let row = apply::find(&app, &caller, id).await?;
    shown(&app, row).await.map(One)
}

/// The hash of the plan that the client saw, where `If-Match` says what that was; 412 when it saw another state.
async fn plan_as_seen(
    app: &SharedApp,
    caller: &Caller,
    id: ChangeId,
    if_match: &IfMatch,
) -> Result<Option<String>, Error> {
    if !if_match.is_given() {
        return Ok(None);
    }
    let row = apply::find(app, caller, id).await?;
    let seen = shown(app, row).await?;
    if_match.check(&seen)?;
    // Who saw no plan did not see the one that was made since.
    Ok(Some(seen.plan.map(|plan| plan.hash).unwrap_or_default()))
}

async fn plan_again(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    if_match: IfMatch,
) -> Result<Answer<ChangeView>, Error> {
    plan_as_seen(&app, &caller, id, &if_match).await?;
    let row = apply::find(&app, &caller, id).await?;
    let row = plan::plan_again(&app, &caller, &origin, row).await?;
    shown(&app, row).await.map(Answer)
}

async fn apply_change(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    if_match: IfMatch,
    Json(body): Json<ApplyBody>,
) -> Result<Answer<ChangeView>, Error> {
    // The hash holds what the entity tag said until the apply has begun, whoever plans again meanwhile.
    let seen = plan_as_seen(&app, &caller, id, &if_match).await?;
    let request = ApplyRequest {
        force: body.force,
        plan_hash: body.plan_hash.or(seen),
        confirm_within_secs: body.confirm_within_secs,
    };
    let row = apply::apply(&app, &caller, &origin, id, request).await?;
    shown(&app, row).await.map(Answer)
}

async fn confirm(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
) -> Result<Answer<ChangeView>, Error> {
    let row = apply::confirm(&app, &caller, &origin, id).await?;
    shown(&app, row).await.map(Answer)
}

async fn verify(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
) -> Result<Answer<Verified>, Error> {
    let (row, mut standing) = apply::verify(&app, &caller, &origin, id).await?;
    mask(&mut standing);
    Ok(Answer(Verified { change: shown(&app, row).await?, standing }))
}

async fn discard(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChangeId>,
    Params(_): Params<DiscardQuery>,
    if_match: IfMatch,
) -> Result<Answer<ChangeView>, Error> {
    plan_as_seen(&app, &caller, id, &if_match).await?;
    let row = apply::discard(&app, &caller, &origin, id).await?;
    shown(&app, row).await.map(Answer)
}

async fn revert(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    creation: Creation,
    At(id): At<ChangeId>,
) -> Result<Response, Error> {
    apply::revert(&app, &caller, &origin, creation, id).await
}
