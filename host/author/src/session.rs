//! A plugin in the real runtime, in this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use heddle_core::secret::random_bytes;
use heddle_core::{Clock, ControllerId, CredentialId, OrgId};
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::{Schema, Verified};
use heddle_runtime::{
    CallError, Compiler, Credential, Plugin, PluginCall, Runtime, Settings, Vault, VaultError,
};
use serde_json::{Map, Value};

use crate::host::Services;
use crate::occasion;
use crate::project::Project;
use crate::tool::read_bounded;

/// Instances that live at a time. One call is made after the other.
const INSTANCES: u32 = 4;
/// Bytes of the key that authenticates compiled code.
const KEY_BYTES: usize = 32;
/// Networks that targets may be in here where the manifest says `private`: those of the author's machine and office.
const PRIVATE: [&str; 6] =
    ["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"];

/// What a call finds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    pub(crate) settings: Map<String, Value>,
    pub(crate) secrets: Vec<(String, String)>,
    /// Answers of operations.
    pub(crate) operations: BTreeMap<String, Value>,
    /// What is in the storage.
    pub(crate) stored: BTreeMap<String, String>,
}

/// How a call ended, and how long it took.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) outcome: Result<Value, CallError>,
    pub(crate) took: Duration,
}

/// A plugin that can be called.
pub(crate) struct Session {
    runtime: Arc<Runtime>,
    plugin: Plugin,
    pub(crate) services: Arc<Services>,
    org_id: OrgId,
}

/// Plugins get no credentials of controllers.
struct NoVault;

#[async_trait::async_trait]
impl Vault for NoVault {
    async fn credential(&self, _: OrgId, _: CredentialId) -> Result<Credential, VaultError> {
        Err(VaultError("there are no controllers here".to_owned()))
    }
    fn reference_key(&self, _: ControllerId) -> [u8; KEY_BYTES] {
        [0; KEY_BYTES]
    }
}

/// Runs asynchronous work to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    Ok(runtime.block_on(work))
}

impl Session {
    /// Judges, compiles and links a package as a server does.
    pub(crate) async fn open(
        project: &Project,
        package: &Verified,
        compiler: Compiler,
        services: Services,
    ) -> anyhow::Result<Self> {
        let (cache, clock) = (project.cache()?, Clock::default());
        let networks = || PRIVATE.iter().map(|text| text.parse().expect("it is a network")).collect();
        let settings = Settings {
            code_cache_dir: cache.join("code"),
            code_cache_key: code_key(&cache.join("code.key"))?,
            compiler,
            // Targets on this very machine need both.
            extra_networks: networks(),
            plugin_networks: networks(),
            denied_networks: Vec::new(),
            pooling_instances: INSTANCES,
            guest_workers: 2,
            tap: None,
        };
        let runtime = Runtime::start(settings, Arc::new(NoVault), clock.clone())?;
        let services = Arc::new(services);
        runtime.serves_plugins(Arc::clone(&services) as Arc<_>);
        runtime.witness(Arc::clone(&services) as Arc<_>);
        let plugin = runtime.prepare_plugin(package).await?;
        Ok(Self { runtime, plugin, services, org_id: clock.new_id() })
    }

    /// What the package says of itself.
    pub(crate) fn manifest(&self) -> &Manifest {
        self.plugin.manifest()
    }

    /// Runs an action or a tool, or calls a trigger or a hook. What does not fit its schema, or the settings theirs, is refused
    /// as a server does.
    pub(crate) async fn act(
        &self,
        action: &str,
        params: &Value,
        settings: &Map<String, Value>,
    ) -> anyhow::Result<Done> {
        let schema = self.plugin.params_schema(action).await.map_err(|error| anyhow!("{error}"))?;
        let settings = Value::Object(settings.clone());
        fit("settings", self.plugin.settings_schema(), &settings)?;
        if let Some(schema) = &schema {
            fit("params", schema, params)?;
        }
        let call = PluginCall {
            org_id: self.org_id,
            settings,
            request_id: "author".to_owned(),
            deadline: None,
            behalf: Arc::new(()),
        };
        let (begun, storage) = (Instant::now(), self.services.storage());
        let outcome = if schema.is_some() {
            self.plugin.run(&call, action, params).await
        } else if let Some(outcome) = occasion::make(&self.plugin, &call, action, params).await? {
            outcome
        } else {
            bail!("the plugin has no '{action}'; it has {}", occasion::known(&self.plugin));
        };
        if action == occasion::MIGRATE && outcome.is_err() {
            // It worked on a copy.
            self.services.put_back(storage);
        }
        Ok(Done { outcome, took: begun.elapsed() })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.runtime.shutdown();
    }
}

fn fit(name: &str, schema: &Schema, value: &Value) -> anyhow::Result<()> {
    let problems: Vec<String> = schema
        .validator()
        .iter_errors(value)
        .map(|error| format!("{name}{}: {error}", error.instance_path()))
        .collect();
    ensure!(problems.is_empty(), "the call is refused: {}", problems.join("; "));
    Ok(())
}

/// The key of the compiled code, made when it is first needed. Only its owner reads it.
fn code_key(path: &Path) -> anyhow::Result<[u8; KEY_BYTES]> {
    if !path.exists() {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        std::io::Write::write_all(&mut file, &*random_bytes::<KEY_BYTES>())?;
    }
    let bytes = read_bounded(path, u64::try_from(KEY_BYTES)?)?;
    let key = <[u8; KEY_BYTES]>::try_from(bytes).ok();
    key.with_context(|| format!("'{}' is damaged; remove it", path.display()))
}
