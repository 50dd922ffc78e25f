//! Who the controller is, what is at its sites, and every kind of object.

use heddle_lab_omada::{Release, Seed};
use heddle_sdk::{Adapter as _, Attribute, Availability, Fault, FaultExt, Listing, Status};
use serde_json::{Value, json};

use super::device::{Device, description};
use super::world;
use crate::Omada;

#[test]
fn controller_says_who_it_is_and_what_it_can_do() {
    let device = Device::new();
    let profile = Omada::check(&device.host()).unwrap();
    assert_eq!((profile.product.as_str(), profile.version.as_str()), ("Omada", "6.2.10.15"));
    let available = |id: &str| {
        let found = profile.capabilities.iter().find(|known| known.id == id).unwrap();
        matches!(found.available, Availability::Yes)
    };
    assert!(available("gateway") && available("switch") && available("port-settings") && !available("olt"));
    assert!(profile.facts.iter().any(|fact| fact.key == "omadac-id" && fact.value == device.controller));
    let old = Device::with(Seed { release: Release::V515, ..Seed::default() }, "lab-secret");
    let older = Omada::check(&old.host()).unwrap();
    let found = older.capabilities.iter().find(|known| known.id == "port-settings").unwrap();
    assert!(matches!(found.available, Availability::No) && found.reason.is_some());
    assert_ne!(profile.fingerprint, older.fingerprint);
}

#[test]
fn controller_with_several_sites_is_checked_without_a_choice() {
    let mut device = Device::new();
    device.settings = json!({});
    let profile = Omada::check(&device.host()).unwrap();
    assert!(profile.capabilities.is_empty());
    assert!(profile.facts.iter().any(|fact| fact.key == "sites" && fact.value == "Main, Branch"));
}

#[test]
fn refused_application_is_an_authentication_fault() {
    let device = Device::with(Seed::default(), "wrong");
    assert!(matches!(Omada::check(&device.host()).unwrap_err(), Fault::Authentication(_)));
}

#[test]
fn controller_without_its_wizard_finished_is_not_ready() {
    let host = heddle_sdk::testing::FakeHost::new(|_, _| {
        let info = json!({ "controllerVer": "6.2.0.1", "configured": false, "omadacId": "0" });
        Ok(heddle_sdk::testing::json_response(200, &json!({ "errorCode": 0, "result": info })))
    });
    let fault = Omada::check(&host).unwrap_err();
    assert!(matches!(&fault, Fault::NotReady(info) if info.message.contains("wizard")));
}

#[test]
fn devices_are_those_of_the_site_those_that_wait_and_the_clients() {
    let device = Device::new();
    let page = Omada::list_devices(&device.host(), None, None).unwrap();
    let of = |kind: &str| page.items.iter().filter(|item| item.kind == kind).count();
    assert_eq!((of("gateway"), of("switch"), of("access-point"), of("client")), (1, 3, 4, 4));
    let gateway = &page.items[0];
    assert_eq!((gateway.kind.as_str(), gateway.identity.as_str()), ("gateway", "3c:6a:d2:00:01:10"));
    assert!(matches!(gateway.status, Status::Online));
    assert!(gateway.model.is_some() && gateway.firmware.is_some() && !gateway.addresses.is_empty());
    let measured: Value = serde_json::from_str(&gateway.measurements).unwrap();
    assert_eq!(measured["cpuUtil"], 9);
    let pending = page.items.iter().filter(|item| item.attributes.contains("pending")).count();
    assert_eq!(pending, 2);
    assert!(page.items.iter().all(|item| item.site.as_ref() == Some(&device.sites[0])));
    let again = Omada::list_devices(&device.host(), None, None).unwrap();
    let identities = |page: &heddle_sdk::DevicePage| {
        page.items.iter().map(|item| item.identity.clone()).collect::<Vec<_>>()
    };
    assert_eq!(identities(&page), identities(&again));
    assert_eq!(device.writes.get(), 0);
}

#[test]
fn newer_controller_is_asked_for_clients_by_post() {
    let device = Device::new();
    device.lab().edit(&json!({ "missing": ["GET v1 site clients"] })).unwrap();
    let page = Omada::list_devices(&device.host(), None, None).unwrap();
    let online = |item: &&heddle_sdk::Device| item.kind == "client" && matches!(item.status, Status::Online);
    assert!(page.items.iter().filter(online).count() > 1);
}

