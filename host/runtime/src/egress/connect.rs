//! Connections: one pool for each controller, credential and policy, and only
//! to addresses that were judged.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use heddle_core::fault::{Fault, FaultKind};
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, CredentialId, OrgId};
use url::Url;

use super::tls;
use crate::api::Target;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a quiet connection is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);
const IDLE: Duration = Duration::from_secs(30);
const POOLS_MAX: usize = 512;

/// What owns connections and sessions: a controller, with the credential that is used there. Nothing is shared beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    org: OrgId,
    pub(super) controller: ControllerId,
    credential: CredentialId,
    credential_version: i64,
}

impl Owner {
    pub(super) fn of(target: &Target) -> Self {
        Self {
            org: target.org_id,
            controller: target.controller_id,
            credential: target.credential_id,
            credential_version: target.credential_version,
        }
    }
}

/// Everything that must be equal for two requests to share a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    owner: Owner,
    tls: String,
    url: Url,
}

struct Pool {
    addresses: Vec<SocketAddr>,
    client: reqwest::Client,
    last_used: Instant,
}

#[derive(Default)]
pub(super) struct Connections(Mutex<HashMap<Key, Pool>>);

/// A way to a controller.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) client: reqwest::Client,
    pub(super) base: Url,
    /// What texts call the other side.
    pub(super) peer: &'static str,
}

impl Connections {
    /// The pool to these addresses; a new one when they changed.
    pub(super) fn route(
        &self,
        target: &Target,
        mut addresses: Vec<SocketAddr>,
        peer: &'static str,
    ) -> Result<Route, Fault> {
        addresses.sort_unstable();
        let key = Key { owner: Owner::of(target), tls: tls_key(&target.tls), url: target.url.clone() };
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(pool) = pools.get_mut(&key).filter(|pool| pool.addresses == addresses) {
            pool.last_used = now;
            return Ok(Route { client: pool.client.clone(), base: target.url.clone(), peer });
        }
        if pools.len() >= POOLS_MAX
            && let Some(oldest) =
                pools.iter().min_by_key(|(_, pool)| pool.last_used).map(|(key, _)| key.clone())
        {
            pools.remove(&oldest);
        }
        let client = build(target, &addresses)?;
        pools.insert(key, Pool { addresses, client: client.clone(), last_used: now });
        Ok(Route { client, base: target.url.clone(), peer })
    }
}

impl Connections {
    /// Forgets the connections of a controller; calls that use them go on.
    pub(super) fn forget(&self, controller: ControllerId) {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|key, _| key.owner.controller != controller);
    }
}

fn tls_key(policy: &TlsPolicy) -> String {
    format!(
        "{}|{}|{}",
        policy.mode,
        policy.pinned().unwrap_or_default(),
        policy.ca_pem.as_deref().unwrap_or_default()
    )
}

fn build(target: &Target, addresses: &[SocketAddr]) -> Result<reqwest::Client, Fault> {
    client(&target.url, &target.tls, addresses)
}

/// Knows only the addresses that were judged, whatever spelling of a name is asked for.
struct Pinned(Vec<SocketAddr>);

impl reqwest::dns::Resolve for Pinned {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let addresses: reqwest::dns::Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// A client that connects to these addresses, whatever the name of the URL's host resolves to by then.
pub(super) fn client(
    url: &Url,
    policy: &TlsPolicy,
    addresses: &[SocketAddr],
) -> Result<reqwest::Client, Fault> {
    #[expect(clippy::disallowed_methods, reason = "the egress engine, behind the address guard")]
    let builder = reqwest::Client::builder();
    builder
        .tls_backend_preconfigured(tls::config(policy)?)
        .https_only(url.scheme() == "https")
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        // One request on one connection at a time: what arrived is what was handed over.
        .http1_only()
        .dns_resolver(Arc::new(Pinned(addresses.to_vec())))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEPALIVE)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(4)
        .build()
        .map_err(|_| {
            Fault::new(FaultKind::Connection, "no connection can be prepared for this address")
                .with_code("connect")
        })
}

#[cfg(test)]
impl Connections {
    /// How many pools there are.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
