//! The firewall, what is behind it, and every kind of the description.

use heddle_lab_pfsense::{Release, Settings};
use heddle_sdk::{Adapter as _, Attribute, Completeness, Fault, Listing, Status};
use serde_json::{Value, json};

use super::device::{Device, description};
use crate::Pfsense;

#[test]
fn firewall_says_who_it_is_and_what_it_can_do() {
    let device = Device::new();
    let profile = Pfsense::check(&device.host()).unwrap();
    assert_eq!((profile.product.as_str(), profile.version.as_str()), ("pfSense CE 2.8.1, REST API", "2.10"));
    let facts: Vec<(&str, &str)> =
        profile.facts.iter().map(|fact| (fact.key.as_str(), fact.value.as_str())).collect();
    assert_eq!(facts, [("hostname", "pfsense"), ("pfsense", "2.8.1")]);
    assert!(profile.capabilities.iter().any(|one| one.id == "wireguard"));
}

#[test]
fn firewall_and_its_clients_are_devices() {
    let device = Device::new();
    let page = Pfsense::list_devices(&device.host(), None, None).unwrap();
    assert!(matches!(page.complete, Completeness::Complete));
    let firewall = &page.items[0];
    assert_eq!((firewall.kind.as_str(), firewall.name.as_str()), ("firewall", "pfsense.home.example"));
    assert_eq!(firewall.firmware.as_deref(), Some("2.8.1"));
    assert!(firewall.mac.is_some() && firewall.identity == firewall.mac.clone().unwrap(), "{firewall:?}");
    assert!(firewall.addresses.iter().any(|address| address == "192.168.1.1"), "{:?}", firewall.addresses);
    let clients: Vec<_> = page.items[1..].iter().collect();
    assert!(
        !clients.is_empty() && clients.iter().all(|client| client.kind == "client" && client.mac.is_some())
    );
    assert!(clients.iter().any(|client| client.status == Status::Online), "{clients:?}");
    let mut identities: Vec<&str> = page.items.iter().map(|item| item.identity.as_str()).collect();
    identities.sort_unstable();
    identities.dedup();
    assert_eq!(identities.len(), page.items.len(), "each once");
}

#[test]
fn identity_survives_a_new_name() {
    let device = Device::new();
    let identity = || Pfsense::list_devices(&device.host(), None, None).unwrap().items[0].identity.clone();
    let before = identity();
    device.person(
        heddle_sdk::Method::Patch,
        "/system/hostname",
        &json!({ "hostname": "renamed", "domain": "x.example" }),
    );
    assert_eq!(identity(), before);
}

/// What a kind needs to be listed.
fn filter(kind: &Value) -> Vec<Attribute> {
    let given = |name: &str, value: &str| Attribute { key: name.to_owned(), value: value.to_owned() };
    match kind["id"].as_str().unwrap() {
        "diagnostics.ping" => vec![given("host", "192.168.1.1"), given("count", "1")],
        "system.enum" => vec![given("model", "FirewallRule"), given("field", "protocol")],
        _ => Vec::new(),
    }
}

#[test]
fn every_kind_is_read_at_every_release_that_has_it() {
    for release in [Release::V2_7, Release::V2_8, Release::V2_10] {
        let device = Device::of(Settings { release, ..Settings::default() });
        let kinds =
            description()["kinds"].as_array().unwrap().iter().filter(|kind| !kind["file"].is_object());
        let mut failed = Vec::new();
        for kind in kinds {
            let since = kind["releases"]["from"].as_str().unwrap_or("2.7");
            let number = |text: &str| text.split('.').nth(1).unwrap().parse::<u32>().unwrap();
            let own = match release {
                Release::V2_7 => 7,
                Release::V2_8 => 8,
                Release::V2_10 => 10,
            };
            let given = filter(kind);
            let listing = Listing { filter: &given, ..Listing::of(kind["id"].as_str().unwrap(), 100) };
            match Pfsense::list_objects(&device.host(), &listing) {
                Ok(_) => {}
                Err(Fault::Unsupported(_)) if own < number(since) => {}
                Err(fault) => failed.push(format!("{} at {release:?}: {fault:?}", kind["id"])),
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}
