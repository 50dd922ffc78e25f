//! Devices: how each surface shows them, adoption, and the actions that take time.

use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::outcome::{Failure, INVALID, NOT_FOUND_YET, Outcome, own_code};
use crate::page::{page, show};
use crate::store::is;
use crate::timeline::{CLIENTS, DEVICES, EVENTS, Event, PENDING};

const NO_DEVICE: [i64; 4] = [-39050, -39303, -39501, -39700];
/// The path of an Agile switch must be used.
const ES_PATH: i64 = -39742;

impl Omada {
    /// Refuses a device in the path that the site does not have.
    pub(crate) fn check_device(&self, call: &Call) -> Result<(), Failure> {
        let pairs = call.route.parts.iter().zip(call.route.parts.iter().skip(1));
        let found = pairs.into_iter().find_map(|(before, part)| {
            let name = part.strip_prefix('{')?.strip_suffix('}')?;
            let (kind, code) = match before.as_str() {
                "aps" | "eaps" => ("ap", -39303),
                "switches" | "es" => ("switch", -39700),
                "gateways" => ("gateway", -39501),
                "devices" => ("", -39050),
                "olts" | "olt" => ("olt", -39050),
                _ => return None,
            };
            (name.ends_with("Mac") || name == "mac").then(|| (call.parameter(name).to_owned(), kind, code))
        });
        let Some((mac, kind, code)) = found.filter(|_| call.parameters.contains_key("siteId")) else {
            return Ok(());
        };
        let site = call.scope();
        let device = self.store.find(site, DEVICES, "mac", &mac);
        let is_pending = kind.is_empty() && self.store.find(site, PENDING, "mac", &mac).is_some();
        match device {
            Some(device) if kind.is_empty() || device["type"] == kind => {
                let is_agile = device["subtype"] == "es" && call.route.codes.contains(&ES_PATH);
                if is_agile { Err(Failure::new(ES_PATH)) } else { Ok(()) }
            }
            None if is_pending => Ok(()),
            // The result of a finished removal is asked for by the address that is gone.
            None if call.route.role == Role::Read && call.is_about_removal() => Ok(()),
            _ => {
                let known = NO_DEVICE.into_iter().find(|code| call.route.codes.contains(code));
                Err(Failure::new(known.unwrap_or(code)))
            }
        }
    }

    pub(crate) fn device_call(&mut self, call: &Call) -> Option<Outcome> {
        let site = call.scope().to_owned();
        match call.item.id.as_str() {
            "device.device" => Some(Ok(self.device_list(call)?)),
            "device.pending" if call.route.role == Role::List => {
                let rows = self.store.rows(&site, PENDING).iter().collect();
                Some(Ok(page(call, rows, |row| self.device_view(row, false))))
            }
            "device.adopt" if call.route.role == Role::Read => Some(Ok(self.adopt_result(call))),
            "device.adopt" => {
                let mac = if call.mac().is_empty() { call.text("mac") } else { call.mac() };
                Some(self.start_adoption(&site, mac, call))
            }
            "bulk.adopt" => Some(self.adopt_many(call)),
            "device.forget" if call.route.role == Role::Do => Some(self.forget(call)),
            "device.reboot" => {
                self.set_status(&site, call.mac(), 13);
                self.plan(&site, call.mac(), &[(2, Event::Status(0)), (4, Event::Booted)]);
                Some(Ok(Value::Null))
            }
            "device.provision" => {
                self.set_status(&site, call.mac(), 10);
                self.plan(&site, call.mac(), &[(1, Event::Status(14))]);
                Some(Ok(Value::Null))
            }
            "device.locate" if call.route.role == Role::Do => {
                let device = self.store.find_mut(&site, DEVICES, "mac", call.mac())?;
                device["locateEnable"] = call.body["locateEnable"].clone();
                Some(Ok(Value::Null))
            }
            "device.move" if call.last() == "site-move" && !call.mac().is_empty() => {
                Some(self.move_to_site(call))
            }
            _ => None,
        }
    }

