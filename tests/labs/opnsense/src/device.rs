//! The state of the firewall: what is stored, what runs, and the history of what was stored.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::OnceLock;
use std::time::Duration;

use chrono::{DateTime, Utc};
use heddle_lab::{Context, Instant};
use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::config::Config;
use crate::facts::Facts;
use crate::firmware::Firmware;
use crate::live::Live;
use crate::release::Release;
use crate::settings::Settings;
use crate::system::Snapshot;

/// How many revisions of the configuration are kept.
const REVISIONS_MAX: usize = 100;
/// How long an apply with a revision waits for its confirmation.
const ROLLBACK_AFTER: Duration = Duration::from_mins(1);
/// How long a box that goes down still answers.
const ANSWERS_FIRST: Duration = Duration::from_secs(1);
/// Three days and some hours.
const RAN_BEFORE: Duration = Duration::from_secs(3 * 86_400 + 7_869);
/// Models that one reload of the packet filter makes active together.
const FILTER_MODELS: [&str; 3] = ["Firewall/Filter:", "Firewall/DNat:", "Firewall/Group:"];
/// Applies that reload the packet filter.
const FILTER_RELOADS: [&str; 8] = [
    "firewall/",
    "routing/",
    "routes/",
    "interfaces/settings/",
    "interfaces/assignment/",
    "captiveportal/",
    "dnsmasq/",
    "ipsec/",
];

/// One stored configuration.
#[derive(Clone)]
pub(crate) struct Revision {
    /// The time of the save in seconds, with four decimals, as the name of the file.
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) user: String,
    pub(crate) config: Config,
    /// Bytes of the file, by an estimate that costs nothing.
    pub(crate) size: usize,
}

/// An apply that takes itself back unless it is confirmed.
pub(crate) struct Rollback {
    pub(crate) revision: String,
    pub(crate) at: Instant,
}

/// The simulated firewall.
pub struct Firewall {
    pub(crate) settings: Settings,
    pub(crate) release: Release,
    pub(crate) plugins: BTreeSet<String>,
    pub(crate) now: Instant,
    /// The time of the present call since 1970.
    pub(crate) time: Duration,
    booted: Instant,
    /// How long it had run when the lab started.
    ran_before: Duration,
    /// When the box goes down for a restart, or for good.
    pub(crate) goes_down: Option<(Instant, Down)>,
    is_off: bool,
    pub(crate) stored: Config,
    pub(crate) running: Config,
    pub(crate) history: VecDeque<Revision>,
    pub(crate) rollback: Option<Rollback>,
    pub(crate) met: Met,
    pub(crate) firmware: Firmware,
    pub(crate) live: Live,
    pub(crate) snapshots: Vec<Snapshot>,
    serial: u64,
}

/// Faults that meet the present request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Met {
    pub(crate) lock_busy: bool,
    pub(crate) failing_reload: bool,
    pub(crate) failing_job: bool,
}

/// What a box goes down for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Down {
    Reboot,
    Halt,
}

impl Firewall {
    /// From now on it tells this version, whatever its release is.
    pub fn tell_version(&mut self, version: &str) {
        self.firmware.told = Some(version.to_owned());
    }

    /// From now on a download of the configuration has at least so many bytes.
    pub fn set_backup_bytes_min(&mut self, bytes: usize) {
        self.settings.backup_bytes_min = bytes;
    }

    /// A firewall of a small household, or with as many rules as asked for.
    pub fn new(settings: Settings) -> Self {
        let now = Instant::now();
        let stored = crate::seed::configuration(&settings);
        let known = Facts::get().controllers.values().filter_map(|controller| controller.plugin.clone());
        let plugins = match &settings.plugins {
            Some(names) => names.iter().cloned().collect(),
            None => known.collect(),
        };
        Self {
            release: settings.release,
            plugins,
            now,
            time: Duration::ZERO,
            booted: now,
            ran_before: RAN_BEFORE,
            goes_down: None,
            is_off: false,
            running: stored.clone(),
            history: VecDeque::new(),
            rollback: None,
            met: Met::default(),
            firmware: Firmware::new(settings.release, settings.told_version.clone()),
            live: Live::seeded(),
            snapshots: Vec::new(),
            serial: 0,
            stored,
            settings,
        }
    }

    /// Notes the time of a call, and carries out what has come due.
    pub(crate) fn tick(&mut self, context: &mut Context) {
        self.now = context.now();
        self.time = context.clock.unix_of(self.now);
        if self.rollback.as_ref().is_some_and(|rollback| rollback.at <= self.now) {
            let is_dead = context.fault_in_background("rollback_dead").is_some();
            if let Some(rollback) = self.rollback.take().filter(|_| !is_dead) {
                self.revert(&rollback.revision);
            }
        }
        Firmware::advance(self);
        if let Some((_, down)) = self.goes_down.filter(|(at, _)| *at <= self.now) {
            self.come_up();
            match down {
                Down::Reboot => context.boot(self.settings.boot),
                Down::Halt => self.is_off = true,
            }
        }
    }

    /// The state after a restart: everything stored runs, and what lived in memory is gone.
    pub(crate) fn come_up(&mut self) {
        self.goes_down = None;
        self.rollback = None;
        self.booted = self.now;
        self.ran_before = Duration::ZERO;
        self.running = self.stored.clone();
        self.live.restart();
        Firmware::booted(self);
    }

    /// Whether the box is switched on.
    pub(crate) fn is_on(&self) -> bool {
        !self.is_off
    }

    /// Date and time of the present call.
    pub(crate) fn date_time(&self) -> DateTime<Utc> {
        let secs = i64::try_from(self.time.as_secs()).unwrap_or_default();
        DateTime::from_timestamp(secs, self.time.subsec_nanos()).unwrap_or_default()
    }

