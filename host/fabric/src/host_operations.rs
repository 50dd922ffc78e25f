//! Operations that features of the host declare: what steps read of sites, devices and others, as their author sees them.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::change::Danger;
use heddle_core::operation::{OperationKind, OperationTier};
use heddle_kernel::resource::{ReadOperation, StepObject};
use serde_json::Value;

use super::operation::{Declaration, Operation, ParamsSchema, StepCall, StepError};

/// An operation that reads the host's own tables.
struct Reading {
    declaration: Declaration,
    object: &'static StepObject,
    operation: &'static ReadOperation,
}

/// The operations that read objects of this kind.
pub(super) fn of(object: &'static StepObject) -> impl Iterator<Item = Arc<dyn Operation>> {
    object.reads.iter().map(move |operation| Arc::new(Reading::new(object, operation)) as Arc<dyn Operation>)
}

impl Reading {
    fn new(object: &'static StepObject, operation: &'static ReadOperation) -> Self {
        let declaration = Declaration {
            id: operation.id.to_owned(),
            title: operation.title.to_owned(),
            description: format!("{}, as the author of the step may see them.", operation.title),
            tier: OperationTier::Native,
            kind: OperationKind::Read,
            danger: Danger::Normal,
            owner: "heddle".to_owned(),
            permission: Some(operation.permission),
            params_schema: ParamsSchema::from(&operation.params_schema(object)),
            output_schema: Arc::new(operation.output_schema()),
            of_adapter: false,
            is_switched: false,
        };
        Self { declaration, object, operation }
    }
}

impl Operation for Reading {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        async move { Ok(self.operation.read(self.object, call.app, call.author, params).await?) }.boxed()
    }
}
