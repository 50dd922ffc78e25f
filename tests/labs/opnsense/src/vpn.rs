//! `WireGuard`, `IPsec` and `OpenVPN`: keys, and the state of what runs.

use ed25519_dalek::SigningKey;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::call::{Answer, Call};
use crate::choices::effective;
use crate::config::Values;
use crate::crud::having;
use crate::device::Firewall;
use crate::grid;
use crate::hooks::{CONNECTIONS, INSTANCES, PEERS, base64};
use crate::legacy;

const CHILDREN: &str = "IPsec/Swanctl:children.child";
const SWANCTL: &str = "IPsec/Swanctl:";
const OPENVPN: &str = "OpenVPN/OpenVPN:Instances.Instance";

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let module = call.controller.split('/').next().unwrap_or_default();
    match module {
        "wireguard" => wireguard(firewall, call),
        "ipsec" => legacy::answer(firewall, call).or_else(|| ipsec(firewall, call)),
        _ => openvpn(firewall, call),
    }
}

/// Thirty-two bytes that no earlier call gave.
fn secret(firewall: &mut Firewall, what: &str) -> [u8; 32] {
    let serial = firewall.next_serial();
    Sha256::digest(format!("{what} {serial}")).into()
}

/// A private key of Curve25519 and its public key, both in base64.
pub(crate) fn key_pair(seed: &[u8; 32]) -> (String, String) {
    let key = SigningKey::from_bytes(seed);
    let mut scalar = key.to_scalar_bytes();
    scalar[0] &= 0xF8;
    scalar[31] = (scalar[31] & 0x7F) | 0x40;
    (base64(&scalar), base64(&key.verifying_key().to_montgomery().to_bytes()))
}

fn wireguard(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match (call.controller, call.command) {
        ("wireguard/server", "keypair") => {
            let (private, public) = key_pair(&secret(firewall, "wireguard"));
            Ok(Answer::json(&json!({ "status": "ok", "pubkey": public, "privkey": private })))
        }
        ("wireguard/client", "psk") => {
            let psk = base64(&secret(firewall, "psk"));
            Ok(Answer::json(&json!({ "status": "ok", "psk": psk })))
        }
        ("wireguard/client", "listservers") => {
            let rows = firewall
                .stored
                .rows(INSTANCES)
                .map(|(id, values)| json!({ "uuid": id, "name": values.get("name") }));
            Ok(Answer::json(&json!({ "status": "ok", "rows": rows.collect::<Vec<_>>() })))
        }
        ("wireguard/client", "getserverinfo") => Ok(instance_info(firewall, call.param(0))),
        ("wireguard/service", "show") => Ok(grid::live(call, shown(firewall))),
        _ => return None,
    })
}

/// What a new peer of an instance needs, with an address that none of its peers has.
fn instance_info(firewall: &Firewall, id: &str) -> Answer {
    let Some(instance) = firewall.stored.find(INSTANCES, id) else {
        return Answer::json(&json!({ "status": "failed" }));
    };
    let value = |field: &str| effective(INSTANCES, field, instance).to_owned();
    let network = value("tunneladdress");
    let base = network.split('/').next().and_then(|address| address.parse::<std::net::Ipv4Addr>().ok());
    let is_used = |address: &String| {
        firewall
            .stored
            .rows(PEERS)
            .any(|(_, peer)| effective(PEERS, "tunneladdress", peer).split(',').any(|own| own == address))
    };
    let candidates = base.into_iter().flat_map(|base| {
        (1..200u32).map(move |n| std::net::Ipv4Addr::from(u32::from(base).saturating_add(n)))
    });
    let address = candidates.map(|address| format!("{address}/32")).find(|address| !is_used(address));
    Answer::json(&json!({
        "status": "ok", "name": value("name"), "pubkey": value("pubkey"), "mtu": value("mtu"),
        "endpoint": value("endpoint"), "peer_dns": value("peer_dns"), "address": address.unwrap_or_default()
    }))
}

