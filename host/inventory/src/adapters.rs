//! Adapter packages: verified, loaded, and pointed at controllers.

mod diagnostics;
mod packages;
mod reading;
mod routes;

use heddle_kernel::feature::Names;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::{Config, SettingsOf};
use heddle_kernel::feature::{Diagnostic, Feature, Worker};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::misfit;
use heddle_kernel::modules::LastRefused;
use heddle_marketplace::{Schema, TrustedKey};
use heddle_runtime::{Adapter, Call, Target, Urgency};
use heddle_store::controllers::ControllerTarget;
use serde_json::Value;

/// Installed adapters.
pub struct Adapters;

#[async_trait::async_trait]
impl Feature for Adapters {
    fn name(&self) -> &'static str {
        "adapters"
    }

    fn declares(&self) -> &'static Names {
        const { &Names { settings: &[SettingsOf::the::<AdapterSettings>()], ..Names::NONE } }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::ADAPTERS
    }

    async fn open(&self, app: &App, parts: &mut Parts) {
        // A signal that comes while the packages are read is kept.
        let asked = reading::asked();
        let mut serving = packages::Serving::new();
        parts.add(LastRefused::new(packages::load_all(app, &mut serving).await));
        parts.add(reading::Packages::new(serving, asked));
    }

    fn routes(&self, app: &SharedApp) -> Routes {
        routes::routes(&app.vendors())
    }

    fn diagnostics(&self) -> &'static [Diagnostic] {
        diagnostics::DIAGNOSTICS
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![
            Worker::new("adapters.releases", routes::follow_releases(app.clone())),
            Worker::new("adapters.read", reading::read_when_asked(app.clone())),
        ]
    }
}

heddle_kernel::settings! {
    /// Which packages serve.
    pub struct AdapterSettings {
        /// Folder with one folder per adapter package.
        packages: Option<PathBuf> = "ADAPTER_PACKAGES", "";
        /// File with the publishers' keys that are trusted and the adapters that each may sign, as JSON.
        trusted_keys: Option<PathBuf> = "ADAPTER_TRUSTED_KEYS", "";
        /// Packages that may serve although a newer version did, as `id@version`, separated by commas.
        downgrades: Vec<String> = "ADAPTER_DOWNGRADES", "";
    }
}

fn trusted_keys(config: &Config) -> anyhow::Result<Vec<TrustedKey>> {
    let Some(path) = &config.of::<AdapterSettings>().trusted_keys else { return Ok(Vec::new()) };
    let text = std::fs::read(path).with_context(|| format!("ADAPTER_TRUSTED_KEYS '{}'", path.display()))?;
    Ok(heddle_marketplace::parse_trusted_keys(&text)?)
}

fn package_folders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    let entries: Vec<_> = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    let mut folders: Vec<_> = entries.into_iter().filter(|path| is_package(path)).collect();
    folders.sort();
    Ok(folders)
}

/// Whether it is a folder whose name does not begin with a dot: folders with a dot are being written.
fn is_package(path: &Path) -> bool {
    path.is_dir() && path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'))
}

/// Every way in which a value does not fit a schema of an adapter's, by field. The schema was compiled when it was loaded.
pub fn validate(schema: &Schema, value: &Value, name: &str) -> Result<(), Error> {
    let details = misfit::details(schema.validator(), schema.document(), value, name);
    if details.is_empty() { Ok(()) } else { Err(Error::Validation(details)) }
}

/// Requires that a controller's settings fit what its adapter declares.
pub(crate) fn validate_settings(adapter: &Adapter, settings: &Value) -> Result<(), Error> {
    validate(adapter.settings_schema(), settings, "settings")
}

/// Returns the context of one call to this controller.
pub fn call_for(controller: &ControllerTarget, request_id: &str) -> Result<Call, Error> {
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
        urgency: Urgency::Ordinary,
    })
}
