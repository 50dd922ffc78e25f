//! DHCP: leases of the servers that run, and reservations among them.

use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::choices::{ASSIGNMENTS, description, effective};
use crate::device::Firewall;
use crate::grid;
use crate::live::Lease;

const RESERVATIONS: &str = "Kea/KeaDhcpv4:reservations.reservation";
const HOSTS: &str = "Dnsmasq/Dnsmasq:hosts";

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match (call.controller, call.command) {
        ("kea/leases4", "search") => Ok(kea(firewall, call)),
        ("kea/leases6", "search") => Ok(kea6(firewall, call)),
        ("dhcpv4/leases", "searchlease") => Ok(isc(firewall, call, &firewall.live.leases)),
        ("dhcpv6/leases", "searchlease") => Ok(isc(firewall, call, &firewall.live.leases6)),
        ("dhcpv6/leases", "searchprefix") => Ok(grid::live(call, Vec::new())),
        ("kea/leases4" | "kea/leases6" | "dhcpv4/leases" | "dhcpv6/leases", "dellease") => {
            delete(firewall, call)
        }
        ("dnsmasq/leases", "search") => Ok(dnsmasq(firewall, call)),
        ("dnsmasq/settings", "gettaglist") => {
            let tags = firewall
                .stored
                .rows("Dnsmasq/Dnsmasq:dhcp_tags")
                .map(|(id, values)| (id.to_owned(), json!(values.get("tag"))));
            Ok(Answer::json(&Value::Object(tags.collect())))
        }
        ("hostdiscovery/service", "search") => {
            let rows = firewall.live.leases.iter().map(|lease| {
                json!({ "interface_name": device_of(firewall, &lease.interface), "ether_address": lease.mac,
                    "ip_address": lease.address, "organization_name": "", "first_seen": "2026-01-01 00:00:00",
                    "last_seen": firewall.date_time().format("%Y-%m-%d %H:%M:%S").to_string() })
            });
            Ok(grid::live(call, rows.collect()))
        }
        _ => return None,
    })
}

pub(crate) fn device_of(firewall: &Firewall, key: &str) -> String {
    firewall.running.value(ASSIGNMENTS, key, "if").to_owned()
}

/// What all servers tell of a lease.
fn lease(firewall: &Firewall, lease: &Lease) -> Value {
    let name = firewall.running.find(ASSIGNMENTS, &lease.interface);
    let ends = firewall.time.as_secs() + lease.lasts_secs;
    json!({
        "address": lease.address, "hwaddr": lease.mac, "hostname": lease.hostname, "expire": ends,
        "if": device_of(firewall, &lease.interface), "if_name": lease.interface,
        "if_descr": name.map_or_else(String::new, |values| description(&lease.interface, values)),
        "mac_info": "", "client_id": ""
    })
}

/// The leases of the older server: none while it does not run.
fn isc(firewall: &Firewall, call: &Call, leases: &[Lease]) -> Answer {
    let module = call.controller.split('/').next().unwrap_or_default();
    let is_on = firewall.service_status(module) == "running";
    let rows = leases.iter().filter(|_| is_on).map(|own| {
        json!({ "address": own.address, "type": "dynamic", "status": "online", "mac": own.mac,
            "hostname": own.hostname, "state": "active", "descr": "", "starts": "", "ends": "",
            "if": own.interface, "man": "" })
    });
    grid::live(call, rows.collect())
}

/// Leases of IPv6.
fn kea6(firewall: &Firewall, call: &Call) -> Answer {
    let is_on = firewall.service_status("kea") == "running";
    let rows = firewall.live.leases6.iter().filter(|_| is_on).map(|own| lease(firewall, own));
    grid::live(call, rows.collect())
}

/// The leases of Kea: none while its daemon does not run.
fn kea(firewall: &Firewall, call: &Call) -> Answer {
    if firewall.service_status("kea") != "running" {
        return grid::live(call, Vec::new());
    }
    let reserved: Vec<(String, String)> = firewall
        .running
        .rows(RESERVATIONS)
        .map(|(_, values)| {
            (
                values.get("hw_address").cloned().unwrap_or_default(),
                values.get("ip_address").cloned().unwrap_or_default(),
            )
        })
        .collect();
    let rows = firewall.live.leases.iter().map(|own| {
        let mut row = lease(firewall, own);
        let is_reserved = reserved
            .iter()
            .any(|(mac, address)| mac.eq_ignore_ascii_case(&own.mac) || *address == own.address);
        row["state"] = json!(0);
        row["valid_lifetime"] = json!(7200);
        row["is_reserved"] = json!(if is_reserved { "hwaddr" } else { "" });
        row
    });
    let mut answer = grid::live(call, rows.collect());
    if let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) {
        body["interfaces"] = interfaces(firewall);
        answer.body = body.to_string().into_bytes();
    }
    answer
}

fn interfaces(firewall: &Firewall) -> Value {
    let keys = firewall.live.leases.iter().map(|lease| &lease.interface);
    let named = keys.filter_map(|key| {
        Some((key.clone(), json!(description(key, firewall.running.find(ASSIGNMENTS, key)?))))
    });
    Value::Object(named.collect())
}

fn dnsmasq(firewall: &Firewall, call: &Call) -> Answer {
    if firewall.service_status("dnsmasq") != "running" || firewall.service_status("kea") == "running" {
        return grid::live(call, Vec::new());
    }
    let rows = firewall.live.leases.iter().map(|own| {
        let mut row = lease(firewall, own);
        let is_reserved = firewall.running.rows(HOSTS).any(|(_, values)| {
            effective(HOSTS, "hwaddr", values).split(',').any(|mac| mac.eq_ignore_ascii_case(&own.mac))
        });
        row["is_reserved"] = json!(if is_reserved { "1" } else { "0" });
        row["protocol"] = json!("ipv4");
        row
    });
    grid::live(call, rows.collect())
}

/// Acts at once. An address without a lease is an error.
fn delete(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    for address in call.param(0).split(',') {
        let live = &mut firewall.live;
        let before = live.leases.len() + live.leases6.len();
        live.leases.retain(|lease| lease.address != address);
        live.leases6.retain(|lease| lease.address != address);
        if live.leases.len() + live.leases6.len() == before {
            let text = format!("no lease for {address}");
            return Err(Answer::refused(firewall.release, "Lease", &text));
        }
    }
    let is_kea = call.controller.starts_with("kea/");
    Ok(if is_kea { Answer::status("ok") } else { Answer::result("deleted") })
}
