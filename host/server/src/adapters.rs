//! Adapter packages: verified, loaded, and pointed at controllers.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use heddle_core::{Clock, ControllerId, CredentialId, OrgId};
use heddle_marketplace::{TrustedKey, Verified};
use heddle_runtime::{Adapter, Call, Credential, Runtime, Settings, Target, Vault, VaultError};
use heddle_store::Db;
use heddle_store::controllers::ControllerTarget;

use serde_json::Value;

use crate::app::{App, Surroundings};
use crate::config::Config;
use crate::http::error::{Detail, Error};
use crate::keys::Keys;
use crate::tenancy::credentials::sealed::Fields;

/// A package that was not loaded.
#[derive(Debug, Clone)]
pub struct RefusedAdapter {
    pub package: String,
    pub reason: String,
}

/// Half of the cores, at least two: a burst of guest CPU cannot delay the API.
fn guest_workers() -> usize {
    std::thread::available_parallelism().map_or(2, |n| (n.get() / 2).max(2))
}

pub(crate) fn start_runtime(
    config: &Config,
    keys: &Keys,
    db: &Db,
    clock: &Clock,
    surroundings: Surroundings,
) -> anyhow::Result<Arc<Runtime>> {
    let settings = Settings {
        code_cache_dir: config.data_dir.join("code"),
        code_cache_key: *keys.code_cache_key(),
        compiler: surroundings.compiler,
        extra_networks: config.egress_extra_networks.clone(),
        denied_networks: config.egress_denied_networks.clone(),
        pooling_instances: config.component_instances,
        guest_workers: guest_workers(),
        tap: surroundings.tap,
    };
    let vault = Arc::new(StoredVault { db: db.clone(), keys: keys.clone() });
    Runtime::start(settings, vault, clock.clone()).context("component runtime cannot be started")
}

/// Loads every package of the folder. One that is refused does not keep the server from starting.
pub(crate) async fn load_packages(config: &Config, runtime: &Runtime) -> Vec<RefusedAdapter> {
    let Some(folder) = &config.adapter_packages else {
        tracing::warn!("no adapter is loaded: ADAPTER_PACKAGES is not set, so no controller can be managed");
        return Vec::new();
    };
    let trusted = match trusted_keys(config) {
        Ok(trusted) => trusted,
        Err(error) => {
            tracing::error!(error = %error, "trusted keys cannot be read, no adapter is loaded");
            return vec![RefusedAdapter { package: "all".to_owned(), reason: error.to_string() }];
        }
    };
    let mut refused = Vec::new();
    let folders = package_folders(folder).unwrap_or_else(|error| {
        tracing::error!(folder = %folder.display(), error = %error, "ADAPTER_PACKAGES cannot be read, no adapter is loaded");
        let reason = format!("ADAPTER_PACKAGES '{}' cannot be read: {error}", folder.display());
        refused.push(RefusedAdapter { package: "all".to_owned(), reason });
        Vec::new()
    });
    for path in folders {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        match load(&path, &trusted, runtime).await {
            Ok(adapter) => {
                tracing::info!(
                    component = adapter.id(),
                    version = adapter.version(),
                    "loaded adapter {name}"
                );
            }
            Err(reason) => {
                tracing::error!(component = %name, reason = %reason, "refused adapter {name}");
                refused.push(RefusedAdapter { package: name, reason });
            }
        }
    }
    if runtime.adapters().is_empty() {
        tracing::warn!(
            folder = %folder.display(),
            "no adapter is loaded from ADAPTER_PACKAGES '{}', so no controller can be managed",
            folder.display()
        );
    }
    refused
}

async fn load(path: &Path, trusted: &[TrustedKey], runtime: &Runtime) -> Result<Adapter, String> {
    let package = Verified::open_dir(path, trusted).map_err(|error| error.to_string())?;
    runtime.load(&package).await.map_err(|error| error.to_string())
}

pub(crate) fn trusted_keys(config: &Config) -> anyhow::Result<Vec<TrustedKey>> {
    let Some(path) = &config.adapter_trusted_keys else { return Ok(Vec::new()) };
    let text = std::fs::read(path).with_context(|| format!("ADAPTER_TRUSTED_KEYS '{}'", path.display()))?;
    Ok(heddle_marketplace::parse_trusted_keys(&text)?)
}

