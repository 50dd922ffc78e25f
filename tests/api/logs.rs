//! The service's own log lines over the API.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_core::{LogLevel, Role};
use heddle_store::logs::{self, LogLine};
use heddle_store::{Db, PoolSettings};
use serde_json::{Value, json};

use crate::support::{Api, Database, Options, PASSWORD, Process, Proxy, Server, Way, on_both};

/// A server, its first administrator, and its log database from behind.
async fn start(database: Database) -> (Server, Api, Db) {
    // On PostgreSQL next to the service's own tables.
    let options = match &database {
        Database::Postgres(url) => Options::default().with("LOG_DATABASE_URL", url.clone()),
        Database::Sqlite => Options::default(),
    };
    let url = match &database {
        Database::Postgres(url) => Some(url.clone()),
        Database::Sqlite => None,
    };
    let server = Server::start_with(database, options).await;
    let api = server.set_up().await;
    let file = server.folder().join("data/logs.db");
    let url = url.unwrap_or_else(|| format!("sqlite://{}", file.display()));
    let pool = PoolSettings { connections_max: 2, acquire_timeout: Duration::from_secs(10) };
    let db = Db::open_logs(&url, &pool).await.unwrap();
    (server, api, db)
}

async fn write(server: &Server, db: &Db, count: i64) {
    let clock = &server.running().app.clock;
    let lines: Vec<LogLine> = (0..count)
        .map(|n| LogLine {
            id: clock.new_id(),
            at: clock.now() - TimeDelta::seconds(n / 3),
            level: if n % 10 == 0 { LogLevel::Error } else { LogLevel::Info },
            target: if n % 2 == 0 { "heddle_inventory::sync".to_owned() } else { "heddle_store".to_owned() },
            message: format!("line {n}"),
            fields: json!({ "n": n }),
            request_id: (n == 5).then(|| "ext-mine".to_owned()),
            span: None,
            org_id: None,
        })
        .collect();
    let mut tx = db.write().await.unwrap();
    logs::insert(&mut tx, &lines).await.unwrap();
    tx.commit().await.unwrap();
}

async fn messages(api: &Api, query: &str) -> Vec<String> {
    let body = api.get(&format!("/logs?{query}")).await.expect_status(200).body;
    body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["message"].as_str().unwrap().to_owned())
        .collect()
}

on_both! {
    async fn lines_are_filtered_and_paged_newest_first(database: Database) {
        let (server, api, db) = start(database).await;
        let empty = json!({
            "items": [], "total": 0, "total_is_capped": false, "page": 1, "per_page": 50, "pages": 0, "next_cursor": null,
        });
        assert_eq!(api.get("/logs").await.expect_status(200).body, empty);
        write(&server, &db, 120).await;
        assert_eq!(messages(&api, "level=error&per_page=3").await, ["line 0", "line 10", "line 20"]);
        assert_eq!(messages(&api, "target=heddle_store&per_page=1").await.len(), 1);
        assert_eq!(messages(&api, "target=heddle_store&per_page=200").await.len(), 60);
        assert_eq!(messages(&api, "search=LINE+119").await, ["line 119"]);
        assert_eq!(messages(&api, "request_id=mine").await, ["line 5"]);
        assert!(messages(&api, "until=2020-01-01T00:00:00Z").await.is_empty());
        let mut seen = Vec::new();
        let mut query = "per_page=50".to_owned();
        loop {
            let body = api.get(&format!("/logs?{query}")).await.expect_status(200).body;
            seen.extend(body["items"].as_array().unwrap().iter().map(|line| line["message"].to_string()));
            match &body["next_cursor"] {
                Value::String(cursor) => query = format!("per_page=50&cursor={cursor}"),
                _ => break,
            }
        }
        assert_eq!(seen.len(), 120);
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 120, "every line comes once");
        for wrong in ["per_page=201", "per_page=0", "level=loud", "cursor=x", "since=yesterday", "colour=red"] {
            api.get(&format!("/logs?{wrong}")).await.expect_status(422);
        }
    }
}

