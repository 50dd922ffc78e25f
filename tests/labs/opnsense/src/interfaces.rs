//! Interfaces: what the overview shows of the running devices, and assignments, which only their apply makes real.

use serde_json::{Map, Value, json};

use crate::call::{Answer, Call};
use crate::choices::{ASSIGNMENTS, description, effective};
use crate::config::Config;
use crate::crud::having;
use crate::device::Firewall;
use crate::hardware::{self, ADDRESSES, Device, assigned, mac};
use crate::hooks::{VIPS, free_assignment};
use crate::{crud, grid, hooks, present, validate};

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    match call.controller {
        "interfaces/overview" => Some(Ok(overview(firewall, call))),
        "interfaces/assignment" => assignment(firewall, call),
        "interfaces/vip_settings" if call.command == "getunusedvhid" => {
            let used =
                |vhid: &u32| having(&firewall.stored, VIPS, "vhid", &vhid.to_string()).next().is_some();
            let free = (1..=255).find(|vhid| !used(vhid)).unwrap_or(255);
            Some(Ok(Answer::json(&json!({ "vhid": free, "status": "ok" }))))
        }
        "interfaces/gif_settings" | "interfaces/gre_settings" if call.command == "getifoptions" => {
            let options = firewall
                .stored
                .rows(ASSIGNMENTS)
                .map(|(key, values)| (key.to_owned(), json!(description(key, values))));
            Some(Ok(Answer::json(&json!({ "single": { "label": "Single host or Network" },
                "interfaces": { "label": "Interfaces", "items": options.collect::<Map<_, _>>() } }))))
        }
        _ => None,
    }
}

fn overview(firewall: &mut Firewall, call: &Call) -> Answer {
    let details = call.param(0) == "1";
    match call.command {
        "interfacesinfo" => grid::live(call, rows(firewall, details)),
        "getinterface" => match rows(firewall, true).into_iter().find(|row| row["device"] == call.param(0)) {
            Some(Value::Object(row)) => {
                let wrapped = row
                    .into_iter()
                    .map(|(key, value)| (key.clone(), json!({ "value": value, "translation": key })));
                Answer::json(&json!({ "message": wrapped.collect::<Map<_, _>>() }))
            }
            _ => Answer::failed(),
        },
        "export" => Answer::json(&json!(rows(firewall, true))),
        _ => {
            firewall.live.acted(call);
            Answer::json(&json!({ "message": "OK" }))
        }
    }
}

/// One row per running device, also those that nothing is assigned to.
pub(crate) fn rows(firewall: &Firewall, details: bool) -> Vec<Value> {
    let config = &firewall.running;
    let mut devices = hardware::devices(config);
    let known: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
    devices.extend(firewall.live.orphans.iter().filter(|orphan| !known.contains(&orphan.name)).cloned());
    devices.iter().map(|device| row(firewall, config, device, details)).collect()
}

fn row(firewall: &Firewall, config: &Config, device: &Device, details: bool) -> Value {
    let key = assigned(config, &device.name);
    let physical = device.kind == "physical";
    // A port without a cable is the last one; everything else has a link.
    let is_up = device.name != "igb3";
    let mut row = json!({
        "device": device.name, "identifier": key.unwrap_or_default(),
        "status": if is_up { "up" } else { "no carrier" },
        "is_physical": physical, "mtu": "1500",
        "media": if physical { "1000baseT <full-duplex>" } else { "" },
        "flags": ["up", "broadcast", "running"], "link_type": "none", "config": {}
    });
    if device.kind != "wireguard" && device.kind != "loopback" {
        let carrier = if device.parent.is_empty() { &device.name } else { &device.parent };
        row["macaddr"] = json!(mac(carrier));
    }
    if !device.tag.is_empty() {
        row["vlan_tag"] = json!(device.tag);
        row["vlan"] = json!({ "tag": device.tag, "proto": "802.1q", "pcp": "0", "parent": device.parent });
    }
    let Some(key) = key else {
        row["description"] = json!("");
        return row;
    };
    let name = config.find(ASSIGNMENTS, key).map_or_else(String::new, |values| description(key, values));
    let address = |field: &str| config.value(ADDRESSES, key, field).to_owned();
    row["description"] = json!(name);
    row["enabled"] = json!(address("enable") == "1");
    row["addr4"] = json!(format!("{}/{}", address("ipaddr"), address("subnet")));
    if address("enable") == "1" && !address("ipaddr").is_empty() {
        let own = json!({ "ipaddr": format!("{}/{}", address("ipaddr"), address("subnet")) });
        let vips = having(config, VIPS, "interface", key).map(|(_, vip)| {
            json!({ "ipaddr": format!("{}/{}", effective(VIPS, "subnet", vip), effective(VIPS,
                "subnet_bits", vip)), "vip": true })
        });
        row["ipv4"] = json!([own].into_iter().chain(vips).collect::<Vec<_>>());
    }
    if !address("gateway").is_empty() {
        row["gateways"] = json!([address("gateway")]);
    }
    if details {
        row["statistics"] = statistics(firewall, &device.name);
    }
    row
}

