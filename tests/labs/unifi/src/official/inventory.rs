//! Sites, devices, clients, and what the official interface only reads.

use heddle_lab::Context;
use serde_json::{Value, json};

use crate::clients::{self, Allowance};
use crate::commands;
use crate::console::Console;
use crate::devices;
use crate::official::{Answered, Call, absent, invalid, page, translated};
use crate::reply::Refusal;
use crate::row::{Row, flag, flag_or_true, moment, number, text, texts};
use crate::sites;
use crate::stats;
use crate::store::GLOBAL;

/// Answers what is no collection of configuration.
pub(super) fn answer(own: &Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    let rows: Vec<Value> = match call.route.path.split("/{").next().unwrap_or_default() {
        "info" => return Ok(json!({ "applicationVersion": own.settings.version() })),
        "sites" => own.store.rows(GLOBAL, "site").iter().map(|site| json!({
            "id": text(site, "~uuid"), "internalReference": text(site, "name"), "name": text(site, "desc"),
        })).collect(),
        "wans" => networks(own, site, "wan").map(|row| json!({
            "id": text(row, "~uuid"), "name": text(row, "name"),
        })).collect(),
        "vpn/servers" => networks(own, site, "remote-user-vpn").map(server).collect(),
        "vpn/site-to-site-tunnels" => networks(own, site, "site-vpn").map(|row| json!({
            "type": if text(row, "vpn_type") == "openvpn-vpn" { "OPENVPN" } else { "IPSEC" },
            "id": text(row, "~uuid"),
            "name": text(row, "name"), "metadata": { "origin": "USER_DEFINED" },
        })).collect(),
        "radius/profiles" => own.store.rows(site, "radiusprofile").iter().map(|row| json!({
            "id": text(row, "~uuid"), "name": text(row, "name"),
            "metadata": { "origin": if flag(row, "attr_no_delete") { "SYSTEM_DEFINED" } else { "USER_DEFINED" } },
        })).collect(),
        "device-tags" => own.store.rows(site, "device_tag").iter().map(|row| tag(own, site, row)).collect(),
        "countries" => stats::countries().iter().map(|(_, name, code)| json!({
            "code": code, "name": name,
        })).collect(),
        "dpi/applications" => names(&[(262_145, "Example Chat"), (262_256, "Example Video"), (196_620, "Web")]),
        "dpi/categories" => names(&[(0, "Instant messengers"), (4, "Media streaming"), (13, "Web")]),
        "switching/lags" => lags(own, site),
        _ => Vec::new(),
    };
    if call.parameters.is_empty() {
        return page::of(call, rows);
    }
    rows.into_iter().find(|row| row["id"] == call.id()).ok_or_else(|| absent("object", call.id()))
}

fn names(rows: &[(i64, &str)]) -> Vec<Value> {
    rows.iter().map(|(id, name)| json!({ "id": id, "name": name })).collect()
}

fn networks<'a>(own: &'a Console, site: &str, purpose: &'a str) -> impl Iterator<Item = &'a Row> {
    own.store.rows(site, "networkconf").iter().filter(move |row| text(row, "purpose") == purpose)
}

fn server(row: &Row) -> Value {
    let kind = match text(row, "vpn_type") {
        "wireguard-server" => "WIREGUARD",
        "openvpn-server" => "OPENVPN",
        "l2tp-server" => "L2TP",
        _ => "PPTP",
    };
    json!({
        "type": kind, "id": text(row, "~uuid"), "name": text(row, "name"),
        "enabled": flag_or_true(row, "enabled"),
        "metadata": { "origin": "USER_DEFINED" },
    })
}

fn tag(own: &Console, site: &str, row: &Row) -> Value {
    let macs = texts(row, "device_macs").into_iter();
    let ids = macs
        .filter_map(|mac| own.store.having(site, "device", "mac", mac))
        .map(|device| text(device, "~uuid"));
    json!({
        "id": text(row, "~uuid"), "name": text(row, "name"), "deviceIds": ids.collect::<Vec<_>>(),
        "metadata": { "origin": "USER_DEFINED" },
    })
}

/// Groups of ports over all switches.
fn lags(own: &Console, site: &str) -> Vec<Value> {
    let of_device = |device: &Row| {
        let id = text(device, "~uuid").to_owned();
        devices::lags(device).into_iter().map(move |lag| json!({
            "type": "LOCAL", "id": lag["id"], "members": [{ "deviceId": id, "portIdxs": lag["portIdxs"] }],
            "metadata": { "origin": "USER_DEFINED" },
        }))
    };
    own.store.rows(site, "device").iter().flat_map(of_device).collect()
}

