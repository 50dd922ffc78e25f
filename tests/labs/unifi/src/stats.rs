//! What the controller knows of the present and the past: `stat/…`.

use serde_json::{Value, json};

use crate::clients;
use crate::console::Console;
use crate::devices;
use crate::reply::Refusal;
use crate::row::{Row, flag, moment, number, put, shown, text, texts, uuid};
use crate::store::GLOBAL;
use crate::v1::{self, Call, Data};

/// Answers a call below `stat`.
pub(crate) fn answer(own: &Console, call: &Call<'_>, parts: &[&str]) -> Data {
    let site = call.site;
    match parts {
        ["device"] => Ok(records(own, call)),
        ["device", mac] => {
            let device = devices::any(own, site, mac).ok_or_else(|| Refusal::new("UnknownDevice"))?;
            Ok(vec![Value::Object(devices::full(own, site, device))])
        }
        ["device-basic"] => {
            Ok(own.store.rows(site, "device").iter().map(|row| Value::Object(devices::basic(row))).collect())
        }
        ["sta"] => {
            Ok(clients::online(own, site).map(|row| Value::Object(clients::shown(own, site, row))).collect())
        }
        ["sta", mac] => {
            let client = clients::online(own, site).find(|row| text(row, "mac") == *mac);
            let client = client.ok_or_else(|| Refusal::new("UnknownStation"))?;
            Ok(vec![Value::Object(clients::shown(own, site, client))])
        }
        ["user", mac] => v1::known_client(own, site, mac),
        ["alluser"] => Ok(all_users(own, site)),
        ["health"] => Ok(health(own, site)),
        ["sysinfo"] => Ok(vec![system(own)]),
        ["ccode"] => Ok(country_rows()),
        ["current-channel"] => Ok(vec![json!({
            "channels_ng": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
            "channels_na": [36, 40, 44, 48, 52, 56, 60, 64, 100, 104],
            "channels_6e": [1, 5, 9, 13, 37], "code": "276", "key": "DE", "name": "Germany",
        })]),
        ["fwupdate", "latest-version"] => Ok(vec![json!({
            "version": "10.5.67", "url": "https://fw-download.example.com",
        })]),
        ["report", name] => report(own, call, name),
        ["event"] => events(own, call),
        ["ips", "event"] => Ok(Vec::new()),
        ["session"] => Ok(sessions(own, site)),
        ["guest"] => Ok(rows(own, site, "guest")),
        ["authorization"] => Ok(rows(own, site, "guest")),
        ["voucher"] => Ok(vouchers(own, call)),
        ["payment"] => Ok(Vec::new()),
        ["rogueap"] => Ok(vec![json!({
            "bssid": "02:00:5e:10:00:77", "essid": "Neighbour", "channel": 11, "radio": "ng", "rssi": 21,
            "signal": -74,
            "is_rogue": false, "security": "wpa2-psk", "last_seen": own.now / 1000,
            "ap_mac": "02:00:5e:00:01:11", "age": 12,
        })]),
        ["spectrum-scan", mac] => {
            let device =
                own.store.having(site, "device", "mac", mac).ok_or_else(|| Refusal::new("UnknownDevice"))?;
            Ok(vec![json!({
                "mac": mac, "spectrum_scanning": flag(device, "~scanning"),
                "spectrum_table": [{ "channel": 36, "width": 20, "utilization": 12, "interference": -92, "interference_type": [] }],
            })])
        }
        ["dpi" | "sitedpi"] => Ok(usage(own, call)),
        ["dashboard"] => Ok(points(own, call, 3_600_000)),
        ["portforward"] => Ok(forwarded(own, site)),
        _ => Err(Refusal::not_found()),
    }
}

fn country_rows() -> Vec<Value> {
    let rows = countries().into_iter();
    rows.map(|(code, name, key)| json!({ "code": code, "name": name, "key": key })).collect()
}

/// What the port forwards let in.
fn forwarded(own: &Console, site: &str) -> Vec<Value> {
    let row = |row: &Row| json!({ "_id": row["_id"], "name": text(row, "name"), "rx_bytes": 48_211, "rx_packets": 377 });
    own.store.rows(site, "portforward").iter().map(row).collect()
}

