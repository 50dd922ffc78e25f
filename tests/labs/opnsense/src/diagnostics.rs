//! Readings: system, neighbours, states of the packet filter, logs.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::call::{Answer, Call, scalar};
use crate::choices::{ASSIGNMENTS, description, effective};
use crate::device::Firewall;
use crate::hooks::{LOST, VIPS};
use crate::{grid, hardware, interfaces, jobs, routing};

/// How long the box answers from what it read last.
const NEIGHBOURS_HELD: Duration = Duration::from_secs(30);

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    match call.controller {
        "diagnostics/system" => system(firewall, call),
        "diagnostics/interface" => interface(firewall, call),
        "diagnostics/firewall" => filter(firewall, call),
        "diagnostics/ping" | "diagnostics/packet_capture" => jobs::job(firewall, call),
        "diagnostics/dns_diagnostics" | "diagnostics/traceroute" | "diagnostics/portprobe"
            if call.command == "set" =>
        {
            Some(jobs::tool(firewall, call))
        }
        "diagnostics/log" => Some(Ok(log(firewall, call))),
        "diagnostics/cpu_usage" => Some(Ok(Answer::json(&json!(["Simulated CPU (4 cores, 4 threads)"])))),
        "diagnostics/traffic" => Some(Ok(traffic(firewall))),
        "diagnostics/activity" => Some(Ok(Answer::json(&json!({ "headers": ["up"], "details": [] })))),
        "diagnostics/dns" => {
            let address = call.query.get("address").and_then(scalar).unwrap_or_default();
            Some(Ok(Answer::json(
                &json!({ address.clone(): format!("host-{}.example.net", address.replace('.', "-")) }),
            )))
        }
        _ => None,
    }
}

fn system(firewall: &Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let uptime = firewall.uptime().as_secs();
    let clock = format!("{:02}:{:02}:{:02}", uptime / 3600 % 24, uptime / 60 % 60, uptime % 60);
    let days = uptime / 86_400;
    Some(Ok(Answer::json(&match call.command {
        "systeminformation" => json!({
            "name": "fw1.example.net",
            "versions": [format!("OPNsense {}-amd64", firewall.firmware.version()),
            "FreeBSD 14.3-RELEASE-p4", "OpenSSL 3.0.18"],
            "updates": "Click to check for updates."
        }),
        "systemtime" => json!({
            "uptime": if days > 0 { format!("{days} days, {clock}") } else { clock },
            "datetime": firewall.date_time().to_rfc2822(), "boottime": "", "config": "",
            "loadavg": "0.21, 0.25, 0.20"
        }),
        "systemresources" => {
            json!({ "memory": { "total": "8467255296", "total_frmt": "8075", "used": 1_692_598_272,
                "used_frmt": "1614" } })
        }
        "systemdisk" => {
            json!({ "devices": [{ "device": "zroot/ROOT/default", "type": "zfs", "blocks": "104857600K",
                "used": "3.1G",
            "available": "97G", "used_pct": 3, "mountpoint": "/" }] })
        }
        "systemtemperature" => {
            json!([{ "device": "dev.cpu.0.temperature", "device_seq": "0", "temperature": "48.0",
                "type_translated": "CPU", "type": "cpu" }])
        }
        "systemswap" => json!({ "swap": [{ "device": "/dev/gpt/swapfs", "total": "8388608", "used": "0" }] }),
        "systemmbuf" => {
            json!({ "mbuf-statistics": { "mbuf-current": 5000, "mbuf-total": 20_000,
                "cluster-max": 500_000 } })
        }
        "memory" => json!({ "malloc-statistics": { "memory": [] } }),
        _ => return None,
    })))
}

