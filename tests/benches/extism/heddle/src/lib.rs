//! The plugin of the bench as an author writes it for Heddle.

mod work;

use heddle_sdk::plugin::{Action, Entry, Host, Plugin, action};
use heddle_sdk::{Fault, register_plugin};

struct Compared;

impl Plugin for Compared {
    const ACTIONS: &'static [Entry] = &[action::<Echo>(), action::<Inventory>()];
}

register_plugin!(Compared);

struct Echo;

impl Action for Echo {
    const ID: &'static str = "echo";
    type Params = work::Said;
    type Output = work::Said;

    fn run(_: &dyn Host, said: work::Said) -> Result<work::Said, Fault> {
        Ok(work::echo(said))
    }
}

struct Inventory;

impl Action for Inventory {
    const ID: &'static str = "inventory";
    type Params = work::Listing;
    type Output = work::Inventory;

    fn run(_: &dyn Host, listing: work::Listing) -> Result<work::Inventory, Fault> {
        Ok(work::inventory(listing))
    }
}