#[tokio::test]
async fn only_a_super_admin_reads_them() {
    use heddle_store::users::{self, NewUser};
    let (server, api, _) = start(Database::sqlite()).await;
    server.nobody().get("/logs").await.expect_status(401);
    let app = &server.running().app;
    let mut tx = app.db.write().await.unwrap();
    let admin = users::find_by_login(&mut tx, "ada").await.unwrap().unwrap();
    let new = NewUser {
        id: app.clock.new_id(),
        org_id: admin.user.org_id,
        username: "bea".to_owned(),
        email: "bea@acme.test".to_owned(),
        full_name: None,
        password_hash: admin.password_hash,
        role: Role::OrgAdmin,
        now: app.clock.now(),
    };
    users::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
    let login = json!({ "login": "bea", "password": PASSWORD });
    let tokens = server.nobody().post("/auth/login", &login).await.expect_status(200).body;
    let bea = api.with_token(tokens["access_token"].as_str().unwrap());
    assert_eq!(bea.get("/logs").await.expect_status(403).error_type(), "permission_denied");
    api.get("/logs").await.expect_status(200);
}

async fn set_up(process: Process) -> Process {
    let setup = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    let answer = process.api.post("/setup/complete", &setup).await.expect_status(201);
    let token = answer.body["access_token"].as_str().unwrap().to_owned();
    process.with_token(&token)
}

