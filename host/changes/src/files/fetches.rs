//! The files that devices are giving this process now: few at a time, so that slow devices keep places free for others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use heddle_core::{ControllerId, OrgId};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;

/// Files that the devices of an organization give at once: a quarter of its calls.
const FETCHES_OF_ORG_MAX: usize = 4;
/// Files that devices give to a process at once.
const FETCHES_MAX: usize = 16;

/// The controllers that give a file now, and whose they are.
#[derive(Debug, Default, Clone)]
pub(crate) struct Fetches(Arc<Mutex<HashMap<ControllerId, OrgId>>>);

/// A file that is being fetched, until this is dropped.
#[derive(Debug)]
pub(crate) struct Fetching {
    all: Fetches,
    controller: ControllerId,
}

impl Fetches {
    /// Returns the fetches of this process.
    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Begins one, if there is a place for it.
    pub(crate) fn begin(&self, org: OrgId, controller: ControllerId) -> Result<Fetching, Error> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_org = all.values().filter(|one| **one == org).count();
        let message = if all.contains_key(&controller) {
            "the controller is giving a file already; try again when it has ended"
        } else if of_org >= FETCHES_OF_ORG_MAX || all.len() >= FETCHES_MAX {
            "other files are being fetched; try again when one has ended"
        } else {
            all.insert(controller, org);
            return Ok(Fetching { all: self.clone(), controller });
        };
        Err(Error::Conflict { kind: "limit_reached", message: message.to_owned() })
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.controller);
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn a_controller_gives_one_file_at_a_time_and_an_organization_a_few() {
        let (clock, all) = (Clock::default(), Fetches::default());
        let (org, other): (OrgId, OrgId) = (clock.new_id(), clock.new_id());
        let first: ControllerId = clock.new_id();
        let mut held = vec![all.begin(org, first).unwrap()];
        assert!(all.begin(org, first).is_err(), "one at a time");
        held.extend((1..FETCHES_OF_ORG_MAX).map(|_| all.begin(org, clock.new_id()).unwrap()));
        assert!(all.begin(org, clock.new_id()).is_err(), "the organization has its share");
        held.extend(
            (FETCHES_OF_ORG_MAX..FETCHES_MAX).map(|_| all.begin(clock.new_id(), clock.new_id()).unwrap()),
        );
        assert!(all.begin(other, clock.new_id()).is_err(), "the process has no place");
        held.remove(0);
        assert!(all.begin(org, first).is_ok());
    }
}
