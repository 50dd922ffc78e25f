//! Clients: who is online, and who was seen before.

use std::collections::BTreeMap;

use heddle_sdk::crud::Vendor as _;
use heddle_sdk::{Auth, Device, Fault, Host, Method, Request, Status, json as sdk_json};
use serde_json::{Value, json};

use crate::answer::{Omada, SESSION};
use crate::devices::{addresses, lower_mac, picked};
use crate::site::{self, Site};

/// Rows that one request asks for.
const ROWS_MAX: u64 = 1_000;
const PAGES_MAX: u64 = 64;

const DESCRIBED: [&str; 13] = [
    "wireless",
    "guest",
    "vendor",
    "deviceType",
    "osName",
    "ssid",
    "networkName",
    "vid",
    "apName",
    "switchName",
    "gatewayName",
    "port",
    "blocked",
];
const MEASURED: [&str; 8] =
    ["uptime", "trafficDown", "trafficUp", "rssi", "snr", "rxRate", "txRate", "lastSeen"];

#[derive(Default)]
pub(crate) struct Clients {
    pub(crate) all: Vec<Device>,
    pub(crate) is_denied: bool,
}

/// Those online, and those that are known and not online.
pub(crate) fn gather(host: &dyn Host, controller: &str, site: &Site) -> Result<Clients, Fault> {
    let below = format!("/openapi/v1/{controller}/sites/{}", site.id);
    let mut out = Clients::default();
    let mut clients: BTreeMap<String, Device> = BTreeMap::new();
    let mut add = |row: &Value, is_online: bool| {
        let Some(mac) = sdk_json::text(row, "/mac").map(lower_mac) else { return };
        clients.entry(mac.clone()).or_insert_with(|| client(row, mac, is_online, &site.id));
    };
    let online = match site::each(host, &format!("{below}/clients"), |row| add(row, true)) {
        // Releases from 6.2 on ask for it by POST.
        Err(Fault::Unsupported(_)) => {
            let path = format!("/openapi/v2/{controller}/sites/{}/clients", site.id);
            each_asked(host, &path, |row| add(row, true))
        }
        other => other,
    };
    tolerate(online, &mut out)?;
    tolerate(site::each(host, &format!("{below}/insight/clients"), |row| add(row, false)), &mut out)?;
    out.all = clients.into_values().collect();
    Ok(out)
}

/// Shows each row of the list that is asked for with a body.
fn each_asked(host: &dyn Host, path: &str, mut show: impl FnMut(&Value)) -> Result<(), Fault> {
    let mut shown = 0;
    for number in 1..=PAGES_MAX {
        let body = json!({
            "filters": { "active": true }, "sorts": {}, "scope": 1, "page": number, "pageSize": ROWS_MAX,
        });
        let request = Request::new(Method::Post, path).with_json(&body);
        let answer = Omada.content(&host.send(request, Auth::session(SESSION))?)?;
        let page = sdk_json::items(&answer, "/data");
        page.iter().for_each(&mut show);
        shown += page.len();
        if page.is_empty() || shown as u64 >= sdk_json::number(&answer, "/totalRows").unwrap_or_default() {
            break;
        }
    }
    Ok(())
}

fn client(row: &Value, mac: String, is_online: bool, site: &str) -> Device {
    let name = ["/name", "/hostName"].iter().find_map(|pointer| sdk_json::text(row, pointer));
    let mut attributes = picked(row, &DESCRIBED);
    // The list of known clients has another word for it.
    if row.get("block") == Some(&json!(true)) {
        attributes.insert("blocked".to_owned(), json!(true));
    }
    Device {
        identity: mac.clone(),
        kind: "client".to_owned(),
        mac: Some(mac.clone()),
        status: if is_online { Status::Online } else { Status::Offline },
        addresses: addresses(row, &["ip", "ipv6List"]),
        site: Some(site.to_owned()),
        attributes: Value::Object(attributes).to_string(),
        measurements: Value::Object(picked(row, &MEASURED)).to_string(),
        ..Device::named(name.map_or(mac, str::to_owned))
    }
}

/// What is absent or not permitted makes the list less, and no failure.
fn tolerate(answer: Result<(), Fault>, out: &mut Clients) -> Result<(), Fault> {
    match answer {
        Err(Fault::Unsupported(_)) => Ok(()),
        Err(Fault::Denied(_)) => {
            out.is_denied = true;
            Ok(())
        }
        other => other,
    }
}