/// Lines of a process, as soon as there is one.
async fn first_lines(api: &Api, query: &str) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let body = api.get(&format!("/logs?{query}")).await.expect_status(200).body;
        match body["items"].as_array() {
            Some(items) if !items.is_empty() => return items.clone(),
            _ => assert!(started.elapsed() < crate::support::PATIENCE, "no line comes: {body}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

on_both! {
    async fn what_a_process_logs_is_read_over_its_api(database: Database) {
        let folder = tempfile::tempdir().unwrap();
        // What is shown on the terminal does not decide what is kept.
        let options = Options::default().with("LOG_FILTER", "off").with("SYNC_INTERVAL_SECS", "3600");
        let process = set_up(Process::start(folder.path(), &database, &options).await).await;
        let listening = first_lines(&process.api, "search=listening+on").await;
        assert_eq!(listening[0]["target"], "heddle_kernel::running");
        for _ in 0..6 {
            let wrong = json!({ "login": "ada", "password": "canary-6tR" });
            process.api.post("/auth/login", &wrong).await;
        }
        let locked = first_lines(&process.api, "level=warn&search=locked+account").await;
        assert_eq!(locked[0]["level"], "warn");
        assert_eq!(locked[0]["span"], "request");
        assert!(locked[0]["fields"]["user.id"].is_string(), "{locked:?}");
        let id = locked[0]["request_id"].as_str().unwrap();
        let same = first_lines(&process.api, &format!("request_id={id}")).await;
        assert!(same.contains(&locked[0]), "{same:?}");
        let all = process.api.get("/logs?per_page=200").await.expect_status(200).text;
        assert!(!all.contains("canary-6tR") && !all.contains(PASSWORD), "{all}");
        let own = process.api.get("/logs?target=heddle_kernel::logs").await.expect_status(200).body;
        assert_eq!(own["items"], json!([]), "the writer does not write of itself");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_without_its_log_database_goes_on_and_finds_it_later() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("later");
    let url = format!("sqlite://{}?mode=rwc", logs.join("logs.db").display());
    let options = Options::default().with("LOG_DATABASE_URL", url).with("SYNC_INTERVAL_SECS", "3600");
    let process = set_up(Process::start(folder.path(), &Database::sqlite(), &options).await).await;
    process.api.get("/sites").await.expect_status(200);
    let away = process.api.get("/logs").await.expect_status(503);
    assert_eq!(away.message(), "log database gives no answer; try again");
    assert_eq!(process.api.get("/health").await.body["degraded_subsystems"], json!(["logdb"]));
    let metrics = process.api.get_root("/metrics").await.expect_status(200).text;
    assert!(metrics.contains("heddle_subsystem_up{subsystem=\"logdb\"} 0"), "{metrics}");
    assert!(
        metrics.contains("\nheddle_log_lines_dropped_total 0\n"),
        "they wait and are not lost: {metrics}"
    );
    std::fs::create_dir(&logs).unwrap();
    let started = Instant::now();
    while process.api.get("/logs").await.status != 200 {
        assert!(started.elapsed() < crate::support::PATIENCE, "the log database is not found");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let waited = first_lines(&process.api, "search=listening+on").await;
    assert_eq!(waited.len(), 1, "what was logged before is kept: {waited:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_wait_while_the_log_database_is_away() {
    let Some(Database::Postgres(url)) = Database::postgres().await else { return };
    let (proxy, url) = Proxy::to_database(&url).await;
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().with("LOG_DATABASE_URL", url).with("SYNC_INTERVAL_SECS", "3600");
    let process = set_up(Process::start(folder.path(), &Database::sqlite(), &options).await).await;
    first_lines(&process.api, "search=listening+on").await;
    let site =
        process.api.post("/sites", &json!({ "name": "HQ" })).await.expect_status(201).body["id"].clone();
    let credential = json!({ "name": "router", "username": "root", "password": "x" });
    let credential =
        process.api.post("/credentials", &credential).await.expect_status(201).body["id"].clone();
    for way in [Way::Cut, Way::Silent] {
        proxy.set(way);
        // Nothing answers there, and the log says so.
        let controller = json!({
            "name": format!("edge {way:?}"), "site_id": site, "vendor": "openwrt", "url": "http://127.0.0.1:9",
            "credential_id": credential,
        });
        let id = process.api.post("/controllers", &controller).await.expect_status(201).body["id"].clone();
        let started = Instant::now();
        while process.api.get("/health").await.body["degraded_subsystems"] != json!(["logdb"]) {
            assert!(started.elapsed() < crate::support::PATIENCE, "the log database is missed");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        process.api.get("/sites").await.expect_status(200);
        proxy.set(Way::Open);
        let query = format!("search=controller+{}+cannot+be+read", id.as_str().unwrap());
        loop {
            let answer = process.api.get(&format!("/logs?{query}")).await;
            if answer.status == 200 && answer.body["items"][0]["level"] == "warn" {
                break;
            }
            assert!(
                started.elapsed() < Duration::from_mins(1),
                "{way:?}: what waited is kept: {}",
                answer.text
            );
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
}

on_both! {
    async fn an_organization_reads_the_lines_that_its_steps_wrote_and_no_others(database: Database) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::default().with("SYNC_INTERVAL_SECS", "3600");
        let process = set_up(Process::start(folder.path(), &database, &options).await).await;
        let root = &process.api;
        let other = root.post("/organizations", &json!({ "name": "Other" })).await.expect_status(201).body;
        let mut admins = Vec::new();
        for (name, organization) in [("bea", None), ("carl", other["id"].as_str())] {
            let mut body = json!({ "username": name, "email": format!("{name}@acme.test"), "password": PASSWORD, "role": "org_admin" });
            if let Some(id) = organization {
                body["organization_id"] = json!(id);
            }
            root.post("/users", &body).await.expect_status(201);
            let tokens = root.post("/auth/login", &json!({ "login": name, "password": PASSWORD })).await.expect_status(200).body;
            let admin = root.with_token(tokens["access_token"].as_str().unwrap());
            let params = json!({ "level": "warn", "message": format!("line of {name}"), "fields": { "by": name } });
            let run = admin.post("/actions", &json!({ "operation_id": "fabric.log", "params": params })).await.expect_status(201).body;
            assert_eq!(run["success"], true, "{run}");
            admins.push((name, admin, run));
        }
        for (name, admin, run) in &admins {
            let started = Instant::now();
            let line = loop {
                let lines = admin.get("/fabric/logs?level=warn").await.expect_status(200).body;
                assert!(lines["total"].as_i64().unwrap() <= 1, "{lines}");
                match lines["items"].get(0) {
                    Some(line) => break line.clone(),
                    None => assert!(started.elapsed() < crate::support::PATIENCE, "no line comes"),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            };
            assert_eq!((&line["message"], &line["level"]), (&json!(format!("line of {name}")), &json!("warn")), "{line}");
            assert_eq!((&line["fields"], &line["run_id"]), (&json!({ "by": name }), &run["id"]));
            assert_eq!(admin.get("/fabric/logs?search=nothing-such").await.expect_status(200).body["total"], 0);
            assert_eq!(admin.get("/logs").await.expect_status(403).error_type(), "permission_denied");
        }
    }
}
