//! A client of the REST API.

use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) struct Api {
    base: String,
    token: Option<String>,
    headers: Vec<(&'static str, String)>,
    http: reqwest::Client,
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
        let http = reqwest::Client::builder().no_proxy().build().expect("a client can be built");
        Self { base: base.to_owned(), token: None, headers: Vec::new(), http }
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

    /// Sends this header with every request.
    pub(crate) fn with(&self, name: &'static str, value: &str) -> Self {
        let mut with = self.clone();
        with.headers.push((name, value.to_owned()));
        with
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, Some(body.to_string().into_bytes())).await
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
        let url = format!("{}/api/v1{path}", self.base);
        let mut request = self.http.request(method.parse().expect("a method"), url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        let body = serde_json::from_str(&text).unwrap_or_default();
        Ok(Answer { status, headers, text, body })
    }
}
