//! Automation in addition to the Fabric: what the clock starts, and what a user asks for at once.
//!
//! Rules are the Fabric's Connections under another path; all of it runs through the Fabric's executor.

mod actions;
mod schedules;
mod timetable;

use heddle_core::operation::ConnectionKind;

use crate::app::SharedApp;
use crate::fabric::trial;
use crate::feature::{Feature, Worker};
use crate::http::routes::Routes;

/// Rules, schedules and actions.
pub(crate) struct Automation;

impl Feature for Automation {
    fn name(&self) -> &'static str {
        "automation"
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        schedules::routes()
            .merge(trial::routes("/automation/schedules", "schedule_id", ConnectionKind::Schedule))
            .merge(actions::routes())
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![Worker::new("automation.schedules", schedules::keep_time(app.clone()))]
    }
}
