//! The state of the router: what is configured, what lives in memory, and what comes due by time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use chrono::{DateTime, Utc};
use heddle_lab::{Context, Instant, Schedule};
use serde_json::{Map, Value, json};

use crate::access::Who;
use crate::certificates::Signing;
use crate::facts::Facts;
use crate::files::Content;
use crate::release::Release;
use crate::script::Job;
use crate::settings::Settings;
use crate::store::{Origin, Store};
use crate::{address_lists, certificates, live, scheduler, seed};

/// How long a router that goes down still answers.
const ANSWERS_FIRST: Duration = Duration::from_secs(1);
/// Two days and some hours.
const RAN_BEFORE_SECS: u64 = 2 * 86_400 + 7_869;
/// Actions that can be taken back.
const HISTORY_MAX: usize = 100;
/// Lines of the log that memory keeps.
const LOG_MAX: usize = 1_000;
/// Packages beside the base one that the simulation knows.
pub(crate) const PACKAGES: [&str; 8] =
    ["calea", "gps", "rose-storage", "ups", "user-manager", "wifi-qcom", "wireless", "zerotier"];

/// What a router goes down for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Down {
    Reboot,
    Halt,
    Reset,
}

/// What comes due by time.
#[derive(Clone)]
pub(crate) enum Due {
    /// A script goes on behind a delay.
    Job(Job),
    Signed(Signing),
}

/// An action that can be taken back.
#[derive(Clone)]
pub(crate) struct Action {
    pub(crate) text: String,
    pub(crate) by: String,
    pub(crate) unix: u64,
    before: Store,
    after: Store,
    menus: Vec<&'static str>,
    pub(crate) is_undone: bool,
}

/// One line of the log.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) id: u64,
    pub(crate) unix: u64,
    pub(crate) topics: String,
    pub(crate) message: String,
    pub(crate) extra: String,
}

/// Faults that meet the present request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Met {
    pub(crate) update_fails: bool,
    pub(crate) sign_fails: bool,
}

/// The simulated router.
pub struct Router {
    pub(crate) settings: Settings,
    pub(crate) release: Release,
    pub(crate) told: Option<String>,
    pub(crate) packages: BTreeSet<String>,
    /// Switches of packages that wait for a restart.
    pub(crate) scheduled: BTreeMap<String, String>,
    pub(crate) now: Instant,
    /// Seconds since 1970.
    pub(crate) unix: u64,
    pub(crate) booted_unix: u64,
    pub(crate) goes_down: Option<(Instant, Down)>,
    pub(crate) installs: Option<Release>,
    is_off: bool,
    pub(crate) store: Store,
    /// What a reset brings back.
    pub(crate) defaults: Store,
    pub(crate) history: VecDeque<Action>,
    pub(crate) log: VecDeque<Line>,
    pub(crate) log_serial: u64,
    pub(crate) contents: BTreeMap<u64, Content>,
    pub(crate) due: Schedule<Due>,
    pub(crate) jobs: BTreeMap<u64, (String, u64)>,
    pub(crate) schedules: BTreeMap<u64, scheduler::State>,
    /// Until when the commands of a user run, in real time.
    pub(crate) busy: BTreeMap<String, Instant>,
    /// Users that were seen, as the table of active users shows them.
    pub(crate) logins: BTreeMap<String, u64>,
    /// When counters were reset, by menu and row.
    pub(crate) resets: BTreeMap<(&'static str, u64), u64>,
    /// Seconds since 1970 of the last check for updates.
    pub(crate) is_update_checked: bool,
    pub(crate) is_update_downloaded: bool,
    pub(crate) met: Met,
    serial: u64,
}

impl Router {
    /// A router of a small household, or with as many rules as asked for.
    pub fn new(settings: Settings) -> Self {
        let now = Instant::now();
        let packages = match &settings.packages {
            Some(names) => names.iter().cloned().collect(),
            None => PACKAGES.map(str::to_owned).into(),
        };
        let mut router = Self {
            release: settings.release,
            told: settings.told_version.clone(),
            packages,
            scheduled: BTreeMap::new(),
            now,
            unix: 0,
            booted_unix: 0,
            goes_down: None,
            installs: None,
            is_off: false,
            store: Store::default(),
            defaults: Store::default(),
            history: VecDeque::new(),
            log: VecDeque::new(),
            log_serial: 0,
            contents: BTreeMap::new(),
            due: Schedule::default(),
            jobs: BTreeMap::new(),
            schedules: BTreeMap::new(),
            busy: BTreeMap::new(),
            logins: BTreeMap::new(),
            resets: BTreeMap::new(),
            is_update_checked: false,
            is_update_downloaded: false,
            met: Met::default(),
            serial: 0,
            settings,
        };
        seed::fill(&mut router);
        router
    }

