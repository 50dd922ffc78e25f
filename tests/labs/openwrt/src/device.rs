//! The router's state, and what happens to it as time passes.
//!
//! Nothing here runs by itself: a caller that takes the lock first calls [`Device::advance`], which carries out all
//! that has come due, in order. So timers need no tasks, and end with the handle.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use heddle_lab::{Instant, Schedule};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::fault::Triggers;
use crate::recorder::Recorder;
use crate::session::{Sessions, User};
use crate::subscribe::Streams;
use crate::uci::{Change, Config, Configs, Pending, Staged, factory_configs};

/// What the builder chose.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) users: Vec<User>,
    /// How long the router is away when it restarts.
    pub(crate) boot_time: Duration,
    /// Between the `[0]` of a reset, upgrade or reboot and the act.
    pub(crate) action_delay: Duration,
    /// Between a commit and the daemons' reload, after which a changed address is lost.
    pub(crate) reload_delay: Duration,
    pub(crate) release: String,
    pub(crate) upgrade_release: String,
    /// The router's clock at start, seconds since 1970. It runs on with real time.
    pub(crate) epoch_secs: u64,
    /// Whether odhcpd serves `DHCPv4`, which is when it has `ipv4leases`.
    pub(crate) has_odhcpd_leases: bool,
}

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Rollback,
    ReloadNetwork,
    Restart(Restart),
    Booted,
}

/// Why the router restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    Reboot,
    FactoryReset,
    Upgrade { keeps_config: bool },
}

/// One line of the system log.
pub(crate) struct LogLine {
    pub(crate) at: Instant,
    pub(crate) level: &'static str,
    pub(crate) text: String,
}

pub(crate) struct Device {
    pub(crate) settings: Settings,
    pub(crate) users: Vec<User>,
    pub(crate) configs: Configs,
    pub(crate) sessions: Sessions,
    pub(crate) staged: BTreeMap<String, Staged>,
    pub(crate) pending: Option<Pending>,
    pub(crate) recorder: Recorder,
    pub(crate) triggers: Triggers,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) downloads: BTreeMap<String, Vec<u8>>,
    pub(crate) log: Vec<LogLine>,
    /// Objects of packages that are not installed.
    pub(crate) missing: BTreeSet<String>,
    /// What a person wrote into files besides the settings: lost when the file is written.
    pub(crate) comments: BTreeMap<String, String>,
    /// Files that libuci cannot parse.
    pub(crate) broken: BTreeSet<String>,
    /// MACs, in lower case, of hosts that are not in the house.
    pub(crate) away: BTreeSet<String>,
    /// Answers that tell what daemons notify.
    pub(crate) streams: Streams,
    /// The web server is too old for such answers.
    pub(crate) lacks_streams: bool,
    pub(crate) release: String,
    /// The instant of the last [`Device::advance`].
    pub(crate) now: Instant,
    pub(crate) started_at: Instant,
    booted_at: Instant,
    /// Seconds that the router had already run when this program started it.
    uptime_before_secs: u64,
    is_booting: bool,
    /// The configuration in force took the management address away.
    is_address_lost: bool,
    schedule: Schedule<Due>,
}

impl Device {
    pub(crate) fn new(settings: Settings, now: Instant) -> Self {
        let mut device = Self {
            users: settings.users.clone(),
            release: settings.release.clone(),
            settings,
            configs: factory_configs(),
            sessions: Sessions::default(),
            staged: BTreeMap::new(),
            pending: None,
            recorder: Recorder::default(),
            triggers: Triggers::default(),
            files: crate::files::factory_files(),
            downloads: BTreeMap::new(),
            log: Vec::new(),
            missing: BTreeSet::new(),
            comments: BTreeMap::new(),
            broken: BTreeSet::new(),
            away: BTreeSet::new(),
            streams: Streams::default(),
            lacks_streams: false,
            now,
            started_at: now,
            booted_at: now,
            uptime_before_secs: 3 * 86_400 + 7_421,
            is_booting: false,
            is_address_lost: false,
            schedule: Schedule::default(),
        };
        device.note("info", "kernel", "br-lan: port 1(lan1) entered forwarding state");
        device.note("notice", "netifd", "Interface 'lan' is now up");
        device.note("notice", "netifd", "Interface 'wan' is now up");
        device
    }

