//! The `gateway-…` families, built from the descriptions of the adapters.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json as Answer;
use axum::extract::State;
use axum::response::Response;
use heddle_core::adapter::{Area, Description, Feature};
use heddle_core::change::{ChangeStatus, Operation};
use heddle_core::release::ReleaseSpan;
use heddle_core::{ControllerId, SiteId};
use heddle_files::declarations::FILE_WRITE;
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_inventory::controllers::releases::is_offered;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::refuse_longer;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Origin, Params};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_kernel::sample::{self, Extent};
use heddle_store::changes::ChangeFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::change_routes::listed;
use super::declarations::NOTES_CHARS_MAX;
use super::fetch::{self, FetchBody};
use super::live::{self, LivePage, LiveQuery, OneQuery};
use super::place::{Asked, controller_on_path};
use super::plan::{self, Request};
use super::view::ChangeView;
use super::{change_routes, model_routes, vendors};

/// One area on one path family.
#[derive(Debug, Clone)]
pub(super) struct Mounted {
    /// `None` where the family serves every vendor.
    pub(super) vendor: Option<String>,
    pub(super) area: String,
    /// It is the second family of the vendor.
    is_rest: bool,
}

impl Mounted {
    /// Names it for people: `acme dhcp`, `firewall`.
    fn words(&self) -> String {
        let vendor = self.vendor.iter().map(String::as_str);
        let family = self.is_rest.then_some("rest");
        vendor.chain(family).chain([self.area.as_str()]).collect::<Vec<_>>().join(" ").replace('-', " ")
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StageQuery {
    /// `create`, `update` or `delete`.
    operation: Operation,
    /// Id or name of one of the vendor's sites, where the controller has several here.
    site_ref: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StageBody {
    /// Content, as the feature's own schema allows.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub(super) payload: Value,
    /// Up to 2000 characters.
    #[serde(default)]
    #[schemars(length(max = NOTES_CHARS_MAX))]
    pub(super) notes: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only changes of this status.
    status: Option<ChangeStatus>,
}

/// An area's features with their schemas, and the kinds that can be read live: those that the controller's release has.
#[derive(Debug, Serialize, JsonSchema)]
struct AreaView {
    controller_id: ControllerId,
    vendor: String,
    area: Area,
    features: Vec<Feature>,
    resources: Vec<heddle_core::adapter::ObjectKind>,
}

pub(super) fn routes(app: &SharedApp) -> Routes {
    let adapters = app.runtime.adapters();
    let own = change_routes::routes().merge(model_routes::routes());
    own.merge(of_areas(adapters.iter().map(|adapter| (adapter.id(), adapter.description()))))
}

/// The routes of each vendor's areas, and those that serve every vendor.
fn of_areas<'a>(adapters: impl Iterator<Item = (&'a str, &'a Description)>) -> Routes {
    let mut routes = Routes::default();
    let (mut site_areas, mut bases) = (BTreeMap::new(), BTreeSet::new());
    for (vendor, description) in adapters {
        for area in &description.areas {
            let shown = Shown::of(description, &area.id);
            let mounted = Mounted { vendor: Some(vendor.to_owned()), area: area.id.clone(), is_rest: false };
            let base = format!("/gateway-{vendor}-{}/{{controller_id}}", area.id);
            // 'acme-vpn' with the area 'x', and 'acme' with 'vpn-x': no router takes the same path twice.
            if bases.insert(base.clone()) {
                routes = mount(routes, &base, &mounted, &shown);
                if vendors::has_rest_family(vendor) {
                    let base = format!("/{vendor}/{{controller_id}}/{}", area.id);
                    routes = mount(routes, &base, &Mounted { is_rest: true, ..mounted }, &shown);
                }
            } else {
                tracing::error!(
                    component = vendor,
                    "area '{}' of adapter {vendor} is not served: another adapter has the path {base}",
                    area.id
                );
            }
            if vendors::is_of_sites(&area.id) {
                site_areas.entry(area.id.clone()).or_insert(shown);
            }
        }
    }
    for (area, shown) in site_areas {
        let base = format!("/gateway-{area}/{{controller_id}}/sites/{{site_id}}");
        routes = mount(routes, &base, &Mounted { vendor: None, area, is_rest: false }, &shown);
    }
    routes
}

/// The examples of an area in the document.
struct Shown {
    feature: Option<String>,
    operation: Option<Operation>,
    body: Option<Value>,
    resource: Option<String>,
    file: Option<String>,
}

impl Shown {
    fn of(description: &Description, area: &str) -> Self {
        let of_area = || description.features.iter().filter(|feature| feature.area == area);
        let creates = of_area().find(|feature| feature.operation(Operation::Create).is_some());
        let feature = creates.or_else(|| of_area().next());
        let operation = feature.and_then(|feature| feature.operations.first());
        let body = operation.map(|operation| {
            let payload = sample::of(&operation.payload_schema.value(), Extent::Required);
            json!({ "payload": payload, "notes": "Ticket 4711" })
        });
        let of_kinds = || description.kinds.iter().filter(|kind| kind.area == area);
        let resource = of_kinds().find(|kind| kind.file.is_none());
        let file = of_kinds().find(|kind| kind.file.is_some());
        Self {
            feature: feature.map(|one| one.id.clone()),
            operation: operation.map(|one| one.operation),
            body,
            resource: resource.map(|one| one.id.clone()),
            file: file.map(|one| one.id.clone()),
        }
    }
}

fn mount(routes: Routes, base: &str, mounted: &Mounted, shown: &Shown) -> Routes {
    let (feature, resource) = (shown.feature.as_deref(), shown.resource.as_deref());
    let read = Access::Permission(CONTROLLER_READ);
    let [described, listed, staged, read_all, read_one] = std::array::from_fn(|_| mounted.clone());
    let words = mounted.words();
    let area = words.replace(' ', "_");
    let about = format!(
        "Objects of the area '{words}', read live from the device, and changes of them that are staged for review."
    );
    let of_area = Routes::default()
        .get(
            base,
            read,
            move |state, caller, path| features(described, state, caller, path),
            doc("Features of the area, with their schemas")
                .named(format!("describe_{area}_area"))
                .answers::<AreaView>(200),
        )
        .get(
            &format!("{base}/changes"),
            read,
            move |state, caller, path, query| list(listed, state, caller, path, query),
            doc("Staged changes")
                .named(format!("list_{area}_changes"))
                .query::<ListQuery>()
                .answers::<Vec<ChangeView>>(200),
        )
        .post(
            &format!("{base}/changes/{{feature}}"),
            Access::ByFeature,
            move |state, caller, origin, path, query, creation, body| {
                stage(staged, (state, caller, origin), path, query, creation, body)
            },
            doc("Stage a change; the device is only read")
                .named(format!("stage_{area}_change"))
                .query::<StageQuery>()
                .body::<StageBody>()
                .answers::<ChangeView>(201)
                .example("feature", feature)
                .example("operation", shown.operation.map(Operation::as_str))
                .sample(shown.body.clone())
                .calls_adapter(),
        )
        .get(
            &format!("{base}/{{resource}}"),
            read,
            move |state, caller, origin, path, query| {
                live::list(read_all, (state, caller, origin), path, query)
            },
            doc("Read objects live through the adapter")
                .named(format!("list_{area}_objects"))
                .query::<LiveQuery>()
                .answers::<LivePage>(200)
                .example("resource", resource)
                .calls_adapter(),
        )
        .get(
            &format!("{base}/{{resource}}/{{key}}"),
            read,
            move |state, caller, origin, path, query| {
                live::get(read_one, (state, caller, origin), path, query)
            },
            doc("Read one object live through the adapter")
                .named(format!("get_{area}_object"))
                .query::<OneQuery>()
                .answers::<heddle_core::adapter::Object>(200)
                .example("resource", resource)
                .calls_adapter(),
        );
    let of_area = of_area.merge(files_of(base, mounted, shown, &area));
    routes.merge(of_area.each(|doc| doc.grouped(&format!("Gateway: {words}"), &about)))
}

/// The route of the area's files, where the vendor has some.
fn files_of(base: &str, mounted: &Mounted, shown: &Shown, area: &str) -> Routes {
    let (Some(_), Some(kind)) = (&mounted.vendor, shown.file.as_deref()) else { return Routes::default() };
    let mounted = mounted.clone();
    Routes::default().post(
        &format!("{base}/files/{{kind}}"),
        Access::Permission(FILE_WRITE),
        move |by, path, query, creation, body| fetch(mounted, by, path, query, creation, body),
        doc(
            "Have the controller give a file, such as a backup, and keep it. It can hold every secret of the device, so that \
             it needs the level to write at the site and the permission to change what the vendor has, too",
        )
            .named(format!("fetch_{area}_file"))
            .query::<OneQuery>()
            .body::<FetchBody>()
            .answers::<heddle_files::View>(201)
            .example("kind", Some(kind))
            .sample(Some(json!({ "name": "edge-1.xml" })))
            .calls_adapter(),
    )
}

async fn fetch(
    mounted: Mounted,
    by: By,
    At(path): At<OnController>,
    Params(query): Params<OneQuery>,
    creation: Creation,
    Json(body): Json<FetchBody>,
) -> Result<Response, Error> {
    let asked = Asked { site_ref: query.site_ref.as_deref(), ..path.asked(&mounted) };
    let kind = path.kind.as_deref().unwrap_or_default();
    fetch::fetch(by, asked, (&mounted.area, kind), body, creation).await
}

/// Path parameters of both families.
#[derive(Debug, Deserialize)]
pub(super) struct OnController {
    pub(super) controller_id: ControllerId,
    pub(super) site_id: Option<SiteId>,
    feature: Option<String>,
    pub(super) resource: Option<String>,
    pub(super) key: Option<String>,
    kind: Option<String>,
}

impl OnController {
    /// The controller on this path, with any of its sites.
    fn asked<'a>(&self, mounted: &'a Mounted) -> Asked<'a> {
        Asked {
            vendor: mounted.vendor.as_deref(),
            site_id: self.site_id,
            ..Asked::of(self.controller_id, None)
        }
    }
}

