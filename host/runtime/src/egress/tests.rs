//! Fixtures of the egress tests.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use heddle_core::Clock;
use heddle_core::secret::Secret;
use heddle_core::tls::TlsPolicy;
use heddle_marketplace::manifest::Manifest;
use http::Method;
use serde_json::{Value, json};

use super::address::Rules;
use super::held::Held;
use super::request::{Body, Request};
use super::wire::Answer;
use crate::Vault;
use crate::apart::Apart;
use crate::api::{Credential, Target, VaultError};
use crate::egress::Egress;

pub(super) const PASSWORD: &str = "correct horse";
pub(super) const TEAM: &str = "the blue team";

/// Knows one credential: `root`, [`PASSWORD`] and [`TEAM`].
pub(super) struct TestVault;

#[async_trait::async_trait]
impl Vault for TestVault {
    async fn credential(
        &self,
        _: heddle_core::OrgId,
        _: heddle_core::CredentialId,
    ) -> Result<Credential, VaultError> {
        let field = |name: &str, text: &str| (name.to_owned(), Secret::new(text));
        Ok(Credential {
            fields: vec![field("username", "root"), field("password", PASSWORD), field("team", TEAM)],
        })
    }
    fn reference_key(&self, _: heddle_core::ControllerId) -> [u8; 32] {
        [3; 32]
    }
}

pub(super) fn apart() -> Arc<Apart> {
    Arc::new(Apart::new(tokio::runtime::Handle::current(), 1))
}

/// An engine that reaches a device of the test.
pub(super) struct Bench {
    pub(super) egress: Arc<Egress>,
    pub(super) clock: Clock,
    pub(super) target: Target,
}

/// Serves the device as long as the test runs.
pub(super) async fn bench(device: Router) -> Bench {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the device lives as long as the test")]
    tokio::spawn(async move { axum::serve(listener, device).await });
    let clock = Clock::default();
    let here = || vec!["127.0.0.0/8".parse().unwrap()];
    let rules = Rules::new(here(), Vec::new()).with_plugin_networks(here());
    let egress = Egress::new(Arc::new(TestVault), apart(), clock.clone(), rules);
    let target = Target {
        org_id: clock.new_id(),
        controller_id: clock.new_id(),
        url,
        tls: TlsPolicy::default(),
        credential_id: clock.new_id(),
        credential_version: 1,
        settings: json!({}),
        site_ref: None,
    };
    Bench { egress: Arc::new(egress), clock, target }
}

pub(crate) fn manifest() -> Manifest {
    serde_json::from_value(json!({
        "schema": 1, "id": "acme", "version": "1.0.0", "kind": "adapter", "api": "1.0", "name": "Acme",
        "publisher": "acme", "license": "Apache-2.0", "files": [], "component": "component.wasm",
        "capabilities": {"controller-http": true, "secrets": true},
        "auth": {"main": {
            "login": [{
                "request": {"method": "POST", "path": "/login", "effect": "session", "json": {"u": "{{secret.username}}", "p": "{{secret.password}}"}},
                "expect": {"status": [200], "json": {"/ok": [true]}},
                "denied": {"status": [403]},
                "capture": [{"as": "sid", "from": {"json": "/sid"}}, {"as": "device", "from": {"json": "/device"}, "expose": true}]
            }],
            "apply": [
                {"to": {"json-pointer": "/params/0"}, "value": "{{session.sid}}", "methods": ["POST"]},
                {"to": {"header": "x-token"}, "value": "{{session.sid}}", "methods": ["GET"]}
            ],
            "expired": [{"status": [401]}, {"status": [200], "json": {"/error/code": [-32002]}}],
            "expired-before-effect": true,
            "cookie-jar": true,
            "ttl-s": 300,
            "logout": {"method": "POST", "path": "/logout", "effect": "session", "json": {"params": ["sid"]}}
        }},
        "reads": [{"method": "POST", "path": "/rpc", "json": {"/params/1": ["config"], "/params/2": ["get", "list"]}}],
        "secret-fields": ["psk"]
    }))
    .unwrap()
}

pub(crate) fn request(method: Method, path: &str, body: Body) -> Request {
    Request { method, path: path.to_owned(), headers: Vec::new(), body, timeout: None, max_response: None }
}

/// An answer of a device in JSON.
pub(super) fn answer(status: u16, body: &Value) -> Answer {
    let headers = vec![("content-type".to_owned(), b"application/json; charset=utf-8".to_vec())];
    Answer {
        status,
        reason: None,
        headers,
        body: body.to_string().into_bytes(),
        elapsed: Duration::ZERO,
        held: Held::default(),
        kept: None,
    }
}
