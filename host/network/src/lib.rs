//! Networks over all controllers of a site: VLANs side by side, compared, aligned, and distributed from a brain.
//!
//! Everything that is shown comes from what readings stored: nothing here asks a device. What is to be changed is staged, for
//! a person to apply.

mod align;
mod author;
mod brain;
mod canonical;
mod compare;
mod declarations;
mod drift;
mod glossary;
mod intent;
mod routes;
mod site;
mod staging;
pub mod steps;
mod views;

use heddle_kernel::app::SharedApp;
use heddle_kernel::feature::{Feature, Guard, Names, Worker};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::resource::StepObject;

/// Networks over all controllers of a site.
pub struct Network;

impl Feature for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn declares(&self) -> &'static Names {
        const { &Names { events: declarations::EVENTS, ..Names::NONE } }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::NETWORK
    }

    fn step_objects(&self) -> &'static [StepObject] {
        const { &[canonical::IN_STEPS] }
    }

    fn guards(&self) -> &'static [(&'static str, Guard)] {
        brain::GUARDS
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes().merge(brain::routes())
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![Worker::new("network.drift", drift::watch(app.clone()))]
    }
}
