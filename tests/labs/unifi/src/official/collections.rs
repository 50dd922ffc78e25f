//! Records of names, lists of what to match, and vouchers.

use serde_json::{Value, json};

use crate::console::{Change, Console};
use crate::dns;
use crate::hotspot::{Voucher, make_vouchers};
use crate::official::{Answered, Call, absent, filter, invalid, page};
use crate::reply::{Outcome, Refusal};
use crate::rest;
use crate::row::{Row, moment, number, objects, put, text};

const LISTS: &str = "matching_list";
const RECORDS: &str = "static_dns";
const VOUCHERS: &str = "voucher";

pub(super) fn answer(own: &mut Console, call: &Call<'_>) -> Answered {
    let path = call.route.path.as_str();
    if path.starts_with("dns/") {
        records(own, call)
    } else if path.starts_with("hotspot/") {
        vouchers(own, call)
    } else {
        lists(own, call)
    }
}

fn records(own: &mut Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    if !own.has_gateway(site) {
        return Err(Refusal::of(400, "api.dns.gateway-required", "a gateway is required"));
    }
    match (call.request.method.as_str(), call.parameters.is_empty()) {
        ("GET", true) => {
            let rows = own.store.rows(site, RECORDS).iter().filter_map(dns::official).collect();
            page::of(call, rows)
        }
        ("POST", _) => {
            let id = own.store.add(site, RECORDS, dns::stored(&call.body)?);
            written(own, site, RECORDS, &id, Change::Add);
            record(own, site, &id)
        }
        (method, _) => {
            let id =
                own.store.id_of(site, RECORDS, call.id()).ok_or_else(|| absent("DNS policy", call.id()))?;
            match method {
                "PUT" => {
                    let mut new = dns::stored(&call.body)?;
                    if let Some(row) = own.store.find_mut(site, RECORDS, &id) {
                        row.append(&mut new);
                    }
                    written(own, site, RECORDS, &id, Change::Update);
                }
                "DELETE" => {
                    rest::remove(own, site, RECORDS, &id);
                    return Ok(Value::Null);
                }
                _ => {}
            }
            record(own, site, &id)
        }
    }
}

fn record(own: &Console, site: &str, id: &str) -> Answered {
    own.store.find(site, RECORDS, id).and_then(dns::official).ok_or_else(|| absent("DNS policy", id))
}

fn written(own: &mut Console, site: &str, table: &str, id: &str, change: Change) {
    let row = own.store.find(site, table, id).cloned().unwrap_or_default();
    own.changed(site, table, &row, change);
}

fn lists(own: &mut Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    let shown = |row: &Row| {
        let mut made = row.get("~official").cloned().unwrap_or_default();
        made["id"] = json!(text(row, "~uuid"));
        made
    };
    if call.request.method != "GET" && call.request.method != "DELETE" {
        check_list(&call.body)?;
    }
    match (call.request.method.as_str(), call.parameters.is_empty()) {
        ("GET", true) => {
            let rows = own.store.rows(site, LISTS).iter().map(shown).collect();
            return page::of(call, rows);
        }
        ("POST", _) => {
            let mut row = Row::new();
            put(&mut row, "name", text(&call.body, "name"));
            put(&mut row, "~official", json!(call.body));
            let id = own.store.add(site, LISTS, row);
            written(own, site, LISTS, &id, Change::Add);
            return Ok(own.store.find(site, LISTS, &id).map(shown).unwrap_or_default());
        }
        _ => {}
    }
    let id =
        own.store.id_of(site, LISTS, call.id()).ok_or_else(|| absent("traffic matching list", call.id()))?;
    match call.request.method.as_str() {
        "PUT" => {
            if let Some(row) = own.store.find_mut(site, LISTS, &id) {
                put(row, "name", text(&call.body, "name"));
                put(row, "~official", json!(call.body));
            }
            written(own, site, LISTS, &id, Change::Update);
        }
        "DELETE" => {
            rest::refuse_used(own, site, LISTS, &id).map_err(|_| {
                Refusal::of(400, "api.traffic-matching-list.referenced", "traffic matching list is in use")
            })?;
            rest::remove(own, site, LISTS, &id);
            return Ok(Value::Null);
        }
        _ => {}
    }
    Ok(own.store.find(site, LISTS, &id).map(shown).unwrap_or_default())
}

