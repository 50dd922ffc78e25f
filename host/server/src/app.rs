//! What the whole server shares.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use heddle_core::Clock;
use heddle_runtime::{Compiler, Runtime, Tap};
use heddle_store::{Db, PoolSettings};

use crate::adapters::{self, RefusedAdapter};
use crate::cache::Cache;
use crate::config::Config;
use crate::events::Hub;
use crate::http::rate_limit::Limiter;
use crate::keys::Keys;
use crate::staging::Drivers;
use crate::task::Tasks;

pub type SharedApp = Arc<App>;

/// What the process gives the server beside its settings.
pub struct Surroundings {
    /// How a component is compiled in a process of its own.
    pub compiler: Compiler,
    /// Sees all that enters a component's memory; for tests.
    pub tap: Option<Tap>,
}

impl From<Compiler> for Surroundings {
    fn from(compiler: Compiler) -> Self {
        Self { compiler, tap: None }
    }
}

pub struct App {
    pub config: Config,
    pub clock: Clock,
    pub keys: Keys,
    pub db: Db,
    pub cache: Cache,
    pub limiter: Limiter,
    pub runtime: Arc<Runtime>,
    pub tasks: Tasks,
    pub hub: Hub,
    pub drivers: Drivers,
    /// Wakes the sync worker when something became due.
    pub sync_wake: Arc<tokio::sync::Notify>,
    /// Packages that were not loaded, and why.
    pub refused_adapters: Vec<RefusedAdapter>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}

impl App {
    pub async fn open(config: Config, surroundings: Surroundings) -> anyhow::Result<SharedApp> {
        std::fs::create_dir_all(&config.data_dir)
            .with_context(|| format!("DATA_DIR '{}' cannot be created", config.data_dir.display()))?;
        let keys = Keys::open(&config)?;
        let clock = Clock::default();
        for name in &config.without_effect {
            tracing::warn!(setting = %name, "setting {name} is accepted and has no effect");
        }
        let pool = PoolSettings {
            connections_max: config.db_pool_size.saturating_add(config.db_max_overflow),
            acquire_timeout: Duration::from_secs(30),
        };
        let db = Db::open(&config.database(), &pool).await.context("database cannot be opened")?;
        let cache = Cache::open(&config).await?;
        let limiter = Limiter::new(&cache);
        let runtime = adapters::start_runtime(&config, &keys, &db, &clock, surroundings)?;
        let refused_adapters = adapters::load_packages(&config, &runtime).await;
        Ok(Arc::new(Self {
            config,
            clock,
            keys,
            db,
            cache,
            limiter,
            runtime,
            tasks: Tasks::default(),
            hub: Hub::default(),
            drivers: Drivers::default(),
            sync_wake: Arc::default(),
            refused_adapters,
        }))
    }

    /// The loops that run beside the requests.
    pub(crate) fn start_workers(self: &Arc<Self>) {
        let (cache, stop) = (self.cache.clone(), self.tasks.stopping());
        self.tasks.spawn("cache", async move { cache.keep_connected(stop).await });
        let app = self.clone();
        self.tasks.spawn("events.dispatch", async move { crate::events::dispatch(app).await });
        let app = self.clone();
        self.tasks.spawn("staging.expire", async move { crate::staging::expire_loop(app).await });
        let app = self.clone();
        self.tasks.spawn("sync", async move { crate::sync::run(app).await });
    }
}
