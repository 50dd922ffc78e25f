//! One exchange on the wire: sending what was decided, reading with a limit.

use std::time::{Duration, Instant};

use heddle_core::fault::{Effect, Fault, FaultKind};
use http::{HeaderName, HeaderValue, Method};

use super::connect::Route;
use super::held::{Held, Room};
use super::request::{Attached, Body, Content, Request};
use super::{path, tls};
use crate::api::KeptFile;

/// A request with everything in it, credentials too. It must not be logged.
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) cookies: Vec<(String, String)>,
    pub(super) body: Body,
}

/// An answer as it came.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) reason: Option<String>,
    /// Names in lower case.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    pub(super) elapsed: Duration,
    /// Room that the body takes.
    pub(super) held: Held,
    /// The file that the host kept; `body` is empty then.
    pub(super) kept: Option<KeptFile>,
}

impl Answer {
    pub(super) fn header(&self, lower: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(name, _)| name == lower)
            .and_then(|(_, value)| std::str::from_utf8(value).ok())
    }
}

impl Outgoing {
    /// Takes over a request whose headers were checked.
    pub(super) fn of(request: &Request) -> Self {
        let header = |(name, value): &(String, Vec<u8>)| {
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_bytes(value).ok()?))
        };
        Self {
            method: request.method.clone(),
            path: request.path.clone(),
            query: Vec::new(),
            headers: request.headers.iter().filter_map(header).collect(),
            cookies: Vec::new(),
            body: request.body.clone(),
        }
    }
}

/// Sends and reads. A fault's effect says whether a write may have arrived.
pub(super) async fn exchange(
    route: &Route,
    outgoing: Outgoing,
    timeout: Duration,
    (limit, room): (usize, &Room),
    write: bool,
) -> Result<Answer, Fault> {
    let request = build(route, outgoing)?;
    let started = Instant::now();
    let work = async {
        let response = request.send().await.map_err(|error| fault_of(&error, write, route.peer))?;
        read(response, started, (limit, room), write, route.peer).await
    };
    match tokio::time::timeout(timeout, work).await {
        Ok(answer) => answer,
        Err(_) => Err(Fault::new(
            FaultKind::Timeout,
            format!("the {} gave no answer in {} ms", route.peer, timeout.as_millis()),
        )
        .with_effect(effect(write))),
    }
}

fn effect(write: bool) -> Effect {
    if write { Effect::Possible } else { Effect::None }
}

pub(super) fn build(route: &Route, outgoing: Outgoing) -> Result<reqwest::RequestBuilder, Fault> {
    let mut url = path::join(&route.base, &outgoing.path)?;
    if !outgoing.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&outgoing.query);
    }
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let mut request = route.client.request(outgoing.method, url);
    for (name, value) in outgoing.headers {
        request = request.header(name, value);
    }
    if !outgoing.cookies.is_empty() {
        let cookies: Vec<String> =
            outgoing.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut value = HeaderValue::from_str(&cookies.join("; ")).map_err(|_| unfit("a cookie"))?;
        value.set_sensitive(true);
        request = request.header(http::header::COOKIE, value);
    }
    Ok(match outgoing.body {
        Body::None => request,
        Body::Json(value) => request
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(&value).expect("a JSON value serializes")),
        Body::Form(fields) => request.form(&fields),
        Body::Bytes(kind, bytes) => {
            let kind = HeaderValue::from_str(&kind).map_err(|_| unfit("the content type"))?;
            request.header(http::header::CONTENT_TYPE, kind).body(bytes)
        }
        Body::File(kind, file) => {
            let kind = HeaderValue::from_str(&kind).map_err(|_| unfit("the content type"))?;
            let (size, bytes) = opened(file)?;
            request
                .header(http::header::CONTENT_TYPE, kind)
                .header(http::header::CONTENT_LENGTH, size)
                .body(bytes)
        }
        Body::Multipart(parts) => {
            let mut form = reqwest::multipart::Form::new();
            for part in parts {
                let mut content = match part.content {
                    Content::Bytes(bytes) => reqwest::multipart::Part::bytes(bytes),
                    Content::File(file) => {
                        let (size, bytes) = opened(file)?;
                        reqwest::multipart::Part::stream_with_length(bytes, size)
                    }
                };
                if let Some(name) = part.filename {
                    content = content.file_name(name);
                }
                if let Some(kind) = part.content_type {
                    content = content.mime_str(&kind).map_err(|_| unfit("the content type of a part"))?;
                }
                form = form.part(part.name, content);
            }
            request.multipart(form)
        }
    })
}

