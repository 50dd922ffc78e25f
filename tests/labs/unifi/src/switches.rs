//! Settings: one object for each key, of the site or of the whole controller.

use serde_json::{Value, json};

use crate::check;
use crate::console::{Change, Console};
use crate::facts::{Base, Collection, Facts, Field};
use crate::reply::{Outcome, Refusal};
use crate::rewrites;
use crate::row::{Row, flag, put, text};
use crate::store::GLOBAL;
use crate::v1::{Call, Data};

/// Mirrors of what other routes write.
const MIRRORS: [(&str, &str); 3] =
    [("ips", "dns_filters"), ("ips", "ad_blocking_enabled"), ("ips", "ad_blocking_configurations")];

/// Answers a call about settings: the parts after `setting`.
pub(crate) fn answer(own: &mut Console, call: &Call<'_>, parts: &[&str]) -> Data {
    match (call.request.method.as_str(), parts) {
        ("GET", []) => Ok(all(own, call.site)),
        ("GET", [key, ..]) => {
            facts_of(own, key)?;
            let row = stored(own, call.site, key);
            Ok(vec![Value::Object(Console::shown("setting", &row))])
        }
        ("PUT" | "POST", [key] | [key, _]) => write(own, call, key),
        // One client leaves the slash out before the id.
        _ => Err(Refusal::not_found()),
    }
}

/// Where a setting is kept.
fn scope<'a>(site: &'a str, key: &str) -> &'a str {
    if key.starts_with("super_") { GLOBAL } else { site }
}

fn facts_of(own: &Console, key: &str) -> Outcome<&'static Collection> {
    let facts = Facts::get().settings.get(key).ok_or_else(Refusal::not_found)?;
    let is_there = own.settings.release.has(facts.since.as_deref(), facts.until.as_deref());
    if is_there { Ok(facts) } else { Err(Refusal::not_found()) }
}

fn stored(own: &Console, site: &str, key: &str) -> Row {
    let found = own.store.having(scope(site, key), "setting", "key", key);
    found.cloned().unwrap_or_else(|| crate::row::row(json!({ "key": key })))
}

/// Every setting that this release has.
fn all(own: &Console, site: &str) -> Vec<Value> {
    let keys = Facts::get().settings.keys().filter(|key| facts_of(own, key).is_ok());
    let rows = keys.filter_map(|key| own.store.having(scope(site, key), "setting", "key", key));
    rows.map(|row| Value::Object(Console::shown("setting", row))).collect()
}

/// Adds the settings that a site, or the controller, has from the start: what is not said to be on is off.
pub(crate) fn plant(own: &mut Console, site: &str, values: &Row) {
    let all = Facts::get().settings.iter();
    for (key, facts) in all.filter(|(key, _)| key.starts_with("super_") == (site == GLOBAL)) {
        let mut row = crate::row::row(json!({ "key": key }));
        let switches = facts.fields.iter().filter(|field| {
            field.kind.base == Base::Boolean
                && !field.kind.is_list
                && own.settings.release.has(field.since.as_deref(), None)
        });
        let is_mirror = |field: &&Field| MIRRORS.contains(&(key.as_str(), field.name.as_str()));
        for field in switches.filter(|field| !is_mirror(field)) {
            put(&mut row, &field.name, false);
        }
        if let Some(values) = values.get(key).and_then(Value::as_object) {
            row.extend(values.clone());
        }
        rewrites::apply(own, site, key, &mut row);
        own.store.add(site, "setting", row);
    }
}

fn write(own: &mut Console, call: &Call<'_>, key: &str) -> Data {
    let facts = facts_of(own, key)?;
    let mut sent = check::known(&facts.fields, &call.body, own.settings.release)?;
    for (_, field) in MIRRORS.iter().filter(|(own, _)| *own == key) {
        sent.remove(*field);
    }
    if key == "rsyslogd" {
        for port in ["port", "netconsole_port"] {
            if sent.get(port).is_some_and(|value| value == 0) {
                return Err(Refusal::invalid(port, "[1-9][0-9]{0,4}"));
            }
        }
    }
    if key == "auto_speedtest" && flag(&sent, "enabled") && !own.has_gateway(call.site) {
        return Err(Refusal::new("SpeedTestNotSupported"));
    }
    let mut row = stored(own, call.site, key);
    row.extend(sent);
    rewrites::apply(own, call.site, key, &mut row);
    let scope = scope(call.site, key);
    if text(&row, "_id").is_empty() {
        own.store.add(scope, "setting", row.clone());
    }
    if let Some(stored) = own.store.having_mut(scope, "setting", "key", key) {
        row.remove("_id");
        stored.extend(row);
    }
    let row = stored(own, call.site, key);
    own.changed(call.site, "setting", &row, Change::Update);
    let mut shown = Console::shown("setting", &row);
    put(&mut shown, "key", key);
    Ok(vec![Value::Object(shown)])
}
