//! The documents that an `OpenID` provider publishes: its endpoints, and its signing keys.
//!
//! They are cached for some minutes. When no known key fits a signature, the keys are fetched again, so that a provider
//! can change them at any time. This happens at most every ten seconds, so that an attacker cannot cause more requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use heddle_core::Timestamp;
use heddle_kernel::app::App;
use heddle_runtime::{Excess, OwnAnswer, OwnRequest, Reach};
use heddle_store::sso::IdentityProviderId;
use http::{HeaderName, HeaderValue, Method, header};
use jsonwebtoken::jwk::Jwk;
use moka::future::Cache;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::super::fault::ProviderFault;
use super::super::settings::{Oidc, is_page};
use super::Client;
use super::id_token::is_usable;

/// How long a fetched document is used.
const AGE_MAX: Duration = Duration::from_mins(10);
/// Least time between fetches because no key fits a signature.
const REFETCH_PAUSE: Duration = Duration::from_secs(10);
const PROVIDERS_MAX: u64 = 1_000;
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
pub(super) const DOCUMENT_BYTES_MAX: usize = 262_144;
const KEYS_MAX: usize = 100;

/// A provider in one state of its settings.
type Key = (IdentityProviderId, Timestamp);

/// A cache of documents that providers published.
#[derive(Debug)]
pub(in crate::sso) struct Documents {
    metadata: Cache<Key, Arc<Metadata>>,
    keys: Cache<Key, Arc<Vec<Jwk>>>,
    /// Keys that were fetched because none fitted a signature. Concurrent and later sign-ins share the result for a
    /// while.
    refetched: Cache<Key, Result<Arc<Vec<Jwk>>, ProviderFault>>,
}

impl Documents {
    /// Returns the documents of this process.
    fn of(app: &App) -> &Self {
        app.part()
    }
}

/// The fields of a discovery document that are used.
#[derive(Debug, Deserialize)]
pub(in crate::sso) struct Metadata {
    issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    jwks_uri: String,
    pub(super) userinfo_endpoint: Option<String>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// RFC 9207.
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            metadata: Cache::builder().max_capacity(PROVIDERS_MAX).time_to_live(AGE_MAX).build(),
            keys: Cache::builder().max_capacity(PROVIDERS_MAX).time_to_live(AGE_MAX).build(),
            refetched: Cache::builder().max_capacity(PROVIDERS_MAX).time_to_live(REFETCH_PAUSE).build(),
        }
    }
}

impl Client<'_> {
    fn key(&self) -> Key {
        (self.id, self.updated_at)
    }

    pub(super) async fn metadata(&self) -> Result<Arc<Metadata>, ProviderFault> {
        let fetch = async { fetch_metadata(self.app, self.settings).await.map(|(found, _)| Arc::new(found)) };
        let found = Documents::of(self.app).metadata.try_get_with(self.key(), fetch).await;
        found.map_err(|fault| ProviderFault::clone(&fault))
    }

    pub(super) async fn keys(&self, metadata: &Metadata) -> Result<Arc<Vec<Jwk>>, ProviderFault> {
        let fetch = async { fetch_keys(self.app, self.settings, metadata).await.map(Arc::new) };
        let found = Documents::of(self.app).keys.try_get_with(self.key(), fetch).await;
        found.map_err(|fault| ProviderFault::clone(&fault))
    }

    /// Returns the keys as they are published now, or were some seconds ago.
    pub(super) async fn newer_keys(&self, metadata: &Metadata) -> Result<Arc<Vec<Jwk>>, ProviderFault> {
        let fetch = async {
            let keys = Arc::new(fetch_keys(self.app, self.settings, metadata).await?);
            Documents::of(self.app).keys.insert(self.key(), keys.clone()).await;
            Ok(keys)
        };
        Documents::of(self.app).refetched.get_with(self.key(), fetch).await
    }
}