fn rows(own: &Console, site: &str, table: &str) -> Vec<Value> {
    own.store.rows(site, table).iter().map(|row| Value::Object(shown(row))).collect()
}

/// The records of the devices of the site, and of those that wait to be adopted.
fn records(own: &Console, call: &Call<'_>) -> Vec<Value> {
    let macs = texts(&call.body, "macs");
    let adopted = own.store.rows(call.site, "device").iter();
    let waiting = own.store.rows(GLOBAL, "pending").iter();
    let wanted = adopted.chain(waiting).filter(|row| macs.is_empty() || macs.contains(&text(row, "mac")));
    wanted.map(|row| Value::Object(devices::full(own, call.site, row))).collect()
}

fn all_users(own: &Console, site: &str) -> Vec<Value> {
    let shown = |user: &Row| {
        let mut row = Console::shown("user", user);
        put(&mut row, "last_seen", own.now / 1000);
        put(&mut row, "first_seen", own.now / 1000 - 864_000);
        put(&mut row, "duration", 86_400);
        Value::Object(row)
    };
    own.store.rows(site, "user").iter().map(shown).collect()
}

/// The subsystems of a site.
pub(crate) fn health(own: &Console, site: &str) -> Vec<Value> {
    let count = |kinds: &[&str]| {
        let all = own.store.rows(site, "device").iter().filter(|row| kinds.contains(&text(row, "type")));
        let states: Vec<bool> = all.map(|row| matches!(number(row, "state"), Some(1 | 5))).collect();
        (states.len(), states.iter().filter(|is_on| **is_on).count())
    };
    let status = |(all, on): (usize, usize)| match all - on {
        _ if all == 0 => "unknown",
        0 => "ok",
        _ => "warning",
    };
    let clients =
        |is_wired: bool| clients::online(own, site).filter(|row| flag(row, "is_wired") == is_wired).count();
    let (points, switches, gateways) = (count(&["uap"]), count(&["usw"]), count(&["udm", "ugw", "uxg"]));
    let subsystem = |name: &str, status: &str, more: Value| {
        let mut row = json!({ "subsystem": name, "status": status });
        if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) {
            row.extend(more);
        }
        row
    };
    vec![
        subsystem(
            "wlan",
            status(points),
            json!({
                "num_ap": points.0, "num_adopted": points.0, "num_disconnected": points.0 - points.1,
                "num_pending": 0,
                "num_user": clients(false), "num_guest": 0, "num_iot": 0, "num_disabled": 0,
                "tx_bytes-r": 41_000, "rx_bytes-r": 9_000,
            }),
        ),
        subsystem(
            "wan",
            status(gateways),
            json!({
                "num_gw": gateways.0, "num_adopted": gateways.0, "num_disconnected": gateways.0 - gateways.1,
                "num_pending": 0,
                "wan_ip": "203.0.113.17", "gw_version": "4.3.6", "gw_name": "gateway",
                "gw_mac": "02:00:5e:00:01:01",
                "isp_name": "Example Networks",
                "uptime_stats": { "WAN": { "availability": 99.9, "latency_average": 9 } },
            }),
        ),
        subsystem(
            "www",
            status(gateways),
            json!({
                "latency": 9, "uptime": 864_000, "drops": 0, "xput_up": 212.4, "xput_down": 486.2,
                "speedtest_status": "Success",
                "speedtest_lastrun": own.now / 1000 - 40_000, "speedtest_ping": 9,
            }),
        ),
        subsystem(
            "lan",
            status(switches),
            json!({
                "num_sw": switches.0, "num_adopted": switches.0, "num_disconnected": switches.0 - switches.1,
                "num_pending": 0,
                "num_user": clients(true), "num_guest": 0, "num_iot": 0,
            }),
        ),
        subsystem(
            "vpn",
            if gateways.0 == 0 { "unknown" } else { "ok" },
            json!({
                "remote_user_enabled": true, "remote_user_num_active": 0, "site_to_site_enabled": true,
                "site_to_site_num_active": 1,
            }),
        ),
    ]
}

