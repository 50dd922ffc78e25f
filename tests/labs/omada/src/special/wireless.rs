//! WLAN groups, their SSIDs with the many writes of one SSID, and radios.

use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::facts::Role;
use crate::generic::overwrite;
use crate::outcome::{Failure, INVALID, Outcome};
use crate::page::{page, show};
use crate::shape;

const GROUPS: &str = "wifi.wlan-group";
/// SSIDs that one band of a group carries.
const SSIDS_MAX: usize = 8;

impl Omada {
    pub(crate) fn wireless_call(&mut self, call: &Call) -> Option<Outcome> {
        match (call.item.id.as_str(), call.route.role) {
            (GROUPS, role) => self.group_call(call, role),
            ("wifi.ssid", Role::Read) if call.last() == "ssids" => Some(Ok(self.ssids_of_site(call))),
            ("wifi.ssid", role) => self.ssid_call(call, role),
            ("wifi.ap-radio", Role::Get) if call.last() == "radio-config" => {
                Some(Ok(self.radio_config(call)))
            }
            ("wifi.ap-radio", Role::Read) if call.last() == "radios" => Some(Ok(self.radio_state(call))),
            ("wifi.ap-radio" | "wifi.ap-channel", Role::Update) => {
                let name = format!("wifi.ap-radio|{}", call.mac());
                let mut stored = self.store.document(call.scope(), &name).cloned().unwrap_or(json!({}));
                shape::lay_over(&mut stored, &call.body);
                self.store.set_document(call.scope(), &name, stored);
                Some(Ok(Value::Null))
            }
            // The document of an access point takes these and drops them.
            ("wifi.ap", Role::Update) if call.route.is_web => {
                let name = call.body["name"].clone();
                if let (Value::String(_), Some(device)) =
                    (&name, self.store.find_mut(call.scope(), crate::timeline::DEVICES, "mac", call.mac()))
                {
                    device["name"] = name;
                }
                Some(Ok(Value::Null))
            }
            _ => None,
        }
    }

    fn group_call(&mut self, call: &Call, role: Role) -> Option<Outcome> {
        let site = call.scope().to_owned();
        match role {
            Role::List
                if call.route.answer.as_ref().is_some_and(|field| field.child("gridWlanGroup").is_some()) =>
            {
                let rows = self.store.rows(&site, GROUPS).iter().collect();
                let grid = page(call, rows, Clone::clone);
                let limits = json!({"maxSsids2G": SSIDS_MAX, "maxSsids5G": SSIDS_MAX, "maxSsids6G": SSIDS_MAX,
                "maxSsidsMlo": 4});
                let mut result = json!({"gridWlanGroup": {
                    "totalRows": grid["totalRows"], "currentPage": grid["currentPage"],
                    "currentSize": grid["currentSize"], "data": grid["data"],
                }});
                shape::lay_over(&mut result, &limits);
                Some(Ok(result))
            }
            Role::Create => {
                let cloned = call.text("clonedWlanId").to_owned();
                let outcome = self.generic(call);
                if outcome.is_ok() && call.body["clone"] == true {
                    let new = self.store.rows(&site, GROUPS).last()?["wlanId"].as_str()?.to_owned();
                    let rows = self.store.rows(&site, &format!("wifi.ssid|{cloned}")).clone();
                    self.store.rows_mut(&site, &format!("wifi.ssid|{new}")).extend(rows);
                }
                Some(outcome)
            }
            Role::Delete => {
                let id = call.row_id()?.1.to_owned();
                let group = self.store.find(&site, GROUPS, "wlanId", &id)?;
                if group["primary"] == true {
                    return Some(Err(Failure::new(-33203)));
                }
                let outcome = self.generic(call);
                if outcome.is_ok() {
                    self.store.rows_mut(&site, &format!("wifi.ssid|{id}")).clear();
                }
                Some(outcome)
            }
            _ => None,
        }
    }

    fn ssids_of_site(&self, call: &Call) -> Value {
        let groups = self.store.rows(call.scope(), GROUPS).iter().map(|group| {
            let id = group["wlanId"].as_str().unwrap_or_default();
            let ssids = self.store.rows(call.scope(), &format!("wifi.ssid|{id}")).iter();
            let ssids: Vec<Value> =
                ssids.map(|ssid| json!({"ssidId": ssid["ssidId"], "ssidName": ssid["name"]})).collect();
            json!({"wlanId": id, "wlanName": group["name"], "ssidList": ssids})
        });
        Value::Array(groups.collect())
    }

    fn ssid_call(&mut self, call: &Call, role: Role) -> Option<Outcome> {
        let group = call.parameter("wlanId");
        if group.is_empty() {
            return None;
        }
        if self.store.find(call.scope(), GROUPS, "wlanId", group).is_none() {
            return Some(Err(Failure::new(-33000)));
        }
        match role {
            Role::Create => Some(self.create_ssid(call)),
            Role::Update => Some(self.update_ssid(call)),
            _ => None,
        }
    }

    fn create_ssid(&mut self, call: &Call) -> Outcome {
        check_ssid(call)?;
        let band = call.body["band"].as_u64().unwrap_or_default();
        let rows = self.store.rows(call.scope(), &call.collection());
        for bit in [1, 2, 4].into_iter().filter(|bit| band & bit != 0) {
            let carried = rows.iter().filter(|row| row["band"].as_u64().unwrap_or_default() & bit != 0);
            if carried.count() >= SSIDS_MAX {
                return Err(Failure::with(-33219, "The band carries no more SSIDs."));
            }
        }
        let outcome = self.generic(call)?;
        let collection = call.collection();
        if let Some(row) = self.store.rows_mut(call.scope(), &collection).last_mut() {
            let mut whole = blocks();
            shape::lay_over(&mut whole, row);
            *row = whole;
        }
        Ok(outcome)
    }

