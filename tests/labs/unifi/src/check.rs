//! Whether a body has the form that the contract gives to a table of the older interfaces.

use serde_json::Value;

use crate::facts::{Base, Field};
use crate::release::Release;
use crate::reply::{Outcome, Refusal};
use crate::row::Row;

/// Fields that the controller owns: it takes no notice of them in a body.
const OWN: [&str; 4] = ["_id", "id", "site_id", "external_id"];

/// Texts that may not be empty although their pattern lets them be: to clear one, it is left out.
const NOT_EMPTY: [&str; 6] =
    ["dhcpd_gateway", "dhcpd_ntp_1", "dhcpd_boot_server", "dhcpd_start", "dhcpd_stop", "ip_subnet"];

/// The fields of a body that the table knows. What it does not know is dropped without a word.
pub(crate) fn known(fields: &[Field], body: &Row, release: Release) -> Outcome<Row> {
    let mut kept = Row::new();
    for (name, value) in body {
        let field = fields.iter().find(|field| field.name == *name);
        let Some(field) = field.filter(|field| release.has(field.since.as_deref(), None)) else { continue };
        if OWN.contains(&name.as_str()) {
            continue;
        }
        check(field, name, value)?;
        kept.insert(name.clone(), value.clone());
    }
    Ok(kept)
}

fn check(field: &Field, path: &str, value: &Value) -> Outcome<()> {
    let refuse = || Refusal::invalid(path, &field.pattern());
    if value.is_null() {
        return Err(refuse());
    }
    if !field.kind.is_list {
        return one(field, path, value);
    }
    let values = value.as_array().ok_or_else(refuse)?;
    values.iter().try_for_each(|value| one(field, path, value))
}

fn one(field: &Field, path: &str, value: &Value) -> Outcome<()> {
    let refuse = || Refusal::invalid(path, &field.pattern());
    match field.kind.base {
        Base::Any => Ok(()),
        Base::Boolean => {
            let is_word = matches!(value.as_str(), Some("true" | "false" | "enabled" | "disabled"));
            if value.is_boolean() || is_word { Ok(()) } else { Err(refuse()) }
        }
        Base::Object => {
            let object = value.as_object().ok_or_else(refuse)?;
            for inner in &field.inside {
                if let Some(value) = object.get(&inner.name) {
                    check(inner, &format!("{path}.{}", inner.name), value)?;
                }
            }
            Ok(())
        }
        Base::Text | Base::Uuid | Base::Integer | Base::Number => scalar(field, path, value),
    }
}

/// Texts and numbers: either may come as the other.
fn scalar(field: &Field, path: &str, value: &Value) -> Outcome<()> {
    let refuse = || Refusal::invalid(path, &field.pattern());
    let shown = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) if field.kind.base == Base::Text => flag.to_string(),
        _ => return Err(refuse()),
    };
    if shown.is_empty() && NOT_EMPTY.contains(&field.name.as_str()) {
        return Err(refuse());
    }
    let is_number = matches!(field.kind.base, Base::Integer | Base::Number);
    if is_number && !shown.is_empty() && shown.parse::<f64>().is_err() {
        return Err(refuse());
    }
    let is_listed = field.values.is_empty() || field.values.contains(&shown);
    // An empty text stands for a value that is not set, but in an enumeration it is none.
    if !is_listed || field.unmatched(&shown).is_some() {
        return Err(refuse());
    }
    Ok(())
}
