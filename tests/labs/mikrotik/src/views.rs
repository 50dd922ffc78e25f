//! Lists and objects that are not stored: they show what runs.

use crate::access;
use crate::call::Call;
use crate::device::{Router, date_time};
use crate::dhcp;
use crate::duration;
use crate::interfaces;
use crate::packages;
use crate::refusal::Refusal;
use crate::routes;
use crate::store::{Record, shown_id};
use crate::{bridge, print};

fn record(pairs: &[(&str, &str)]) -> Record {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The rows of a list that no store holds.
pub(crate) fn rows(router: &Router, path: &str) -> Option<Vec<Record>> {
    Some(match path {
        "interface" => {
            let all = interfaces::all(&router.store);
            all.into_iter().map(|(menu, row)| interfaces::record(router, menu, row)).collect()
        }
        "log" => log(router),
        "system/history" => history(router),
        "system/script/job" => jobs(router),
        "system/package" => packages::rows(router),
        "system/health" => health(router),
        "system/resource/cpu" => (0..4).map(|cpu| cpu_row(router, cpu)).collect(),
        "user/active" => active(router),
        "routing/route" => all_routes(router),
        "ip/pool/used" => used(router),
        "ip/dns/cache" => cache(router),
        _ => return None,
    })
}

/// A row of a view is removed where that has a meaning.
pub(crate) fn remove(router: &mut Router, call: &Call, id: u64) -> Result<(), Refusal> {
    match call.path {
        "system/script/job" => router.jobs.remove(&id).map(drop).ok_or(Refusal::NoSuchItem),
        _ => Err(Refusal::failure("can not remove dynamic")),
    }
}

/// Rows that the router makes beside the stored ones.
pub(crate) fn more(router: &Router, path: &str) -> Vec<Record> {
    match path {
        "ip/route" | "ipv6/route" => {
            let mut rows = routes::connected(router, path);
            if path == "ip/route" && dhcp::is_client_bound(router) {
                rows.push(record(&[
                    (".id", "*80000000"),
                    ("dst-address", "0.0.0.0/0"),
                    ("gateway", "198.51.100.1"),
                    ("immediate-gw", "198.51.100.1%ether1"),
                    ("distance", "1"),
                    ("scope", "30"),
                    ("target-scope", "10"),
                    ("routing-table", "main"),
                    ("vrf-interface", "ether1"),
                    ("dynamic", "true"),
                    ("active", "true"),
                    ("inactive", "false"),
                    ("dhcp", "true"),
                ]));
            }
            rows
        }
        "interface/bridge/vlan" => bridge::dynamic_vlans(router),
        "ip/service" => connections(router),
        _ => Vec::new(),
    }
}

/// One row for the connection of the request itself; its id is new each time.
fn connections(router: &Router) -> Vec<Record> {
    let name = if router.settings.is_secure { "www-ssl" } else { "www" };
    let port = if router.settings.is_secure { "443" } else { "80" };
    let serial = router.unix % 0x1_0000 + 0x100;
    let mut row = record(&[
        ("name", name),
        ("port", port),
        ("proto", "tcp"),
        ("dynamic", "true"),
        ("connection", "true"),
        ("disabled", "false"),
        ("invalid", "false"),
    ]);
    row.insert(".id".to_owned(), shown_id(serial));
    row.insert("local".to_owned(), format!("192.168.88.1:{port}"));
    row.insert("remote".to_owned(), format!("{}:{}", access::client(), 40_000 + serial % 20_000));
    vec![row]
}

fn log(router: &Router) -> Vec<Record> {
    let lines = router.log.iter().map(|line| {
        let time = crate::device::time_text(line.unix);
        let pairs = [
            (".id", shown_id(line.id)),
            ("time", time),
            ("topics", line.topics.clone()),
            ("message", line.message.clone()),
            ("extra-info", line.extra.clone()),
            ("buffer", "memory".to_owned()),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    });
    lines.collect()
}

fn history(router: &Router) -> Vec<Record> {
    let actions = router.history.iter().rev().enumerate().map(|(at, action)| {
        let mut row = record(&[("action", &action.text), ("by", &action.by), ("policy", "write")]);
        row.insert(".id".to_owned(), shown_id(at as u64 + 1));
        row.insert("time".to_owned(), crate::device::time_text(action.unix));
        row.insert("undoable".to_owned(), (!action.is_undone).to_string());
        row.insert("redoable".to_owned(), action.is_undone.to_string());
        row
    });
    actions.collect()
}

fn jobs(router: &Router) -> Vec<Record> {
    let jobs = router.jobs.iter().map(|(id, (name, started))| {
        let mut row = record(&[("script", name), ("type", "scheduler")]);
        row.insert(".id".to_owned(), shown_id(*id));
        row.insert("started".to_owned(), crate::device::time_text(*started));
        row
    });
    jobs.collect()
}

/// Sensors of a board; a virtual router has none.
fn health(router: &Router) -> Vec<Record> {
    if router.settings.is_virtual {
        return Vec::new();
    }
    let values =
        [("cpu-temperature", "47", "C"), ("voltage", "23.9", "V"), ("board-temperature1", "38", "C")];
    let rows = values.iter().enumerate().map(|(at, (name, value, unit))| {
        let mut row = record(&[("name", name), ("value", value), ("type", unit)]);
        row.insert(".id".to_owned(), shown_id(at as u64 + 13));
        row
    });
    rows.collect()
}

fn load(router: &Router) -> u64 {
    3 + router.unix / 7 % 6
}

fn cpu_row(router: &Router, cpu: u64) -> Record {
    let mut row = record(&[("irq", "0"), ("disk", "0")]);
    row.insert(".id".to_owned(), shown_id(cpu));
    row.insert("cpu".to_owned(), format!("cpu{cpu}"));
    row.insert("load".to_owned(), (load(router) + cpu).to_string());
    row
}

/// Each login twice: the API stands behind REST.
fn active(router: &Router) -> Vec<Record> {
    let mut out = Vec::new();
    for (name, unix) in &router.logins {
        for via in ["rest-api", "api"] {
            let mut row = record(&[("name", name), ("via", via), ("radius", "false")]);
            let group =
                router.store.having("user", "name", name).map(|user| router.store.value(user, "group"));
            row.insert("group".to_owned(), group.unwrap_or_default());
            row.insert("when".to_owned(), crate::device::time_text(*unix));
            if via == "rest-api" {
                row.insert("address".to_owned(), access::client().to_string());
            }
            row.insert(".id".to_owned(), shown_id(out.len() as u64 + 1));
            out.push(row);
        }
    }
    out
}

/// The routes of both families.
fn all_routes(router: &Router) -> Vec<Record> {
    let who = access::Who::everything("view");
    let families = [("ip/route", "ip"), ("ipv6/route", "ip6")];
    let rows = families.into_iter().flat_map(|(path, family)| {
        let menu = crate::facts::Facts::get().menu(path);
        let rows = menu.map_or_else(Vec::new, |(path, menu)| print::records(router, path, menu, &who));
        rows.into_iter().map(move |mut row| {
            row.insert("afi".to_owned(), family.to_owned());
            row
        })
    });
    rows.collect()
}

/// Addresses of pools that are in use.
fn used(router: &Router) -> Vec<Record> {
    let leases = router.store.rows(dhcp::LEASES).iter().filter(|row| !row.text(dhcp::ENDS).is_empty());
    let rows = leases.map(|lease| {
        let server = lease.links("server").next().and_then(|(menu, id)| router.store.find(menu, id));
        let pool = server.map(|server| router.store.value(server, "address-pool")).unwrap_or_default();
        let mut row = record(&[("pool", &pool), ("address", lease.text("address")), ("owner", "DHCP")]);
        row.insert(".id".to_owned(), shown_id(lease.id));
        row.insert("info".to_owned(), lease.text("mac-address").to_owned());
        row
    });
    rows.collect()
}

fn cache(router: &Router) -> Vec<Record> {
    let names = router
        .store
        .rows("ip/dns/static")
        .iter()
        .filter(|row| !row.is_disabled() && !row.text("name").is_empty());
    let own = names.map(|row| {
        let data = ["address", "cname", "text", "ns"]
            .map(|field| row.text(field))
            .into_iter()
            .find(|text| !text.is_empty());
        let mut out = record(&[("name", row.text("name")), ("type", row.text("type")), ("static", "true")]);
        out.insert(".id".to_owned(), shown_id(row.id));
        out.insert("data".to_owned(), data.unwrap_or_default().to_owned());
        out.insert("ttl".to_owned(), "1d".to_owned());
        out
    });
    let is_flushed = router.resets.contains_key(&("ip/dns/cache", 0));
    let mut rows: Vec<Record> = own.collect();
    if !is_flushed {
        let learned = [
            (".id", "*1001"),
            ("name", "update.example.net"),
            ("type", "A"),
            ("data", "203.0.113.80"),
            ("ttl", "5m"),
            ("static", "false"),
        ];
        rows.push(record(&learned));
    }
    rows
}

/// What objects show beside their settings.
pub(crate) fn object(router: &Router, path: &str, out: &mut Record) {
    let mut put = |name: &str, value: &str| drop(out.insert(name.to_owned(), value.to_owned()));
    match path {
        "system/resource" => resource(router, out),
        "system/clock" => {
            let now = date_time(router.unix);
            put("date", &now.format("%Y-%m-%d").to_string());
            put("time", &now.format("%H:%M:%S").to_string());
            put("gmt-offset", "+00:00");
            put("dst-active", "false");
        }
        "system/package/update" => packages::fill_update(router, out),
        "system/routerboard" => routerboard(router, out),
        "system/license" => {
            put("software-id", "LAB0-0001");
            put("nlevel", "6");
            put("features", "");
        }
        "system/device-mode" => {
            put("mode", "advanced");
            put("attempt-count", "0");
        }
        "ip/dns" => {
            put("dynamic-servers", if dhcp::is_client_bound(router) { "198.51.100.1" } else { "" });
            put("cache-used", "41KiB");
        }
        "ip/firewall/connection/tracking" => {
            put("total-entries", &router.store.rows("ip/firewall/connection").len().to_string());
            put("max-entries", "1048576");
            put("total-ip4-entries", &router.store.rows("ip/firewall/connection").len().to_string());
        }
        "ip/settings" => put("ipv4-fast-path-active", "true"),
        "system/ntp/client" => {
            let is_on = router.store.setting(path, "enabled") == "true";
            put("status", if is_on { "synchronized" } else { "stopped" });
        }
        "snmp" => put("engine-id", "80003a8c04"),
        "ip/cloud" => put("status", "updated"),
        "tool/e-mail" => put("last-status", "init"),
        _ => {}
    }
}

fn resource(router: &Router, out: &mut Record) {
    let mut put = |name: &str, value: String| drop(out.insert(name.to_owned(), value));
    let board = if router.settings.is_virtual { "CHR" } else { "C53UiG+5HPaxD2HPaxD" };
    put("uptime", duration::show_secs(router.uptime_secs()));
    put("version", format!("{} (stable)", router.version()));
    put("build-time", "2026-01-14 08:00:00".to_owned());
    put("factory-software", "7.12".to_owned());
    put("free-memory", (620_000_000 - router.uptime_secs() % 4_096 * 1_024).to_string());
    put("total-memory", "1073741824".to_owned());
    put("cpu", if router.settings.is_virtual { "QEMU" } else { "ARM64" }.to_owned());
    put("cpu-count", "4".to_owned());
    put("cpu-frequency", "864".to_owned());
    put("cpu-load", load(router).to_string());
    put("free-hdd-space", "91000832".to_owned());
    put("total-hdd-space", "134217728".to_owned());
    put("write-sect-since-reboot", "1204".to_owned());
    put("write-sect-total", "48210".to_owned());
    put("bad-blocks", "0".to_owned());
    put("architecture-name", if router.settings.is_virtual { "x86_64" } else { "arm64" }.to_owned());
    put("board-name", board.to_owned());
    put("platform", "MikroTik".to_owned());
}

fn routerboard(router: &Router, out: &mut Record) {
    let upgraded = router.store.setting("system/routerboard", "upgraded-to");
    let current = if upgraded.is_empty() { "7.15.3" } else { upgraded };
    let version = router.version();
    let pairs = [
        ("routerboard", "true"),
        ("board-name", "hAP ax^3"),
        ("model", "C53UiG+5HPaxD2HPaxD"),
        ("serial-number", "HLAB0000001"),
        ("firmware-type", "ipq6000"),
        ("factory-firmware", "7.12"),
        ("current-firmware", current),
        ("upgrade-firmware", &version),
    ];
    out.extend(record(&pairs));
}
