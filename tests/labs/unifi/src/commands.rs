//! Commands: `cmd/{manager}`. Each one answers at once; what it starts goes on.

use heddle_lab::Context;
use serde_json::{Value, json};

use crate::clients::{self, Allowance};
use crate::console::{Console, duration};
use crate::devices;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, moment, number, put, row, text, texts};
use crate::store::GLOBAL;
use crate::timeline::Event;
use crate::v1::{Call, Data, macs, need};
use crate::{hotspot, sites};

/// Carries out a command of a manager.
pub(crate) fn answer(
    own: &mut Console,
    call: &Call<'_>,
    manager: &str,
    command: &str,
    context: &mut Context,
) -> Data {
    match manager {
        "devmgr" => device(own, call, command, context),
        "sitemgr" => sites::command(own, call, command),
        "stamgr" => client(own, call, command),
        "hotspot" => hotspot::command(own, call, command),
        "evtmgr" => alarms(own, call, command),
        "firmware" if matches!(command, "list-available" | "list-cached") => Ok(firmware(own, call.site)),
        "productinfo" if command == "check-firmware-update" => Ok(vec![json!({ "result": true })]),
        "stat" if command == "reset-dpi" => {
            let at = json!({ "time": own.now });
            own.store.add(call.site, "dpi_reset", row(at));
            Ok(Vec::new())
        }
        "firewall" if command == "reorder" => reorder(own, call),
        "system" if command == "reboot" && !own.settings.is_unifi_os() => {
            own.ask_restart();
            Ok(Vec::new())
        }
        _ => Err(Refusal::new("UnknownCommand")),
    }
}

fn known(own: &Console, site: &str, mac: &str) -> Outcome<Row> {
    own.store.having(site, "device", "mac", mac).cloned().ok_or_else(|| Refusal::new("UnknownDevice"))
}

fn device(own: &mut Console, call: &Call<'_>, command: &str, context: &mut Context) -> Data {
    let site = call.site;
    let named: Vec<String> = macs(call).into_iter().map(str::to_owned).collect();
    match command {
        "adopt" | "adv-adopt" => return adopt(own, call, context),
        "speedtest" | "speedtest-status" => return speedtest(own, call, command),
        "upgrade-all" => {
            upgrade_all(own, call, context);
            return Ok(Vec::new());
        }
        "set-rollupgrade" => {
            let kinds: Vec<&str> = call.list.iter().filter_map(Value::as_str).collect();
            roll(own, site, &kinds, true);
            return Ok(Vec::new());
        }
        "unset-rollupgrade" => {
            roll(own, site, &[], false);
            return Ok(Vec::new());
        }
        _ if named.is_empty() => return Err(Refusal::invalid("mac", "([0-9a-f]{2}:){5}[0-9a-f]{2}")),
        _ => {}
    }
    for mac in &named {
        let device = known(own, site, mac)?;
        match command {
            "restart" => restart(own, site, &device),
            "force-provision" => own.provision_one(site, mac),
            "set-locate" | "unset-locate" => {
                if let Some(device) = own.store.having_mut(site, "device", "mac", mac) {
                    put(device, "~locating", command == "set-locate");
                }
                own.tell_device(site, mac);
            }
            "power-cycle" => {
                let port = number(&call.body, "port_idx")
                    .ok_or_else(|| Refusal::invalid("port_idx", "[1-9][0-9]?"))?;
                devices::power_cycle(own, site, mac, port)?;
            }
            "upgrade" | "upgrade-external" => upgrade(own, call, &device, context)?,
            "migrate" => {
                let url = need(call, "inform_url")?;
                let host =
                    url.split("//").nth(1).and_then(|rest| rest.split([':', '/']).next()).unwrap_or_default();
                if host.parse::<std::net::IpAddr>().is_err() {
                    return Err(Refusal::new("InvalidInformUrl").with_message("invalid inform_ip"));
                }
                own.plan(site, mac, &[(1, Event::State(0))]);
            }
            // It stays, if it has not gone yet.
            "cancel-migrate" => own.timeline.forget(mac),
            "spectrum-scan" => scan(own, site, &device)?,
            _ => return Err(Refusal::new("UnknownCommand")),
        }
    }
    Ok(Vec::new())
}

/// A gateway that the application runs on takes it along.
pub(crate) fn restart(own: &mut Console, site: &str, device: &Row) {
    own.reboot_device(site, text(device, "mac"));
    if devices::is_gateway(device) && own.settings.is_unifi_os() && site == "default" {
        own.ask_restart();
    }
}

