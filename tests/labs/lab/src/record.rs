//! What a lab was asked, and what it answered, in order.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Request;

/// Bytes of a body that are kept.
const BODY_BYTES_MAX: usize = 65_536;
/// Fields of JSON objects and forms whose values are not kept.
const SECRETS: [&str; 3] = ["password", "client_secret", "secret"];
const BLANK: &str = "***";

/// One request, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exchange {
    /// Position from 1 since the lab started; forgetting does not restart it.
    pub number: u64,
    /// Milliseconds on the lab's clock between its start and the request.
    pub at_ms: u64,
    pub method: String,
    /// The path as sent.
    pub path: String,
    /// The query as sent.
    pub query: String,
    /// The request's body as text; passwords are blanked.
    pub body: String,
    /// Whether the controller executed it.
    pub is_executed: bool,
    /// The status that was sent; `None` when no answer left, or has not yet.
    pub status: Option<u16>,
    /// The answer's body as text, before a fault cut it.
    pub answer: String,
    /// Milliseconds of real time until the answer left.
    pub took_ms: u64,
    /// The faults that it met.
    pub faults: Vec<String>,
}

impl Exchange {
    /// `METHOD path`.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Whether its method is not `GET`, `HEAD` or `OPTIONS`.
    pub fn is_write(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}

/// The last exchanges, up to a limit.
#[derive(Debug)]
pub struct Record {
    kept: VecDeque<(Instant, Exchange)>,
    kept_max: usize,
    last: u64,
}

impl Record {
    /// Keeps this many exchanges; the oldest is forgotten first.
    pub(crate) fn new(kept_max: usize) -> Self {
        Self { kept: VecDeque::new(), kept_max, last: 0 }
    }

    /// The exchanges kept, oldest first.
    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.kept.iter().map(|(_, exchange)| exchange)
    }

    /// The number of the latest exchange, 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Forgets every exchange.
    pub fn forget(&mut self) {
        self.kept.clear();
    }

    /// Begins an exchange, and returns its number.
    pub(crate) fn begin(&mut self, request: &Request, at_ms: u64) -> u64 {
        self.last += 1;
        if self.kept_max == 0 {
            return self.last;
        }
        if self.kept.len() == self.kept_max {
            self.kept.pop_front();
        }
        let exchange = Exchange {
            number: self.last,
            at_ms,
            method: request.method.clone(),
            path: request.path.clone(),
            query: request.query.clone(),
            body: blanked(request),
            is_executed: false,
            status: None,
            answer: String::new(),
            took_ms: 0,
            faults: Vec::new(),
        };
        self.kept.push_back((Instant::now(), exchange));
        self.last
    }

    /// Says what is known of an exchange by now. Nothing happens when it is forgotten.
    pub(crate) fn amend(&mut self, number: u64, write: impl FnOnce(&mut Exchange)) {
        let found = self.kept.iter_mut().rev().find(|(_, exchange)| exchange.number == number);
        if let Some((began, exchange)) = found {
            exchange.took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            write(exchange);
        }
    }
}

/// The first bytes of a body as text.
pub(crate) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(BODY_BYTES_MAX)]).into_owned()
}

/// The body without the values of secret fields.
fn blanked(request: &Request) -> String {
    let text = shown(&request.body);
    if !SECRETS.iter().any(|name| text.contains(name)) {
        return text;
    }
    if let Some(Value::Object(mut fields)) = request.json() {
        SECRETS
            .iter()
            .filter_map(|name| fields.get_mut(*name).map(|value| *value = json!(BLANK)))
            .for_each(drop);
        return shown(Value::Object(fields).to_string().as_bytes());
    }
    let is_secret = |pair: &str| pair.split_once('=').is_some_and(|(name, _)| SECRETS.contains(&name));
    let blank =
        |pair: &str| pair.split_once('=').map_or_else(String::new, |(name, _)| format!("{name}={BLANK}"));
    let pairs = text.split('&').map(|pair| if is_secret(pair) { blank(pair) } else { pair.to_owned() });
    pairs.collect::<Vec<_>>().join("&")
}
