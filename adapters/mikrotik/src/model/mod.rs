//! Objects of the model, where the bindings of `model.json` do not say everything.
//!
//! [`modelled`] completes an object from its own row. [`list`] adds what other readings tell: which device an object belongs
//! to, speeds of ports, places of rules, and times, which the router tells as ages or in its own time zone. Interfaces are
//! known by their names there, as everywhere on the router.

mod addressing;
mod beside;
mod filter;
mod machine;
mod network;
mod vpn;
mod wireless;
mod written;

use heddle_sdk::crud::{self, Modelled};
use heddle_sdk::{Fault, Host, ModelPage};
use serde_json::Value;

use crate::VENDOR;
pub(crate) use wireless::band;
pub(crate) use written::expressed;

/// A page of the objects of a kind.
pub(crate) fn list(
    host: &dyn Host,
    kind: &str,
    site: Option<&str>,
    cursor: Option<&str>,
) -> Result<ModelPage, Fault> {
    if kind == "client" {
        return beside::clients(host);
    }
    let (mut order, inner) = filter::Order::of(cursor);
    let mut page = crud::list_model(&VENDOR, host, kind, site, inner)?;
    if !page.items.is_empty() {
        beside::complete(host, kind, &mut page.items)?;
    }
    order.number(kind, &mut page.items);
    page.next = page.next.map(|next| order.cursor(&next));
    Ok(page)
}

/// Has the last word on an object; false leaves it out.
pub(crate) fn modelled(kind: &str, row: &Value, object: &mut Modelled) -> bool {
    match kind {
        "system" => machine::system(row, object),
        "interface" => network::interface(row, object),
        "port" => network::port(row, object),
        "vlan" => return network::vlan(row, object),
        "ssid" => return wireless::ssid(row, object),
        "radio" => return wireless::radio(row, object),
        // Addresses are written small in keys, as clients of other tables have them.
        "client" => object.key = field(object, "mac").unwrap_or_default(),
        "neighbour" => network::neighbour(row, object),
        "route" => addressing::route(row, object),
        "gateway" => addressing::gateway(row, object),
        "dhcp-pool" => addressing::pool(row, object),
        "dhcp-lease" => addressing::lease(row, object),
        "dns-record" => return addressing::record(row, object),
        "firewall-rule" => filter::rule(row, object),
        "nat-rule" => filter::nat(row, object),
        "address-group" => filter::member(row, object),
        "vpn-tunnel" => vpn::tunnel(row, object),
        "vpn-peer" => vpn::peer(row, object),
        "radius-profile" => machine::radius(row, object),
        "radius-user" if !object.fields.contains_key("enabled") => put(object, "enabled", Some(true)),
        "disk" => return text(row, "type").is_none_or(|kind| kind != "partition"),
        "volume" => machine::volume(row, object),
        "backup" => machine::backup(object),
        "firmware" => machine::firmware(row, object),
        _ => {}
    }
    true
}

/// A text of a row, under the whole name; none where it is empty.
fn text<'r>(row: &'r Value, name: &str) -> Option<&'r str> {
    row.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// What is joined to a row under a name; none where there is nothing.
fn beside<'r>(row: &'r Value, name: &str) -> Option<&'r Value> {
    row.get("&")?.get(name).filter(|found| !found.is_null())
}

/// Rows that are joined to a row under a name.
fn several<'r>(row: &'r Value, name: &str) -> &'r [Value] {
    beside(row, name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a flag of a row is on.
fn is_on(row: &Value, name: &str) -> bool {
    matches!(row.get(name).and_then(Value::as_str), Some("true" | "yes"))
}

/// Whether a row has a mark, which stands there without content.
fn is_marked(row: &Value, name: &str) -> bool {
    row.get(name).is_some_and(|value| value != "false" && value != "no")
}

/// The items of a text, such as `80,443`.
fn items(row: &Value, name: &str) -> Vec<String> {
    let parts = text(row, name).unwrap_or_default().split(',');
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn number(row: &Value, name: &str) -> Option<i64> {
    text(row, name)?.parse().ok()
}

/// A field of an object that is a text.
fn field(object: &Modelled, name: &str) -> Option<String> {
    object.fields.get(name)?.as_str().map(str::to_owned)
}

/// Puts a field where it is known.
fn put(object: &mut Modelled, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.fields.insert(name.to_owned(), value.into());
    }
}
