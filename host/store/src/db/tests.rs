use super::*;
use crate::testing::{POOL, World, on_both, sqlite, tamper};

on_both! {
    async fn what_is_not_committed_is_gone(db) {
        db.ping().await.unwrap();
        let mut tx = db.write().await.unwrap();
        crate::setup::complete(&mut tx, heddle_core::Clock::default().now()).await.unwrap();
        tx.rollback().await.unwrap();
        let mut tx = db.read().await.unwrap();
        assert!(!crate::setup::is_completed(&mut tx).await.unwrap());
    }

    async fn a_read_cannot_write(db) {
        let mut tx = db.read().await.unwrap();
        let error = crate::setup::complete(&mut tx, heddle_core::Clock::default().now()).await.unwrap_err();
        assert!(matches!(error, Error::ReadOnly), "{error:?}");
    }

    async fn a_newer_database_is_refused(db) {
        tamper(&db, "UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT MAX(version) FROM _sqlx_migrations)").await;
        let error = match &db.pools {
            Pools::Sqlite { writer, .. } => MIGRATIONS.run(writer).await.map_err(|error| migration_error(error, &MIGRATIONS)),
            Pools::Postgres(pool) => MIGRATIONS.run(pool).await.map_err(|error| migration_error(error, &MIGRATIONS)),
        }.unwrap_err();
        assert!(matches!(error, Error::TooNew { found: 9999, known: 1.. }), "{error:?}");
    }

    async fn a_pool_in_use_is_busy_and_not_away(db) {
        assert_eq!(db.ping().await.unwrap(), Reach::Answers);
        let max = POOL.connections_max;
        let mut held = Vec::new();
        for _ in 0..max {
            held.push(db.read().await.unwrap());
        }
        assert_eq!(db.ping().await.unwrap(), Reach::Busy);
        let used = db.pool_use();
        assert!(used.open >= max && used.idle <= 1 && used.max >= max, "{used:?}");
        held.clear();
        assert_eq!(db.ping().await.unwrap(), Reach::Answers);
    }

    async fn no_pool_is_swept_by_a_task_of_its_own(db) {
        let swept = match &db.pools {
            Pools::Sqlite { reader, writer } => [reader, writer]
                .map(|pool| (pool.options().get_idle_timeout(), pool.options().get_max_lifetime()))
                .to_vec(),
            Pools::Postgres(pool) => vec![(pool.options().get_idle_timeout(), pool.options().get_max_lifetime())],
        };
        assert!(swept.iter().all(|limits| *limits == (None, None)), "{swept:?}");
    }

    async fn a_database_says_what_it_is(db) {
        assert!(["sqlite", "postgres"].contains(&db.kind()));
        assert!(db.version().await.unwrap().starts_with(|first: char| first.is_ascii_digit()));
    }

    async fn a_second_opening_changes_nothing(db) {
        World::new(&db, "one").await;
        match &db.pools {
            Pools::Sqlite { writer, .. } => MIGRATIONS.run(writer).await.unwrap(),
            Pools::Postgres(pool) => MIGRATIONS.run(pool).await.unwrap(),
        }
        let mut tx = db.read().await.unwrap();
        assert_eq!(crate::users::count(&mut tx, &crate::select::Scope::everything()).await.unwrap(), 1);
    }
}

#[test]
fn a_connection_is_asked_only_after_a_rest_and_closed_when_it_is_old() {
    let (young, rest) = (Duration::from_mins(1), Duration::from_secs(1));
    for (age, idle_for, expected) in [
        (young, Duration::ZERO, BeforeUse::Nothing),
        (young, rest.checked_sub(Duration::from_millis(1)).unwrap(), BeforeUse::Nothing),
        (young, rest, BeforeUse::Ask),
        (young, SERVER_CONNECTION_IDLE_MAX, BeforeUse::Close),
        (SERVER_CONNECTION_AGE_MAX, Duration::ZERO, BeforeUse::Close),
    ] {
        assert_eq!(before_use(age, idle_for), expected, "{age:?} {idle_for:?}");
    }
}