/// The size of a file, and its bytes as they are read while they are sent.
fn opened(file: Attached) -> Result<(u64, reqwest::Body), Fault> {
    let content = file.content.ok_or_else(|| Fault::new(FaultKind::Generic, "a file has no bytes"))?;
    Ok((content.size_bytes, reqwest::Body::wrap_stream((content.open)())))
}

fn unfit(what: &str) -> Fault {
    Fault::new(FaultKind::Invalid, format!("{what} has characters that a request cannot carry"))
        .with_code("unfit")
}

/// What an answer says before its body.
pub(super) fn head(response: &reqwest::Response, started: Instant) -> Answer {
    let reason = response.extensions().get::<hyper::ext::ReasonPhrase>().map(|reason| {
        String::from_utf8_lossy(reason.as_bytes()).chars().filter(|c| !c.is_control()).take(512).collect()
    });
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect();
    Answer {
        status: response.status().as_u16(),
        reason,
        headers,
        body: Vec::new(),
        elapsed: started.elapsed(),
        held: Held::default(),
        kept: None,
    }
}

/// Refuses a body that the host cannot decode.
pub(super) fn refuse_coding(response: &reqwest::Response, write: bool) -> Result<(), Fault> {
    match response.headers().get(http::header::CONTENT_ENCODING) {
        Some(coding) if coding.as_bytes() != b"identity" => {
            Err(Fault::new(FaultKind::Generic, "the answer is encoded in a way that the host does not read")
                .with_code("answer-encoding")
                .with_effect(effect(write)))
        }
        _ => Ok(()),
    }
}

pub(super) async fn read(
    mut response: reqwest::Response,
    started: Instant,
    (limit, room): (usize, &Room),
    write: bool,
    peer: &str,
) -> Result<Answer, Fault> {
    refuse_coding(&response, write)?;
    let mut answer = head(&response, started);
    // What counts is the decoded body: a small one can unpack to anything.
    while let Some(chunk) = response.chunk().await.map_err(|error| fault_of(&error, write, peer))? {
        if answer.body.len() + chunk.len() > limit {
            return Err(Fault::new(FaultKind::Generic, format!("the answer is larger than {limit} bytes"))
                .with_code("response-too-large")
                .with_effect(effect(write)));
        }
        room.take(&mut answer.held, chunk.len()).await.map_err(|fault| fault.with_effect(effect(write)))?;
        answer.body.extend_from_slice(&chunk);
    }
    answer.elapsed = started.elapsed();
    Ok(answer)
}

/// Says what went wrong in own words: the library's text can hold the address with its query.
/// `peer` is what the text calls the other side.
pub(super) fn fault_of(error: &reqwest::Error, write: bool, peer: &str) -> Fault {
    if let Some(untrusted) = tls::untrusted(error) {
        return Fault::new(
            FaultKind::Connection,
            format!(
                "the {peer}'s certificate is not trusted: {}; its SHA-256 fingerprint is {}",
                untrusted.reason, untrusted.fingerprint
            ),
        )
        .with_code("tls-untrusted");
    }
    if error.is_connect() {
        let message = if error.is_timeout() {
            format!("the {peer} does not accept a connection in time")
        } else {
            format!("no connection to the {peer}")
        };
        return Fault::new(FaultKind::Connection, message).with_code("connect");
    }
    if error.is_timeout() {
        return Fault::new(FaultKind::Timeout, format!("the {peer} gave no answer in time"))
            .with_effect(effect(write));
    }
    let message = if error.is_body() || error.is_decode() {
        format!("the {peer}'s answer broke off or cannot be decoded")
    } else {
        format!("the connection to the {peer} broke")
    };
    Fault::new(FaultKind::Connection, message).with_code("broken").with_effect(effect(write))
}
