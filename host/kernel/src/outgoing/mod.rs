//! Every HTTP request to addresses that users name: webhooks, notices.
//!
//! The caller says what to send. This module decides whether it is sent, how it is signed, and how much of the answer
//! is stored. Redirects are not followed, and there is no retry.

mod echo;
mod headers;
mod signature;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use heddle_core::fault::Fault;
use heddle_core::secret::Secret;
use heddle_core::tls::TlsPolicy;
use heddle_runtime::{Excess, OwnRequest, Reach};
use http::{HeaderName, HeaderValue, Method};
use url::{Host, Url};

use self::echo::Secrets;
pub use self::headers::{HEADER_VALUE_BYTES_MAX, HEADERS_MAX, header};
use crate::app::App;
use crate::unreached::is_unreached;

/// Time limit from name resolution to the last byte.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of an answer that are stored.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of a destination URL.
pub const URL_BYTES_MAX: usize = 2048;

/// A request to an external receiver. It may carry secrets, so it must not be logged.
pub struct Outgoing {
    pub method: Method,
    pub url: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Vec<u8>,
    /// Signs the request when it is given and not empty.
    pub signing_secret: Option<Secret>,
    /// Secrets of the sending organization: each adds a signature.
    pub organization_secrets: Vec<Secret>,
    /// The path is a secret: a client that knows it can send, too.
    pub is_path_secret: bool,
}

/// Holds what the receiver answered, whatever its status: failures and redirects are answers, too.
/// [`Answered::is_success`] tells them apart.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    /// At most 16 KiB of the answer. Secrets of the request are masked, and characters that the database cannot store
    /// are replaced.
    pub text: String,
    /// The receiver says that it is JSON.
    pub(crate) is_json: bool,
    /// The answer was longer.
    pub is_truncated: bool,
    pub(crate) duration: Duration,
}

impl Answered {
    /// Returns the time that the request took, in whole milliseconds: from the look-up of the name to the end
    /// of what is stored of the answer.
    pub fn duration_ms(&self) -> i64 {
        i64::try_from(self.duration.as_millis()).unwrap_or(i64::MAX)
    }

    /// Returns the whole answer as JSON, where the receiver declares it as JSON and it can be parsed.
    pub fn json(&self) -> Option<serde_json::Value> {
        let is_whole = self.is_json && !self.is_truncated;
        is_whole.then(|| serde_json::from_str(&self.text).ok()).flatten()
    }

    /// Returns whether the status is one of 200 to 299. A redirect is no success, because it is not followed.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no answer, in words for people, without the query or the headers of the request.
#[derive(Debug)]
pub enum Undelivered {
    /// The destination guard refuses the address.
    Blocked(String),
    /// No connection, or no answer in time.
    Unreached(String),
    /// The request could not be sent, or the answer could not be used.
    Failed(String),
}

/// Sends once, and waits at most 30 seconds. A redirect is returned as an answer.
pub async fn send(app: &App, request: Outgoing) -> Result<Answered, Undelivered> {
    let url = check_url(&request.url).map_err(Undelivered::Blocked)?;
    if let Some(name) = headers::refused(&request.headers) {
        return Err(Undelivered::Failed(format!("header '{name}' is set by the service alone")));
    }
    if !is_offered(&request.method) {
        let message = format!("method {} is not one of POST, PUT, PATCH, GET", request.method);
        return Err(Undelivered::Failed(message));
    }
    let secrets = Secrets::of(&request, &url);
    let mut headers = request.headers;
    if let Some(secret) = request.signing_secret.filter(|secret| !secret.is_empty()) {
        headers.extend(signature::headers(&secret, app.clock.now(), &request.body));
    }
    headers.extend(signature::of_organization(
        &request.organization_secrets,
        app.clock.now(),
        &request.method,
        &url,
        &request.body,
    ));
    let reach = reach(&url, &app.config.fabric_webhook_allowed_hosts);
    let own = OwnRequest {
        method: request.method,
        url,
        tls: TlsPolicy::default(),
        headers,
        body: request.body,
        timeout: TIMEOUT,
        body_bytes_max: ANSWER_BYTES_MAX,
        excess: Excess::Cut,
        reach,
    };
    let started = Instant::now();
    let answer = app.runtime.fetch(own).await.map_err(undelivered)?;
    Ok(Answered {
        status: answer.status,
        text: secrets.mask(&answer.body, answer.is_cut),
        is_json: answer.content_type == "application/json" || answer.content_type.ends_with("+json"),
        is_truncated: answer.is_cut,
        duration: started.elapsed(),
    })
}

fn is_offered(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH, Method::GET].contains(method)
}

fn undelivered(fault: Fault) -> Undelivered {
    if fault.code.as_deref() == Some("address") {
        Undelivered::Blocked(fault.message)
    } else if is_unreached(&fault) {
        Undelivered::Unreached(fault.message)
    } else {
        Undelivered::Failed(fault.message)
    }
}

/// Checks a destination URL, as far as its text allows. Whether its host may be reached is checked when it is used.
pub fn check_url(text: &str) -> Result<Url, String> {
    const ACCEPTED: &str = "give a full URL such as https://hooks.example.org/path";
    if text.len() > URL_BYTES_MAX {
        return Err(format!("url has more than {URL_BYTES_MAX} bytes"));
    }
    // A parser accepts these, but other readers of the URL may read it in another way.
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err(format!("url has a space, a backslash or a control character: {ACCEPTED}"));
    }
    // A parser also reads `http:/x` and `http:///x` as `http://x`.
    if text.split_once("://").is_none_or(|(_, rest)| rest.is_empty() || rest.starts_with(['/', '?', '#'])) {
        return Err(format!("url has no host: {ACCEPTED}"));
    }
    let url = Url::parse(text).map_err(|error| format!("url cannot be read ({error}): {ACCEPTED}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("url scheme '{}' is not http or https: {ACCEPTED}", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() || text_has_user(text) {
        return Err("url has a user: give credentials in a header".to_owned());
    }
    match url.host() {
        Some(Host::Domain(name)) if name.trim_matches('.').is_empty() => {
            Err(format!("url has no host: {ACCEPTED}"))
        }
        None => Err(format!("url has no host: {ACCEPTED}")),
        // The sent URL is percent-encoded, and may be longer than the given one.
        Some(_) if url.as_str().len() > URL_BYTES_MAX => {
            Err(format!("url has more than {URL_BYTES_MAX} bytes when it is encoded"))
        }
        Some(_) => Ok(url),
    }
}

/// Whether the URL has a user, also an empty one, which the parser drops.
fn text_has_user(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

fn reach(url: &Url, listed: &[String]) -> Reach {
    let is_listed = match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            listed.iter().any(|host| host.trim_end_matches('.').eq_ignore_ascii_case(name))
        }
        Some(Host::Ipv4(address)) => lists(listed, IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => lists(listed, IpAddr::V6(address)),
        None => false,
    };
    if is_listed { Reach::OutwardListed } else { Reach::Outward }
}

fn lists(listed: &[String], address: IpAddr) -> bool {
    let same =
        |text: &String| text.parse::<IpAddr>().is_ok_and(|one| one.to_canonical() == address.to_canonical());
    listed.iter().any(same)
}

#[cfg(test)]
mod tests;
