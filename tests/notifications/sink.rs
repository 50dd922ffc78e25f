//! A service behind a channel: keeps what comes and answers as the test asks.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;

use crate::support::Options;

#[derive(Debug, Clone)]
pub(super) struct Got {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Got {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a header is ASCII"))
    }
}

pub(super) struct Sink {
    pub(super) url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Sink {
    /// Answers this to everything.
    pub(super) async fn start(status: StatusCode, answer: &'static str) -> Self {
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = got.clone();
        let keep = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
            let path = uri.path_and_query().map_or("", |whole| whole.as_str()).to_owned();
            kept.lock().unwrap().push(Got { method, path, headers, body: body.to_vec() });
            (status, answer)
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().unwrap());
        #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(keep)).await });
        Self { url, got }
    }

    /// The only thing that came since the last time.
    pub(super) fn only(&self) -> Got {
        let mut got = std::mem::take(&mut *self.got.lock().unwrap());
        assert_eq!(got.len(), 1, "{got:?}");
        got.remove(0)
    }
}

/// This machine's services can be reached.
pub(super) fn options() -> Options {
    Options::default().with("FABRIC_WEBHOOK_ALLOWED_HOSTS", "127.0.0.1")
}