    /// Date and time of the last start, to the minute: the two clocks are not read at the same moment.
    pub(crate) fn booted_at(&self) -> DateTime<Utc> {
        let since = self.time.saturating_sub(self.now.saturating_duration_since(self.booted));
        let minutes = i64::try_from(since.as_secs().saturating_add(30) / 60).unwrap_or_default();
        DateTime::from_timestamp(minutes * 60, 0).unwrap_or_default()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.ran_before + self.now.saturating_duration_since(self.booted)
    }

    /// The box goes down a moment after it has answered.
    pub(crate) fn go_down(&mut self, down: Down) {
        self.goes_down = Some((self.now + ANSWERS_FIRST, down));
    }

    /// A fresh id for an item.
    pub(crate) fn new_uuid(&mut self) -> String {
        self.serial += 1;
        crate::seed::uuid("item", self.serial)
    }

    /// A number that no earlier call answered.
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Stores a changed configuration.
    ///
    /// # Errors
    /// The answer, when the user may not save or the lock of the configuration is held.
    pub(crate) fn save(&mut self, call: &Call, config: Config) -> Result<(), Answer> {
        if call.is_read_only {
            let text = format!("user {} denied for write access", call.user);
            return Err(Answer::refused(self.release, "Permission denied", &text));
        }
        if self.met.lock_busy {
            return Err(Answer::unexpected());
        }
        self.store(&call.user, &format!("/api/{}/{} made changes", call.controller, call.command), config);
        Ok(())
    }

    /// Stores without asking who it is. What has no apply is active at once.
    pub(crate) fn store(&mut self, user: &str, description: &str, config: Config) {
        let changed = self.stored.differences(&config);
        self.stored = config;
        for node in changed.iter().filter(|node| acts_at_once(node)) {
            self.running.take_over(node, &self.stored);
        }
        self.keep_revision(user, description);
    }

    /// Adds a revision. Its name is the time, and later than every name before.
    pub(crate) fn keep_revision(&mut self, user: &str, description: &str) {
        let now = self.time.as_secs_f64();
        let newest = self.history.front().and_then(|revision| revision.id.parse::<f64>().ok());
        let at = newest.map_or(now, |newest| now.max(newest + 0.0001));
        self.history.push_front(Revision {
            id: format!("{at:.4}"),
            description: description.to_owned(),
            user: user.to_owned(),
            size: 4096 + 256 * self.stored.nodes().map(|node| self.stored.rows(node).count()).sum::<usize>(),
            config: self.stored.clone(),
        });
        self.history.truncate(REVISIONS_MAX);
    }

    pub(crate) fn revision(&self, id: &str) -> Option<&Revision> {
        self.history.iter().find(|revision| revision.id == id)
    }

    /// Makes active what an apply covers. With the fault of a failing reload it only says so.
    pub(crate) fn apply(&mut self, key: &str) {
        if self.met.failing_reload {
            return;
        }
        self.live.applied(key);
        for node in covered(key) {
            self.running.take_over(&node, &self.stored);
        }
    }

    /// Lists and settings that are stored and not active, by the names that `facts.json` gives them.
    pub fn pending(&self) -> Vec<String> {
        self.stored.differences(&self.running)
    }

    /// A list or the settings of a model as stored, as `{id: {field: value}}`.
    pub fn stored_rows(&self, node: &str) -> Value {
        self.stored.list(node).to_json()
    }

    /// As [`Firewall::stored_rows`], of what runs.
    pub fn running_rows(&self, node: &str) -> Value {
        self.running.list(node).to_json()
    }

    /// Starts the timer of an apply with a revision.
    pub(crate) fn wait_for_confirmation(&mut self, revision: &str) {
        let at = self.now + ROLLBACK_AFTER;
        self.rollback = Some(Rollback { revision: revision.to_owned(), at });
    }

    /// Restores the configuration of a savepoint and reloads the packet filter.
    pub(crate) fn revert(&mut self, savepoint: &str) -> bool {
        let Some(config) = self.live.savepoints.get(savepoint).cloned() else { return false };
        self.store("root", "rollback", config);
        self.apply("firewall/filter/apply");
        true
    }

    /// Stored and running state, for the control port.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "release": self.release,
            "version": self.firmware.version(),
            "pending": self.pending(),
            "rollback_pending": self.rollback.as_ref().map(|rollback| &rollback.revision),
            "plugins": self.plugins,
            "stored": self.stored.to_json(),
            "running": self.running.to_json(),
            "live": self.live.to_json(),
            "snapshots": self.snapshots,
            "firmware": self.firmware.to_json(),
            "goes_down": self.goes_down.map(|(_, down)| format!("{down:?}")),
        })
    }
}

/// Whether a change of a list needs no apply.
fn acts_at_once(node: &str) -> bool {
    static LATER: OnceLock<HashSet<String>> = OnceLock::new();
    let later = LATER.get_or_init(|| Facts::get().applies().values().flatten().cloned().collect());
    !later.contains(node)
}

/// The lists that an apply makes active.
fn covered(key: &str) -> Vec<String> {
    let own = Facts::get().applies().get(key).cloned().unwrap_or_default();
    let model_of = |node: &String| node.split(':').next().unwrap_or_default().to_owned();
    let models: BTreeSet<String> = own.iter().map(model_of).collect();
    let reloads_filter = FILTER_RELOADS.iter().any(|start| key.starts_with(start));
    let is_covered = |node: &&String| {
        let by_filter = reloads_filter && FILTER_MODELS.iter().any(|start| node.starts_with(start));
        models.contains(&model_of(node)) || by_filter
    };
    Facts::get().nodes().filter(is_covered).cloned().chain(own.clone()).collect()
}
