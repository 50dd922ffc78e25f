//! The state of the firewall: what is stored, what runs, what is pending, and the history of what was stored.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use heddle_lab::{Context, Instant};
use serde_json::{Value, json};

use crate::facts::{Facts, Model};
use crate::jobs::Job;
use crate::live::Live;
use crate::release::Release;
use crate::reply::Refusal;
use crate::settings::Settings;
use crate::store::{Config, is_true};

/// How many revisions of the configuration are kept.
const REVISIONS_MAX: usize = 30;
/// How long the firewall has run when the lab starts.
const RAN_BEFORE: Duration = Duration::from_secs(3 * 86_400 + 7_869);
/// Applies that also reload the packet filter.
const RELOAD_FILTER: [&str; 5] = [
    "/routing/apply",
    "/interface/apply",
    "/services/dns_forwarder/apply",
    "/vpn/ipsec/apply",
    crate::jobs::FILTER,
];

/// What is told of one stored configuration.
#[derive(Clone)]
pub(crate) struct Revision {
    pub(crate) time_secs: u64,
    pub(crate) description: String,
    pub(crate) size: usize,
}

/// What a firewall goes down for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Down {
    Reboot,
    Halt,
    /// The firewall starts with this release of pfSense.
    Update,
}

/// Faults that meet the present request.
#[expect(clippy::struct_excessive_bools, reason = "faults, each of its own")]
#[derive(Clone, Copy, Default)]
pub(crate) struct Met {
    pub(crate) is_locked: bool,
    pub(crate) is_overwritten: bool,
    pub(crate) is_queue_full: bool,
    pub(crate) is_reload_failing: bool,
}

/// The simulated firewall.
pub struct Pfsense {
    pub(crate) settings: Settings,
    pub(crate) release: Release,
    /// Packages that are installed, by their full names.
    pub(crate) packages: BTreeSet<String>,
    pub(crate) now: Instant,
    /// The time of the present call since 1970.
    pub(crate) time: Duration,
    booted: Instant,
    ran_before: Duration,
    /// When the firewall goes down, and what for.
    pub(crate) goes_down: Option<(Instant, Down)>,
    /// Until when the web server answers with a page of its own.
    pub(crate) is_starting_until: Instant,
    /// When the web server starts again.
    pub(crate) web_restarts: Option<Instant>,
    is_off: bool,
    pub(crate) stored: Config,
    pub(crate) running: Config,
    /// Subsystems with changes that wait for their apply.
    pub(crate) dirty: BTreeSet<String>,
    /// Interfaces with changes that wait for their apply.
    pub(crate) pending_interfaces: BTreeSet<String>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) history: VecDeque<Revision>,
    pub(crate) met: Met,
    pub(crate) live: Live,
    /// Times of failed logins.
    pub(crate) failures: VecDeque<Instant>,
    pub(crate) version: String,
    /// What it tells of the REST API package, where that is not its own release.
    pub(crate) told_package: Option<String>,
}

impl Pfsense {
    /// A firewall of a small household, or with as many rules as asked for.
    pub fn new(settings: Settings) -> Self {
        let now = Instant::now();
        let stored = crate::seed::configuration(&settings);
        let known = Facts::get().models.values().flat_map(|model| model.packages.iter().cloned());
        let mut packages: BTreeSet<String> = match &settings.packages {
            Some(names) => names.iter().cloned().collect(),
            None => known.collect(),
        };
        packages.insert("pfSense-pkg-RESTAPI".to_owned());
        Self {
            release: settings.release,
            packages,
            now,
            time: Duration::ZERO,
            booted: now,
            ran_before: RAN_BEFORE,
            goes_down: None,
            is_starting_until: now,
            web_restarts: None,
            is_off: false,
            running: stored.clone(),
            dirty: BTreeSet::new(),
            pending_interfaces: BTreeSet::new(),
            jobs: Vec::new(),
            history: VecDeque::new(),
            met: Met::default(),
            live: Live::seeded(),
            failures: VecDeque::new(),
            version: settings.told_version.clone().unwrap_or_else(|| "2.8.1-RELEASE".to_owned()),
            told_package: None,
            stored,
            settings,
        }
    }

    /// From now on it tells this version of pfSense.
    pub fn tell_version(&mut self, version: &str) {
        version.clone_into(&mut self.version);
    }

    /// From now on it tells this version of the REST API package, and has the routes that it had.
    pub fn tell_package(&mut self, version: &str) {
        self.told_package = Some(format!("v{version}"));
    }

    /// Models whose stored objects are not all active.
    pub fn pending(&self) -> Vec<String> {
        self.stored.differences(&self.running)
    }

