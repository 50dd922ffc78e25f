//! One HTTP request, read to its end.

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::FormPart;

/// A request as a controller sees it.
#[derive(Clone, Debug)]
pub struct Request {
    /// In capitals, as sent: `GET`.
    pub method: String,
    /// The path as sent, still percent-encoded, without the query.
    pub path: String,
    /// The query as sent, without `?`; empty when there is none.
    pub query: String,
    /// Every header; names compare without case.
    pub headers: HeaderMap,
    /// The bytes of the body; empty where it is a form with parts.
    pub body: Bytes,
    /// The parts of a form that has parts.
    pub parts: Vec<FormPart>,
    segments: Vec<String>,
}

impl Request {
    /// A request without headers, for tests that need no port. `target` is a path with an optional query.
    pub fn new(method: &str, target: &str, body: impl Into<Bytes>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let decode = |segment: &str| percent_decode_str(segment).decode_utf8_lossy().into_owned();
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: HeaderMap::new(),
            body: body.into(),
            parts: Vec::new(),
            segments: path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect(),
        }
    }

    pub(crate) fn of(parts: Parts, body: Bytes) -> Self {
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        Self { headers: parts.headers, ..Self::new(parts.method.as_str(), target, body) }
    }

    /// Adds a header.
    ///
    /// # Panics
    /// When HTTP does not allow the name or the value.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a test writes valid header names");
        self.headers.append(name, value.parse().expect("a test writes valid header values"));
        self
    }

    /// The parts of the path between slashes, percent-decoded, empty ones left out: for `match` on a slice.
    pub fn segments(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }

    /// A header's first value, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A cookie's value, as sent.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let sent = self.headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            sent.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Name and password of HTTP basic authentication.
    pub fn basic_auth(&self) -> Option<(String, String)> {
        let (scheme, encoded) = self.header("authorization")?.split_once(' ')?;
        let bytes = BASE64_STANDARD.decode(encoded.trim()).ok()?;
        let (name, password) = str::from_utf8(&bytes).ok()?.split_once(':')?;
        scheme.eq_ignore_ascii_case("basic").then(|| (name.to_owned(), password.to_owned()))
    }

    /// The query's pairs in order, decoded.
    pub fn query_pairs(&self) -> Vec<(String, String)> {
        serde_urlencoded::from_str(&self.query).unwrap_or_default()
    }

    /// The first value of one name in the query, decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        self.query_pairs().into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The pairs of a form body in order, decoded. The content type is not asked.
    pub fn form(&self) -> Vec<(String, String)> {
        serde_urlencoded::from_bytes(&self.body).unwrap_or_default()
    }

    /// The body as JSON; `None` when it is not. The content type is not asked.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}
