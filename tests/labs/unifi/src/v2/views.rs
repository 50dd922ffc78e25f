//! What the second interface only reads, and small writes that are no collection.

use serde_json::{Value, json};

use crate::clients;
use crate::console::Console;
use crate::devices::{self, Hardware};
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, number, object, put, shown, text, texts, uuid};
use crate::rules::needs_gateway;
use crate::v2::Call;

/// Features that a site tells, and whether they need a gateway.
const FEATURES: [(&str, bool); 12] = [
    ("NAT", true),
    ("BGP", true),
    ("OSPF", true),
    ("IPS", true),
    ("SPEED_TEST", true),
    ("ZONE_BASED_FIREWALL", true),
    ("TRAFFIC_ROUTES", true),
    ("WIREGUARD_SERVER", true),
    ("QOS_RULES", true),
    ("STATIC_DNS", true),
    ("WIFI_6E", false),
    ("PORT_ISOLATION", false),
];

/// Answers, when the path is one of these views.
pub(super) fn answer(own: &mut Console, call: &Call<'_>, parts: &[&str]) -> Option<Outcome<Value>> {
    let site = call.site;
    let method = call.request.method.as_str();
    Some(match (method, parts) {
        ("GET", ["active-leases"]) => needs_gateway(own, site, "Dhcp").map(|()| leases(own, site)),
        ("GET", ["clients", "active"]) => Ok(clients_active(own, site)),
        ("GET", ["clients", "history"]) => Ok(clients_known(own, site)),
        ("GET", ["described-features"]) => Ok(features(own, site)),
        ("GET", ["device"]) => Ok(device_view(own, site)),
        ("GET", ["device-tags"]) => Ok(tags(own, site)),
        ("POST", ["device-tags", "device-tag-assignment", mac]) => assign(own, call, mac),
        ("GET", ["magicsitetositevpn", "configs"]) => Ok(own.store.rows(site, "magic_tunnel").iter().map(shown).map(Value::Object).collect()),
        ("GET", ["vpn", "connections"]) => needs_gateway(own, site, "Vpn").map(|()| json!({
            "connections": [],
        })),
        ("GET", ["models"]) => Ok(models()),
        ("GET", ["ports", "port-anomalies"]) => Ok(json!([])),
        ("GET", ["topology"]) => Ok(topology(own, site)),
        ("GET", ["lan", "enriched-configuration"]) => Ok(lan(own, site)),
        ("GET", ["wan", "enriched-configuration"]) => needs_gateway(own, site, "Wan").map(|()| wan(own, site)),
        ("GET", ["wan", "load-balancing", "configuration"]) => {
            needs_gateway(own, site, "Wan").map(|()| json!({
                "mode": "FAILOVER_ONLY", "wan_interfaces": wan_names(own, site),
            }))
        }
        ("GET", ["wan", "load-balancing", "status"]) => needs_gateway(own, site, "Wan").map(|()| {
            json!({ "wan_interfaces": [{ "name": "WAN", "state": "ACTIVE", "wan_networkgroup": "WAN" }] })
        }),
        ("GET", ["wan", name, "isp-status"]) => needs_gateway(own, site, "Wan").map(|()| {
            json!({ "wan": name, "isp": "Example Networks", "status": "OK", "outages": [] })
        }),
        ("GET", ["wan-slas"]) => needs_gateway(own, site, "Wan").map(|()| json!([])),
        ("POST", ["system-log", class]) => Ok(system_log(own, call, class)),
        ("GET", ["system-log", "count"]) => Ok(json!({ "count": own.store.rows(site, "log").len() })),
        ("POST", ["traffic-flows"]) => needs_gateway(own, site, "TrafficFlow").map(|()| {
            json!({
                "data": [], "has_next": false, "page_number": 0, "total_element_count": 0,
                "total_page_count": 1,
            })
        }),
        ("GET", ["speedtest"]) => Ok(json!(own.store.rows(site, "speedtest").iter().map(shown).collect::<Vec<_>>())),
        ("PUT" | "DELETE", ["station", mac, "fingerprint_override"]) => fingerprint(own, call, mac),
        _ => return None,
    })
}

/// What is known of kinds of clients.
pub(super) fn fingerprints() -> Value {
    json!({
        "dev_ids": { "1": { "name": "Phone", "dev_type_id": "6" }, "2": { "name": "Printer", "dev_type_id": "11" } },
        "dev_type_ids": { "6": "Smartphone", "11": "Printer" }, "family_ids": {}, "os_name_ids": {},
        "vendor_ids": {},
    })
}

