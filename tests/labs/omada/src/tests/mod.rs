//! The simulated controller over HTTP, as an adapter meets it.

mod clients;
mod collections;
mod devices;
mod doors;
mod every_route;
mod faults;
mod settings;
mod system;
mod web;
mod webhooks;
mod wireless;

use std::sync::Once;
use std::time::Duration;

use heddle_lab::Lab;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::{Omada, Seed};

/// A controller that runs, signed in on both surfaces.
struct Peer {
    lab: Lab<Omada>,
    http: Client,
    id: String,
    /// The first site.
    site: String,
    token: String,
    csrf: String,
    cookie: String,
}

impl Peer {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a controller without a limit of calls, changed by the test.
    async fn with(change: impl FnOnce(&mut Omada)) -> Self {
        let mut omada = Omada::new(Seed::default());
        omada.rate_limit = None;
        change(&mut omada);
        Self::of(omada).await
    }

    async fn of(omada: Omada) -> Self {
        let lab = Lab::builder(omada).paused().start().await;
        let site = lab.lock().store.rows("", "system.site")[0]["siteId"].as_str().unwrap().to_owned();
        let id = lab.lock().omadac_id.clone();
        let mut peer = Self {
            lab,
            http: http(),
            id,
            site,
            token: String::new(),
            csrf: String::new(),
            cookie: String::new(),
        };
        peer.sign_in().await;
        peer
    }

    async fn sign_in(&mut self) {
        let answer = self.grant("lab-secret").await;
        self.token = answer["result"]["accessToken"].as_str().unwrap().to_owned();
        let body = json!({"username": "admin", "password": "omada"});
        let response =
            self.request("POST", &format!("/{}/api/v2/login", self.id)).json(&body).send().await.unwrap();
        let cookie = response.headers()["set-cookie"].to_str().unwrap().to_owned();
        cookie.split(';').next().unwrap().clone_into(&mut self.cookie);
        let answer: Value = response.json().await.unwrap();
        answer["result"]["token"].as_str().unwrap().clone_into(&mut self.csrf);
    }

    async fn grant(&self, secret: &str) -> Value {
        let body = json!({"omadacId": self.id, "client_id": "lab-client", "client_secret": secret});
        let path = "/openapi/authorize/token?grant_type=client_credentials";
        self.request("POST", path).json(&body).send().await.unwrap().json().await.unwrap()
    }

    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("{}{path}", self.lab.url()))
    }

    /// The whole path of a short one: `v1 site devices`, `web site devices`, `v1 all sites`.
    fn path(&self, short: &str) -> String {
        let (version, rest) = short.split_once(' ').unwrap();
        let (scope, rest) = rest.split_once(' ').unwrap();
        let scope = if scope == "site" { format!("sites/{}/", self.site) } else { String::new() };
        match version {
            "web" => format!("/{}/api/v2/{scope}{rest}", self.id),
            _ => format!("/openapi/{version}/{}/{scope}{rest}", self.id),
        }
    }

    async fn send(&self, method: &str, short: &str, body: &Value) -> Response {
        let request = self.request(method, &self.path(short));
        let request = if short.starts_with("web ") {
            request.header("cookie", &self.cookie).header("csrf-token", &self.csrf)
        } else {
            request.header("authorization", format!("AccessToken={}", self.token))
        };
        let request = if body.is_null() { request } else { request.json(body) };
        request.send().await.unwrap()
    }

    /// The envelope of an answer.
    async fn call(&self, method: &str, short: &str, body: Value) -> Value {
        let text = self.send(method, short, &body).await.text().await.unwrap();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{method} {short} answered {text}"))
    }

    /// The result of a call that succeeds.
    #[track_caller]
    fn ok(&self, method: &str, short: &str, body: Value) -> impl Future<Output = Value> {
        let (method, short) = (method.to_owned(), short.to_owned());
        async move {
            let answer = self.call(&method, &short, body).await;
            assert_eq!(answer["errorCode"], 0, "{method} {short}: {answer}");
            answer["result"].clone()
        }
    }

    /// The code of a call.
    async fn code(&self, method: &str, short: &str, body: Value) -> i64 {
        self.call(method, short, body).await["errorCode"].as_i64().unwrap()
    }

    async fn get(&self, short: &str) -> Value {
        self.ok("GET", short, Value::Null).await
    }

    /// The rows of a list.
    async fn rows(&self, short: &str) -> Vec<Value> {
        let pages = if short.starts_with("web ") {
            "currentPage=1&currentPageSize=500"
        } else {
            "page=1&pageSize=500"
        };
        let separator = if short.contains('?') { '&' } else { '?' };
        let result = self.get(&format!("{short}{separator}{pages}")).await;
        result.as_array().or_else(|| result["data"].as_array()).unwrap().clone()
    }

    /// The row of a list with this name.
    async fn named(&self, short: &str, field: &str, name: &str) -> Option<Value> {
        self.rows(short).await.into_iter().find(|row| row[field] == name)
    }

    /// Moves the clock by a number of device steps.
    fn steps(&self, steps: u32) {
        self.lab.advance(Duration::from_secs(2) * steps);
    }
}

#[expect(clippy::disallowed_methods, reason = "the client of a test calls the simulator of the same test")]
fn http() -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
    let redirect = reqwest::redirect::Policy::none();
    Client::builder().redirect(redirect).timeout(Duration::from_secs(10)).build().unwrap()
}

/// A body that the vendor accepts: every required field, with the lowest value that its limits allow.
fn sample(field: &crate::facts::Field) -> Value {
    use crate::facts::Kind;
    if field.is_array {
        let one = crate::facts::Field { is_array: false, ..field.clone() };
        return json!([sample(&one)]);
    }
    match field.kind {
        Kind::Text if !field.values.is_empty() => json!(field.values[0]),
        Kind::Text => {
            let mut texts = (1..=64).map(|length| json!("x".repeat(length)));
            texts.find(|text| crate::shape::fits(text, field)).unwrap()
        }
        Kind::Shape(_) => {
            let inside = field.inside().unwrap().iter().filter(|(_, field)| field.is_required);
            Value::Object(inside.map(|(name, field)| (name.clone(), sample(field))).collect())
        }
        _ => crate::shape::blank(field),
    }
}
