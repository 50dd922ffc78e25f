//! Objects of the model, made of the state that the router reports and of its configuration.
//!
//! References to interfaces are names of the configuration (`lan`); devices below them have their own (`br-lan`).

mod addressing;
mod filter;
mod live;
mod network;
mod system;
mod wireless;
mod written;

use heddle_sdk::{Completeness, Fault, Host, ModelObject, ModelPage, ObjectRef, Origin, fault};
use serde_json::{Map, Value};

use crate::features::{SECTIONS, SectionFeature, naming};
use crate::read;
use crate::uci::{Config, Section};
use live::Live;
pub(crate) use written::express;

/// Objects of a page. The device has no pages, so they are cut here.
const PAGE_OBJECTS: usize = 500;

/// All objects of a kind, and whether they are all.
type Found = (Vec<ModelObject>, Completeness);

/// A page of the objects of a kind.
pub(crate) fn list(host: &dyn Host, kind: &str, cursor: Option<&str>) -> Result<ModelPage, Fault> {
    let start = match cursor {
        None => 0,
        Some(text) => text
            .parse::<usize>()
            .map_err(|_| fault::invalid(format!("the cursor '{text}' is not one of this adapter")))?,
    };
    let (all, complete) = read(host, kind)?;
    let total = all.len();
    let items: Vec<ModelObject> = all.into_iter().skip(start).take(PAGE_OBJECTS).collect();
    let end = start.saturating_add(items.len());
    Ok(ModelPage { items, next: (end < total).then(|| end.to_string()), complete })
}

fn read(host: &dyn Host, kind: &str) -> Result<Found, Fault> {
    let live = |make: fn(&Live) -> Vec<ModelObject>, needed: &[usize]| {
        let live = Live::read(host, needed)?;
        Ok((make(&live), live.complete()))
    };
    let network = [live::INTERFACES, live::DEVICES];
    match kind {
        "system" => live(system::system, &[live::INFO]),
        "firmware" => live(system::firmware, &[]),
        "interface" => live(network::interfaces, &network),
        "port" => live(network::ports, &network),
        "vlan" => live(network::vlans, &network),
        "route" => live(network::routes, &network),
        "radio" => live(wireless::radios, &[live::WIRELESS]),
        "ssid" => live(wireless::ssids, &[live::WIRELESS]),
        "client" => wireless::clients(host),
        "dhcp-lease" => addressing::leases(host),
        "dhcp-pool" => of_config(host, "dhcp", addressing::pools),
        "dhcp-reservation" => of_config(host, "dhcp", addressing::reservations),
        "dns-record" => of_config(host, "dhcp", addressing::records),
        "firewall-rule" => of_config(host, "firewall", filter::rules),
        "nat-rule" => of_config(host, "firewall", filter::translations),
        _ => Err(fault::unsupported(format!("the kind '{kind}' of the model is not filled"))),
    }
}

fn of_config(host: &dyn Host, name: &str, make: fn(&Config) -> Vec<ModelObject>) -> Result<Found, Fault> {
    let configs = read::configs(host, &[name])?;
    Ok((make(&configs[name]), Completeness::Complete))
}

/// An object that is about the device with this identity, or about none.
fn object(key: &str, label: &str, device: Option<&str>, fields: Fields) -> ModelObject {
    ModelObject {
        key: key.to_owned(),
        label: label.to_owned(),
        origin: Origin::Own,
        device: device.map(str::to_owned),
        native: None,
        fields: Value::Object(fields.0).to_string(),
    }
}

/// Names the object of the vendor's that says most of one of the model.
fn natively(kind: &str, key: &str, object: ModelObject) -> ModelObject {
    let native = ObjectRef { kind: kind.to_owned(), site: None, key: key.to_owned(), locators: Vec::new() };
    ModelObject { native: Some(native), ..object }
}

/// The sections of a kind in their order, with the keys that they have as objects.
fn sections<'c>(config: &'c Config, kind: &str) -> Vec<(String, &'c Section)> {
    let feature: Option<&SectionFeature> = SECTIONS.iter().copied().find(|feature| feature.kind == kind);
    let names = feature.map(|feature| naming::names(feature, config)).unwrap_or_default();
    names.into_iter().filter_map(|(uid, name)| Some((name.join(":"), config.section(uid)?))).collect()
}

/// Whether a switch of a section is on; the device takes several words.
fn flag(section: &Section, option: &str, default: bool) -> bool {
    match section.text(option) {
        None => default,
        Some(word) => ["1", "on", "true", "yes", "enabled"].contains(&word),
    }
}

/// The words of an option.
fn words(section: &Section, option: &str) -> Vec<String> {
    section
        .options
        .get(option)
        .map(|entry| entry.words().into_iter().map(str::to_owned).collect())
        .unwrap_or_default()
}

/// Fields of an object; what is not known is left out.
#[derive(Debug, Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    /// A text that says something.
    fn text(self, name: &str, value: Option<&str>) -> Self {
        self.with(name, value.filter(|text| !text.is_empty()))
    }
}