fn system(own: &Console) -> Value {
    json!({
        "version": own.settings.version(), "build": format!("atag_{}", own.settings.version()),
        "name": "lab-console", "hostname": "lab-console",
        "timezone": "Europe/Berlin", "uptime": own.now / 1000 - own.ready_at.min(own.now) / 1000 + 864_000,
        "autobackup": true,
        "update_available": false, "update_downloaded": false, "https_port": 8443, "inform_port": 8080,
        "anonymous_controller_id": own.uuid(),
        "ubnt_device_type": if own.settings.is_unifi_os() { "UDMPRO" } else { "" }, "is_cloud_console": false,
        "console_display_version": "4.3.6", "unsupported_device_count": 0, "data_retention_days": 90,
        "ip_addrs": ["192.168.1.1"],
    })
}

/// Countries by their number, name and letters.
pub(crate) fn countries() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        ("40", "Austria", "AT"),
        ("56", "Belgium", "BE"),
        ("124", "Canada", "CA"),
        ("208", "Denmark", "DK"),
        ("250", "France", "FR"),
        ("276", "Germany", "DE"),
        ("528", "Netherlands", "NL"),
        ("756", "Switzerland", "CH"),
        ("826", "United Kingdom", "GB"),
        ("840", "United States", "US"),
    ]
}

/// Counters of the past: a point for each part of the time.
fn report(own: &Console, call: &Call<'_>, name: &str) -> Data {
    let (scale, of) = name.split_once('.').ok_or_else(Refusal::not_found)?;
    let part = match scale {
        "5minutes" => 300_000,
        "hourly" => 3_600_000,
        "daily" => 86_400_000,
        "monthly" => 2_592_000_000,
        "archive" if of == "speedtest" => return Ok(rows(own, call.site, "speedtest")),
        _ => return Err(Refusal::not_found()),
    };
    let mut points = points(own, call, part);
    let names: Vec<String> = match of {
        "site" => vec![String::new()],
        "gw" => macs_of(own, call.site, "udm"),
        "ap" => macs_of(own, call.site, "uap"),
        "user" => own.store.rows(call.site, "user").iter().map(|row| text(row, "mac").to_owned()).collect(),
        _ => return Err(Refusal::not_found()),
    };
    if of == "site" {
        return Ok(points);
    }
    let asked = v1::macs(call);
    let field = if of == "user" { "user" } else { of };
    let wanted = names.iter().filter(|name| asked.is_empty() || asked.contains(&name.as_str()));
    let of_each = wanted.flat_map(|name| {
        points
            .iter_mut()
            .map(|point| {
                point[field] = json!(name);
                point.clone()
            })
            .collect::<Vec<_>>()
    });
    Ok(of_each.collect())
}

fn macs_of(own: &Console, site: &str, kind: &str) -> Vec<String> {
    let rows = own.store.rows(site, "device").iter().filter(|row| text(row, "type") == kind);
    rows.map(|row| text(row, "mac").to_owned()).collect()
}

fn points(own: &Console, call: &Call<'_>, part: u64) -> Vec<Value> {
    let at = |name: &str| number(&call.body, name).and_then(|at| u64::try_from(at).ok());
    let end = at("end").unwrap_or(own.now).min(own.now);
    let start = at("start").unwrap_or(end.saturating_sub(part * 12)).max(end.saturating_sub(part * 288));
    let attributes = texts(&call.body, "attrs");
    let has = |name: &str| attributes.is_empty() || attributes.contains(&name);
    let times = (start / part..end / part).map(|place| place * part);
    let point = |time: u64| {
        let mut row = json!({ "time": time, "o": "site" });
        for (name, value) in [
            ("bytes", json!(91_000_000.0)),
            ("wan-tx_bytes", json!(28_000_000.0)),
            ("wan-rx_bytes", json!(63_000_000.0)),
            ("tx_bytes", json!(28_000_000.0)),
            ("rx_bytes", json!(63_000_000.0)),
            ("num_sta", json!(clients::online(own, call.site).count())),
            ("lan-num_sta", json!(9)),
            ("wlan-num_sta", json!(14)),
            ("mem", json!(38.1)),
            ("cpu", json!(7.4)),
        ] {
            if has(name) {
                row[name] = value;
            }
        }
        row
    };
    times.map(point).collect()
}

