//! The files that devices are giving this process now: few at a time, so that slow devices keep places free for others.

use heddle_core::{ControllerId, OrgId, Permission};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;

use crate::places::{Held, NoPlace, Places};

/// Files that the devices of an organization give at once: a quarter of its calls.
const FETCHES_OF_ORG_MAX: usize = 4;
/// Files that devices give to a process at once.
const FETCHES_MAX: usize = 16;

/// The controllers that give a file now, and whose they are; and who may have what they gave.
///
/// The room that has devices give files opens it: which permission a vendor's devices need is said there.
#[derive(Debug, Clone)]
pub struct Fetches {
    places: Places<ControllerId>,
    needed: fn(&str) -> Permission,
}

impl Fetches {
    /// Starts without fetches. `needed` returns the permission that a caller needs to read files of a vendor's devices. It
    /// gets an empty text where the controller was removed and its vendor is not known.
    pub fn new(needed: fn(&str) -> Permission) -> Self {
        Self { places: Places::default(), needed }
    }

    /// Returns the fetches of this process.
    pub fn of(app: &App) -> &Self {
        app.part()
    }

    /// Begins one, if there is a place for it.
    pub fn begin(&self, org: OrgId, controller: ControllerId) -> Result<Held<ControllerId>, Error> {
        self.places.take(controller, org, (FETCHES_OF_ORG_MAX, FETCHES_MAX)).map_err(|none| {
            let message = match none {
                NoPlace::Same => "the controller is giving a file already; try again when it has ended",
                NoPlace::Full => "other files are being fetched; try again when one has ended",
            };
            Error::Conflict { kind: "limit_reached", message: message.to_owned() }
        })
    }

    /// The permission that a caller needs for what a device of this vendor gave.
    pub(crate) fn needed(&self, vendor: &str) -> Permission {
        (self.needed)(vendor)
    }
}
