//! Routes of documents.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use heddle_core::{ControllerId, SiteId};
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_inventory::model::kind_of;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::bounds::DOCUMENT_BYTES_MAX;
use super::format::{Format, Sent, YAML};
use super::live::{self, Part};
use super::model::{self, TEXT_CHARS_MAX};
use super::plan::{self, IntentPlan};

/// What is exported.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    /// Format of the document; wins over `Accept`.
    format: Option<Format>,
    /// Only what this controller has at the site.
    controller_id: Option<ControllerId>,
    /// Only objects of this kind, such as `vlan`.
    kind: Option<String>,
}

/// How a document is planned.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanQuery {
    /// Only compares; nothing is staged.
    dry_run: Option<bool>,
    /// Objects stay that the document does not have. Without it, a kind that a place of the document has is a whole list.
    keep_unlisted: Option<bool>,
}

/// What people can set at a site.
#[derive(JsonSchema)]
#[schemars(rename = "IntentDocument", deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of documents, which are read and written as values")]
struct DocumentShape {
    /// Version of the document's form.
    #[schemars(range(min = 1, max = 1))]
    heddle_intent: u64,
    /// The site, which must be that of the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<SiteShape>,
    /// Controllers by their ids.
    #[serde(default)]
    controllers: BTreeMap<String, ControllerShape>,
}

/// A site in a document.
#[derive(Default, JsonSchema)]
#[schemars(rename = "IntentSite", deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of documents, which are read and written as values")]
struct SiteShape {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<SiteId>,
    /// For readers.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS_MAX))]
    name: String,
}

/// A controller in a document.
#[derive(Default, JsonSchema)]
#[schemars(rename = "IntentController", deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of documents, which are read and written as values")]
struct ControllerShape {
    /// For readers.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS_MAX))]
    name: String,
    /// For readers.
    #[serde(default)]
    #[schemars(length(max = TEXT_CHARS_MAX))]
    vendor: String,
    /// Objects of the controller as a whole: kinds of the model, and in each the objects by their keys.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    objects: Map<String, Value>,
    /// The same of each of the vendor's sites, by its id.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    sites: Map<String, Value>,
}

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(
            "/sites/{site_id}/intent",
            Access::Permission(CONTROLLER_READ),
            export,
            doc("What people can set at a site, as one document in YAML or JSON; without secrets")
                .named("export_intent")
                .query::<ExportQuery>()
                .answers::<DocumentShape>(200)
                .answers_text(YAML)
                .example("kind", Some("vlan")),
        )
        .post(
            "/sites/{site_id}/intent/plan",
            Access::ByFeature,
            import,
            doc("Compare a document in YAML or JSON with the site, and stage the differences; devices are only read")
                .named("plan_intent")
                .query::<PlanQuery>()
                .body::<DocumentShape>()
                .takes(YAML, DOCUMENT_BYTES_MAX)
                .sample(Some(json!({ "heddle_intent": 1, "controllers": {} })))
                .answers::<IntentPlan>(201)
                .calls_adapter(),
        )
}

async fn export(
    State(app): State<SharedApp>,
    caller: Caller,
    At(site): At<SiteId>,
    Params(query): Params<ExportQuery>,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let kind = query.kind.as_deref().map(kind_of).transpose()?;
    let part = Part { controller_id: query.controller_id, kind, lists: None };
    let live = live::load(&app, &caller, site, &part).await?;
    if let Some(id) = query.controller_id.filter(|id| !live.controllers.contains_key(id)) {
        return Err(Error::field(
            "controller_id",
            format!("nothing of controller {id} was read at this site"),
        ));
    }
    let (id, name) = &live.site;
    let document = model::write((*id, name), &live.controllers, &live.places());
    Format::asked(query.format, &headers).answer(&document)
}

async fn import(
    by: By,
    At(site): At<SiteId>,
    Params(query): Params<PlanQuery>,
    creation: Creation,
    sent: Sent,
) -> Result<Response, Error> {
    let how =
        plan::How { stages: !query.dry_run.unwrap_or(false), removes: !query.keep_unlisted.unwrap_or(false) };
    plan::plan(&by, site, how, creation, &sent).await
}
