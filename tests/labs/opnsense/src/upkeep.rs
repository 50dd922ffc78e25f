//! What only single actions change: records that are deleted, states of issued certificates, the running proxy.

use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::choices::effective;
use crate::config::{Config, Values};
use crate::device::Firewall;
use crate::grid;
use crate::hooks::with;

const ACCOUNTS: &str = "AcmeClient/AcmeClient:accounts.account";
const CERTIFICATES: &str = "AcmeClient/AcmeClient:certificates.certificate";
const BACKENDS: &str = "HAProxy/HAProxy:backends.backend";
const SERVERS: &str = "HAProxy/HAProxy:servers.server";
const BLOCKLISTS: &str = "Unbound/Unbound:dnsbl.blocklist";
/// Rules of the old kind, which wait for their migration.
pub(crate) const OLD_RULES: &str = "old/rules";
pub(crate) const OLD_OUTBOUND: &str = "old/outbound";
const RECORDINGS: [&str; 3] = ["system-processor", "system-memory", "wan-traffic"];
const ALERT_LOGS: [&str; 2] = ["eve.json", "eve.json.0"];
/// Words of the ACME client for what became of an account or certificate.
const ISSUED: &str = "200";
const REVOKED: &str = "250";

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    match call.controller {
        "acmeclient/certificates" | "acmeclient/accounts" | "acmeclient/service" => acme(firewall, call),
        "haproxy/maintenance" => Some(Ok(proxy(firewall, call)?)),
        "firewall/migration" => old_rules(firewall, call),
        "unbound/settings" if call.command == "updateblocklist" => Some(block(firewall, call)),
        _ => Some(Ok(records(firewall, call)?)),
    }
}

/// Records that a person deletes as a whole. They fill again with time, which this simulation leaves out.
fn records(firewall: &mut Firewall, call: &Call) -> Option<Answer> {
    let cleared = &mut firewall.live.cleared;
    let kept = |prefix: &str, names: &[&str]| -> Vec<String> {
        let known = names.iter().filter(|name| !cleared.contains(&format!("{prefix} {name}")));
        known.map(|name| (*name).to_owned()).collect()
    };
    Some(match (call.controller, call.command) {
        ("ids/service", "getalertlogs") => {
            let logs = kept("alerts", &ALERT_LOGS).into_iter().enumerate();
            let rows = logs.map(|(at, name)| json!({ "filename": name, "sequence": at, "size": 4096 }));
            Answer::json(&json!(rows.collect::<Vec<_>>()))
        }
        ("ids/service", "dropalertlog") => {
            let name = call.text("filename");
            cleared.insert(format!("alerts {name}"));
            Answer::status(if name.is_empty() { "failed" } else { "ok" })
        }
        ("diagnostics/systemhealth", "getrrdlist") => {
            Answer::json(&json!({ "result": "ok", "data": kept("recording", &RECORDINGS) }))
        }
        ("diagnostics/systemhealth", "exportascsv") => {
            let known = kept("recording", &RECORDINGS).iter().any(|name| name == call.param(0));
            let rows = if known { "1700000000,0.7\n1700000060,0.9\n" } else { "" };
            Answer::csv(format!("timestamp,value\n{rows}"))
        }
        ("diagnostics/networkinsight", "export") => {
            let rows = if cleared.contains("flows") { "" } else { "1700000000,igb0,192.168.1.100,1200\n" };
            Answer::csv(format!("mtime,if,src_addr,octets\n{rows}"))
        }
        ("diagnostics/systemhealth", "delrrd") => {
            let asked = call.param(0);
            let meant = RECORDINGS.iter().filter(|name| asked.is_empty() || **name == asked);
            let names: Vec<String> = meant.map(|name| format!("recording {name}")).collect();
            if names.is_empty() {
                return Some(Answer::refused(firewall.release, "Health", "failed to flush RRD data"));
            }
            cleared.extend(names);
            Answer::status("OK")
        }
        ("diagnostics/netflow", "cachestats") => {
            let count = if cleared.contains("flows") { 0 } else { 1200 };
            Answer::json(&json!({ "netflow_igb0": { "SrcIPaddresses": 12, "Pkts": count, "if": "igb0" } }))
        }
        ("diagnostics/netflow", "reset") => {
            cleared.insert("flows".to_owned());
            Answer::status("OK")
        }
        ("syslog/service", "reset") => {
            cleared.insert("logs".to_owned());
            Answer::status("ok")
        }
        ("unbound/overview", "searchqueries") => {
            let rows = if cleared.contains("queries") { Vec::new() } else { vec![query()] };
            grid::live(call, rows)
        }
        ("unbound/overview", "reset") => {
            cleared.insert("queries".to_owned());
            *firewall.live.restarts.entry("unbound".to_owned()).or_default() += 1;
            Answer::status("OK")
        }
        ("core/system", "dismissstatus") => {
            cleared.insert(format!("message {}", call.text("subject")));
            Answer::status("ok")
        }
        _ => return None,
    })
}

fn query() -> Value {
    json!({ "uuid": "q1", "time": 1_700_000_000, "client": "192.168.1.100", "domain": "a.example.", "type": "A",
        "action": 0, "rcode": 0 })
}

