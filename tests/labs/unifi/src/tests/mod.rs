//! One behaviour a test, over HTTP with the vendor's own credentials.
#![expect(clippy::disallowed_methods, reason = "the client speaks to a simulator on the loopback address")]

mod access;
mod clients;
mod devices;
mod events;
mod faults;
mod firewall;
mod networks;
mod official;
mod rest;
mod system;
mod versions;
mod walk;
mod wifi;

use std::sync::Once;
use std::time::Duration;

use heddle_lab::Lab;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::{Console, Kind, Release, Settings};

const KEY: &str = "lab-key-4f0c9a71d2e85b36";

/// A running console, and a client with the administrator's key or session.
struct Peer {
    lab: Lab<Console>,
    http: Client,
    kind: Kind,
    /// The cookie and the CSRF token of a session; none where the key is used.
    session: Option<(String, String)>,
    /// The official id of the first site.
    site: String,
}

impl Peer {
    async fn new() -> Self {
        Self::of(Settings::default()).await
    }

    async fn of_release(release: Release) -> Self {
        Self::of(Settings { release, ..Settings::default() }).await
    }

    /// With a clock that only the test moves. Writes to devices show at once.
    async fn of(settings: Settings) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
        let kind = settings.kind;
        let settings = Settings { settle: Duration::ZERO, ..settings };
        let lab = Lab::builder(Console::new(settings)).paused().start().await;
        let redirect = reqwest::redirect::Policy::none();
        let http = Client::builder().redirect(redirect).timeout(Duration::from_secs(10)).build().unwrap();
        let site = {
            let locked = lab.lock();
            let row = locked.store.having("", "site", "name", "default").unwrap();
            row["~uuid"].as_str().unwrap().to_owned()
        };
        let mut peer = Self { lab, http, kind, session: None, site };
        if kind == Kind::Classic {
            peer.sign_in("admin", "heddle-lab").await;
        }
        peer
    }

    /// Signs in with a name and a password; calls use the session from now on.
    async fn sign_in(&mut self, name: &str, password: &str) {
        let response = self.log_in(name, password).await;
        assert_eq!(response.status(), 200);
        let cookies: Vec<&str> =
            response.headers().get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
        let cookie = cookies[0].split(';').next().unwrap().to_owned();
        let csrf = response.headers().get("x-csrf-token").map_or("", |value| value.to_str().unwrap());
        self.session = Some((cookie, csrf.to_owned()));
    }

    async fn log_in(&self, name: &str, password: &str) -> Response {
        let path = if self.kind == Kind::Classic { "/api/login" } else { "/api/auth/login" };
        let body = json!({ "username": name, "password": password, "rememberMe": true });
        self.bare("POST", path).json(&body).send().await.unwrap()
    }

    /// A request without credentials, on the whole path.
    fn bare(&self, method: &str, path: &str) -> RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("{}{path}", self.lab.url()))
    }

    /// A request below the prefix, with the key or the session.
    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let prefix = if self.kind == Kind::Classic { "" } else { "/proxy/network" };
        let request = self.bare(method, &format!("{prefix}{path}"));
        match &self.session {
            Some((cookie, csrf)) => request.header("cookie", cookie).header("x-csrf-token", csrf),
            None => request.header("x-api-key", KEY),
        }
    }

    /// The whole path of a short one: `~` is the first interface below the site, `~2` the second, `~i` the official one.
    fn path(&self, short: &str) -> String {
        match short.split_once('/').unwrap_or((short, "")) {
            ("~", rest) => format!("/api/s/default/{rest}"),
            ("~2", rest) => format!("/v2/api/site/default/{rest}"),
            ("~i", rest) => format!("/integration/v1/sites/{}/{rest}", self.site),
            _ => short.to_owned(),
        }
    }

    /// Status and body of a call.
    async fn ask(&self, method: &str, short: &str, body: Value) -> (u16, Value) {
        let request = self.request(method, &self.path(short));
        let request = if body.is_null() { request } else { request.json(&body) };
        told(request.send().await.unwrap()).await
    }

    /// The body of a call that succeeds.
    async fn ok(&self, method: &str, short: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, short, body.clone()).await;
        assert!(status == 200 || status == 201, "{method} {short} {body} answered {status} {answer}");
        answer
    }

    async fn get(&self, short: &str) -> Value {
        self.ok("GET", short, Value::Null).await
    }

    /// The rows of a list of any interface.
    async fn rows(&self, short: &str) -> Vec<Value> {
        let answer = self.get(short).await;
        answer.as_array().or_else(|| answer["data"].as_array()).unwrap().clone()
    }

    /// The row of a list whose field has this value.
    async fn row(&self, short: &str, field: &str, value: &str) -> Value {
        let rows = self.rows(short).await;
        let found = rows.iter().find(|row| row[field] == value);
        found.unwrap_or_else(|| panic!("{short} has no {field}={value}: {rows:?}")).clone()
    }

    /// The new row of a table of the first interface.
    async fn add(&self, table: &str, body: Value) -> Value {
        self.ok("POST", &format!("~/rest/{table}"), body).await["data"][0].clone()
    }

    /// The row of a table of the first interface after a change.
    async fn change(&self, table: &str, id: &Value, body: Value) -> Value {
        let path = format!("~/rest/{table}/{}", id.as_str().unwrap());
        self.ok("PUT", &path, body).await["data"][0].clone()
    }

    /// The code of a refusal of any interface.
    async fn refused(&self, method: &str, short: &str, body: Value) -> String {
        let (status, answer) = self.ask(method, short, body.clone()).await;
        assert!(status >= 400, "{method} {short} {body} answered {status} {answer}");
        let code = answer["meta"]["msg"].as_str().or_else(|| answer["code"].as_str()).unwrap_or_default();
        code.to_owned()
    }

    /// A command of a manager.
    async fn command(&self, manager: &str, body: Value) -> Value {
        self.ok("POST", &format!("~/cmd/{manager}"), body).await["data"].clone()
    }

    /// The record of a device.
    async fn device(&self, mac: &str) -> Value {
        self.get(&format!("~/stat/device/{mac}")).await["data"][0].clone()
    }

    /// Moves the clock by a number of device steps.
    fn steps(&self, steps: u32) {
        self.lab.advance(Duration::from_secs(2) * steps);
    }
}

/// Status and body of an answer; `null` for an empty one, a text where it is no JSON.
async fn told(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let value =
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or(json!(text)) };
    (status, value)
}

const CORE: &str = "02:00:5e:00:01:02";
const OFFICE_AP: &str = "02:00:5e:00:01:11";
const ADA: &str = "02:00:5e:10:00:01";
const BEA: &str = "02:00:5e:10:00:07";
