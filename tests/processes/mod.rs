//! Several server processes on one database.

mod cursor;
mod drain;
mod events;
mod lock;
mod owner;
mod push;
mod readings;
mod releases;
mod retention;

use std::path::Path;
use std::time::Duration;

use heddle_lab_openwrt::Router;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::staging::{ROUTER_PASSWORD, start_router};
use crate::support::{Api, Database, Options, PASSWORD, Process, register};

/// Two processes that serve one `PostgreSQL`, and a router that the first has registered.
pub(crate) struct Pair {
    pub(crate) a: Process,
    pub(crate) b: Process,
    pub(crate) router: Router,
    pub(crate) controller: String,
    pub(crate) database: Database,
    pub(crate) options: Options,
    token: String,
    folders: [TempDir; 2],
}

pub(crate) fn quick() -> Options {
    Options::default()
        .with("SYNC_INTERVAL_SECS", "3600")
        .with("LOG_FILTER", "info")
        .with("APPLY_SETTLE_MS", "50")
        .with("APPLY_HOLD_SECS", "8")
}

/// Sets a new database up through one process and answers the admin's token.
pub(crate) async fn set_up(process: &Process) -> String {
    let setup = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
        "site": { "name": "Head office" },
    });
    let answer = process.api.post("/setup/complete", &setup).await.expect_status(201);
    answer.body["access_token"].as_str().expect("a token").to_owned()
}

impl Pair {
    /// `None` where the tests run without `PostgreSQL`.
    pub(crate) async fn start(options: Options) -> Option<Self> {
        let database = Database::postgres().await?;
        let router = start_router().await;
        let folders = [0, 1].map(|_| tempfile::tempdir().expect("a folder can be made"));
        let a = Process::start(folders[0].path(), &database, &options).await;
        let token = set_up(&a).await;
        let a = a.with_token(&token);
        let b = Process::start(folders[1].path(), &database, &options).await.with_token(&token);
        let controller = register(&a.api, &router.url(), ROUTER_PASSWORD).await;
        let controller = controller["id"].as_str().expect("an id").to_owned();
        Some(Self { a, b, router, controller, database, options, token, folders })
    }

    /// Starts a process in the place of the first.
    pub(crate) async fn restart_a(&mut self) {
        self.a = self.start_in(self.folders[0].path()).await;
    }

    pub(crate) async fn restart_b(&mut self) {
        self.b = self.start_in(self.folders[1].path()).await;
    }

    async fn start_in(&self, folder: &Path) -> Process {
        Process::start(folder, &self.database, &self.options).await.with_token(&self.token)
    }

    pub(crate) fn log_of_b(&self) -> String {
        std::fs::read_to_string(self.folders[1].path().join("log")).unwrap_or_default()
    }

    pub(crate) fn log_of_a(&self) -> String {
        std::fs::read_to_string(self.folders[0].path().join("log")).unwrap_or_default()
    }

    /// Stages a rule through a process and answers the change's id.
    pub(crate) async fn stage(&self, api: &Api, name: &str) -> String {
        let path = format!(
            "/gateway-openwrt-firewall/{}/changes/openwrt.firewall.rule?operation=create",
            self.controller
        );
        let payload = json!({ "payload": {
            "name": name, "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
        } });
        let change = api.post(&path, &payload).await.expect_status(201).body;
        assert!(change["plan"].is_object(), "{change}");
        change["id"].as_str().expect("an id").to_owned()
    }

    /// How often the router's firewall has the rule.
    pub(crate) fn times(&self, name: &str) -> usize {
        let config = self.router.config_text("firewall").expect("the router has a firewall");
        config.matches(&format!("'{name}'")).count()
    }

    /// One value of the database.
    pub(crate) async fn sql(&self, query: &'static str) -> i64 {
        number(&self.database, query).await
    }
}

/// One value of a database.
async fn number(database: &Database, query: &'static str) -> i64 {
    use sqlx::Connection as _;
    let Database::Postgres(url) = database else { panic!("several processes are on PostgreSQL") };
    let mut connection = sqlx::PgConnection::connect(url).await.expect("the database answers");
    sqlx::query_scalar(query).fetch_one(&mut connection).await.expect("a number")
}

pub(crate) async fn change(api: &Api, id: &str) -> Value {
    api.get(&format!("/gateway-vpn/changes/{id}")).await.expect_status(200).body
}

pub(crate) fn verb(id: &str, verb: &str) -> String {
    format!("/gateway-vpn/changes/{id}/{verb}")
}

/// Waits until the change rests, and answers it.
pub(crate) async fn settled(api: &Api, id: &str) -> Value {
    for _ in 0..1_800 {
        let seen = change(api, id).await;
        if seen["outcome"]["step"] == "idle" {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("change {id} is not settled: {}", change(api, id).await);
}

/// Applies with a confirm window; the change is in effect and waits.
pub(crate) async fn apply_held(api: &Api, id: &str, secs: u32) {
    let body = json!({ "force": true, "confirm_within_secs": secs });
    let answer = api.post(&verb(id, "apply"), &body).await.expect_status(200);
    assert_eq!(answer.body["outcome"]["state"], "awaiting_confirm", "{}", answer.text);
}