fn leases(own: &Console, site: &str) -> Value {
    let lease = |client: &Row| {
        let network = clients::network_of(own, site, client)?;
        let known = own.store.having(site, "user", "mac", text(client, "mac"));
        let seconds = number(network, "dhcpd_leasetime").unwrap_or(86_400);
        flag(network, "dhcpd_enabled").then(|| json!({
            "mac": text(client, "mac"), "ip": clients::address_of(own, site, client),
            "hostname": text(client, "hostname"),
            "display_name": known.map(|user| text(user, "name")).filter(|name| !name.is_empty()).unwrap_or(text(client, "hostname")),
            "network_id": network["_id"],
            "lease_expiration_time": own.now / 1000 + seconds.unsigned_abs() / 2,
            "use_fixedip": known.is_some_and(|user| flag(user, "use_fixedip")), "status": "online",
        }))
    };
    let rows: Vec<Value> = clients::online(own, site).filter_map(lease).collect();
    json!({ "dhcp_lease_info": rows })
}

fn clients_active(own: &Console, site: &str) -> Value {
    let one = |client: &Row| {
        let mut row = clients::shown(own, site, client);
        let name = Some(text(&row, "name"))
            .filter(|name| !name.is_empty())
            .unwrap_or(text(client, "hostname"))
            .to_owned();
        put(&mut row, "display_name", name);
        put(&mut row, "type", if flag(client, "is_wired") { "WIRED" } else { "WIRELESS" });
        put(&mut row, "status", "online");
        put(&mut row, "id", text(client, "mac"));
        Value::Object(row)
    };
    Value::Array(clients::online(own, site).map(one).collect())
}

fn clients_known(own: &Console, site: &str) -> Value {
    let is_online = |mac: &str| clients::online(own, site).any(|client| text(client, "mac") == mac);
    let rows = own.store.rows(site, "user").iter().filter(|user| !is_online(text(user, "mac"))).map(|user| {
        let mut row = Console::shown("user", user);
        put(&mut row, "status", "offline");
        put(&mut row, "last_seen", own.now / 1000 - 3600);
        Value::Object(row)
    });
    Value::Array(rows.collect())
}

fn features(own: &Console, site: &str) -> Value {
    let has_gateway = own.has_gateway(site);
    let rows = FEATURES.iter().map(|(name, needs)| {
        let has = (!needs || has_gateway) && (*name != "ZONE_BASED_FIREWALL" || own.settings.has_zones);
        json!({ "name": name, "feature_exists": has })
    });
    Value::Array(rows.collect())
}

fn device_view(own: &Console, site: &str) -> Value {
    let rows = own.store.rows(site, "device").iter().map(|row| Value::Object(devices::full(own, site, row)));
    json!({ "network_devices": rows.collect::<Vec<_>>(), "access_devices": [], "protect_devices": [] })
}

fn tags(own: &Console, site: &str) -> Value {
    let rows = own.store.rows(site, "device_tag").iter().map(|tag| {
        json!({ "id": tag["_id"], "name": text(tag, "name"), "device_macs": texts(tag, "device_macs") })
    });
    Value::Array(rows.collect())
}

fn assign(own: &mut Console, call: &Call<'_>, mac: &str) -> Outcome<Value> {
    let body = call.fields()?;
    let lists = ["additions", "removals"].map(|name| texts(body, name));
    for (ids, adds) in lists.iter().zip([true, false]) {
        for id in ids {
            let tag = own.store.find_mut(call.site, "device_tag", id).ok_or_else(Refusal::not_found)?;
            let mut macs: Vec<String> =
                texts(tag, "device_macs").into_iter().filter(|own| *own != mac).map(str::to_owned).collect();
            if adds {
                macs.push(mac.to_owned());
            }
            put(tag, "device_macs", macs);
        }
    }
    Ok(tags(own, call.site))
}

fn models() -> Value {
    let rows =
        Hardware::all().iter().map(|own| json!({ "model": own.model, "type": own.kind, "name": own.name }));
    json!({ "models": rows.collect::<Vec<_>>() })
}

/// Devices and clients, and the links between them with their ports.
fn topology(own: &Console, site: &str) -> Value {
    let mut vertices = Vec::new();
    let mut edges = Vec::new();
    for device in own.store.rows(site, "device") {
        let mac = text(device, "mac");
        vertices.push(json!({
            "mac": mac, "type": "DEVICE", "name": text(device, "name"), "model": text(device, "model"),
            "state": number(device, "state"),
            "unifiDevice": true,
        }));
        if let Some(uplink) = object(device, "~uplink") {
            let is_wireless = flag(uplink, "wireless");
            edges.push(json!({
                "uplinkMac": text(uplink, "mac"), "downlinkMac": mac,
                "type": if is_wireless { "WIRELESS" } else { "WIRED" },
                "uplinkPortNumber": number(uplink, "remote_port"),
                "downlinkPortNumber": number(uplink, "port"),
                "rateMbps": number(uplink, "speed").unwrap_or(1000), "duplex": "FULL_DUPLEX",
            }));
        }
    }
    for client in clients::online(own, site) {
        let is_wired = flag(client, "is_wired");
        vertices.push(json!({
            "mac": text(client, "mac"), "type": "CLIENT", "name": text(client, "hostname"),
            "unifiDevice": false,
        }));
        let mut edge = json!({
            "uplinkMac": if is_wired { text(client, "sw_mac") } else { text(client, "ap_mac") },
            "downlinkMac": text(client, "mac"),
            "type": if is_wired { "WIRED" } else { "WIRELESS" },
        });
        if is_wired {
            edge["uplinkPortNumber"] = json!(number(client, "sw_port"));
        } else {
            edge["essid"] = json!(text(client, "essid"));
        }
        edges.push(edge);
    }
    json!({ "vertices": vertices, "edges": edges, "has_unknown_switch": false })
}

