//! Installed packages, as the kernel sees them.

use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use heddle_core::Clock;
use heddle_runtime::{Adapter, Compiler, Runtime, Settings, Tap, Vault};

use crate::app::App;
use crate::config::Config;
use crate::http::error::Error;
use crate::keys::Keys;

/// A package that was not loaded.
#[derive(Debug, Clone)]
pub struct RefusedPackage {
    pub package: String,
    pub reason: String,
}

/// The packages that were not loaded when the packages were read.
#[derive(Debug, Default)]
pub struct RefusedPackages(pub Vec<RefusedPackage>);

/// What was refused when the packages were last read. The feature that reads them adds it as a part.
#[derive(Debug)]
pub struct LastRefused(ArcSwap<RefusedPackages>);

impl LastRefused {
    /// Begins with what was refused at the start.
    pub fn new(refused: RefusedPackages) -> Self {
        Self(ArcSwap::from_pointee(refused))
    }

    /// Replaces it after the packages were read again.
    pub fn replace(&self, refused: RefusedPackages) {
        self.0.store(Arc::new(refused));
    }

    /// Replaces what is said of one package: `None` when it is loaded, or not wanted any longer.
    pub fn renew(&self, package: &str, reason: Option<String>) {
        let others = self.0.load();
        let others = others.0.iter().filter(|refused| refused.package != package).cloned();
        let mut refused = RefusedPackages(others.collect());
        if let Some(reason) = reason {
            refused.add(package.to_owned(), reason);
        }
        self.replace(refused);
    }
}

impl RefusedPackages {
    /// Notes a package that is not loaded, and logs the refusal as an error. `package` is the name of its
    /// folder, or `all` where none can be read. With `STRICT_STARTUP` every such note of a start keeps the
    /// server from starting.
    pub fn add(&mut self, package: String, reason: String) {
        tracing::error!(component = %package, reason = %reason, "refused adapter {package}");
        self.0.push(RefusedPackage { package, reason });
    }
}

impl App {
    /// The adapter of a controller's vendor.
    pub fn adapter(&self, vendor: &str) -> Result<Adapter, Error> {
        self.runtime.adapter(vendor).ok_or_else(|| Error::BadRequest {
            kind: "unknown_vendor",
            message: format!(
                "vendor '{vendor}' has no installed adapter; installed are: {}",
                self.vendors().join(", ")
            ),
        })
    }

    pub(crate) fn refused_packages(&self) -> Arc<RefusedPackages> {
        self.find_part::<LastRefused>().map(|last| last.0.load_full()).unwrap_or_default()
    }

    /// Whether there should be adapters, but there is none.
    pub(crate) fn modules_have_failed(&self) -> bool {
        !self.refused_packages().0.is_empty() && self.runtime.adapters().is_empty()
    }

    /// Every refused package with its reason, in one sentence; `None` when all were loaded.
    pub(crate) fn refusals(&self) -> Option<String> {
        let refused = self.refused_packages();
        let refusals = refused.0.iter().map(|r| format!("{}: {}", r.package, r.reason));
        Some(refusals.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
    }

    /// Returns the ids of the adapters in service, in alphabetical order: the vendors whose controllers can
    /// be managed now. It is empty where no package was loaded.
    pub fn vendors(&self) -> Vec<String> {
        self.runtime.adapters().iter().map(|adapter| adapter.id().to_owned()).collect()
    }
}

/// Half of the cores, at least two: a burst of guest CPU cannot delay the API.
fn guest_workers() -> usize {
    std::thread::available_parallelism().map_or(2, |n| (n.get() / 2).max(2))
}

/// Starts what runs components. Nothing is loaded yet. `tap` sees all that enters their memory, for tests.
pub(crate) fn start_runtime(
    config: &Config,
    keys: &Keys,
    clock: &Clock,
    vault: Arc<dyn Vault>,
    (compiler, tap): (Compiler, Option<Tap>),
) -> anyhow::Result<Arc<Runtime>> {
    let settings = Settings {
        code_cache_dir: config.data_dir.join("code"),
        code_cache_key: *keys.code_cache_key(),
        compiler,
        extra_networks: config.egress_extra_networks.clone(),
        plugin_networks: config.plugin_private_networks.clone(),
        denied_networks: config.egress_denied_networks.clone(),
        pooling_instances: config.component_instances,
        guest_workers: guest_workers(),
        tap,
    };
    Runtime::start(settings, vault, clock.clone()).context("component runtime cannot be started")
}
