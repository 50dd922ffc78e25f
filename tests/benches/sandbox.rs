//! A runtime for components and packages of plugins, for the benches that call them without a server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use heddle_core::{Clock, ControllerId, CredentialId, OrgId};
use heddle_marketplace::{PublisherKey, Verified, pack};
use heddle_runtime::{Credential, Plugin, PluginCall, PluginServices, Settings, Tap, Vault, VaultError};
use serde_json::json;

use crate::support::{compiler, target_folder};

/// As many as callers of one bench have under way, and some to spare.
const INSTANCES: u32 = 32;

/// A runtime that reaches this machine. Compiled code is kept from one run to the next.
pub(crate) fn start(vault: Arc<dyn Vault>, tap: Option<Tap>) -> Arc<heddle_runtime::Runtime> {
    let here = || vec!["127.0.0.0/8".parse().expect("a network")];
    let settings = Settings {
        code_cache_dir: target_folder().join("bench-code"),
        code_cache_key: [7; 32],
        compiler: compiler(),
        extra_networks: here(),
        plugin_networks: here(),
        denied_networks: Vec::new(),
        pooling_instances: INSTANCES,
        guest_workers: 2,
        tap,
    };
    heddle_runtime::Runtime::start(settings, vault, Clock::default()).expect("the runtime starts")
}

/// A runtime with this plugin in service.
pub(crate) async fn with_plugin(
    services: Arc<dyn PluginServices>,
    tap: Option<Tap>,
    manifest: &str,
    component: Vec<u8>,
) -> (Arc<heddle_runtime::Runtime>, Plugin) {
    let sandbox = start(Arc::new(NoCredential), tap);
    sandbox.serves_plugins(services);
    let key = PublisherKey::generate("bench").expect("the system has random numbers");
    let contents = BTreeMap::from([("component.wasm".to_owned(), component)]);
    let files = pack(manifest.as_bytes(), contents, &key).expect("a package can be made");
    let package = Verified::from_files(files, &[key.trusted()]).expect("the package is signed");
    let plugin = sandbox.prepare_plugin(&package).await.expect("the plugin is prepared");
    sandbox.serve_plugin(&plugin);
    (sandbox, plugin)
}

/// A call in an organization of its own.
pub(crate) fn plugin_call(deadline: Duration) -> PluginCall {
    PluginCall {
        org_id: Clock::default().new_id(),
        settings: json!({}),
        request_id: "bench".to_owned(),
        deadline: Some(deadline),
        behalf: Arc::new(()),
    }
}

/// A credential store with nothing in it: plugins have secrets.
struct NoCredential;

#[async_trait::async_trait]
impl Vault for NoCredential {
    async fn credential(&self, _: OrgId, _: CredentialId) -> Result<Credential, VaultError> {
        Ok(Credential::default())
    }

    fn reference_key(&self, _: ControllerId) -> [u8; 32] {
        [9; 32]
    }
}