pub(super) type Who = (State<SharedApp>, Caller, Origin);

async fn features(
    mounted: Mounted,
    State(app): State<SharedApp>,
    caller: Caller,
    At(path): At<OnController>,
) -> Result<Answer<AreaView>, Error> {
    let controller = controller_on_path(&app, &caller, path.asked(&mounted)).await?.controller;
    let adapter = app.adapter(&controller.vendor)?;
    let description = adapter.description();
    let area =
        description.areas.iter().find(|area| area.id == mounted.area).ok_or(Error::NotFound("area"))?;
    let is_there = |releases: Option<&ReleaseSpan>| is_offered(releases, controller.firmware.as_deref());
    Ok(Answer(AreaView {
        controller_id: controller.id,
        vendor: controller.vendor.clone(),
        area: area.clone(),
        features: description
            .features
            .iter()
            .filter(|feature| feature.area == mounted.area && is_there(feature.releases.as_ref()))
            .cloned()
            .collect(),
        resources: description
            .kinds
            .iter()
            .filter(|kind| kind.area == mounted.area && is_there(kind.releases.as_ref()))
            .cloned()
            .collect(),
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
    refuse_longer("notes", body.notes.as_deref().unwrap_or_default(), NOTES_CHARS_MAX)?;
    let request = Request {
        controller_id: path.controller_id,
        site_id: path.site_id,
        site_ref: query.site_ref,
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

async fn list(
    mounted: Mounted,
    State(app): State<SharedApp>,
    caller: Caller,
    At(path): At<OnController>,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Vec<ChangeView>>, Error> {
    let controller = controller_on_path(&app, &caller, path.asked(&mounted)).await?.controller;
    let filter = ChangeFilter {
        controller_id: Some(controller.id),
        site_id: path.site_id,
        area: Some(mounted.area),
        status: query.status,
        ..ChangeFilter::default()
    };
    listed(&app, &caller, &filter).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_vendors_with_the_same_path_do_not_keep_the_router_from_being_built() {
        let of = |vendor: &str, area: &str| Description {
            vendor: vendor.to_owned(),
            title: vendor.to_owned(),
            areas: vec![Area { id: area.to_owned(), title: area.to_owned() }],
            kinds: Vec::new(),
            features: Vec::new(),
            model: Vec::new(),
        };
        let (one, two) = (of("acme", "vpn-x"), of("acme-vpn", "x"));
        let alone = of_areas([("acme", &one)].into_iter()).iter().count();
        let both = of_areas([("acme", &one), ("acme-vpn", &two)].into_iter());
        let paths: BTreeSet<_> = both.iter().map(|route| (route.method.as_str(), &route.path)).collect();
        assert_eq!((both.iter().count(), paths.len()), (alone, alone));
        assert!(alone > 0);
    }
}
