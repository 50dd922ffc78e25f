//! A plugin whose actions do what their parameters say, and what becomes of each.
//!
//! The guest is `tests/plugin`. The tests call the runtime itself, with a server for plugins that keeps what it was asked.

mod bounds;
mod reach;
mod services;
mod system;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use heddle_core::{Clock, OrgId};
use heddle_marketplace::{Verified, pack};
use heddle_runtime::{CallError, Plugin, PluginCall, Runtime};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::device::Device;
use super::{package, shared_code, start_runtime};
use crate::support::plugins;
use services::{Services, on_behalf_of};

/// A manifest that gives the guest everything, with a server of the test as its targets.
pub(super) fn manifest(device: &str) -> Value {
    let mut manifest = plugins::scripted(device);
    let capabilities = &mut manifest["capabilities"];
    capabilities["http"] = json!([
        { "name": "api", "origin": device, "methods": ["GET", "POST"], "paths": ["/v1/**", "/echo"], "private": true },
        { "name": "own", "origin": { "setting": "server-url" }, "methods": ["GET"], "paths": ["/v1/*"], "private": true },
        { "name": "public", "origin": "https://127.0.0.1:9", "methods": ["GET"], "paths": ["/v1/*"] },
    ]);
    capabilities["secrets"] = json!([
        { "name": "key", "target": "api", "places": ["bearer", "header:X-Key", "basic-password", "query:key"] },
        { "name": "user", "target": "api", "places": ["basic-username"] },
    ]);
    capabilities["fabric"]["call"] = json!(["network.vlan.create"]);
    capabilities["kv"]["bytes"] = json!(100_000);
    manifest["config-schema"] = json!({ "type": "object", "properties": {
        "server-url": { "type": "string", "format": "uri" }, "emit-in-check": { "type": "string" },
        "store-in-check": { "type": "string" }
    } });
    manifest
}

/// The guest, as `cargo xtask components` builds it.
pub(super) fn guest() -> Vec<u8> {
    plugins::guest("plugin")
}

pub(super) fn verified(manifest: &Value, component: Vec<u8>) -> Verified {
    let contents = BTreeMap::from([("component.wasm".to_owned(), component)]);
    let files =
        pack(manifest.to_string().as_bytes(), contents, package::key()).expect("the package is sound");
    Verified::from_files(files, &[package::key().trusted()]).expect("the package was just signed")
}

/// Prepares a package; one at a time, so that only the first test compiles it.
pub(super) async fn prepare(
    runtime: &Runtime,
    manifest: &Value,
    component: Vec<u8>,
) -> Result<Plugin, String> {
    static ONE: Mutex<()> = Mutex::const_new(());
    let _one = ONE.lock().await;
    runtime.prepare_plugin(&verified(manifest, component)).await.map_err(|error| error.to_string())
}

/// A runtime with the plugin in it, and a server of the world.
pub(super) struct Lab {
    pub(super) device: Device,
    pub(super) runtime: Arc<Runtime>,
    pub(super) plugin: Plugin,
    services: Arc<Services>,
    pub(super) org: OrgId,
    pub(super) other_org: OrgId,
}

impl Lab {
    pub(super) async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    /// With this change of the manifest.
    pub(super) async fn start_with(change: impl FnOnce(&mut Value)) -> Self {
        let clock = Clock::default();
        let device = Device::start().await;
        let runtime = start_runtime(&shared_code(), &["127.0.0.0/8"], &clock);
        let services = Arc::new(Services::default());
        runtime.serves_plugins(Arc::clone(&services) as Arc<_>);
        let mut manifest = manifest(&device.url());
        change(&mut manifest);
        let plugin = prepare(&runtime, &manifest, guest()).await.expect("the guest is loaded");
        runtime.serve_plugin(&plugin);
        let (org, other_org) = (clock.new_id(), clock.new_id());
        services.give_secrets(org);
        Self { device, runtime, plugin, services, org, other_org }
    }

    pub(super) fn call(&self) -> PluginCall {
        self.call_of(self.org)
    }

    pub(super) fn call_of(&self, org_id: OrgId) -> PluginCall {
        PluginCall {
            org_id,
            settings: json!({ "server-url": self.device.url() }),
            request_id: "sandbox".to_owned(),
            deadline: Some(Duration::from_secs(30)),
            behalf: on_behalf_of("ada"),
        }
    }

    /// Runs an action with these parameters.
    pub(super) async fn run(&self, action: &str, step: Value) -> Result<Value, CallError> {
        self.plugin.run(&self.call(), action, &step).await
    }

    /// What the guest answers, which works.
    #[track_caller]
    pub(super) fn works(&self, action: &'static str, step: Value) -> impl Future<Output = Value> {
        let asked = std::panic::Location::caller();
        async move {
            let shown = step.to_string();
            self.run(action, step).await.unwrap_or_else(|error| panic!("{asked}: {shown}: {error:?}"))
        }
    }

    /// The code of the fault that the guest got and passed on. Refusals count against a component; the circuit is closed
    /// again, so that a test can go on.
    #[track_caller]
    pub(super) fn refused(&self, action: &'static str, step: Value) -> impl Future<Output = String> {
        let asked = std::panic::Location::caller();
        async move {
            let shown = step.to_string();
            let ended = self.run(action, step).await;
            self.plugin.release();
            match ended {
                Err(CallError::Fault(fault)) => fault.code.unwrap_or_default(),
                other => panic!("{asked}: {shown} was answered with {other:?}"),
            }
        }
    }
}
