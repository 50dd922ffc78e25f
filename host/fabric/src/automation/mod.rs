//! Automation in addition to the Fabric: what the clock starts, and what a user asks for at once.
//!
//! Rules are the Fabric's Connections under another path; all of it runs through the Fabric's executor.

mod actions;
mod schedules;
pub mod timetable;

use heddle_kernel::app::SharedApp;
use heddle_kernel::feature::{Feature, Worker};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;

use crate::kinds::Schedules;
use crate::trial;

/// Rules, schedules and actions.
pub struct Automation;

impl Feature for Automation {
    fn name(&self) -> &'static str {
        "automation"
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::AUTOMATION
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        schedules::routes().merge(trial::routes::<Schedules>()).merge(actions::routes())
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![Worker::new("automation.schedules", schedules::keep_time(app.clone()))]
    }
}
