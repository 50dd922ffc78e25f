//! Connections of the host itself, to servers that an organization names: identity providers, receivers of webhooks.
//!
//! They pass the address guard and the judgement of certificates that components' connections pass, and are bounded in
//! time and size. Nothing is kept open, and nothing is followed. A name is looked up once: what was judged is what is
//! connected to.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::tls::TlsPolicy;
use http::{HeaderName, HeaderValue, Method};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use url::{Host, Url};

use super::address::Rules;
use super::request::denied;
use super::{Egress, connect, outward, tls};

/// A request of the host's own. It may carry secrets, so it is not to be logged.
pub struct OwnRequest {
    pub method: Method,
    pub url: Url,
    pub tls: TlsPolicy,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Vec<u8>,
    /// From the first look-up to the last byte.
    pub timeout: Duration,
    /// Most bytes of the answer's body.
    pub body_bytes_max: usize,
    /// How an answer with more is handled.
    pub excess: Excess,
    pub reach: Reach,
}

/// What is done with the part of an answer that is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// The answer is a fault.
    Refused,
    /// The answer ends there, and says so.
    Cut,
}

/// Which addresses a request may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Private networks too: controllers and identity providers live there.
    Premises,
    /// The public network only.
    Outward,
    /// Also private networks: the operator has listed the host.
    OutwardListed,
}

/// Which addresses the host of a plugin's target may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PluginReach {
    /// The target asks for private networks.
    pub(super) is_private: bool,
    pub(super) is_encrypted: bool,
}

/// Holds the answer to an [`OwnRequest`], whatever its status; a redirect is an answer, too. It is not masked
/// and may hold secrets, so it is not to be logged.
pub struct OwnAnswer {
    pub status: u16,
    /// Without parameters, in lower case.
    pub content_type: String,
    pub body: Vec<u8>,
    /// There was more than was asked for.
    pub is_cut: bool,
    /// Where it came from.
    pub peer: Option<SocketAddr>,
}

/// Knows the addresses of names.
pub(super) trait Names: Send + Sync {
    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>>;
}

/// The names that the system knows.
pub(super) struct SystemNames;

impl Names for SystemNames {
    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// Bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open connection to an address that was judged.
pub struct Dialled {
    pub stream: Pin<Box<dyn Stream>>,
    pub peer: SocketAddr,
    host: String,
}

impl Dialled {
    /// Begins TLS, under the name that was dialled. The time is the caller's to bound.
    pub async fn secure(self, policy: &TlsPolicy) -> Result<Self, Fault> {
        let config = tls::config(policy)?;
        let name = ServerName::try_from(self.host.clone()).map_err(|_| {
            Fault::new(
                FaultKind::Connection,
                format!("'{}' is no name that a certificate can have", self.host),
            )
            .with_code("tls-policy")
        })?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, self.stream).await.map_err(|error| fault_of_tls(&error))?;
        Ok(Self { stream: Box::pin(stream), peer: self.peer, host: self.host })
    }
}

/// Asks once.
pub(crate) async fn fetch(egress: &Egress, request: OwnRequest) -> Result<OwnAnswer, Fault> {
    let timeout = request.timeout;
    match tokio::time::timeout(timeout, ask(&egress.rules, &SystemNames, request)).await {
        Ok(answer) => answer,
        Err(_) => Err(silent(timeout)),
    }
}

/// Opens a connection; every address of the host is judged before.
pub(crate) async fn dial(
    egress: &Egress,
    host: &str,
    port: u16,
    timeout: Duration,
) -> Result<Dialled, Fault> {
    let open = async {
        let addresses = resolve(host, port, &egress.rules, Reach::Premises, &SystemNames).await?;
        let stream = TcpStream::connect(addresses.as_slice()).await.map_err(|error| {
            Fault::new(FaultKind::Connection, format!("no connection to '{host}:{port}': {}", error.kind()))
                .with_code("connect")
        })?;
        let peer = stream.peer_addr().map_err(|_| broken())?;
        Ok(Dialled { stream: Box::pin(stream), peer, host: host.to_owned() })
    };
    let started = Instant::now();
    match tokio::time::timeout(timeout, open).await {
        Ok(dialled) => dialled,
        Err(_) => Err(silent(started.elapsed())),
    }
}

/// The addresses of a plugin's target, all of them allowed.
pub(super) async fn addresses_for_plugin(
    url: &Url,
    rules: &Rules,
    reach: PluginReach,
) -> Result<Vec<SocketAddr>, Fault> {
    let port = url.port_or_known_default().unwrap_or(443);
    let judge = |address| rules.judge_for_plugin(address, reach.is_private, reach.is_encrypted);
    resolve_with(&host_of(url), port, (false, judge), &SystemNames).await
}

/// The host of a URL as it is looked up: an address of IPv6 without its brackets.
fn host_of(url: &Url) -> String {
    match url.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => String::new(),
    }
}

/// The addresses of a host, all of them allowed: which one is connected to is not ours to predict.
pub(super) async fn resolve(
    host: &str,
    port: u16,
    rules: &Rules,
    reach: Reach,
    names: &dyn Names,
) -> Result<Vec<SocketAddr>, Fault> {
    let judge = |address| match reach {
        Reach::Premises => rules.judge(address),
        Reach::Outward => rules.judge_outward(address, false),
        Reach::OutwardListed => rules.judge_outward(address, true),
    };
    resolve_with(host, port, (reach == Reach::Premises, judge), names).await
}