/// One row per running instance, and one per peer of it.
fn shown(firewall: &Firewall) -> Vec<Value> {
    let running = &firewall.running;
    if firewall.service_status("wireguard") != "running" {
        return Vec::new();
    }
    let now = firewall.time.as_secs();
    let mut rows = Vec::new();
    for (_, instance) in
        running.rows(INSTANCES).filter(|(_, values)| effective(INSTANCES, "enabled", values) == "1")
    {
        let value = |field: &str| effective(INSTANCES, field, instance);
        let device = format!("wg{}", value("instance"));
        rows.push(json!({
            "if": device, "type": "interface", "status": "up", "public-key": value("pubkey"),
            "name": value("name"),
            "listen-port": value("port"), "fwmark": "off", "ifname": device
        }));
        let peers = value("peers").split(',').filter_map(|id| running.find(PEERS, id));
        for peer in peers.filter(|peer| effective(PEERS, "enabled", peer) == "1") {
            let value = |field: &str| effective(PEERS, field, peer);
            let is_known = !value("serveraddress").is_empty();
            let bytes = firewall.uptime().as_secs() * 100;
            rows.push(json!({
                "if": device, "type": "peer", "public-key": value("pubkey"), "name": value("name"),
                "ifname": device,
                "endpoint": if is_known { format!("{}:{}", value("serveraddress"), value("serverport")) } else { "(none)".to_owned() },
                "allowed-ips": value("tunneladdress"),
                "latest-handshake": if is_known { now - now % 120 } else { 0 },
                "transfer-rx": if is_known { bytes } else { 0 },
                "transfer-tx": if is_known { bytes / 2 } else { 0 },
                "persistent-keepalive": value("keepalive"),
                "peer-status": if is_known { "online" } else { "offline" }
            }));
        }
    }
    rows
}

fn ipsec(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match (call.controller, call.command) {
        ("ipsec/connections" | "ipsec/tunnel", "toggle") => switch_ipsec(firewall, call),
        ("ipsec/connections", "isenabled") => {
            Ok(Answer::json(&json!({ "enabled": firewall.stored.value(SWANCTL, "", "enabled") == "1" })))
        }
        ("ipsec/connections", "connectionexists") => {
            Ok(Answer::json(&json!({ "exists": firewall.stored.find(CONNECTIONS, call.param(0)).is_some() })))
        }
        ("ipsec/connections", "swanctl") => {
            let names = firewall.running.rows(CONNECTIONS).map(|(id, _)| format!("    {id} {{ }}\n"));
            Ok(Answer::text(&format!("connections {{\n{}}}\n", names.collect::<String>())))
        }
        ("ipsec/sad" | "ipsec/spd", "search") => {
            Ok(grid::live(call, associations(firewall, call.controller)))
        }
        ("ipsec/sad" | "ipsec/spd", "delete") => {
            firewall.live.dropped_associations.insert(call.param(0).to_owned());
            Ok(Answer::result("ok"))
        }
        ("ipsec/sessions", "searchphase1") => Ok(grid::live(call, phase1(firewall))),
        ("ipsec/sessions", "searchphase2") => Ok(grid::live(call, phase2(firewall, &call.text("id")))),
        ("ipsec/sessions", "connect" | "disconnect") => {
            let id = call.param(0).to_owned();
            if call.command == "connect" {
                firewall.live.disconnected.remove(&id)
            } else {
                firewall.live.disconnected.insert(id)
            };
            Ok(Answer::result("ok"))
        }
        ("ipsec/key_pairs", "genkeypair") => {
            let (private, public) =
                (base64(&secret(firewall, "private")), base64(&secret(firewall, "public")));
            let pem = |kind: &str, text: &str| {
                format!("-----BEGIN {kind} KEY-----\n{text}\n-----END {kind} KEY-----\n")
            };
            Ok(Answer::json(&json!({
                "status": "ok", "privkey": pem("PRIVATE", &private), "pubkey": pem("PUBLIC", &public),
                "size": call.params.get(1).map_or("2048", String::as_str)
            })))
        }
        ("ipsec/legacy_subsystem", "status") => Ok(Answer::json(&json!({
            "enabled": firewall.stored.value(SWANCTL, "", "enabled") == "1",
            "isDirty": firewall.live.legacy_ipsec_is_dirty
        }))),
        ("ipsec/leases", "pools") => Ok(Answer::json(&json!({ "pools": [], "leases": [] }))),
        _ => return None,
    })
}

/// The one switch of `IPsec`; without a state it flips.
fn switch_ipsec(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let is_on = firewall.stored.value(SWANCTL, "", "enabled") == "1";
    let wanted = if call.param(0).is_empty() { !is_on } else { call.param(0) == "1" };
    let mut config = firewall.stored.clone();
    let mut values = config.find(SWANCTL, "").map(|values| Values::clone(values)).unwrap_or_default();
    values.insert("enabled".to_owned(), if wanted { "1" } else { "0" }.to_owned());
    config.put(SWANCTL, "", values);
    firewall.save(call, config)?;
    firewall.live.legacy_ipsec_is_dirty |= call.controller == "ipsec/tunnel";
    Ok(Answer::result("saved"))
}

