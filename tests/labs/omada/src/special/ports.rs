//! Ports of switches: one stored row a port, shown by many reads and changed by many small writes.

use serde_json::{Map, Value, json};

use crate::call::{Call, Release};
use crate::controller::Omada;
use crate::facts::Role;
use crate::outcome::{Failure, INVALID, Outcome};
use crate::page::page;
use crate::store::is;

pub(crate) const PORTS: &str = "switch.port";
const NO_PORT: i64 = -39701;

impl Omada {
    pub(crate) fn ports_of<'a>(
        &'a self,
        site: &str,
        mac: &'a str,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.store.rows(site, PORTS).iter().filter(move |row| is(row, "switchMac", mac))
    }

    pub(crate) fn port_call(&mut self, call: &Call) -> Option<Outcome> {
        if call.item.id != "switch.port" {
            return None;
        }
        let has_switch = !call.mac().is_empty();
        match call.route.role {
            Role::List if has_switch => {
                let rows: Vec<&Value> = self.ports_of(call.scope(), call.mac()).collect();
                Some(Ok(page(call, rows, view)))
            }
            Role::List => Some(Ok(page(call, self.store.rows(call.scope(), PORTS).iter().collect(), view))),
            Role::Read if call.last() == "counters" => {
                Some(Ok(page(call, self.store.rows(call.scope(), PORTS).iter().collect(), view)))
            }
            Role::Read if call.last() == "poe-info" => {
                let rows =
                    self.store.rows(call.scope(), PORTS).iter().filter(|row| row["supportPoe"] == true);
                Some(Ok(page(call, rows.collect(), view)))
            }
            Role::Read if call.last() == "port-lag-networks" => Some(Ok(page(
                call,
                self.store.rows(call.scope(), "switch.network").iter().collect(),
                Clone::clone,
            ))),
            Role::Get => {
                let port = self
                    .ports_of(call.scope(), call.mac())
                    .find(|row| is(row, "port", call.parameter("port")));
                Some(port.map(view).ok_or_else(|| Failure::new(NO_PORT)))
            }
            Role::Update | Role::Toggle | Role::Do if has_switch => Some(self.set_ports(call)),
            _ => None,
        }
    }

    /// Changes the port of the path, or every port that the body lists.
    fn set_ports(&mut self, call: &Call) -> Outcome {
        // The web surface lost this write with 6.0: it refuses every body.
        if call.route.is_web && self.seed.release != Release::V515 {
            return Err(Failure::new(INVALID));
        }
        let listed = call.body["portList"].as_array().cloned().unwrap_or_default();
        let own = call.parameter("port").to_owned();
        let wanted: Vec<String> =
            if own.is_empty() { listed.iter().map(Value::to_string).collect() } else { vec![own] };
        let mac = call.mac().to_owned();
        let mut fields = call.fields().clone();
        fields.remove("portList");
        if let Some(profile) = fields.get("profileId").and_then(Value::as_str) {
            let Some(profile) = self.store.find(call.scope(), "switch.port-profile", "id", profile) else {
                return Err(Failure::new(-33558));
            };
            // A trunk without a native network can be made, but no port takes it.
            if profile["type"] == 2 && profile["nativeNetworkId"].is_null() {
                return Err(Failure::new(INVALID));
            }
            let name = profile["name"].clone();
            fields.insert("profileName".to_owned(), name);
        }
        let rows = self.store.rows_mut(call.scope(), PORTS);
        let known =
            |port: &String| rows.iter().any(|row| is(row, "switchMac", &mac) && is(row, "port", port));
        if !wanted.iter().all(known) {
            return Err(Failure::new(NO_PORT));
        }
        let chosen =
            |row: &&mut Value| is(row, "switchMac", &mac) && wanted.iter().any(|port| is(row, "port", port));
        for row in rows.iter_mut().filter(chosen) {
            change(row, &fields);
        }
        Ok(Value::Null)
    }
}

/// The port without what only the simulation knows.
fn view(row: &Value) -> Value {
    let mut view = row.clone();
    if let Some(fields) = view.as_object_mut() {
        fields.retain(|name, _| name != "hasPeer" && name != "draws");
    }
    view
}

/// Writes fields into a port and keeps its twin fields equal: each read has its own name for the same
/// setting.
pub(crate) fn change(row: &mut Value, fields: &Map<String, Value>) {
    for (name, value) in fields {
        row[name.as_str()] = value.clone();
        match name.as_str() {
            "name" => row["portName"] = value.clone(),
            "status" => row["disable"] = json!(*value == 0),
            "disable" => row["status"] = json!(i32::from(*value != true)),
            "poeMode" => row["poe"] = value.clone(),
            "poe" => row["poeMode"] = value.clone(),
            _ => {}
        }
    }
    let is_off = row["disable"] == true;
    let is_linked = row["hasPeer"] == true && !is_off;
    let draws = is_linked && row["poe"] == 1 && row["draws"].is_number();
    row["portStatus"]["linkStatus"] = json!(i32::from(is_linked));
    row["connectedStatus"] = json!(i32::from(is_linked));
    row["portStatus"]["poe"] = json!(draws);
    row["portStatus"]["poePower"] = if draws { row["draws"].clone() } else { json!(0.0) };
    row["power"] = row["portStatus"]["poePower"].clone();
}
