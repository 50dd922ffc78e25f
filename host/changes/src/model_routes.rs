//! Staging in the words of the model: the same request for every vendor.

use axum::extract::State;
use axum::response::Response;
use heddle_core::adapter::Feature;
use heddle_core::change::Operation;
use heddle_core::{ControllerId, SiteLevel};
use heddle_inventory::model::{self, kind_of};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::refuse_longer;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json, Origin, Params};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::nearest::nearest;
use heddle_runtime::Adapter;
use heddle_store::model_objects::ModelObjectId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::declarations::NOTES_CHARS_MAX;
use super::place::{Asked, controller_on_path};
use super::plan::{self, Request};
use super::routes::StageBody;
use super::view::ChangeView;

/// A request in the words of the model.
#[derive(Debug)]
pub struct InModel<'a> {
    pub controller_id: ControllerId,
    /// The vendor's site that is meant, by its id or its name.
    pub site_ref: Option<String>,
    pub kind: &'a str,
    /// Such as `create`.
    pub verb: &'a str,
    pub payload: Value,
    pub notes: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerbQuery {
    /// `create`, `update`, `delete`, or what else the kind knows, such as `poe-cycle`.
    verb: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewQuery {
    /// `create`, `update`, `delete`, or what else the kind knows, such as `poe-cycle`.
    verb: String,
    /// Id or name of one of the vendor's sites, where the controller has several here.
    site_ref: Option<String>,
}

pub(super) fn routes() -> Routes {
    let desk = json!({ "mac": "aa:bb:cc:00:11:22", "address": "192.168.1.22", "hostname": "desk" });
    let sample = json!({ "payload": desk, "notes": "Ticket 4711" });
    let members = json!([{ "port": "lan1", "tagged": true }]);
    let update = json!({ "payload": { "members": members }, "notes": "Ticket 4711" });
    Routes::default()
        .post(
            "/controllers/{controller_id}/inventory/{model_kind}/changes",
            Access::ByFeature,
            stage_at_controller,
            doc("Stage a change in the words of the model; the device is only read")
                .named("stage_model_change")
                .query::<NewQuery>()
                .body::<StageBody>()
                .answers::<ChangeView>(201)
                .example("model_kind", Some("dhcp-reservation"))
                .example("verb", Some("create"))
                .sample(Some(sample))
                .calls_adapter(),
        )
        .post(
            "/inventory/{model_kind}/{model_object_id}/changes",
            Access::ByFeature,
            stage_of_object,
            doc("Stage a change of an object of the inventory; the device is only read")
                .named("stage_model_object_change")
                .query::<VerbQuery>()
                .body::<StageBody>()
                .answers::<ChangeView>(201)
                .example("model_kind", Some("vlan"))
                .example("verb", Some("update"))
                .sample(Some(update))
                .calls_adapter(),
        )
}

#[derive(Debug, Deserialize)]
struct OnController {
    controller_id: ControllerId,
    model_kind: String,
}

#[derive(Debug, Deserialize)]
struct OnObject {
    model_kind: String,
    model_object_id: ModelObjectId,
}

async fn stage_at_controller(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(path): At<OnController>,
    Params(query): Params<NewQuery>,
    creation: Creation,
    Json(body): Json<StageBody>,
) -> Result<Response, Error> {
    let place = (path.controller_id, query.site_ref);
    stage(&app, (&caller, &origin, creation), place, (&path.model_kind, &query.verb), body).await
}

async fn stage_of_object(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(path): At<OnObject>,
    Params(query): Params<VerbQuery>,
    creation: Creation,
    Json(mut body): Json<StageBody>,
) -> Result<Response, Error> {
    let object = model::object(&app, &caller, &path.model_kind, path.model_object_id).await?;
    caller.require_level(object.site_id, SiteLevel::Write)?;
    if query.verb == "create" {
        let message = "the object is there; use 'update', or create another at \
                       /controllers/{controller_id}/inventory/{model_kind}/changes";
        return Err(Error::field("verb", message));
    }
    if let Value::Object(fields) = &mut body.payload
        && fields.insert("key".to_owned(), json!(object.key)).is_some()
    {
        return Err(Error::field("payload.key", "the path says which object it is; leave 'key' out"));
    }
    let place = (object.controller_id, object.site_ref);
    stage(&app, (&caller, &origin, creation), place, (&path.model_kind, &query.verb), body).await
}

async fn stage(
    app: &SharedApp,
    (caller, origin, creation): (&Caller, &Origin, Creation),
    (controller_id, site_ref): (ControllerId, Option<String>),
    (kind, verb): (&str, &str),
    body: StageBody,
) -> Result<Response, Error> {
    let StageBody { payload, notes } = body;
    let request =
        request(app, caller, InModel { controller_id, site_ref, kind, verb, payload, notes }).await?;
    plan::stage(app, caller, origin, creation, request).await
}

/// The request of a verb, if the caller may write where it is for.
///
/// # Errors
/// As for a request of a client.
pub async fn request(app: &App, caller: &Caller, asked: InModel<'_>) -> Result<Request, Error> {
    let InModel { controller_id, site_ref, kind, verb, payload, notes } = asked;
    refuse_longer("notes", notes.as_deref().unwrap_or_default(), NOTES_CHARS_MAX)?;
    kind_of(kind)?;
    let asked = Asked::of(controller_id, site_ref.as_deref());
    let seen = controller_on_path(app, caller, asked).await?;
    let adapter = app.adapter(&seen.controller.vendor)?;
    // Only callers that may change something there learn what can be asked.
    let filled = adapter.description().model.iter().find(|filled| filled.kind == kind);
    let is_of_site = filled.is_none_or(|filled| filled.is_of_site);
    let place = seen.place(caller, Asked { is_of_site, ..asked })?;
    caller.require_level(place.site_id, SiteLevel::Write)?;
    let (feature, operation) = feature_of(&adapter, kind, verb)?;
    Ok(Request {
        controller_id,
        site_id: None,
        vendor: None,
        area: feature.area.clone(),
        feature: feature.id.clone(),
        operation,
        site_ref,
        payload,
        also: Vec::new(),
        notes,
    })
}

/// The feature and the operation of a verb, or an error that names what the adapter can express.
fn feature_of<'a>(adapter: &'a Adapter, kind: &str, verb: &str) -> Result<(&'a Feature, Operation), Error> {
    let of_kind = || {
        let features = adapter.description().features.iter();
        let of_kind =
            features.filter_map(|one| Some((one, one.model.as_ref().filter(|model| model.kind == kind)?)));
        of_kind.flat_map(|(feature, model)| {
            feature.operations.iter().map(move |one| (model.verb(one.operation), (feature, one.operation)))
        })
    };
    if let Some((_, found)) = of_kind().find(|(known, _)| *known == verb) {
        return Ok(found);
    }
    let known: Vec<&str> = of_kind().map(|(verb, _)| verb).collect();
    let vendor = adapter.id();
    Err(Error::field(
        "verb",
        match (known.as_slice(), nearest(verb, known.iter().copied())) {
            ([], _) => {
                format!("'{vendor}' changes no {kind} in the words of the model; its own features may")
            }
            (_, Some(near)) => format!("'{vendor}' has no '{verb}' for a {kind}; nearest is '{near}'"),
            _ => format!("'{vendor}' has no '{verb}' for a {kind}; it has: {}", known.join(", ")),
        },
    ))
}
