//! What other readings tell of the objects of a page, and clients, which several tables know.

use heddle_sdk::{Fault, Host, ModelObject, ModelPage, Origin, crud, json as sdk_json};
use serde_json::{Map, Value, json};

use super::text;
use crate::answer::{ask, read_if_there};
use crate::{clients, devices};

/// Kinds that do not belong to the router as a device.
const APART: [&str; 2] = ["client", "address-group"];
/// Fields with the age of something, and those that the moment is put into.
const AGES: [(&str, &str, &str); 2] =
    [("vpn-peer", "last-handshake", "last_handshake_at"), ("vpn-session", "uptime", "connected_at")];
/// The same for times in the router's own time zone.
const TIMES: [(&str, &str, &str); 3] = [
    ("certificate", "invalid-before", "not_before"),
    ("certificate", "invalid-after", "not_after"),
    ("backup", "last-modified", "created_at"),
];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const SECS_OF_DAY: i64 = 86_400;

/// Completes the objects of a page.
pub(super) fn complete(host: &dyn Host, kind: &str, objects: &mut Vec<ModelObject>) -> Result<(), Fault> {
    match kind {
        "system" => each(objects, &hottest(host)?),
        "interface" | "port" => speeds(host, kind, objects)?,
        "radio" => radios(host, objects)?,
        "dhcp-lease" => {
            let leases = read_if_there(host, "ip/dhcp-server/lease")?;
            moments(objects, &leases, |row| {
                let left = text(row, "expires-after").and_then(crud::seconds)?;
                Some(("ends_at", ago(host, -left)))
            });
        }
        "firewall-rule" => {
            for object in objects.iter_mut() {
                let native = object.native.as_ref().map(|native| native.kind.as_str());
                let version = if native == Some("firewall.ipv6-filter") { "6" } else { "4" };
                with(object, |fields| drop(fields.insert("ip_version".to_owned(), json!(version))));
            }
        }
        "address-group" => super::filter::grouped(objects),
        _ => {}
    }
    for (_, age, field) in AGES.iter().filter(|(known, ..)| *known == kind) {
        let menu = if kind == "vpn-peer" { "interface/wireguard/peers" } else { "ppp/active" };
        let rows = read_if_there(host, menu)?;
        moments(objects, &rows, |row| {
            let secs = text(row, age).and_then(crud::seconds)?;
            Some((*field, ago(host, secs)))
        });
    }
    if TIMES.iter().any(|(known, ..)| *known == kind) {
        let menu = if kind == "backup" { "file" } else { "certificate" };
        let (rows, clock) = (read_if_there(host, menu)?, read_if_there(host, "system/clock")?);
        let offset = offset(text(&clock, "gmt-offset").unwrap_or_default());
        for (_, from, field) in TIMES.iter().filter(|(known, ..)| *known == kind) {
            moments(objects, &rows, |row| Some((*field, instant(text(row, from)?, offset?)?)));
        }
    }
    if !APART.contains(&kind) {
        let identity = devices::identity(host)?;
        objects.iter_mut().for_each(|object| object.device = Some(identity.clone()));
    }
    Ok(())
}

fn with(object: &mut ModelObject, change: impl FnOnce(&mut Map<String, Value>)) {
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(&object.fields) {
        change(&mut fields);
        object.fields = Value::Object(fields).to_string();
    }
}

fn each(objects: &mut [ModelObject], more: &Map<String, Value>) {
    objects.iter_mut().for_each(|object| with(object, |fields| fields.extend(more.clone())));
}

/// The time that many seconds before now.
fn ago(host: &dyn Host, secs: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "times of people are far within the bounds")]
    let secs = secs as i64;
    crud::rfc3339(i64::try_from(host.now_ms() / 1_000).unwrap_or_default() - secs)
}

/// Puts a time that a row tells into the object of that row, which has its id.
fn moments<'f>(
    objects: &mut [ModelObject],
    rows: &Value,
    moment: impl Fn(&Value) -> Option<(&'f str, String)>,
) {
    for object in objects {
        let id = |object: &ModelObject| {
            let native = object.native.as_ref()?;
            native.locators.first().map(|locator| locator.value.clone())
        };
        let is_own = |row: &&Value| {
            let own = text(row, ".id");
            own.is_some() && (own == id(object).as_deref() || own == Some(object.key.as_str()))
        };
        let Some(row) = sdk_json::items(rows, "").iter().find(is_own) else { continue };
        if let Some((field, time)) = moment(row) {
            with(object, |fields| drop(fields.insert(field.to_owned(), json!(time))));
        }
    }
}

/// Seconds of `+02:00`.
fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = (if text.starts_with('-') { -1 } else { 1 }, text.trim_start_matches(['+', '-']));
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 3_600 + minutes.parse::<i64>().ok()? * 60))
}