    /// From now on it tells this version, whatever its release is.
    pub fn tell_version(&mut self, version: &str) {
        self.told = Some(version.to_owned());
    }

    /// From now on an export of the configuration has at least so many bytes.
    pub fn set_export_bytes_min(&mut self, bytes: usize) {
        self.settings.export_bytes_min = bytes;
    }

    /// The version that it tells, without the channel.
    pub fn version(&self) -> String {
        self.told.clone().unwrap_or_else(|| self.release.version().to_owned())
    }

    /// Notes the time of a call, and carries out what has come due.
    pub(crate) fn tick(&mut self, context: &mut Context) {
        self.now = context.now();
        let unix = context.unix_secs();
        if self.booted_unix == 0 {
            self.booted_unix = unix.saturating_sub(RAN_BEFORE_SECS);
            self.unix = unix;
            live::appear(self);
            self.defaults = self.store.clone();
            self.note("system,info", "router rebooted");
        }
        self.unix = unix;
        address_lists::expire(self);
        while let Some((_, due)) = self.due.pop_due(self.now) {
            match due {
                Due::Job(job) => crate::script::go_on(self, job),
                Due::Signed(signing) => certificates::signed(self, signing),
            }
        }
        scheduler::run_due(self);
        if let Some((_, down)) = self.goes_down.filter(|(at, _)| *at <= self.now) {
            self.come_up(down == Down::Reset);
            match down {
                Down::Reboot | Down::Reset => context.boot(self.settings.boot),
                Down::Halt => self.is_off = true,
            }
        }
    }

    /// The state after a restart: what lived in memory is gone.
    pub(crate) fn come_up(&mut self, is_reset: bool) {
        self.goes_down = None;
        if is_reset {
            let defaults = self.defaults.clone();
            self.store.replace(&defaults);
        }
        if let Some(release) = self.installs.take() {
            self.release = release;
            self.told = None;
            self.is_update_downloaded = false;
            self.is_update_checked = false;
        }
        for (name, change) in std::mem::take(&mut self.scheduled) {
            match change.as_str() {
                "scheduled for disable" | "scheduled for uninstall" => drop(self.packages.remove(&name)),
                _ => drop(self.packages.insert(name)),
            }
        }
        self.booted_unix = self.unix;
        self.store.forget_dynamic();
        self.history.clear();
        self.log.clear();
        self.due.clear();
        self.jobs.clear();
        self.busy.clear();
        self.logins.clear();
        self.resets.clear();
        self.schedules.clear();
        live::appear(self);
        self.note("system,info", "router rebooted");
        scheduler::at_startup(self);
    }

    /// Whether the box is switched on.
    pub(crate) fn is_on(&self) -> bool {
        !self.is_off
    }

    /// The box goes down a moment after it has answered.
    pub(crate) fn go_down(&mut self, down: Down) {
        self.goes_down = Some((self.now + ANSWERS_FIRST, down));
    }

    pub(crate) fn uptime_secs(&self) -> u64 {
        self.unix.saturating_sub(self.booted_unix)
    }

    /// Seconds for which the counters of a row have run.
    pub(crate) fn counted_secs(&self, menu: &'static str, id: u64) -> u64 {
        let since = self.resets.get(&(menu, id)).copied().unwrap_or(0).max(self.booted_unix);
        self.unix.saturating_sub(since)
    }

    /// A number that no earlier call gave.
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Writes a line into the log.
    pub(crate) fn note(&mut self, topics: &str, message: &str) {
        self.note_with(topics, message, "");
    }

    pub(crate) fn note_with(&mut self, topics: &str, message: &str, extra: &str) {
        let line = Line {
            id: self.log_serial,
            unix: self.unix,
            topics: topics.to_owned(),
            message: message.to_owned(),
            extra: extra.to_owned(),
        };
        self.log_serial += 1;
        self.log.push_back(line);
        if self.log.len() > LOG_MAX {
            self.log.pop_front();
        }
    }

