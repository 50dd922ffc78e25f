//! Takes controllers whose channels no process has, as many as this process has places for.
//!
//! Connections that are open are counted, and not those that are asked for: what is dead or refuses keeps no others out. What an
//! organization has beyond its share is left to other processes.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use heddle_core::{OrgId, ProcessId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_runtime::{Adapter, CHANNELS_MAX, CHANNELS_PER_ORGANIZATION_MAX, ChannelsOpen, Whose};
use heddle_store::push::{self, Free};

use crate::plan;

/// Controllers that a process takes in one look: others have a chance, too.
const TAKEN_MAX: usize = 64;
/// Controllers that a process holds at most, with those whose channels cannot be opened; and those of one organization.
const HELD_MAX: usize = 10_000;
const ORGANIZATION_HELD_MAX: usize = 1_000;
/// Controllers that a full process takes in one look, for which no process says that changes are seen at the interval: their channels
/// are refused a place, which says it.
const TOLD_MAX: usize = 8;
/// How long a process takes no controllers that need a connection, or none of an organization, when it had no place for one.
const FULL: Duration = Duration::from_mins(1);

/// What this process had no place for.
#[derive(Default)]
pub(crate) struct Claims {
    /// When it had none for a controller.
    full_at: Option<Instant>,
    /// When it had none for one of an organization.
    organizations_full_at: HashMap<OrgId, Instant>,
}

impl Claims {
    /// Notes that there was no place for a controller of this organization.
    pub(crate) fn had_no_place(&mut self, whose: Whose, org: OrgId) {
        match whose {
            Whose::Organization => {
                self.organizations_full_at.insert(org, Instant::now());
            }
            Whose::Process | Whose::Controller => self.full_at = Some(Instant::now()),
        }
    }

    /// Takes controllers whose channels no process has, as many as there are places for.
    pub(crate) async fn take(
        &mut self,
        app: &SharedApp,
        (owner, held): (ProcessId, &HashMap<OrgId, usize>),
        is_on: bool,
    ) -> Result<(), Error> {
        let room = HELD_MAX.saturating_sub(held.values().sum()).min(TAKEN_MAX);
        let open = app.runtime.channels_open();
        let is_full = self.full_at.is_some_and(is_recent) || open.all >= CHANNELS_MAX;
        self.organizations_full_at.retain(|_, at| is_recent(*at));
        let many = of_many(held);
        let full = without_place(&many, &open, &self.organizations_full_at);
        let (opened, hooks): (Vec<Vendor>, Vec<Vendor>) =
            with_channels(app).into_iter().partition(|vendor| vendor.is_opened);
        let (opened, hooks) = (names(opened), names(hooks));
        let mut tx = app.db.read().await?;
        let mut free = Vec::new();
        if is_on {
            free = push::free(&mut tx, &hooks, Free::All, &many, room).await?;
            if !is_full {
                free.extend(push::free(&mut tx, &opened, Free::All, &full, room).await?);
            }
        }
        if !is_on || is_full || !full.is_empty() {
            let all = [opened, hooks].concat();
            free.extend(push::free(&mut tx, &all, Free::Telling, &many, TOLD_MAX).await?);
        }
        drop(tx);
        if free.is_empty() {
            return Ok(());
        }
        let mut tx = app.db.write().await?;
        push::claim(&mut tx, &free, owner).await?;
        Ok(tx.commit().await?)
    }
}

/// Vendors whose packages have channels.
pub(crate) fn vendors(app: &SharedApp) -> Vec<String> {
    names(with_channels(app))
}

/// A vendor whose package has channels.
struct Vendor {
    name: String,
    /// The host opens some of them.
    is_opened: bool,
}

fn with_channels(app: &SharedApp) -> Vec<Vendor> {
    let adapters = app.runtime.adapters();
    let with_channels = adapters.iter().filter(|adapter| !adapter.manifest().push.is_empty());
    let vendor = |adapter: &Adapter| Vendor {
        name: adapter.id().to_owned(),
        is_opened: plan::is_opened(&adapter.manifest().push),
    };
    with_channels.map(vendor).collect()
}

fn names(vendors: Vec<Vendor>) -> Vec<String> {
    vendors.into_iter().map(|vendor| vendor.name).collect()
}

fn is_recent(at: Instant) -> bool {
    at.elapsed() < FULL
}

/// The organizations of which this process holds as many controllers as it may.
fn of_many(held: &HashMap<OrgId, usize>) -> Vec<OrgId> {
    held.iter().filter(|(_, held)| **held >= ORGANIZATION_HELD_MAX).map(|(org, _)| *org).collect()
}

/// Those, and the ones that this process has no connection for, or had none a short time ago.
fn without_place(many: &[OrgId], open: &ChannelsOpen, full_at: &HashMap<OrgId, Instant>) -> Vec<OrgId> {
    let of_open = open.organizations.iter();
    let of_open = of_open.filter(|(_, open)| **open >= CHANNELS_PER_ORGANIZATION_MAX).map(|(org, _)| org);
    let all: HashSet<OrgId> = many.iter().chain(of_open).chain(full_at.keys()).copied().collect();
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn an_organization_that_has_its_share_keeps_no_others_out() {
        let clock = Clock::default();
        let ids: Vec<OrgId> = (0..4).map(|_| clock.new_id()).collect();
        let [many, opened, refused, other] = [ids[0], ids[1], ids[2], ids[3]];
        // Controllers that are dead or refuse count among those that are held, and among no connections.
        let held = HashMap::from([(many, ORGANIZATION_HELD_MAX), (opened, 128), (refused, 90), (other, 999)]);
        let organizations = HashMap::from([(opened, CHANNELS_PER_ORGANIZATION_MAX), (other, 127)]);
        let open = ChannelsOpen { all: 255, organizations };
        assert_eq!(of_many(&held), [many]);
        let mut full = without_place(&[many], &open, &HashMap::from([(refused, Instant::now())]));
        full.sort();
        let mut expected = vec![many, opened, refused];
        expected.sort();
        assert_eq!(full, expected);
    }
}