/// A time of the router in UTC: `2024-03-01 12:00:00`, or `mar/01/2024 12:00:00` of older releases.
pub(super) fn instant(told: &str, offset: i64) -> Option<String> {
    let (date, clock) = told.trim().split_once(' ')?;
    let (year, month, day) = match date.split(['-', '/']).collect::<Vec<_>>()[..] {
        [month, day, year] if year.len() == 4 => {
            let month = MONTHS.iter().position(|known| month.eq_ignore_ascii_case(known))? + 1;
            (year.parse::<i64>().ok()?, i64::try_from(month).ok()?, day.parse::<i64>().ok()?)
        }
        [year, month, day] => (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?),
        _ => return None,
    };
    let secs = crud::seconds(clock)?;
    #[expect(clippy::cast_possible_truncation, reason = "a time of day")]
    let secs = secs as i64;
    Some(crud::rfc3339(days(year, month, day) * SECS_OF_DAY + secs - offset))
}

/// Days since 1970 of a date. Years are counted from March, so that a leap day ends its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The temperature of the processor, else of the hottest sensor.
fn hottest(host: &dyn Host) -> Result<Map<String, Value>, Fault> {
    let health = read_if_there(host, "system/health")?;
    let sensors = sdk_json::items(&health, "");
    let is_heat = |row: &&Value| text(row, "name").is_some_and(|name| name.contains("temperature"));
    let all = |needed: &str| {
        let own = sensors
            .iter()
            .filter(is_heat)
            .filter(|row| text(row, "name").is_some_and(|name| name.contains(needed)));
        own.filter_map(|row| text(row, "value")?.parse::<f64>().ok()).reduce(f64::max)
    };
    let heat = all("cpu").or_else(|| all(""));
    Ok(heat.map(|heat| ("temperature_c".to_owned(), json!(heat))).into_iter().collect())
}

/// Speed and duplex of ports, and the power that they give, which only a monitor tells.
fn speeds(host: &dyn Host, kind: &str, objects: &mut [ModelObject]) -> Result<(), Fault> {
    let ports = read_if_there(host, "interface/ethernet")?;
    let names: Vec<&str> = sdk_json::items(&ports, "").iter().filter_map(|row| text(row, "name")).collect();
    if names.is_empty() {
        return Ok(());
    }
    let seen = monitored(host, "interface/ethernet/monitor", &names)?;
    let powered: Vec<&str> = if kind == "port" {
        let poe = read_if_there(host, "interface/ethernet/poe")?;
        names
            .iter()
            .copied()
            .filter(|name| sdk_json::items(&poe, "").iter().any(|row| text(row, "name") == Some(*name)))
            .collect()
    } else {
        Vec::new()
    };
    let power = if powered.is_empty() {
        Vec::new()
    } else {
        monitored(host, "interface/ethernet/poe/monitor", &powered)?
    };
    for object in objects {
        let of =
            |rows: &[Value]| rows.iter().find(|row| text(row, "name") == Some(object.key.as_str())).cloned();
        let (seen, power) = (of(&seen), of(&power));
        with(object, |fields| {
            let Some(seen) = seen else { return };
            let is_up = fields.get("link").is_some_and(|link| link == "up");
            if let Some(mbps) = text(&seen, "rate").and_then(mbps).filter(|_| is_up) {
                fields.insert("speed_mbps".to_owned(), json!(mbps));
            }
            if let (true, Some(full)) = (kind == "port" && is_up, text(&seen, "full-duplex")) {
                fields.insert("duplex".to_owned(), json!(if full == "true" { "full" } else { "half" }));
            }
            let watts = power
                .as_ref()
                .and_then(|row| text(row, "poe-out-power")?.trim_end_matches('W').parse::<f64>().ok());
            if let (Some(watts), Some(Value::Object(poe))) = (watts, fields.get_mut("poe")) {
                #[expect(clippy::cast_possible_truncation, reason = "a port gives less than 100 W")]
                let milliwatts = (watts * 1_000.0).round() as i64;
                poe.insert("power_mw".to_owned(), json!(milliwatts));
            }
        });
    }
    Ok(())
}

/// What a monitor tells once of rows; nothing where this router does not have it.
fn monitored(host: &dyn Host, command: &str, names: &[&str]) -> Result<Vec<Value>, Fault> {
    match ask(host, command, &json!({ "numbers": names.join(","), "once": "" })) {
        Ok(answer) => Ok(sdk_json::items(&answer, "").to_vec()),
        Err(Fault::Unsupported(_) | Fault::Denied(_) | Fault::NotFound(_) | Fault::Invalid(_)) => {
            Ok(Vec::new())
        }
        Err(other) => Err(other),
    }
}

