//! The box itself: restart, history of the configuration, boot environments, defaults.

use serde_json::{Map, Value, json};

use crate::call::{Answer, Call, scalar};
use crate::config::{Config, escape};
use crate::device::{Down, Firewall, Revision};
use crate::{grid, hardware};

/// A boot environment.
#[derive(Clone, serde::Serialize)]
pub(crate) struct Snapshot {
    uuid: String,
    name: String,
    note: String,
    active: bool,
    created_secs: u64,
}

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    match call.controller {
        "core/backup" => backup(firewall, call),
        "core/snapshots" => Some(snapshots(firewall, call)),
        "core/system" => power(firewall, call).map(Ok),
        "core/defaults" => defaults(firewall, call),
        "core/tunables" if call.command == "reset" => {
            let mut config = firewall.stored.clone();
            config.take_over("Core/Tunables:item", &Config::default());
            Some(firewall.save(call, config).map(|()| Answer::status("ok")))
        }
        "core/hasync_status" => Some(Ok(peer(firewall, call))),
        _ => None,
    }
}

/// The second firewall. Each verb gives it this configuration first.
fn peer(firewall: &mut Firewall, call: &Call) -> Answer {
    let name = call.param(0).to_owned();
    let live = &mut firewall.live;
    if call.command == "services" {
        let rows = live
            .peer
            .iter()
            .map(|(name, is_on)| json!({ "name": name, "uid": name, "description": name, "status": is_on }));
        return grid::live(call, rows.collect());
    }
    if live.peer.is_empty() || call.command == "version" {
        let status = if live.peer.is_empty() { "error" } else { "ok" };
        return Answer::json(&json!({ "status": status, "name": name, "id": call.param(1) }));
    }
    live.peer_syncs += 1;
    let is_restart = call.command.starts_with("restart");
    let names: Vec<String> =
        if call.command == "restartall" { live.peer.keys().cloned().collect() } else { vec![name.clone()] };
    for name in &names {
        live.peer.insert(name.clone(), call.command != "stop");
        if is_restart {
            *live.restarts.entry(format!("peer {name}")).or_default() += 1;
        }
    }
    if call.command == "restartall" {
        return Answer::json(&json!({ "status": "ok", "count": names.len() }));
    }
    Answer::json(&json!({ "status": "ok", "name": name, "id": call.param(1) }))
}

fn power(firewall: &mut Firewall, call: &Call) -> Option<Answer> {
    match call.command {
        "reboot" => firewall.go_down(Down::Reboot),
        "halt" => firewall.go_down(Down::Halt),
        "status" => {
            let mut messages = json!({ "firewall": { "status": "ok" }, "crashreporter": { "status": "ok" } });
            let is_shown = |name: &String| !firewall.live.cleared.contains(&format!("message {name}"));
            messages.as_object_mut()?.retain(|name, _| is_shown(name));
            return Some(Answer::json(&json!({
                "metadata": { "system": { "status": "ok", "message": "" }, "translations": {} },
                "subsystems": messages
            })));
        }
        _ => return None,
    }
    Some(Answer::status("ok"))
}

fn name_of(revision: &Revision) -> String {
    format!("config-{}.xml", revision.id)
}

fn find<'f>(firewall: &'f Firewall, name: &str) -> Option<&'f Revision> {
    firewall.revision(name.strip_prefix("config-")?.strip_suffix(".xml")?)
}

fn backup(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match call.command {
        "providers" => Ok(Answer::json(
            &json!({ "items": { "this": { "description": "This Firewall", "dirname": "/conf/backup" } } }),
        )),
        "backups" => Ok(revisions(firewall)),
        "download" => Ok(download(firewall, call)),
        "diff" => Ok(diff(firewall, call)),
        "deletebackup" => {
            let found = find(firewall, call.param(0)).map(|revision| revision.id.clone());
            if let Some(id) = &found {
                firewall.history.retain(|revision| revision.id != *id);
            }
            Ok(Answer::status(if found.is_some() { "deleted" } else { "failed" }))
        }
        "revertbackup" => revert(firewall, call),
        _ => return None,
    })
}

fn revisions(firewall: &Firewall) -> Answer {
    let items = firewall.history.iter().map(|revision| {
        let secs = revision.id.parse::<f64>().unwrap_or_default();
        json!({
            "time": revision.id, "time_iso": iso(secs), "description": revision.description,
            "username": revision.user, "filesize": revision.size, "id": name_of(revision)
        })
    });
    Answer::json(&json!({ "items": items.collect::<Vec<_>>() }))
}

#[expect(clippy::cast_possible_truncation, reason = "the seconds of this century fit")]
fn iso(secs: f64) -> String {
    chrono::DateTime::from_timestamp(secs as i64, 0).unwrap_or_default().to_rfc3339()
}

/// The present configuration, or a revision. No bytes for one that does not exist.
fn download(firewall: &Firewall, call: &Call) -> Answer {
    let mut xml = match call.param(1) {
        "" => firewall.stored.to_xml(),
        name => find(firewall, name).map_or_else(String::new, |revision| revision.config.to_xml()),
    };
    let lacking = firewall.settings.backup_bytes_min.saturating_sub(xml.len());
    if lacking > 0 && !xml.is_empty() {
        let line = "the same line again and again, as in a long comment\n";
        xml += &format!("<!-- {} -->\n", line.repeat(lacking.div_ceil(line.len())));
    }
    Answer::of(200, "application/octet-stream", xml.into_bytes())
}

