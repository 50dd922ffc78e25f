//! Adapter packages: verified, loaded, and pointed at controllers.

mod diagnostics;
mod installed;
mod named;
mod packages;
mod reading;
mod revoked;
mod routes;

use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::{Diagnostic, Feature, Names, Worker};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::misfit;
use heddle_kernel::modules::LastRefused;
use heddle_marketplace::Schema;
use heddle_packages::settings::AdapterSettings;
use heddle_runtime::{Adapter, Call, Target, Urgency};
use heddle_store::controllers::ControllerTarget;
use serde_json::Value;

pub use self::installed::{install_listed, shown, to_its_end};
pub use self::named::id_of as package_id;
pub use self::reading::take_up_revocations;
pub use self::revoked::{revoked_adapters, withdraw_revoked};

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
        let turns = installed::Turns::new();
        let refused = packages::load_all(app, &turns, &mut *turns.take().await).await;
        parts.add(LastRefused::new(refused));
        parts.add(turns);
        parts.add(reading::Asked::new(asked));
    }

    fn routes(&self, app: &SharedApp) -> Routes {
        let vendors = app.vendors();
        routes::routes(&vendors).merge(installed::routes(&vendors))
    }

    fn diagnostics(&self) -> &'static [Diagnostic] {
        diagnostics::DIAGNOSTICS
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![
            Worker::new("adapters.releases", routes::follow_releases(app.clone())),
            Worker::new("adapters.read", reading::read_when_asked(app.clone())),
            Worker::new("adapters.installed", installed::follow(app.clone())),
        ]
    }
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
