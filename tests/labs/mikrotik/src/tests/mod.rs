//! One behaviour a test, over HTTP with the API's own content type and credentials.
#![expect(clippy::disallowed_methods, reason = "the client speaks to a simulator on the loopback address")]

mod access;
mod commands;
mod errors;
mod faults;
mod files;
mod network;
mod order;
mod reach;
mod rows;
mod scripts;
mod system;
mod values;
mod versions;
mod vpn;
mod walk;

use std::sync::Once;
use std::time::Duration;

use heddle_lab::Lab;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::{Release, Router, Settings};

/// A running router, and a client with the administrator's password.
struct Peer {
    lab: Lab<Router>,
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

    /// With a clock that only the test moves, and commands a hundred times as fast.
    async fn of(settings: Settings) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
        let user = settings.admin.clone();
        let settings = Settings { second: Duration::from_millis(10), ..settings };
        let lab = Lab::builder(Router::new(settings)).paused().start().await;
        let http =
            Client::builder().pool_max_idle_per_host(0).timeout(Duration::from_secs(10)).build().unwrap();
        Self { lab, http, user }
    }

    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let url = format!("{}/rest/{path}", self.lab.url());
        self.http.request(method.parse().unwrap(), url).basic_auth(&self.user.0, Some(&self.user.1))
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Response {
        self.request(method, path).json(&body).send().await.unwrap()
    }

    /// Status and body of a request with a body.
    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        told(self.send(method, path, body).await).await
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = told(self.request("GET", path).send().await.unwrap()).await;
        assert_eq!(status, 200, "{path} {body}");
        body
    }

    async fn rows(&self, path: &str) -> Vec<Value> {
        serde_json::from_value(self.get(path).await).unwrap()
    }

    /// Body of a command that answers 200.
    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask("POST", path, body.clone()).await;
        assert_eq!(status, 200, "{path} {body} {answer}");
        answer
    }

    /// The new row.
    async fn add(&self, path: &str, body: Value) -> Value {
        let (status, row) = self.ask("PUT", path, body.clone()).await;
        assert!(status == 201 || status == 200, "{path} {body} {status} {row}");
        row
    }

    /// The row after a change.
    async fn change(&self, path: &str, id: &str, body: Value) -> Value {
        let (status, row) = self.ask("PATCH", &format!("{path}/{id}"), body.clone()).await;
        assert_eq!(status, 200, "{path}/{id} {body} {row}");
        row
    }

    async fn delete(&self, path: &str, id: &str) -> u16 {
        self.request("DELETE", &format!("{path}/{id}")).send().await.unwrap().status().as_u16()
    }

    /// The first row with a value.
    async fn row(&self, path: &str, field: &str, value: &str) -> Value {
        let rows = self.rows(path).await;
        let found = rows.iter().find(|row| row[field] == value);
        found.unwrap_or_else(|| panic!("{path} has no row with {field}={value}: {rows:?}")).clone()
    }

    /// The detail of a refusal with 400.
    async fn refused(&self, method: &str, path: &str, body: Value) -> String {
        let (status, answer) = self.ask(method, path, body.clone()).await;
        assert_eq!(status, 400, "{method} {path} {body} {answer}");
        assert_eq!(answer["error"], 400);
        assert_eq!(answer["message"], "Bad Request");
        answer["detail"].as_str().unwrap_or_default().to_owned()
    }
}

/// Status and body of an answer; `null` for an empty one.
async fn told(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = response.bytes().await.unwrap();
    let value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    (status, value)
}

fn id(row: &Value) -> &str {
    row[".id"].as_str().unwrap()
}

const FILTER: &str = "ip/firewall/filter";

/// The comments of the filter's rules in their order.
async fn comments(peer: &Peer) -> Vec<String> {
    let rows = peer.rows(FILTER).await;
    rows.iter().map(|row| row["comment"].as_str().unwrap_or_default().to_owned()).collect()
}