    /// The objects of a model as they are stored.
    pub fn stored_rows(&self, model: &str) -> Value {
        json!(self.stored.list(model))
    }

    /// As [`Pfsense::stored_rows`], of what runs.
    pub fn running_rows(&self, model: &str) -> Value {
        json!(self.running.list(model))
    }

    /// Notes the time of a call, and carries out what has come due.
    pub(crate) fn tick(&mut self, context: &mut Context) {
        self.now = context.now();
        self.time = context.clock.unix_of(self.now);
        crate::jobs::advance(self, context);
        if let Some(at) = self.web_restarts.filter(|at| *at <= self.now) {
            self.web_restarts = None;
            self.is_starting_until = at + self.settings.starting;
            context.close_connections();
        }
        let Some((_, down)) = self.goes_down.filter(|(at, _)| *at <= self.now) else { return };
        self.come_up();
        match down {
            Down::Halt => self.is_off = true,
            Down::Reboot => context.boot(self.settings.boot),
            Down::Update => {
                if let Some(version) = self.settings.update_to.take() {
                    self.version = version;
                }
                context.boot(self.settings.boot);
            }
        }
        self.is_starting_until = self.now + self.settings.boot + self.settings.starting;
    }

    /// The state after a restart: everything stored runs, and what lived in memory is gone.
    pub(crate) fn come_up(&mut self) {
        self.goes_down = None;
        self.booted = self.now;
        self.ran_before = Duration::ZERO;
        self.running = self.stored.clone();
        self.dirty.clear();
        self.pending_interfaces.clear();
        self.jobs.clear();
        self.failures.clear();
        self.live.restart();
    }

    pub(crate) fn is_on(&self) -> bool {
        !self.is_off
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.ran_before + self.now.saturating_duration_since(self.booted)
    }

    /// Whether answers carry links.
    pub(crate) fn has_links(&self) -> bool {
        is_true(&self.stored.single("RESTAPISettings"), "hateoas")
    }

    /// Stores a changed configuration, unless the lock of its file is held.
    pub(crate) fn save(&mut self, description: &str, config: Config) -> Result<(), Refusal> {
        if self.met.is_locked {
            let text = "The configuration could not be written: its lock is held.";
            return Err(Refusal::unavailable("MODEL_WRITE_CONFIG_LOCKED", text, 5));
        }
        // Another request read the configuration before this one and writes it back after it.
        if !self.met.is_overwritten {
            self.stored = config;
        }
        self.keep_revision(description);
        Ok(())
    }

    pub(crate) fn keep_revision(&mut self, description: &str) {
        let newest = self.history.front().map_or(0, |revision| revision.time_secs + 1);
        let size =
            4096 + 256 * self.stored.models().map(|model| self.stored.list(model).len()).sum::<usize>();
        self.history.push_front(Revision {
            time_secs: self.time.as_secs().max(newest),
            description: description.to_owned(),
            size,
        });
        self.history.truncate(REVISIONS_MAX);
    }

    /// Marks what a write leaves to its apply.
    pub(crate) fn mark(&mut self, model: &Model) {
        if let Some(subsystem) = &model.subsystem {
            self.dirty.insert(subsystem.clone());
        }
        if model.packages.iter().any(|package| package.ends_with("haproxy")) {
            self.dirty.insert("haproxy".to_owned());
        }
    }

    /// Makes one model active.
    pub(crate) fn activate(&mut self, model: &Model) {
        let name = model.parent.as_deref().unwrap_or(&model.name);
        self.running.take_over(name, &self.stored);
        self.live.changed(name);
    }

    /// Makes active what an apply covers.
    pub(crate) fn apply(&mut self, route: &str) {
        let reloads_filter = RELOAD_FILTER.contains(&route);
        let covered: BTreeSet<&str> = Facts::get()
            .covered(route)
            .chain(Facts::get().covered(crate::jobs::FILTER).filter(|_| reloads_filter))
            .collect();
        for model in covered {
            self.running.take_over(model, &self.stored);
        }
        self.live.applied(route);
    }

    /// Stored and running state, for the control port.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "release": self.release,
            "version": self.version,
            "pending": self.pending(),
            "dirty": self.dirty,
            "pending_interfaces": self.pending_interfaces,
            "jobs": self.jobs.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>(),
            "packages": self.packages,
            "stored": self.stored.to_json(),
            "running": self.running.to_json(),
            "live": self.live.to_json(),
            "revisions": self.history.len(),
            "goes_down": self.goes_down.map(|(_, down)| format!("{down:?}")),
        })
    }
}