/// Events of the log, up to 9.x.
fn events(own: &Console, call: &Call<'_>) -> Data {
    if !own.settings.release.lists_events() {
        return Err(Refusal::not_found());
    }
    let hours = number(&call.body, "within").unwrap_or(720).unsigned_abs();
    let limit = number(&call.body, "_limit").unwrap_or(3000).unsigned_abs();
    let start = number(&call.body, "_start").unwrap_or_default().unsigned_abs();
    let earliest = own.now.saturating_sub(hours * 3_600_000);
    let is_young = |row: &&Row| number(row, "timestamp").is_some_and(|at| at.unsigned_abs() >= earliest);
    let logged = own.store.rows(call.site, "log").iter().rev().filter(is_young);
    let shown = logged.map(|row| event(own, call.site, row));
    Ok(shown.skip(usize::try_from(start).unwrap_or(0)).take(usize::try_from(limit).unwrap_or(3000)).collect())
}

fn event(own: &Console, site: &str, row: &Row) -> Value {
    let at = number(row, "timestamp").unwrap_or_default();
    json!({
        "_id": row["_id"], "key": format!("EVT_{}", text(row, "key")), "msg": text(row, "message"),
        "time": at,
        "datetime": moment(at.unsigned_abs()), "subsystem": "lan", "site_id": own.site_id(site),
        "is_admin": false,
    })
}

/// Alarms, up to 9.x.
pub(crate) fn alarms(own: &Console, call: &Call<'_>, counts: bool) -> Data {
    if !own.settings.release.lists_events() {
        return Err(Refusal::not_found());
    }
    let logged = own.store.rows(call.site, "log").iter().filter(|row| text(row, "severity") == "HIGH");
    let open: Vec<&Row> = logged.filter(|row| text(row, "status") == "NEW").collect();
    if counts {
        return Ok(vec![json!({ "archived": false, "count": open.len() })]);
    }
    let alarm = |row: &&Row| {
        let mut shown = event(own, call.site, row);
        shown["archived"] = json!(false);
        shown
    };
    Ok(open.iter().map(alarm).collect())
}

fn sessions(own: &Console, site: &str) -> Vec<Value> {
    let of_client = |client: &Row| {
        json!({
            "_id": uuid("session", text(client, "mac")).replace('-', "")[..24], "mac": text(client, "mac"),
            "hostname": text(client, "hostname"),
            "assoc_time": number(client, "~since").unwrap_or_default() / 1000, "duration": 3600,
            "ip": clients::address_of(own, site, client),
            "rx_bytes": 1_900_000, "tx_bytes": 7_400_000, "is_wired": flag(client, "is_wired"),
        })
    };
    own.store.rows(site, "sta").iter().map(of_client).collect()
}

fn vouchers(own: &Console, call: &Call<'_>) -> Vec<Value> {
    let made = number(&call.body, "create_time");
    let wanted = own
        .store
        .rows(call.site, "voucher")
        .iter()
        .filter(|row| made.is_none() || number(row, "create_time") == made);
    wanted.map(|row| Value::Object(shown(row))).collect()
}

fn usage(own: &Console, call: &Call<'_>) -> Vec<Value> {
    let by_category = text(&call.body, "type") == "by_cat";
    // They count for half an hour, or since they were cleared.
    let cleared = own.store.rows(call.site, "dpi_reset").last().and_then(|row| number(row, "time"));
    let seconds = cleared.map_or(1_800, |at| own.now.saturating_sub(at.unsigned_abs()) / 1000);
    let mut entry = json!({
        "rx_bytes": seconds * 40_000, "tx_bytes": seconds * 5_000,
        "rx_packets": seconds * 34, "tx_packets": seconds * 12,
    });
    entry["cat"] = json!(4);
    let list = if by_category { "by_cat" } else { "by_app" };
    if !by_category {
        entry["app"] = json!(112);
    }
    vec![json!({ list: [entry] })]
}
