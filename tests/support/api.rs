//! A client of the REST API.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::conformance::Known;

/// How long a request may take: longer than the slowest answer, which waits for a device or its window.
const ANSWER_LIMIT: std::time::Duration = std::time::Duration::from_mins(4);
/// Routes with a limit of a few requests for each address.
const LIMITED: &[&str] = &[
    "/auth/login",
    "/auth/login/mfa",
    "/auth/token",
    "/auth/register",
    "/auth/password/reset-request",
    "/auth/sso/ldap/authenticate",
];

/// Another client with each call, from the network for such tests (198.18.0.0/15).
fn next_address() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let offset = COUNT.fetch_add(1, Ordering::Relaxed) % (1 << 17);
    Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + offset).to_string()
}

#[derive(Debug, Clone)]
pub(crate) struct Api {
    base: String,
    token: Option<String>,
    headers: Vec<(String, String)>,
    http: reqwest::Client,
    /// What every answer is checked against.
    contract: Known,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
    /// Null when the body is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    #[track_caller]
    pub(crate) fn expect_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "answer: {}", self.text);
        self
    }

    /// The stable word of an error.
    pub(crate) fn error_type(&self) -> &str {
        self.body["error"]["type"].as_str().unwrap_or_default()
    }

    pub(crate) fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl Api {
    pub(crate) fn new(base: &str) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
        // Reading the system's certificates takes longer than most tests, and no server here speaks TLS.
        // A server that hangs fails the test that asked it, and not the whole run.
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).timeout(ANSWER_LIMIT).build();
        let http = http.expect("a client can be built");
        Self { base: base.to_owned(), token: None, headers: Vec::new(), http, contract: Known::default() }
    }

    /// A client that need not ask the server for its document.
    pub(crate) fn knowing(mut self, contract: &Known) -> Self {
        self.contract = contract.clone();
        self
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Sends this header with every request; replaces one of the same name.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut with = self.clone();
        with.headers.retain(|(known, _)| known != name);
        with.headers.push((name.to_owned(), value.to_owned()));
        with
    }

    /// Requests with an id of the test's own.
    pub(crate) fn with_request_id(&self, id: &str) -> Self {
        self.with("x-request-id", id)
    }

    /// The same client at a fixed address, as a trusted proxy names it.
    pub(crate) fn at_ip(&self, ip: &str) -> Self {
        self.with("x-forwarded-for", ip)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, Some(body.to_string().into_bytes())).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, Some(body.to_string().into_bytes())).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, Some(body.to_string().into_bytes())).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None).await
    }

    /// Sends bytes as they are, to a path below the version prefix.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<Vec<u8>>) -> Answer {
        self.try_send(method, path, body).await.expect("the server answers")
    }

    pub(crate) async fn try_send(
        &self,
        method: &str,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> reqwest::Result<Answer> {
        self.try_send_root(method, &format!("/api/v1{path}"), body).await
    }

    /// A path outside the version prefix.
    pub(crate) async fn get_root(&self, path: &str) -> Answer {
        self.try_send_root("GET", path, None).await.expect("the server answers")
    }

    pub(crate) async fn try_send_root(
        &self,
        method: &str,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> reqwest::Result<Answer> {
        let contract = self.contract.of(&self.http, &self.base).await?;
        let url = format!("{}{path}", self.base);
        let mut headers = self.headers.clone();
        let below = path.strip_prefix("/api/v1");
        let route = below.unwrap_or_default().split('?').next().unwrap_or_default().trim_end_matches('/');
        if method == "POST"
            && LIMITED.contains(&route)
            && !headers.iter().any(|(name, _)| name == "x-forwarded-for")
        {
            headers.push(("x-forwarded-for".to_owned(), next_address()));
        }
        let mut request = self.http.request(method.parse().expect("a method"), url);
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            if !headers.iter().any(|(name, _)| name == "content-type") {
                request = request.header("content-type", "application/json");
            }
            request = request.body(body);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        let body = serde_json::from_str(&text).unwrap_or_default();
        let answer = Answer { status, headers, text, body };
        if let Some(below) = below {
            contract.check(method, below, &answer);
        }
        Ok(answer)
    }
}
