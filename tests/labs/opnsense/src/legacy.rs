//! Tunnels of the old kind: switched and deleted, and never made. The second phase is named by its place.

use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::config::{Config, Values};
use crate::crud::having;
use crate::device::Firewall;
use crate::grid;
use crate::hooks::with;

/// First phases by their number.
pub(crate) const PHASE1: &str = "ipsec/phase1";
/// Second phases by an id that lists do not take.
pub(crate) const PHASE2: &str = "ipsec/phase2";

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    if call.controller != "ipsec/tunnel" {
        return None;
    }
    Some(match call.command {
        "searchphase1" => {
            let rows = firewall.stored.rows(PHASE1).map(|(id, values)| {
                json!({ "id": id.parse::<u32>().unwrap_or_default(), "enabled": values.get("enabled"),
                    "description": values.get("description"), "type": "IPv4 IKEv2",
                    "remote_gateway": "203.0.113.89" })
            });
            Ok(grid::live(call, rows.collect()))
        }
        "searchphase2" => Ok(grid::live(call, second_phases(&firewall.stored))),
        "togglephase1" => toggle(firewall, call, PHASE1, Some(call.param(0).to_owned())),
        "togglephase2" => toggle(firewall, call, PHASE2, by_place(firewall, call)),
        "delphase1" => delete(firewall, call, PHASE1, Some(call.param(0).to_owned())),
        "delphase2" => delete(firewall, call, PHASE2, by_place(firewall, call)),
        _ => return None,
    })
}

fn second_phases(config: &Config) -> Vec<Value> {
    let rows = config.rows(PHASE2).enumerate().map(|(at, (id, values))| {
        json!({ "id": at, "uniqid": id, "ikeid": values.get("ikeid"), "enabled": values.get("enabled"),
            "description": values.get("description") })
    });
    rows.collect()
}

/// The second phase at a place of the whole list, which each delete moves.
fn by_place(firewall: &Firewall, call: &Call) -> Option<String> {
    let at = call.param(0).parse::<usize>().ok()?;
    firewall.stored.rows(PHASE2).nth(at).map(|(id, _)| id.to_owned())
}

fn toggle(firewall: &mut Firewall, call: &Call, node: &str, id: Option<String>) -> Result<Answer, Answer> {
    let found = id.and_then(|id| Some((id.clone(), Values::clone(firewall.stored.find(node, &id)?))));
    let Some((id, values)) = found else { return Ok(Answer::status("failed")) };
    let is_on = values.get("enabled").is_some_and(|on| on == "1");
    let wanted = if call.param(1).is_empty() { !is_on } else { call.param(1) == "1" };
    let mut config = firewall.stored.clone();
    config.put(node, &id, with(&values, "enabled", if wanted { "1" } else { "0" }));
    firewall.save(call, config)?;
    firewall.live.legacy_ipsec_is_dirty = true;
    Ok(Answer::json(&json!({ "status": "ok", "disabled": !wanted })))
}

/// A first phase takes its second phases along.
fn delete(firewall: &mut Firewall, call: &Call, node: &str, id: Option<String>) -> Result<Answer, Answer> {
    let id = id.unwrap_or_default();
    let mut config = firewall.stored.clone();
    let mut count = [u32::from(config.remove(node, &id)), 0];
    if node == PHASE1 {
        let own: Vec<String> = having(&config, PHASE2, "ikeid", &id).map(|(id, _)| id.to_owned()).collect();
        for phase in &own {
            count[1] += u32::from(config.remove(PHASE2, phase));
        }
    }
    firewall.save(call, config)?;
    firewall.live.legacy_ipsec_is_dirty = true;
    Ok(Answer::json(&json!({ "status": "ok", "phase1count": count[0], "phase2count": count[1] })))
}
