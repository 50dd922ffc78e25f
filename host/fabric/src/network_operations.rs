//! `network.vlans.compare` and `network.vlans.distribute`: the VLANs of a site over all of its controllers, in steps.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_changes::declarations::NETWORK_WRITE;
use heddle_core::change::Danger;
use heddle_core::operation::{OperationKind, OperationTier};
use heddle_core::{ControllerId, Permission, SiteId};
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_network::steps;
use heddle_store::changes::RunStep;
use serde::Deserialize;
use serde_json::{Value, json};

use super::adapter_operations::via;
use super::operation::{Declaration, Operation, ParamsSchema, StepCall, StepError, object_schema, params_of};

fn declaration(
    (id, title, description): (&str, &str, &str),
    (kind, permission): (OperationKind, Permission),
    params_schema: &Value,
    output_schema: Value,
) -> Declaration {
    Declaration {
        id: id.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        tier: OperationTier::Native,
        kind,
        danger: Danger::Normal,
        owner: "heddle".to_owned(),
        permission: Some(permission),
        params_schema: ParamsSchema::from(params_schema),
        output_schema: Arc::new(output_schema),
        of_adapter: false,
        is_switched: false,
    }
}

/// Reads where the controllers of a site differ.
pub(super) struct CompareVlans(Declaration);

#[derive(Deserialize)]
struct CompareParams {
    site_id: SiteId,
    controller_id: Option<ControllerId>,
}

impl CompareVlans {
    pub(super) fn new() -> Self {
        let words = (
            "network.vlans.compare",
            "VLANs of a site: compare",
            "Reads where the VLANs of the controllers of a site differ, as the author of the step may see them. No device is \
             asked.",
        );
        let id = || json!({ "type": "string", "format": "uuid" });
        let params = object_schema(json!({ "site_id": id(), "controller_id": id() }), &["site_id"]);
        let kind = (OperationKind::Read, CONTROLLER_READ);
        Self(declaration(words, kind, &params, steps::compare_schema()))
    }
}

impl Operation for CompareVlans {
    fn declaration(&self) -> &Declaration {
        &self.0
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        async move {
            let params: CompareParams = params_of(params)?;
            Ok(steps::compare(call.app, call.author, params.site_id, params.controller_id).await?)
        }
        .boxed()
    }
}

/// Stages what brings the limbs of a site to its intent.
pub(super) struct DistributeVlans(Declaration);

#[derive(Deserialize)]
struct DistributeParams {
    site_id: SiteId,
}

impl DistributeVlans {
    pub(super) fn new() -> Self {
        let words = (
            "network.vlans.distribute",
            "VLANs of a site: distribute",
            "Stages what brings the controllers of a site to the VLANs of its brain. Nothing is sent before a person applies \
             it.",
        );
        let params = json!({ "site_id": { "type": "string", "format": "uuid" } });
        let params = object_schema(params, &["site_id"]);
        let kind = (OperationKind::Write, NETWORK_WRITE);
        Self(declaration(words, kind, &params, steps::distribute_schema()))
    }
}

impl Operation for DistributeVlans {
    fn declaration(&self) -> &Declaration {
        &self.0
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        async move {
            let params: DistributeParams = params_of(params)?;
            let step = RunStep { run_id: call.run_id, key: call.key.to_owned(), via: via(call) };
            Ok(steps::distribute(call.app, call.author, params.site_id, &step).await?)
        }
        .boxed()
    }
}
