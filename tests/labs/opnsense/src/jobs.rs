//! Tools that measure: within the request, or as jobs that are started, read, stopped and removed.

use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::config::Values;
use crate::device::Firewall;
use crate::live::Job;
use crate::{crud, grid, validate};

/// Validates the form of a tool. Its fields stand under the root key.
fn checked(firewall: &Firewall, call: &Call) -> Result<Values, Answer> {
    let posted = crud::posted(call, call.node(), firewall.release)?;
    let faults = validate::item(call.node(), "", &posted, &firewall.stored, firewall.release, |_| true);
    if faults.is_empty() { Ok(posted) } else { Err(Answer::invalid(call.root(), &faults)) }
}

/// Tools that run within the request.
pub(crate) fn tool(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let settings = checked(firewall, call)?;
    let host = settings.get("settings.hostname").cloned().unwrap_or_default();
    let response = match call.controller {
        "diagnostics/traceroute" => {
            json!([{ "ttl": "1", "Host": "198.51.100.1", "Address": "198.51.100.1", "Probes": "3",
                "AS": "*" }])
        }
        "diagnostics/portprobe" => {
            json!({ "message": format!("Connection to {host} succeeded"), "payload": "" })
        }
        _ => {
            json!({ "A": { "answers": [format!("{host}. 300 IN A 203.0.113.10")], "query_time": "4 msec",
                "server": "127.0.0.1" } })
        }
    };
    Ok(Answer::json(&json!({ "result": "ok", "response": response })))
}

/// Jobs live in memory: created by `set`, then started, read, stopped and removed.
pub(crate) fn job(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let kind = call.controller.rsplit('/').next().unwrap_or_default();
    if call.command == "set" {
        return Some(checked(firewall, call).map(|settings| {
            let id = firewall.new_uuid();
            let job =
                Job { kind: kind.to_owned(), settings: json!(settings), status: "stopped", started_secs: 0 };
            firewall.live.jobs.insert(id.clone(), job);
            Answer::json(&json!({ "result": "ok", "uuid": id }))
        }));
    }
    if call.command == "searchjobs" {
        return Some(Ok(grid::live(call, jobs(firewall, kind))));
    }
    let now = firewall.time.as_secs();
    let id = call.param(0).to_owned();
    let known = firewall.live.jobs.get_mut(&id).filter(|job| job.kind == kind);
    Some(Ok(match (call.command, known) {
        ("start", Some(job)) => {
            (job.status, job.started_secs) = ("running", now);
            Answer::json(&json!({ "status": "ok" }))
        }
        ("stop", Some(job)) => {
            job.status = "stopped";
            Answer::json(&json!({ "status": "ok" }))
        }
        ("remove", Some(_)) => {
            firewall.live.jobs.remove(&id);
            Answer::json(&json!({ "status": "ok" }))
        }
        ("view", Some(_)) => Answer::json(&json!({ "interfaces": {}, "status": "ok" })),
        ("download", Some(_)) => Answer::zip(),
        ("macinfo", _) => Answer::json(&json!({ "status": "ok", "mac": id, "address": [] })),
        ("get", _) => return None,
        _ => Answer::json(&json!({ "status": "failed" })),
    }))
}

fn jobs(firewall: &Firewall, kind: &str) -> Vec<Value> {
    let own = firewall.live.jobs.iter().filter(|(_, job)| job.kind == kind);
    let rows = own.map(|(id, job)| {
        let sent = if job.status == "running" {
            firewall.time.as_secs().saturating_sub(job.started_secs)
        } else {
            0
        };
        json!({ "id": id, "status": job.status, "hostname": job.settings.get("settings.hostname"),
            "send": sent, "received": sent,
            "loss": "0.0 %", "min": 1.0, "avg": 1.2, "max": 1.9, "std-dev": 0.1, "last_error": "" })
    });
    rows.collect()
}
