//! The targets of a recorded call: a server of this process gives the answers that were recorded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use heddle_runtime::Exchange;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use crate::placed;

/// Headers of answers that are kept. Others change from run to run, or say something of a session.
const HEADERS: [&str; 5] = ["content-type", "etag", "link", "location", "retry-after"];
/// Most requests of a call that are told of as unknown.
const UNKNOWN_MAX: usize = 16;

/// A request and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    method: String,
    /// With its query.
    path: String,
    /// The body, where it counts and is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
    /// The fields, where they count and the body is a form: names and values in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    form: Option<Vec<(String, String)>>,
    status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    answer: String,
}

impl Said {
    /// # Errors
    /// There was no answer, or it is no text.
    pub(crate) fn of(exchange: &Exchange) -> anyhow::Result<Self> {
        let (method, path) = (exchange.method.clone(), exchange.path.clone());
        let Ok(answer) = &exchange.answer else {
            bail!("{method} {path} got no answer; only a call whose requests are answered is recorded")
        };
        let text = String::from_utf8(answer.body.clone());
        let headers = answer.headers.iter().filter(|(name, _)| HEADERS.contains(&name.as_str()));
        let headers =
            headers.map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into_owned()));
        Ok(Self {
            body: exchange.body.clone(),
            form: exchange.form.clone(),
            status: answer.status,
            headers: headers.collect(),
            answer: text.ok().with_context(|| format!("the answer to {method} {path} is no text"))?,
            method,
            path,
        })
    }

    /// The request as it is named to people.
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn is_for(&self, method: &Method, uri: &Uri, body: &[u8]) -> bool {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let is_body = |wanted: &Value| {
            serde_json::from_slice::<Value>(body).is_ok_and(|body| placed::is_json(Some(wanted), Some(&body)))
        };
        self.method == method.as_str()
            && placed::is_path(&self.path, path)
            && self.body.as_ref().is_none_or(is_body)
            && self.form.as_ref().is_none_or(|wanted| placed::is_form(wanted, body))
    }

    fn response(&self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, self.answer.clone()).into_response();
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// What was not asked for yet, and what was asked for and is not known.
struct Left {
    said: Vec<Said>,
    unknown: Vec<String>,
}

/// How the requests of a call differ from the recorded ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Missed {
    /// Those that were made and are not recorded.
    pub(crate) unknown: Vec<String>,
    /// Those that are recorded and were not made.
    pub(crate) unmade: Vec<String>,
}

/// A server on this machine.
pub(crate) struct Replay {
    listener: TcpListener,
    url: String,
    left: Arc<Mutex<Left>>,
}

impl Replay {
    pub(crate) async fn start(said: Vec<Said>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free")?;
        let url = format!("http://{}", listener.local_addr()?);
        Ok(Self { listener, url, left: Arc::new(Mutex::new(Left { said, unknown: Vec::new() })) })
    }

    /// Puts this server in the place of all targets.
    pub(crate) fn take_the_place(&self, manifest: &mut Value, settings: &mut Map<String, Value>) {
        let targets = manifest.pointer_mut("/capabilities/http").and_then(Value::as_array_mut);
        // What is no object is refused with the whole manifest, in the words of a server.
        for target in targets.into_iter().flatten().filter(|target| target.is_object()) {
            target["private"] = json!(true);
            match target["origin"]["setting"].as_str() {
                Some(setting) => drop(settings.insert(setting.to_owned(), json!(self.url))),
                None => target["origin"] = json!(self.url),
            }
        }
    }

    /// Serves while this work is done. Returns which requests were not as recorded, too.
    pub(crate) async fn during<T>(
        self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<(T, Missed)> {
        let app = Router::new().fallback(answer).with_state(Arc::clone(&self.left));
        let served = axum::serve(self.listener, app);
        let done = tokio::select! {
            done = work => done?,
            ended = served.into_future() => {
                ended?;
                bail!("the server of recorded answers ended early")
            }
        };
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let unmade = left.said.iter().map(Said::name).collect();
        Ok((done, Missed { unknown: left.unknown.clone(), unmade }))
    }
}

async fn answer(State(left): State<Arc<Mutex<Left>>>, method: Method, uri: Uri, body: Bytes) -> Response {
    let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = left.said.iter().position(|said| said.is_for(&method, &uri, &body)) {
        return left.said.remove(found).response();
    }
    if left.unknown.len() < UNKNOWN_MAX {
        left.unknown.push(format!("{method} {uri}"));
    }
    (StatusCode::NOT_IMPLEMENTED, "this request was not recorded").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, body: Option<Value>) -> Said {
        let (method, status, headers) = ("POST".to_owned(), 200, BTreeMap::new());
        Said { method, path: path.to_owned(), body, form: None, status, headers, answer: "yes".to_owned() }
    }

    #[test]
    fn a_request_is_known_by_its_method_path_query_and_body() {
        let uri: Uri = "/v1/a?b=c".parse().unwrap();
        let body = br#"{"n": 1}"#;
        let is_it = |said: &Said, method| said.is_for(&method, &uri, body);
        assert!(is_it(&said("/v1/a?b=c", None), Method::POST));
        assert!(is_it(&said("/v1/a?b=c", Some(json!({ "n": 1 }))), Method::POST));
        assert!(!is_it(&said("/v1/a?b=c", Some(json!({ "n": 2 }))), Method::POST));
        assert!(!is_it(&said("/v1/a", None), Method::POST) && !is_it(&said("/v1/a?b=c", None), Method::GET));
    }

    #[test]
    fn each_answer_is_given_once_and_every_target_is_replaced() {
        crate::session::block_on(async {
            let replay = Replay::start(vec![said("/v1/a", None), said("/v1/b?c=d", None)]).await.unwrap();
            let mut manifest = json!({ "capabilities": { "http": [
                { "name": "api", "origin": "https://a.test" }, { "name": "own", "origin": { "setting": "url" } }, "api",
            ] } });
            let mut settings = Map::new();
            replay.take_the_place(&mut manifest, &mut settings);
            let url = replay.url.clone();
            assert_eq!(manifest["capabilities"]["http"][0], json!({ "name": "api", "origin": url, "private": true }));
            assert_eq!(settings["url"], json!(url));
            assert_eq!(manifest["capabilities"]["http"][2], json!("api"), "it is for a server to refuse");
            let left = Arc::clone(&replay.left);
            let asked = || answer(State(Arc::clone(&left)), Method::POST, Uri::from_static("/v1/a"), Bytes::new());
            assert_eq!(asked().await.status(), StatusCode::OK);
            for _ in 0..=UNKNOWN_MAX {
                assert_eq!(asked().await.status(), StatusCode::NOT_IMPLEMENTED);
            }
            let ((), missed) = replay.during(async { Ok(()) }).await.unwrap();
            assert_eq!((missed.unknown.len(), missed.unknown[0].as_str()), (UNKNOWN_MAX, "POST /v1/a"));
            assert_eq!(missed.unmade, ["POST /v1/b?c=d"]);
        })
        .unwrap();
    }
}
