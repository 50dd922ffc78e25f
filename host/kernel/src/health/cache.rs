//! What was last seen outside the process: whether the databases and the cache answer.

use std::future::Future;
use std::time::{Duration, Instant};

use heddle_store::{Db, Reach};

use crate::cache::Cache;
use crate::recent::{LOOK_LIMIT, Recent};

/// How long one look is good for.
const LOOK_KEPT: Duration = Duration::from_secs(1);

/// Whether something outside the process answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Check {
    pub(crate) status: Status,
    pub(crate) latency: Duration,
}

heddle_core::words! {
    pub enum Status {
        Ok = "ok",
        /// It answers, but all connections to it are in use.
        Busy = "busy",
        Unreachable = "unreachable",
    }
}

impl Check {
    /// Asks, for a limited time.
    async fn of<E>(ping: impl Future<Output = Result<Reach, E>>) -> Self {
        let started = Instant::now();
        let status = match tokio::time::timeout(LOOK_LIMIT, ping).await {
            Ok(Ok(Reach::Answers)) => Status::Ok,
            Ok(Ok(Reach::Busy)) => Status::Busy,
            Ok(Err(_)) | Err(_) => Status::Unreachable,
        };
        Self { status, latency: started.elapsed() }
    }

    async fn of_db(db: Option<&Db>) -> Self {
        match db {
            Some(db) => Self::of(db.ping()).await,
            None => Self { status: Status::Unreachable, latency: Duration::ZERO },
        }
    }

    /// Whether it is up. That all connections are in use is no outage, nor a reason to take traffic away.
    pub(crate) fn is_up(self) -> bool {
        self.status != Status::Unreachable
    }
}

/// What was seen outside the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) database: Check,
    pub(crate) cache: Check,
    pub(crate) logdb: Check,
}

async fn look(db: Db, logs: Option<Db>, cache: Cache) -> Seen {
    let ping = async { cache.ping().await.map(|()| Reach::Answers) };
    let (database, logdb, cache) =
        tokio::join!(Check::of_db(Some(&db)), Check::of_db(logs.as_ref()), Check::of(ping));
    Seen { database, cache, logdb }
}

/// What was seen last, shared by all callers who ask at about the same time.
#[derive(Debug, Default)]
pub struct HealthCache {
    seen: Recent<Seen>,
}

impl HealthCache {
    /// Looks at the databases and the cache, at most once a second.
    pub(super) async fn seen(&self, db: &Db, logs: Option<&Db>, cache: &Cache) -> Seen {
        self.seen.get(LOOK_KEPT, || look(db.clone(), logs.cloned(), cache.clone())).await
    }
}
