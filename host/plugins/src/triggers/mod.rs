//! What calls plugins besides people: events, timers, and settings that were set.
//!
//! The database says what waits ([`follow`] writes it for events, plugins themselves for timers), and every process takes of
//! it what is due: it names itself and moves the time on, calls the plugin, and writes in one transaction how that ended and
//! what is next. What a process that is gone had taken, another one takes. Each call is a run, with the rights of the user who set the
//! plugin in the organization.

mod configure;
mod events;
mod follow;
mod migrate;
mod order;
mod ready;
pub(crate) mod timers;
mod view;
mod work;

use std::collections::HashSet;
use std::mem::discriminant;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use heddle_core::fault::FaultKind;
use heddle_core::{ConnectionId, OrgId, id_of_digest};
use heddle_kernel::app::App;
use heddle_kernel::http::rate_limit::{self, Limit, Rate};
use heddle_kernel::metrics::RateWindow;
use heddle_runtime::{CallError, OUT_OF_SERVICE};
use heddle_store::plugins::PluginUid;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

pub(crate) use self::follow::Follower;
pub(crate) use self::ready::{Callee, Ready, What, ready};
pub(crate) use self::view::routes;
pub(crate) use self::work::work;

/// Calls for events and timers of this process at once. Of them, and of those for settings, the calls for one organization, and
/// those of one plugin in all organizations.
const AT_ONCE: usize = 16;
const OF_ORG: usize = 4;
const OF_PLUGIN: usize = 4;
/// Beside them, calls that tell settings and take over what other versions stored, which can take minutes.
const SETTINGS_AT_ONCE: usize = 8;
/// After so long another process takes what this one took and does not end, although it lives: longer than a call can last.
const LEASE: TimeDelta = TimeDelta::seconds(180);
/// Calls of a plugin in one organization by events and timers.
const RATE: Rate = Rate::per_minute(240);
/// How long after it has none left the next one comes.
const RATE_PAUSE: TimeDelta = TimeDelta::seconds(10);
/// Attempts after which events, or a time, are left out.
const ATTEMPTS_MAX: i64 = 12;
/// Seconds to the second attempt; they double, up to the last figure.
const PAUSE_SECS: i64 = 5;
const PAUSE_SECS_MAX: i64 = 600;

/// What this process is calling plugins for.
#[derive(Debug, Default)]
pub(crate) struct Occasions {
    /// There is something to do.
    pub(crate) wake: Notify,
    held: Arc<Mutex<HashSet<Key>>>,
}

/// A trigger, a timer, or settings, in an organization.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) org: OrgId,
    pub(crate) plugin: PluginUid,
    pub(crate) item: Item,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    Trigger(String),
    Timer(String),
    Settings,
}

/// A place among the calls, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    held: Arc<Mutex<HashSet<Key>>>,
    key: Key,
}

impl Drop for Place {
    fn drop(&mut self) {
        held(&self.held).remove(&self.key);
    }
}

fn held(held: &Mutex<HashSet<Key>>) -> MutexGuard<'_, HashSet<Key>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Occasions {
    /// Those of this process.
    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Places of the same plugin for what is of the same kind.
    fn like(&self, key: &Key) -> usize {
        let kind = discriminant(&key.item);
        let is_like = |other: &&Key| other.plugin == key.plugin && discriminant(&other.item) == kind;
        held(&self.held).iter().filter(is_like).count()
    }

    /// A place for this call; `None` while it is made already, or others have all places.
    fn place(&self, key: Key) -> Option<Place> {
        let mut all = held(&self.held);
        // Settings have places of their own: calls for events and times wait until a new version has taken over what was
        // stored, which is done with the settings, and would keep it from its place.
        let is_settings = key.item == Item::Settings;
        let like = || all.iter().filter(|other| (other.item == Item::Settings) == is_settings);
        let of_org = like().filter(|other| other.org == key.org).count();
        let of_plugin = like().filter(|other| other.plugin == key.plugin).count();
        // The fewer are free, the fewer one organization gets: a few of them do not take all.
        let most = if is_settings { SETTINGS_AT_ONCE } else { AT_ONCE };
        let free = most.saturating_sub(like().count());
        let is_full = free == 0 || of_plugin >= OF_PLUGIN || of_org >= (free / 4).clamp(1, OF_ORG);
        if is_full || all.contains(&key) {
            return None;
        }
        all.insert(key.clone());
        drop(all);
        Some(Place { held: Arc::clone(&self.held), key })
    }
}

/// What stands in the chain of what follows from a plugin: what it led to, by whatever trigger or hook, does not call it.
pub(crate) fn id_in_chains(org: OrgId, plugin: PluginUid) -> ConnectionId {
    let mut hash = Sha256::new_with_prefix(b"heddle-plugin-occasion\0");
    hash.update(org.0.as_bytes());
    hash.update(plugin.0.as_bytes());
    id_of_digest(hash.finalize().into())
}

/// Takes one of the calls that a plugin gets in an organization in a minute; false where there is none left.
async fn take_call(app: &App, callee: &Callee) -> bool {
    let key = format!("plugin_calls:{}:{}", callee.plugin.id(), callee.keeper.org);
    rate_limit::take_one(app, Limit { key, rate: RATE }, RateWindow::Ingest).await.is_ok()
}