fn interface(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(Ok(match call.command {
        "getarp" => Answer::json(&json!(held_neighbours(firewall))),
        "searcharp" => {
            let rows = held_neighbours(firewall);
            grid::live(call, rows)
        }
        "getndp" => Answer::empty(),
        "searchndp" => grid::live(call, Vec::new()),
        "getroutes" => Answer::json(&json!(routing::table(firewall))),
        "getinterfacenames" => {
            let names = firewall.running.rows(ASSIGNMENTS).map(|(key, values)| {
                (effective(ASSIGNMENTS, "if", values).to_owned(), json!(description(key, values)))
            });
            Answer::json(&Value::Object(names.collect()))
        }
        "getinterfaceconfig" => {
            let rows = interfaces::rows(firewall, false).into_iter();
            let devices = rows.map(|row| {
                let config = json!({ "macaddr": row["macaddr"], "mtu": row["mtu"], "status": row["status"],
                    "media": row["media"],
                    "flags": row["flags"], "ipv4": row.get("ipv4").cloned().unwrap_or_else(|| json!([])),
                    "ipv6": [],
                    "is_physical": row["is_physical"], "device": row["device"], "vlan": row["vlan"] });
                (row["device"].as_str().unwrap_or_default().to_owned(), config)
            });
            Answer::json(&Value::Object(devices.collect()))
        }
        "getinterfacestatistics" => {
            let devices = hardware::devices(&firewall.running).into_iter();
            let rows: Map<String, Value> = devices
                .map(|device| (device.name.clone(), interfaces::statistics(firewall, &device.name)))
                .collect();
            Answer::json(&json!({ "statistics": rows }))
        }
        "getvipstatus" => vips(firewall, call),
        "carpstatus" => carp(firewall, call.param(0)),
        "flusharp" => {
            firewall.live.acted(call);
            firewall.live.neighbours = None;
            // What the tool prints, a line for each entry.
            let lines =
                firewall.live.leases.iter().map(|lease| format!("{0} ({0}) deleted\n", lease.address));
            Answer::of(200, "text/html; charset=UTF-8", lines.collect::<String>().into_bytes())
        }
        "delroute" => {
            let (destination, gateway) = (call.text("destination"), call.text("gateway"));
            let is_known = routing::table(firewall)
                .iter()
                .any(|row| row["destination"] == destination.as_str() && row["gateway"] == gateway.as_str());
            if is_known {
                firewall.live.deleted_routes.insert((destination, gateway));
            }
            Answer::json(&json!({ "message": if is_known { "found" } else { "not_found" } }))
        }
        _ => return None,
    }))
}

/// The neighbours, up to half a minute old.
fn held_neighbours(firewall: &mut Firewall) -> Vec<Value> {
    let now = firewall.now;
    match &firewall.live.neighbours {
        Some((read, rows)) if now.duration_since(*read) < NEIGHBOURS_HELD => rows.clone(),
        _ => {
            let rows = neighbours(firewall);
            firewall.live.neighbours = Some((now, rows.clone()));
            rows
        }
    }
}

/// The clients with a lease, and the box itself.
fn neighbours(firewall: &Firewall) -> Vec<Value> {
    let own = firewall
        .running
        .rows(hardware::ADDRESSES)
        .filter(|(_, values)| values.get("enable").is_some_and(|on| on == "1"));
    let row = |mac: String, address: &str, key: &str, expires: i64| {
        let device = crate::dhcp::device_of(firewall, key);
        let name = firewall
            .running
            .find(ASSIGNMENTS, key)
            .map_or_else(String::new, |values| description(key, values));
        json!({ "mac": mac, "ip": address, "intf": device, "expired": false, "expires": expires,
            "permanent": expires < 0,
            "type": "ethernet", "manufacturer": "", "hostname": "", "intf_description": name })
    };
    let own = own.map(|(key, values)| {
        let device = crate::dhcp::device_of(firewall, key);
        row(hardware::mac(&device), values.get("ipaddr").map_or("", String::as_str), key, -1)
    });
    let clients = firewall
        .live
        .leases
        .iter()
        .map(|lease| row(lease.mac.clone(), &lease.address, &lease.interface, 1100));
    own.chain(clients).collect()
}

fn vips(firewall: &Firewall, call: &Call) -> Answer {
    let on_interfaces = firewall.running.rows(VIPS).filter(|(_, vip)| !vip.contains_key(LOST));
    let rows = on_interfaces.map(|(_, vip)| {
        let value = |field: &str| effective(VIPS, field, vip);
        json!({ "interface": value("interface"), "subnet": value("subnet"), "vhid": value("vhid"),
            "mode": value("mode"),
            "status": if value("mode") == "carp" { "MASTER" } else { "" } })
    });
    let mut answer = grid::live(call, rows.collect());
    if let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) {
        let live = &firewall.live;
        body["carp"] = json!({ "demotion": if live.carp_is_in_maintenance { "240" } else { "0" },
            "allow": if live.carp_is_off { "0" } else { "1" },
            "maintenancemode": live.carp_is_in_maintenance, "status_msg": "" });
        answer.body = body.to_string().into_bytes();
    }
    answer
}

/// Switches the shared addresses. The maintenance flips.
fn carp(firewall: &mut Firewall, status: &str) -> Answer {
    let live = &mut firewall.live;
    let action = match status {
        "enable" => {
            live.carp_is_off = false;
            "enable"
        }
        "disable" => {
            live.carp_is_off = true;
            "disable"
        }
        "maintenance" => {
            live.carp_is_in_maintenance = !live.carp_is_in_maintenance;
            if live.carp_is_in_maintenance { "enter_maintenance" } else { "leave_maintenance" }
        }
        _ => return Answer::status("failed"),
    };
    Answer::json(&json!({ "status": "ok", "action": action }))
}

