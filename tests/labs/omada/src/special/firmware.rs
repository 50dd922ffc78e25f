//! Firmware: what is offered, one device, and one device after the other.

use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::outcome::{Failure, Outcome};
use crate::page::show;
use crate::timeline::{DEVICES, Event};

/// No newer firmware is known for the device.
const NOTHING_NEWER: i64 = -39020;

impl Omada {
    pub(crate) fn firmware_call(&mut self, call: &Call) -> Option<Outcome> {
        let site = call.scope().to_owned();
        match (call.item.id.as_str(), call.route.role) {
            ("firmware.device", Role::Get) => {
                let device = self.store.find(&site, DEVICES, "mac", call.mac())?;
                let view = json!({
                    "curFwVer": device["firmwareVersion"], "lastFwVer": device["offered"],
                    "fwReleaseLog": "1. Improved stability.",
                });
                Some(Ok(show(call, &view)))
            }
            ("firmware.device", Role::Read) => {
                let is_done = !self.awaits(call.mac(), &Event::Booted);
                Some(Ok(json!({"finished": is_done, "success": is_done})))
            }
            ("firmware.upgrade", Role::Do) => Some(self.upgrade(&site, call.mac(), 0)),
            ("firmware.rolling", Role::Do) => Some(self.start_rolling(call)),
            ("firmware.rolling", Role::Read) => Some(Ok(self.rolling_state(call))),
            ("firmware.rolling", Role::Delete) => Some(Ok(self.stop_rolling(call))),
            ("firmware.check", Role::Do) => Some(Ok(json!({"taskId": self.store.new_id()}))),
            ("firmware.check", Role::Read) => {
                let of = |kind: &str| -> Vec<Value> {
                    let rows = self.store.rows(&site, DEVICES).iter();
                    rows.filter(|row| row["type"] == kind).map(|row| row["mac"].clone()).collect()
                };
                let (aps, switches, gateways) = (of("ap"), of("switch"), of("gateway"));
                Some(Ok(json!({
                    "finished": true, "apMacList": aps, "switchMacList": switches, "gatewayMacList": gateways,
                })))
            }
            ("firmware.controller", Role::Get) => {
                let version = self.seed.release.version();
                Some(Ok(json!({"hardware": {
                    "upgrade": false, "currentVersion": version, "latestVersion": version, "fwReleaseLog": "",
                }})))
            }
            _ => None,
        }
    }

    /// Plans an upgrade that begins after these steps.
    fn upgrade(&mut self, site: &str, mac: &str, after: u64) -> Outcome {
        let device = self.store.find(site, DEVICES, "mac", mac).ok_or_else(|| Failure::new(-39050))?;
        if device["offered"] == device["firmwareVersion"] {
            return Err(Failure::with(NOTHING_NEWER, "The firmware is up to date."));
        }
        if after == 0 {
            self.set_status(site, mac, 12);
        } else {
            self.plan(site, mac, &[(after, Event::Status(12))]);
        }
        let steps =
            [(after + 2, Event::Status(13)), (after + 2, Event::Upgraded), (after + 4, Event::Booted)];
        self.plan(site, mac, &steps);
        Ok(Value::Null)
    }

    fn start_rolling(&mut self, call: &Call) -> Outcome {
        let site = call.scope().to_owned();
        let listed = call.body["macs"].as_array().cloned().unwrap_or_default();
        let macs: Vec<String> = if listed.is_empty() {
            let rows = self.store.rows(&site, DEVICES).iter();
            rows.filter(|row| row["needUpgrade"] == true)
                .filter_map(|row| Some(row["mac"].as_str()?.to_owned()))
                .collect()
        } else {
            listed.iter().filter_map(|mac| Some(mac.as_str()?.to_owned())).collect()
        };
        let mut after = 0;
        let mut taken = Vec::new();
        for mac in macs {
            if self.upgrade(&site, &mac, after).is_ok() {
                after += 4;
                taken.push(mac);
            }
        }
        if taken.is_empty() {
            return Err(Failure::with(NOTHING_NEWER, "The firmware is up to date."));
        }
        let id = self.store.new_id();
        self.store.set_document(&site, &format!("rolling {id}"), json!(taken));
        Ok(json!({"taskId": id}))
    }

    fn rolling_macs(&self, call: &Call) -> Vec<String> {
        let name = format!("rolling {}", call.parameter("taskId"));
        let document = self.store.document(call.scope(), &name).and_then(Value::as_array);
        document.into_iter().flatten().filter_map(|mac| Some(mac.as_str()?.to_owned())).collect()
    }

    fn rolling_state(&self, call: &Call) -> Value {
        let unfinished =
            self.rolling_macs(call).iter().filter(|mac| self.awaits(mac, &Event::Booted)).count();
        json!({"finished": unfinished == 0, "unfinishedCount": unfinished})
    }

    /// A device whose upgrade has begun goes on; the others keep their firmware.
    fn stop_rolling(&mut self, call: &Call) -> Value {
        for mac in self.rolling_macs(call) {
            if self.awaits(&mac, &Event::Status(12)) {
                self.timeline.forget(&mac);
            }
        }
        Value::Null
    }
}
