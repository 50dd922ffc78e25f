//! The router's part of the control port: the orders of [`crate::Router`] that the skeleton does not have.

use std::collections::BTreeSet;

use heddle_lab::{Answer, Context, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::controller;
use crate::device::{Device, Restart};
use crate::uci::Change;

/// An edit behind the manager's back: changes as `uci.changes` prints them.
#[derive(Deserialize)]
struct Edit {
    config: String,
    changes: Vec<Value>,
}

/// `None` when the order is the skeleton's.
pub(crate) fn answer(device: &mut Device, request: &Request, context: &mut Context) -> Option<Answer> {
    let done = Answer::status(204);
    Some(match (request.method.as_str(), request.segments().as_slice()) {
        ("GET", ["calls"]) => Answer::json(200, &json!(device.recorder.calls)),
        ("DELETE", ["calls"]) => {
            device.recorder.calls.clear();
            done
        }
        ("GET", ["counters"]) => Answer::json(200, &json!(device.recorder.counters)),
        ("GET", ["fingerprint"]) => Answer::text(200, &device.fingerprint()),
        // The committed file, as text.
        ("GET", ["configs", name]) => match device.configs.get(*name) {
            Some(config) => Answer::text(200, &config.to_text()),
            None => Answer::status(404),
        },
        ("GET", ["firewall", "skipped"]) => {
            Answer::json(200, &json!(crate::fw4::skipped(device.config("firewall"))))
        }
        ("POST", ["faults"]) => read(request, |fault| {
            controller::order(device, fault, context);
            done
        }),
        ("DELETE", ["faults"]) => {
            controller::clear_faults(device, context);
            done
        }
        ("POST", ["reboot"]) => {
            device.restart(Restart::Reboot);
            done
        }
        ("POST", ["rpcd", "restart"]) => {
            device.restart_rpcd();
            done
        }
        // 404 when no apply waits for its confirmation.
        ("POST", ["rollback", "run-out"]) => {
            Answer::status(if device.run_out_rollback_timer() { 204 } else { 404 })
        }
        ("POST", ["edit"]) => read(request, |order| edit(device, &order)),
        // Names of ubus objects of packages that are not installed.
        ("POST", ["objects", "missing"]) => read(request, |names: BTreeSet<String>| {
            device.missing = names;
            done
        }),
        ("POST", ["clients", mac, "leave"]) => {
            device.leaves(mac);
            done
        }
        ("POST", ["clients", mac, "return"]) => {
            device.returns(mac);
            done
        }
        _ => return None,
    })
}

fn read<T: for<'de> Deserialize<'de>>(request: &Request, act: impl FnOnce(T) -> Answer) -> Answer {
    match serde_json::from_slice(&request.body) {
        Ok(order) => act(order),
        Err(error) => Answer::text(422, &error.to_string()),
    }
}

fn edit(device: &mut Device, edit: &Edit) -> Answer {
    let changes: Option<Vec<Change>> = edit.changes.iter().map(Change::from_json).collect();
    let Some(changes) = changes else {
        return Answer::text(422, "a change is an array such as [\"set\", \"lan\", \"mtu\", \"1400\"]");
    };
    if device.edit(&edit.config, &changes) {
        Answer::status(204)
    } else {
        Answer::text(404, &format!("configuration '{}' does not exist", edit.config))
    }
}
