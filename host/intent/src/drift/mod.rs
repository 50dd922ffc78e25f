//! The ledger of drift: what is wanted of objects, and where they differ from it.
//!
//! What is wanted is what was applied last, what a person adopted, or else what was observed first. Readings are compared
//! with it; no comparison reaches a device. A difference is adopted, or put back by a staged change; neither happens by
//! itself.

mod comparison;
mod declarations;
mod judge;
mod label;
mod outcome;
mod own;
mod put_back;
mod round;
mod routes;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod versions;

use futures::FutureExt as _;
use heddle_inventory::controllers::declarations::CONTROLLER_READ;
use heddle_kernel::app::SharedApp;
use heddle_kernel::feature::{Feature, Forget, Names, Worker};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::resource::StepObject;
use heddle_store::{drift, wanted};

/// Days for which a closed difference is kept.
const KEPT_DAYS: i64 = 90;

const FORGETS: &[Forget] = &[
    Forget { days: KEPT_DAYS, batch: |tx, before, rows| drift::trim(tx, before, rows).boxed() },
    // Of lists that are read no more nothing is wanted, and nothing differs.
    Forget { days: 0, batch: |tx, now, rows| drift::resolve_unread(tx, now, rows).boxed() },
    Forget { days: 0, batch: |tx, _, rows| wanted::sweep(tx, rows).boxed() },
];

/// What is wanted, and what differs from it.
pub struct Ledger;

impl Feature for Ledger {
    fn name(&self) -> &'static str {
        "drift"
    }

    fn declares(&self) -> &'static Names {
        const { &Names::of(declarations::PERMISSIONS, declarations::EVENTS, &[]) }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::DRIFT
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes::routes(Access::Permission(CONTROLLER_READ))
    }

    fn step_objects(&self) -> &'static [StepObject] {
        const { &[routes::IN_STEPS] }
    }

    fn forgets(&self) -> &'static [Forget] {
        FORGETS
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![Worker::new("drift.compare", round::run(app.clone()))]
    }
}
