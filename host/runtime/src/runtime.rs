//! The runtime as the server holds it: started once, adapters loaded and looked up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use heddle_core::fault::Fault;
use heddle_core::{Clock, ControllerId, OrgId};
use heddle_marketplace::Verified;
use ipnet::IpNet;
use tokio::sync::watch;
use wasmtime::component::Linker;

use crate::adapter::Adapter;
use crate::admission::{Admission, PLUGIN_CALLS, RESERVED_CALLS};
use crate::apart::Apart;
use crate::api::{CallError, Vault};
use crate::cache::CodeCache;
use crate::call::{Shared, TRIALS};
use crate::compile::Compiler;
use crate::egress::Egress;
use crate::egress::address::Rules;
use crate::egress::own::{self, Dialled, OwnAnswer, OwnRequest};
use crate::egress::push::ChannelsOpen;
use crate::egress::witness::Witness;
use crate::engine::{self, StartError};
use crate::load::LoadError;
use crate::observe::Observer;
use crate::plugin::Plugin;
use crate::services::PluginServices;
use crate::state::State;

/// How much less of a busy processor the threads of passes get than others: each step is a fifth, and 19 the most.
pub(crate) const PASS_NICE: i32 = 5;

/// Sees all bytes that go into guests, with a word for where they come from. For tests.
pub type Tap = Arc<dyn Fn(&str, &[u8]) + Send + Sync>;

/// How the runtime is set up.
pub struct Settings {
    /// Folder of compiled code; made when it is missing, readable by its owner only.
    pub code_cache_dir: PathBuf,
    /// Key of the codes that authenticate it.
    pub code_cache_key: [u8; 32],
    pub compiler: Compiler,
    /// Networks that controllers may be in although the guard refuses them:
    /// loopback and link-local. Metadata services stay refused.
    pub extra_networks: Vec<IpNet>,
    /// Private networks that targets of plugins may be in, where their manifests ask for private networks.
    pub plugin_networks: Vec<IpNet>,
    /// Networks that nothing is sent to, whatever else is allowed.
    pub denied_networks: Vec<IpNet>,
    /// Instances of adapters that can live at a time. There are some more for changes in flight and for plugins.
    pub pooling_instances: u32,
    /// Threads that run guests.
    pub guest_workers: usize,
    pub tap: Option<Tap>,
}

/// Loads adapters and plugins, and keeps them.
pub struct Runtime {
    pub(crate) shared: Arc<Shared>,
    pub(crate) linker: Linker<State>,
    pub(crate) cache: CodeCache,
    pub(crate) compiler: Compiler,
    adapters: ArcSwap<BTreeMap<String, Adapter>>,
    plugins: ArcSwap<BTreeMap<String, Plugin>>,
    /// How often what is installed has changed.
    changes: watch::Sender<u64>,
    /// Guests have threads of their own, so that they cannot delay the server's, and so have passes over long answers.
    threads: Mutex<Option<[tokio::runtime::Runtime; 2]>>,
}

