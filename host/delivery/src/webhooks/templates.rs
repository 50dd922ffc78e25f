//! Payloads that an organization defines for its webhooks: JSON with references to the event.

use axum::response::Response;
use heddle_core::event::EventTypes;
use heddle_core::shape::Shape;
use heddle_core::template::{Reference, references};
use heddle_core::{OrgId, Timestamp};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::declarations::{SETTINGS_READ, SETTINGS_WRITE};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::nulls::given;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::list_query;
use heddle_kernel::resource::{self, Actions, By, Listed, Resource, Rows, Unique, Verbs, actions, owner};
use heddle_store::Tx;
use heddle_store::webhooks::templates::{self, NAME_INDEX, NewTemplate, Template, WebhookTemplateId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookTemplate")]
pub(crate) struct View {
    id: WebhookTemplateId,
    #[serde(skip)]
    revision: i64,
    organization_id: OrgId,
    name: String,
    #[schemars(with = "Map<String, Value>")]
    payload: Value,
    created_at: Timestamp,
    updated_at: Timestamp,
}

heddle_store::revised!(View);

/// Templates of payloads.
pub(crate) struct Templates;

impl Resource for Templates {
    type Row = Template;
    const NOUN: &'static str = "webhook template";
    const PATH: &'static str = "/webhooks/templates";
    const ACTIONS: Actions = actions!("webhook_template");
    const UNIQUE: &'static [Unique<Template>] =
        &[Unique { index: NAME_INDEX, field: "name", value: |template| &template.name }];
    type View = View;

    fn view(template: Template, _: &App) -> Result<View, Error> {
        Ok(template.into())
    }

    fn detail(template: &Template) -> Value {
        json!({ "name": template.name })
    }

    async fn may_remove(template: &Template, tx: &mut Tx, _: &By) -> Result<(), Error> {
        match templates::uses(tx, template.id).await? {
            0 => Ok(()),
            uses => Err(Error::conflict(format!(
                "template is used by webhook subscriptions ({uses}): give them another one first"
            ))),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewWebhookTemplate")]
struct NewBody {
    /// Unique in the organization.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// The body that is sent: a JSON object. `{{trigger.name}}` is replaced by that field of the event's payload,
    /// `{{event.seq}}` by a field of the event itself.
    payload: Map<String, Value>,
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WebhookTemplateUpdate")]
struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    #[serde(default, deserialize_with = "given")]
    payload: Option<Map<String, Value>>,
}

list_query! {
    /// Part of the name.
    pub(crate) struct ListQuery of Template {}
}

impl Listed for Templates {
    type Query = ListQuery;

    async fn page(tx: &mut Tx, caller: &Caller, _: ListQuery, asked: Listing<Template>) -> Rows<Template> {
        Ok(templates::list(tx, &caller.scope(), asked.search.as_deref(), asked.order).await?)
    }
}

pub(super) fn routes() -> Routes {
    let write = Access::Permission(SETTINGS_WRITE);
    Verbs::<Templates>::of("template_id", Access::Permission(SETTINGS_READ), write)
        .listed("Templates of webhook payloads")
        .create::<NewBody, _, _>(create, "Create a template")
        .get(resource::get::<Templates>, "One template")
        .update::<UpdateBody, _, _>(update, "Change a template")
        .remove(resource::remove::<Templates>, "Remove a template that no subscription uses")
        .routes()
}

impl From<Template> for View {
    fn from(row: Template) -> Self {
        let payload = row.payload().clone();
        Self {
            id: row.id,
            revision: row.revision,
            organization_id: row.org_id,
            name: row.name,
            payload,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Every reference can be read, and is one to the event.
fn check_payload(checks: &mut Checks, types: &EventTypes, payload: &Value) {
    let is_small = payload.to_string().len() <= PAYLOAD_BYTES_MAX;
    checks.require(is_small, "payload", "must not have more than 64 KiB");
    match references(payload) {
        Ok(found) => {
            let names_step = found.iter().any(|reference| reference.step().is_some());
            checks.require(
                !names_step,
                "payload",
                "a webhook has no steps: give references such as '{{trigger.name}}' or '{{event.seq}}'",
            );
            let wrong = found.iter().find_map(|one| reference_fault(&Shape::of_any_event(types), one));
            checks.require(wrong.is_none(), "payload", &wrong.unwrap_or_default());
        }
        Err(error) => checks.require(false, "payload", &error.to_string()),
    }
}

/// Returns why no event of this shape has the value that a reference names.
pub(super) fn reference_fault(shape: &Shape, reference: &Reference) -> Option<String> {
    let of_payload = reference.in_trigger().and_then(|segments| shape.payload_fault(segments));
    let of_event = || reference.in_event().and_then(|segments| shape.event_fault(segments));
    let of_step = || reference.own().map(|_| "only steps of a Connection have it".to_owned());
    let why = of_payload.or_else(of_event).or_else(of_step)?;
    Some(format!("'{{{{{}}}}}': {why}", reference.path()))
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    let payload = Value::Object(body.payload);
    check_payload(&mut checks, &app.declared().events, &payload);
    checks.done()?;
    let mut tx = app.db.write().await?;
    let new = NewTemplate {
        id: app.clock.new_id(),
        org_id: owner(&mut tx, caller, body.organization_id).await?,
        name,
        payload,
        now: app.clock.now(),
    };
    let made = templates::insert(&mut tx, &new).await;
    let made = made.map_err(|error| resource::taken::<Templates>(error, &[&new.name]))?;
    let detail = Templates::detail(&made);
    resource::created::<Templates>(tx, &by, creation, made, detail).await
}

async fn update(
    by: By,
    At(id): At<WebhookTemplateId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<View>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    let payload = body.payload.map(Value::Object);
    if let Some(payload) = &payload {
        check_payload(&mut checks, &app.declared().events, payload);
    }
    checks.done()?;
    let scope = caller.organization_scope();
    let mut tx = app.db.write().await?;
    resource::locked::<Templates>(&mut tx, &by, id, &if_match).await?;
    let change = (name.as_deref(), payload.as_ref());
    let updated = templates::update(&mut tx, &scope, id, change, app.clock.now()).await;
    let updated = updated
        .map_err(|error| resource::taken::<Templates>(error, &[name.as_deref().unwrap_or_default()]))?;
    let updated = updated.ok_or(Error::NotFound(Templates::NOUN))?;
    // Without the changed values: a payload is free text, and audit entries cannot be edited.
    by.record::<Templates>(&mut tx, &updated, Templates::ACTIONS.updated, Templates::detail(&updated))
        .await?;
    tx.commit().await?;
    Templates::view(updated, app).map(One)
}