    /// Keeps what a write changed, so that it can be taken back.
    pub(crate) fn remember(&mut self, before: Store, text: &str, who: &Who) {
        let menus = before.differences(&self.store);
        if menus.is_empty() {
            return;
        }
        self.history.retain(|action| !action.is_undone);
        let (by, unix) = (who.name.clone(), self.unix);
        let after = self.store.clone();
        self.history.push_back(Action {
            text: text.to_owned(),
            by,
            unix,
            before,
            after,
            menus,
            is_undone: false,
        });
        if self.history.len() > HISTORY_MAX {
            self.history.pop_front();
        }
    }

    /// Takes back the last action of any user; false when there is none.
    pub(crate) fn undo(&mut self) -> bool {
        let Some(action) = self.history.iter_mut().rev().find(|action| !action.is_undone) else {
            return false;
        };
        action.is_undone = true;
        let (menus, before) = (action.menus.clone(), action.before.clone());
        self.store.take_over(&menus, &before);
        true
    }

    /// Carries out again what was taken back last; false when there is nothing.
    pub(crate) fn redo(&mut self) -> bool {
        let Some(action) = self.history.iter_mut().find(|action| action.is_undone) else { return false };
        action.is_undone = false;
        let (menus, after) = (action.menus.clone(), action.after.clone());
        self.store.take_over(&menus, &after);
        true
    }

    /// Whether a menu exists in this release with these packages on this hardware.
    pub(crate) fn has_menu(&self, path: &str) -> bool {
        Facts::get().menu(path).is_some_and(|(_, menu)| {
            menu.exists_in(self.release)
                && menu.package.as_ref().is_none_or(|package| self.packages.contains(package))
                && !(menu.hardware && self.settings.is_virtual)
        })
    }

    /// Whether a path is a menu or leads to one.
    pub(crate) fn has_directory(&self, path: &str) -> bool {
        self.has_menu(path) || Facts::get().below(path).any(|menu| self.has_menu(menu))
    }

    /// All that an administrator could have changed, as `{menu: [{field: value}]}`. Ids and values that are the defaults
    /// are left out: neither is a setting.
    pub fn configuration(&self) -> Value {
        let menus = self.store.menus().filter_map(|menu| {
            let rows = self.configured(menu);
            (!rows.is_empty()).then(|| (menu.to_owned(), Value::Array(rows)))
        });
        Value::Object(menus.collect())
    }

    /// The rows of one menu, as [`Router::configuration`] has them.
    pub fn configured(&self, menu: &str) -> Vec<Value> {
        let Some((path, menu)) = Facts::get().menu(menu) else { return Vec::new() };
        let rows = self.store.rows(path).iter().filter(|row| row.origin != Origin::Dynamic);
        let shown = rows.map(|row| {
            let fields = row.values.iter().filter_map(|(name, value)| {
                let field = menu.field(name, self.release)?;
                let value = self.store.shown(value);
                (field.default.as_ref() != Some(&value)).then(|| (name.clone(), json!(value)))
            });
            Value::Object(fields.collect::<Map<_, _>>())
        });
        shown.collect()
    }

    /// Configuration and state, for the control port.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "release": self.release,
            "version": self.version(),
            "packages": self.packages,
            "uptime_secs": self.uptime_secs(),
            "goes_down": self.goes_down.map(|(_, down)| format!("{down:?}")),
            "jobs": self.jobs.values().map(|(name, _)| name).collect::<Vec<_>>(),
            "files": self.store.rows("file").iter().map(|row| row.text("name")).collect::<Vec<_>>(),
            "log": self.log.iter().rev().take(50).map(|line| &line.message).collect::<Vec<_>>(),
            "configuration": self.configuration(),
        })
    }
}

/// Date and time of seconds since 1970.
pub(crate) fn date_time(unix: u64) -> DateTime<Utc> {
    DateTime::from_timestamp(i64::try_from(unix).unwrap_or_default(), 0).unwrap_or_default()
}

/// Date and time in the router's form.
pub(crate) fn time_text(unix: u64) -> String {
    date_time(unix).format("%Y-%m-%d %H:%M:%S").to_string()
}
