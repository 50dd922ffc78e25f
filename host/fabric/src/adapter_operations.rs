//! What adapters describe, as operations: features stage a change, objects are read live.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_changes::vendors::for_feature;
use heddle_changes::{Asked, Cause, Place, controller_on_path, seam};
use heddle_core::adapter::{Feature, FeatureOperation, Object, ObjectKind, ObjectPage};
use heddle_core::bounds::is_small;
use heddle_core::change::{Danger, Operation as ChangeOperation, StagedByKind, StagedVia};
use heddle_core::operation::{ConnectionKind, OperationKind, OperationTier, StepErrorCode};
use heddle_core::redact::mask;
use heddle_core::{ControllerId, OrgId};
use heddle_inventory::adapters::call_for;
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_inventory::controllers::releases::lacking;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::schema::schema_of;
use heddle_runtime::{Adapter, LIGHT_BYTES};
use heddle_store::changes::{ChangeRow, RunStep};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::operation::{Declaration, Operation, ParamsSchema, StepCall, StepError, params_of};
use super::write_schemas::{staged_schema, write_schema};

const LIMIT_DEFAULT: u32 = 200;
const LIMIT_MAX: u32 = 1000;
/// Bytes of what a step reads from a controller, as JSON. Templates can use a quarter of it.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Everything that this adapter lets steps do.
pub(super) fn of(adapter: &Adapter) -> Vec<Arc<dyn Operation>> {
    let description = adapter.description();
    let vendor = adapter.id();
    let mut found: Vec<Arc<dyn Operation>> = Vec::new();
    let staged = Arc::new(staged_schema());
    for feature in &description.features {
        for operation in &feature.operations {
            found.push(Arc::new(Write::new(vendor, feature, operation, &staged)));
        }
    }
    let (list, get) = (Reading::list(), Reading::get());
    for kind in description.kinds.iter().filter(|kind| kind.file.is_none()) {
        found.push(Arc::new(Read::list(kind, &list)));
        found.push(Arc::new(Read::get(kind, &get)));
    }
    found
}

/// Stages a change, as its author.
struct Write {
    declaration: Declaration,
    /// None where the words are those of the model: then the controller says which adapter is asked.
    vendor: Option<String>,
    area: String,
    feature: String,
    operation: ChangeOperation,
}

#[derive(Deserialize)]
struct WriteParams {
    controller_id: ControllerId,
    site_ref: Option<String>,
    payload: Value,
    notes: Option<String>,
}

impl Write {
    fn new(
        vendor: &str,
        feature: &Feature,
        operation: &FeatureOperation,
        staged_schema: &Arc<Value>,
    ) -> Self {
        let verb = operation.operation;
        // The same words for every vendor: the first adapter that has them stands for all.
        let vendor = feature.model.is_none().then(|| vendor.to_owned());
        let declaration = Declaration {
            id: format!("{}.{verb}", feature.id),
            title: format!("{}: {verb}", feature.title),
            description: format!(
                "Stages the change '{verb}' of '{}'. Nothing is sent before somebody applies it.",
                feature.id
            ),
            tier: OperationTier::Native,
            kind: OperationKind::Write,
            danger: operation.danger,
            owner: vendor.clone().unwrap_or_else(|| "heddle".to_owned()),
            permission: Some(for_feature(&feature.id, operation.danger)),
            params_schema: ParamsSchema::Around {
                part: operation.payload_schema.clone(),
                whole: write_schema,
            },
            output_schema: Arc::clone(staged_schema),
            of_adapter: true,
            is_switched: false,
        };
        Self { declaration, vendor, area: feature.area.clone(), feature: feature.id.clone(), operation: verb }
    }