fn adopt(own: &mut Console, call: &Call<'_>, context: &mut Context) -> Data {
    let fails = context.fault("adopt_fails", call.request).is_some();
    for mac in macs(call) {
        adopt_one(own, call.site, mac, fails)?;
    }
    Ok(Vec::new())
}

/// Starts the adoption of a device that waits.
pub(crate) fn adopt_one(own: &mut Console, site: &str, mac: &str, fails: bool) -> Outcome<()> {
    let is_adopted = own.store.having(site, "device", "mac", mac).is_some();
    if is_adopted {
        return Err(Refusal::new("CannotAdopt"));
    }
    let Some(pending) = own.store.having(GLOBAL, "pending", "mac", mac) else {
        return Err(Refusal::new("CanNotAdoptUnknownDevice"));
    };
    // One that reported a moment ago is not ready yet.
    let seen = number(pending, "~seen").unwrap_or_default().unsigned_abs();
    if own.now < seen + duration(own.settings.step) * 2 || !own.adopt(site, mac, fails) {
        return Err(Refusal::new("CannotAdopt"));
    }
    Ok(())
}

fn upgrade(own: &mut Console, call: &Call<'_>, device: &Row, context: &mut Context) -> Outcome<()> {
    let mac = text(device, "mac");
    let is_external = call.body.contains_key("url");
    if !device.contains_key("~next") && !is_external {
        return Err(Refusal::new("NoUpgradeAvailable"));
    }
    if number(device, "state") != Some(1) {
        return Err(Refusal::new("DeviceBusy"));
    }
    let fails = context.fault("upgrade_fails", call.request).is_some();
    if is_external && let Some(device) = own.store.having_mut(call.site, "device", "mac", mac) {
        let version = text(&call.body, "url").rsplit('/').nth(1).unwrap_or("8.0.1").to_owned();
        put(device, "~next", version);
    }
    start_upgrade(own, call.site, device, fails);
    Ok(())
}

fn start_upgrade(own: &mut Console, site: &str, device: &Row, fails: bool) {
    let mac = text(device, "mac").to_owned();
    if let Some(device) = own.store.having_mut(site, "device", "mac", &mac) {
        put(device, "state", 4);
    }
    own.tell_device(site, &mac);
    let mut events = vec![(8, Event::State(0)), (12, Event::Booted)];
    if !fails {
        events.insert(1, (8, Event::Upgraded));
    }
    own.plan(site, &mac, &events);
    if devices::is_gateway(device) && own.settings.is_unifi_os() && site == "default" {
        own.ask_restart();
    }
}

fn upgrade_all(own: &mut Console, call: &Call<'_>, context: &mut Context) {
    let kind = text(&call.body, "type");
    let fails = context.fault("upgrade_fails", call.request).is_some();
    let rows = own.store.rows(call.site, "device").iter();
    let meant: Vec<Row> = rows
        .filter(|row| (kind.is_empty() || text(row, "type") == kind) && row.contains_key("~next"))
        .filter(|row| number(row, "state") == Some(1))
        .cloned()
        .collect();
    meant.iter().for_each(|device| start_upgrade(own, call.site, device, fails));
}

fn roll(own: &mut Console, site: &str, kinds: &[&str], is_on: bool) {
    for device in own.store.rows_mut(site, "device") {
        let is_meant = kinds.is_empty() || kinds.contains(&text(device, "type"));
        put(device, "~rolling", is_on && is_meant && device.contains_key("~next"));
    }
    // One after the other.
    let rows = own.store.rows(site, "device").iter().filter(|row| flag(row, "~rolling"));
    let waiting: Vec<String> = rows.map(|row| text(row, "mac").to_owned()).collect();
    for (mac, place) in waiting.iter().zip(0..) {
        let start = place * 14;
        own.plan(
            site,
            mac,
            &[(start, Event::State(4)), (start + 8, Event::Upgraded), (start + 12, Event::Booted)],
        );
    }
    if !is_on {
        let rows = own.store.rows(site, "device").iter().filter(|row| number(row, "state") == Some(1));
        let idle: Vec<String> = rows.map(|row| text(row, "mac").to_owned()).collect();
        idle.iter().for_each(|mac| own.timeline.forget(mac));
    }
}

