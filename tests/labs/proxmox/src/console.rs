//! What a person at the console sees and does: the whole state, and edits that no API call made.

use serde_json::{Value, json};

use crate::answer::{Object, object};
use crate::cluster::Cluster;
use crate::guests::{Edit, Guest};

/// All of the state, for assertions.
pub(crate) fn state(cluster: &Cluster) -> Value {
    let guests: Object = cluster.guests.values().map(|one| (one.vmid.to_string(), guest(one))).collect();
    let firewalls: Object = cluster
        .firewalls
        .iter()
        // A file that holds nothing is as good as none. A group exists by its name alone.
        .filter(|(scope, file)| scope.starts_with("groups/") || !file.is_empty())
        .map(|(scope, file)| {
            let sets: Vec<&String> = file.sets.keys().collect();
            let rules = json!({
                "rules": file.rules, "options": file.options, "aliases": file.aliases, "ipsets": sets,
            });
            (scope.clone(), rules)
        })
        .collect();
    let nodes: Object = cluster
        .nodes
        .iter()
        .map(|node| {
            let network = json!({ "live": node.network.live, "pending": node.network.pending });
            (
                node.name.clone(),
                json!({ "is_online": node.is_online, "network": network, "services": node.services }),
            )
        })
        .collect();
    let acl: Vec<Value> = cluster
        .access
        .acl
        .iter()
        .map(|grant| json!({ "path": grant.path, "type": grant.kind, "ugid": grant.holder, "roleid": grant.role }))
        .collect();
    let tokens: Vec<String> =
        cluster.access.tokens.keys().map(|(user, token)| format!("{user}!{token}")).collect();
    let uploads: Object = cluster
        .volumes
        .iter()
        .filter_map(|volume| Some((volume.volid.clone(), Value::from(volume.sha256.clone()?))))
        .collect();
    json!({
        "uploads": uploads, "guests": guests, "nodes": nodes, "firewalls": firewalls, "is_firewall_on": cluster.is_firewall_on(),
        "sdn": { "edited": cluster.sdn.edited, "running": cluster.sdn.running, "lock": cluster.sdn.lock },
        "users": cluster.access.users, "tokens": tokens, "acl": acl, "objects": cluster.store.to_json(),
        "volumes": cluster.volumes.iter().map(|volume| &volume.volid).collect::<Vec<_>>(),
        "tasks": tasks(cluster), "quorate": cluster.is_quorate(),
    })
}

/// One guest.
pub(crate) fn guest(guest: &Guest) -> Value {
    let snapshots: Vec<&String> = guest.snapshots.iter().map(|snapshot| &snapshot.name).collect();
    json!({
        "node": guest.node, "type": guest.kind.name(), "is_running": guest.run.is_some(),
        "config": guest.config, "pending": guest.pending, "snapshots": snapshots,
    })
}

/// Every task with its end.
pub(crate) fn tasks(cluster: &Cluster) -> Vec<Value> {
    let row = |task: &crate::tasks::Task| {
        json!({
            "upid": task.upid, "type": task.kind, "id": task.id,
            "exitstatus": task.end.as_ref().map(|(_, status)| status),
        })
    };
    cluster.tasks.iter().map(row).collect()
}

/// Carries out an edit; `edit` names it.
pub(crate) fn edit(cluster: &mut Cluster, order: &Value) -> Result<Value, String> {
    let text = |name: &str| order[name].as_str().unwrap_or_default().to_owned();
    let vmid = order["vmid"].as_u64().unwrap_or_default();
    let values = object(order["values"].clone());
    let named = |name: &str| -> Vec<String> {
        let list = order[name].as_array().cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let known = |cluster: &Cluster| {
        cluster.guests.contains_key(&vmid).then_some(()).ok_or(format!("no guest {vmid}"))
    };
    match text("edit").as_str() {
        "guest_config" => {
            known(cluster)?;
            let edit = Edit { changes: values, removed: named("delete"), ..Edit::default() };
            cluster.configure(vmid, edit).map_err(|failure| failure.reason)?;
        }
        "guest_power" | "guest_lock" | "guest_unresponsive" => {
            known(cluster)?;
            return edit_guest(cluster, vmid, order);
        }
        "guest_delete" => cluster.forget_guest(vmid, true),
        "rule_add" => {
            let rules = &mut cluster.firewalls.entry(text("scope")).or_default().rules;
            let pos = order["pos"].as_u64().and_then(|pos| usize::try_from(pos).ok()).unwrap_or(rules.len());
            rules.insert(pos.min(rules.len()), values);
        }
        "rule_delete" => {
            let rules = &mut cluster.firewalls.entry(text("scope")).or_default().rules;
            let pos = order["pos"].as_u64().and_then(|pos| usize::try_from(pos).ok()).unwrap_or(usize::MAX);
            if pos >= rules.len() {
                return Err(format!("no rule at position {pos}"));
            }
            rules.remove(pos);
        }
        "object_set" => {
            let (path, id) = (text("path"), text("id"));
            match cluster.store.find_mut(&path, &id) {
                Some(body) => body.extend(values),
                None => cluster.store.insert(&path, &id, values),
            }
        }
        "object_delete" => {
            let (path, id) = (text("path"), text("id"));
            if !cluster.store.remove(&path, &id) {
                return Err(format!("no object '{id}' in {path}"));
            }
        }
        "node_power" => {
            let node = text("node");
            if order["on"] == true { cluster.bring_up(&node) } else { cluster.take_down(&node) }
        }
        other => {
            return Err(format!(
                "unknown edit '{other}': guest_config, guest_power, guest_lock, guest_unresponsive, guest_delete, rule_add, \
                 rule_delete, object_set, object_delete, node_power"
            ));
        }
    }
    Ok(json!({}))
}

/// Carries out an edit of how a guest runs.
fn edit_guest(cluster: &mut Cluster, vmid: u64, order: &Value) -> Result<Value, String> {
    let is_on = order["on"] == true;
    match (order["edit"].as_str(), order["lock"].as_str()) {
        (Some("guest_power"), _) if order["task"] == true => {
            let upid = cluster.power_by_task(vmid, is_on).ok_or(format!("no guest {vmid}"))?;
            return Ok(json!({ "upid": upid }));
        }
        (Some("guest_power"), _) if is_on => cluster.power_on(vmid),
        (Some("guest_power"), _) => cluster.power_off(vmid),
        (Some("guest_lock"), Some(lock)) => cluster.lock(vmid, lock),
        (Some("guest_lock"), None) => cluster.unlock(vmid),
        _ => {
            let guest = cluster.guests.get_mut(&vmid).ok_or(format!("no guest {vmid}"))?;
            guest.is_unresponsive = order["unresponsive"] == true;
        }
    }
    Ok(json!({}))
}
