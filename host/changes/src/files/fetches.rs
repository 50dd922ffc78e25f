//! The files that devices are giving this process now: few at a time, so that slow devices keep places free for others.

use heddle_core::{ControllerId, OrgId};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;

use super::places::{Held, NoPlace, Places};

/// Files that the devices of an organization give at once: a quarter of its calls.
const FETCHES_OF_ORG_MAX: usize = 4;
/// Files that devices give to a process at once.
const FETCHES_MAX: usize = 16;

/// The controllers that give a file now, and whose they are.
#[derive(Debug, Default, Clone)]
pub(crate) struct Fetches(Places<ControllerId>);

impl Fetches {
    /// Returns the fetches of this process.
    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Begins one, if there is a place for it.
    pub(crate) fn begin(&self, org: OrgId, controller: ControllerId) -> Result<Held<ControllerId>, Error> {
        self.0.take(controller, org, (FETCHES_OF_ORG_MAX, FETCHES_MAX)).map_err(|none| {
            let message = match none {
                NoPlace::Same => "the controller is giving a file already; try again when it has ended",
                NoPlace::Full => "other files are being fetched; try again when one has ended",
            };
            Error::Conflict { kind: "limit_reached", message: message.to_owned() }
        })
    }
}
