//! The first interface: `/api/…`, an envelope with `meta` and `data`.

use heddle_lab::{Answer, Context, Request};
use serde_json::{Value, json};

use crate::access::Who;
use crate::console::Console;
use crate::reply::{Outcome, Refusal, ok};
use crate::row::{Row, flag, put, text};
use crate::{backup, clients, commands, devices, rest, sites, stats, switches};

/// One call below a site.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) site: &'a str,
    pub(crate) body: Row,
    /// The list that is the body, of calls that take one.
    pub(crate) list: Vec<Value>,
}

pub(crate) type Data = Outcome<Vec<Value>>;

/// POSTs that only read, which an account that only reads may send.
const READING: [&str; 8] =
    ["report", "session", "alluser", "guest", "voucher", "authorization", "rogueap", "event"];

/// Answers a call of the first interface.
pub(crate) fn answer(
    own: &mut Console,
    request: &Request,
    parts: &[&str],
    who: &Who,
    context: &mut Context,
) -> Answer {
    let done = match parts {
        ["api", "self"] => Ok(vec![sites::account(own, who)]),
        ["api", "self" | "stat", "sites"] => Ok(sites::list(own, parts[1] == "stat")),
        ["api", "stat", "admin"] => Ok(sites::admins(own)),
        ["api", "s", site, rest @ ..] if own.store.has_site(site) => {
            below(own, request, site, rest, who, context)
        }
        ["api", "s", ..] => Err(Refusal::new("NoSiteContext")),
        ["upload", "s", site, "portalfile"] if own.store.has_site(site) => {
            sites::upload(own, request, site, who)
        }
        _ => Err(Refusal::not_found()),
    };
    match done {
        Ok(data) => Answer::json(200, &ok(data)),
        Err(refusal) => refusal.v1(),
    }
}

fn below(
    own: &mut Console,
    request: &Request,
    site: &str,
    parts: &[&str],
    who: &Who,
    context: &mut Context,
) -> Data {
    let is_reading =
        request.method == "GET" || matches!(parts, ["stat" | "list", ..]) || reads(request, parts);
    if !who.may_write && !is_reading {
        return Err(Refusal::read_only());
    }
    let json = match request.json() {
        Some(json) => json,
        None if request.body.is_empty() || !request.parts.is_empty() => json!({}),
        None => return Err(Refusal::new("InvalidPayload")),
    };
    let (body, list) = match json {
        Value::Object(body) => (body, Vec::new()),
        Value::Array(list) => (Row::new(), list),
        _ => return Err(Refusal::new("InvalidPayload")),
    };
    let call = Call { request, site, body, list };
    match (request.method.as_str(), parts) {
        ("GET", ["self"]) => Ok(vec![sites::account(own, who)]),
        (_, ["rest" | "get" | "set", "setting", rest @ ..]) => switches::answer(own, &call, rest),
        (_, ["rest", "user", id]) if request.method == "PUT" => user(own, &call, id),
        ("GET", ["rest", table]) => rest::list(own, site, table),
        ("GET", ["rest", table, id]) => rest::get(own, site, table, id),
        ("POST", ["rest", table]) => rest::create(own, site, table, &call.body),
        ("POST", ["add", "wlanconf"]) => rest::create(own, site, "wlanconf", &call.body),
        ("PUT", ["rest", "device", id]) | ("POST" | "PUT", ["upd", "device", id]) => {
            device(own, &call, id, context)
        }
        ("PUT", ["rest", table, id]) | ("POST", ["upd", table, id]) => {
            let data = rest::update(own, site, table, id, &call.body)?;
            Ok(stale(request, data, context))
        }
        ("DELETE", ["rest", table, id]) => rest::delete(own, site, table, id),
        ("POST", ["group", "user"]) => Ok(group(own, &call)),
        (_, ["list", "alarm"]) | ("GET", ["cnt", "alarm"]) => stats::alarms(own, &call, parts[0] == "cnt"),
        ("GET", ["list", "extension"]) => Ok(Vec::new()),
        ("GET", ["list", table]) => rest::list(own, site, table),
        (_, ["stat", rest @ ..]) => stats::answer(own, &call, rest),
        ("POST", ["cmd", "backup"]) => backup::command(own, &call),
        ("POST", ["cmd", "restore"]) => backup::restore(own, &call),
        ("POST", ["cmd", manager]) => commands::answer(own, &call, manager, text(&call.body, "cmd"), context),
        ("POST", ["cmd", manager, command]) => commands::answer(own, &call, manager, command, context),
        _ => Err(Refusal::not_found()),
    }
}

