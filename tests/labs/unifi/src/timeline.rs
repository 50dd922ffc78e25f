//! What happens by itself: devices provision, restart, upgrade, adopt; clients come back.

use serde_json::{Value, json};

use crate::console::{Change, Console, duration};
use crate::row::{Row, flag, number, put, text};
use crate::store::GLOBAL;
use crate::wlans;

/// What happens at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The device reaches a state.
    State(i64),
    /// A read shows what was written to the device.
    Settled,
    /// The device has started again.
    Booted,
    /// The device runs the firmware that was offered.
    Upgraded,
    /// The pending device belongs to the site.
    Adopted,
    /// The device leaves the site, and waits for a new one.
    Forgotten,
    /// The port has power again.
    Powered(i64),
    /// The client is connected again.
    Back,
    /// The test of the line is over.
    SpeedTested,
    /// The scan of the access point is over.
    Scanned,
}

struct Due {
    at: u64,
    site: String,
    mac: String,
    event: Event,
}

/// Events to come.
#[derive(Default)]
pub(crate) struct Timeline(Vec<Due>);

impl Timeline {
    fn pop(&mut self, now: u64) -> Option<Due> {
        let due = self.0.iter().enumerate().filter(|(_, due)| due.at <= now);
        let (place, _) = due.min_by_key(|(place, due)| (due.at, *place))?;
        Some(self.0.remove(place))
    }

    /// Drops what was planned for a device, except reads that settle.
    pub(crate) fn forget(&mut self, mac: &str) {
        self.0.retain(|due| due.mac != mac || due.event == Event::Settled);
    }

    /// What is to come, in words.
    pub(crate) fn told(&self) -> Vec<String> {
        self.0.iter().map(|due| format!("{} {} {:?} at {}", due.site, due.mac, due.event, due.at)).collect()
    }

    fn has(&self, mac: &str, event: &Event) -> bool {
        self.0.iter().any(|due| due.mac == mac && due.event == *event)
    }
}

impl Console {
    /// Plans an event a number of milliseconds from now.
    pub(crate) fn plan_in(&mut self, ms: u64, site: &str, mac: &str, event: Event) {
        let due = Due { at: self.now + ms, site: site.to_owned(), mac: mac.to_owned(), event };
        self.timeline.0.push(due);
    }

    /// Plans events, each a number of steps from now.
    pub(crate) fn plan(&mut self, site: &str, mac: &str, events: &[(u64, Event)]) {
        let step = duration(self.settings.step);
        for (steps, event) in events {
            self.plan_in(steps * step, site, mac, event.clone());
        }
    }

    /// Lets every due event happen at its own time.
    pub(crate) fn settle(&mut self) {
        let now = self.now;
        while let Some(due) = self.timeline.pop(now) {
            self.now = due.at;
            self.happen(&due.site, &due.mac, due.event);
        }
        self.now = now;
    }

    fn happen(&mut self, site: &str, mac: &str, event: Event) {
        let at = self.now;
        match event {
            Event::Adopted => return self.finish_adoption(site, mac),
            Event::Forgotten => return self.finish_forgetting(site, mac),
            Event::Back => {
                if let Some(client) = self.store.having_mut(site, "sta", "mac", mac) {
                    client.remove("~away");
                    put(client, "~since", at);
                }
                return self.tell_client(site, mac);
            }
            Event::SpeedTested => return self.finish_speedtest(site),
            _ => {}
        }
        // One whose adoption fails is still among those that wait.
        let waits = self.store.having(site, "device", "mac", mac).is_none();
        let (scope, table) = if waits { (GLOBAL, "pending") } else { (site, "device") };
        let Some(device) = self.store.having_mut(scope, table, "mac", mac) else { return };
        match &event {
            Event::State(state) => put(device, "state", *state),
            Event::Settled => {
                device.remove("~old");
            }
            Event::Booted => {
                put(device, "~booted", at);
                put(device, "state", 1);
            }
            Event::Upgraded => {
                let next = text(device, "~next").to_owned();
                put(device, "version", next);
                device.remove("~next");
            }
            Event::Powered(port) => put(device, &format!("~off:{port}"), false),
            Event::Scanned => put(device, "~scanning", false),
            _ => {}
        }
        if number(device, "state") == Some(1) {
            put(device, "~provisioned", at);
        }
        self.tell_device(site, mac);
        self.log_device(site, mac, &event);
    }

    fn log_device(&mut self, site: &str, mac: &str, event: &Event) {
        let Some(device) = self.store.having(site, "device", "mac", mac) else { return };
        let name = text(device, "name").to_owned();
        match event {
            Event::Booted => {
                self.log(site, "DEVICES", "DEVICE_CONNECTED", &format!("{name} is connected"), "LOW");
            }
            Event::Upgraded => {
                self.log(site, "DEVICES", "DEVICE_UPGRADED", &format!("{name} was upgraded"), "LOW");
            }
            Event::State(0) => {
                self.log(site, "DEVICES", "DEVICE_DISCONNECTED", &format!("{name} is disconnected"), "HIGH");
            }
            _ => {}
        }
    }

    /// Tells the stream the state of a device.
    pub(crate) fn tell_device(&mut self, site: &str, mac: &str) {
        let shown =
            self.store.having(site, "device", "mac", mac).map(|row| crate::devices::full(self, site, row));
        if let Some(shown) = shown {
            self.stream.tell(site, "device:sync", &[Value::Object(shown)]);
        }
    }

