//! Objects of the model, where the bindings of `model.json` do not say everything.
//!
//! [`modelled`] completes an object from its own row. [`list`] adds what only the firewall's interfaces tell. The firewall
//! names interfaces by their description, id or port, as one of its settings says. In the model they are ids (`lan`), and
//! ports where nothing is assigned to one (`igb3`).

mod filter;
mod names;
mod network;
mod order;
mod system;
mod vpn;
mod written;

use heddle_sdk::crud::{self, Modelled};
use heddle_sdk::{Completeness, Fault, Host, ModelObject, ModelPage, Origin};
use serde_json::{Value, json};

use crate::{Vendor, clients};
use names::Names;
use order::Order;
pub(crate) use written::expressed;

/// A page of the objects of a kind.
pub(crate) fn list(
    host: &dyn Host,
    kind: &str,
    site: Option<&str>,
    cursor: Option<&str>,
) -> Result<ModelPage, Fault> {
    if kind == "client" {
        return all_clients(host);
    }
    let (mut order, inner) = Order::of(cursor);
    let mut page = crud::list_model(&Vendor::of(host), host, kind, site, inner)?;
    if !page.items.is_empty() && Names::are_needed(kind) {
        let names = Names::read(host)?;
        page.items.iter_mut().for_each(|item| names.complete(kind, item));
    }
    order.number(kind, &mut page.items);
    page.next = page.next.map(|next| order.cursor(&next));
    Ok(page)
}

/// What is behind the firewall.
fn all_clients(host: &dyn Host) -> Result<ModelPage, Fault> {
    let found = clients::gather(host)?;
    let (names, complete): (_, Completeness) = (Names::read(host)?, found.complete());
    let one = |client: clients::Client| {
        let mut fields = json!({ "mac": client.mac, "addresses": client.addresses });
        if let Some(name) = &client.name {
            fields["hostname"] = json!(name);
        }
        if let Some(interface) = &client.interface {
            fields["interface"] = json!(names.key(interface));
        }
        ModelObject {
            key: client.mac.clone(),
            label: client.name.unwrap_or_else(|| client.mac.clone()),
            origin: Origin::Derived,
            device: Some(client.mac),
            native: None,
            fields: fields.to_string(),
        }
    };
    let items = found.all.into_iter().filter(|client| !names.is_own(&client.mac)).map(one).collect();
    Ok(ModelPage { items, next: None, complete })
}

/// Has the last word on an object; false leaves it out.
pub(crate) fn modelled(kind: &str, row: &Value, object: &mut Modelled) -> bool {
    match kind {
        "system" => system::system(row, object),
        "firmware" => system::firmware(row, object),
        "backup" => system::of_system(object),
        "certificate" => system::certificate(row, object),
        "interface" => return network::interface(row, object),
        "vlan" => network::vlan(row, object),
        "gateway" => network::gateway(row, object),
        "dhcp-pool" => network::pool(row, object),
        "dhcp-lease" => network::lease(row, object),
        "dns-record" => return network::record(row, object),
        "firewall-rule" => filter::rule(row, object),
        "nat-rule" => filter::nat(row, object),
        "address-group" => filter::group(row, object),
        "vpn-tunnel" => vpn::tunnel(row, object),
        "vpn-peer" => vpn::peer(row, object),
        _ => {}
    }
    true
}

/// A text of a row; none where it is empty.
fn text<'r>(row: &'r Value, name: &str) -> Option<&'r str> {
    row.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// The row of another kind that belongs to a row; none where there is none.
fn beside<'r>(row: &'r Value, name: &str) -> Option<&'r Value> {
    row.get("&")?.get(name).filter(|found| !found.is_null())
}

fn is_on(row: &Value, name: &str) -> bool {
    row.get(name) == Some(&Value::Bool(true))
}

/// The texts of a list, or the one text that stands in its place.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(text)) if !text.is_empty() => vec![text.clone()],
        _ => Vec::new(),
    }
}

/// Puts a field where it is known.
fn put(object: &mut Modelled, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.fields.insert(name.to_owned(), value.into());
    }
}
