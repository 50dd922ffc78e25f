//! Components that do what no component should, and what becomes of each.
//!
//! The guest is `tests/hostile`; a small server plays its device and keeps
//! every request that reached it. The tests call the runtime itself: what the
//! server makes of a fault is tested elsewhere.

mod addresses;
mod bodies;
mod breaker;
mod crash;
pub(crate) mod device;
mod install;
mod load;
mod neighbours;
pub(crate) mod package;
mod plugin;
mod reading;
mod reads;
mod releases;
mod resources;
mod secrets;
mod uploads;
mod uploads_elsewhere;
mod uploads_refused;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use heddle_core::fault::Fault;
use heddle_core::secret::Secret;
use heddle_core::tls::TlsPolicy;
use heddle_core::{Clock, ControllerId, CredentialId, OrgId};
use heddle_runtime::{
    Adapter, Call, CallError, Credential, Runtime, Settings, Target, TrapClass, Urgency, Vault, VaultError,
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::support::{compiler, target_folder};
use device::Device;

/// The password of the device; every encoding changes it.
const CANARY: &str = "canary/p+w \"7&=\\x";
const CACHE_KEY: [u8; 32] = [7; 32];

/// A credential store with one credential.
struct OneCredential;

#[async_trait::async_trait]
impl Vault for OneCredential {
    async fn credential(&self, _: OrgId, _: CredentialId) -> Result<Credential, VaultError> {
        let field = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
        Ok(Credential { fields: vec![field("username", "root"), field("password", CANARY)] })
    }

    fn reference_key(&self, _: ControllerId) -> [u8; 32] {
        [9; 32]
    }
}

/// A runtime with the hostile adapter in it, and a device.
struct Lab {
    device: Device,
    runtime: Arc<Runtime>,
    adapter: Adapter,
    clock: Clock,
    org: OrgId,
    controller: ControllerId,
}

/// Compiled code that all tests share, so that the guest is compiled once.
fn shared_code() -> PathBuf {
    target_folder().join("sandbox-code")
}

fn start_runtime(code: &Path, extra_networks: &[&str], clock: &Clock) -> Arc<Runtime> {
    start_runtime_with(code, CACHE_KEY, extra_networks, clock)
}

fn start_runtime_with(code: &Path, key: [u8; 32], extra_networks: &[&str], clock: &Clock) -> Arc<Runtime> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let settings = Settings {
        code_cache_dir: code.to_owned(),
        code_cache_key: key,
        compiler: compiler(),
        extra_networks: extra_networks.iter().map(|text| text.parse().expect("a network")).collect(),
        // Targets of plugins of the tests are on this machine, too.
        plugin_networks: extra_networks.iter().map(|text| text.parse().expect("a network")).collect(),
        denied_networks: Vec::new(),
        pooling_instances: 32,
        guest_workers: 2,
        tap: None,
    };
    Runtime::start(settings, Arc::new(OneCredential), clock.clone()).expect("the runtime starts")
}

/// Loads a package; one at a time, so that only the first test compiles it.
async fn load(runtime: &Runtime, manifest: &Value, component: &[u8]) -> Result<Adapter, String> {
    static ONE: Mutex<()> = Mutex::const_new(());
    let _one = ONE.lock().await;
    let verified = package::verified(manifest, component);
    runtime.load(&verified).await.map_err(|error| error.to_string())
}

impl Lab {
    async fn start() -> Self {
        Self::start_with(&package::manifest()).await
    }

    /// With limits or capabilities of its own.
    async fn start_with(manifest: &Value) -> Self {
        let clock = Clock::default();
        let runtime = start_runtime(&shared_code(), &["127.0.0.0/8"], &clock);
        let adapter = load(&runtime, manifest, &package::hostile()).await.expect("the guest is loaded");
        let (org, controller) = (clock.new_id(), clock.new_id());
        Self { device: Device::start().await, runtime, adapter, clock, org, controller }
    }

    /// A call to the device as the lab's controller.
    fn call(&self) -> Call {
        self.call_as(self.controller)
    }

    fn call_as(&self, controller_id: ControllerId) -> Call {
        self.call_to(controller_id, &self.device.url())
    }

    fn call_to(&self, controller_id: ControllerId, url: &str) -> Call {
        Call {
            target: Target {
                org_id: self.org,
                controller_id,
                url: url.parse().expect("a controller has a URL"),
                tls: TlsPolicy::default(),
                credential_id: self.clock.new_id(),
                credential_version: 1,
                settings: json!({}),
                site_ref: None,
            },
            request_id: "sandbox".to_owned(),
            deadline: Some(Duration::from_secs(30)),
            progress: None,
            urgency: Urgency::Ordinary,
        }
    }

    /// Asks for the objects of this kind, which makes the guest behave so.
    async fn ask(&self, behaviour: &str) -> Result<Value, CallError> {
        objects(&self.adapter, &self.call(), behaviour).await
    }

    /// What the guest reports after a behaviour that it survives.
    #[track_caller]
    fn report(&self, behaviour: &'static str) -> impl Future<Output = Value> {
        let asked = std::panic::Location::caller();
        async move {
            match self.ask(behaviour).await {
                Ok(report) => report,
                Err(error) => panic!("{asked}: '{behaviour}' was not survived: {error:?}"),
            }
        }
    }
}

/// The body of the first object.
async fn objects(adapter: &Adapter, call: &Call, kind: &str) -> Result<Value, CallError> {
    let mut page = adapter.list_objects(call, kind, None, None, 100, &[]).await?;
    Ok(page.items.remove(0).body)
}

/// Why the guest was stopped.
#[track_caller]
fn trap<T: std::fmt::Debug>(ended: Result<T, CallError>) -> TrapClass {
    match ended {
        Err(CallError::Trap { class, component, reference, .. }) => {
            assert_eq!(component, "hostile");
            assert!(!reference.is_empty());
            class
        }
        other => panic!("the guest was not stopped: {other:?}"),
    }
}

/// What the host said instead of taking the guest's answer.
#[track_caller]
fn fault<T: std::fmt::Debug>(ended: Result<T, CallError>) -> Fault {
    match ended {
        Err(CallError::Fault(fault)) => fault,
        other => panic!("there is no fault: {other:?}"),
    }
}

/// Every outcome of a report is a refusal with this code.
#[track_caller]
fn all_refused(report: &Value, code: &str) {
    let outcomes = report.as_object().expect("a report names what was tried");
    assert!(!outcomes.is_empty());
    for (what, outcome) in outcomes {
        assert_eq!(outcome["fault"], "denied", "'{what}' was answered with {outcome}");
        assert_eq!(outcome["code"], code, "'{what}' was answered with {outcome}");
    }
}