    /// Tells the stream that a client came or went.
    pub(crate) fn tell_client(&mut self, site: &str, mac: &str) {
        let shown =
            self.store.having(site, "sta", "mac", mac).map(|row| crate::clients::shown(self, site, row));
        if let Some(shown) = shown {
            self.stream.tell(site, "sta:sync", &[Value::Object(shown)]);
        }
    }

    /// Lets every connected device tell its state, when its time has come and a socket listens.
    pub(crate) fn sync_devices(&mut self) {
        if self.now < self.synced_at + duration(self.settings.sync) {
            return;
        }
        self.synced_at = self.now;
        for site in self.stream.heard() {
            let rows = self.store.rows(&site, "device").iter().filter(|row| number(row, "state") == Some(1));
            let macs: Vec<String> = rows.map(|row| text(row, "mac").to_owned()).collect();
            macs.iter().for_each(|mac| self.tell_device(&site, mac));
        }
    }

    /// Delivers the configuration to the connected devices of these types.
    pub(crate) fn provision(&mut self, site: &str, kinds: &[&str]) {
        let rows = self.store.rows(site, "device").iter();
        let meant = rows.filter(|row| kinds.contains(&text(row, "type")) && number(row, "state") == Some(1));
        let macs: Vec<String> = meant.map(|row| text(row, "mac").to_owned()).collect();
        macs.iter().for_each(|mac| self.provision_one(site, mac));
    }

    /// Delivers the configuration to one device, if it is connected.
    pub(crate) fn provision_one(&mut self, site: &str, mac: &str) {
        let Some(device) = self.store.having_mut(site, "device", "mac", mac) else { return };
        if number(device, "state") != Some(1) {
            return;
        }
        put(device, "state", 5);
        let generation = number(device, "~generation").unwrap_or_default() + 1;
        put(device, "~generation", generation);
        if !self.timeline.has(mac, &Event::State(1)) {
            self.plan(site, mac, &[(1, Event::State(1))]);
        }
        self.tell_device(site, mac);
    }

    /// Starts the restart of a device; clients behind it are gone meanwhile.
    pub(crate) fn reboot_device(&mut self, site: &str, mac: &str) {
        self.timeline.forget(mac);
        if let Some(device) = self.store.having_mut(site, "device", "mac", mac) {
            put(device, "state", 0);
        }
        self.tell_device(site, mac);
        self.plan(site, mac, &[(5, Event::Booted)]);
    }

    /// Starts the adoption of a device that waits.
    pub(crate) fn adopt(&mut self, site: &str, mac: &str, fails: bool) -> bool {
        let Some(pending) = self.store.having_mut(GLOBAL, "pending", "mac", mac) else { return false };
        if number(pending, "state") != Some(2) {
            return false;
        }
        put(pending, "state", 7);
        let events =
            if fails { vec![(2, Event::State(10))] } else { vec![(2, Event::Adopted), (4, Event::State(1))] };
        self.plan(site, mac, &events);
        true
    }

    fn finish_adoption(&mut self, site: &str, mac: &str) {
        let rows = self.store.rows_mut(GLOBAL, "pending");
        let Some(place) = rows.iter().position(|row| text(row, "mac") == mac) else { return };
        let mut device: Row = rows.remove(place);
        put(&mut device, "adopted", true);
        put(&mut device, "state", 5);
        put(&mut device, "~adopted", self.now);
        let is_point = text(&device, "type") == "uap";
        self.store.add(site, "device", device);
        if is_point {
            wlans::join_usual_group(self, site, mac);
        }
        self.log(site, "DEVICES", "DEVICE_ADOPTED", &format!("{mac} was adopted"), "LOW");
        let row = self.store.having(site, "device", "mac", mac).cloned().unwrap_or_default();
        let shown = crate::devices::full(self, site, &row);
        self.stream.tell(site, "device:add", &[Value::Object(shown)]);
    }

    fn finish_forgetting(&mut self, site: &str, mac: &str) {
        let Some(device) = self.store.having(site, "device", "mac", mac).cloned() else { return };
        self.store.rows_mut(site, "device").retain(|row| text(row, "mac") != mac);
        wlans::leave_groups(self, site, mac);
        self.changed(site, "device", &device, Change::Delete);
        // One that was reached starts as from the factory, and waits to be adopted.
        if flag(&device, "~reached") {
            let kept = [
                "_id", "mac", "model", "type", "version", "ip", "serial", "~uuid", "~ports", "~radios",
                "~next", "~name",
            ];
            let mut pending: Row =
                device.into_iter().filter(|(name, _)| kept.contains(&name.as_str())).collect();
            put(&mut pending, "state", 2);
            put(&mut pending, "adopted", false);
            self.store.add(GLOBAL, "pending", pending);
        }
    }

    fn finish_speedtest(&mut self, site: &str) {
        let result = json!({
            "time": self.now, "rundate": self.now / 1000, "xput_download": 486.2, "xput_upload": 212.4,
            "latency": 9,
            "status_summary": 2, "status_ping": 2, "status_download": 2, "status_upload": 2,
            "interface_name": "eth8",
        });
        self.store.add(site, "speedtest", crate::row::row(result.clone()));
        self.stream.tell(site, "speed-test:update", &[result]);
    }
}
