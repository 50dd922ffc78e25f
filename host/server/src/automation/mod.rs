//! Automation beside the Fabric: what the clock starts, and what somebody asks for at once.
//!
//! Rules are the Fabric's Connections under another path; all of it runs through the Fabric's executor.

mod actions;
mod schedules;
mod timetable;

pub(crate) use schedules::keep_time;

use heddle_core::operation::ConnectionKind;

use crate::fabric::trial;
use crate::http::routes::Routes;

pub(crate) fn routes() -> Routes {
    schedules::routes()
        .merge(trial::routes("/automation/schedules", "schedule_id", ConnectionKind::Schedule))
        .merge(actions::routes())
}