impl Runtime {
    /// Starts the engine and the threads of guests, and opens the folder of compiled code. No adapter is
    /// loaded yet. Dropping the runtime cuts the calls that run; [`Runtime::shutdown`] does so earlier.
    pub fn start(settings: Settings, vault: Arc<dyn Vault>, clock: Clock) -> Result<Arc<Self>, StartError> {
        let reserved = u32::try_from(RESERVED_CALLS + PLUGIN_CALLS + TRIALS).unwrap_or_default();
        let engine = engine::running(settings.pooling_instances.saturating_add(reserved))?;
        engine::start_ticking(&engine)?;
        let guests = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(settings.guest_workers.max(1))
            .thread_name("guest")
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        // Only for its blocking threads: a task that waits for a database or a device would hold it up for others.
        let passes = tokio::runtime::Builder::new_current_thread()
            .thread_name("pass")
            .on_thread_start(give_way)
            .build()
            .map_err(StartError::Threads)?;
        let cache = CodeCache::open(&settings.code_cache_dir, settings.code_cache_key, &engine)
            .map_err(StartError::Cache)?;
        let linker = crate::linker::linker(&engine).map_err(|error| StartError::Engine(error.to_string()))?;
        let instances = usize::try_from(settings.pooling_instances).unwrap_or(usize::MAX);
        let rules = Rules::new(settings.extra_networks, settings.denied_networks)
            .with_plugin_networks(settings.plugin_networks);
        let apart = Apart::new(passes.handle().clone(), settings.guest_workers / 2);
        let apart = Arc::new(apart);
        let shared = Arc::new(Shared {
            engine,
            guests: guests.handle().clone(),
            apart: Arc::clone(&apart),
            egress: Arc::new(Egress::new(vault, apart, clock.clone(), rules)),
            admission: Admission::new(instances),
            trials: tokio::sync::Semaphore::new(TRIALS),
            clock,
            tap: settings.tap,
            observer: std::sync::OnceLock::new(),
            services: std::sync::OnceLock::new(),
        });
        Ok(Arc::new(Self {
            shared,
            linker,
            cache,
            compiler: settings.compiler,
            adapters: ArcSwap::default(),
            plugins: ArcSwap::default(),
            changes: watch::Sender::default(),
            threads: Mutex::new(Some([guests, passes])),
        }))
    }

    /// Checks, compiles and links a package, and puts it in the place of an older version. Running calls end on the
    /// old one.
    pub async fn load(&self, package: &Verified) -> Result<Adapter, LoadError> {
        let adapter = self.prepared(package).await?;
        self.serve(&adapter);
        Ok(adapter)
    }

    /// The first half of `load`: the adapter can be called and is not in service yet.
    pub async fn prepared(&self, package: &Verified) -> Result<Adapter, LoadError> {
        self.prepare(package).await
    }