#[test]
fn device_that_is_away_is_offline() {
    let device = Device::new();
    let edit = json!({ "site": device.sites[0], "device": "3C-6A-D2-00-01-30", "state": "down" });
    device.lab().edit(&edit).unwrap();
    let page = Omada::list_devices(&device.host(), None, None).unwrap();
    let found = page.items.iter().find(|item| item.identity == "3c:6a:d2:00:01:30").unwrap();
    assert!(matches!(found.status, Status::Offline));
}

/// Values of filters that a list needs.
fn asked(binding: &Value) -> Vec<Attribute> {
    let part = if binding["list"].is_object() { "list" } else { "get" };
    let filters = binding[part]["filters"].as_object().into_iter().flatten();
    // A body has a number where a text is one.
    let is_text = |name: &str| {
        let body = world::body(binding).and_then(|shape| world::inside(&shape, name));
        body.is_some_and(|kind| kind.trim_start_matches('*').starts_with('s'))
    };
    let value = |name: &str| match name {
        name if name.to_lowercase().ends_with("start") => "1700000000000",
        name if name.to_lowercase().ends_with("end") => "1700000900000",
        name if is_text(name) => "some",
        "length" => "8",
        _ => "1",
    };
    let given = |name: &String| Attribute { key: name.clone(), value: value(name).to_owned() };
    filters.filter(|(_, filter)| filter["required"] == true).map(|(name, _)| given(name)).collect()
}

#[test]
fn every_kind_is_listed_and_nothing_but_reads_is_sent() {
    let device = Device::new();
    let mut failures = Vec::new();
    for kind in description()["kinds"].as_array().unwrap() {
        let (id, binding) = (kind["id"].as_str().unwrap(), &kind["binding"]);
        if let Err(problem) = world::place(&device, binding) {
            failures.push(format!("{id}: {problem}"));
        }
    }
    let stored = device.stored();
    for kind in description()["kinds"].as_array().unwrap() {
        let (id, binding) = (kind["id"].as_str().unwrap(), &kind["binding"]);
        let filter = asked(binding);
        let listing = Listing { filter: &filter, ..Listing::of(id, 1000) };
        match Omada::list_objects(&device.host(), &listing) {
            Ok(page) => {
                for item in page.items.iter().take(1).filter(|_| filter.is_empty()) {
                    serde_json::from_str::<Value>(&item.body).unwrap();
                    let key = &item.reference.key;
                    if let Err(fault) = Omada::get_object(&device.host(), id, None, key) {
                        failures.push(format!("{id} '{key}': {}", fault.info().message));
                    }
                }
            }
            Err(fault) => failures.push(format!("{id}: {}", fault.info().message)),
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(device.stored(), stored);
    assert_eq!(device.writes.get(), 0);
}

#[test]
fn long_list_comes_in_pages() {
    let device = Device::with(Seed { clients: 25, ..Seed::default() }, "lab-secret");
    let (mut keys, mut cursor): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let listing = Listing { cursor: cursor.as_deref(), ..Listing::of("insights.known-client", 10) };
        let page = Omada::list_objects(&device.host(), &listing).unwrap();
        assert!(page.items.len() <= 10);
        keys.extend(page.items.into_iter().map(|item| item.reference.key));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 25);
}

#[test]
fn keys_of_networks_are_shown_and_secrets_are_not() {
    let device = Device::new();
    let page = Omada::list_objects(&device.host(), &Listing::of("vpn.wireguard", 10)).unwrap();
    assert!(
        page.items[0].body.contains("wg-remote") && !page.items[0].body.contains("yAnz"),
        "{:?}",
        page.items[0]
    );
}

#[test]
fn read_whose_path_wants_a_word_says_so() {
    let device = Device::new();
    let fault = Omada::list_objects(&device.host(), &Listing::of("routing.table", 10)).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(info) if info.message.contains("type")), "{fault:?}");
    let filter = [Attribute { key: "type".to_owned(), value: "1".to_owned() }];
    let listing = Listing { filter: &filter, ..Listing::of("routing.table", 10) };
    Omada::list_objects(&device.host(), &listing).unwrap();
}
