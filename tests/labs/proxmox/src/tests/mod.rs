//! One behaviour each, over HTTP, as the administrator's API token unless a test says otherwise.

mod access;
mod ceph;
mod faults;
mod firewall;
mod guests;
mod network;
mod schema;
mod storage;
mod tasks;

use std::sync::Once;
use std::time::Duration;

use heddle_lab::Lab;
use hyper::ext::ReasonPhrase;
use reqwest::Client;
use serde_json::{Value, json};

use crate::{AUDITOR_TOKEN, Proxmox, ROOT_TOKEN, Setup};

/// A cluster that is served, its clock stopped, and a client of it.
struct Peer {
    lab: Lab<Proxmox>,
    http: Client,
    token: &'static str,
}

/// What a call brought.
#[derive(Debug)]
struct Reply {
    status: u16,
    reason: String,
    body: Value,
}

impl Peer {
    async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    #[expect(clippy::disallowed_methods, reason = "the client of a test")]
    async fn with(setup: Setup) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
        let setup = Setup { login_delay: Duration::ZERO, ..setup };
        let lab = Lab::builder(Proxmox::new(setup)).paused().start().await;
        let http = Client::builder().timeout(Duration::from_secs(5)).build().unwrap();
        Self { lab, http, token: ROOT_TOKEN }
    }

    fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("{}/api2/json{path}", self.lab.url()))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Reply {
        let response = request.send().await.unwrap();
        let phrase = response.extensions().get::<ReasonPhrase>();
        let reason = phrase.map(|phrase| String::from_utf8_lossy(phrase.as_bytes()).into_owned());
        let status = response.status().as_u16();
        Reply { status, reason: reason.unwrap_or_default(), body: response.json().await.unwrap() }
    }

    /// A call with a form body, which GET and DELETE have not.
    async fn call(&self, method: &str, path: &str, form: &[(&str, &str)]) -> Reply {
        let request = self.request(method, path).header("authorization", self.token);
        self.send(if form.is_empty() { request } else { request.form(form) }).await
    }

    #[track_caller]
    fn data(reply: Reply) -> Value {
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body["data"].clone()
    }

    async fn get(&self, path: &str) -> Value {
        Self::data(self.call("GET", path, &[]).await)
    }

    async fn ok(&self, method: &str, path: &str, form: &[(&str, &str)]) -> Value {
        Self::data(self.call(method, path, form).await)
    }

    /// Status and reason of a refused call.
    async fn refused(&self, method: &str, path: &str, form: &[(&str, &str)]) -> (u16, String) {
        let reply = self.call(method, path, form).await;
        assert_ne!(reply.status, 200, "{reply:?}");
        (reply.status, reply.reason)
    }

    /// The fault that a call finds with one parameter.
    async fn error(&self, method: &str, path: &str, form: &[(&str, &str)], name: &str) -> String {
        let reply = self.call(method, path, form).await;
        assert_eq!(
            (reply.status, reply.reason.as_str()),
            (400, "Parameter verification failed."),
            "{reply:?}"
        );
        reply.body["errors"][name].as_str().unwrap_or_default().to_owned()
    }

    async fn task_status(&self, upid: &Value) -> Value {
        let upid = upid.as_str().unwrap();
        let node = upid.split(':').nth(1).unwrap();
        self.get(&format!("/nodes/{node}/tasks/{upid}/status")).await
    }

    /// Starts a task, lets its time pass, and gives how it ended.
    async fn run(&self, method: &str, path: &str, form: &[(&str, &str)]) -> String {
        let upid = self.ok(method, path, form).await;
        self.lab.advance(Duration::from_mins(1));
        let status = self.task_status(&upid).await;
        assert_eq!(status["status"], "stopped", "{status}");
        status["exitstatus"].as_str().unwrap().to_owned()
    }
}