    fn device_list(&self, call: &Call) -> Option<Value> {
        let is_web = call.route.is_web;
        let rows = self.store.rows(call.scope(), DEVICES);
        match (call.route.role, call.last()) {
            // The web surface lists devices that wait for adoption with the others.
            (Role::List, _) if is_web => {
                let pending = self.store.rows(call.scope(), PENDING);
                Some(page(call, rows.iter().chain(pending).collect(), |row| self.device_view(row, true)))
            }
            (Role::List, _) => Some(page(call, rows.iter().collect(), |row| self.device_view(row, false))),
            (Role::Read, "uplink-info") => {
                let asked: Vec<&str> =
                    call.body["deviceMacs"].as_array()?.iter().filter_map(Value::as_str).collect();
                let chosen = rows.iter().filter(|row| asked.iter().any(|mac| is(row, "mac", mac)));
                Some(Value::Array(chosen.map(|row| self.device_view(row, false)).collect()).clone())
                    .map(|rows| show(call, &rows))
            }
            _ => None,
        }
    }

    /// The device as one surface shows it: the web surface gives the fine code as the status.
    pub(crate) fn device_view(&self, row: &Value, is_web: bool) -> Value {
        let mut view = row.clone();
        if let Some(fields) = view.as_object_mut() {
            fields.retain(|name, _| !INTERNAL.contains(&name.as_str()));
        }
        let fine = row["detailStatus"].as_i64().unwrap_or_default();
        let coarse = coarse(fine);
        view["status"] = json!(if is_web { fine } else { coarse });
        view["statusCategory"] = json!(coarse);
        let is_up = coarse == 1;
        let seconds = if is_up {
            self.now.saturating_sub(row["bootedAt"].as_u64().unwrap_or(self.now)) / 1000
        } else {
            0
        };
        view["uptimeLong"] = json!(seconds);
        view["uptime"] = json!(uptime_text(seconds));
        if is_up {
            view["lastSeen"] = json!(self.now);
        }
        view
    }

    /// The page of one device: gateway, switch or access point.
    pub(crate) fn device_page(&mut self, call: &Call) -> Option<Outcome> {
        if !matches!(call.item.id.as_str(), "wifi.ap" | "switch.switch" | "switch.easy" | "routing.gateway") {
            return None;
        }
        if call.route.role == Role::Update {
            let device = self.store.find_mut(call.scope(), DEVICES, "mac", call.mac())?;
            if let Some(name) = call.body["name"].as_str() {
                device["name"] = json!(name);
            }
            return None;
        }
        if call.route.role != Role::Get || !call.last().starts_with('{') {
            return None;
        }
        let device = self.store.find(call.scope(), DEVICES, "mac", call.mac())?;
        let mut view = self.device_view(device, call.route.is_web);
        if call.item.id.starts_with("switch.") {
            view["portList"] = Value::Array(self.ports_of(call.scope(), call.mac()).cloned().collect());
        }
        Some(Ok(show(call, &view)))
    }

    fn start_adoption(&mut self, site: &str, mac: &str, call: &Call) -> Outcome {
        let Some(device) = self.store.find_mut(site, PENDING, "mac", mac) else {
            return Err(Failure::new(if call.route.is_web { NOT_FOUND_YET } else { -39050 }));
        };
        if call.body.is_null() {
            return Err(Failure { status: 400, ..Failure::new(INVALID) });
        }
        device["detailStatus"] = json!(22);
        device["adoptErrorCode"] = Value::Null;
        // A device that another controller had configured asks for its own account.
        let account = device["account"].as_str().map(str::to_owned);
        let given = format!("{}:{}", call.text("username"), call.text("password"));
        let is_open = account.is_none_or(|account| account == given);
        let end = if is_open { Event::Adopted } else { Event::AdoptFailed(-39003) };
        self.plan(site, mac, &[(2, end)]);
        Ok(Value::Null)
    }