/// The same with this judge of each address. `of_premises` says that a refusal may show the address, and that a name of a
/// metadata service is judged by its address alone.
async fn resolve_with(
    host: &str,
    port: u16,
    (of_premises, judge): (bool, impl Fn(IpAddr) -> Result<(), &'static str>),
    names: &dyn Names,
) -> Result<Vec<SocketAddr>, Fault> {
    let unresolved = || {
        Fault::new(FaultKind::Connection, format!("host name '{host}' cannot be resolved"))
            .with_code("unresolved")
    };
    if !of_premises && outward::is_metadata_name(host) {
        return Err(denied("address", format!("'{host}' may not be reached: it is a metadata service")));
    }
    let found = names.look_up(host, port).await.map_err(|_| unresolved())?;
    if found.is_empty() {
        return Err(unresolved());
    }
    for address in &found {
        judge(address.ip()).map_err(|what| {
            // For an outward request the address is only in the log: in the answer it would show the network from
            // inside.
            let shown = if of_premises { address.ip().to_string() } else { "an address".to_owned() };
            tracing::info!(address = %address.ip(), host, "refused to reach {} of '{host}': {what}", address.ip());
            denied("address", format!("{shown} of '{host}' may not be reached: {what}"))
        })?;
    }
    Ok(found)
}

pub(super) async fn ask(rules: &Rules, names: &dyn Names, request: OwnRequest) -> Result<OwnAnswer, Fault> {
    let host = host_of(&request.url);
    let port = request.url.port_or_known_default().unwrap_or(443);
    let addresses = resolve(&host, port, rules, request.reach, names).await?;
    let client = connect::client(&request.url, &request.tls, &addresses)?;
    let outgoing = request
        .headers
        .into_iter()
        .fold(client.request(request.method, request.url), |outgoing, (name, value)| {
            outgoing.header(name, value)
        })
        .body(request.body);
    let mut response = outgoing.send().await.map_err(|error| fault_of(&error))?;
    let mut body = Vec::new();
    let mut is_cut = false;
    while let Some(chunk) = response.chunk().await.map_err(|error| fault_of(&error))? {
        let room = request.body_bytes_max - body.len();
        if chunk.len() > room {
            if request.excess == Excess::Refused {
                let message = format!("the answer is larger than {} bytes", request.body_bytes_max);
                return Err(Fault::new(FaultKind::Generic, message).with_code("response-too-large"));
            }
            body.extend_from_slice(&chunk[..room]);
            is_cut = true;
            break;
        }
        body.extend_from_slice(&chunk);
    }
    let kind = response.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|text| text.split(';').next()).unwrap_or_default();
    Ok(OwnAnswer {
        status: response.status().as_u16(),
        content_type: kind.trim().to_ascii_lowercase(),
        body,
        is_cut,
        peer: response.remote_addr(),
    })
}

/// In own words: the library's text can hold the address with its query.
fn fault_of(error: &reqwest::Error) -> Fault {
    if let Some(untrusted) = tls::untrusted(error) {
        return refused_certificate(untrusted);
    }
    if error.is_connect() {
        return Fault::new(FaultKind::Connection, "no connection is accepted there").with_code("connect");
    }
    broken()
}

fn fault_of_tls(error: &std::io::Error) -> Fault {
    match tls::untrusted(error) {
        Some(untrusted) => refused_certificate(untrusted),
        None => Fault::new(FaultKind::Connection, "no TLS is spoken there, or none that both sides know")
            .with_code("tls"),
    }
}

fn refused_certificate(untrusted: &tls::Untrusted) -> Fault {
    Fault::new(
        FaultKind::Connection,
        format!(
            "the certificate is not trusted: {}; its SHA-256 fingerprint is {}",
            untrusted.reason, untrusted.fingerprint
        ),
    )
    .with_code("tls-untrusted")
}

fn broken() -> Fault {
    Fault::new(FaultKind::Connection, "the connection broke").with_code("broken")
}

fn silent(after: Duration) -> Fault {
    Fault::new(FaultKind::Timeout, format!("no answer in {} ms", after.as_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_hosts_own_connections_pass_the_same_guard() {
        let resolve = async |host: &'static str, rules: &Rules| {
            resolve(host, 389, rules, Reach::Premises, &SystemNames).await
        };
        let rules = Rules::default();
        for host in ["127.0.0.1", "localhost", "::1", "169.254.169.254", "0x7f.1", "::ffff:127.0.0.1"] {
            let fault = resolve(host, &rules).await.unwrap_err();
            assert_eq!(fault.code.as_deref(), Some("address"), "{host}: {fault}");
        }
        let opened = Rules::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new());
        assert!(resolve("127.0.0.1", &opened).await.is_ok());
        assert_eq!(resolve("169.254.169.254", &opened).await.unwrap_err().code.as_deref(), Some("address"));
        assert_eq!(resolve("", &opened).await.unwrap_err().code.as_deref(), Some("unresolved"));
    }
}