    /// The area of the feature at the controller's adapter.
    async fn area_at(&self, call: &StepCall<'_>, controller: ControllerId) -> Result<String, StepError> {
        if self.vendor.is_some() {
            return Ok(self.area.clone());
        }
        let controller =
            controller_on_path(call.app, call.author, Asked::of(controller, None)).await?.controller;
        let adapter = call.app.adapter(&controller.vendor)?;
        let feature = adapter.description().feature(&self.feature);
        feature.map(|feature| feature.area.clone()).ok_or_else(|| {
            let message = format!("controllers of '{}' have no '{}'", controller.vendor, self.feature);
            StepError::new(StepErrorCode::NotFound, message)
        })
    }

    async fn stage(&self, call: &StepCall<'_>, params: Value) -> Result<Value, StepError> {
        let params: WriteParams = params_of(params)?;
        let request = heddle_changes::Request {
            controller_id: params.controller_id,
            site_id: None,
            site_ref: params.site_ref,
            vendor: self.vendor.clone(),
            area: self.area_at(call, params.controller_id).await?,
            feature: self.feature.clone(),
            operation: self.operation,
            payload: params.payload,
            also: Vec::new(),
            notes: params.notes,
        };
        let step = RunStep { run_id: call.run_id, key: call.key.to_owned(), via: via(call) };
        Ok(staged(&seam::stage(call.app, call.author, Cause::Run(&step), request).await?))
    }
}

/// What the change says of the step that staged it.
pub(super) fn via(call: &StepCall<'_>) -> StagedVia {
    let kind = match call.connection.map(|connection| connection.kind) {
        Some(ConnectionKind::Connection) => StagedByKind::Connection,
        Some(ConnectionKind::Rule | ConnectionKind::Schedule) | None => StagedByKind::Automation,
    };
    StagedVia {
        kind,
        connection_id: call.connection.map(|connection| connection.id),
        run_id: Some(call.run_id),
        step: u32::try_from(call.step).ok(),
    }
}

/// What following steps learn of a change.
fn staged(row: &ChangeRow) -> Value {
    json!({
        "change_id": row.id,
        "controller_id": row.controller_id,
        "site_id": row.site_id,
        "feature": row.feature,
        "operation": row.operation,
        "status": row.status,
        "danger": row.danger,
        "plan_hash": row.plan.as_ref().map(|plan| &plan.hash),
        "plan_error": row.plan_error,
    })
}

impl Operation for Write {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        self.stage(call, params).boxed()
    }
}

/// Reads objects live; secrets are masked.
///
/// Kinds are the same words for every vendor: the controller decides which adapter answers.
struct Read {
    declaration: Declaration,
    kind: String,
    is_list: bool,
}

/// Which controller, and which of the vendor's sites there, by its id or its name.
#[derive(Deserialize)]
struct OnController {
    controller_id: ControllerId,
    site_ref: Option<String>,
}

#[derive(Deserialize)]
struct ListParams {
    cursor: Option<String>,
    limit: Option<u32>,
}

#[derive(Deserialize)]
struct GetParams {
    key: String,
}

/// What all kinds have in common; the operations share it.
struct Reading {
    params_schema: ParamsSchema,
    output_schema: Arc<Value>,
}

impl Reading {
    fn list() -> Self {
        let params = json!({
            "type": "object",
            "properties": {
                "controller_id": { "type": "string", "format": "uuid" },
                "site_ref": { "type": "string", "minLength": 1 },
                "cursor": { "type": "string" },
                "limit": { "type": "integer", "minimum": 1, "maximum": LIMIT_MAX },
            },
            "required": ["controller_id"],
            "additionalProperties": false,
        });
        Self {
            params_schema: ParamsSchema::from(&params),
            output_schema: Arc::new(schema_of::<ObjectPage>()),
        }
    }

    fn get() -> Self {
        let params = json!({
            "type": "object",
            "properties": {
                "controller_id": { "type": "string", "format": "uuid" },
                "site_ref": { "type": "string", "minLength": 1 },
                "key": { "type": "string", "minLength": 1 },
            },
            "required": ["controller_id", "key"],
            "additionalProperties": false,
        });
        Self { params_schema: ParamsSchema::from(&params), output_schema: Arc::new(schema_of::<Object>()) }
    }
}

