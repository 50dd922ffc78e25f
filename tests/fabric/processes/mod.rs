//! Several processes on one database: each event fires each Connection once, whatever breaks and whichever process
//! dies.

mod crowd;
mod kills;
mod model;
mod receiver;

use std::time::{Duration, Instant};

use heddle_core::Clock;
use heddle_core::event::NewEvent;
use heddle_store::{Db, PoolSettings};
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};

use crate::processes::Pair;
use crate::support::{Api, Database};

/// The database of a pair, for a test that writes events into it and reads their outcome.
struct Ground {
    db: Db,
    clock: Clock,
    url: String,
}

impl Ground {
    async fn of(pair: &Pair) -> Self {
        let Database::Postgres(url) = &pair.database else { panic!("a pair is on PostgreSQL") };
        let pool = PoolSettings { connections_max: 2, acquire_timeout: Duration::from_secs(10) };
        let db = Db::open(url, &pool).await.unwrap();
        Self { db, clock: Clock::default(), url: url.clone() }
    }

    /// Writes events, all of one organization, in their order.
    async fn tell(&self, events: &[NewEvent]) {
        let Some(first) = events.first() else { return };
        let mut tx = self.db.write().await.unwrap();
        heddle_store::events::append_all(&mut tx, first.org_id, events, &self.clock).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the database answers")
    }

    async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&mut self.connection().await).await.expect("a number")
    }

    /// Runs, fired or not, that are kept.
    async fn runs(&self) -> usize {
        let runs = self.count("SELECT COUNT(*) FROM connection_run").await;
        usize::try_from(runs).expect("it is not negative")
    }

    /// Runs that wait or are under way, each counted by the index that has them.
    async fn open_runs(&self) -> i64 {
        self.count(
            "SELECT (SELECT COUNT(*) FROM connection_run WHERE state = 'queued')
                + (SELECT COUNT(*) FROM connection_run WHERE state = 'running')",
        )
        .await
    }
}

async fn connect(api: &Api, fields: Value) -> Value {
    api.post("/fabric/connections", &super::filled(fields)).await.expect_status(201).body
}

/// Waits for the first reading of the pair's controller, and what follows from it.
async fn quiet(pair: &Pair) {
    let path = format!("/controllers/{}", pair.controller);
    until("the controller is read", Duration::from_mins(1), async || {
        !pair.a.api.get(&path).await.expect_status(200).body["last_sync_at"].is_null()
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// Waits until this holds; looks rarely, so that looking costs little.
async fn until(what: &str, limit: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < limit, "within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
