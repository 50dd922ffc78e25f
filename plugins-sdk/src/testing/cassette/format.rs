//! The file: JSON lines, one for the source, one for each exchange and one for each call.
//!
//! An exchange that several calls made alike is written once. Secrets are references, because they are what a component
//! sees; they stay the same from one recording to the next.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Header, Response};

/// The version of the format.
const VERSION: u32 = 1;
/// Headers of answers that adapters read.
const HEADERS: [&str; 5] = ["content-type", "etag", "link", "location", "retry-after"];

/// Where a cassette comes from, and what else the adapter was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Source {
    /// The version of the format.
    pub cassette: u32,
    /// The id of the adapter.
    pub adapter: String,
    /// The device and its version, in words.
    pub source: String,
    /// What the clock said.
    pub now_ms: u64,
    /// The settings of the controller.
    #[serde(default)]
    pub settings: Value,
    /// What logins exposed, by the name of the session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<String, Vec<(String, String)>>,
}

impl Source {
    /// A source without settings.
    #[must_use]
    pub fn of(adapter: &str, source: &str, now_ms: u64) -> Self {
        Self {
            cassette: VERSION,
            adapter: adapter.to_owned(),
            source: source.to_owned(),
            now_ms,
            settings: Value::Object(serde_json::Map::new()),
            sessions: BTreeMap::new(),
        }
    }
}

/// A request and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    pub method: String,
    /// With its query.
    pub path: String,
    /// The body where it is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The body where it is a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Vec<(String, String)>>,
    pub answer: Answer,
}

/// An answer. A body of JSON is kept as such, any other one as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Answer {
    /// The answer of these parts; headers that no adapter reads are left out.
    #[must_use]
    pub fn of(status: u16, reason: Option<String>, headers: &[(String, Vec<u8>)], body: &[u8]) -> Self {
        let kept = headers.iter().filter(|(name, _)| HEADERS.contains(&name.as_str()));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // Null is what an absent body is read as.
        let json = serde_json::from_slice(body).ok().filter(|json: &Value| !json.is_null());
        let plain = (json.is_none() && !body.is_empty()).then(|| text(body));
        let headers = kept.map(|(name, value)| (name.clone(), text(value))).collect();
        Self { status, reason, headers, json, text: plain }
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        match (&self.json, &self.text) {
            (Some(json), _) => json.to_string().into_bytes(),
            (None, text) => text.clone().unwrap_or_default().into_bytes(),
        }
    }

    /// The same as an adapter gets it.
    #[must_use]
    pub fn response(&self) -> Response {
        let header = |(name, value): (&String, &String)| Header {
            name: name.clone(),
            value: value.clone().into_bytes(),
        };
        Response {
            status: self.status,
            reason: self.reason.clone(),
            headers: self.headers.iter().map(header).collect(),
            body: self.body(),
            elapsed_ms: 1,
        }
    }
}

/// A change of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    pub feature: String,
    /// `create`, `update` or `delete`.
    pub operation: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    pub payload: Value,
}

/// A call of the adapter. Numbers name earlier calls of the cassette.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "kebab-case")]
pub enum Call {
    Check,
    ListSites,
    ListDevices {
        site: Option<String>,
        cursor: Option<String>,
    },
    ListObjects {
        kind: String,
        site: Option<String>,
        cursor: Option<String>,
    },
    GetObject {
        kind: String,
        site: Option<String>,
        key: String,
    },
    ListModel {
        kind: String,
        site: Option<String>,
        cursor: Option<String>,
    },
    Plan {
        changes: Vec<Planned>,
    },
    Ready {
        plan: usize,
        stage: String,
    },
    /// Its first exchange is the call of the plan that is judged.
    Judge {
        plan: usize,
        stage: String,
        index: usize,
    },
    /// Asks after the task that an earlier judgement or question gave.
    Poll {
        of: usize,
    },
    Compare {
        plan: usize,
    },
}

/// Most objects of a page that is recorded.
pub(super) const LIMIT: u32 = 100;

/// A call with what it exchanged, and what it gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    #[serde(flatten)]
    pub call: Call,
    /// Places of its exchanges in the cassette, in their order.
    pub exchanges: Vec<usize>,
    /// What it gave, in short ([`super::listed`]).
    pub gives: Value,
}

/// Why a cassette cannot be read: the line, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub struct CassetteError(String);

impl std::fmt::Display for CassetteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CassetteError {}

/// A recording, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Cassette {
    pub source: Source,
    pub exchanges: Vec<Exchange>,
    pub calls: Vec<Recorded>,
}

impl Cassette {
    /// Reads the text of a cassette.
    pub fn load(text: &str) -> Result<Self, CassetteError> {
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let fault = |line: usize, error: &serde_json::Error| CassetteError(format!("line {line}: {error}"));
        let (_, first) = lines.next().ok_or_else(|| CassetteError("the cassette is empty".to_owned()))?;
        let source: Source = serde_json::from_str(first).map_err(|error| fault(1, &error))?;
        if source.cassette != VERSION {
            let problem = format!("a cassette of version {}; this one reads {VERSION}", source.cassette);
            return Err(CassetteError(problem));
        }
        let mut cassette = Self { source, exchanges: Vec::new(), calls: Vec::new() };
        for (number, line) in lines {
            if line.starts_with("{\"call\"") {
                let call = serde_json::from_str(line).map_err(|error| fault(number, &error))?;
                cassette
                    .check(&call)
                    .map_err(|problem| CassetteError(format!("line {number}: {problem}")))?;
                cassette.calls.push(call);
            } else {
                let exchange = serde_json::from_str(line).map_err(|error| fault(number, &error))?;
                cassette.exchanges.push(exchange);
            }
        }
        Ok(cassette)
    }