/// One state per lease, until it is killed.
fn states(firewall: &Firewall) -> Vec<Value> {
    let rules: Vec<&str> = firewall.running.rows("Firewall/Filter:rules.rule").map(|(id, _)| id).collect();
    let leases = firewall.live.leases.iter().enumerate();
    let rows = leases.map(|(at, lease)| {
        let id = format!("{at:016x}");
        json!({ "id": format!("{id}/00000001"), "label": rules.get(at).copied().unwrap_or_default(),
            "proto": "tcp", "direction": "in",
            "iface": "all", "src_addr": lease.address, "src_port": "50000", "dst_addr": "203.0.113.10",
            "dst_port": "443",
            "state": "ESTABLISHED:ESTABLISHED", "age": "60", "expires": "86000", "pkts": [10, 12],
            "bytes": [1000, 9000] })
    });
    rows.filter(|row| !firewall.live.killed_states.contains(row["id"].as_str().unwrap_or_default())).collect()
}

fn filter(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(Ok(match call.command {
        "querystates" | "querypftop" => grid::live(call, states(firewall)),
        "pfstates" => {
            Answer::json(&json!({ "current": states(firewall).len().to_string(), "limit": "803000" }))
        }
        "killstates" => {
            let (filter, rule) = (call.text("filter"), call.text("ruleid"));
            if filter.is_empty() && rule.is_empty() {
                return Some(Ok(Answer::failed()));
            }
            let is_hit = |row: &Value| {
                row["label"] == rule.as_str() || (!filter.is_empty() && row.to_string().contains(&filter))
            };
            let hit: Vec<String> = states(firewall)
                .iter()
                .filter(|row| is_hit(row))
                .filter_map(|row| row["id"].as_str().map(str::to_owned))
                .collect();
            let count = hit.len();
            firewall.live.killed_states.extend(hit);
            Answer::json(&json!({ "result": "ok", "dropped_states": count }))
        }
        "flushstates" | "flushsources" => {
            firewall.live.acted(call);
            let all: Vec<String> =
                states(firewall).iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect();
            firewall.live.killed_states.extend(all);
            Answer::result("ok")
        }
        "delstate" => {
            let id = format!("{}/{}", call.param(0), call.param(1));
            let is_known = states(firewall).iter().any(|row| row["id"] == id.as_str());
            firewall.live.killed_states.insert(id);
            Answer::result(if is_known { "deleted" } else { "not found" })
        }
        "listruleids" => {
            let rules = firewall
                .running
                .rows("Firewall/Filter:rules.rule")
                .map(|(id, values)| json!({ "id": id, "descr": values.get("description") }));
            Answer::json(&json!({ "items": rules.collect::<Vec<_>>() }))
        }
        "log" => Answer::json(&json!(log_rows(firewall))),
        "logfilters" => {
            Answer::json(&json!({ "action": ["pass", "block"], "interface_name": [], "dir": ["in", "out"] }))
        }
        _ => return None,
    }))
}

fn log_rows(firewall: &Firewall) -> Vec<Value> {
    let rules = firewall.running.rows("Firewall/Filter:rules.rule").take(20);
    let rows = rules.map(|(id, values)| {
        json!({ "rid": id, "action": effective("Firewall/Filter:rules.rule", "action", values),
            "interface": "igb1", "dir": "in",
            "__timestamp__": firewall.date_time().format("%Y-%m-%dT%H:%M:%S").to_string(),
            "src": "192.168.1.100", "dst": "203.0.113.10",
            "protoname": "tcp", "dstport": "443", "label": values.get("description"), "__digest__": id })
    });
    rows.collect()
}

/// Rows of a log file, named by module and scope.
fn log(firewall: &mut Firewall, call: &Call) -> Answer {
    let scope = call.params.first().map_or("", String::as_str);
    match call.params.get(1).map(String::as_str) {
        Some("clear") => Answer::status("ok"),
        Some("export") => {
            Answer::csv(format!("timestamp,line\n{},{scope} started\n", firewall.date_time().to_rfc3339()))
        }
        _ if firewall.live.cleared.contains("logs") => grid::live(call, Vec::new()),
        _ => {
            let row = json!({ "timestamp": firewall.date_time().to_rfc3339(), "severity": "Notice",
                "process_name": scope,
                "pid": "1", "line": format!("{scope} started"), "rnum": 1 });
            grid::live(call, vec![row])
        }
    }
}

fn traffic(firewall: &Firewall) -> Answer {
    let rows = firewall.running.rows(ASSIGNMENTS).map(|(key, values)| {
        let device = effective(ASSIGNMENTS, "if", values);
        let mut counters = interfaces::statistics(firewall, device);
        counters["name"] = json!(description(key, values));
        (key.to_owned(), counters)
    });
    Answer::json(&json!({ "interfaces": rows.collect::<Map<_, _>>(), "time": firewall.time.as_secs_f64() }))
}
