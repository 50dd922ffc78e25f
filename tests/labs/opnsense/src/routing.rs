//! Gateways, as the monitor sees them, and the table of routes.

use serde_json::{Value, json};

use crate::call::{Answer, Call};
use crate::choices::{GATEWAYS, effective};
use crate::config::Values;
use crate::device::Firewall;
use crate::hardware::ADDRESSES;

const ROUTES: &str = "Routes/Route:route";

/// What the monitor measures of a gateway.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Measured {
    /// `none`, `down`, `loss`, `delay` or `delay+loss`.
    pub(crate) status: String,
    pub(crate) loss: String,
    pub(crate) delay: String,
}

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    match (call.controller, call.command) {
        ("routes/gateway", "status") => Some(Ok(status(firewall))),
        _ => None,
    }
}

fn status(firewall: &Firewall) -> Answer {
    let enabled =
        firewall.running.rows(GATEWAYS).filter(|(_, values)| effective(GATEWAYS, "disabled", values) != "1");
    let items: Vec<Value> =
        enabled.map(|(_, values)| gateway(firewall, values)).chain([dynamic(firewall)]).collect();
    Answer::json(&json!({ "items": items, "status": "ok" }))
}

/// The gateway that the provider gives: it is not watched.
fn dynamic(firewall: &Firewall) -> Value {
    let values =
        crate::config::values(&[("name", "WAN_DHCP"), ("gateway", "198.51.100.1"), ("monitor_disable", "1")]);
    gateway(firewall, &values)
}

fn gateway(firewall: &Firewall, values: &Values) -> Value {
    let value = |field: &str| effective(GATEWAYS, field, values).to_owned();
    let is_watched = value("monitor_disable") == "0";
    let measured = firewall.live.gateways.get(&value("name")).cloned().unwrap_or_else(|| Measured {
        status: "none".to_owned(),
        loss: "0.0 %".to_owned(),
        delay: "1.1 ms".to_owned(),
    });
    let (status, loss, delay, monitor) = match (value("force_down") == "1", is_watched) {
        (true, _) => ("force_down".to_owned(), "~".to_owned(), "~".to_owned(), "~".to_owned()),
        // Without a monitor it says the word of an online one.
        (false, false) => ("none".to_owned(), "~".to_owned(), "~".to_owned(), "~".to_owned()),
        (false, true) => {
            let monitor = if value("monitor").is_empty() { value("gateway") } else { value("monitor") };
            (measured.status, measured.loss, measured.delay, monitor)
        }
    };
    let stddev = if delay == "~" { "~" } else { "0.2 ms" };
    json!({
        "name": value("name"), "address": value("gateway"), "status": status, "loss": loss, "delay": delay,
        "stddev": stddev, "monitor": monitor,
        "status_translated": if status == "none" { "Online" } else { "Offline" }
    })
}

/// The rows of the routing table: connected networks, the default route, static routes that run.
pub(crate) fn table(firewall: &Firewall) -> Vec<Value> {
    let running = &firewall.running;
    let row = |destination: &str, gateway: &str, flags: &str, device: &str| {
        json!({ "proto": "ipv4", "destination": destination, "gateway": gateway, "flags": flags, "nhop": "1",
            "mtu": "1500",
            "netif": device, "netif_name": device, "expire": "", "intf_description": "" })
    };
    let mut rows = vec![row("default", "198.51.100.1", "UGS", "igb0")];
    for (key, address) in running.rows(ADDRESSES) {
        let value = |field: &str| address.get(field).map_or("", String::as_str);
        if value("enable") == "1" && !value("ipaddr").is_empty() {
            let device = crate::dhcp::device_of(firewall, key);
            rows.push(row(&network(value("ipaddr"), value("subnet")), "link#1", "U", &device));
        }
    }
    for (_, route) in running.rows(ROUTES).filter(|(_, route)| is_on(firewall, route)) {
        let name = effective(ROUTES, "gateway", route);
        let next = crate::crud::having(running, GATEWAYS, "name", name).next();
        let next = next.map_or_else(
            || "198.51.100.1".to_owned(),
            |(_, gateway)| effective(GATEWAYS, "gateway", gateway).to_owned(),
        );
        rows.push(row(effective(ROUTES, "network", route), &next, "UGS", "igb0"));
    }
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    rows.retain(|row| {
        !firewall.live.deleted_routes.contains(&(text(row, "destination"), text(row, "gateway")))
    });
    rows
}

/// The older release says what is off, the newer one what is on.
fn is_on(firewall: &Firewall, route: &Values) -> bool {
    match firewall.release {
        crate::Release::V26_1 => effective(ROUTES, "disabled", route) != "1",
        crate::Release::V26_7 => effective(ROUTES, "enabled", route) == "1",
    }
}

/// The network of an address.
fn network(address: &str, bits: &str) -> String {
    let bits: u32 = bits.parse().unwrap_or(32);
    let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
    match address.parse::<std::net::Ipv4Addr>() {
        Ok(address) => format!("{}/{bits}", std::net::Ipv4Addr::from(u32::from(address) & mask)),
        Err(_) => address.to_owned(),
    }
}