#[tokio::test]
async fn an_address_of_no_database_is_refused() {
    for url in ["mysql://x", "sqlite::memory:", "sqlite://:memory:", "x"] {
        assert!(matches!(Db::open(url, &POOL).await, Err(Error::Url(_))), "{url}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let settings = PoolSettings { connections_max: 1, acquire_timeout: Duration::from_millis(300) };
    let error = Db::open("postgres://x:y@127.0.0.1:1/z", &settings).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    let error = Db::open("sqlite:///nowhere/at/all.db?mode=rwc", &settings).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn a_damaged_file_is_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("test.db"),
        "not a database, but long enough to be taken for one".repeat(100),
    )
    .unwrap();
    let url = format!("sqlite://{}", folder.path().join("test.db").display());
    let error = Db::open(&url, &POOL).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt), "{error:?}");
}

#[tokio::test]
async fn a_full_database_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let db = sqlite(folder.path()).await;
    tamper(&db, "PRAGMA max_page_count = 1").await;
    let mut tx = db.write().await.unwrap();
    let grow = "INSERT INTO setup (id, completed_at) VALUES (1, zeroblob(100000))";
    let error = on!(&mut tx, conn => sqlx::query(grow).execute(conn).await.map(|_| ())).unwrap_err();
    assert!(matches!(Error::from(error), Error::Full));
}

#[tokio::test]
async fn a_second_writer_is_told_that_the_database_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let settings = PoolSettings { connections_max: 1, acquire_timeout: Duration::from_millis(200) };
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("test.db").display());
    let db = Db::open(&url, &settings).await.unwrap();
    let _held = db.write().await.unwrap();
    assert!(matches!(db.write().await, Err(Error::Busy)));
    db.ping().await.expect("readers do not wait for the writer");
}

on_both! {
    async fn a_database_is_opened_as_it_is(db) {
        let current = db.schema().await.unwrap();
        assert!(current.is_current(), "{current:?}");
        assert_eq!(current.version, Some(Db::known_version()));
        assert!(db.integrity_faults().await.unwrap().is_empty());
        if let Some((version, now)) = db.server().await.unwrap() {
            assert!(version >= 13);
            assert!((heddle_core::Clock::default().now() - now).num_minutes() == 0);
        }
        tamper(&db, "UPDATE _sqlx_migrations SET checksum = SUBSTR(checksum, 2)").await;
        assert!(db.schema().await.unwrap().altered.contains(&1));
        tamper(&db, "DELETE FROM _sqlx_migrations WHERE version = 1").await;
        let behind = db.schema().await.unwrap();
        assert!(behind.pending >= 1 && !behind.is_current(), "{behind:?}");
        tamper(&db, "DROP TABLE _sqlx_migrations").await;
        assert_eq!(db.schema().await.unwrap().version, None);
    }
}

#[tokio::test]
async fn opening_as_it_is_creates_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("test.db").display());
    assert!(Db::open_as_is(&url, &POOL).await.unwrap().is_none());
    assert!(!folder.path().join("test.db").exists());
    let db = sqlite(folder.path()).await;
    let seen = Db::open_as_is(&url, &POOL).await.unwrap().unwrap();
    assert_eq!(seen.schema().await.unwrap(), db.schema().await.unwrap());
    let mut tx = seen.read().await.unwrap();
    let error = crate::setup::complete(&mut tx, heddle_core::Clock::default().now()).await.unwrap_err();
    assert!(matches!(error, Error::ReadOnly), "{error:?}");
}

#[tokio::test]
async fn several_may_migrate_one_file_at_once() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", folder.path().join("test.db").display());
        let open = || Db::open(&url, &POOL);
        let (a, b, c, d) = tokio::join!(open(), open(), open(), open());
        for db in [a, b, c, d] {
            assert!(db.unwrap().schema().await.unwrap().is_current());
        }
    }
}
