//! What the whole server shares.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use heddle_core::{Clock, Declared, OrgId};
use heddle_runtime::{Compiler, Runtime, Tap};
use heddle_store::audit::AuditKey;
use heddle_store::{Db, PoolSettings, Tx};
use uuid::Uuid;

use crate::audit::kept::Kept;
use crate::cache::Cache;
use crate::caller::Callers;
use crate::config::Config;
use crate::events::{Follower, Hub};
use crate::feature::{Features, Parts, Worker};
use crate::hashing::{Cost, Hashing};
use crate::health::{self, Looks};
use crate::http::error::Error;
use crate::http::rate_limit::Limiter;
use crate::keys::Keys;
use crate::logs::Logs;
use crate::mail::Mailer;
use crate::metrics::Metrics;
use crate::modules;
use crate::process::Membership;
use crate::task::Tasks;

pub type SharedApp = Arc<App>;

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

pub struct App {
    pub config: Config,
    pub clock: Clock,
    pub keys: Keys,
    /// Key of the hashes of the audit log.
    pub audit_key: AuditKey,
    /// Ends of the audit logs, kept outside the database.
    pub(crate) audit_kept: Kept,
    pub db: Db,
    pub cache: Cache,
    pub limiter: Limiter,
    pub runtime: Arc<Runtime>,
    pub tasks: Tasks,
    pub hub: Arc<Hub>,
    pub callers: Callers,
    /// Where passwords are hashed.
    pub hashing: Hashing,
    /// This process's place among those that serve the same database.
    pub membership: Membership,
    pub logs: Logs,
    pub mailer: Mailer,
    pub metrics: Arc<Metrics>,
    pub looks: Looks,
    /// Permissions and event types of the features.
    pub declared: Arc<Declared>,
    features: Features,
    parts: Parts,
    /// When this process opened the database.
    pub started: std::time::Instant,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}

impl App {
    /// Opens what the features share, and these features.
    pub(crate) async fn open(
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
        let audit_key = crate::audit::key::open(&db, &keys, &clock, features.sealed_columns()).await?;
        let audit_kept = Kept::open(&config, &audit_key);
        let logs = Logs::open(&config).await;
        let declared = Arc::new(features.declared());
        let metrics = Arc::new(Metrics::new(logs.dropped(), &declared.events));
        let mailer = Mailer::open(&config)?;
        let cache = Cache::open(&config).await?;
        let limiter = Limiter::new(&cache);
        let hashing = Hashing::new(surroundings.hash_cost);
        let mut vaults = features.iter().filter_map(|feature| feature.vault(&db, &keys));
        let vault = vaults.next().context("no feature opens credentials")?;
        anyhow::ensure!(vaults.next().is_none(), "two features open credentials");
        let runtime = modules::start_runtime(&config, &keys, &clock, vault, surroundings)?;
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
            looks: Looks::default(),
            declared,
            features,
            parts: Parts::default(),
            started: std::time::Instant::now(),
        };
        let mut parts = Parts::default();
        for feature in features.iter() {
            feature.open(&app, &mut parts).await;
        }
        app.parts = parts;
        let of_features = features.iter().flat_map(|feature| feature.subsystems()).map(|one| one.name);
        let mut names: Vec<&str> = health::OWN.into_iter().chain(of_features).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b), "two subsystems have the same name: {names:?}");
        Ok(Arc::new(app))
    }

    /// State that a feature owns, by its type; `None` where no feature in the list has it.
    pub(crate) fn find_part<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.parts.find()
    }

    /// State that a feature owns, by its type.
    ///
    /// # Panics
    /// Where no feature in the list has it.
    pub(crate) fn part<T: Any + Send + Sync>(&self) -> &T {
        self.find_part().expect("the feature that owns it is in the list")
    }

    pub(crate) fn features(&self) -> Features {
        self.features
    }

    /// Asks every feature whether an object can be removed.
    ///
    /// # Errors
    /// 409 that names what needs it.
    pub(crate) async fn require_unused(
        &self,
        tx: &mut Tx,
        noun: &str,
        org: OrgId,
        id: Uuid,
    ) -> Result<(), Error> {
        let guards = self.features.iter().flat_map(|feature| feature.guards());
        for (_, guard) in guards.filter(|(of, _)| *of == noun) {
            guard(tx, self, org, id).await?;
        }
        Ok(())
    }

    /// Asks every feature to take up unfinished work. Called when the process has registered.
    ///
    /// # Errors
    /// The first of the features' errors, after all were asked.
    pub(crate) async fn begin_term(self: &Arc<Self>) -> anyhow::Result<()> {
        let mut begun = Ok(());
        for feature in self.features.iter() {
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
            Worker::new("events.dispatch", crate::events::dispatch(self.clone(), follower)),
            Worker::new("events.access", crate::events::watch_access(self.clone())),
            Worker::new("events.announce", crate::events::announce(self.clone())),
            Worker::new("events.hear", crate::events::hear(self.clone())),
            Worker::new("retention", crate::retention::run(self.clone())),
            Worker::new("audit.kept", crate::audit::kept::keep(self.clone())),
        ];
        let of_features = self.features.iter().flat_map(|feature| feature.workers(self));
        let log = Worker::new(crate::logs::TASK, crate::logs::write(self.clone()));
        for worker in own.into_iter().chain(of_features).chain([log]) {
            self.tasks.spawn(worker.name, worker.run);
        }
    }
}
