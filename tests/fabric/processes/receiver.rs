//! A receiver of steps that counts what came, and lets some wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long an ordinary answer takes: a step is under way for a while.
const DELAY: Duration = Duration::from_millis(30);
/// An event with such a name is held.
const HELD: &str = "held-";

/// The name of an event that waits at the receiver until its round is released.
pub(super) fn held(round: usize, number: usize) -> String {
    format!("{HELD}{round}-{number}")
}

struct Kept {
    /// How often each event came, by name.
    got: Mutex<BTreeMap<String, usize>>,
    waiting: Mutex<BTreeSet<String>>,
    /// Rounds that are released.
    released: watch::Sender<usize>,
}

pub(super) struct Receiver {
    kept: Arc<Kept>,
    url: String,
    serving: JoinHandle<()>,
}

impl Receiver {
    pub(super) async fn start() -> Self {
        let kept = Arc::new(Kept {
            got: Mutex::default(),
            waiting: Mutex::default(),
            released: watch::channel(0).0,
        });
        let router = Router::new().route("/", post(take)).with_state(kept.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        #[expect(clippy::disallowed_methods, reason = "a receiver ends with its test")]
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { kept, url, serving }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn got(&self) -> BTreeMap<String, usize> {
        self.kept.got.lock().unwrap().clone()
    }

    /// Events whose request is under way and waits.
    pub(super) fn waiting(&self) -> BTreeSet<String> {
        self.kept.waiting.lock().unwrap().clone()
    }

    /// Answers what waits of this round, and what still comes of it.
    pub(super) fn release(&self, round: usize) {
        self.kept.released.send_replace(round + 1);
        self.kept.waiting.lock().unwrap().clear();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State(kept): State<Arc<Kept>>, body: String) {
    let event: Value = serde_json::from_str(&body).unwrap();
    let name = event["payload"]["name"].as_str().unwrap().to_owned();
    *kept.got.lock().unwrap().entry(name.clone()).or_default() += 1;
    let round = name.strip_prefix(HELD).and_then(|rest| rest.split('-').next());
    let Some(round) = round.map(|round| round.parse::<usize>().unwrap()) else {
        tokio::time::sleep(DELAY).await;
        return;
    };
    let mut released = kept.released.subscribe();
    if *released.borrow() <= round {
        kept.waiting.lock().unwrap().insert(name);
    }
    released.wait_for(|released| *released > round).await.unwrap();
}
