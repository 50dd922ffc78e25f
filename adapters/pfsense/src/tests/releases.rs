//! The releases of pfSense and of the package with its API.

use heddle_lab_pfsense::{Release, Settings};
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Fault, FaultExt, Operation, Stage};
use serde_json::{Value, json};

use super::device::{Device, description};
use super::{change, plan, run, standing};
use crate::Pfsense;

/// What a check says of a firewall that tells these versions: product and version.
fn checked(pfsense: &str, package: &str) -> Result<(String, String), Fault> {
    let host = FakeHost::new(|request, _| {
        let data = match request.path.as_str() {
            "/api/v2/system/version" => json!({ "version": pfsense }),
            "/api/v2/system/restapi/version" => json!({ "current_version": package }),
            _ => json!([]),
        };
        Ok(json_response(
            200,
            &json!({ "code": 200, "status": "ok", "response_id": "SUCCESS", "message": "", "data": data }),
        ))
    });
    Pfsense::check(&host).map(|profile| (profile.product, profile.version))
}

#[test]
fn version_is_that_of_the_package_and_the_product_names_the_one_of_pfsense() {
    for (pfsense, package, product, version) in [
        ("2.8.1-RELEASE", "v2.10", "pfSense CE 2.8.1, REST API", "2.10"),
        ("2.8.1-RELEASE", "v2.7.1", "pfSense CE 2.8.1, REST API", "2.7.1"),
        ("25.11.1-RELEASE", "v2.10.0", "pfSense Plus 25.11.1, REST API", "2.10.0"),
        ("26.03-RELEASE", "2.10.0", "pfSense Plus 26.03, REST API", "2.10.0"),
    ] {
        assert_eq!(checked(pfsense, package).unwrap(), (product.to_owned(), version.to_owned()));
    }
}

#[test]
fn release_before_2_7_is_refused() {
    for old in ["v2.6.9", "v2.0", "v1.7.6"] {
        let fault = checked("2.8.1-RELEASE", old).unwrap_err();
        assert!(
            matches!(&fault, Fault::Unsupported(info) if info.message.contains("2.7")),
            "{old}: {fault:?}"
        );
    }
    assert!(matches!(checked("", "v2.10").unwrap_err(), Fault::Unsupported(_)));
}

#[test]
fn what_came_with_a_release_is_marked_with_it() {
    let marks = |section: &str, id: &str| {
        let found = description()[section].as_array().unwrap().iter().find(|one| one["id"] == id);
        found.unwrap_or_else(|| panic!("{section} have no {id}"))["releases"].clone()
    };
    assert_eq!(marks("features", "pfsense.services.freeradius.mac"), json!({ "from": "2.8" }));
    assert_eq!(marks("features", "pfsense.system.update"), json!({ "from": "2.8" }));
    assert_eq!(marks("kinds", "vpn.wireguard.tunnel-state"), json!({ "from": "2.9" }));
    assert_eq!(marks("kinds", "firewall.rule"), Value::Null);
}

#[test]
fn change_is_applied_and_taken_back_at_each_release() {
    for release in [Release::V2_7, Release::V2_8, Release::V2_10] {
        let device = Device::of(Settings { release, ..Settings::default() });
        let profile = Pfsense::check(&device.host()).unwrap();
        assert!(profile.product.starts_with("pfSense CE 2.8"), "{profile:?}");
        let payload =
            json!({ "name": "sample", "type": "host", "address": ["192.0.2.7"], "detail": ["own"] });
        let planned = plan(&device, &change("firewall.alias", Operation::Create, &payload)).unwrap();
        run(&device, Stage::Apply, &planned).unwrap();
        assert_eq!(standing(&device, &planned), "after", "{release:?}");
        run(&device, Stage::Restore, &planned).unwrap();
        assert_eq!(standing(&device, &planned), "before", "{release:?}");
    }
}

#[test]
fn fingerprint_moves_with_an_upgrade_and_with_a_package() {
    let of = |settings: Settings| Pfsense::check(&Device::of(settings).host()).unwrap().fingerprint;
    let usual = of(Settings::default());
    assert_eq!(usual, of(Settings::default()));
    assert_ne!(usual, of(Settings { release: Release::V2_8, ..Settings::default() }));
    assert_ne!(usual, of(Settings { packages: Some(Vec::new()), ..Settings::default() }));
    assert_ne!(usual, of(Settings { told_version: Some("2.8.2-RELEASE".to_owned()), ..Settings::default() }));
}

#[test]
fn package_that_is_missing_is_told_as_unsupported() {
    let device = Device::of(Settings { packages: Some(Vec::new()), ..Settings::default() });
    let payload = json!({ "name": "sample", "entries": [{ "value": "192.0.2.0/24" }] });
    let planned = plan(&device, &change("dns.bind.acl", Operation::Create, &payload)).unwrap();
    let fault = run(&device, Stage::Apply, &planned).unwrap_err();
    assert!(matches!(fault, Fault::Unsupported(_)), "{fault:?} {:?}", fault.info());
}