/// Issues, registers, revokes or forgets. Other words of the client are not told apart.
fn acme(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let now = firewall.time.as_secs().to_string();
    let mut config = firewall.stored.clone();
    let mut mark = |list: &str, id: &str, code: &str, at: &str| {
        config.set(list, id, "statusCode", code);
        config.set(list, id, "statusLastUpdate", at);
        if list == CERTIFICATES && code != REVOKED {
            config.set(list, id, "lastUpdate", at);
        }
    };
    let ids =
        |list: &str| -> Vec<String> { firewall.stored.rows(list).map(|(id, _)| id.to_owned()).collect() };
    let id = call.param(0);
    let list = if call.controller == "acmeclient/accounts" { ACCOUNTS } else { CERTIFICATES };
    match call.command {
        "register" | "sign" | "revoke" if firewall.stored.find(list, id).is_none() => {
            return Some(Ok(Answer::failed()));
        }
        "register" | "sign" => mark(list, id, ISSUED, &now),
        "revoke" => mark(list, id, REVOKED, &now),
        "signallcerts" => ids(CERTIFICATES).iter().for_each(|id| mark(CERTIFICATES, id, ISSUED, &now)),
        "reset" => {
            ids(CERTIFICATES).iter().for_each(|id| mark(CERTIFICATES, id, "", ""));
            ids(ACCOUNTS).iter().for_each(|id| mark(ACCOUNTS, id, "", ""));
        }
        _ => return None,
    }
    firewall.live.acted(call);
    let is_on_get = ["signallcerts", "reset"].contains(&call.command);
    let answer = if is_on_get { Answer::result("OK") } else { Answer::text("OK\n\n") };
    Some(firewall.save(call, config).map(|()| answer))
}

/// Servers of the running proxy, by backend and name, with what a person set.
fn servers(firewall: &Firewall) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for (_, backend) in firewall.running.rows(BACKENDS) {
        let own = effective(BACKENDS, "linkedServers", backend).split(',').filter(|id| !id.is_empty());
        for server in own.filter_map(|id| firewall.running.find(SERVERS, id)) {
            let (pool, name) = (effective(BACKENDS, "name", backend), effective(SERVERS, "name", server));
            let id = format!("{pool}/{name}");
            let set = |what: &str, usual: &str| {
                firewall.live.proxy.get(&format!("{what} {id}")).map_or(usual, String::as_str).to_owned()
            };
            let row = json!({ "id": id, "pxname": pool, "svname": name, "status": set("state", "ready"),
                "weight": set("weight", "1") });
            out.push((id, row));
        }
    }
    out
}

fn proxy(firewall: &mut Firewall, call: &Call) -> Option<Answer> {
    let known = servers(firewall);
    let what = match call.command {
        "searchserver" => return Some(grid::live(call, known.into_iter().map(|(_, row)| row).collect())),
        "serverstate" | "serverstatebulk" => "state",
        "serverweight" | "serverweightbulk" => "weight",
        _ => return None,
    };
    let one = format!("{}/{}", call.text("backend"), call.text("server"));
    let many = call.text("server_ids");
    let asked: Vec<&str> = if many.is_empty() { vec![&one] } else { many.split(',').collect() };
    for id in &asked {
        if !known.iter().any(|(known, _)| known == id) {
            return Some(Answer::json(&json!({ "status": "error", "message": "No such server." })));
        }
    }
    let value = call.text(what);
    for id in asked {
        firewall.live.proxy.insert(format!("{what} {id}"), value.clone());
    }
    Some(Answer::status("ok"))
}

fn old_rules(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let node = if call.command.ends_with("outbound") { OLD_OUTBOUND } else { OLD_RULES };
    Some(match call.command {
        "countrules" | "countoutbound" => {
            Ok(Answer::json(&json!({ "count": firewall.stored.rows(node).count() })))
        }
        "downloadrules" | "downloadoutbound" => {
            let value = |own: &Values, name: &str| own.get(name).cloned().unwrap_or_default();
            let rows = firewall.stored.rows(node);
            let lines = rows.map(|(_, own)| format!("{},{}\n", value(own, "descr"), value(own, "interface")));
            Ok(Answer::csv("descr,interface\n".to_owned() + &lines.collect::<String>()))
        }
        "flush" | "flushoutbound" => {
            let mut config = firewall.stored.clone();
            config.take_over(node, &Config::default());
            firewall.save(call, config).map(|()| Answer::status("ok"))
        }
        _ => return None,
    })
}

/// Adds a name to the allowed or blocked ones of a policy. One that is listed already is refused.
fn block(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let (field, domain) = (call.text("type"), call.text("domain"));
    let asked = call.text("uuid");
    let first = firewall.stored.rows(BLOCKLISTS).map(|(id, _)| id.to_owned()).next();
    let id = if asked.is_empty() { first } else { Some(asked) };
    let found = id.and_then(|id| Some((firewall.stored.find(BLOCKLISTS, &id)?.clone(), id)));
    let Some((policy, id)) = found.filter(|_| ["allowlists", "blocklists"].contains(&field.as_str())) else {
        return Ok(Answer::status("failed"));
    };
    let mut names: Vec<&str> =
        effective(BLOCKLISTS, &field, &policy).split(',').filter(|name| !name.is_empty()).collect();
    if names.contains(&domain.as_str()) {
        return Ok(Answer::status("failed"));
    }
    names.push(&domain);
    let mut config = firewall.stored.clone();
    config.put(BLOCKLISTS, &id, with(&policy, &field, &names.join(",")));
    firewall.save(call, config)?;
    let stored = firewall.stored.clone();
    firewall.running.take_over(BLOCKLISTS, &stored);
    Ok(Answer::status("OK"))
}
