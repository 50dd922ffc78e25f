//! One behaviour a test, over HTTP with the API's own content types and credentials.
#![expect(clippy::disallowed_methods, reason = "the client speaks to a simulator on the loopback address")]

mod access;
mod answers;
mod applies;
mod concurrency;
mod filters;
mod ids;
mod rules;
mod samples;
mod system;
mod values;
mod versions;
mod walk;

use std::sync::Once;
use std::time::Duration;

use heddle_lab::Lab;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::{Pfsense, Release, Settings};

/// A running firewall, and a client with the administrator's password.
struct Peer {
    lab: Lab<Pfsense>,
    http: Client,
    user: (String, String),
}

impl Peer {
    async fn new() -> Self {
        Self::of(Settings::default()).await
    }

    async fn of_release(release: Release) -> Self {
        Self::of(Settings { release, ..Settings::default() }).await
    }

    /// With a clock that only the test moves.
    async fn of(settings: Settings) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
        let user = settings.admin.clone();
        let lab = Lab::builder(Pfsense::new(settings)).paused().start().await;
        let http =
            Client::builder().pool_max_idle_per_host(0).timeout(Duration::from_secs(20)).build().unwrap();
        Self { lab, http, user }
    }

    /// A request without credentials.
    fn bare(&self, method: &str, path: &str) -> RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("{}/api/v2{path}", self.lab.url()))
    }

    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.bare(method, path).basic_auth(&self.user.0, Some(&self.user.1))
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        let request = self.request(method, path);
        let request = if body.is_null() { request } else { request.json(body) };
        request.send().await.unwrap()
    }

    /// Code, response id and data of an answer in the envelope.
    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, String, Value) {
        let response = self.send(method, path, &body).await;
        let status = response.status().as_u16();
        let mut answer: Value = response.json().await.unwrap();
        assert_eq!(answer["code"], status, "{method} {path}");
        (status, answer["response_id"].as_str().unwrap().to_owned(), answer["data"].take())
    }

    /// The data of an answer that must be a success.
    #[track_caller]
    fn data(&self, method: &str, path: &str, body: Value) -> impl Future<Output = Value> {
        let (method, path) = (method.to_owned(), path.to_owned());
        async move {
            let shown = body.to_string();
            let (status, id, data) = self.ask(&method, &path, body).await;
            assert_eq!((status, id.as_str()), (200, "SUCCESS"), "{method} {path} {shown}");
            data
        }
    }

    async fn get(&self, path: &str) -> Value {
        self.data("GET", path, Value::Null).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.data("POST", path, body).await
    }

    async fn patch(&self, path: &str, body: Value) -> Value {
        self.data("PATCH", path, body).await
    }

    async fn delete(&self, path: &str) -> Value {
        self.data("DELETE", path, Value::Null).await
    }

    /// Code and response id of a refusal.
    async fn refusal(&self, method: &str, path: &str, body: Value) -> (u16, String) {
        let (status, id, _) = self.ask(method, path, body).await;
        (status, id)
    }

    /// One field of each object of a list.
    async fn column(&self, path: &str, field: &str) -> Vec<Value> {
        self.get(path).await.as_array().unwrap().iter().map(|row| row[field].clone()).collect()
    }

    fn pending(&self) -> Vec<String> {
        self.lab.lock().pending()
    }

    fn advance(&self, millis: u64) {
        self.lab.advance(Duration::from_millis(millis));
    }
}

fn refused(code: u16, id: &str) -> (u16, String) {
    (code, id.to_owned())
}

fn rule(descr: &str) -> Value {
    json!({ "type": "pass", "interface": ["LAN"], "ipprotocol": "inet", "protocol": "tcp", "source": "LAN",
        "destination": "any", "destination_port": "443", "descr": descr })
}
