//! What the doctor finds, and that it changes nothing.

use std::path::Path;

use sqlx::{Connection as _, Executor as _};

use super::{Ran, Site, options, run};
use crate::support::smtp::{Mode, Smtp};
use crate::support::{Database, ENCRYPTION_KEY, NEXT_ENCRYPTION_KEY, Options, on_both};

impl Ran {
    /// One line has this level and all of these words.
    #[track_caller]
    fn expect_line(&self, level: &str, words: &[&str]) -> &Self {
        let is_it = |line: &str| line.starts_with(level) && words.iter().all(|word| line.contains(word));
        assert!(self.out.lines().any(is_it), "a line with {level} {words:?}: {}", self.out);
        self
    }
}

fn doctor(folder: &Path, database: &Database, options: &Options) -> Ran {
    run(folder, database, options, &["doctor"])
}

async fn tamper(site: &Site, sql: &'static str) {
    match &site.database {
        Database::Sqlite => {
            let url = format!("sqlite://{}", site.path().join("data/heddle.db").display());
            sqlx::SqliteConnection::connect(&url).await.unwrap().execute(sql).await.unwrap();
        }
        Database::Postgres(url) => {
            sqlx::PgConnection::connect(url).await.unwrap().execute(sql).await.unwrap();
        }
    }
}

on_both! {
    async fn a_sound_service_has_nothing_that_fails(database: Database) {
        let site = Site::start(database, options()).await;
        let said = site.run(&["doctor"]).expect_ok();
        said.expect_line("ok", &["database: sound"])
            .expect_line("ok", &["secrets: 2 rows"])
            .expect_line("ok", &["adapters: openwrt", "verified"])
            .expect_line("ok", &["ADAPTER_READ_ONLY is false"])
            .expect_line("ok", &["every outcome is known"]);
        assert!(!said.out.contains("FAIL"), "{}", said.out);
    }
}

on_both! {
    async fn each_fault_is_named_with_what_mends_it(database: Database) {
        let mut site = Site::start(database, options()).await;
        site.stage_secret("x").await;
        site.process.kill();
        tamper(&site, "UPDATE change SET outcome_state = 'unknown'").await;
        tamper(&site, "UPDATE controller SET status = 'offline', created_at = '2020-01-01T00:00:00+00:00', last_sync_at = NULL").await;
        let other = options()
            .with("ENCRYPTION_KEY", NEXT_ENCRYPTION_KEY)
            .with("TRUSTED_PROXIES", "0.0.0.0/0")
            .with("OMADA_READ_ONLY", "true")
            .with("CACHE_URL", "redis://127.0.0.1:1")
            .with("LOG_DATABASE_URL", "postgres://x:y@127.0.0.1:1/z")
            .with("BIND_ADDR", "0.0.0.0:0");
        let said = doctor(site.path(), &site.database, &other);
        assert_eq!(said.code, Some(1));
        said.expect_line("FAIL", &["secrets: 3 rows", "not configured", "ENCRYPTION_KEY_PREVIOUS"])
            .expect_line("warn", &["TRUSTED_PROXIES"])
            .expect_line("warn", &["OMADA_READ_ONLY", "no effect"])
            .expect_line("warn", &["development", "0.0.0.0"])
            .expect_line("FAIL", &["cache", "CACHE_URL"])
            .expect_line("FAIL", &["log database"])
            .expect_line("warn", &["changes: 1", "unknown", "verify or discard"])
            .expect_line("warn", &["controllers: 1", "edge"]);
        let unfinished = other.with("ENCRYPTION_KEY_PREVIOUS", ENCRYPTION_KEY);
        doctor(site.path(), &site.database, &unfinished)
            .expect_line("warn", &["3 rows are still under the previous key", "heddle keys rotate"]);

        let dead = site.database_is_damaged().await;
        let said = doctor(site.path(), &site.database, &options());
        said.expect_line("FAIL", dead);
        assert_eq!(said.code, Some(1));
    }
}

