//! The controller, its sites, its devices, and every kind of the description.

use heddle_lab_unifi::{Release, Settings};
use heddle_sdk::{Adapter as _, Attribute, Completeness, Fault, Listing, Status};
use serde_json::Value;

use super::device::{Device, description, package};
use crate::Unifi;

#[test]
fn controller_says_who_it_is_and_what_it_can_do() {
    let device = Device::new();
    let profile = Unifi::check(&device.host()).unwrap();
    assert_eq!((profile.product.as_str(), profile.version.as_str()), ("UniFi Network", "10.4.57"));
    let fact = |key: &str| profile.facts.iter().find(|fact| fact.key == key).map(|fact| fact.value.clone());
    assert_eq!(fact("platform").as_deref(), Some("UniFi OS"));
    assert!(fact("uuid").is_some_and(|uuid| !uuid.is_empty()));
    for id in ["gateway", "switch", "access-point", "official-api", "zones"] {
        assert!(profile.capabilities.iter().any(|one| one.id == id), "{id}");
    }
}

#[test]
fn release_before_9_is_refused() {
    let device = Device::of(Settings { told_version: Some("8.6.9".to_owned()), ..Settings::default() });
    let fault = Unifi::check(&device.host()).unwrap_err();
    assert!(matches!(&fault, Fault::Unsupported(info) if info.message.contains("9.0")), "{fault:?}");
}

#[test]
fn sites_have_their_short_names_as_ids() {
    let device = Device::new();
    let page = Unifi::list_sites(&device.host(), None).unwrap();
    assert_eq!(page.items[0].id, "default");
    assert!(page.items.len() > 1 && page.items.iter().all(|site| !site.name.is_empty()));
}

#[test]
fn site_of_the_settings_is_the_only_one() {
    let mut device = Device::new();
    let second = Unifi::list_sites(&device.host(), None).unwrap().items.remove(1);
    device.settings["site"] = Value::from(second.name.clone());
    let page = Unifi::list_sites(&device.host(), None).unwrap();
    assert_eq!(page.items.iter().map(|site| site.id.as_str()).collect::<Vec<_>>(), [second.id.as_str()]);
    device.settings["site"] = Value::from("nowhere");
    assert!(matches!(Unifi::list_sites(&device.host(), None).unwrap_err(), Fault::Invalid(_)));
}

#[test]
fn devices_and_clients_are_told_once() {
    let device = Device::new();
    let page = Unifi::list_devices(&device.host(), Some("default"), None).unwrap();
    assert!(matches!(page.complete, Completeness::Complete));
    for kind in ["gateway", "switch", "access-point", "client"] {
        assert!(page.items.iter().any(|item| item.kind == kind), "{kind}");
    }
    assert!(page.items.iter().any(|item| item.kind == "switch" && item.status == Status::Online));
    let mut identities: Vec<&str> = page.items.iter().map(|item| item.identity.as_str()).collect();
    identities.sort_unstable();
    let all = identities.len();
    identities.dedup();
    assert_eq!(identities.len(), all, "each once");
    assert!(page.items.iter().all(|item| item.site.as_deref() == Some("default")));
}

/// What a kind needs to be listed: each filter that it cannot do without.
fn filter(device: &Device, kind: &Value) -> Vec<Attribute> {
    let binding = &kind["binding"];
    let all = ["list", "get"].into_iter().filter_map(|part| binding[part]["filters"].as_object()).flatten();
    let needed = all.filter(|(_, filter)| filter["required"] == true);
    let mac = |kind: &str| super::samples::mac_of(device, kind).unwrap().as_str().unwrap().to_owned();
    let value = |name: &str| match (kind["id"].as_str().unwrap(), name) {
        ("clients.session", "mac") => "02:00:5e:10:00:01".to_owned(),
        ("wifi.spectrum", "mac") => mac("access-point"),
        (_, "mac") => mac("switch"),
        (_, "fingerprint_source") => "0".to_owned(),
        (_, "wan") => "WAN".to_owned(),
        (_, "sort") => "-time".to_owned(),
        (_, "attrs") => "time,latency".to_owned(),
        _ => "all".to_owned(),
    };
    needed.map(|(name, _)| Attribute { key: name.clone(), value: value(name) }).collect()
}

/// What belongs to the console itself, which takes no key.
#[test]
fn console_is_read_by_an_account() {
    let listing = Listing::of("firmware.console", 100);
    let refused = Unifi::list_objects(&Device::new().host(), &listing).unwrap_err();
    assert!(matches!(refused, Fault::Unsupported(_)), "{refused:?}");
    let page = Unifi::list_objects(&Device::new().with_account().host(), &listing).unwrap();
    let body: Value = serde_json::from_str(&page.items[0].body).unwrap();
    assert_eq!(body["latest"], "4.3.9", "{body}");
}

#[test]
fn every_kind_is_read_at_every_release_or_not_offered() {
    for release in [Release::V9_5, Release::V10_1, Release::V10_4] {
        let device = Device::of(Settings { release, ..Settings::default() });
        let mut failed = Vec::new();
        for kind in package().kinds().iter().filter(|kind| !kind["file"].is_object()) {
            let given = filter(&device, kind);
            let listing = Listing { filter: &given, ..Listing::of(kind["id"].as_str().unwrap(), 100) };
            let writes = device.writes.get();
            match Unifi::list_objects(&device.host(), &listing) {
                Ok(_) | Err(Fault::Unsupported(_) | Fault::NotFound(_)) => {}
                Err(fault) => failed.push(format!("{} at {release:?}: {fault:?}", kind["id"])),
            }
            assert_eq!(device.writes.get(), writes, "{}", kind["id"]);
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}

#[test]
fn no_read_shows_a_secret() {
    for kind in description()["kinds"].as_array().unwrap() {
        for (name, field) in kind["binding"]["fields"].as_object().into_iter().flatten() {
            let is_named = name.starts_with("x_") && (name.ends_with("password") || name.ends_with("secret"));
            assert!(!is_named || field == "secret", "{} {name}", kind["id"]);
        }
    }
}

#[test]
fn controller_is_asked_a_few_times_for_its_devices() {
    let device = Device::new();
    let before = device.asked();
    Unifi::list_devices(&device.host(), Some("default"), None).unwrap();
    assert_eq!(device.asked() - before, 3);
}
