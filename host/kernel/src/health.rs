//! What works and what does not, as probes, metrics and people ask it.
//!
//! Everything is looked at in parallel and within a few seconds; another
//! request within a second gets the same answer, so that probes cost little.

pub(crate) mod cache;

use futures::future::join_all;

use self::cache::Seen;
use crate::app::SharedApp;
use crate::feature::Feature;

/// Subsystems that every server has.
pub(crate) const OWN: [&str; 6] = ["database", "cache", "logdb", "modules", "event_bus", "event_wakeups"];

/// The whole state of the service.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each says another thing, and none follows from another")]
pub(crate) struct Report {
    pub(crate) seen: Seen,
    pub(crate) modules_up: bool,
    pub(crate) event_bus_up: bool,
    /// Other processes' events come at once, not only within half a second.
    pub(crate) event_wakeups_up: bool,
    /// Subsystems of features.
    pub(crate) of_features: Vec<(&'static str, bool)>,
    pub(crate) last_look_age_secs: f64,
    is_draining: bool,
    is_strict: bool,
    /// No adapter is loaded: no controller can be managed.
    lacks_adapters: bool,
    refused: Vec<String>,
}

pub(crate) async fn report(app: &SharedApp) -> Report {
    let subsystems = app.features().iter().flat_map(Feature::subsystems);
    let of_features =
        subsystems.map(|subsystem| async move { (subsystem.name, (subsystem.is_up)(app).await) });
    let (seen, of_features) =
        tokio::join!(app.health.seen(&app.db, app.logs.db(), &app.cache), join_all(of_features));
    let now = app.clock.now();
    let is_draining = app.tasks.stopping().is_cancelled();
    Report {
        seen,
        modules_up: !app.modules_have_failed(),
        // The dispatcher ends first in a drain.
        event_bus_up: is_draining || !app.hub.bus.has_failed(now),
        event_wakeups_up: is_draining || !app.hub.wakes.are_lost(),
        of_features: of_features.into_iter().map(|(name, is_up)| (name, is_draining || is_up)).collect(),
        last_look_age_secs: app.hub.bus.last_look_age(now).as_seconds_f64(),
        is_draining,
        is_strict: app.config.readiness_strict_deps,
        lacks_adapters: app.refused_packages().0.is_empty() && app.runtime.adapters().is_empty(),
        refused: app
            .refused_packages()
            .0
            .iter()
            .map(|refused| format!("adapter:{}", refused.package))
            .collect(),
    }
}

impl Report {
    /// Subsystems that every server has, in the order of [`OWN`].
    fn own(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let up = [
            self.seen.database.is_up(),
            self.seen.cache.is_up(),
            self.seen.logdb.is_up(),
            self.modules_up,
            self.event_bus_up,
            self.event_wakeups_up,
        ];
        OWN.into_iter().zip(up)
    }

    pub(crate) fn subsystems(&self) -> Vec<(&'static str, bool)> {
        self.own().chain(self.of_features.iter().copied()).collect()
    }

    /// What does not work as it should, though the rest may.
    pub(crate) fn degraded(&self) -> Vec<String> {
        let down = self.subsystems().into_iter().filter(|(_, is_up)| !is_up).map(|(name, _)| name.to_owned());
        let lacking = self.lacks_adapters.then(|| "adapters".to_owned());
        down.chain(lacking).chain(self.refused.iter().cloned()).collect()
    }

    /// Why no traffic should come here; empty when it may.
    pub(crate) fn failed(&self) -> Vec<&'static str> {
        let is_needed = |name: &str| match name {
            "cache" | "logdb" => self.is_strict,
            // Without wake-ups events come half a second later.
            "event_wakeups" => false,
            _ => true,
        };
        let down = self.own().filter(|(name, is_up)| !is_up && is_needed(name));
        let draining = self.is_draining.then_some("draining");
        draining.into_iter().chain(down.map(|(name, _)| name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::cache::{Check, Status};
    use super::*;

    fn report(down: &[&str], is_strict: bool, is_draining: bool) -> Report {
        let check = |name: &str| Check {
            status: if down.contains(&name) { Status::Unreachable } else { Status::Busy },
            latency: Duration::ZERO,
        };
        Report {
            seen: Seen { database: check("database"), cache: check("cache"), logdb: check("logdb") },
            modules_up: !down.contains(&"modules"),
            event_bus_up: !down.contains(&"event_bus"),
            event_wakeups_up: !down.contains(&"event_wakeups"),
            of_features: vec![("fabric", !down.contains(&"fabric"))],
            last_look_age_secs: 0.0,
            is_draining,
            is_strict,
            lacks_adapters: false,
            refused: vec!["adapter:acme".to_owned()],
        }
    }

    #[track_caller]
    fn check_failed(down: &[&str], is_strict: bool, is_draining: bool, failed: &[&str]) {
        let report = report(down, is_strict, is_draining);
        assert_eq!(report.failed(), failed, "{down:?} strict {is_strict} draining {is_draining}");
        let mut degraded: Vec<&str> = down.to_vec();
        degraded.push("adapter:acme");
        assert_eq!(report.degraded(), degraded);
    }

    #[test]
    fn only_what_is_needed_takes_readiness_away() {
        check_failed(&[], false, false, &[]);
        check_failed(&["database"], false, false, &["database"]);
        check_failed(&["cache", "logdb"], false, false, &[]);
        check_failed(&["cache", "logdb"], true, false, &["cache", "logdb"]);
        check_failed(&["modules", "event_bus"], false, false, &["modules", "event_bus"]);
        check_failed(&["event_wakeups"], true, false, &[]);
        check_failed(&["fabric"], false, false, &[]);
        check_failed(&["logdb"], false, true, &["draining"]);
    }

    #[test]
    fn without_any_adapter_it_is_ready_and_degraded() {
        let report = Report { lacks_adapters: true, refused: Vec::new(), ..report(&[], true, false) };
        assert_eq!((report.degraded(), report.failed().len()), (vec!["adapters".to_owned()], 0));
    }
}
