//! Records of names: one store for the second and the official interface.

use serde_json::{Value, json};

use crate::console::Console;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag_or_true, number, put, put_default, row, text};

/// The official words of the types.
const TYPES: [(&str, &str); 7] = [
    ("A", "A_RECORD"),
    ("AAAA", "AAAA_RECORD"),
    ("CNAME", "CNAME_RECORD"),
    ("MX", "MX_RECORD"),
    ("TXT", "TXT_RECORD"),
    ("SRV", "SRV_RECORD"),
    ("FORWARD", "FORWARD_DOMAIN"),
];

/// The official field of the value of a type.
fn value_field(kind: &str) -> &'static str {
    match kind {
        "A" => "ipv4Address",
        "AAAA" => "ipv6Address",
        "CNAME" => "targetDomain",
        "MX" => "mailServerDomain",
        "TXT" => "text",
        "SRV" => "serverDomain",
        _ => "ipAddress",
    }
}

/// Whether a record may be as it would be after the write.
pub(crate) fn check(own: &Console, site: &str, record: &mut Row) -> Outcome<()> {
    let invalid = |message: &str| Refusal::new("InvalidPayload").with_message(message);
    let kind = text(record, "record_type").to_owned();
    if kind.is_empty() || text(record, "key").is_empty() || text(record, "value").is_empty() {
        return Err(invalid("key, record_type, value: must not be empty"));
    }
    let value = text(record, "value");
    match kind.as_str() {
        "A" if value.parse::<std::net::Ipv4Addr>().is_err() => {
            return Err(invalid("value must be valid IP format"));
        }
        "AAAA" if value.parse::<std::net::Ipv6Addr>().is_err() => {
            return Err(invalid("value must be valid IP format"));
        }
        "CNAME" if !is_domain(value) || !is_domain(text(record, "key")) => {
            return Err(invalid("key must be valid domain"));
        }
        _ => {}
    }
    let same = |row: &&Row| {
        text(row, "_id") != text(record, "_id")
            && ["key", "record_type", "value"].iter().all(|name| row.get(*name) == record.get(*name))
    };
    if own.store.rows(site, "static_dns").iter().any(|row| same(&row)) {
        return Err(Refusal::new("StaticDnsRecordExisted"));
    }
    for (name, value) in [
        ("enabled", json!(true)),
        ("ttl", json!(0)),
        ("port", json!(0)),
        ("priority", json!(0)),
        ("weight", json!(0)),
    ] {
        put_default(record, name, value);
    }
    Ok(())
}

/// Whether a text is a name without a wildcard.
pub(crate) fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            && !label.starts_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// A record in the official form; types that it lacks give none.
pub(crate) fn official(record: &Row) -> Option<Value> {
    let kind = text(record, "record_type");
    let (_, word) = TYPES.iter().find(|(own, _)| *own == kind)?;
    let mut made = json!({
        "type": word, "id": text(record, "~uuid"), "enabled": flag_or_true(record, "enabled"),
        "metadata": { "origin": "USER_DEFINED" },
        "domain": text(record, "key"), value_field(kind): text(record, "value"),
    });
    match kind {
        "A" | "AAAA" | "CNAME" => made["ttlSeconds"] = json!(number(record, "ttl").unwrap_or(0)),
        "MX" => made["priority"] = json!(number(record, "priority").unwrap_or(0)),
        "SRV" => {
            let parts: Vec<&str> = text(record, "key").splitn(3, '.').collect();
            if let [service, protocol, domain] = parts[..] {
                made["service"] = json!(service);
                made["protocol"] = json!(protocol);
                made["domain"] = json!(domain);
            }
            for name in ["port", "priority", "weight"] {
                made[name] = json!(number(record, name).unwrap_or(0));
            }
        }
        _ => {}
    }
    Some(made)
}

/// The stored form of an official record.
pub(crate) fn stored(body: &Row) -> Outcome<Row> {
    let word = text(body, "type");
    let kind = TYPES.iter().find(|(_, own)| *own == word).map_or("", |(kind, _)| *kind);
    let field = value_field(kind);
    let value = text(body, field);
    let domain = text(body, "domain");
    let invalid = |message: String| Refusal::of(400, "api.request.invalid-value", &message);
    let is_right = match kind {
        "A" => value.parse::<std::net::Ipv4Addr>().is_ok(),
        "AAAA" => value.parse::<std::net::Ipv6Addr>().is_ok(),
        "FORWARD" => value.parse::<std::net::IpAddr>().is_ok(),
        _ => true,
    };
    if !is_right {
        return Err(invalid(format!("{field} must be valid IP format")));
    }
    // Only addresses take a wildcard.
    let plain =
        if matches!(kind, "A" | "AAAA") { domain.strip_prefix("*.").unwrap_or(domain) } else { domain };
    if !is_domain(plain) {
        return Err(invalid("domain must be valid domain".to_owned()));
    }
    let key = if kind == "SRV" {
        format!("{}.{}.{domain}", text(body, "service"), text(body, "protocol"))
    } else {
        domain.to_owned()
    };
    let mut made = row(json!({ "key": key, "record_type": kind, "value": value }));
    put(&mut made, "enabled", body.get("enabled").cloned().unwrap_or(json!(true)));
    for (name, source) in
        [("ttl", "ttlSeconds"), ("port", "port"), ("priority", "priority"), ("weight", "weight")]
    {
        put(&mut made, name, body.get(source).cloned().unwrap_or(json!(0)));
    }
    Ok(made)
}