impl Site {
    /// Damages the database and gives the words that tell it.
    async fn database_is_damaged(&self) -> &'static [&'static str] {
        match &self.database {
            Database::Sqlite => {
                for name in ["heddle.db-wal", "heddle.db-shm"] {
                    std::fs::remove_file(self.path().join("data").join(name)).ok();
                }
                std::fs::write(self.path().join("data/heddle.db"), "no database ".repeat(1000)).unwrap();
                &["database", "damaged"]
            }
            Database::Postgres(_) => {
                tamper(self, "UPDATE _sqlx_migrations SET version = 9999 WHERE version = 1").await;
                &["version 9999", "newer Heddle"]
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_are_refused_are_a_line_and_not_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let said = doctor(folder.path(), &Database::Sqlite, &options().with("ENVIRONMENT", "prod"));
    assert_eq!(said.code, Some(1));
    said.expect_line("FAIL", &["ENVIRONMENT", "prod", "production"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_folder_stays_empty() {
    let folder = tempfile::tempdir().unwrap();
    let unkeyed = options().with("ENCRYPTION_KEY", "").with("SECRET_KEY", "");
    let said = doctor(folder.path(), &Database::Sqlite, &unkeyed).expect_ok();
    said.expect_line("warn", &["database: there is none yet"])
        .expect_line("warn", &["keys: there are none yet"]);
    let entries = std::fs::read_dir(folder.path().join("data")).unwrap().flatten();
    let names: Vec<_> = entries.map(|entry| entry.file_name()).filter(|name| name != "code").collect();
    assert!(names.is_empty(), "{names:?}");
}

on_both! {
    async fn migrating_says_from_where_to_where_and_may_be_done_twice_at_once(database: Database) {
        let (folder, database) = (tempfile::tempdir().unwrap(), database.emptied().await);
        let mut both: Vec<_> =
            (0..3).map(|_| crate::operate::spawn(folder.path(), &database, &options(), &["migrate"])).collect();
        for one in &mut both {
            assert!(one.wait().unwrap().success());
        }
        let again = run(folder.path(), &database, &options(), &["migrate"]).expect_ok();
        assert!(again.out.contains("already"), "{again:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_is_told_apart_from_an_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(folder.path(), &Database::Sqlite, &options(), &["migrate"]).expect_ok();
    assert!(said.out.contains("was empty"), "{said:?}");
    let help = run(folder.path(), &Database::Sqlite, &options(), &["--help"]).expect_ok();
    assert!(help.out.contains("Exit status"), "{help:?}");
}

/// The settings of a test, with those of this mail server.
fn mailing(smtp: &Smtp, url: &str) -> Options {
    smtp.options_with(url).with("BACKUP_PASSPHRASE", super::PASSPHRASE)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mail_server_is_asked_whether_it_lets_us_in() {
    let folder = tempfile::tempdir().unwrap();
    let said = |options: &Options| doctor(folder.path(), &Database::Sqlite, options);
    said(&options()).expect_line("ok", &["mail: SMTP_URL is not set", "written to the log"]);
    for mode in [Mode::Plain, Mode::StartTls, Mode::Tls] {
        let smtp = Smtp::start(mode);
        said(&smtp.options()).expect_ok().expect_line("ok", &["mail: 127.0.0.1 answers and lets us in"]);
        assert_eq!(smtp.tries(), 0, "no mail is sent");
    }
    let smtp = Smtp::start(Mode::StartTls);
    let wrong = said(&mailing(&smtp, &smtp.url().replace(":smtp%2F", ":wrong%2F")));
    wrong.expect_line("FAIL", &["mail: mail server refuses with status 535", "SMTP_URL"]);
    let impostor = said(&mailing(&Smtp::absent(), &smtp.url()));
    impostor.expect_line("FAIL", &["mail: TLS with the mail server fails", "SMTP_CA_FILE"]);
    let absent = Smtp::absent();
    said(&absent.options()).expect_line("FAIL", &["mail: mail server cannot be reached"]);
    let unreadable = smtp.options().with("SMTP_CA_FILE", "/nowhere/ca.pem");
    said(&unreadable).expect_line("FAIL", &["mail: SMTP_CA_FILE '/nowhere/ca.pem' cannot be read"]);
    let refused = said(&smtp.options().with("SMTP_URL", "smtp://user:canary-77@mail.test?tls=no"));
    refused.expect_line("FAIL", &["SMTP_URL", "smtps://user:password@host"]);
    assert!(!refused.out.contains("canary-77"));
    let production = options().with("ENVIRONMENT", "production").with("EGRESS_EXTRA_NETWORKS", "");
    said(&production).expect_line("warn", &["mail: SMTP_URL is not set", "PUBLIC_URL"]);
}
