//! The resolver: its two applies, and what it serves in the end.

use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::choices::effective;
use crate::config::Values;
use crate::device::Firewall;

const SETTINGS: &str = "Unbound/Unbound:";
pub(crate) const HOSTS: &str = "Unbound/Unbound:hosts.host";
pub(crate) const ALIASES: &str = "Unbound/Unbound:aliases.alias";

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(Ok(match (call.controller, call.command) {
        ("unbound/service", "reconfigure") => {
            apply_without_general(firewall);
            Answer::status("ok")
        }
        ("unbound/service", "reconfiguregeneral") => {
            firewall.apply("unbound/service/reconfigure");
            Answer::status("ok")
        }
        ("unbound/service", "dnsbl") => {
            firewall.live.acted(call);
            if !firewall.met.failing_reload {
                let stored = firewall.stored.clone();
                firewall.running.take_over("Unbound/Unbound:dnsbl.blocklist", &stored);
            }
            Answer::status("OK")
        }
        ("unbound/diagnostics", "listlocaldata") => local_data(firewall),
        ("unbound/diagnostics", "listlocalzones") => Answer::json(&json!({ "status": "ok", "data": [
            { "zone": "localhost.", "type": "static" }, { "zone": "home.example.", "type": "transparent" }
        ] })),
        ("unbound/diagnostics", "stats") => {
            let queries = firewall.uptime().as_secs() * 3;
            Answer::json(
                &json!({ "status": "ok", "data": { "total": { "num": { "queries": queries.to_string(),
                "cachehits": (queries / 2).to_string(), "cachemiss": (queries / 2).to_string() } } } }),
            )
        }
        ("unbound/overview", "isenabled") => {
            Answer::json(&json!({ "enabled": firewall.running.value(SETTINGS, "", "general.stats") == "1" }))
        }
        ("unbound/settings", "getnameservers") => Answer::json(&json!(["198.51.100.53"])),
        _ => return None,
    }))
}

/// The fields of the general page have an apply of their own.
fn apply_without_general(firewall: &mut Firewall) {
    let empty = Values::new();
    let general: Values = firewall.running.find(SETTINGS, "").map_or(&empty, |values| values).clone();
    firewall.apply("unbound/service/reconfigure");
    let Some(values) = firewall.running.find(SETTINGS, "") else { return };
    let is_general = |name: &&String| name.starts_with("general.");
    let mut values: Values =
        Values::clone(values).into_iter().filter(|(name, _)| !is_general(&name)).collect();
    values.extend(general.into_iter().filter(|(name, _)| is_general(&name)));
    firewall.running.put(SETTINGS, "", values);
}

/// Overrides and aliases that are active, in the form of the resolver's own list.
fn local_data(firewall: &Firewall) -> Answer {
    if firewall.service_status("unbound") != "running" {
        return Answer::json(&json!({ "status": "failed", "data": [] }));
    }
    let hosts = firewall.running.rows(HOSTS).filter(|(_, host)| effective(HOSTS, "enabled", host) == "1");
    let mut data: Vec<Value> = Vec::new();
    for (id, host) in hosts {
        let value = |field: &str| effective(HOSTS, field, host).to_owned();
        let (kind, target) = match value("rr").as_str() {
            "MX" => ("MX", format!("{} {}", value("mxprio"), value("mx"))),
            "TXT" => ("TXT", format!("\"{}\"", value("txtdata"))),
            "AAAA" => ("AAAA", value("server")),
            _ => ("A", value("server")),
        };
        let ttl = if value("ttl").is_empty() { "3600".to_owned() } else { value("ttl") };
        let record = |name: &str, domain: &str| {
            let name = if name.is_empty() { format!("{domain}.") } else { format!("{name}.{domain}.") };
            json!({ "name": name, "ttl": ttl, "type": "IN", "rrtype": kind, "value": target })
        };
        data.push(record(&value("hostname"), &value("domain")));
        let aliases = crate::crud::having(&firewall.running, ALIASES, "host", id);
        for (_, alias) in aliases.filter(|(_, alias)| effective(ALIASES, "enabled", alias) == "1") {
            data.push(record(effective(ALIASES, "hostname", alias), effective(ALIASES, "domain", alias)));
        }
    }
    Answer::json(&json!({ "status": "ok", "data": data }))
}
