//! The commands of the `heddle` binary, as an operator runs them.

mod audit;
mod backup;
mod doctor;
mod first_start;
mod refused;
mod rotate;
mod start;
mod user;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use heddle_lab_openwrt::Router;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::staging::{ROUTER_PASSWORD, start_router};
use crate::support::{Api, Database, Options, Process, environment, heddle_binary, register};

pub(crate) const PASSPHRASE: &str = "correct horse battery staple";

/// What a command said.
#[derive(Debug)]
pub(crate) struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn expect_ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It failed, and its message has these words.
    #[track_caller]
    fn expect_failure(self, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(1), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "'{word}' is said: {self:?}");
        }
        self
    }
}

fn command(folder: &Path, database: &Database, options: &Options, arguments: &[&str]) -> Command {
    let mut command = Command::new(heddle_binary());
    // Not in the folder of the tests: a heddle.toml may lie there.
    command.args(arguments).env_clear().envs(environment(folder, database, options)).current_dir(folder);
    command
}

pub(crate) fn run(folder: &Path, database: &Database, options: &Options, arguments: &[&str]) -> Ran {
    let output = command(folder, database, options, arguments).output().expect("the heddle binary is built");
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn spawn(folder: &Path, database: &Database, options: &Options, arguments: &[&str]) -> Child {
    let mut command = command(folder, database, options, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the heddle binary is built")
}

fn options() -> Options {
    Options::default()
        .with("BACKUP_PASSPHRASE", PASSPHRASE)
        .with("SYNC_INTERVAL_SECS", "3600")
        .with("LOG_FILTER", "warn")
}

async fn fresh(like: &Database) -> Database {
    match like {
        Database::Sqlite => Database::Sqlite,
        Database::Postgres(_) => Database::postgres().await.expect("the test runs with PostgreSQL"),
    }
}

/// A server process that was set up, with a router, a secret, and an applied change.
struct Site {
    folder: TempDir,
    database: Database,
    options: Options,
    process: Process,
    router: Router,
    controller: String,
    token: String,
}

impl Site {
    async fn start(database: Database, options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let router = start_router().await;
        let (process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        let controller = register(&process.api, &router.url(), ROUTER_PASSWORD).await;
        let controller = controller["id"].as_str().expect("an id").to_owned();
        Self { folder, database, options, process, router, controller, token }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        run(self.path(), &self.database, &self.options, arguments)
    }

    /// A change whose payload holds a secret.
    async fn stage_secret(&self, name: &str) -> Value {
        let path = format!(
            "/gateway-openwrt-base/{}/changes/openwrt.network.interface?operation=create",
            self.controller
        );
        let payload = json!({ "payload": {
            "name": name, "proto": "pppoe", "device": "wan", "username": "user@isp", "password": "pppoe-secret-1",
        } });
        self.process.api.post(&path, &payload).await.expect_status(201).body
    }

    async fn apply(&self, change: &Value) {
        let path = format!("/gateway-vpn/changes/{}/apply", change["id"].as_str().expect("an id"));
        self.process.api.post(&path, &json!({ "force": true })).await.expect_status(200);
    }

    /// Waits for the first reading of the router, after which nothing changes by itself.
    async fn synced(&self) {
        for _ in 0..600 {
            let path = format!("/controllers/{}", self.controller);
            let seen = self.process.api.get(&path).await.expect_status(200).body;
            let devices = self.process.api.get("/devices").await.expect_status(200).body;
            if seen["last_sync_at"].is_string() && devices["total"].as_i64() > Some(0) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the router is not read");
    }

    /// The same server again.
    async fn restart(&mut self) {
        self.process.kill();
        self.process =
            Process::start(self.folder.path(), &self.database, &self.options).await.with_token(&self.token);
    }
}

/// What every list answers.
async fn lists(api: &Api) -> Vec<(String, String)> {
    let mut answers = Vec::new();
    for path in [
        "/organizations",
        "/sites",
        "/credentials",
        "/controllers",
        "/devices?per_page=200",
        "/audit?per_page=200",
        "/audit/validate",
        "/auth/me",
        "/gateway-vpn/changes/by-gateway/CONTROLLER?vendor=openwrt",
    ] {
        let controllers = api.get("/controllers").await.expect_status(200).body;
        let controller = controllers["items"][0]["id"].as_str().unwrap_or_default();
        let path = path.replace("CONTROLLER", controller);
        answers.push((path.clone(), api.get(&path).await.expect_status(200).text));
    }
    answers
}

/// The stored credential logs in at the router.
async fn assert_credential_works(api: &Api, controller: &str) {
    let tested = api.post(&format!("/controllers/{controller}/test"), &json!({})).await.expect_status(200);
    assert_eq!(tested.body["ok"], true, "{}", tested.text);
}
