//! Filters of lists, their order, and their pages.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::device::Pfsense;
use crate::facts::Model;
use crate::reply::Refusal;
use crate::represent::Row;
use crate::{checks, net, php};

/// Names behind two underscores.
const FILTERS: [&str; 12] = [
    "exact",
    "except",
    "contains",
    "startswith",
    "endswith",
    "in",
    "lt",
    "lte",
    "gt",
    "gte",
    "regex",
    "format",
];

/// Properties that every object has beside its fields. None of them has a value to compare with.
const PROPERTIES: [&str; 12] = [
    "placement",
    "packages",
    "subsystem",
    "client",
    "cache",
    "many",
    "sort_by",
    "sort_order",
    "sort_flags",
    "config_path",
    "always_apply",
    "verbose_name",
];

/// Equality of the filter that is used when none is named. Null equals only null.
pub(crate) fn is_exact(own: &Value, wanted: &Value) -> bool {
    if own.is_null() || wanted.is_null() { own == wanted } else { php::equals(own, wanted) }
}

/// The rows that fit all parameters. A parameter that is no field of the model does not filter.
pub(crate) fn select(
    firewall: &Pfsense,
    model: &Model,
    rows: Vec<Row>,
    params: &Map<String, Value>,
) -> Result<Vec<Row>, Refusal> {
    let mut out = rows;
    for (target, wanted) in params {
        let (field, filter) = target_of(target)?;
        let is_field = model.fields(firewall.release).any(|own| own.name == field);
        if !is_field && field != "id" && field != "parent_id" && !PROPERTIES.contains(&field.as_str()) {
            continue;
        }
        out.retain(|row| {
            let own = match field.as_str() {
                "id" => row.id.as_ref(),
                "parent_id" => row.parent.as_ref(),
                name => row.values.get(name),
            };
            fits(firewall, own.unwrap_or(&Value::Null), &filter, wanted)
        });
    }
    Ok(out)
}

fn target_of(target: &str) -> Result<(String, String), Refusal> {
    let Some((field, filter)) = target.rsplit_once("__") else {
        return Ok((target.to_owned(), "exact".to_owned()));
    };
    if FILTERS.contains(&filter) {
        return Ok((field.to_owned(), filter.to_owned()));
    }
    let text = format!("No filter has the name '{filter}'.");
    Err(Refusal::not_found("QUERY_FILTER_NOT_FOUND", &text))
}

fn fits(firewall: &Pfsense, own: &Value, filter: &str, wanted: &Value) -> bool {
    let (text, other) = (php::text(own), php::text(wanted));
    let number =
        |value: &Value| php::text(value).trim().parse::<f64>().ok().filter(|_| php::is_numeric(value));
    let compares = |fits: fn(Ordering) -> bool| match (number(own), number(wanted)) {
        (Some(own), Some(wanted)) => fits(own.total_cmp(&wanted)),
        _ => false,
    };
    match filter {
        "except" => !is_exact(own, wanted),
        "contains" => match own {
            Value::Array(items) => php::is_in(wanted, items),
            _ => text.contains(&other),
        },
        "startswith" => end(own, <[Value]>::first).starts_with(&other),
        "endswith" => end(own, <[Value]>::last).ends_with(&other),
        "in" => match wanted {
            Value::Array(items) if !own.is_array() => php::is_in(own, items),
            _ => other.contains(&text),
        },
        "lt" => compares(Ordering::is_lt),
        "lte" => compares(Ordering::is_le),
        "gt" => compares(Ordering::is_gt),
        "gte" => compares(Ordering::is_ge),
        "regex" => matches_pattern(&other, &text),
        "format" => has_format(firewall, &text, &other),
        _ => is_exact(own, wanted),
    }
}

fn end(own: &Value, of: fn(&[Value]) -> Option<&Value>) -> String {
    match own {
        Value::Array(items) => of(items).map(php::text).unwrap_or_default(),
        own => php::text(own),
    }
}

/// A pattern in the vendor's form has a delimiter at both ends, and flags behind it.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some(delimiter) = pattern.chars().next() else { return false };
    let Some((body, flags)) = pattern[delimiter.len_utf8()..].rsplit_once(delimiter) else { return false };
    let body = if flags.contains('i') { format!("(?i-u){body}") } else { body.to_owned() };
    regex::Regex::new(&body).is_ok_and(|pattern| pattern.is_match(text))
}

fn has_format(firewall: &Pfsense, text: &str, format: &str) -> bool {
    match format {
        "ipv4" => net::is_ipv4(text),
        "ipv6" => net::is_ipv6(text),
        "ip" => net::is_ip(text),
        "mac" => net::is_mac(text),
        "subnetv4" => net::is_subnet4(text),
        "subnetv6" => net::is_subnet6(text),
        "subnet" => net::is_subnet(text),
        "email" => net::is_email(text),
        "url" => net::is_url(text),
        "numeric" => php::is_numeric(&json!(text)),
        "hostname" => net::is_hostname(text),
        "fqdn" => net::is_fqdn(text),
        "port" => net::is_port(text),
        "portrange" => net::is_port_range(text),
        "alias" => [true, false].iter().any(|is_port| checks::is_alias(&firewall.stored, text, *is_port)),
        _ => false,
    }
}

/// Orders rows by fields; rows that are equal keep their order. The ids stay with their rows.
pub(crate) fn sort(rows: &mut [Row], fields: &[String], is_descending: bool, flags: &str) {
    let value = |row: &Row, field: &str| match field {
        "id" => row.id.clone().unwrap_or(Value::Null),
        name => row.values.get(name).cloned().unwrap_or(Value::Null),
    };
    rows.sort_by(|one, other| {
        let by = fields.iter().map(|field| {
            let order = php::compare(&value(one, field), &value(other, field), flags);
            if is_descending { order.reverse() } else { order }
        });
        by.fold(Ordering::Equal, Ordering::then)
    });
}

/// One page of what a list route shows.
pub(crate) fn page(rows: Vec<Row>, call: &Call, is_plain: bool) -> Vec<Row> {
    let (limit, offset) = (call.limit, call.offset);
    let mut rows = rows;
    // Without a filter the list is turned round before its page is taken, with one after it.
    if call.is_reversed && is_plain {
        rows.reverse();
    }
    if limit > 0 || offset > 0 {
        let take = if limit == 0 { usize::MAX } else { limit };
        rows = rows.into_iter().skip(offset).take(take).collect();
        // An offset without a limit and without a filter counts the ids anew.
        if is_plain && limit == 0 {
            for (at, row) in rows.iter_mut().enumerate() {
                if row.parent.is_none() && row.id.as_ref().is_some_and(Value::is_number) {
                    row.id = Some(json!(at));
                }
            }
        }
    }
    if call.is_reversed && !is_plain {
        rows.reverse();
    }
    rows
}
