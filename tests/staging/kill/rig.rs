//! A server that is killed and started again on the same data, and the routers that it manages.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use heddle_lab_openwrt::Router;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::staging::subject::Subject;
use crate::staging::{ROUTER_PASSWORD, start_router};
use crate::support::{Answer, Api, Database, Options, Process, Random, register};

pub(super) struct Rig {
    pub(super) process: Process,
    pub(super) random: Random,
    /// Each with the id of its controller.
    routers: Vec<(Router, String)>,
    database: Database,
    options: Options,
    token: String,
    folder: TempDir,
}

impl Rig {
    pub(super) async fn start(database: Database, routers: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let options = Options::default()
            .with("SYNC_INTERVAL_SECS", "3600")
            .with("LOG_FILTER", "warn")
            .with("APPLY_SETTLE_MS", "50")
            .with("APPLY_HOLD_SECS", "8");
        let (process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        let random = Random::new();
        let mut rig = Self { process, random, routers: Vec::new(), database, options, token, folder };
        for _ in 0..routers {
            let router = start_router().await;
            let controller = register(rig.api(), &router.url(), ROUTER_PASSWORD).await;
            rig.routers.push((router, controller["id"].as_str().expect("an id").to_owned()));
        }
        rig
    }

    pub(super) fn api(&self) -> &Api {
        &self.process.api
    }

    pub(super) fn router(&self, at: usize) -> &Router {
        &self.routers[at].0
    }

    pub(super) async fn restart(&mut self) {
        let process = Process::start(self.folder.path(), &self.database, &self.options).await;
        self.process = process.with_token(&self.token);
    }

    /// Stages a change of this rule, or a set of several, for one of the routers.
    pub(super) async fn stage(&self, at: usize, rules: &[String]) -> Subject {
        Subject::stage(self.api(), &self.routers[at].1, rules).await
    }

    /// Sends a request, kills the server a moment later, and starts it again. Returns what the server still answered.
    /// Without a moment the server is killed when it has answered.
    pub(super) async fn kill_during(
        &mut self,
        path: &str,
        body: &Value,
        moment: Option<Duration>,
    ) -> Option<Answer> {
        let (api, body) = (self.process.api.clone(), body.to_string().into_bytes());
        let answered = Notify::new();
        let sending = async {
            let answer = api.try_send("POST", path, Some(body)).await.ok();
            answered.notify_one();
            answer
        };
        let dying = async {
            match moment {
                // Not even a tick of the timer: a request may be answered within one.
                Some(Duration::ZERO) => {}
                Some(moment) => tokio::time::sleep(moment).await,
                None => answered.notified().await,
            }
            self.process.kill();
        };
        let (answer, ()) = tokio::join!(sending, dying);
        self.restart().await;
        answer
    }

    /// What holds after all kills of a test.
    pub(super) async fn check_end(&self, ends: &Ends) {
        let audit = self.api().get("/audit/validate").await.expect_status(200).body;
        assert_eq!(audit["valid"], true, "{audit}");
        for status in ["awaiting_confirm", "applying"] {
            let query = format!("/gateway-vpn/changes?outcome={status}");
            let left = self.api().get(&query).await.expect_status(200).body;
            assert_eq!(left["total"], 0, "{left}");
        }
        assert!(ends.0.len() > 1, "the kills fell on different moments: {ends:?}");
    }
}

/// How often each state was met after a kill.
#[derive(Debug, Default)]
pub(super) struct Ends(BTreeMap<String, usize>);

impl Ends {
    pub(super) fn count(&mut self, state: &str) {
        *self.0.entry(state.to_owned()).or_default() += 1;
    }

    pub(super) fn of(&self, state: &str) -> usize {
        self.0.get(state).copied().unwrap_or_default()
    }
}

/// Moments from the first byte of a request to its answer, spread over that time by chance. The first kill comes at
/// once and the last after the answer, so that the kills fall on different moments on a machine of any speed.
pub(super) struct Moments {
    span: Duration,
    kills: u32,
}

impl Moments {
    /// For a request of this kind that nothing disturbs; it began then and has just ended.
    pub(super) fn since(began: Instant, kills: u32) -> Self {
        Self { span: began.elapsed() * 3 / 2, kills }
    }

    /// The moment of one of the kills, counted from 0; `None` means after the answer.
    pub(super) fn of(&self, kill: u32, random: &mut Random) -> Option<Duration> {
        let part = self.span / self.kills;
        let within = u32::try_from(random.next(1000)).expect("it is small");
        match kill {
            0 => Some(Duration::ZERO),
            last if last + 1 == self.kills => None,
            kill => Some(part * kill + part * within / 1000),
        }
    }
}