fn lan(own: &Console, site: &str) -> Value {
    let rows = own.store.rows(site, "networkconf").iter();
    let lans = rows.filter(|row| matches!(text(row, "purpose"), "corporate" | "guest" | "vlan-only"));
    let one = |row: &Row| {
        json!({
            "configuration": Console::shown("networkconf", row),
            "statistics": { "active_clients": clients::count_of(own, site, row) },
            "details": { "dhcp_active_leases": 0 },
        })
    };
    Value::Array(lans.map(one).collect())
}

fn wan(own: &Console, site: &str) -> Value {
    let rows = own.store.rows(site, "networkconf").iter().filter(|row| text(row, "purpose") == "wan");
    let one = |row: &Row| {
        json!({
            "configuration": Console::shown("networkconf", row),
            "details": { "service_provider": { "name": "Example Networks", "city": "Berlin" } },
            "statistics": { "uptime_percentage": 99.9, "peak_usage": { "max_rx_bytes-r": 51_000_000, "max_tx_bytes-r": 22_000_000 } },
        })
    };
    Value::Array(rows.map(one).collect())
}

fn wan_names(own: &Console, site: &str) -> Vec<Value> {
    let rows = own.store.rows(site, "networkconf").iter().filter(|row| text(row, "purpose") == "wan");
    rows.map(|row| json!({ "name": text(row, "name"), "wan_networkgroup": text(row, "wan_networkgroup") }))
        .collect()
}

/// Lines of the log, newest first, in pages.
fn system_log(own: &Console, call: &Call<'_>, class: &str) -> Value {
    let body = call.body.as_object().cloned().unwrap_or_default();
    let from = number(&body, "timestampFrom").unwrap_or(0);
    let to = number(&body, "timestampTo").unwrap_or(i64::MAX);
    let word = text(&body, "searchText").to_lowercase();
    let categories = texts(&body, "categories");
    let severities = texts(&body, "severities");
    let category = match class {
        "device-alert" | "update-alert" => "DEVICES",
        "client-alert" => "CLIENT_DEVICES",
        "admin-activity" => "ADMIN_ACTIVITY",
        "threat-alert" => "SECURITY",
        _ => "",
    };
    let fits = |row: &&Row| {
        let at = number(row, "timestamp").unwrap_or_default();
        (from..=to).contains(&at)
            && (category.is_empty() || text(row, "category") == category)
            && (class != "critical" || text(row, "severity") == "HIGH")
            && (categories.is_empty() || categories.contains(&text(row, "category")))
            && (severities.is_empty() || severities.contains(&text(row, "severity")))
            && (word.is_empty() || text(row, "message").to_lowercase().contains(&word))
    };
    let size =
        number(&body, "pageSize").and_then(|size| usize::try_from(size).ok()).unwrap_or(100).clamp(1, 1000);
    let page = number(&body, "pageNumber").and_then(|page| usize::try_from(page).ok()).unwrap_or(0);
    let found: Vec<Value> = own
        .store
        .rows(call.site, "log")
        .iter()
        .rev()
        .filter(fits)
        .map(|row| {
            let mut row = shown(row);
            let id = row.remove("_id").unwrap_or_default();
            put(&mut row, "id", id);
            Value::Object(row)
        })
        .collect();
    let total = found.len();
    let shown: Vec<Value> = found.into_iter().skip(page.saturating_mul(size)).take(size).collect();
    json!({
        "data": shown, "page_number": page, "total_element_count": total,
        "total_page_count": total.div_ceil(size),
    })
}

fn fingerprint(own: &mut Console, call: &Call<'_>, mac: &str) -> Outcome<Value> {
    let user = own.store.having_mut(call.site, "user", "mac", mac).ok_or_else(Refusal::not_found)?;
    if call.request.method == "PUT" {
        put(user, "dev_id_override", call.body["dev_id_override"].clone());
        put(user, "fingerprint_override", true);
    } else {
        user.remove("dev_id_override");
        put(user, "fingerprint_override", false);
    }
    Ok(json!({ "mac": mac, "id": uuid("fingerprint", mac) }))
}
