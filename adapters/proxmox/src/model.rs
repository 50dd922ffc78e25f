//! Objects of the model, for what `model.json` cannot say: texts that hold several values, what several rows tell
//! together, and names of owners.

mod guests;
mod networks;
mod rules;
mod storages;
mod written;

use heddle_sdk::ModelObject;
use heddle_sdk::crud::Modelled;
use serde_json::{Map, Value, json};
pub(crate) use written::expressed;

/// Has the last word on an object of the model; false leaves it out.
pub(crate) fn complete(kind: &str, row: &Value, object: &mut Modelled) -> bool {
    owners(row, object);
    match kind {
        "system" => limited(&mut object.fields, "cpu_percent"),
        "interface" => networks::interface(row, &mut object.fields),
        "vlan" => networks::vlan(row, &mut object.fields),
        "dhcp-pool" => return networks::pool(row, &mut object.fields),
        "dhcp-reservation" => return object.fields.contains_key("mac"),
        "firewall-rule" => rules::rule(row, object),
        "address-group" => rules::group(row, object),
        "guest" => guests::guest(row, &mut object.fields),
        "volume" => return storages::volume(row, object),
        "disk" => storages::disk(row, object),
        "backup" => return storages::backup(row, object),
        "firmware" => firmware(row, &mut object.fields),
        _ => {}
    }
    true
}

/// Tells objects of a page apart that the vendor does not.
pub(crate) fn distinguish(kind: &str, items: &mut [ModelObject]) {
    if kind == "disk" {
        storages::distinguish(items);
    }
}

/// Names that end with a slash are completed by a parameter of the object's paths: `qemu/` by the number of the guest.
fn owners(row: &Value, object: &mut Modelled) {
    let complete = |text: &str| {
        let parameter = match text {
            "node/" => "node",
            "qemu/" | "lxc/" => "vmid",
            "vnet/" => "vnet",
            "group/" => "group",
            _ => return None,
        };
        Some(format!("{text}{}", text_of(&row["$"], parameter)))
    };
    if let Some(whole) = object.device.as_deref().and_then(complete) {
        object.device = Some(whole);
    }
    if let Some(key) = object.fields.get_mut("scope").and_then(|scope| scope.get_mut("key"))
        && let Some(whole) = key.as_str().and_then(complete)
    {
        *key = Value::from(whole);
    }
}

/// The version that is installed, and the newer one that the node knows of.
fn firmware(row: &Value, fields: &mut Map<String, Value>) {
    let (current, candidate) = (text_of(row, "OldVersion"), text_of(row, "Version"));
    if current.is_empty() || candidate.is_empty() {
        return;
    }
    let state = if current == candidate { "current" } else { "available" };
    fields.insert("state".to_owned(), json!(state));
    if state == "available" {
        fields.insert("available".to_owned(), json!(candidate));
    }
}

/// Shares are of all processors, and a moment may seem to have had more than there are.
fn limited(fields: &mut Map<String, Value>, name: &str) {
    if fields.get(name).and_then(Value::as_f64).is_some_and(|share| share > 100.0) {
        fields.insert(name.to_owned(), json!(100.0));
    }
}

/// A text or number of a row, as text; empty where there is none.
fn text_of(row: &Value, name: &str) -> String {
    match row.get(name) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Whether a row's flag is set.
fn is_set(row: &Value, name: &str) -> bool {
    text_of(row, name) == "1"
}

fn rows<'v>(row: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> + Clone {
    row["&"][name].as_array().into_iter().flatten()
}

/// A number of a VLAN; vendors write other numbers in the same place.
fn vlan_id(text: &str) -> Option<u16> {
    text.parse().ok().filter(|id| (1..=4094).contains(id))
}

/// A hardware address as the model writes it.
fn mac(text: &str) -> Option<String> {
    let bytes: Vec<&str> = text.split(':').collect();
    let is_byte = |byte: &&str| byte.len() == 2 && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
    (bytes.len() == 6 && bytes.iter().all(is_byte)).then(|| text.to_ascii_lowercase())
}

/// The texts between commas.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}
