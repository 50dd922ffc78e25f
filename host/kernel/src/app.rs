//! What the whole server shares: the state. Opening it and what is done with it stand elsewhere, so that nothing here depends
//! on what uses it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use heddle_core::Clock;
use heddle_runtime::Runtime;
use heddle_store::Db;
use heddle_store::audit::AuditKey;

use crate::audit::kept::Kept;
use crate::cache::Cache;
use crate::caller::known::Callers;
use crate::config::Config;
use crate::declared::KnownNames;
use crate::events::hub::Hub;
use crate::hashing::Hashing;
use crate::health::cache::HealthCache;
use crate::http::rate_limit::limiter::Limiter;
use crate::installed::Shown;
use crate::keys::Keys;
use crate::logs::database::Logs;
use crate::mail::Mailer;
use crate::metrics::Metrics;
use crate::process::membership::Membership;
use crate::task::Tasks;

/// Shares the state of the server among handlers, workers and tasks. A clone is another pointer to the same
/// state.
pub type SharedApp = Arc<App>;

/// Holds the state of one server: what the kernel opens for every feature, and the parts that features own.
/// [`App::open`] makes it. Nothing in it belongs to a single request.
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
    pub health: HealthCache,
    pub(crate) names: KnownNames,
    /// For the code that opens the features; others ask [`App::part`].
    pub(crate) parts: Parts,
    pub(crate) shown: Shown,
    /// When this process opened the database.
    pub started: std::time::Instant,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}

impl App {
    /// State that a feature owns, by its type; `None` where no feature in the list has it.
    pub(crate) fn find_part<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.parts.find()
    }

    /// State that a feature owns, by its type.
    ///
    /// # Panics
    /// Where no feature in the list has it.
    pub fn part<T: Any + Send + Sync>(&self) -> &T {
        self.find_part().expect("the feature that owns it is in the list")
    }
}

/// What features own, and their list, found by its type: only code that can name the type reaches it.
#[derive(Default)]
pub struct Parts(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Parts {
    /// Adds what a feature owns. [`App::part`] finds it by its type, once all features have opened. A second
    /// part of the same type panics, so each part has a type of its own.
    pub fn add<T: Any + Send + Sync>(&mut self, part: T) {
        let before = self.0.insert(TypeId::of::<T>(), Box::new(part));
        assert!(before.is_none(), "two features own a part of the same type");
    }

    pub(crate) fn find<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}
