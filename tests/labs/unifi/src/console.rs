//! The console: what it has stored, who is signed in, and what a write sets off.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use heddle_lab::{Context, Request};
use serde_json::{Value, json};

use crate::access::Access;
use crate::row::{Row, put, shown, text};
use crate::seed;
use crate::settings::Settings;
use crate::store::Store;
use crate::stream::Stream;
use crate::timeline::Timeline;

/// A simulated console.
pub struct Console {
    /// What it is; tests may change it while it runs.
    pub settings: Settings,
    /// Routes that it lacks, as `METHOD path` below the prefix; a star at the end stands for any rest.
    pub missing: BTreeSet<String>,
    pub(crate) store: Store,
    pub(crate) access: Access,
    pub(crate) timeline: Timeline,
    pub(crate) stream: Stream,
    /// The stores that backup files hold, by the name of the file.
    pub(crate) files: BTreeMap<String, Store>,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    /// When the application answers.
    pub(crate) ready_at: u64,
    /// The host restarts, and the application with it.
    starts: bool,
    /// A restart that follows the answer of this call.
    restarts: bool,
    /// What a write changes, for the faults that let it fail.
    pub(crate) before: Option<Store>,
    pub(crate) synced_at: u64,
}

/// What happened to a stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    Update,
    Delete,
}

impl Console {
    /// A console with the household.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            missing: BTreeSet::new(),
            store: Store::default(),
            access: Access::default(),
            timeline: Timeline::default(),
            stream: Stream::default(),
            files: BTreeMap::new(),
            now: 0,
            ready_at: 0,
            starts: false,
            restarts: false,
            before: None,
            synced_at: 0,
        }
    }

    /// Everything that tells whether something was done: what is stored with the simulator's own fields, what is to come,
    /// the backup files, and when the application answers again.
    pub fn traces(&self) -> Value {
        json!({
            "stored": self.store.to_whole_json(), "due": self.timeline.told(),
            "files": self.files.keys().collect::<Vec<_>>(), "ready": self.ready_at,
        })
    }

    /// How many sockets listen to the stream of events now.
    pub fn listeners(&self) -> usize {
        self.stream.open_sockets()
    }

    pub(crate) fn plant(&mut self, context: &Context) {
        self.now = millis(context);
        seed::plant(self);
    }

    pub(crate) fn tick(&mut self, context: &mut Context) {
        self.now = millis(context);
        if self.starts && !context.is_booting() {
            self.starts = false;
            self.ready_at = self.now + duration(self.settings.start);
        }
        self.settle();
    }

    /// Asks for a restart of the host, which follows the answer of this call.
    pub(crate) fn ask_restart(&mut self) {
        self.restarts = true;
    }

    pub(crate) fn carry_out_restart(&mut self, context: &mut Context) {
        if std::mem::take(&mut self.restarts) {
            self.come_down();
            context.boot(self.settings.boot);
        }
    }

    /// Loses what lives in memory: sessions, sockets, what was under way.
    pub(crate) fn come_down(&mut self) {
        self.access.end_all();
        self.stream.close_all();
        self.starts = true;
        self.ready_at = u64::MAX;
    }

    /// Whether the application answers.
    pub(crate) fn is_ready(&self) -> bool {
        self.now >= self.ready_at
    }

    /// Whether the route is one that this console shall lack.
    pub(crate) fn lacks(&self, request: &Request, path: &str) -> bool {
        let whole = format!("{} {path}", request.method);
        self.missing.iter().any(|missing| match missing.strip_suffix('*') {
            Some(start) => whole.starts_with(start),
            None => whole == *missing,
        })
    }

    /// What a stored object looks like on the older interfaces.
    pub(crate) fn shown(table: &str, row: &Row) -> Row {
        let mut shown = shown(row);
        let tells_uuid = matches!(table, "site" | "networkconf" | "wlanconf" | "firewall_zone");
        if tells_uuid && let Some(id) = row.get("~uuid") {
            put(&mut shown, "external_id", id.clone());
        }
        shown
    }

    /// Tells a change on the stream, delivers it to the devices, and keeps what is derived from it true.
    pub(crate) fn changed(&mut self, site: &str, table: &str, row: &Row, change: Change) {
        let word = match change {
            Change::Add => "add",
            Change::Update => "sync",
            Change::Delete => "delete",
        };
        let name = match table {
            "firewall_zone" => "firewallzone",
            "firewall_policy" => "firewallpolicy",
            "static_dns" => "staticdns",
            _ => table,
        };
        let shown = Value::Object(Self::shown(table, row));
        self.stream.tell(site, &format!("{name}:{word}"), &[shown]);
        let kinds: &[&str] = match table {
            "wlanconf" | "apgroup" => &["uap"],
            "networkconf" if text(row, "purpose") == "wan" => &["udm"],
            "networkconf" | "portconf" | "setting" | "radiusprofile" | "acl_rule" => &["udm", "usw", "uap"],
            "firewall_zone" | "firewall_policy" | "firewallrule" | "firewallgroup" | "portforward"
            | "routing" | "static_dns" | "nat" | "trafficrules" | "trafficroutes" | "dynamicdns"
            | "account" | "matching_list" | "content-filtering" => &["udm"],
            _ => &[],
        };
        self.provision(site, kinds);
    }

    /// Writes a line to the log of a site; up to 9.x it is an event on the stream as well.
    pub(crate) fn log(&mut self, site: &str, category: &str, key: &str, message: &str, severity: &str) {
        let row = json!({
            "key": key, "category": category, "subcategory": category, "severity": severity, "title_raw": key,
            "message": message, "message_raw": message, "status": "NEW", "type": "GENERAL",
            "timestamp": self.now,
            "show_on_dashboard": severity == "HIGH",
        });
        let id = self.store.add(site, "log", crate::row::row(row));
        let rows = self.store.rows_mut(site, "log");
        if rows.len() > 1000 {
            rows.drain(..200);
        }
        if self.settings.release.lists_events() {
            let event = json!({
                "_id": id, "key": format!("EVT_{key}"), "msg": message, "time": self.now,
                "datetime": crate::row::moment(self.now),
                "subsystem": if category == "CLIENT_DEVICES" { "wlan" } else { "lan" },
                "site_id": self.site_id(site),
            });
            self.stream.tell(site, "events", &[event]);
        }
    }

    /// The `_id` of a site.
    pub(crate) fn site_id(&self, site: &str) -> String {
        let found = self.store.having(crate::store::GLOBAL, "site", "name", site);
        found.map_or_else(String::new, |row| text(row, "_id").to_owned())
    }

    /// Whether a site has a gateway that the application manages.
    pub(crate) fn has_gateway(&self, site: &str) -> bool {
        self.store
            .rows(site, "device")
            .iter()
            .any(|row| matches!(text(row, "type"), "udm" | "ugw" | "uxg") && crate::row::flag(row, "adopted"))
    }

    /// Whether the firewall of a site has zones.
    pub(crate) fn has_zones(&self, site: &str) -> bool {
        self.settings.has_zones && self.has_gateway(site)
    }
}

pub(crate) fn millis(context: &Context) -> u64 {
    duration(context.clock.unix_of(context.now()))
}

/// A duration in milliseconds.
pub(crate) fn duration(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