fn scan(own: &mut Console, site: &str, device: &Row) -> Outcome<()> {
    if text(device, "type") != "uap" {
        return Err(Refusal::new("SpectrumScanNotSupported"));
    }
    let mac = text(device, "mac").to_owned();
    if let Some(device) = own.store.having_mut(site, "device", "mac", &mac) {
        put(device, "~scanning", true);
    }
    own.plan(site, &mac, &[(5, Event::Scanned)]);
    Ok(())
}

fn speedtest(own: &mut Console, call: &Call<'_>, command: &str) -> Data {
    if !own.has_gateway(call.site) {
        return Err(Refusal::new("SpeedTestNotSupported"));
    }
    let running = own
        .store
        .rows(call.site, "speedtest_run")
        .last()
        .and_then(|row| number(row, "until"))
        .unwrap_or_default();
    let is_running = own.now < running.unsigned_abs();
    if command == "speedtest" {
        let until = own.now + duration(own.settings.step) * 5;
        own.store.add(call.site, "speedtest_run", row(json!({ "until": until })));
        own.plan(call.site, "", &[(5, Event::SpeedTested)]);
        return Ok(vec![json!({ "date": moment(own.now), "started": own.now })]);
    }
    let last = own.store.rows(call.site, "speedtest").last().cloned().unwrap_or_default();
    let mut status = crate::row::shown(&last);
    put(&mut status, "running", is_running);
    put(&mut status, "status_summary", if is_running { 1 } else { 2 });
    Ok(vec![Value::Object(status)])
}

fn client(own: &mut Console, call: &Call<'_>, command: &str) -> Data {
    let site = call.site;
    match command {
        "block-sta" => Ok(vec![Value::Object(clients::block(own, site, need(call, "mac")?, true)?)]),
        "unblock-sta" => Ok(vec![Value::Object(clients::block(own, site, need(call, "mac")?, false)?)]),
        "kick-sta" => clients::kick(own, site, need(call, "mac")?).map(|()| Vec::new()),
        "forget-sta" => Ok(clients::forget(own, site, &texts(&call.body, "macs"))),
        "authorize-guest" => {
            let mac = need(call, "mac")?;
            let allowance = Allowance {
                minutes: number(&call.body, "minutes").unwrap_or(480),
                up: number(&call.body, "up"),
                down: number(&call.body, "down"),
                megabytes: number(&call.body, "bytes"),
                method: "API",
            };
            let (guest, _) = clients::authorize(own, site, mac, &allowance);
            Ok(vec![Value::Object(crate::row::shown(&guest))])
        }
        "unauthorize-guest" => {
            clients::revoke(own, site, need(call, "mac")?);
            Ok(Vec::new())
        }
        _ => Err(Refusal::new("UnknownCommand")),
    }
}

fn alarms(own: &mut Console, call: &Call<'_>, command: &str) -> Data {
    if !own.settings.release.lists_events() {
        return Err(Refusal::not_found());
    }
    let id = match command {
        "archive-all-alarms" => None,
        "archive-alarm" => Some(need(call, "_id")?),
        _ => return Err(Refusal::new("UnknownCommand")),
    };
    for row in own.store.rows_mut(call.site, "log") {
        if id.is_none_or(|id| text(row, "_id") == id) {
            put(row, "status", "ARCHIVED");
        }
    }
    Ok(Vec::new())
}

/// Firmware that can be had for the models of the site.
fn firmware(own: &Console, site: &str) -> Vec<Value> {
    let rows = own.store.rows(site, "device").iter().filter(|row| row.contains_key("~next"));
    let of_device = |row: &Row| {
        json!({
            "device": text(row, "model"), "version": text(row, "~next"), "release": "release",
            "size": 31_457_280, "status": "available",
        })
    };
    rows.map(of_device).collect()
}

/// Rules of the older firewall change places; their numbers come as texts.
fn reorder(own: &mut Console, call: &Call<'_>) -> Data {
    let rules = crate::row::objects(&call.body, "rules").into_iter().cloned().collect::<Vec<_>>();
    for rule in &rules {
        let index = number(rule, "rule_index")
            .ok_or_else(|| Refusal::invalid("rule_index", "2[0-9]{3,4}|4[0-9]{3,4}"))?;
        let stored =
            own.store.find_mut(call.site, "firewallrule", text(rule, "_id")).ok_or_else(Refusal::no_id)?;
        put(stored, "rule_index", index);
    }
    own.provision(call.site, &["udm"]);
    Ok(Vec::new())
}
