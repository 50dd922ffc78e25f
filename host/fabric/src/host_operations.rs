//! What the host itself lets steps read: sites, controllers, devices, as their author sees them.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::adapter::DeviceStatus;
use heddle_core::change::Danger;
use heddle_core::operation::{OperationKind, OperationTier};
use heddle_core::page::PageRequest;
use heddle_core::{ControllerId, DeviceId, Permission, SiteId};
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_inventory::devices::declarations::DEVICE_READ;
use heddle_kernel::http::error::Error;
use heddle_store::controllers::{self, ControllerFilter};
use heddle_store::devices::{self, DeviceFilter};
use heddle_store::object::Object as _;
use heddle_store::{Controller, Device, Site, sites};
use heddle_tenancy::declarations::SITE_READ;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::operation::{Declaration, Operation, ParamsSchema, StepCall, StepError, params_of, schema_of};

const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 200;

#[derive(Clone, Copy)]
enum What {
    Sites,
    Site,
    Controllers,
    Controller,
    Devices,
    Device,
}

/// A question to the host's own tables.
struct Question {
    declaration: Declaration,
    what: What,
}

/// Filters and limits of all lists, as far as each has them.
#[derive(Deserialize)]
struct ListParams {
    site_id: Option<SiteId>,
    controller_id: Option<ControllerId>,
    status: Option<DeviceStatus>,
    search: Option<String>,
    limit: Option<u32>,
}

#[derive(Deserialize)]
struct OneParams {
    #[serde(alias = "site_id", alias = "controller_id", alias = "device_id")]
    id: uuid::Uuid,
}

pub(super) fn all() -> Vec<Arc<dyn Operation>> {
    let (site, controller, device) = (SITE_READ, CONTROLLER_READ, DEVICE_READ);
    let id = json!({ "type": "string", "format": "uuid" });
    let text = json!({ "type": "string", "maxLength": 200 });
    let status = json!({ "type": "string", "enum": ["online", "offline", "unknown"] });
    let one = |name: &str| (json!({ name: id }), json!([name]));
    let questions = [
        (
            What::Sites,
            "sites.list",
            "Sites of the organization",
            site,
            (json!({ "search": text }), json!([])),
        ),
        (What::Site, "sites.get", "One site", site, one("site_id")),
        (
            What::Controllers,
            "controllers.list",
            "Controllers with their status",
            controller,
            (json!({ "site_id": id, "status": status, "search": text }), json!([])),
        ),
        (
            What::Controller,
            "controllers.get",
            "One controller with its status",
            controller,
            one("controller_id"),
        ),
        (
            What::Devices,
            "devices.list",
            "Devices as they were last seen",
            device,
            (json!({ "site_id": id, "controller_id": id, "status": status, "search": text }), json!([])),
        ),
        (What::Device, "devices.get", "One device as it was last seen", device, one("device_id")),
    ];
    questions
        .into_iter()
        .map(|(what, id, title, permission, (properties, required))| {
            let declaration = declaration((what, id), title, permission, properties, required);
            Arc::new(Question { declaration, what }) as Arc<dyn Operation>
        })
        .collect()
}

fn declaration(
    (what, id): (What, &str),
    title: &str,
    permission: Permission,
    mut properties: Value,
    required: Value,
) -> Declaration {
    let one = match what {
        What::Sites | What::Site => schema_of::<sites::Site>(),
        What::Controllers | What::Controller => schema_of::<controllers::Controller>(),
        What::Devices | What::Device => schema_of::<devices::Device>(),
    };
    let is_list = id.rsplit('.').next() == Some("list");
    if is_list {
        properties["limit"] = json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX });
    }
    let output_schema = if is_list {
        json!({
            "type": "object",
            "properties": {
                "items": { "type": "array", "items": one },
                "total": { "type": "integer", "minimum": 0, "description": "How many there are in all" },
            },
            "required": ["items", "total"],
            "additionalProperties": false,
        })
    } else {
        one
    };
    Declaration {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!("{title}, as the author of the step may see them."),
        tier: OperationTier::Native,
        kind: OperationKind::Read,
        danger: Danger::Normal,
        owner: "heddle".to_owned(),
        permission: Some(permission),
        params_schema: ParamsSchema::from(&json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        })),
        output_schema: Arc::new(output_schema),
        of_adapter: false,
        is_switched: false,
    }
}

impl Question {
    async fn answer(&self, call: &StepCall<'_>, params: Value) -> Result<Value, StepError> {
        match self.what {
            What::Sites | What::Controllers | What::Devices => self.list(call, params_of(params)?).await,
            What::Site | What::Controller | What::Device => self.one(call, params_of(params)?).await,
        }
    }

    async fn list(&self, call: &StepCall<'_>, params: ListParams) -> Result<Value, StepError> {
        let page = PageRequest { page: 1, per_page: params.limit.unwrap_or(LIMIT_DEFAULT) };
        let scope = call.author.scope();
        let mut tx = call.app.db.read().await?;
        match self.what {
            What::Sites => listed(sites::list(&mut tx, &scope, params.search.as_deref(), page).await?),
            What::Controllers => {
                let filter = ControllerFilter {
                    site_id: params.site_id,
                    status: params.status,
                    search: params.search,
                    ..ControllerFilter::default()
                };
                listed(controllers::list(&mut tx, &scope, &filter, page).await?)
            }
            _ => {
                let filter = DeviceFilter {
                    site_id: params.site_id,
                    controller_id: params.controller_id,
                    status: params.status,
                    search: params.search,
                    ..DeviceFilter::default()
                };
                listed(devices::list(&mut tx, &scope, &filter, page).await?)
            }
        }
    }

    async fn one(&self, call: &StepCall<'_>, params: OneParams) -> Result<Value, StepError> {
        let scope = call.author.scope();
        let mut tx = call.app.db.read().await?;
        match self.what {
            What::Site => found(Site::find(&mut tx, &scope, SiteId(params.id)).await?, "site"),
            What::Controller => {
                found(Controller::find(&mut tx, &scope, ControllerId(params.id)).await?, "controller")
            }
            _ => found(Device::find(&mut tx, &scope, DeviceId(params.id)).await?, "device"),
        }
    }
}

fn listed<T: Serialize>((items, total): (Vec<T>, i64)) -> Result<Value, StepError> {
    Ok(json!({ "items": serde_json::to_value(items).map_err(Error::internal)?, "total": total }))
}

fn found<T: Serialize>(found: Option<T>, noun: &'static str) -> Result<Value, StepError> {
    let found = found.ok_or(Error::NotFound(noun))?;
    Ok(serde_json::to_value(found).map_err(Error::internal)?)
}

impl Operation for Question {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        self.answer(call, params).boxed()
    }
}