pub(crate) fn package_folders(folder: &Path) -> std::io::Result<Vec<std::path::PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    let mut folders: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_package(path)).collect();
    folders.sort();
    Ok(folders)
}

/// A folder whose name does not begin with a dot: those are being written.
fn is_package(path: &Path) -> bool {
    path.is_dir() && path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'))
}

/// Decrypts credentials for the egress engine.
struct StoredVault {
    db: Db,
    keys: Keys,
}

#[async_trait::async_trait]
impl Vault for StoredVault {
    async fn credential(&self, org: OrgId, id: CredentialId) -> Result<Credential, VaultError> {
        let failed = |error: &dyn std::fmt::Display| VaultError(error.to_string());
        let mut tx = self.db.read().await.map_err(|e| failed(&e))?;
        let row = heddle_store::credentials::find_sealed(&mut tx, org, id).await.map_err(|e| failed(&e))?;
        let row = row.ok_or_else(|| VaultError("it was removed".to_owned()))?;
        let fields = Fields::open(&self.keys, id, &row.secret).map_err(|e| failed(&e))?;
        Ok(Credential { fields: fields.into_named() })
    }

    fn reference_key(&self, controller: ControllerId) -> [u8; 32] {
        *self.keys.reference_key(controller)
    }
}

impl App {
    /// The adapter of a controller's vendor.
    pub fn adapter(&self, vendor: &str) -> Result<Adapter, Error> {
        self.runtime.adapter(vendor).ok_or_else(|| Error::BadRequest {
            kind: "unknown_vendor",
            message: format!(
                "vendor '{vendor}' has no installed adapter; installed are: {}",
                self.vendors().join(", ")
            ),
        })
    }

    /// There should be adapters, and there is none.
    pub(crate) fn modules_have_failed(&self) -> bool {
        !self.refused_adapters.is_empty() && self.runtime.adapters().is_empty()
    }

    /// Every refused package with its reason, in one sentence; `None` when all were loaded.
    pub(crate) fn refusals(&self) -> Option<String> {
        let refusals = self.refused_adapters.iter().map(|r| format!("{}: {}", r.package, r.reason));
        Some(refusals.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
    }

    pub fn vendors(&self) -> Vec<String> {
        self.runtime.adapters().iter().map(|adapter| adapter.id().to_owned()).collect()
    }
}

/// Every way in which a value does not fit a schema of an adapter's, by field.
pub(crate) fn validate(schema: &Value, value: &Value, name: &str) -> Result<(), Error> {
    let validator = jsonschema::validator_for(schema).map_err(|error| Error::internal(error.to_string()))?;
    let details: Vec<Detail> = validator
        .iter_errors(value)
        .map(|error| {
            let field = format!("{name}{}", error.instance_path().to_string().replace('/', "."));
            Detail::new(field, error.masked_with("the value").to_string(), error.kind().keyword())
        })
        .collect();
    if details.is_empty() { Ok(()) } else { Err(Error::Validation(details)) }
}

/// A controller's settings fit what its adapter declares; an adapter that declares nothing takes none.
pub(crate) fn validate_settings(adapter: &Adapter, settings: &Value) -> Result<(), Error> {
    let none = serde_json::json!({ "type": "object", "additionalProperties": false });
    validate(adapter.config_schema().unwrap_or(&none), settings, "settings")
}

/// One call's surroundings for this controller.
pub(crate) fn call_for(controller: &ControllerTarget, request_id: &str) -> Result<Call, Error> {
    let url = controller.url.parse().map_err(Error::internal)?;
    let tls = serde_json::from_value(controller.tls.clone()).map_err(Error::internal)?;
    Ok(Call {
        target: Target {
            org_id: controller.org_id,
            controller_id: controller.id,
            url,
            tls,
            credential_id: controller.credential_id,
            credential_version: controller.credential_version,
            settings: controller.settings.clone(),
            site_ref: None,
        },
        request_id: request_id.to_owned(),
        deadline: None,
        progress: None,
    })
}
