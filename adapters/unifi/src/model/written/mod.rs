//! Changes in the words of the model, where the bindings of `model.json` do not say everything.

mod networks;
mod ports;
mod rules;
mod wireless;

use heddle_sdk::crud::{Asked, Expressed, Vendor, every_object, refused};
use heddle_sdk::{Fault, Host, Operation};
use serde_json::{Map, Value, json};

use crate::beside::Beside;

/// What a change is made with: the vendor's answers, the host, and what is named by ids.
#[derive(Clone, Copy)]
pub(crate) struct With<'a> {
    vendor: &'a dyn Vendor,
    host: &'a dyn Host,
    beside: &'a Beside,
}

/// Completes what a change is in the controller's own features.
pub(crate) fn expressed(
    vendor: &dyn Vendor,
    beside: &Beside,
    host: &dyn Host,
    asked: &Asked<'_>,
    changes: &mut [Expressed],
) -> Result<(), Fault> {
    let Some(change) = changes.first_mut() else { return Ok(()) };
    let with = With { vendor, host, beside };
    match asked.kind {
        "port" => ports::port(with, asked, &mut change.payload),
        "radio" => ports::radio(asked, &mut change.payload),
        "vlan" => networks::vlan(asked, change),
        "dhcp-pool" => networks::pool(asked, &mut change.payload),
        "dhcp-reservation" => networks::reservation(with, asked, change),
        "route" => networks::route(with, asked, change),
        "ssid" => wireless::ssid(with, asked, change),
        "firewall-rule" => rules::rule(with, asked, change),
        "nat-rule" => rules::forward(asked, &mut change.payload),
        "address-group" => rules::group(asked, change),
        "vpn-peer" => peer(asked, &mut change.payload),
        "radius-user" => user(asked, change),
        _ => Ok(()),
    }
}

impl With<'_> {
    /// The ids of objects of a kind that have a name.
    fn ids(&self, kind: &str, site: Option<&str>, name: &str) -> Result<Vec<String>, Fault> {
        let all = every_object(self.vendor, self.host, kind, site)?;
        let named = all.into_iter().filter(|(_, row)| row.get("name").is_some_and(|own| own == name));
        Ok(named.filter_map(|(found, _)| Some(found.locators.first()?.value.clone())).collect())
    }

    /// The id of the one object of a kind that has a name.
    fn id(
        &self,
        field: &str,
        (kind, noun): (&str, &str),
        site: Option<&str>,
        name: &str,
    ) -> Result<String, Fault> {
        match self.ids(kind, site, name)?.as_slice() {
            [id] => Ok(id.clone()),
            [] => Err(refused(field, &format!("names no {noun} of the site: '{name}'"))),
            _ => Err(refused(field, &format!("names several objects that are a {noun}: '{name}'"))),
        }
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn asked_text<'a>(asked: &Asked<'a>, field: &str) -> Option<&'a str> {
    asked.fields.get(field).and_then(Value::as_str)
}

/// Gives a new object a name where the payload has none: the value that tells it from other objects.
fn named(change: &mut Expressed, other: &str) {
    if change.operation == Operation::Create && !change.payload.contains_key("name") {
        change.payload.insert("name".to_owned(), json!(other));
    }
}

/// A peer has an address of its own in the tunnel; what else it may send from are the networks behind it.
fn peer(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    if asked.verb != "create" {
        return Ok(());
    }
    if !payload.contains_key("name") {
        let key = payload.get("public_key").and_then(Value::as_str).unwrap_or_default();
        payload.insert("name".to_owned(), json!(key));
    }
    let allowed = asked.fields.get("allowed").map(texts).unwrap_or_default();
    let is_own = |prefix: &&String| !prefix.contains('/') || prefix.ends_with("/32");
    let Some(own) = allowed.iter().find(is_own) else {
        return Err(refused(
            "allowed",
            "begins with the address of the peer in the tunnel, such as 192.0.2.7/32",
        ));
    };
    let rest: Vec<&String> = allowed.iter().filter(|prefix| *prefix != own).collect();
    payload.insert("interface_ip".to_owned(), json!(own.trim_end_matches("/32")));
    payload.insert("allowed_ips".to_owned(), json!(rest));
    Ok(())
}

/// A device proves itself by its address, which is its name and its password.
fn user(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let Some(mac) = asked_text(asked, "mac") else { return Ok(()) };
    let digits: String = mac.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_uppercase();
    if change.operation == Operation::Update {
        if change
            .payload
            .get("name")
            .and_then(Value::as_str)
            .is_some_and(|own| own.eq_ignore_ascii_case(&digits))
        {
            return Ok(());
        }
        return Err(refused("mac", "names the user there; make a new one and delete this one"));
    }
    change.payload.insert("name".to_owned(), json!(digits));
    change.payload.entry("x_password").or_insert_with(|| json!(digits));
    Ok(())
}
