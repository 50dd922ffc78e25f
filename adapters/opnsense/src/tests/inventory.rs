//! Who the firewall is, what is behind it, and every kind of object.

use heddle_lab_opnsense::{Release, Settings};
use heddle_sdk::{Adapter as _, Availability, Fault, FaultExt, Listing};
use serde_json::Value;

use super::device::{Device, description};
use crate::Opnsense;

#[test]
fn firewall_says_who_it_is_and_what_it_can_do() {
    let profile = Opnsense::check(&Device::new().host()).unwrap();
    assert_eq!((profile.product.as_str(), profile.version.as_str()), ("OPNsense", "26.7.2"));
    assert!(profile.capabilities.iter().all(|known| matches!(known.available, Availability::Yes)));
    let old =
        Device::of(Settings { release: Release::V26_1, plugins: Some(Vec::new()), ..Settings::default() });
    let older = Opnsense::check(&old.host()).unwrap();
    let absent = |id: &str| {
        let found = older.capabilities.iter().find(|known| known.id == id).unwrap();
        matches!(found.available, Availability::No) && found.reason.is_some()
    };
    assert!(absent("interface-assignment") && absent("frr") && !absent("kea"));
    assert_ne!(profile.fingerprint, older.fingerprint);
}

#[test]
fn wrong_secret_is_an_authentication_fault() {
    let device = Device::new().with_secret("wrong");
    assert!(matches!(Opnsense::check(&device.host()).unwrap_err(), Fault::Authentication(_)));
}

#[test]
fn page_of_a_browser_is_a_firewall_that_is_not_ready() {
    let device = Device::new();
    device.lab().fault(heddle_lab::Fault::vendor("login_page", Value::Null));
    assert!(matches!(Opnsense::check(&device.host()).unwrap_err(), Fault::NotReady(_)));
}

#[test]
fn devices_are_the_firewall_and_its_clients() {
    let device = Device::new();
    let page = Opnsense::list_devices(&device.host(), None, None).unwrap();
    assert_eq!(page.items[0].kind, "firewall");
    assert!(page.items[0].addresses.contains(&"192.168.1.1".to_owned()), "{:?}", page.items[0]);
    let clients: Vec<_> = page.items.iter().skip(1).collect();
    assert!(clients.len() >= 3, "{clients:?}");
    assert!(clients.iter().all(|client| client.kind == "client" && client.mac.is_some()));
    assert!(clients.iter().any(|client| client.name != client.identity), "{clients:?}");
    let again = Opnsense::list_devices(&device.host(), None, None).unwrap();
    let identities = |page: &heddle_sdk::DevicePage| -> Vec<String> {
        page.items.iter().map(|item| item.identity.clone()).collect()
    };
    assert_eq!(identities(&page), identities(&again));
    assert_eq!(device.posts.get(), 0);
}

#[test]
fn every_kind_is_listed_and_nothing_but_reads_is_sent() {
    let device = Device::new();
    let (stored, mut failures) = (device.stored(), Vec::new());
    for kind in description()["kinds"].as_array().unwrap() {
        let id = kind["id"].as_str().unwrap();
        match Opnsense::list_objects(&device.host(), &Listing::of(id, 1000)) {
            Ok(page) => {
                for item in page.items.iter().take(2) {
                    let key = &item.reference.key;
                    serde_json::from_str::<Value>(&item.body).unwrap();
                    if let Err(fault) = Opnsense::get_object(&device.host(), id, None, key) {
                        failures.push(format!("{id} '{key}': {}", fault.info().message));
                    }
                }
            }
            Err(fault) => failures.push(format!("{id}: {}", fault.info().message)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(device.stored(), stored);
}

#[test]
fn long_list_comes_in_pages() {
    let device = Device::of(Settings { rules: 25, ..Settings::default() });
    let mut keys = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = Opnsense::list_objects(
            &device.host(),
            &Listing { cursor: cursor.as_deref(), ..Listing::of("firewall.rule", 10) },
        )
        .unwrap();
        assert!(page.items.len() <= 10);
        keys.extend(page.items.into_iter().map(|item| item.reference.key));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert!(keys.contains(&"rule 24".to_owned()), "{keys:?}");
    assert!(keys.len() >= 25);
}