    /// One of the writes of an SSID. The read nests the blocks whose writes are flat.
    fn update_ssid(&mut self, call: &Call) -> Outcome {
        if call.last() == "update-basic-config" {
            check_ssid(call)?;
        }
        let block = match call.last() {
            "update-rate-control" => "rateControl",
            "update-multicast-config" => "multiCast",
            "update-hotspotv2" => "hotspotV2Setting",
            "update-dhcp-option" => "dhcpOption82",
            "update-wlan-schedule" => "wlanSchedule",
            "update-mac-filter" => "macFilter",
            _ if call.route.is_web => {
                return self.generic(call);
            }
            "update-basic-config" => return self.generic(call),
            _ => "",
        };
        let (collection, id) = (call.collection(), call.parameter("ssidId").to_owned());
        let Some(row) = self.store.find_mut(call.scope(), &collection, "ssidId", &id) else {
            return Err(Failure::new(-33000));
        };
        if block.is_empty() {
            overwrite(row, call);
        } else {
            row[block] = call.body.clone();
        }
        Ok(Value::Null)
    }

    fn radio_config(&self, call: &Call) -> Value {
        let name = format!("wifi.ap-radio|{}", call.mac());
        let stored = self.store.document(call.scope(), &name).cloned().unwrap_or(json!({}));
        show(call, &stored)
    }

    /// The radios as they run: what was set, and what the air is like.
    fn radio_state(&self, call: &Call) -> Value {
        let config = self.radio_config_of(call);
        let mut state = json!({});
        for (setting, radio, traffic) in [
            ("radioSetting2g", "wp2g", "radioTraffic2g"),
            ("radioSetting5g", "wp5g", "radioTraffic5g"),
            ("radioSetting6g", "wp6g", "radioTraffic6g"),
        ] {
            let block = &config[setting];
            if block["radioEnable"] != true {
                continue;
            }
            state[radio] = json!({
                "actualChannel": channel(block["freq"].as_u64().unwrap_or_default(), radio),
                "maxTxRate": 1201,
                "txPower": block["txPower"], "region": 276, "bandWidth": "40MHz", "rdMode": "802.11ax",
                "txUtil": 7, "rxUtil": 4, "interUtil": 12, "busyUtil": 23,
            });
            let seconds = self.now / 1000 % 1_000_000;
            state[traffic] = json!({
                "rxPkts": seconds * 12, "txPkts": seconds * 20, "rx": seconds * 9000, "tx": seconds * 22_000,
                "rxDropPkts": 3, "txDropPkts": 5, "rxErrPkts": 0, "txErrPkts": 1, "rxRetryPkts": 40,
                "txRetryPkts": 61,
            });
        }
        show(call, &state)
    }

    fn radio_config_of(&self, call: &Call) -> Value {
        let name = format!("wifi.ap-radio|{}", call.mac());
        self.store.document(call.scope(), &name).cloned().unwrap_or(json!({}))
    }
}

/// The checks of an SSID that no schema tells.
fn check_ssid(call: &Call) -> Result<(), Failure> {
    let body = &call.body;
    let needed = match body["security"].as_u64() {
        Some(2) => "entSetting",
        Some(3) => "pskSetting",
        Some(4 | 5) => "ppskSetting",
        _ => return Ok(()),
    };
    let key = body["pskSetting"]["securityKey"].as_str().map(str::len);
    let has_key =
        needed != "pskSetting" || call.route.is_web || key.is_some_and(|length| (8..=63).contains(&length));
    let has_one_vlan = body["vlanId"].is_null() || body["vlanSetting"].is_null();
    if body[needed].is_object() && has_key && has_one_vlan {
        Ok(())
    } else {
        Err(Failure::with(INVALID, format!("Invalid request parameters: {needed}.")))
    }
}

/// The blocks of an SSID that the create does not take.
pub(crate) fn blocks() -> Value {
    let unlimited =
        json!({"profileId": "", "customSetting": {"downLimitEnable": false, "upLimitEnable": false}});
    json!({
        "clientRateLimit": unlimited, "ssidRateLimit": unlimited,
        "wlanSchedule": {"wlanScheduleEnable": false}, "macFilter": {"macFilterEnable": false},
        "dhcpOption82": {"dhcpEnable": false}, "hotspotV2Setting": {"hotspotV2Enable": false},
        "rateControl": {"rate2gCtrlEnable": false, "rate5gCtrlEnable": false, "rate6gCtrlEnable": false},
        "multiCast": {
            "multiCastEnable": true, "channelUtil": 100, "arpCastEnable": true, "ipv6CastEnable": true,
            "filterEnable": false,
        },
    })
}

fn channel(freq: u64, radio: &str) -> String {
    match freq {
        0 if radio == "wp2g" => "6".to_owned(),
        0 => "36".to_owned(),
        2484 => "14".to_owned(),
        2412..=2472 => ((freq - 2407) / 5).to_string(),
        5000..=5900 => ((freq - 5000) / 5).to_string(),
        freq => (freq.saturating_sub(5950) / 5).to_string(),
    }
}
