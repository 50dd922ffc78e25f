//! The marketplace: a signed catalogue of packages, which is followed, browsed and installed from.
//!
//! [`sync`] updates what is believed of the catalogue, in one transaction with what it revokes; the package format judges every
//! byte of it. [`install`] fetches a package and hands it on to the part that installs packages of its kind: a package of the
//! catalogue serves under the same rules as one that was sent.

mod declarations;
mod diagnostics;
mod follow;
mod glossary;
mod install;
mod ratings;
mod retries;
mod revoked;
mod routes;
mod settings;
mod shelf;
mod source;
mod sync;
mod trust;
mod view;

use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::{Diagnostic, Feature, Names, Worker};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;

use self::revoked::Part;
use self::settings::CatalogSettings;
use self::shelf::Shelves;

/// The catalogue of packages.
pub struct Marketplace;

#[async_trait::async_trait]
impl Feature for Marketplace {
    fn name(&self) -> &'static str {
        "marketplace"
    }

    fn declares(&self) -> &'static Names {
        const {
            &Names {
                events: declarations::EVENTS,
                subscriptions: declarations::SUBSCRIPTIONS,
                settings: &[SettingsOf::the::<CatalogSettings>()],
                ..Names::NONE
            }
        }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::MARKETPLACE
    }

    async fn open(&self, _: &App, parts: &mut Parts) {
        parts.add(Shelves::default());
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes()
    }

    fn diagnostics(&self) -> &'static [Diagnostic] {
        diagnostics::DIAGNOSTICS
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![
            Worker::new("marketplace.follow", follow::follow(app.clone())),
            Worker::new("marketplace.withdraw", revoked::follow(app.clone(), Part::Withdraw)),
            Worker::new("marketplace.stand_in", revoked::follow(app.clone(), Part::StandIn)),
        ]
    }
}
