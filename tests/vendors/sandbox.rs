//! An adapter in a runtime of its own, called as a server calls it.

use std::sync::Arc;
use std::time::Duration;

use heddle_core::secret::Secret;
use heddle_core::tls::TlsPolicy;
use heddle_core::{Clock, ControllerId, CredentialId, OrgId};
use heddle_marketplace::{Verified, parse_trusted_keys};
use heddle_runtime::{Adapter, Call, Credential, Runtime, Settings, Target, Urgency, Vault, VaultError};
use serde_json::Value;

use crate::support::{compiler, packages, target_folder};

/// What the clock says in every recording, in milliseconds.
pub(super) const NOW_MS: i64 = 1_767_225_600_000;

/// The controller that is recorded.
pub(super) struct Peer {
    pub(super) url: String,
    /// Names and values of a credential, as the API takes them.
    pub(super) credential: Value,
    pub(super) settings: Value,
    pub(super) tls: TlsPolicy,
    /// Makes the references of secrets. Whoever knows it can try words until one has the reference of a secret.
    pub(super) reference_key: [u8; 32],
    /// What it is, in words.
    pub(super) source: String,
}

struct OneCredential {
    fields: Vec<(String, String)>,
    reference_key: [u8; 32],
}

#[async_trait::async_trait]
impl Vault for OneCredential {
    async fn credential(&self, _: OrgId, _: CredentialId) -> Result<Credential, VaultError> {
        let field = |(name, value): &(String, String)| (name.clone(), Secret::new(value.as_str()));
        Ok(Credential { fields: self.fields.iter().map(field).collect() })
    }

    fn reference_key(&self, _: ControllerId) -> [u8; 32] {
        self.reference_key
    }
}

/// The adapter, and a call to its controller.
pub(super) struct Sandbox {
    pub(super) adapter: Adapter,
    pub(super) call: Call,
    pub(super) runtime: Arc<Runtime>,
}

impl Sandbox {
    pub(super) async fn start(vendor: &str, peer: &Peer) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let credential = peer.credential.as_object().expect("a credential has fields").iter();
        let credential = credential.map(|(name, value)| {
            let value = value.as_str().expect("a credential's fields are texts");
            (name.replace('_', "-"), value.to_owned())
        });
        let now = chrono::DateTime::from_timestamp_millis(NOW_MS).expect("the time exists");
        let clock = Clock::standing_at(now);
        let settings = Settings {
            code_cache_dir: target_folder().join("cassette-code"),
            code_cache_key: [7; 32],
            compiler: compiler(),
            extra_networks: ["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]
                .map(|network| network.parse().expect("a network"))
                .into(),
            plugin_networks: Vec::new(),
            denied_networks: Vec::new(),
            pooling_instances: 8,
            guest_workers: 2,
            tap: None,
        };
        let vault =
            Arc::new(OneCredential { fields: credential.collect(), reference_key: peer.reference_key });
        let runtime = Runtime::start(settings, vault, clock.clone()).expect("the runtime starts");
        let trusted = std::fs::read(packages().join("trusted-keys.json")).expect("packages are built");
        let trusted = parse_trusted_keys(&trusted).expect("the keys are sound");
        let package = Verified::open_dir(&packages().join(vendor), &trusted).expect("the package is signed");
        let adapter = runtime.load(&package).await.expect("the adapter is loaded");
        let call = Call {
            target: Target {
                org_id: clock.new_id(),
                controller_id: clock.new_id(),
                url: peer.url.parse().expect("the controller has a URL"),
                tls: peer.tls.clone(),
                credential_id: clock.new_id(),
                credential_version: 1,
                settings: peer.settings.clone(),
                site_ref: None,
            },
            request_id: "cassette".to_owned(),
            deadline: Some(Duration::from_mins(1)),
            progress: None,
            urgency: Urgency::Ordinary,
        };
        Self { adapter, call, runtime }
    }
}