fn phase1(firewall: &Firewall) -> Vec<Value> {
    if firewall.service_status("ipsec") != "running" {
        return Vec::new();
    }
    let connections = firewall
        .running
        .rows(CONNECTIONS)
        .filter(|(_, values)| effective(CONNECTIONS, "enabled", values) == "1");
    let rows = connections.map(|(id, values)| {
        let value = |field: &str| effective(CONNECTIONS, field, values);
        let is_up = !firewall.live.disconnected.contains(id);
        let bytes = if is_up { firewall.uptime().as_secs() * 50 } else { 0 };
        json!({
            "ikeid": id, "name": id, "phase1desc": value("description"), "connected": is_up, "routed": true,
            "local-addrs": value("local_addrs"), "remote-addrs": value("remote_addrs"), "version": "IKEv2",
            "bytes-in": bytes, "bytes-out": bytes / 2, "install-time": firewall.uptime().as_secs()
        })
    });
    rows.collect()
}

/// One association and one policy for each child of a connection that is up, until a person deletes it.
fn associations(firewall: &Firewall, controller: &str) -> Vec<Value> {
    let kind = controller.rsplit('/').next().unwrap_or_default();
    let up = phase1(firewall).into_iter().filter(|row| row["connected"] == true);
    let children = up.flat_map(|row| {
        let connection = row["name"].as_str().unwrap_or_default().to_owned();
        let own: Vec<String> = having(&firewall.running, CHILDREN, "connection", &connection)
            .map(|(id, _)| id.to_owned())
            .collect();
        own
    });
    let rows = children.map(|child| {
        let id = hex::encode(&Sha256::digest(format!("{kind} {child}"))[..16]);
        json!({ "id": id, "ikeid": child, "proto": "esp", "src": "198.51.100.2", "dst": "203.0.113.2" })
    });
    rows.filter(|row| !firewall.live.dropped_associations.contains(row["id"].as_str().unwrap_or_default()))
        .collect()
}

fn phase2(firewall: &Firewall, connection: &str) -> Vec<Value> {
    if connection.is_empty() || firewall.live.disconnected.contains(connection) {
        return Vec::new();
    }
    let children = having(&firewall.running, CHILDREN, "connection", connection);
    let rows = children.map(|(id, values)| {
        json!({ "ikeid": connection, "name": id, "phase2desc": values.get("description"),
            "state": "INSTALLED",
            "local-ts": values.get("local_ts"), "remote-ts": values.get("remote_ts"), "bytes-in": 0,
            "bytes-out": 0 })
    });
    rows.collect()
}

fn openvpn(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match (call.controller, call.command) {
        ("openvpn/instances", "genkey") => {
            let key = hex::encode(secret(firewall, "openvpn"));
            let text = format!(
                "-----BEGIN OpenVPN Static key V1-----\n{key}\n-----END OpenVPN Static key V1-----\n"
            );
            Ok(Answer::json(&json!({ "result": "ok", "key": text })))
        }
        ("openvpn/service", "searchsessions") => Ok(grid::live(call, sessions(firewall))),
        ("openvpn/service", "killsession") => {
            let id = call.text("session_id");
            let before = firewall.live.sessions.len();
            firewall.live.sessions.retain(|session| session.id != id);
            let is_gone = firewall.live.sessions.len() < before;
            Ok(Answer::json(&json!({ "result": if is_gone { "killed" } else { "not_found" } })))
        }
        ("openvpn/export", "storepresets") => {
            firewall.live.acted(call);
            Ok(Answer::json(&json!({ "result": "ok", "changed": true })))
        }
        ("openvpn/export", "providers" | "accounts" | "templates") => {
            Ok(Answer::json(&Value::Object(Map::new())))
        }
        _ => return None,
    })
}

/// Running instances, and the clients of servers. An instance that is down stands there without a status.
fn sessions(firewall: &Firewall) -> Vec<Value> {
    let mut rows = Vec::new();
    // Clients are there since the lab started.
    let since = firewall.booted_at();
    for (id, instance) in firewall.running.rows(OPENVPN) {
        let value = |field: &str| effective(OPENVPN, field, instance);
        if value("enabled") != "1" || firewall.live.stopped.contains("openvpn") {
            rows.push(json!({ "id": id, "type": value("role"), "description": value("description") }));
            continue;
        }
        rows.push(
            json!({ "id": id, "type": value("role"), "description": value("description"), "status": "ok" }),
        );
        for session in firewall.live.sessions.iter().filter(|session| session.of == id) {
            rows.push(json!({
                "id": format!("{id}_{}", session.address), "type": "server", "common_name": session.user,
                "description": value("description"), "connected_since__time_t_": since.timestamp().to_string(),
                "username": session.user, "real_address": session.address, "virtual_address": "10.8.0.2",
                "bytes_received": "1000", "bytes_sent": "2000", "status": "connected",
                "session_id": session.id,
                "connected_since": since.format("%Y-%m-%d %H:%M:%S").to_string()
            }));
        }
    }
    rows
}