/// Counters that grow with time.
pub(crate) fn statistics(firewall: &Firewall, device: &str) -> Value {
    let seed = device.bytes().fold(11u64, |sum, byte| sum * 7 % 4099 + u64::from(byte));
    let packets = seed * 100 + firewall.uptime().as_secs() * seed;
    json!({
        "device": device, "packets received": packets.to_string(),
        "packets transmitted": (packets / 2).to_string(),
        "bytes received": (packets * 700).to_string(), "bytes transmitted": (packets * 300).to_string(),
        "input errors": "0", "output errors": "0", "collisions": "0", "input queue drops": "0",
        "send queue drops": "0", "link state": "2",
        "line rate": "1000000000 bit/s"
    })
}

fn assignment(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match call.command {
        "searchitem" => {
            let table = present::Table::new(ASSIGNMENTS, &firewall.stored, firewall.release);
            let rows = firewall.stored.rows(ASSIGNMENTS).map(|(key, values)| {
                let mut row = table.row(key, values);
                row.insert("identifier".to_owned(), json!(key));
                row.insert("descr".to_owned(), json!(description(key, values)));
                Value::Object(row)
            });
            Ok(grid::live(call, rows.collect()))
        }
        "additem" => assign(firewall, call, None),
        "setitem" => assign(firewall, call, Some(call.param(0).to_owned())),
        "delitem" => unassign(firewall, call),
        "reconfigure" => {
            drop_rules_of_removed(firewall);
            firewall.apply("interfaces/assignment/reconfigure");
            Ok(Answer::status("ok"))
        }
        _ => return None,
    })
}

/// Device, name and lock of an interface. An unknown key makes the next free one.
fn assign(firewall: &mut Firewall, call: &Call, key: Option<String>) -> Result<Answer, Answer> {
    let posted = call.body.get(call.root()).filter(|fields| fields.is_object()).ok_or_else(Answer::failed)?;
    crate::call::flatten(ASSIGNMENTS, firewall.release, posted)?;
    let mut config = firewall.stored.clone();
    let known = key.filter(|key| config.find(ASSIGNMENTS, key).is_some());
    let is_new = known.is_none();
    let key = known.unwrap_or_else(|| free_assignment(&config));
    let mut values =
        config.find(ASSIGNMENTS, &key).map(|values| crate::config::Values::clone(values)).unwrap_or_default();
    values.extend(hooks::assignment(posted));
    let faults = validate::item(ASSIGNMENTS, &key, &values, &config, firewall.release, |_| true);
    if !faults.is_empty() {
        return Err(Answer::invalid(call.root(), &faults));
    }
    config.put(ASSIGNMENTS, &key, values);
    firewall.save(call, config)?;
    Ok(if is_new { Answer::saved(&key) } else { Answer::result("saved") })
}

fn unassign(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let mut config = firewall.stored.clone();
    let mut outcome = "not found";
    for key in call.param(0).split(',') {
        let Some(values) = config.find(ASSIGNMENTS, key) else { continue };
        if effective(ASSIGNMENTS, "lock", values) == "1" {
            let text = format!("interface {key} is locked");
            return Err(Answer::refused(firewall.release, "Interface", &text));
        }
        config.remove(ASSIGNMENTS, key);
        outcome = "deleted";
    }
    if config != firewall.stored {
        firewall.save(call, config)?;
    }
    Ok(Answer::result(outcome))
}

/// The apply saves that rules and addresses of removed interfaces go with them.
fn drop_rules_of_removed(firewall: &mut Firewall) {
    let gone: Vec<String> = firewall
        .running
        .rows(ASSIGNMENTS)
        .map(|(key, _)| key.to_owned())
        .filter(|key| firewall.stored.find(ASSIGNMENTS, key).is_none())
        .collect();
    if gone.is_empty() || firewall.met.failing_reload {
        return;
    }
    let mut config = firewall.stored.clone();
    for key in &gone {
        config.remove(ADDRESSES, key);
        for list in ["Firewall/Filter:rules.rule", "Firewall/DNat:rule", "Firewall/Filter:snatrules.rule"] {
            let rules: Vec<String> =
                crud::having(&config, list, "interface", key).map(|(id, _)| id.to_owned()).collect();
            for id in &rules {
                config.remove(list, id);
            }
        }
    }
    firewall.store("root", "removed interfaces", config);
}