    /// The second half of `load`: the adapter is from now on the one of its vendor.
    pub fn serve(&self, adapter: &Adapter) {
        self.adapters.rcu(|adapters| {
            let mut adapters = BTreeMap::clone(adapters);
            adapters.insert(adapter.id().to_owned(), adapter.clone());
            adapters
        });
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Takes an adapter out of service: its vendor has none from now on. Running calls end on it. False when there
    /// was none.
    pub fn withdraw(&self, vendor: &str) -> bool {
        self.withdraw_where(vendor, |_| true)
    }

    /// Takes exactly this package out of service: another one that has taken its place meanwhile goes on. Running calls end on
    /// it. False when it did not serve.
    pub fn withdraw_package(&self, adapter: &Adapter) -> bool {
        self.withdraw_where(adapter.id(), |serving| serving.manifest_sha256() == adapter.manifest_sha256())
    }

    fn withdraw_where(&self, vendor: &str, is_it: impl Fn(&Adapter) -> bool) -> bool {
        let before = self.adapters.rcu(|adapters| {
            let mut adapters = BTreeMap::clone(adapters);
            if adapters.get(vendor).is_some_and(&is_it) {
                adapters.remove(vendor);
            }
            adapters
        });
        let was_there = before.get(vendor).is_some_and(&is_it);
        if was_there {
            self.changes.send_modify(|changes| *changes += 1);
        }
        was_there
    }

    /// Checks, compiles and links the package of a plugin. It can be called and is not in service yet.
    pub async fn prepare_plugin(&self, package: &Verified) -> Result<Plugin, LoadError> {
        self.prepare_as_plugin(package).await
    }

    /// Puts a plugin in service, in the place of an older version. Running calls end on the old one.
    pub fn serve_plugin(&self, plugin: &Plugin) {
        self.plugins.rcu(|plugins| {
            let mut plugins = BTreeMap::clone(plugins);
            plugins.insert(plugin.id().to_owned(), plugin.clone());
            plugins
        });
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Takes a plugin out of service. Running calls end on it. False when there was none.
    pub fn withdraw_plugin(&self, id: &str) -> bool {
        let before = self.plugins.rcu(|plugins| {
            let mut plugins = BTreeMap::clone(plugins);
            plugins.remove(id);
            plugins
        });
        let was_there = before.contains_key(id);
        if was_there {
            self.changes.send_modify(|changes| *changes += 1);
        }
        was_there
    }

    /// The plugin of this id, where it is in service.
    pub fn plugin(&self, id: &str) -> Option<Plugin> {
        self.plugins.load().get(id).cloned()
    }

    /// All plugins in service, by id.
    pub fn plugins(&self) -> Vec<Plugin> {
        self.plugins.load().values().cloned().collect()
    }

    /// From now on asks the server for what plugins need; the first one stays.
    pub fn serves_plugins(&self, services: Arc<dyn PluginServices>) {
        let _ = self.shared.services.set(services);
    }

    /// Follows how often what is installed has changed. A change is counted once it is in service.
    pub fn installed(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The adapter of a vendor.
    pub fn adapter(&self, vendor: &str) -> Option<Adapter> {
        self.adapters.load().get(vendor).cloned()
    }

    /// All adapters, by id.
    pub fn adapters(&self) -> Vec<Adapter> {
        self.adapters.load().values().cloned().collect()
    }

    /// From now on tells how every call to a controller ended; the first observer stays.
    pub fn observe(&self, observer: Observer) {
        let _ = self.shared.observer.set(observer);
    }

    /// From now on shows every exchange with a controller; the first witness stays. It is for the tool that records
    /// cassettes: no server calls it.
    pub fn witness(&self, witness: Arc<dyn Witness>) {
        let _ = self.shared.egress.witness.set(witness);
    }

    /// The next call to this controller connects anew: a connection that is
    /// open may outlive the path that a new one would need.
    pub fn reconnect(&self, controller: ControllerId) {
        self.shared.egress.reconnect(controller);
    }

    /// The next write to this controller logs in anew: another process wrote to it meanwhile, and what the
    /// device holds provisionally belongs to the session of that process, which only a new login may get.
    pub fn forget_write_session(&self, controller: ControllerId) {
        self.shared.egress.forget_write_session(controller);
    }

    /// How many connections of channels ([`Adapter::listen`]) this process has open or is opening: what is left of
    /// [`CHANNELS_MAX`](crate::CHANNELS_MAX) and of each organization's
    /// [`CHANNELS_PER_ORGANIZATION_MAX`](crate::CHANNELS_PER_ORGANIZATION_MAX) is free now.
    pub fn channels_open(&self) -> ChannelsOpen {
        self.shared.egress.channels_open()
    }

    /// Asks a server that an organization named, for the host itself and not for a guest.
    pub async fn fetch(&self, request: OwnRequest) -> Result<OwnAnswer, Fault> {
        own::fetch(&self.shared.egress, request).await
    }

    /// Opens a connection to a server that an organization named, for the host itself and not for a guest.
    pub async fn dial(&self, host: &str, port: u16, timeout: Duration) -> Result<Dialled, Fault> {
        own::dial(&self.shared.egress, host, port, timeout).await
    }

    /// Does work that grows with an answer of this organization's devices, which has about so many bytes. What is more
    /// than [`LIGHT_BYTES`](crate::LIGHT_BYTES) is done away from the caller's thread.
    ///
    /// # Errors
    /// The work panicked, or the runtime was shut down.
    pub async fn apart<T: Send + 'static>(
        &self,
        org: OrgId,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        self.shared.apart.run(org, bytes, work).await
    }

    /// Takes no further calls and cuts those that run.
    pub fn shutdown(&self) {
        self.adapters.store(Arc::default());
        self.plugins.store(Arc::default());
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        threads.into_iter().flatten().for_each(tokio::runtime::Runtime::shutdown_background);
    }
}

/// Has this thread get the smaller share of a busy processor.
fn give_way() {
    if let Err(error) = rustix::process::nice(PASS_NICE) {
        tracing::debug!(reason = %error, "passes over long answers get the share of all other work");
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.shutdown();
    }
}