    fn adopt_many(&mut self, call: &Call) -> Outcome {
        let macs: Vec<String> = call.body["macs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|mac| Some(mac.as_str()?.to_owned()))
            .collect();
        for mac in macs {
            self.start_adoption(call.scope(), &mac, call)?;
        }
        Ok(Value::Null)
    }

    fn adopt_result(&self, call: &Call) -> Value {
        let pending = self.store.find(call.scope(), PENDING, "mac", call.mac());
        let code = match pending {
            None => Some(0),
            Some(device) => device["adoptErrorCode"].as_i64(),
        };
        let mut result = json!({"deviceMac": call.mac()});
        if let Some(code) = code {
            result["adoptErrorCode"] = json!(code);
        }
        if code == Some(-39003) {
            result["adoptFailedType"] = json!(-2);
        }
        result
    }

    pub(crate) fn finish_adoption(&mut self, site: &str, mac: &str) {
        let pending = self.store.rows_mut(site, PENDING);
        let Some(at) = pending.iter().position(|row| is(row, "mac", mac)) else { return };
        let mut device = pending.remove(at);
        device["detailStatus"] = json!(10);
        device["bootedAt"] = json!(self.now);
        let name = device["name"].as_str().unwrap_or(mac).to_owned();
        self.store.rows_mut(site, DEVICES).push(device);
        self.add_parts(site, mac);
        self.plan(site, mac, &[(1, Event::Status(11)), (2, Event::Status(14))]);
        self.log(site, EVENTS, "Device", &format!("{name} was adopted."), self.now);
    }

    pub(crate) fn fail_adoption(&mut self, site: &str, mac: &str, code: i64) {
        if let Some(device) = self.store.find_mut(site, PENDING, "mac", mac) {
            device["detailStatus"] = json!(24);
            device["adoptErrorCode"] = json!(code);
        }
    }

    fn forget(&mut self, call: &Call) -> Outcome {
        let device = self.store.find(call.scope(), DEVICES, "mac", call.mac());
        if device.is_some_and(|device| device["detailStatus"] == 12) {
            return Err(Failure::new(own_code(&call.route.codes, &[-39014]).unwrap_or(-39014)));
        }
        let site = call.scope().to_owned();
        self.plan(&site, call.mac(), &[(1, Event::Forgotten)]);
        Ok(Value::Null)
    }

    /// The device is reset and, still on the network, waits for its next adoption.
    pub(crate) fn remove_device(&mut self, site: &str, mac: &str) {
        let devices = self.store.rows_mut(site, DEVICES);
        let Some(at) = devices.iter().position(|row| is(row, "mac", mac)) else { return };
        let mut device = devices.remove(at);
        device["name"] = device["mac"].clone();
        device["detailStatus"] = json!(20);
        device["adoptErrorCode"] = Value::Null;
        self.store.rows_mut(site, "switch.port").retain(|row| !is(row, "switchMac", mac));
        self.store.rows_mut(site, PENDING).push(device);
    }

    fn move_to_site(&mut self, call: &Call) -> Outcome {
        let target = call.text("targetSite").to_owned();
        if self.store.find("", "system.site", "siteId", &target).is_none() {
            return Err(Failure::new(-33000));
        }
        let (site, mac) = (call.scope().to_owned(), call.mac().to_owned());
        for name in [DEVICES, "switch.port"] {
            let field = if name == DEVICES { "mac" } else { "switchMac" };
            let (moved, kept) =
                self.store.rows_mut(&site, name).drain(..).partition(|row| is(row, field, &mac));
            *self.store.rows_mut(&site, name) = kept;
            self.store.rows_mut(&target, name).extend::<Vec<Value>>(moved);
        }
        self.set_status(&target, &mac, 11);
        self.plan(&target, &mac, &[(1, Event::Status(14))]);
        Ok(Value::Null)
    }

    pub(crate) fn set_status(&mut self, site: &str, mac: &str, code: i64) {
        if let Some(device) = self.store.find_mut(site, DEVICES, "mac", mac) {
            device["detailStatus"] = json!(code);
        }
    }

    /// How many clients a device carries.
    pub(crate) fn clients_of(&self, site: &str, mac: &str) -> usize {
        let fields = ["apMac", "switchMac", "gatewayMac"];
        let carries = |row: &&Value| row["active"] == true && fields.iter().any(|field| is(row, field, mac));
        self.store.rows(site, CLIENTS).iter().filter(carries).count()
    }
}

impl Call {
    fn is_about_removal(&self) -> bool {
        self.route.name.contains("/forget/") || self.route.name.contains("/move/")
    }
}

/// What the simulation knows of a device and no read tells.
const INTERNAL: [&str; 6] = ["bootedAt", "offered", "account", "ports", "poePorts", "poeBudget"];

/// The coarse state of a fine one.
pub(crate) fn coarse(fine: i64) -> i64 {
    match fine {
        10..=17 | 50 => 1,
        20..=27 => 2,
        30..=33 => 3,
        40..=41 => 4,
        _ => 0,
    }
}

fn uptime_text(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let rest = format!("{hours}h {}m {}s", seconds / 60 % 60, seconds % 60);
    if days == 0 { rest } else { format!("{days}day(s) {rest}") }
}
