//! Whether the service lives, can serve, and says so.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_kernel::config::Config;
use heddle_kernel::opening::Surroundings;
use heddle_kernel::running::Running;
use serde_json::{Value, json};

use crate::support::{
    Api, Database, Options, Proxy, Server, Way, compiler, environment, on_both, packages, until,
};

/// Only something that hangs takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until the answer is that.
async fn until_ready(api: &Api, status: u16) -> Value {
    let started = Instant::now();
    loop {
        let answer = api.get("/health/ready").await;
        if answer.status == status {
            return answer.body;
        }
        assert!(started.elapsed() < PATIENCE, "{}", answer.text);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn all_ok() -> Value {
    json!({
        "status": "ready", "failed": [], "degraded_subsystems": [],
        "checks": { "database": "ok", "cache": "ok", "logdb": "ok" },
    })
}

on_both! {
    async fn every_question_has_its_answer(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let nobody = server.nobody();
        let healthy = json!({ "status": "healthy", "degraded_subsystems": [] });
        assert_eq!(nobody.get_root("/health").await.expect_status(200).body, healthy);
        assert_eq!(nobody.get("/health").await.expect_status(200).body, healthy);
        assert_eq!(nobody.get("/health/live").await.expect_status(200).body, json!({ "status": "alive" }));
        assert_eq!(nobody.get("/health/db").await.expect_status(200).body, json!({ "status": "ok" }));
        assert_eq!(nobody.get("/health/ready").await.expect_status(200).body, all_ok());
        let root = json!({ "app": "Heddle", "docs": "/api/v1/docs", "api": "/api/v1" });
        assert_eq!(nobody.get_root("/").await.expect_status(200).body, root);
        let api_root = root["api"].as_str().unwrap();
        for spelling in [api_root.to_owned(), format!("{api_root}/")] {
            assert_eq!(nobody.get_root(&spelling).await.expect_status(200).body, root, "what '/' names is there");
        }
        for door in ["/access_control", "/access_control/access"] {
            assert_eq!(api.get(door).await.expect_status(501).error_type(), "not_implemented");
            for verb in ["lock", "unlock"] {
                api.post(&format!("{door}/doors/7/{verb}"), &json!({})).await.expect_status(501);
            }
        }

        nobody.get("/health/detail").await.expect_status(401);
        let detail = api.get("/health/detail").await.expect_status(200).body;
        for part in ["database", "log_database"] {
            let version = detail[part]["version"].as_str().unwrap();
            assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{detail}");
            assert!(detail[part]["latency_ms"].as_f64().unwrap() > 0.0, "{detail}");
            assert!(detail[part]["pool"]["open"].as_u64().unwrap() >= 1, "{detail}");
        }
        assert_eq!(detail["database"]["pool"]["max"].as_u64().unwrap() / 2, 2, "4, or 5 with the one that writes");
        let adapters = detail["adapters"].as_array().unwrap();
        assert!(adapters.iter().any(|a| a["id"] == "openwrt" && a["quarantined"] == false), "{detail}");
        assert_eq!((&detail["cache"]["status"], &detail["event_bus"]["up"]), (&json!("ok"), &json!(true)));
        assert!(detail["uptime_secs"].is_u64() && detail["refused_adapters"] == json!([]), "{detail}");
    }
}

on_both! {
    async fn a_database_that_is_away_takes_readiness_and_not_life(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        let nobody = server.nobody();
        server.running().app.db.close().await;
        let body = until_ready(&nobody, 503).await;
        let expected = json!({
            "status": "not_ready", "failed": ["database"], "degraded_subsystems": ["database"],
            "checks": { "database": "unreachable", "cache": "ok", "logdb": "ok" },
        });
        assert_eq!(body, expected);
        let degraded = json!({ "status": "degraded", "degraded_subsystems": ["database"] });
        assert_eq!(nobody.get("/health").await.expect_status(200).body, degraded);
        assert_eq!(nobody.get_root("/health").await.expect_status(200).body, degraded);
        assert_eq!(nobody.get("/health/db").await.expect_status(503).body, json!({ "status": "unreachable" }));
        nobody.get("/health/live").await.expect_status(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_follows_the_way_to_the_database() {
    let Some(Database::Postgres(url)) = Database::postgres().await else { return };
    let (proxy, url) = Proxy::to_database(&url).await;
    let server = Server::start(Database::Postgres(url)).await;
    let nobody = server.nobody();
    assert_eq!(nobody.get("/health/ready").await.expect_status(200).body, all_ok());
    for way in [Way::Cut, Way::Silent] {
        proxy.set(way);
        let body = until_ready(&nobody, 503).await;
        assert_eq!(
            (&body["failed"], &body["checks"]["database"]),
            (&json!(["database"]), &json!("unreachable"))
        );
        tokio::time::sleep(Duration::from_millis(1100)).await;
        // The kept result has expired, so the database is asked again. It never answers, and health answers without it.
        let asked = async {
            tokio::join!(nobody.get("/health/ready"), nobody.get("/health/db"), nobody.get("/health"))
        };
        let asked = tokio::time::timeout(PATIENCE, asked).await.expect("an answer without the database");
        assert_eq!((asked.0.status, asked.1.status, asked.2.status), (503, 503, 200), "{way:?}");
        proxy.set(Way::Open);
        until_ready(&nobody, 200).await;
    }
}

on_both! {
    async fn a_pool_in_use_is_said_and_does_not_take_readiness(database: Database) {
        let server = Server::start_with(database, Options::default().with("SYNC_INTERVAL_SECS", "3600")).await;
        let nobody = server.nobody();
        let app = &server.running().app;
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(app.db.read().await.unwrap());
        }
        // The connections are held throughout: an answer that waited for one of them would not come. A look is kept for a
        // second.
        until("the database is busy and the server ready", async || {
            let body = nobody.get("/health/ready").await.body;
            body["status"] == "ready" && body["checks"]["database"] == "busy"
        })
        .await;
        drop(held);
        until("a pool that is free is seen", async || nobody.get("/health/ready").await.body == all_ok()).await;
    }
}

on_both! {
    async fn the_log_database_is_needed_only_when_asked_for(database: Database) {
        let (url, is_postgres) = match &database {
            Database::Postgres(url) => (url.clone(), true),
            Database::Sqlite => (String::new(), false),
        };
        for strict in [false, true] {
            let database = if is_postgres { Database::Postgres(url.clone()) } else { Database::Sqlite };
            let folder = tempfile::tempdir().unwrap();
            let logs = folder.path().join("later");
            let options = Options::default()
                .with("LOG_DATABASE_URL", format!("sqlite://{}?mode=rwc", logs.join("logs.db").display()))
                .with("READINESS_STRICT_DEPS", strict.to_string());
            let server = Server::start_with(database, options).await;
            let nobody = server.nobody();
            let answer = nobody.get("/health/ready").await;
            let checks = json!({ "database": "ok", "cache": "ok", "logdb": "unreachable" });
            assert_eq!((answer.status, &answer.body["checks"]), (if strict { 503 } else { 200 }, &checks));
            assert_eq!(answer.body["failed"], if strict { json!(["logdb"]) } else { json!([]) });
            assert_eq!(answer.body["degraded_subsystems"], json!(["logdb"]));
            assert_eq!(nobody.get("/health").await.body["status"], "degraded");
            // It comes, and the server finds it by itself.
            std::fs::create_dir(&logs).unwrap();
            until("the log database is found", async || nobody.get("/health/ready").await.body == all_ok()).await;
        }
    }
}

/// Runs one statement that the store has no function for.
async fn execute(url: &str, sql: &'static str) {
    use sqlx::{Connection as _, Executor as _};
    if url.starts_with("sqlite:") {
        sqlx::SqliteConnection::connect(url).await.unwrap().execute(sql).await.unwrap();
    } else {
        sqlx::PgConnection::connect(url).await.unwrap().execute(sql).await.unwrap();
    }
}

on_both! {
    async fn an_event_bus_that_sees_nothing_takes_readiness(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let app = server.running().app.clone();
        execute(&app.config.database(), "ALTER TABLE event_head RENAME TO event_head_away").await;
        // What is 61 seconds behind has failed. A look that was under way may still end well, however late: then the clock
        // is moved again.
        let degraded = json!(["event_bus", "fabric"]);
        let mut body = Value::Null;
        for _ in 0..100 {
            app.clock.advance(TimeDelta::seconds(61));
            tokio::time::sleep(Duration::from_millis(100)).await;
            body = api.get("/health/ready").await.body;
            if body["degraded_subsystems"] == degraded {
                break;
            }
        }
        // What follows the events sees none either, and takes no readiness.
        assert_eq!(body["degraded_subsystems"], degraded, "{body}");
        assert_eq!((&body["status"], &body["failed"]), (&json!("not_ready"), &json!(["event_bus"])));
        execute(&app.config.database(), "ALTER TABLE event_head_away RENAME TO event_head").await;
        until_ready(&api, 200).await;
        until("all is well again", async || api.get("/health/ready").await.body == all_ok()).await;
    }
}

/// A start with these settings.
async fn try_start(folder: &std::path::Path, options: Options) -> anyhow::Result<Running> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let environment = environment(folder, &Database::sqlite(), &options);
    let config = Config::from_maps(&environment, &BTreeMap::new(), &heddle_server::FEATURES.settings())?;
    heddle_server::start(config, Surroundings::from(compiler())).await
}

/// A folder with the true packages and one that is none.
fn packages_and_a_broken_one(folder: &std::path::Path) -> String {
    let mixed = folder.join("packages");
    std::fs::create_dir_all(mixed.join("broken")).unwrap();
    std::fs::write(mixed.join("broken/manifest.json"), "{}").unwrap();
    std::os::unix::fs::symlink(packages().join("openwrt"), mixed.join("openwrt")).unwrap();
    mixed.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strict_start_ends_with_the_reason_and_another_goes_on_degraded() {
    let absent = ("ADAPTER_TRUSTED_KEYS", "/nowhere/keys.json".to_owned());
    let unread = ("ADAPTER_PACKAGES", "/nowhere/packages".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let broken = ("ADAPTER_PACKAGES", packages_and_a_broken_one(folder.path()));
    let none_left = ["modules", "adapter:all"].as_slice();
    for ((name, value), reason, degraded, is_ready) in [
        (absent, "ADAPTER_TRUSTED_KEYS '/nowhere/keys.json'", none_left, false),
        (unread, "ADAPTER_PACKAGES '/nowhere/packages' cannot be read", none_left, false),
        (broken, "modules cannot be initialised: broken: ", &["adapter:broken"], true),
    ] {
        let options = Options::default().with(name, value);
        let folder = tempfile::tempdir().unwrap();
        let refused = try_start(folder.path(), options.clone().with("STRICT_STARTUP", "true")).await;
        let message = format!("{:#}", refused.expect_err("a strict start is refused"));
        assert!(message.contains(reason) && message.contains("STRICT_STARTUP=false"), "{message}");

        let running = try_start(folder.path(), options).await.unwrap();
        let api = Api::new(&format!("http://{}", running.addr));
        let ready = api.get("/health/ready").await;
        assert_eq!(ready.status, if is_ready { 200 } else { 503 }, "{}", ready.text);
        assert_eq!(ready.body["failed"], if is_ready { json!([]) } else { json!(["modules"]) });
        assert_eq!(ready.body["degraded_subsystems"], json!(degraded));
        assert!(!ready.text.contains("nowhere"), "no path of the machine is told: {}", ready.text);
        running.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_says_so_lets_work_end_and_takes_no_more() {
    let mut server = Server::start(Database::sqlite()).await;
    let api = server.set_up().await;
    let running = server.running().app.tasks.hold();
    let probes = async {
        let body = until_ready(&api, 503).await;
        assert_eq!((&body["status"], &body["failed"]), (&json!("not_ready"), &json!(["draining"])));
        assert_eq!(body["checks"]["database"], "ok");
        api.get("/health/live").await.expect_status(200);
        let refused = api.get("/sites").await.expect_status(503);
        assert_eq!(
            (refused.error_type(), refused.message()),
            ("unavailable", "service is stopping; try again")
        );
        drop(running);
    };
    tokio::join!(server.stop(), probes);
    assert!(api.try_send("GET", "/health/live", None).await.is_err(), "nobody listens any more");
}
