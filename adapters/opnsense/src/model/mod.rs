//! Objects of the model, where the bindings of `model.json` do not say everything.
//!
//! [`modelled`] completes an object from its own row. [`list`] adds what only the firewall's interfaces tell: which
//! device an object belongs to, and the keys of interfaces. References to interfaces are keys of the kind `interface`:
//! the key of the assignment (`lan`), and the device where nothing is assigned to it (`igb3`).

mod addressing;
mod filter;
mod interface;
mod neighbours;
mod network;
mod order;
mod routing;
mod system;
mod vpn;
mod written;

use heddle_sdk::crud::{self, Modelled};
use heddle_sdk::{Fault, Host, ModelPage};
use serde_json::Value;

use crate::VENDOR;
use network::Network;
use order::Order;
pub(crate) use written::expressed;

/// A page of the objects of a kind.
pub(crate) fn list(
    host: &dyn Host,
    kind: &str,
    site: Option<&str>,
    cursor: Option<&str>,
) -> Result<ModelPage, Fault> {
    match kind {
        "client" => return neighbours::clients(host),
        "neighbour" => return neighbours::heard(host),
        _ => {}
    }
    let (mut order, inner) = Order::of(cursor);
    let mut page = crud::list_model(&VENDOR, host, kind, site, inner)?;
    if !page.items.is_empty()
        && let Some(network) = Network::for_kind(host, kind)?
    {
        page.items.iter_mut().for_each(|item| network.complete(kind, item));
    }
    order.number(kind, &mut page.items);
    page.next = page.next.map(|next| order.cursor(&next));
    Ok(page)
}

/// Has the last word on an object; false leaves it out.
pub(crate) fn modelled(kind: &str, row: &Value, object: &mut Modelled) -> bool {
    match kind {
        "system" => system::system(row, object),
        "volume" => system::volume(row, object),
        "snapshot" => system::snapshot(row, object),
        "backup" => system::of_system(object),
        "firmware" => system::firmware(row, object),
        "certificate" => system::certificate(row, object),
        "interface" => interface::interface(row, object),
        "vlan" => interface::vlan(row, object),
        "route" => return routing::route(row, object),
        "gateway" => routing::gateway(object),
        "dhcp-pool" => addressing::pool(row, object),
        "dhcp-lease" => addressing::lease(row, object),
        "dns-record" => return addressing::record(row, object),
        "firewall-rule" => filter::rule(row, object),
        "nat-rule" => filter::nat(row, object),
        "address-group" => filter::group(row, object),
        "vpn-tunnel" => vpn::tunnel(row, object),
        "vpn-peer" => vpn::peer(object),
        _ => {}
    }
    true
}

/// A text of a row, under the whole name; none where it is empty.
fn text<'r>(row: &'r Value, name: &str) -> Option<&'r str> {
    row.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// The row of another kind that belongs to a row; none where there is none.
fn beside<'r>(row: &'r Value, name: &str) -> Option<&'r Value> {
    row.get("&")?.get(name).filter(|found| !found.is_null())
}

/// Whether a flag of a row is on.
fn is_on(row: &Value, name: &str) -> bool {
    row.get(name).is_some_and(|value| value == true || value == "1" || value == 1)
}

/// The items of a text, such as `lan,opt1`.
fn items(row: &Value, name: &str, separator: char) -> Vec<String> {
    let parts = text(row, name).unwrap_or_default().split(separator);
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Puts a field where it is known.
fn put(object: &mut Modelled, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.fields.insert(name.to_owned(), value.into());
    }
}
