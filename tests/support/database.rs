//! A database of its own for each test.

use std::path::Path;
use std::time::Duration;

use heddle_core::Clock;
use heddle_store::{Db, PoolSettings};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::sync::OnceCell;
use url::Url;

/// The template of an empty database.
const EMPTY: &str = "template1";

#[derive(Debug)]
pub(crate) enum Database {
    Sqlite,
    /// URL of a fresh database; dropped by the end of the server's cluster.
    Postgres(String),
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Database::Sqlite
    }

    /// A new database on the test runner's `PostgreSQL`, with the schema; `None` when it runs without one.
    ///
    /// It is copied: hundreds of tests would wait for the same statements. [`Database::emptied`] is for the others.
    pub(crate) async fn postgres() -> Option<Self> {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        let url = runner()?;
        let template = TEMPLATE.get_or_init(|| with_schema(&url)).await;
        Some(Database::Postgres(create(&url, template).await.into()))
    }

    /// Another one of the same kind.
    pub(crate) async fn another(&self) -> Self {
        match self {
            Database::Sqlite => Database::Sqlite,
            Database::Postgres(_) => Self::postgres().await.expect("the first one is there"),
        }
    }

    /// One of the same kind without the schema.
    pub(crate) async fn emptied(self) -> Self {
        match (self, runner()) {
            (Database::Postgres(_), Some(url)) => Database::Postgres(create(&url, EMPTY).await.into()),
            (database, _) => database,
        }
    }
}

/// Writes an empty file with the schema where a server expects its database, unless one is there: as with
/// [`Database::postgres`], tests need not wait for the same statements.
pub(super) async fn place_file(data: &Path) {
    const FILE: &str = "heddle.db";
    static MIGRATED: OnceCell<Vec<u8>> = OnceCell::const_new();
    if data.join(FILE).exists() {
        return;
    }
    let migrated = MIGRATED.get_or_init(|| async {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let file = folder.path().join(FILE);
        let pool = PoolSettings { connections_max: 1, acquire_timeout: Duration::from_secs(30) };
        let db = Db::open(&format!("sqlite://{}?mode=rwc", file.display()), &pool).await;
        db.expect("the schema can be written").close().await;
        std::fs::read(file).expect("a closed database is one file")
    });
    std::fs::write(data.join(FILE), migrated.await).expect("a file can be written");
}

fn runner() -> Option<Url> {
    Some(super::variable("TEST_POSTGRES_URL")?.parse().expect("TEST_POSTGRES_URL is a URL"))
}

/// Makes an empty database, has the schema written, and gives its name.
async fn with_schema(url: &Url) -> String {
    let template = create(url, EMPTY).await;
    let pool = PoolSettings { connections_max: 1, acquire_timeout: Duration::from_secs(30) };
    let db = Db::open(template.as_str(), &pool).await.expect("the schema can be written");
    db.close().await;
    template.path().trim_start_matches('/').to_owned()
}

async fn create(url: &Url, template: &str) -> Url {
    let name = format!("it_{}", Clock::default().new_id::<uuid::Uuid>().simple());
    let mut connection = PgConnection::connect(url.as_str()).await.expect("TEST_POSTGRES_URL answers");
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {template}"));
    connection.execute(create).await.expect("a database can be created");
    let mut url = url.clone();
    url.set_path(&name);
    url
}