/// Whether this counts as no call: others have all places, the plugin failed too often, or the call was cut because the
/// package was taken out of service. It waits like what finds the plugin in quarantine.
fn is_unmade(error: &CallError) -> bool {
    matches!(error, CallError::Overload | CallError::Suspended { .. }) || is_cut(error)
}

/// Whether the host cut the call. What it was about is for the package that serves next.
fn is_cut(error: &CallError) -> bool {
    matches!(error, CallError::Fault(fault) if fault.code.as_deref() == Some(OUT_OF_SERVICE))
}

/// How long after a failed attempt the next one comes.
fn pause(attempts: i64) -> TimeDelta {
    let doubled = u32::try_from(attempts.clamp(1, 20) - 1).unwrap_or_default();
    TimeDelta::seconds(PAUSE_SECS.saturating_mul(1 << doubled).min(PAUSE_SECS_MAX))
}

/// Whether a call that failed so would fail again.
pub(crate) fn is_final(error: &CallError) -> bool {
    use FaultKind::{Conflict, Denied, Invalid, NotFound, Unsupported};
    let lasts = |kind: FaultKind| matches!(kind, Conflict | Denied | Invalid | NotFound | Unsupported);
    matches!(error, CallError::Fault(fault) if lasts(fault.kind)) && !is_cut(error)
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_core::fault::Fault;

    use super::*;

    #[test]
    fn an_organization_leaves_places_for_others() {
        let (clock, occasions) = (Clock::default(), Occasions::default());
        let key = |org: OrgId, plugin: PluginUid, timer: usize| Key {
            org,
            plugin,
            item: Item::Timer(timer.to_string()),
        };
        let (org, plugin): (OrgId, PluginUid) = (clock.new_id(), clock.new_id());
        let mut places: Vec<Place> =
            (0..9).filter_map(|timer| occasions.place(key(org, plugin, timer))).collect();
        assert_eq!(places.len(), 3);
        for _ in 0..20 {
            let (org, plugin) = (clock.new_id(), clock.new_id());
            places.extend((0..2).filter_map(|timer| occasions.place(key(org, plugin, timer))));
        }
        let of_others = places.len() - 3;
        assert_eq!((places.len(), of_others >= 11), (AT_ONCE, true), "others have theirs");
        places.truncate(0);
        let settings = || Key { org: clock.new_id(), plugin: clock.new_id(), item: Item::Settings };
        places.extend((0..20).filter_map(|_| occasions.place(settings())));
        assert_eq!(places.len(), SETTINGS_AT_ONCE, "settings leave places for events and timers");
        places.push(occasions.place(key(org, plugin, 0)).unwrap());
        assert!(occasions.place(key(org, plugin, 0)).is_none(), "it is called for that already");
        places.retain(|place| place.key.org != org);
        assert!(occasions.place(key(org, plugin, 0)).is_some());
    }

    #[test]
    fn a_plugin_in_many_organizations_leaves_places_for_others() {
        let (clock, occasions) = (Clock::default(), Occasions::default());
        let slow: PluginUid = clock.new_id();
        let timer = || Key { org: clock.new_id(), plugin: slow, item: Item::Timer("t".to_owned()) };
        let mut places: Vec<Place> = (0..20).filter_map(|_| occasions.place(timer())).collect();
        assert_eq!((places.len(), occasions.like(&timer())), (OF_PLUGIN, OF_PLUGIN));
        let events = |plugin| Key { org: clock.new_id(), plugin, item: Item::Trigger("e".to_owned()) };
        assert_eq!(occasions.like(&events(slow)), 0);
        assert!(occasions.place(events(slow)).is_none());
        // What they may wait for is not kept from its place by them.
        let settings = Key { org: clock.new_id(), plugin: slow, item: Item::Settings };
        let _settings = occasions.place(settings).expect("settings have places of their own");
        places.extend((0..8).filter_map(|_| occasions.place(events(clock.new_id()))));
        assert_eq!(places.len(), OF_PLUGIN + 8, "each of the others has its place");
    }

    #[test]
    fn what_was_cut_was_not_made_and_comes_again() {
        let fault = |kind, code: &str| CallError::Fault(Fault::new(kind, "no").with_code(code));
        let cut = fault(FaultKind::Denied, OUT_OF_SERVICE);
        assert_eq!((is_final(&cut), is_unmade(&cut)), (false, true));
        let refused = fault(FaultKind::Denied, "effect");
        assert_eq!((is_final(&refused), is_unmade(&refused)), (true, false));
        let failed = fault(FaultKind::Generic, "effect");
        assert_eq!((is_final(&failed), is_unmade(&failed)), (false, false));
        assert_eq!((is_final(&CallError::Overload), is_unmade(&CallError::Overload)), (false, true));
    }

    #[test]
    fn attempts_come_ever_later() {
        let pauses: Vec<i64> = [1, 2, 3, 8, 12, 90].into_iter().map(|n| pause(n).num_seconds()).collect();
        assert_eq!(pauses, [5, 10, 20, 600, 600, 600]);
    }
}