impl Read {
    fn list(kind: &ObjectKind, reading: &Reading) -> Self {
        let description = format!("Reads objects of kind '{}' live from the controller.", kind.id);
        Self::new(kind, true, description, reading)
    }

    fn get(kind: &ObjectKind, reading: &Reading) -> Self {
        let description = format!("Reads one object of kind '{}' live from the controller.", kind.id);
        Self::new(kind, false, description, reading)
    }

    fn new(kind: &ObjectKind, is_list: bool, description: String, reading: &Reading) -> Self {
        let verb = if is_list { "list" } else { "get" };
        let declaration = Declaration {
            id: format!("{}.{verb}", kind.id),
            title: format!("{}: {verb}", kind.title),
            description,
            tier: OperationTier::Native,
            kind: OperationKind::Read,
            danger: Danger::Normal,
            owner: "heddle".to_owned(),
            permission: Some(CONTROLLER_READ),
            params_schema: reading.params_schema.clone(),
            output_schema: Arc::clone(&reading.output_schema),
            of_adapter: true,
            is_switched: false,
        };
        Self { declaration, kind: kind.id.clone(), is_list }
    }

    async fn read(&self, call: &StepCall<'_>, params: Value) -> Result<Value, StepError> {
        let on = params_of::<OnController>(params.clone())?;
        let asked = Asked::of(on.controller_id, on.site_ref.as_deref());
        let seen = controller_on_path(call.app, call.author, asked).await?;
        let adapter = call.app.adapter(&seen.controller.vendor)?;
        let Some(kind) = adapter.description().kinds.iter().find(|kind| kind.id == self.kind) else {
            let message = format!("controllers of '{}' have no '{}'", seen.controller.vendor, self.kind);
            return Err(StepError::new(StepErrorCode::NotFound, message));
        };
        let what = format!("'{}'", self.kind);
        if let Some(message) = lacking(&what, kind.releases.as_ref(), &seen.controller) {
            return Err(StepError::new(StepErrorCode::NotFound, message));
        }
        let asked = Asked { is_of_site: kind.is_of_site, ..asked };
        let Place { controller, site_ref, .. } = seen.place(call.author, asked)?;
        let site = site_ref.as_deref();
        let target = call_for(&controller, &format!("run-{}", call.run_id))?;
        if self.is_list {
            let params: ListParams = params_of(params)?;
            let limit = params.limit.unwrap_or(LIMIT_DEFAULT);
            let cursor = params.cursor.as_deref();
            let page = adapter.list_objects(&target, &self.kind, site, cursor, limit, &[]).await;
            output(call.app, controller.org_id, page.map_err(Error::from)?).await
        } else {
            let params: GetParams = params_of(params)?;
            let object = adapter.get_object(&target, &self.kind, site, &params.key).await;
            output(call.app, controller.org_id, object.map_err(Error::from)?).await
        }
    }
}

/// Returns what was read as a step's output, with secrets masked. A large output is made outside the API threads.
async fn output<T: Serialize + Send + 'static>(app: &App, org: OrgId, read: T) -> Result<Value, StepError> {
    let bytes = if is_small(&read, LIGHT_BYTES) { 0 } else { usize::MAX };
    let work = move || {
        if !is_small(&read, OUTPUT_BYTES_MAX) {
            return Ok(None);
        }
        let mut read = serde_json::to_value(read)?;
        mask(&mut read);
        Ok::<_, serde_json::Error>(Some(read))
    };
    let made = app.runtime.apart(org, bytes, work).await.map_err(Error::from)?;
    made.map_err(Error::internal)?.ok_or_else(|| {
        let message = format!("the answer has more than {OUTPUT_BYTES_MAX} bytes; give a lower 'limit'");
        StepError::new(StepErrorCode::AdapterError, message)
    })
}

impl Operation for Read {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        self.read(call, params).boxed()
    }
}
