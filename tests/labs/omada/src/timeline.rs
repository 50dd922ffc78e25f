//! What happens by itself after a call: devices adopt, reboot and upgrade, backups end, clients return.

use serde_json::{Value, json};

use crate::controller::Omada;
use crate::store::GLOBAL;

/// What happens at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The device reaches a state, by its fine code.
    Status(i64),
    /// The pending device becomes one of the site.
    Adopted,
    /// The adoption failed with this code.
    AdoptFailed(i64),
    /// The device leaves the site.
    Forgotten,
    /// The device runs the firmware that was offered.
    Upgraded,
    /// The device has started again.
    Booted,
    /// The client is connected again.
    ClientBack,
    /// The backup file stands ready.
    BackupDone,
}

struct Due {
    at: u64,
    site: String,
    mac: String,
    event: Event,
}

/// Events to come, and how long a step of a device takes.
pub(crate) struct Timeline {
    step_ms: u64,
    due: Vec<Due>,
}

impl Timeline {
    pub(crate) fn new(step_ms: u64) -> Self {
        Self { step_ms, due: Vec::new() }
    }

    /// How long a restart of the controller takes.
    pub(crate) fn restart_ms(&self) -> u64 {
        self.step_ms * 4
    }

    /// Drops what was planned for a device.
    pub(crate) fn forget(&mut self, mac: &str) {
        self.due.retain(|due| due.mac != mac);
    }

    /// The earliest event that is due.
    fn take_next(&mut self, now: u64) -> Option<Due> {
        let due = self.due.iter().enumerate().filter(|(_, due)| due.at <= now);
        let (place, _) = due.min_by_key(|(place, due)| (due.at, *place))?;
        Some(self.due.remove(place))
    }

    fn has_event(&self, mac: &str, event: &Event) -> bool {
        self.due.iter().any(|due| due.mac == mac && due.event == *event)
    }
}

impl Omada {
    /// Plans events for a device or client, each a number of steps from now.
    pub(crate) fn plan(&mut self, site: &str, mac: &str, events: &[(u64, Event)]) {
        for (steps, event) in events {
            let at = self.now + steps * self.timeline.step_ms;
            let (site, mac, event) = (site.to_owned(), mac.to_owned(), event.clone());
            self.timeline.due.push(Due { at, site, mac, event });
        }
    }

    /// Whether an event of this kind is still to come.
    pub(crate) fn awaits(&self, mac: &str, event: &Event) -> bool {
        self.timeline.has_event(mac, event)
    }

    /// Lets every due event happen, each at its own time: what one sets off may be due as well.
    pub(crate) fn settle(&mut self) {
        let now = self.now;
        while let Some(due) = self.timeline.take_next(now) {
            self.now = due.at;
            match due.event {
                Event::Adopted => self.finish_adoption(&due.site, &due.mac),
                Event::AdoptFailed(code) => self.fail_adoption(&due.site, &due.mac, code),
                Event::Forgotten => self.remove_device(&due.site, &due.mac),
                Event::BackupDone => self.finish_backup(&due.site),
                Event::ClientBack => {
                    let started = due.at;
                    if let Some(client) = self.store.find_mut(&due.site, CLIENTS, "mac", &due.mac) {
                        client["active"] = json!(true);
                        client["connectedAt"] = json!(started);
                        self.log_client(&due.site, &due.mac, true);
                    }
                }
                event => self.move_device(&due.site, &due.mac, due.at, &event),
            }
        }
        self.now = now;
    }

    fn move_device(&mut self, site: &str, mac: &str, at: u64, event: &Event) {
        let Some(device) = self.store.find_mut(site, DEVICES, "mac", mac) else { return };
        match event {
            Event::Status(code) => device["detailStatus"] = json!(code),
            Event::Booted => {
                device["bootedAt"] = json!(at);
                device["detailStatus"] = json!(14);
            }
            Event::Upgraded => {
                device["firmwareVersion"] = device["offered"].clone();
                device["needUpgrade"] = json!(false);
            }
            _ => {}
        }
        let (name, code) = (device["name"].clone(), device["detailStatus"].as_i64().unwrap_or_default());
        let content = match (event, code) {
            (Event::Booted, _) => format!("{} is online.", name.as_str().unwrap_or(mac)),
            (Event::Status(_), 0) => format!("{} is offline.", name.as_str().unwrap_or(mac)),
            _ => return,
        };
        self.log(site, EVENTS, "Device", &content, at);
    }

    /// Writes a line to the events or alerts of a site.
    pub(crate) fn log(&mut self, site: &str, log: &str, module: &str, content: &str, at: u64) {
        let id = self.store.new_id();
        let key = match (log, module) {
            (EVENTS, "Client") => "CLIENT_STATE",
            (EVENTS, _) => "DEVICE_STATE",
            _ => "DEVICE_ALERT",
        };
        let row = json!({
            "id": id, "key": key, "module": module, "content": content, "time": at, "level": "Warning",
            "resolved": false,
        });
        self.store.rows_mut(site, log).push(row);
        self.tell(site, key, content);
    }

    /// Writes that a client came or left.
    pub(crate) fn log_client(&mut self, site: &str, mac: &str, is_online: bool) {
        let client = self.store.find(site, CLIENTS, "mac", mac);
        let name = client.and_then(|client| client["name"].as_str()).unwrap_or(mac).to_owned();
        let state = if is_online { "online" } else { "offline" };
        self.log(site, EVENTS, "Client", &format!("[client:{name}:{mac}] is {state}."), self.now);
    }

    fn finish_backup(&mut self, site: &str) {
        let at = self.now;
        let name = format!("omada_backup_{at}.cfg");
        let scope = (site != CONTROLLER).then_some(site);
        self.snapshots.insert(name.clone(), self.store.snapshot(scope));
        let file = json!({"fileName": name, "backupTime": at, "size": 184_320});
        self.store.rows_mut(site, BACKUPS).push(file);
    }

    /// Delivers the settings of a site: its devices are configured, then connected again.
    pub(crate) fn provision(&mut self, site: &str) {
        let connected = |row: &&mut Value| row["detailStatus"] == 14;
        let mut macs = Vec::new();
        for device in self.store.rows_mut(site, DEVICES).iter_mut().filter(connected) {
            device["detailStatus"] = json!(11);
            macs.extend(device["mac"].as_str().map(str::to_owned));
        }
        for mac in macs {
            self.plan(site, &mac, &[(1, Event::Status(14))]);
        }
    }
}

pub(crate) const DEVICES: &str = "device.device";
pub(crate) const PENDING: &str = "device.pending";
pub(crate) const CLIENTS: &str = "insights.client";
pub(crate) const EVENTS: &str = "insights.event";
pub(crate) const ALERTS: &str = "insights.alert";
pub(crate) const BACKUPS: &str = "backup files";
/// The site of events that belong to the controller.
pub(crate) const CONTROLLER: &str = GLOBAL;
