//! Opens what every server has, then its features, and starts the loops that run next to the requests.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use heddle_core::Clock;
use heddle_runtime::{Compiler, Tap};
use heddle_store::{Db, PoolSettings};

use crate::app::{App, Parts, SharedApp};
use crate::audit::kept::Kept;
use crate::audit::{keeping, key};
use crate::cache::Cache;
use crate::caller::known::Callers;
use crate::config::Config;
use crate::declared::KnownNames;
use crate::events::hub::Hub;
use crate::events::{self, Follower};
use crate::feature::{Feature, Features, Worker};
use crate::hashing::{Cost, Hashing};
use crate::health::cache::HealthCache;
use crate::http::rate_limit::limiter::Limiter;
use crate::installed::Shown;
use crate::keys::Keys;
use crate::logs::database::Logs;
use crate::mail::Mailer;
use crate::metrics::Metrics;
use crate::process::membership::Membership;
use crate::task::Tasks;
use crate::{health, logs, modules, retention};

/// What the process gives the server in addition to its settings.
pub struct Surroundings {
    /// How a component is compiled in a process of its own.
    pub compiler: Compiler,
    /// Sees all that enters a component's memory; for tests.
    pub tap: Option<Tap>,
    /// What hashing a password costs. Tests log in thousands of times and ask for less.
    pub hash_cost: Cost,
}

impl From<Compiler> for Surroundings {
    fn from(compiler: Compiler) -> Self {
        Self { compiler, tap: None, hash_cost: Cost::default() }
    }
}

impl App {
    /// Opens what the features share, and these features.
    pub async fn open(
        config: Config,
        surroundings: Surroundings,
        features: Features,
    ) -> anyhow::Result<SharedApp> {
        // Password hashes and log lines lie in it.
        crate::files::prepare(&config)?;
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
        let hub = Arc::<Hub>::default();
        db.on_events({
            let hub = hub.clone();
            move || hub.wake()
        });
        let audit_key = key::open(&db, &keys, &clock, features.sealed_columns()).await?;
        let audit_kept = Kept::open(&config, &audit_key);
        let logs = Logs::open(&config).await;
        let declared = features.declared();
        let metrics = Arc::new(Metrics::new(logs.dropped(), &declared.events));
        let mailer = Mailer::open(&config)?;
        let cache = Cache::open(&config).await?;
        let limiter = Limiter::new(&cache);
        let hashing = Hashing::new(surroundings.hash_cost);
        let mut vaults = features.iter().filter_map(|feature| feature.vault(&db, &keys));
        let vault = vaults.next().context("no feature opens credentials")?;
        anyhow::ensure!(vaults.next().is_none(), "two features open credentials");
        let runtime =
            modules::start_runtime(&config, &keys, &clock, vault, (surroundings.compiler, surroundings.tap))?;
        let observer = metrics.clone();
        runtime.observe(Arc::new(move |call| observer.adapter_call(call)));
        let mut app = Self {
            config,
            clock,
            keys,
            audit_key,
            audit_kept,
            db,
            cache,
            limiter,
            runtime,
            tasks: Tasks::default(),
            hub,
            callers: Callers::default(),
            hashing,
            membership: Membership::default(),
            logs,
            mailer,
            metrics,
            health: HealthCache::default(),
            names: KnownNames::new(declared),
            parts: Parts::default(),
            shown: Shown::default(),
            started: std::time::Instant::now(),
        };
        let mut parts = Parts::default();
        parts.add(features);
        for feature in features.iter() {
            feature.open(&app, &mut parts).await;
        }
        app.parts = parts;
        app.shown = Shown::new(&app.runtime);
        let of_features = features.iter().flat_map(Feature::subsystems).map(|one| one.name);
        let mut names: Vec<&str> = health::OWN.into_iter().chain(of_features).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b), "two subsystems have the same name: {names:?}");
        Ok(Arc::new(app))
    }

    /// Asks every feature to take up unfinished work. Called when the process has registered.
    ///
    /// # Errors
    /// The first of the features' errors, after all were asked.
    pub(crate) async fn begin_term(self: &Arc<Self>) -> anyhow::Result<()> {
        let mut begun = Ok(());
        for feature in self.features().iter() {
            let done = feature.term_begun(self).await;
            let done = done.with_context(|| format!("work of '{}' cannot be taken up", feature.name()));
            begun = begun.and(done);
        }
        begun
    }

    /// Starts the background loops.
    pub(crate) fn start_workers(self: &Arc<Self>, follower: Follower) {
        let (cache, stop) = (self.cache.clone(), self.tasks.stopping());
        let own = [
            Worker::new("cache", async move { cache.keep_connected(stop).await }),
            Worker::new("events.dispatch", events::dispatch(self.clone(), follower)),
            Worker::new("events.access", events::watch_access(self.clone())),
            Worker::new("events.announce", events::announce(self.clone())),
            Worker::new("events.hear", events::hear(self.clone())),
            Worker::new("retention", retention::run(self.clone())),
            Worker::new("audit.kept", keeping::keep(self.clone())),
        ];
        let of_features = self.features().iter().flat_map(|feature| feature.workers(self));
        let log = Worker::new(logs::TASK, logs::write(self.clone()));
        for worker in own.into_iter().chain(of_features).chain([log]) {
            self.tasks.spawn(worker.name, worker.run);
        }
    }
}