    /// A call names only what stands before it.
    fn check(&self, recorded: &Recorded) -> Result<(), String> {
        if let Some(place) = recorded.exchanges.iter().find(|place| **place >= self.exchanges.len()) {
            return Err(format!("no exchange {place} stands before it"));
        }
        let earlier = match recorded.call {
            Call::Ready { plan, .. } | Call::Judge { plan, .. } | Call::Compare { plan } => Some(plan),
            Call::Poll { of } => Some(of),
            _ => None,
        };
        match earlier.filter(|place| *place >= self.calls.len()) {
            Some(place) => Err(format!("no call {place} stands before it")),
            None => Ok(()),
        }
    }
}

/// A cassette that is being recorded.
#[derive(Debug)]
pub struct Recording {
    source: Source,
    lines: Vec<String>,
    known: HashMap<String, usize>,
    calls: usize,
}

impl Recording {
    /// An empty one.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self { source, lines: Vec::new(), known: HashMap::new(), calls: 0 }
    }

    /// What a login exposed.
    pub fn expose(&mut self, session: &str, facts: &[(String, String)]) {
        self.source.sessions.insert(session.to_owned(), facts.to_vec());
    }

    /// Adds a call; returns its place, by which later ones name it.
    pub fn add(&mut self, call: Call, exchanges: Vec<Exchange>, gives: Value) -> usize {
        let places = exchanges.iter().map(|exchange| self.place(exchange)).collect();
        self.lines.push(line(&Recorded { call, exchanges: places, gives }));
        self.calls += 1;
        self.calls - 1
    }

    fn place(&mut self, exchange: &Exchange) -> usize {
        let text = line(exchange);
        if let Some(place) = self.known.get(&text) {
            return *place;
        }
        let place = self.known.len();
        self.lines.push(text.clone());
        self.known.insert(text, place);
        place
    }

    /// The text of the cassette.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in std::iter::once(&line(&self.source)).chain(&self.lines) {
            // Writing into a text never fails.
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it has no keys that are no texts")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn exchange(path: &str, body: &[u8]) -> Exchange {
        let headers = [("retry-after", "3"), ("date", "today")];
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_owned(), value.into())).into();
        let answer = Answer::of(200, None, &headers, body);
        Exchange { method: "GET".to_owned(), path: path.to_owned(), body: None, form: None, answer }
    }

    #[test]
    fn what_is_recorded_is_read_back_and_alike_exchanges_are_written_once() {
        let mut recording = Recording::new(Source::of("acme", "a router", 7));
        recording.expose("api", &[("id".to_owned(), "1".to_owned())]);
        let (one, other) = (exchange("/x", b"{\"b\":1,\"a\":[]}"), exchange("/y", b"<html>"));
        assert_eq!(recording.add(Call::Check, vec![one.clone(), other.clone()], json!("here")), 0);
        let call = Call::ListModel { kind: "vlan".to_owned(), site: None, cursor: None };
        assert_eq!(recording.add(call.clone(), vec![one.clone()], json!({ "items": [] })), 1);
        assert_eq!(recording.add(Call::Plan { changes: Vec::new() }, vec![], json!(null)), 2);
        assert_eq!(recording.add(Call::Compare { plan: 2 }, vec![], json!("before")), 3);
        let cassette = Cassette::load(&recording.text()).unwrap();
        assert_eq!(cassette.exchanges, [one, other]);
        assert_eq!(cassette.calls[0].exchanges, [0, 1]);
        assert_eq!(cassette.calls[1], Recorded { call, exchanges: vec![0], gives: json!({ "items": [] }) });
        assert_eq!(cassette.source.sessions["api"].len(), 1);
        let answer = &cassette.exchanges[0].answer;
        assert_eq!(answer.headers.keys().collect::<Vec<_>>(), ["retry-after"]);
        assert_eq!(answer.response().body, b"{\"b\":1,\"a\":[]}", "the order of the fields stays");
        assert_eq!(cassette.exchanges[1].answer.response().body, b"<html>");
    }

    #[test]
    fn what_cannot_be_read_is_named_by_its_line() {
        let source = line(&Source::of("acme", "a router", 7));
        for (text, expected) in [
            (String::new(), "the cassette is empty"),
            (source.replace("\"cassette\":1", "\"cassette\":9"), "a cassette of version 9; this one reads 1"),
            (
                format!("{source}\n{{\"call\":\"check\",\"exchanges\":[0],\"gives\":1}}"),
                "line 2: no exchange 0",
            ),
            (
                format!("{source}\n{{\"call\":\"compare\",\"plan\":0,\"exchanges\":[],\"gives\":1}}"),
                "line 2: no call 0",
            ),
            (
                format!("{source}\n{{\"call\":\"fly\",\"exchanges\":[],\"gives\":1}}"),
                "line 2: unknown variant",
            ),
            (format!("{source}\n[]"), "line 2: "),
        ] {
            let problem = Cassette::load(&text).unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
