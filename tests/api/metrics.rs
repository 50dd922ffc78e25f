//! What Prometheus reads.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::staging::Lab;
use crate::support::{Answer, Api, Database, Options, PASSWORD, Server, on_both};

const TOKEN: &str = "kZ4-metrics-9QxT-reader-71";

async fn scrape(api: &Api) -> String {
    let answer = api.get_root("/metrics").await.expect_status(200);
    assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4");
    answer.text
}

/// Every series without its value.
fn series(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').expect("a series has a value").0.to_owned()).collect()
}

/// The value of the one series that begins like this and has all of these labels.
#[track_caller]
fn value(text: &str, name: &str, labels: &[&str]) -> f64 {
    let fits = |line: &&str| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
    };
    let found: Vec<&str> = text.lines().filter(fits).collect();
    assert_eq!(found.len(), 1, "{name} {labels:?} in {text}");
    found[0].rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// What promtool has to say; nothing, when all is well.
fn lint(text: &str) -> String {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs: install the package 'prometheus'");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// One organization more with a site and a user, and every kind of request about them.
async fn grow(api: &Api, n: usize) {
    let site = api.post("/sites", &json!({ "name": format!("Site {n}") })).await.expect_status(201).body;
    let site = site["id"].as_str().unwrap();
    api.get(&format!("/sites/{site}")).await.expect_status(200);
    api.get(&format!("/sites?search=site-{n}")).await.expect_status(200);
    let organization =
        api.post("/organizations", &json!({ "name": format!("Org {n}") })).await.expect_status(201);
    let id = organization.body["id"].as_str().unwrap();
    api.get(&format!("/organizations/{id}")).await.expect_status(200);
    api.get(&format!("/devices/{}", uuid::Uuid::from_u128(n as u128))).await.expect_status(404);
    api.get(&format!("/no-such-path-{n}")).await.expect_status(404);
    api.send(&format!("ODD{n}"), "/sites", None).await.expect_status(405);
}

async fn add_user(server: &Server, n: usize) {
    use heddle_store::users::{self, NewUser};
    let app = &server.running().app;
    let mut tx = app.db.write().await.unwrap();
    let admin = users::find_by_login(&mut tx, "ada").await.unwrap().unwrap();
    let new = NewUser {
        id: app.clock.new_id(),
        org_id: admin.user.org_id,
        username: format!("user{n}"),
        email: format!("user{n}@acme.test"),
        full_name: None,
        password_hash: admin.password_hash,
        role: heddle_core::Role::Viewer,
        now: app.clock.now(),
    };
    users::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
    let login = |password: &str| json!({ "login": format!("user{n}"), "password": password });
    server.nobody().post("/auth/login", &login(PASSWORD)).await.expect_status(200);
    server.nobody().post("/auth/login", &login("wrong")).await.expect_status(401);
}

on_both! {
    async fn no_series_grows_with_organizations_sites_or_users(database: Database) {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        grow(&api, 0).await;
        add_user(&server, 0).await;
        scrape(&api).await;
        let before = series(&scrape(&api).await);
        for n in 1..=20 {
            grow(&api, n).await;
            add_user(&server, n).await;
        }
        let text = scrape(&api).await;
        let after = series(&text);
        assert_eq!(after.difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
        for leak in ["Site 7", "user7", "site-7", "no-such-path", "ODD7", "acme", "Acme"] {
            assert!(!text.contains(leak), "{leak}");
        }
        let found = ["method=\"GET\"", "route=\"/api/v1/sites/{site_id}\"", "status=\"200\""];
        assert!((value(&text, "http_requests_total", &found) - 21.0).abs() < 0.1);
        let unmatched = ["method=\"GET\"", "route=\"other\"", "status=\"404\""];
        assert!((value(&text, "http_requests_total", &unmatched) - 21.0).abs() < 0.1);
        assert!((value(&text, "heddle_logins_total", &["outcome=\"success\""]) - 21.0).abs() < 0.1);
        assert!((value(&text, "heddle_logins_total", &["outcome=\"refused\""]) - 21.0).abs() < 0.1);
        for subsystem in ["database", "cache", "logdb", "modules", "event_bus", "event_wakeups", "fabric"] {
            let up = value(&text, "heddle_subsystem_up", &[&format!("subsystem=\"{subsystem}\"")]);
            assert!((up - 1.0).abs() < 0.1, "{subsystem}");
        }
        assert!(value(&text, "heddle_database_connections_open", &["database=\"main\""]) >= 1.0);
        assert!(text.contains("\nheddle_log_lines_dropped_total 0\n") && text.contains("\nprocess_open_fds "));
        assert!(text.contains("\nhttp_requests_in_flight 1\n"), "this very scrape is in flight");
    }
}

on_both! {
    async fn an_apply_leaves_its_numbers_and_promtool_finds_no_fault(database: Database) {
        let lab = Lab::start(database).await;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let applied = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(200);
        assert_eq!(applied.body["outcome"]["state"], "applied");
        let sync = format!("/controllers/{}/sync", lab.controller);
        lab.api.post(&sync, &json!({})).await.expect_status(202);
        let pending = lab.stage_rule("Allow-HTTPS-other").await;
        assert_eq!(pending["status"], "pending");
        // Counts of changes are kept for some seconds, and events take a moment.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        let text = scrape(&lab.api).await;
        assert_eq!(lint(&text), "");
        let adapter = "adapter=\"openwrt\"";
        assert!((value(&text, "heddle_applies_total", &[adapter, "outcome=\"applied\""]) - 1.0).abs() < 0.1);
        assert!(value(&text, "heddle_sync_readings_total", &[adapter, "outcome=\"read\""]) >= 1.0);
        for operation in ["read", "plan", "write", "verify"] {
            let labels = [adapter, &format!("operation=\"{operation}\""), "outcome=\"ok\""];
            assert!(value(&text, "heddle_adapter_calls_total", &labels) >= 1.0, "{operation}");
            let count = "heddle_adapter_call_duration_seconds_count";
            assert!(value(&text, count, &labels[..2]) >= 1.0, "{operation}");
        }
        let staged = ["event_type=\"controller.change.staged\""];
        assert!((value(&text, "heddle_events_published_total", &staged) - 2.0).abs() < 0.1);
        let changes = ["status=\"pending\"", "outcome=\"none\""];
        assert!((value(&text, "heddle_changes", &changes) - 1.0).abs() < 0.1);
    }
}

async fn metrics_as(server: &Server, authorization: Option<&str>) -> Answer {
    let api = match authorization {
        Some(token) => server.nobody().with_token(token),
        None => server.nobody(),
    };
    api.get_root("/metrics").await
}

#[tokio::test]
async fn with_a_token_only_who_knows_it_reads() {
    for environment in ["development", "production"] {
        let options = Options::default()
            .with("ENVIRONMENT", environment)
            .with("EGRESS_EXTRA_NETWORKS", "")
            .with("METRICS_AUTH_TOKEN", TOKEN);
        let server = Server::start_with(Database::sqlite(), options).await;
        for wrong in [None, Some(""), Some("x"), Some(&TOKEN[1..]), Some(&format!("{TOKEN}x"))] {
            let refused = metrics_as(&server, wrong).await.expect_status(401);
            assert_eq!(refused.header("www-authenticate"), "Bearer");
            assert!(!refused.text.contains(TOKEN));
        }
        let text = metrics_as(&server, Some(TOKEN)).await.expect_status(200).text;
        assert!(text.contains("heddle_build_info{"), "{environment}");
    }
}

#[tokio::test]
async fn where_it_is_not_served_it_is_like_an_unknown_path() {
    let open = Options::default().with("ENVIRONMENT", "production").with("EGRESS_EXTRA_NETWORKS", "");
    let disabled = Options::default().with("ENABLE_METRICS", "false").with("METRICS_AUTH_TOKEN", TOKEN);
    for options in [open, disabled] {
        let server = Server::start_with(Database::sqlite(), options).await;
        let shape = |answer: Answer| {
            let own = ["x-request-id", "x-response-time", "date"];
            let mut headers = answer.headers.clone();
            own.iter().for_each(|name| drop(headers.remove(*name)));
            (answer.status, answer.text.replace(answer.header("x-request-id"), "ID"), format!("{headers:?}"))
        };
        for method in ["GET", "POST", "HEAD", "OPTIONS"] {
            let known = server.nobody().try_send_root(method, "/metrics", None).await.unwrap();
            let unknown = server.nobody().try_send_root(method, "/metricz", None).await.unwrap();
            assert_eq!(unknown.status, 404);
            assert_eq!(shape(known), shape(unknown), "{method}");
        }
    }
}