    /// Carries out, in order of time, all that has come due by `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some((instant, due)) = self.schedule.pop_due(now) {
            self.now = self.now.max(instant);
            self.expire_sessions();
            match due {
                Due::Rollback => self.roll_back_unconfirmed(),
                Due::ReloadNetwork => {
                    self.is_address_lost = !holds_address(&self.configs);
                    self.notify_interfaces();
                }
                Due::Restart(restart) => self.restart(restart),
                Due::Booted => {
                    self.is_booting = false;
                    self.booted_at = instant;
                    self.uptime_before_secs = 0;
                    self.is_address_lost = !holds_address(&self.configs);
                }
            }
        }
        self.now = self.now.max(now);
        self.expire_sessions();
    }

    pub(crate) fn schedule(&mut self, at: Instant, due: Due) {
        self.schedule.at(at, due);
    }

    /// A restart that answers first and acts a little later.
    pub(crate) fn schedule_restart(&mut self, restart: Restart) {
        self.schedule(self.now + self.settings.action_delay, Due::Restart(restart));
    }

    /// The daemons take the committed files a moment after they were written.
    pub(crate) fn reload_network(&mut self) {
        self.schedule(self.now + self.settings.reload_delay, Due::ReloadNetwork);
    }

    /// The firewall reads its file again, and says in the log what it skips.
    pub(crate) fn reload_firewall(&mut self) {
        for line in crate::fw4::skipped(self.config("firewall")) {
            self.note("notice", "fw4", &line);
        }
    }

    /// The file of a configuration as it lies on flash.
    pub(crate) fn file_text(&self, name: &str) -> Option<String> {
        let config = self.configs.get(name)?;
        Some(format!("{}{}\n", self.comments.get(name).map_or("", String::as_str), config.to_text()))
    }

    /// Whether the router is up, and at its address.
    pub(crate) fn is_up(&self) -> bool {
        !self.is_booting && !self.is_address_lost
    }

    /// Takes the router down now. All that lives in memory is gone, a pending rollback with it.
    pub(crate) fn restart(&mut self, restart: Restart) {
        self.recorder.counters.reboots += 1;
        self.sessions.clear();
        self.streams.clear();
        self.staged.clear();
        self.pending = None;
        self.schedule.clear();
        self.log.clear();
        self.files.retain(|path, _| !path.starts_with("/tmp/"));
        let wipes = match restart {
            Restart::Reboot => false,
            Restart::FactoryReset => true,
            Restart::Upgrade { keeps_config } => {
                self.release.clone_from(&self.settings.upgrade_release);
                !keeps_config
            }
        };
        if wipes {
            self.configs = factory_configs();
            // Out of the box root has an empty password, with which any password is accepted.
            self.users.retain(|user| user.name == "root");
            self.users.iter_mut().for_each(|user| user.password = None);
        }
        self.files.extend(crate::files::factory_files());
        self.is_booting = true;
        self.schedule(self.now + self.settings.boot_time, Due::Booted);
    }

    /// A clean restart of rpcd: sessions are kept, everything staged is dropped.
    pub(crate) fn restart_rpcd(&mut self) {
        self.staged.clear();
        self.pending = None;
    }

    /// Ends every session at once.
    pub(crate) fn end_sessions(&mut self) {
        self.sessions.clear();
        self.staged.clear();
    }

    pub(crate) fn end_session(&mut self, sid: &str) {
        self.sessions.destroy(sid);
        self.staged.remove(sid);
    }

    fn expire_sessions(&mut self) {
        for sid in self.sessions.expire(self.now) {
            self.staged.remove(&sid);
        }
    }

    /// Changes a file without any client being notified. False when there is no such configuration.
    pub(crate) fn edit(&mut self, name: &str, changes: &[Change]) -> bool {
        let Some(config) = self.configs.get_mut(name) else { return false };
        changes.iter().for_each(|change| change.replay(config));
        config.reread();
        self.comments.remove(name);
        self.reload_network();
        self.reload_firewall();
        true
    }

    pub(crate) fn note(&mut self, level: &'static str, source: &str, text: &str) {
        self.log.push(LogLine { at: self.now, level, text: format!("{source}: {text}") });
    }

    pub(crate) fn uptime(&self) -> Duration {
        Duration::from_secs(self.uptime_before_secs) + self.now.duration_since(self.booted_at)
    }

    /// Time since the program started, for counters that grow.
    pub(crate) fn age(&self) -> Duration {
        self.now.duration_since(self.started_at)
    }

    /// The router's clock, seconds since 1970.
    pub(crate) fn epoch_secs(&self) -> u64 {
        self.settings.epoch_secs + self.age().as_secs()
    }

    pub(crate) fn config(&self, name: &str) -> &Config {
        self.configs.get(name).expect("the stock configurations are never removed")
    }

    /// SHA-256 over all committed files, in hex: equal files give equal fingerprints, on any run.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for (name, config) in &self.configs {
            hash.update(format!("# {name}\n{}", config.to_text()));
        }
        hex::encode(hash.finalize())
    }

    /// All that a test may want to assert on. `is_reached` says whether faults let requests through.
    pub(crate) fn to_json(&self, is_reached: bool) -> Value {
        let configs: serde_json::Map<String, Value> =
            self.configs.iter().map(|(name, config)| (name.clone(), config.to_json(|_| true))).collect();
        let staged: usize = self.staged.values().flat_map(Staged::values).map(Vec::len).sum();
        json!({
            "release": self.release,
            "uptime_secs": self.uptime().as_secs(),
            "reachable": self.is_up() && is_reached,
            "booting": self.is_booting,
            "management_address_lost": self.is_address_lost,
            "apply_pending": self.pending.is_some(),
            "sessions": self.sessions.len(),
            "staged_changes": staged,
            "skipped_sections": crate::fw4::skipped(self.config("firewall")),
            "counters": self.recorder.counters,
            "fingerprint": self.fingerprint(),
            "configs": configs,
        })
    }
}

/// Whether the configuration leaves the router at the address that it is managed under: the LAN interface is
/// there, enabled, on a device, and has the factory address.
fn holds_address(configs: &Configs) -> bool {
    let Some(lan) = configs.get("network").and_then(|network| network.section("lan")) else { return false };
    let has_address =
        lan.list("ipaddr").iter().any(|address| address.split('/').next() == Some("192.168.1.1"));
    let has_device = lan.text("device").is_some_and(|device| !device.is_empty());
    lan.kind == "interface"
        && lan.text("proto") == Some("static")
        && has_address
        && has_device
        && !lan.is_on("disabled", false)
        && lan.is_on("auto", true)
}