/// Fetches the provider's discovery document, and the address that answered.
pub(in crate::sso) async fn fetch_metadata(
    app: &App,
    settings: &Oidc,
) -> Result<(Metadata, Option<SocketAddr>), ProviderFault> {
    let what = "discovery document";
    let address = format!("{}/.well-known/openid-configuration", settings.issuer.trim_end_matches('/'));
    let answer = get(app, settings, &address).await.map_err(|fault| fault.at(what))?;
    let metadata: Metadata = json(&answer).map_err(|fault| fault.at(what))?;
    if metadata.issuer != settings.issuer {
        let shown: String = metadata.issuer.chars().filter(|c| !c.is_control()).take(200).collect();
        return Err(ProviderFault::faulty(format!(
            "{what} is of issuer '{shown}', not of '{}': the two must be equal letter for letter",
            settings.issuer
        )));
    }
    let endpoints = [
        Some(&metadata.authorization_endpoint),
        Some(&metadata.token_endpoint),
        Some(&metadata.jwks_uri),
        metadata.userinfo_endpoint.as_ref(),
    ];
    let is_tls = settings.issuer.starts_with("https://");
    let is_safe = |endpoint: &str| is_page(endpoint) && (!is_tls || endpoint.starts_with("https://"));
    if !endpoints.into_iter().flatten().all(|endpoint| is_safe(endpoint)) {
        return Err(ProviderFault::faulty(format!(
            "{what} names an endpoint that is not a complete https:// address"
        )));
    }
    Ok((metadata, answer.peer))
}

/// Fetches the provider's keys that can verify signatures.
pub(in crate::sso) async fn fetch_keys(
    app: &App,
    settings: &Oidc,
    metadata: &Metadata,
) -> Result<Vec<Jwk>, ProviderFault> {
    #[derive(Deserialize)]
    struct KeySet {
        keys: Vec<Value>,
    }
    let what = "keys";
    let answer = get(app, settings, &metadata.jwks_uri).await.map_err(|fault| fault.at(what))?;
    let set: KeySet = json(&answer).map_err(|fault| fault.at(what))?;
    // The set may contain keys of unknown kinds next to known ones.
    let keys: Vec<Jwk> = set
        .keys
        .into_iter()
        .take(KEYS_MAX)
        .filter_map(|key| serde_json::from_value(key).ok())
        .filter(is_usable)
        .collect();
    if keys.is_empty() {
        return Err(ProviderFault::faulty(
            "the provider publishes no key that can be used (RSA of 2048 bits or more, P-256, P-384 or Ed25519)",
        ));
    }
    Ok(keys)
}

async fn get(app: &App, settings: &Oidc, address: &str) -> Result<OwnAnswer, ProviderFault> {
    let answer = ask(app, settings, Method::GET, address, Vec::new(), Vec::new()).await?;
    match answer.status {
        200 => Ok(answer),
        300..=399 => Err(ProviderFault::faulty("the answer is a redirect, which is not followed")),
        status => Err(ProviderFault::faulty(format!("the answer has status {status}"))),
    }
}

/// Sends one request, bounded in time and size.
pub(super) async fn ask(
    app: &App,
    settings: &Oidc,
    method: Method,
    address: &str,
    mut headers: Vec<(HeaderName, HeaderValue)>,
    body: Vec<u8>,
) -> Result<OwnAnswer, ProviderFault> {
    let url =
        Url::parse(address).map_err(|_| ProviderFault::faulty("an address of the provider is not one"))?;
    headers.push((header::ACCEPT, HeaderValue::from_static("application/json")));
    let request = OwnRequest {
        method,
        url,
        tls: settings.tls.clone(),
        headers,
        body,
        timeout: TIMEOUT,
        body_bytes_max: DOCUMENT_BYTES_MAX,
        excess: Excess::Refused,
        reach: Reach::Premises,
    };
    Ok(app.runtime.fetch(request).await?)
}

/// Parses an answer as JSON. An error does not quote it: it can hold tokens.
pub(super) fn json<T: serde::de::DeserializeOwned>(answer: &OwnAnswer) -> Result<T, ProviderFault> {
    serde_json::from_slice(&answer.body).map_err(|error| {
        let problem =
            if error.is_data() { "lacks a field, or has one of another type" } else { "is not JSON" };
        ProviderFault::faulty(format!("the answer {problem}"))
    })
}