/// Lines that only one of two revisions has, escaped for a page.
fn diff(firewall: &Firewall, call: &Call) -> Answer {
    let text = |at: usize| {
        find(firewall, call.param(at)).map_or_else(String::new, |revision| revision.config.to_xml())
    };
    let (old, new) = (text(1), text(2));
    let only = |a: &str, b: &str, sign: char| -> Vec<String> {
        let others: std::collections::HashSet<&str> = b.lines().collect();
        a.lines().filter(|line| !others.contains(line)).map(|line| escape(&format!("{sign}{line}"))).collect()
    };
    let items: Vec<String> = only(&old, &new, '-').into_iter().chain(only(&new, &old, '+')).collect();
    Answer::json(&json!({ "items": items }))
}

/// Replaces everything that is stored. Nothing is applied, and devices that go stay until a restart.
fn revert(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let Some(config) = find(firewall, call.param(0)).map(|revision| revision.config.clone()) else {
        return Ok(Answer::status("failed"));
    };
    firewall.save(call, config)?;
    let kept: Vec<String> =
        hardware::devices(&firewall.stored).into_iter().map(|device| device.name).collect();
    let gone = hardware::devices(&firewall.running).into_iter().filter(|device| !kept.contains(&device.name));
    firewall.live.orphans.extend(gone);
    Ok(Answer::status("reverted"))
}

fn snapshots(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let uuid = call.param(0).to_owned();
    let known = firewall.snapshots.iter().position(|snapshot| snapshot.uuid == uuid);
    let is_write = call.facts.post;
    if is_write && call.is_read_only {
        return Err(Answer::refused(firewall.release, "Permission denied", "no write access"));
    }
    Ok(match (call.command, known) {
        ("issupported", _) => Answer::json(&json!({ "supported": true })),
        ("search", _) => {
            let rows = firewall.snapshots.iter().map(|snapshot| {
                let mut row = json!(snapshot);
                // Notes are kept apart, and lists do not have them.
                row.as_object_mut().map(|row| row.shift_remove("note"));
                row["created"] = json!(snapshot.created_secs);
                row["size"] = json!("1.5G");
                row
            });
            grid::live(call, rows.collect())
        }
        ("get", Some(at)) => Answer::json(&json!(firewall.snapshots[at])),
        ("get", None) => {
            let name = firewall.date_time().format("%Y%m%d%H%M%S").to_string();
            Answer::json(&json!({ "uuid": "", "name": name }))
        }
        ("add", _) if call.text("name").is_empty() => {
            Answer::json(&json!({ "result": "failed", "validations": { "name": "A value is required." } }))
        }
        ("add", _) => {
            let snapshot = Snapshot {
                uuid: firewall.new_uuid(),
                name: call.text("name"),
                note: call.text("note"),
                active: false,
                created_secs: firewall.time.as_secs(),
            };
            firewall.snapshots.push(snapshot);
            // It does not say which id the new one has.
            Answer::status("ok")
        }
        ("set", Some(at)) => {
            firewall.snapshots[at].name = call.text("name");
            firewall.snapshots[at].note = call.text("note");
            Answer::status("ok")
        }
        ("del", Some(at)) if firewall.snapshots[at].active => Answer::failed(),
        ("del", Some(at)) => {
            firewall.snapshots.remove(at);
            Answer::result("deleted")
        }
        ("activate", Some(at)) => {
            firewall.snapshots.iter_mut().for_each(|snapshot| snapshot.active = false);
            firewall.snapshots[at].active = true;
            Answer::json(&json!({ "status": "ok", "result": "activated" }))
        }
        _ => Answer::failed(),
    })
}

fn defaults(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match call.command {
        "get" => Ok(Answer::json(&json!({ "ip": "192.168.1.1" }))),
        "getinstalledsections" => {
            let models: Map<String, Value> = sections(&firewall.stored)
                .into_iter()
                .map(|model| (model.clone(), json!({ "id": model, "description": model })))
                .collect();
            Ok(Answer::json(&json!({ "items": models.into_values().collect::<Vec<_>>() })))
        }
        "factorydefaults" => {
            let config = crate::seed::defaults();
            let saved = firewall.save(call, config);
            firewall.go_down(Down::Halt);
            saved.map(|()| Answer::status("ok"))
        }
        "reset" => {
            let asked = call.body.get("items").and_then(Value::as_array).into_iter().flatten();
            let asked: Vec<String> = asked.filter_map(scalar).collect();
            let mut config = firewall.stored.clone();
            for node in firewall
                .stored
                .nodes()
                .filter(|node| asked.iter().any(|model| node.starts_with(&format!("{model}:"))))
            {
                config.take_over(node, &Config::default());
            }
            firewall.save(call, config).map(|()| Answer::status("ok"))
        }
        _ => return None,
    })
}

/// The models that have anything stored.
fn sections(config: &Config) -> Vec<String> {
    let mut models: Vec<String> =
        config.nodes().filter_map(|node| Some(node.split_once(':')?.0.to_owned())).collect();
    models.dedup();
    models
}
