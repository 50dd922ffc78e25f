//! One behaviour a test, over HTTP with the API's own content types and credentials.
#![expect(clippy::disallowed_methods, reason = "the client speaks to a simulator on the loopback address")]

mod access;
mod actions;
mod apply;
mod faults;
mod items;
mod order;
mod system;
mod values;
mod vpn;
mod walk;

use std::sync::Once;
use std::time::Duration;

use heddle_lab::Lab;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::{Firewall, Release, Settings};

/// A running firewall, and a client with the administrator's key.
struct Peer {
    lab: Lab<Firewall>,
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
        let lab = Lab::builder(Firewall::new(settings)).paused().start().await;
        let http =
            Client::builder().pool_max_idle_per_host(0).timeout(Duration::from_secs(10)).build().unwrap();
        Self { lab, http, user }
    }

    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let url = format!("{}/api/{path}", self.lab.url());
        self.http.request(method.parse().unwrap(), url).basic_auth(&self.user.0, Some(&self.user.1))
    }

    async fn send(&self, path: &str, body: &Value) -> Response {
        self.request("POST", path).json(body).send().await.unwrap()
    }

    /// Body of a POST that answers 200.
    #[track_caller]
    fn post(&self, path: &str, body: Value) -> impl Future<Output = Value> {
        let path = path.to_owned();
        async move {
            let response = self.send(&path, &body).await;
            assert_eq!(response.status(), 200, "{path} {body}");
            response.json().await.unwrap()
        }
    }

    async fn get(&self, path: &str) -> Value {
        let response = self.request("GET", path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }

    async fn rows(&self, path: &str) -> Vec<Value> {
        let all = json!({ "current": 1, "rowCount": -1, "searchPhrase": "" });
        let mut body = self.post(path, all).await;
        serde_json::from_value(body["rows"].take()).unwrap()
    }

    /// The id of a new item.
    async fn add(&self, path: &str, body: Value) -> String {
        let made = self.post(path, body).await;
        assert_eq!(made["result"], "saved", "{made}");
        made["uuid"].as_str().unwrap().to_owned()
    }

    fn pending(&self) -> Vec<String> {
        self.lab.lock().pending()
    }

    /// One value as it runs.
    fn running(&self, node: &str, id: &str, field: &str) -> String {
        self.lab.lock().running.value(node, id, field).to_owned()
    }
}

const RULES: &str = "Firewall/Filter:rules.rule";

fn rule(description: &str) -> Value {
    json!({ "rule": { "interface": "lan", "protocol": "TCP", "destination_port": "443",
        "description": description } })
}
