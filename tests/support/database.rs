//! A database of its own for each test.

use sqlx::{Connection as _, Executor as _};

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

    /// A new database on the test runner's `PostgreSQL`; `None` when it runs without one.
    pub(crate) async fn postgres() -> Option<Self> {
        let url = super::variable("TEST_POSTGRES_URL")?;
        let name = format!("it_{}", heddle_core::Clock::default().new_id::<uuid::Uuid>().simple());
        let mut connection = sqlx::PgConnection::connect(&url).await.expect("TEST_POSTGRES_URL answers");
        let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        connection.execute(create).await.expect("a database can be created");
        let mut url: url::Url = url.parse().expect("TEST_POSTGRES_URL is a URL");
        url.set_path(&name);
        Some(Database::Postgres(url.to_string()))
    }
}
