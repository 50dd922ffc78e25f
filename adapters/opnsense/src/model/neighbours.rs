//! Who is beside the firewall: clients of several tables, and devices that announce themselves.

use std::collections::BTreeMap;

use heddle_sdk::{Completeness, Fault, Host, ModelObject, ModelPage, Origin, crud};
use serde_json::{Map, Value, json};

use super::network::Network;
use super::text;
use crate::answer::read;
use crate::clients;
use crate::devices;

const LLDP: &str = "/api/lldpd/service/neighbor";

fn page(items: Vec<ModelObject>, complete: Completeness) -> ModelPage {
    ModelPage { items, next: None, complete }
}

fn object(key: &str, label: &str, fields: Map<String, Value>) -> ModelObject {
    ModelObject {
        key: key.to_owned(),
        label: label.to_owned(),
        origin: Origin::Derived,
        device: None,
        native: None,
        fields: Value::Object(fields).to_string(),
    }
}

/// The clients of the device list, in the words of the model.
pub(super) fn clients(host: &dyn Host) -> Result<ModelPage, Fault> {
    let network = Network::read(host, "client")?;
    let found = clients::gather(host, network.rows())?;
    let complete = found.complete();
    let own = devices::own_macs(network.rows());
    let one = |client: heddle_sdk::Device| {
        let attributes: Value = serde_json::from_str(&client.attributes).unwrap_or_default();
        let named = text(&attributes, "interface");
        let row = named.and_then(|name| {
            network
                .rows()
                .iter()
                .find(|row| text(row, "description") == Some(name))
                .or_else(|| network.find(name))
        });
        let key = row.and_then(|row| text(row, "identifier").or_else(|| text(row, "device"))).or(named);
        let tag = row.and_then(|row| text(row, "vlan_tag")?.parse::<u16>().ok());
        let hostname = (client.name != client.identity).then_some(client.name.as_str());
        let mut fields = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        put("mac", crud::mac(&client.identity).map(Value::from));
        put("addresses", Some(json!(client.addresses)));
        put("hostname", hostname.map(Value::from));
        put("interface", key.map(Value::from));
        put("vlan_id", tag.map(Value::from));
        let object = object(&client.identity, &client.name, fields);
        ModelObject { device: Some(network.identity().to_owned()), ..object }
    };
    let items = found.all.into_iter().filter(|client| !own.contains(&client.identity)).map(one).collect();
    Ok(page(items, complete))
}

/// Devices that were heard by LLDP and its kin; none without the plugin.
pub(super) fn heard(host: &dyn Host) -> Result<ModelPage, Fault> {
    let answer = match read(host, LLDP) {
        Ok(answer) => answer,
        Err(Fault::Unsupported(_)) => return Ok(page(Vec::new(), Completeness::Complete)),
        Err(other) => return Err(other),
    };
    let found = parsed(text(&answer, "response").unwrap_or_default());
    if found.is_empty() {
        return Ok(page(Vec::new(), Completeness::Complete));
    }
    let network = Network::read(host, "neighbour")?;
    let mut items: Vec<ModelObject> = found
        .into_iter()
        .map(|(key, fields)| {
            let label = ["remote_name", "remote_chassis"].iter().find_map(|name| fields.get(*name)?.as_str());
            let label = label.unwrap_or(&key).to_owned();
            ModelObject { device: Some(network.identity().to_owned()), ..object(&key, &label, fields) }
        })
        .collect();
    items.iter_mut().for_each(|item| network.complete("neighbour", item));
    Ok(page(items, Completeness::Complete))
}

/// What `lldpcli show neighbors` prints: a block for each neighbour that begins with its interface.
pub(super) fn parsed(output: &str) -> BTreeMap<String, Map<String, Value>> {
    let mut out: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut block = Map::new();
    for line in output.lines().chain(["Interface:"]) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let (name, value) = (name.trim(), value.trim());
        if name == "Interface" {
            keep(&mut out, std::mem::take(&mut block));
            begin(&mut block, value);
            continue;
        }
        let field = match name {
            "ChassisID" => "remote_chassis",
            "SysName" => "remote_name",
            "PortID" => "remote_port",
            _ => continue,
        };
        // Ids say of which sort they are.
        let is_id = name != "SysName";
        let known = if is_id { value.split_once(' ').map_or(value, |(_, id)| id.trim()) } else { value };
        if !known.is_empty() {
            block.entry(field).or_insert_with(|| json!(known));
        }
    }
    out
}

/// `igb1, via: LLDP, RID: 1, Time: 0 day, 00:10:00`.
fn begin(block: &mut Map<String, Value>, value: &str) {
    let mut parts = value.split(',').map(str::trim);
    if let Some(port) = parts.next().filter(|port| !port.is_empty()) {
        block.insert("port".to_owned(), json!(port));
    }
    let via = parts.find_map(|part| part.strip_prefix("via:")).map(str::trim);
    let protocol = match via {
        Some("LLDP") => "lldp",
        Some(via) if via.starts_with("CDP") => "cdp",
        Some(_) => "other",
        None => "unknown",
    };
    block.insert("protocol".to_owned(), json!(protocol));
}

fn keep(out: &mut BTreeMap<String, Map<String, Value>>, block: Map<String, Value>) {
    let part = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let known = [part("port"), part("remote_chassis"), part("remote_port")];
    if known[0].is_empty() || known[1].is_empty() {
        return;
    }
    out.insert(known.join(" "), block);
}