/// Mbps of `1Gbps`, `2.5Gbps` or `100Mbps`.
fn mbps(rate: &str) -> Option<i64> {
    let (number, times) = match rate.strip_suffix("Gbps") {
        Some(number) => (number, 1_000.0),
        None => (rate.strip_suffix("Mbps")?, 1.0),
    };
    #[expect(clippy::cast_possible_truncation, reason = "rates of ports are small")]
    number.parse::<f64>().ok().map(|number| (number * times).round() as i64)
}

/// The channel in use, and how many clients a radio has.
fn radios(host: &dyn Host, objects: &mut [ModelObject]) -> Result<(), Fault> {
    let names: Vec<String> = objects.iter().map(|object| object.key.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let seen = monitored(host, "interface/wifi/monitor", &names)?;
    let count = objects.len();
    for (at, object) in objects.iter_mut().enumerate() {
        // Rows without a name stand in the order in which they were asked for.
        let by_place = || seen.get(at).filter(|row| seen.len() == count && row.get("name").is_none());
        let by_name = seen.iter().find(|row| text(row, "name") == Some(object.key.as_str()));
        let Some(row) = by_name.or_else(by_place) else { continue };
        // `5180/ax/Ceee`
        let frequency =
            text(row, "channel").and_then(|channel| channel.split('/').next()?.parse::<i64>().ok());
        let known = frequency.and_then(super::wireless::channel);
        let clients =
            ["registered-peers", "registered-clients"].iter().find_map(|name| super::number(row, name));
        let power = text(row, "tx-power").and_then(super::wireless::decibels);
        with(object, |fields| {
            if let Some((band, channel)) = known {
                // What is set counts before what was chosen.
                fields.entry("channel").or_insert_with(|| json!(channel));
                fields.entry("band").or_insert_with(|| json!(band));
            }
            if let Some(clients) = clients {
                fields.insert("clients".to_owned(), json!(clients));
            }
            if let Some(power) = power {
                fields.entry("tx_power_dbm").or_insert(power);
            }
        });
    }
    Ok(())
}

/// Clients, joined by their address.
pub(super) fn clients(host: &dyn Host) -> Result<ModelPage, Fault> {
    let found = clients::gather(host)?;
    let complete = found.complete();
    let interfaces = read_if_there(host, "interface")?;
    let own = devices::own_macs(sdk_json::items(&interfaces, ""));
    let device = devices::identity(host)?;
    let one = |(mac, client): (String, clients::Client)| {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        let is_known = client.is_wireless || client.port.is_some();
        let connection = if client.is_wireless { "wireless" } else { "wired" };
        put("mac", Some(json!(mac)));
        put("addresses", Some(json!(client.addresses)));
        put("hostname", client.name.as_deref().map(Value::from));
        put("connection", Some(json!(if is_known { connection } else { "unknown" })));
        put("port", client.port.map(Value::from));
        put("ssid", client.ssid.map(Value::from));
        put("interface", client.interface.map(Value::from));
        put("vlan_id", client.vlan.filter(|vlan| (1..=4_094).contains(vlan)).map(Value::from));
        put("band", client.band.map(Value::from));
        put("signal_dbm", client.signal.map(Value::from));
        put("down_bytes", client.bytes.map(|(down, _)| json!(down)));
        put("up_bytes", client.bytes.map(|(_, up)| json!(up)));
        put("connected_at", client.connected_secs.map(|secs| json!(ago(host, secs))));
        put("blocked", client.is_blocked.map(Value::from));
        let label = client.name.unwrap_or_else(|| mac.clone());
        let (fields, device) = (Value::Object(fields).to_string(), Some(device.clone()));
        ModelObject { key: mac, label, origin: Origin::Derived, device, native: None, fields }
    };
    let items = found.all.into_iter().filter(|(mac, _)| !own.contains(mac)).map(one).collect();
    Ok(ModelPage { items, next: None, complete })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_router_are_told_in_utc() {
        for (told, offset, is) in [
            ("2024-03-01 12:00:00", 0, "2024-03-01T12:00:00Z"),
            ("2024-03-01 01:30:00", 7_200, "2024-02-29T23:30:00Z"),
            ("apr/22/2022 07:54:55", -3_600, "2022-04-22T08:54:55Z"),
        ] {
            assert_eq!(instant(told, offset).as_deref(), Some(is));
        }
        assert_eq!(instant("never", 0), None);
        assert_eq!((offset("+02:00"), offset("-05:30"), offset("")), (Some(7_200), Some(-19_800), None));
    }

    #[test]
    fn rates_are_counted_in_mbps() {
        for (rate, is) in
            [("1Gbps", Some(1_000)), ("2.5Gbps", Some(2_500)), ("100Mbps", Some(100)), ("10G", None)]
        {
            assert_eq!(mbps(rate), is);
        }
    }
}
