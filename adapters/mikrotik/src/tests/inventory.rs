//! Who the router is, what it can do, and who is behind it.

use heddle_lab_mikrotik::Settings;
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Availability, Completeness, DeviceProfile, Fault, FaultExt, Listing};
use serde_json::json;

use super::device::{Device, description};
use crate::Mikrotik;

fn has(profile: &DeviceProfile, id: &str) -> bool {
    let found = profile.capabilities.iter().find(|one| one.id == id).unwrap_or_else(|| panic!("{id}"));
    matches!(found.available, Availability::Yes)
}

#[test]
fn router_says_who_it_is_and_what_it_can_do() {
    let device = Device::new();
    let profile = Mikrotik::check(&device.host()).unwrap();
    assert_eq!((profile.product.as_str(), profile.version.as_str()), ("RouterOS", "7.22.3"));
    for id in ["dhcp", "ipv6", "wifi", "wireless", "routerboard", "user-manager"] {
        assert!(has(&profile, id), "{id}");
    }
    let small = Device::of(Settings { packages: Some(Vec::new()), is_virtual: true, ..Settings::default() });
    let other = Mikrotik::check(&small.host()).unwrap();
    assert!(!has(&other, "user-manager") && !has(&other, "routerboard"));
    assert_ne!(profile.fingerprint, other.fingerprint);
}

#[test]
fn wrong_password_is_an_authentication_fault() {
    let device = Device::new().with_password("wrong");
    assert!(matches!(Mikrotik::check(&device.host()), Err(Fault::Authentication(_))));
}

#[test]
fn release_before_7_9_is_refused() {
    let checked = |version: &'static str| {
        let host = FakeHost::new(move |_, _| Ok(json_response(200, &json!({ "version": version }))));
        Mikrotik::check(&host).map(|profile| profile.version)
    };
    for old in ["6.49.10 (long-term)", "7.1.5 (stable)", "7.8 (stable)"] {
        let fault = checked(old).unwrap_err();
        assert!(
            matches!(&fault, Fault::Unsupported(info) if info.message.contains("7.9")),
            "{old}: {fault:?}"
        );
    }
    for (told, version) in
        [("7.23.7 (long-term)", "7.23.7"), ("7.9", "7.9"), ("7.24beta1 (testing)", "7.24beta1")]
    {
        assert_eq!(checked(told).unwrap(), version);
    }
}

#[test]
fn router_and_its_clients_are_devices() {
    let device = Device::new();
    let lease = json!({ "do": "lease", "address": "192.168.88.77", "mac": "02:00:00:00:00:77", "hostname": "desk", "server": "defconf" });
    device.lab().edit(&lease).unwrap();
    let page = Mikrotik::list_devices(&device.host(), None, None).unwrap();
    assert!(matches!(page.complete, Completeness::Complete));
    let router = &page.items[0];
    assert_eq!((router.kind.as_str(), router.name.as_str()), ("router", "lab-router"));
    assert!(router.addresses.contains(&"192.168.88.1".to_owned()), "{:?}", router.addresses);
    let client = page.items.iter().find(|client| client.identity == "02:00:00:00:00:77").unwrap();
    assert_eq!((client.kind.as_str(), client.name.as_str()), ("client", "desk"));
    assert_eq!(client.addresses, ["192.168.88.77"]);
}

/// Names of routers change; serial numbers do not.
#[test]
fn identity_survives_a_new_name() {
    let device = Device::new();
    let identity = || Mikrotik::list_devices(&device.host(), None, None).unwrap().items[0].identity.clone();
    let before = identity();
    device.person("system/identity", "set", &json!({ "name": "other" }));
    assert_eq!(identity(), before);
}

#[test]
fn every_kind_is_listed_or_not_offered() {
    let device = Device::new();
    let (mut read, mut problems) = (0, Vec::new());
    for kind in description()["kinds"].as_array().unwrap() {
        let (id, binding) = (kind["id"].as_str().unwrap(), &kind["binding"]);
        let mut filters = binding["list"]["filters"].as_object().into_iter().flatten();
        if filters.any(|(_, filter)| filter["required"] == true) {
            continue;
        }
        match Mikrotik::list_objects(&device.host(), &Listing::of(id, 100)) {
            Ok(_) => read += 1,
            // Hardware that this router does not have, or a release that is another one.
            Err(Fault::Unsupported(_)) => {}
            Err(fault) => problems.push(format!("{id}: {}", fault.info().message)),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(read > 400, "{read}");
}