/// Whether a call that is no GET only reads.
fn reads(request: &Request, parts: &[&str]) -> bool {
    let body = request.json().unwrap_or_default();
    let command = body["cmd"].as_str().unwrap_or_default();
    match parts {
        ["cmd", "backup"] => command == "list-backups",
        ["cmd", "sitemgr"] => command == "get-admins",
        ["cmd", "firmware" | "productinfo"] => true,
        ["cmd", "devmgr"] => command == "speedtest-status",
        ["cmd", "devmgr", "speedtest-status"] => true,
        [_, name, ..] => READING.contains(name),
        _ => false,
    }
}

/// A write to a device, which may be busy.
fn device(own: &mut Console, call: &Call<'_>, id: &str, context: &mut Context) -> Data {
    let before = own.store.find(call.site, "device", id).map(crate::row::shown);
    let state = before.as_ref().and_then(|row| crate::row::number(row, "state"));
    if context.fault("device_busy", call.request).is_some() || matches!(state, Some(4 | 7 | 8)) {
        return Err(Refusal::new("DeviceBusy"));
    }
    let row = devices::write(own, call.site, id, &call.body)?;
    if context.fault("stale_answer", call.request).is_some() {
        return Ok(before.map(Value::Object).into_iter().collect());
    }
    Ok(vec![Value::Object(row)])
}

/// The answer of a write is no proof of what is stored.
fn stale(request: &Request, data: Vec<Value>, context: &mut Context) -> Vec<Value> {
    if context.fault("stale_answer", request).is_none() {
        return data;
    }
    let sent = request.json().unwrap_or_default();
    let keeps = |row: Value| {
        let fields = row.as_object().cloned().unwrap_or_default();
        let kept = fields.into_iter().filter(|(name, _)| name == "_id" || sent.get(name).is_some());
        Value::Object(kept.collect())
    };
    data.into_iter().map(keeps).collect()
}

/// Known clients are written by the id of their record.
fn user(own: &mut Console, call: &Call<'_>, id: &str) -> Data {
    let was_blocked = own.store.find(call.site, "user", id).is_some_and(|user| flag(user, "blocked"));
    let data = rest::update(own, call.site, "user", id, &call.body)?;
    if let Some(user) = own.store.find(call.site, "user", id).cloned()
        && flag(&user, "blocked") != was_blocked
    {
        own.tell_client(call.site, text(&user, "mac"));
    }
    Ok(data)
}

/// Several known clients at once: each answer stands in an envelope of its own.
fn group(own: &mut Console, call: &Call<'_>) -> Vec<Value> {
    let sent = call.body.get("objects").and_then(Value::as_array).cloned().unwrap_or_default();
    let one = |own: &mut Console, object: &Value| {
        let data = object["data"].as_object().cloned().unwrap_or_default();
        match rest::create(own, call.site, "user", &data) {
            Ok(data) => ok(data),
            Err(refusal) => json!({ "meta": { "rc": "error", "msg": refusal.code }, "data": [] }),
        }
    };
    sent.iter().map(|object| one(own, object)).collect()
}

/// A text that a command needs.
pub(crate) fn need<'a>(call: &'a Call<'_>, name: &str) -> Outcome<&'a str> {
    let value = text(&call.body, name);
    if value.is_empty() { Err(Refusal::invalid(name, ".+")) } else { Ok(value) }
}

/// The clients that a command names: one, or a list.
pub(crate) fn macs<'a>(call: &'a Call<'_>) -> Vec<&'a str> {
    let mut found = crate::row::texts(&call.body, "macs");
    found.extend(Some(text(&call.body, "mac")).filter(|mac| !mac.is_empty()));
    found
}

/// What `stat/user/{mac}` shows.
pub(crate) fn known_client(own: &Console, site: &str, mac: &str) -> Data {
    let user = own.store.having(site, "user", "mac", mac).ok_or_else(|| Refusal::new("UnknownUser"))?;
    let mut row = Console::shown("user", user);
    if let Some(client) = clients::online(own, site).find(|client| text(client, "mac") == mac) {
        row.extend(clients::shown(own, site, client));
    }
    put(&mut row, "is_online", clients::online(own, site).any(|client| text(client, "mac") == mac));
    Ok(vec![Value::Object(row)])
}
