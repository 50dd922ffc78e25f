//! The baseline: what is said to it is sent to every connection that subscribed, and nothing else is done.
//!
//! In this process, or in one of its own where its memory is measured.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocketUpgrade};
use axum::routing::{any, post};
use tokio::runtime::Runtime;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// The word behind which this program is nothing but the baseline.
pub(crate) const ARGUMENT: &str = "bare-broadcast";
const WAITING_MAX: usize = 4096;
const READ_BUFFER_BYTES: usize = 2 * 1024;

pub(super) struct Bare {
    base: String,
    sender: broadcast::Sender<Utf8Bytes>,
    serving: JoinHandle<()>,
}

impl Bare {
    pub(super) async fn start() -> Self {
        let sender = broadcast::channel::<Utf8Bytes>(WAITING_MAX).0;
        let router =
            Router::new().route("/api/v1/ws", any(relay)).route("/say", post(say)).with_state(sender.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let base = format!("http://{}", listener.local_addr().expect("it is bound"));
        #[expect(clippy::disallowed_methods, reason = "a baseline is no part of the service")]
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { base, sender, serving }
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn say(&self, text: String) {
        self.sender.send(text.into()).expect("somebody listens");
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn relay(
    upgrade: WebSocketUpgrade,
    State(sender): State<broadcast::Sender<Utf8Bytes>>,
) -> axum::response::Response {
    // As small as ours: axum's own is most of a connection's memory.
    upgrade.read_buffer_size(READ_BUFFER_BYTES).on_upgrade(async move |mut socket| {
        // Whatever it says, it subscribes.
        let Some(Ok(_)) = socket.recv().await else { return };
        let mut receiver = sender.subscribe();
        drop(sender);
        let mut next = Utf8Bytes::from_static("{\"type\":\"subscribed\"}");
        while socket.send(Message::Text(next)).await.is_ok() {
            let Ok(text) = receiver.recv().await else { return };
            next = text;
        }
    })
}

async fn say(State(sender): State<broadcast::Sender<Utf8Bytes>>, text: String) {
    sender.send(text.into()).expect("somebody listens");
}

/// Serves until its standard input ends.
pub(crate) fn serve(runtime: &Runtime) {
    let bare = runtime.block_on(Bare::start());
    writeln!(std::io::stdout(), "{}", bare.base()).expect("who started it listens");
    std::io::stdin().lines().for_each(drop);
}

/// The baseline in a process of its own, which ends with this value.
pub(super) struct BareProcess {
    child: Child,
    base: String,
    http: reqwest::Client,
}

impl BareProcess {
    pub(super) fn start() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        let command = command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program can be started");
        let mut base = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut base).expect("it says where it is");
        #[expect(clippy::disallowed_methods, reason = "a bench is the outside world")]
        let http = reqwest::Client::builder().no_proxy().build().expect("a client can be built");
        Self { child, base: base.trim().to_owned(), http }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) async fn say(&self, text: String) {
        let answer = self.http.post(format!("{}/say", self.base)).body(text).send().await;
        assert!(answer.expect("it answers").status().is_success());
    }
}

impl Drop for BareProcess {
    fn drop(&mut self) {
        // It has ended already where it could not be reached.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
