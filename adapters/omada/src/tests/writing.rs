//! Rules that hold for every write: which verb, which path, what is in it and what never is.

use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Fault, Listing, Operation};
use serde_json::{Value, json};

use super::device::{Device, description, package};
use super::{change, plan};
use crate::Omada;

fn feature(id: &str) -> &'static Value {
    package().feature(&format!("omada.{id}")).unwrap_or_else(|| panic!("no feature {id}"))
}

/// The path of a call below the site, without the version of the API.
fn short(call: &Value) -> &str {
    let path = call["path"].as_str().unwrap_or_default();
    path.split_once("/sites/{siteId}").map_or(path, |(_, below)| below)
}

#[test]
fn what_the_controller_owns_is_not_sent() {
    let owned = ["resource", "portStatus", "portCap", "idInt", "deviceAccount"];
    for feature in description()["features"].as_array().unwrap() {
        for operation in feature["operations"].as_array().unwrap() {
            let properties = operation["payload-schema"]["properties"].as_object().unwrap();
            for name in owned {
                assert!(!properties.contains_key(name), "{}: {name}", feature["id"]);
            }
        }
    }
    assert!(!description().to_string().contains("deviceAccount"), "the account of all devices of a site");
}

#[test]
fn each_document_is_written_with_its_verb() {
    for (verb, ids) in [
        ("PUT", &["firewall.gateway-acl", "firewall.switch-acl", "firewall.eap-acl"][..]),
        ("PUT", &["routing.port-forward", "routing.one-to-one-nat", "routing.alg", "routing.disable-nat"]),
        ("PUT", &["routing.static-route", "routing.policy-route", "vpn.wireguard", "vpn.wireguard-peer"]),
        ("PATCH", &["vpn.site-to-site", "switch.network", "profiles.group", "profiles.radius"]),
        ("PATCH", &["wifi.ssid", "wifi.ssid-rate-limit", "switch.port-setting", "system.dhcp-reservation"]),
    ] {
        for id in ids {
            assert_eq!(feature(id)["binding"]["update"]["method"], verb, "{id}");
        }
    }
}

/// Paths of a list and of its objects differ in places.
#[test]
fn lists_and_objects_have_paths_of_their_own() {
    for (id, list, object) in [
        ("profiles.rate-limit", "/rate-limit-profiles", "/rate-limit-profile/{id}"),
        ("profiles.time-range", "/time-range-profiles", "/time-range-profile/{id}"),
        ("routing.disable-nat", "/wired-networks/disable-nats", "/wired-networks/disable-nat/{id}"),
        ("firewall.ips-allow", "/network-security/ips/grid/allow-list", "/network-security/ips/allow-list"),
    ] {
        let kind = package().kind(feature(id)["kind"].as_str().unwrap());
        let update = &feature(id)["binding"]["update"];
        assert_eq!((short(&kind["list"]), short(update)), (list, object), "{id}");
    }
}

#[test]
fn order_of_rules_has_a_call_of_its_own() {
    for (id, path) in [
        ("firewall.eap-acl-order", "/acls/modifyIndex"),
        ("firewall.custom-acl-order", "/acls/osg-custom-acls/modifyIndex"),
        ("routing.policy-route-order", "/routing/policy-routings/modifyIndex"),
    ] {
        assert_eq!(short(&feature(id)["binding"]["action"]), path);
    }
}