/// Devices and clients, and what is done to them.
pub(super) fn devices_and_clients(own: &mut Console, call: &Call<'_>, context: &mut Context) -> Answered {
    let site = call.site.as_str();
    match (call.request.method.as_str(), call.route.path.as_str()) {
        ("GET", "pending-devices") => {
            let rows = own.store.rows(GLOBAL, "pending").iter().map(pending).collect();
            page::of(call, rows)
        }
        ("GET", "devices") => {
            let rows = own.store.rows(site, "device").iter().map(devices::official_row).collect();
            page::of(call, rows)
        }
        ("POST", "devices") => {
            let fails = context.fault("adopt_fails", call.request).is_some();
            let mac = text(&call.body, "macAddress").to_lowercase();
            commands::adopt_one(own, site, &mac, fails).map_err(translated)?;
            let device = own.store.having(GLOBAL, "pending", "mac", &mac).cloned().unwrap_or_default();
            Ok(devices::official_detail(own, site, &device))
        }
        ("GET", "clients") => {
            let rows = clients::online(own, site).map(|row| clients::official(own, site, row)).collect();
            page::of(call, rows)
        }
        (method, path) if path.starts_with("clients/") => {
            let found = clients::online(own, site)
                .find(|row| text(row, "~uuid") == call.parameter("clientId"))
                .cloned();
            let client = found.ok_or_else(|| absent("client", call.parameter("clientId")))?;
            if method == "GET" {
                Ok(clients::official(own, site, &client))
            } else {
                guest(own, call, &client)
            }
        }
        _ => device(own, call),
    }
}

fn pending(row: &Row) -> Value {
    let mut made = devices::official_row(row);
    for name in ["id", "name", "interfaces"] {
        if let Some(made) = made.as_object_mut() {
            made.remove(name);
        }
    }
    made
}

fn device(own: &mut Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    let id = call.parameter("deviceId");
    let device = own.store.by_uuid(site, "device", id).cloned().ok_or_else(|| absent("device", id))?;
    let mac = text(&device, "mac");
    match (call.request.method.as_str(), call.route.path.as_str()) {
        ("GET", "devices/{deviceId}/statistics/latest") => Ok(devices::statistics(own, &device)),
        ("GET", _) => Ok(devices::official_detail(own, site, &device)),
        ("DELETE", _) => sites::forget_device(own, site, mac).map_err(translated).map(|()| Value::Null),
        (_, "devices/{deviceId}/actions") => {
            if number(&device, "state") != Some(1) {
                return Err(Refusal::of(400, "api.device.not-online", "device is not online"));
            }
            commands::restart(own, site, &device);
            Ok(Value::Null)
        }
        _ => {
            let port = call.parameter("portIdx").parse().unwrap_or_default();
            devices::power_cycle(own, site, mac, port).map_err(translated)?;
            Ok(Value::Null)
        }
    }
}

/// Gives a connected guest access, or takes it away.
fn guest(own: &mut Console, call: &Call<'_>, client: &Row) -> Answered {
    let is_guest = clients::official(own, &call.site, client)["access"]["type"] == "GUEST";
    if !is_guest {
        return Err(invalid("client is not a guest"));
    }
    let body = &call.body;
    let mac = text(client, "mac");
    let action = text(body, "action");
    if action == "UNAUTHORIZE_GUEST_ACCESS" {
        let before = clients::revoke(own, &call.site, mac);
        return Ok(json!({ "action": action, "revokedAuthorization": before.as_ref().map(grant) }));
    }
    let allowance = Allowance {
        minutes: number(body, "timeLimitMinutes").unwrap_or(480),
        up: number(body, "txRateLimitKbps"),
        down: number(body, "rxRateLimitKbps"),
        megabytes: number(body, "dataUsageLimitMBytes"),
        method: "API",
    };
    let (now, before) = clients::authorize(own, &call.site, mac, &allowance);
    let mut made = json!({ "action": action, "grantedAuthorization": grant(&now) });
    if let Some(before) = before {
        made["revokedAuthorization"] = grant(&before);
    }
    Ok(made)
}

fn grant(row: &Row) -> Value {
    let at = |name: &str| number(row, name).map_or(0, i64::unsigned_abs) * 1000;
    json!({
        "authorizedAt": moment(at("start")), "authorizationMethod": "API", "expiresAt": moment(at("end")),
        "dataUsageLimitMBytes": number(row, "qos_usage_quota"),
        "rxRateLimitKbps": number(row, "qos_rate_max_down"),
        "txRateLimitKbps": number(row, "qos_rate_max_up"),
        "usage": { "durationSec": 0, "rxBytes": 0, "txBytes": 0, "bytes": 0 },
    })
}
