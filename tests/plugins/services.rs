//! The services that the example plugins talk to, as far as they do: each keeps what it was told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

/// What each service wants in a request.
pub(super) const SLACK_TOKEN: &str = "xoxb-canary-1";
pub(super) const GRAFANA_TOKEN: &str = "glsa_canary_2";
pub(super) const ZAMMAD_TOKEN: &str = "zammad-canary-3";
pub(super) const ABUSEIPDB_KEY: &str = "abuseipdb-canary-4";

/// The only channel that the app of Slack is in, by name and by id.
const CHANNEL: (&str, &str) = ("#network", "C0123456789");

/// All of them on one address: their paths differ.
pub(super) struct Services {
    pub(super) url: String,
    kept: Arc<Mutex<Kept>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Services {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Default)]
pub(super) struct Kept {
    /// Of Slack.
    pub(super) messages: Vec<Value>,
    /// Of Grafana.
    pub(super) annotations: Vec<Value>,
    /// Of Zammad, by id.
    pub(super) tickets: BTreeMap<u64, Ticket>,
    /// Scores of `AbuseIPDB`.
    pub(super) scores: BTreeMap<String, u32>,
    /// Look-ups that count against the daily ones.
    pub(super) look_ups: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Ticket {
    pub(super) title: String,
    pub(super) state: String,
    /// Texts, the oldest first.
    pub(super) articles: Vec<String>,
}

impl Services {
    pub(super) async fn start() -> Self {
        let kept = Arc::<Mutex<Kept>>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&kept));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        #[expect(
            clippy::disallowed_methods,
            reason = "the services are the outside world, and end with the test"
        )]
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, kept, serving }
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }
}

/// A request as the services look at it.
struct Asked<'a> {
    method: &'a str,
    path: &'a str,
    query: Vec<(String, String)>,
    headers: &'a HeaderMap,
    body: Value,
}

impl Asked<'_> {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn values(&self, name: &str) -> Vec<&str> {
        let named = self.query.iter().filter(|(found, _)| found == name);
        named.map(|(_, value)| value.as_str()).collect()
    }
}

async fn answer(
    State(kept): State<Arc<Mutex<Kept>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let asked = Asked {
        method: method.as_str(),
        path: uri.path(),
        query: query.into_owned().collect(),
        headers: &headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let mut kept = kept.lock().unwrap();
    let (status, body) = match asked.path {
        "/api/chat.postMessage" => slack(&mut kept, &asked),
        "/api/annotations" => grafana(&mut kept, &asked),
        "/api/v2/check" => abuseipdb(&mut kept, &asked),
        path if path.starts_with("/api/v1/") => zammad(&mut kept, &asked),
        _ => (404, json!({})),
    };
    (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
}

fn slack(kept: &mut Kept, asked: &Asked<'_>) -> (u16, Value) {
    if asked.header("authorization") != format!("Bearer {SLACK_TOKEN}") {
        return (200, json!({ "ok": false, "error": "invalid_auth" }));
    }
    if ![CHANNEL.0, CHANNEL.1].contains(&asked.body["channel"].as_str().unwrap_or_default()) {
        return (200, json!({ "ok": false, "error": "channel_not_found" }));
    }
    kept.messages.push(asked.body.clone());
    let ts = format!("1795471200.{:06}", kept.messages.len());
    (200, json!({ "ok": true, "channel": CHANNEL.1, "ts": ts, "message": asked.body }))
}

fn grafana(kept: &mut Kept, asked: &Asked<'_>) -> (u16, Value) {
    if asked.header("authorization") != format!("Bearer {GRAFANA_TOKEN}") {
        return (401, json!({ "message": "Invalid API key" }));
    }
    if asked.method == "POST" {
        let id = kept.annotations.len() + 1;
        let mut annotation = asked.body.clone();
        annotation["id"] = json!(id);
        kept.annotations.push(annotation);
        return (200, json!({ "message": "Annotation added", "id": id }));
    }
    let tags = asked.values("tags");
    let has_all = |annotation: &&Value| {
        let own = annotation["tags"].as_array().unwrap();
        tags.iter().all(|tag| own.iter().any(|found| found == tag))
    };
    let found: Vec<&Value> = kept.annotations.iter().rev().filter(has_all).collect();
    (200, json!(found))
}

fn abuseipdb(kept: &mut Kept, asked: &Asked<'_>) -> (u16, Value) {
    if asked.header("key") != ABUSEIPDB_KEY {
        return (401, json!({ "errors": [{ "detail": "Authentication failed.", "status": 401 }] }));
    }
    kept.look_ups += 1;
    let address = asked.values("ipAddress")[0];
    let score = kept.scores.get(address).copied().unwrap_or(0);
    let data = json!({
        "ipAddress": address, "isPublic": true, "ipVersion": 4, "isWhitelisted": null, "abuseConfidenceScore": score,
        "countryCode": "NL", "usageType": "Data Center/Web Hosting/Transit", "isp": "Example", "totalReports": score,
        "lastReportedAt": null,
    });
    (200, json!({ "data": data }))
}

fn zammad(kept: &mut Kept, asked: &Asked<'_>) -> (u16, Value) {
    if asked.header("authorization") != format!("Token token={ZAMMAD_TOKEN}") {
        return (401, json!({ "error": "Can't find User for Token" }));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match (asked.method, asked.path.strip_prefix("/api/v1/").unwrap_or_default()) {
        ("GET", "users/me") => (200, json!({ "id": 3, "login": "noc@example.net" })),
        ("POST", "tickets") => {
            let id = kept.tickets.keys().next_back().map_or(7, |last| last + 1);
            let articles = vec![text(&asked.body["article"]["body"])];
            let ticket = Ticket { title: text(&asked.body["title"]), state: "new".to_owned(), articles };
            let shown = shown(id, &ticket);
            kept.tickets.insert(id, ticket);
            (201, shown)
        }
        ("POST", "ticket_articles") => {
            let id = asked.body["ticket_id"].as_u64().unwrap_or_default();
            let Some(ticket) = kept.tickets.get_mut(&id) else {
                return (422, json!({ "error": "No ticket" }));
            };
            ticket.articles.push(text(&asked.body["body"]));
            (201, json!({ "id": 100 + ticket.articles.len(), "ticket_id": id }))
        }
        (method, path) => {
            let id = path.strip_prefix("tickets/").and_then(|id| id.parse().ok()).unwrap_or(0);
            let Some(ticket) = kept.tickets.get_mut(&id) else {
                return (404, json!({ "error": format!("Couldn't find Ticket with 'id'={id}") }));
            };
            if method == "PUT" {
                ticket.state = text(&asked.body["state"]);
                ticket.articles.extend(asked.body["article"]["body"].as_str().map(str::to_owned));
            }
            (200, shown(id, ticket))
        }
    }
}

/// A ticket with the names of its relations.
fn shown(id: u64, ticket: &Ticket) -> Value {
    json!({
        "id": id, "number": format!("{}", 69_000 + id), "title": ticket.title, "state": ticket.state,
        "article_count": ticket.articles.len(), "updated_at": "2026-11-20T20:55:14.000Z",
    })
}