#[test]
fn long_operations_are_begun_by_their_paths() {
    for (id, path) in [
        ("device.adopt", "/devices/{id}/start-adopt"),
        ("bulk.adopt", "/cmd/devices/batch-adopt"),
        ("device.forget", "/devices/{id}/forget"),
        ("device.move", "/devices/{id}/site-move"),
        ("firmware.check", "/all-devices/start-check-latest-firmware"),
        ("firmware.upgrade", "/devices/{id}/start-online-upgrade"),
        ("firmware.rolling", "/multi-devices/start-rolling-upgrade"),
        ("diagnostics.cable-test", "/cable-test/switches/{id}/start"),
    ] {
        assert_eq!(short(&feature(id)["binding"]["action"]), path, "{id}");
    }
    // The results of these actions are kinds that can be read.
    for (id, path) in [
        ("device.adopt-result", "/devices/{deviceMac}/adopt-result"),
        ("firmware.device-result", "/devices/{deviceMac}/online-upgrade-result"),
        ("firmware.rolling-result", "/multi-devices/rolling-upgrade-tasks/{taskId}"),
    ] {
        let kind = package().kind(id);
        let found = ["get", "list"].iter().find(|part| kind[**part].is_object()).unwrap();
        assert_eq!(short(&kind[*found]), path, "{id}");
    }
}

#[test]
fn writes_keep_their_distance() {
    let manifest: Value = serde_json::from_str(include_str!("../../manifest.json")).unwrap();
    assert_eq!(manifest["pace"]["write-gap-ms"], 200);
}

/// Some controllers refuse a start without a body, also where no account is needed.
#[test]
fn adoption_has_a_body_without_an_account() {
    let device = Device::new();
    let pending = Omada::list_objects(&device.host(), &Listing::of("device.pending", 10)).unwrap();
    let mac = serde_json::from_str::<Value>(&pending.items[0].body).unwrap()["mac"].clone();
    let body = |payload: Value| {
        let made = plan(&device, &change("device.adopt", Operation::Create, &payload)).unwrap();
        made.native[0].json().expect("it has a body of JSON")
    };
    assert_eq!(body(json!({ "mac": mac })), json!({}));
    let account = json!({ "mac": mac, "username": "admin", "password": "hdl-secret:x" });
    assert_eq!(body(account)["username"], "admin");
}

/// A switch that the controller answers as `null` is off or unknown: sending `false` would be a change.
#[test]
fn switch_that_is_null_stays_out_of_the_write() {
    let row = json!({
        "id": "66a000000000000000000009", "name": "web", "status": true, "from": 0, "externalPort": "80",
        "forwardIp": "10.4.20.10", "forwardPort": "80", "protocol": 1, "dMZ": null, "existWanIp": null,
        "interfaceWanPortId": ["1_0c41"],
    });
    let mut host = FakeHost::new(|request, _| {
        let info = json!({ "omadacId": "c0ffee" });
        let rows = json!({ "totalRows": 1, "currentPage": 1, "currentSize": 100, "data": [row] });
        let result = if request.path == "/api/info" { info } else { rows };
        Ok(json_response(200, &json!({ "errorCode": 0, "result": result })))
    })
    .with_package(package());
    host.settings = json!({ "site": "66a000000000000000000001" });
    let payload = json!({ "name": "web", "forwardPort": "81" });
    let made = Omada::plan(&host, &[change("routing.port-forward", Operation::Update, &payload)]).unwrap();
    let body = made.native[0].json().unwrap();
    assert_eq!(
        (&body["forwardPort"], &body["status"], &body["from"]),
        (&json!("81"), &json!(true), &json!(0))
    );
    for name in ["dMZ", "existWanIp"] {
        assert!(body.get(name).is_none(), "{name}: {body}");
    }
}

/// The controller answers a success to a write about an address that it does not know.
#[test]
fn unknown_reservation_is_not_written() {
    let device = Device::new();
    let key = json!({ "mac": "02-00-00-00-00-99" });
    let mut payload = key.clone();
    payload["ip"] = json!("10.4.20.77");
    let fault = plan(&device, &change("system.dhcp-reservation", Operation::Update, &payload)).unwrap_err();
    assert!(matches!(fault, Fault::NotFound(_)), "{fault:?}");
    let gone = plan(&device, &change("system.dhcp-reservation", Operation::Delete, &key)).unwrap();
    assert!(gone.native.is_empty());
}
