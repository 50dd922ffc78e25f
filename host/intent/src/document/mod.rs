//! Documents of intent: what people can set at a site, exported as one document, and planned back against it.
//!
//! A document is compared with the last readings, and its differences are staged; nothing is applied by itself.

mod bounds;
mod diff;
mod format;
mod json;
mod live;
mod model;
mod plan;
mod routes;
mod stage;
mod yaml;

use heddle_kernel::app::SharedApp;
use heddle_kernel::feature::Feature;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;

/// Import and export of what is wanted of sites.
pub struct Documents;

impl Feature for Documents {
    fn name(&self) -> &'static str {
        "intent"
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::INTENT
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes()
    }
}
