//! Releases of the controller: the oldest that works, and what only some of them have.

use heddle_lab_omada::{Release, Seed};
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Fault, Listing};
use serde_json::{Value, json};

use super::device::{Device, description, package};
use crate::Omada;

/// What a check of a controller says that tells this version.
fn checked(version: &str) -> Result<String, Fault> {
    let host = FakeHost::new(|request, _| {
        let info = json!({ "omadacId": "c0ffee", "controllerVer": version, "configured": true });
        let none = json!({ "totalRows": 0, "data": [] });
        let result = if request.path == "/api/info" { info } else { none };
        Ok(json_response(200, &json!({ "errorCode": 0, "result": result })))
    });
    Omada::check(&host).map(|profile| profile.version)
}

#[test]
fn release_before_5_15_is_refused() {
    for old in ["4.4.8", "5.0.30", "5.1.7", "5.9.31", "5.14.26.1"] {
        let fault = checked(old).unwrap_err();
        assert!(matches!(fault, Fault::Unsupported(_)), "{old}: {fault:?}");
    }
    for version in ["5.15.8.2", "6.0.0.24", "6.2.10.15", "7.0.0.4"] {
        assert_eq!(checked(version).unwrap(), version);
    }
    let tested = json!([{ "product": "Omada", "tested": [{ "from": "5.15", "to": "6.2" }] }]);
    assert_eq!(description()["releases"], tested);
}

/// Writes that older clients made through the web interface are refused there by newer controllers.
#[test]
fn each_path_is_that_of_the_newer_surface() {
    let update = |id: &str| {
        let feature = package().feature(&format!("omada.{id}")).unwrap();
        let update = &feature["binding"]["update"];
        (update["method"].as_str().unwrap().to_owned(), update["path"].as_str().unwrap().to_owned())
    };
    let site = "{omadacId}/sites/{siteId}";
    let port = format!("/openapi/v1/{site}/switches/{{switchMac}}/ports/{{id}}");
    assert_eq!(update("switch.port-setting"), ("PATCH".to_owned(), port));
    let networks = format!("/openapi/v2/{site}/lan-networks");
    assert_eq!(update("switch.network"), ("PATCH".to_owned(), format!("{networks}/{{id}}")));
    let create = &package().feature("omada.switch.network").unwrap()["binding"]["create"];
    assert_eq!(create["path"], networks);
    let profiles = package().kind("switch.port-profile")["list"]["path"].as_str().unwrap();
    assert!(profiles.starts_with("/openapi/"), "{profiles}");
}

#[test]
fn easy_managed_switches_have_paths_of_their_own() {
    for id in ["switch.easy", "switch.easy-port"] {
        let text = package().kind(id).to_string();
        assert!(text.contains("/switches/es/"), "{id}: {text}");
    }
    for id in ["switch.loopback-update-easy", "switch.loopback-batch-update-easy"] {
        let feature = package().feature(&format!("omada.{id}")).unwrap();
        assert!(feature["binding"]["action"]["path"].as_str().unwrap().contains("/switches/es/"), "{id}");
    }
}

/// A code that says that a path is not there is no failure of the rest.
#[test]
fn every_kind_of_an_older_release_is_read_or_not_offered() {
    for release in [Release::V515, Release::V60] {
        let device = Device::with(Seed { release, clients: 4, ..Seed::default() }, "lab-secret");
        let (mut lacking, mut read) = (0, 0);
        for kind in description()["kinds"].as_array().unwrap() {
            let (id, binding) = (kind["id"].as_str().unwrap(), &kind["binding"]);
            let filters = [&binding["list"]["filters"], &binding["get"]["filters"]];
            let mut filters = filters.into_iter().filter_map(Value::as_object).flatten();
            if filters.any(|(_, filter)| filter["required"] == true) {
                continue;
            }
            match Omada::list_objects(&device.host(), &Listing::of(id, 1000)) {
                Ok(_) => read += 1,
                Err(Fault::Unsupported(_)) => lacking += 1,
                Err(fault) => panic!("{id}: {fault:?}"),
            }
        }
        assert!(read > 300 && lacking > 0, "{read} {lacking}");
        assert_eq!(device.writes.get(), 0);
    }
}
