//! Automation beside the Fabric: what the clock starts, and what somebody asks for at once.
//!
//! Rules are the Fabric's Connections under another path; all of it runs through the Fabric's executor.

mod actions;
mod schedules;
mod timetable;

pub(crate) use schedules::keep_time;

use heddle_core::operation::ConnectionKind;

use crate::app::SharedApp;
use crate::fabric::trial;
use crate::feature::Feature;
use crate::http::routes::Routes;

/// Rules, schedules and actions.
pub(crate) struct Automation;

impl Feature for Automation {
    fn routes(&self, _: &SharedApp) -> Routes {
        schedules::routes()
            .merge(trial::routes("/automation/schedules", "schedule_id", ConnectionKind::Schedule))
            .merge(actions::routes())
    }
}