fn check_list(body: &Row) -> Outcome<()> {
    let items = objects(body, "items");
    if items.is_empty() {
        return Err(invalid("'items' must not be empty"));
    }
    let is_four = text(body, "type") == "IPV4_ADDRESSES";
    let is_address = |text: &str| {
        if is_four {
            text.parse::<std::net::Ipv4Addr>().is_ok()
        } else {
            text.parse::<std::net::Ipv6Addr>().is_ok()
        }
    };
    let is_net = |text: &str| {
        if is_four { text.parse::<ipnet::Ipv4Net>().is_ok() } else { text.parse::<ipnet::Ipv6Net>().is_ok() }
    };
    for item in items {
        let is_right = match text(item, "type") {
            "IP_ADDRESS" => is_address(text(item, "value")),
            "SUBNET" => is_net(text(item, "value")),
            "IP_ADDRESS_RANGE" => is_address(text(item, "start")) && is_address(text(item, "stop")),
            "PORT_NUMBER_RANGE" => number(item, "start") <= number(item, "stop"),
            _ => true,
        };
        if !is_right {
            return Err(invalid("'items' must be valid IP format"));
        }
    }
    Ok(())
}

fn voucher(own: &Console, row: &Row) -> Value {
    let at = |name: &str| number(row, name).and_then(|secs| u64::try_from(secs).ok());
    let used = number(row, "used").unwrap_or_default();
    let mut made = json!({
        "id": text(row, "~uuid"), "createdAt": moment(at("create_time").unwrap_or_default() * 1000),
        "name": text(row, "note"),
        "code": text(row, "code"), "authorizedGuestCount": used, "timeLimitMinutes": number(row, "duration"),
        "expired": at("expires").is_some_and(|end| end * 1000 <= own.now),
    });
    if let Some(limit) = number(row, "quota").filter(|limit| *limit > 0) {
        made["authorizedGuestLimit"] = json!(limit);
    }
    for (field, name) in [
        ("dataUsageLimitMBytes", "qos_usage_quota"),
        ("rxRateLimitKbps", "qos_rate_max_down"),
        ("txRateLimitKbps", "qos_rate_max_up"),
    ] {
        if let Some(value) = number(row, name) {
            made[field] = json!(value);
        }
    }
    made
}

fn vouchers(own: &mut Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    match (call.request.method.as_str(), call.parameters.is_empty()) {
        ("GET", true) => {
            let rows = own.store.rows(site, VOUCHERS).iter().map(|row| voucher(own, row)).collect();
            page::of(call, rows)
        }
        ("POST", _) => {
            let body = &call.body;
            let wanted = Voucher {
                name: text(body, "name"),
                minutes: number(body, "timeLimitMinutes").unwrap_or(1),
                guests: number(body, "authorizedGuestLimit"),
                megabytes: number(body, "dataUsageLimitMBytes"),
                down: number(body, "rxRateLimitKbps"),
                up: number(body, "txRateLimitKbps"),
            };
            let ids = make_vouchers(own, site, number(body, "count").unwrap_or(1), &wanted);
            let rows =
                ids.iter().filter_map(|id| own.store.find(site, VOUCHERS, id)).map(|row| voucher(own, row));
            Ok(json!({ "vouchers": rows.collect::<Vec<_>>() }))
        }
        ("DELETE", true) => {
            // Without a filter it would take them all.
            let text = call.request.query("filter").filter(|text| !text.is_empty());
            let text = text.ok_or_else(|| invalid("'filter' is required"))?;
            let filter = filter::parse(&text, &call.route.filter)?;
            let rows = own.store.rows(site, VOUCHERS).iter();
            let meant: Vec<String> = rows
                .filter(|row| filter.matches(&voucher(own, row)))
                .map(|row| self::text(row, "_id").to_owned())
                .collect();
            for id in &meant {
                own.store.remove(site, VOUCHERS, id);
            }
            Ok(json!({ "vouchersDeleted": meant.len() }))
        }
        (method, _) => {
            let id =
                own.store.id_of(site, VOUCHERS, call.id()).ok_or_else(|| absent("voucher", call.id()))?;
            if method == "DELETE" {
                own.store.remove(site, VOUCHERS, &id);
                return Ok(json!({ "vouchersDeleted": 1 }));
            }
            Ok(own.store.find(site, VOUCHERS, &id).map(|row| voucher(own, row)).unwrap_or_default())
        }
    }
}
