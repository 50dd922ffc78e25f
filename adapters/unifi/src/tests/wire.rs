//! Paths, prefixes and bodies.

use std::cell::RefCell;

use heddle_lab_unifi::{Kind, Settings};
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Auth, Change, Fault, Host as _, Listing, Operation, Request};
use serde_json::{Value, json};

use super::device::{Device, package};
use super::{change, plan};
use crate::Unifi;
use crate::login::Login;
use crate::wire::Wire;

fn login(word: &str) -> Login {
    let mut host = FakeHost::new(|_, _| Ok(json_response(200, &json!({}))));
    host.settings = json!({ "login": word });
    Login::of(&host)
}

#[test]
fn application_of_a_console_has_a_prefix_and_the_console_has_none() {
    for (word, path, wanted) in [
        ("api-key", "/api/s/default/rest/user", Some("/proxy/network/api/s/default/rest/user")),
        ("api-key", "/v2/api/site/default/nat", Some("/proxy/network/v2/api/site/default/nat")),
        ("api-key", "/integration/v1/info", Some("/proxy/network/integration/v1/info")),
        ("api-key", "/api/firmware/update", None),
        ("account", "/api/firmware/update", Some("/api/firmware/update")),
        ("account", "/api/system/reboot", Some("/api/system/reboot")),
        ("account", "/status", Some("/proxy/network/status")),
        ("account", "/integration/v1/info", None),
        ("self-hosted", "/api/s/default/rest/user", Some("/api/s/default/rest/user")),
        ("self-hosted", "/status", Some("/status")),
        ("self-hosted", "/api/system/reboot", None),
        ("self-hosted", "/integration/v1/info", None),
        ("anything", "/status", Some("/proxy/network/status")),
    ] {
        let found = login(word).path(path);
        assert_eq!(found.as_deref().ok(), wanted, "{word} {path}");
        if let Err(fault) = found {
            assert!(matches!(fault, Fault::Unsupported(_)), "{word} {path}: {fault:?}");
        }
    }
}

#[test]
fn official_api_names_a_site_by_an_id_of_its_own() {
    let device = Device::new();
    let listing = Listing { site: Some("default"), ..Listing::of("devices.device", 10) };
    let page = Unifi::list_objects(&device.host(), &listing).unwrap();
    assert!(!page.items.is_empty());
    let payload =
        json!({ "name": "seen", "type": "PORTS", "items": [{ "type": "PORT_NUMBER", "value": 443 }] });
    let planned = plan(&device, &change("profiles.matching-list", Operation::Create, &payload)).unwrap();
    let path = &planned.native[0].path;
    assert!(path.starts_with("/proxy/network/integration/v1/sites/") && !path.contains("default"), "{path}");
}

#[test]
fn all_pages_of_sites_are_read_for_their_ids() {
    let site =
        |number: u64| json!({ "id": format!("id-{number}"), "internalReference": format!("s{number}") });
    let asked = RefCell::new(Vec::new());
    let host = FakeHost::new(|request, _| {
        asked.borrow_mut().push(request.path.clone());
        let data: Vec<Value> = match request.path.split_once("sites?offset=") {
            Some((_, rest)) if rest.starts_with("0&") => (0..200).map(site).collect(),
            Some((_, rest)) if rest.starts_with("200&") => (200..201).map(site).collect(),
            _ => Vec::new(),
        };
        Ok(json_response(200, &json!({ "offset": 0, "limit": 200, "totalCount": 201, "data": data })))
    })
    .with_package(package());
    let request = Request::get("/integration/v1/sites/s200/networks");
    Wire::of(&host).send(request, Auth::session("api-key")).unwrap();
    let asked = asked.borrow();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked[2].ends_with("/integration/v1/sites/id-200/networks"), "{asked:?}");
}

#[test]
fn rights_of_an_administrator_are_given_at_the_site_that_is_meant() {
    let device = Device::new();
    let sites = Unifi::list_sites(&device.host(), None).unwrap().items;
    let other = sites.iter().find(|site| site.id != "default").unwrap();
    for (feature, payload) in [
        ("admins.grant", json!({ "name": "viewer" })),
        ("admins.update", json!({ "name": "viewer" })),
        ("admins.revoke", json!({ "name": "viewer" })),
    ] {
        let asked = change(feature, Operation::Create, &payload);
        let asked = Change { site: Some(other.id.clone()), ..asked };
        let planned = plan(&device, &asked).unwrap();
        let wanted = format!("/proxy/network/api/s/{}/cmd/sitemgr", other.id);
        assert_eq!(planned.native[0].path, wanted, "{feature}");
        let feature = package().feature(&format!("unifi.{feature}")).unwrap();
        assert_eq!(feature.get("per"), None, "{feature}");
    }
}

#[test]
fn site_that_the_official_api_does_not_have_is_refused() {
    let device = Device::new();
    let listing = Listing { site: Some("nowhere"), ..Listing::of("devices.device", 10) };
    let fault = Unifi::list_objects(&device.host(), &listing).unwrap_err();
    assert!(matches!(fault, Fault::Invalid(_)), "{fault:?}");
}

#[test]
fn self_hosted_controller_is_asked_without_a_prefix() {
    let device = Device::of(Settings { kind: Kind::Classic, ..Settings::default() });
    let profile = Unifi::check(&device.host()).unwrap();
    assert!(profile.facts.iter().any(|fact| fact.key == "platform" && fact.value == "self-hosted"));
    let planned =
        plan(&device, &change("profiles.client-group", Operation::Create, &json!({ "name": "slow" })))
            .unwrap();
    assert_eq!(planned.native[0].path, "/api/s/default/rest/usergroup");
    assert_eq!(planned.native[0].session.as_deref(), Some("self-hosted"));
    let fault = Unifi::list_objects(&device.host(), &Listing::of("devices.device", 10)).unwrap_err();
    assert!(matches!(fault, Fault::Unsupported(_)), "{fault:?}");
}

#[test]
fn account_of_a_console_keeps_its_token_while_that_changes() {
    let device = Device::of(Settings { csrf_writes: 1, ..Settings::default() }).with_account();
    for name in ["first", "second", "third"] {
        let payload = json!({ "name": name });
        super::applied(&device, "profiles.client-group", Operation::Create, &payload);
    }
    assert!(device.table("usergroup").iter().any(|group| group["name"] == "third"));
}

#[test]
fn settings_of_another_name_in_the_answer_are_not_taken() {
    let answer = json!({ "meta": { "rc": "ok" }, "data": [
        { "_id": "1", "key": "mgmt", "led_enabled": true }, { "_id": "2", "key": "ntp", "ntp_server_1": "a.example" },
    ] });
    let host = FakeHost::new(|_, _| Ok(json_response(200, &answer))).with_package(package());
    let object = Unifi::get_object(&host, "setting.ntp", None, "settings").unwrap();
    let body: Value = serde_json::from_str(&object.body).unwrap();
    assert_eq!((&body["ntp_server_1"], body.get("led_enabled")), (&json!("a.example"), None));
}

#[test]
fn statistics_of_devices_are_left_out() {
    let answer = json!({ "meta": { "rc": "ok" }, "data": [
        { "mac": "02:00:5e:00:00:01", "stat": { "ap": {} }, "vap_table": [{}], "radio_table_stats": [{ "cu_total": 7 }] },
    ] });
    let host = FakeHost::new(|_, _| Ok(json_response(200, &answer))).with_package(package());
    let sent = Wire::of(&host).send(Request::get("/api/s/default/stat/device"), Auth::session("api-key"));
    let found: Value = serde_json::from_slice(&sent.unwrap().body).unwrap();
    let wanted = json!({ "mac": "02:00:5e:00:00:01", "radio_table_stats": [{ "cu_total": 7 }] });
    assert_eq!(found["data"], json!([wanted]));
}

#[test]
fn lists_of_peers_and_types_are_bodies_without_a_name() {
    let device = Device::new();
    let planned =
        plan(&device, &change("firmware.rolling-start", Operation::Create, &json!({ "types": ["uap"] })))
            .unwrap();
    assert_eq!(planned.native[0].json(), Some(json!(["uap"])));
    let payload = json!({ "tunnel": "road", "name": "phone", "public_key": "k", "interface_ip": "10.9.0.7" });
    if let Ok(planned) = plan(&device, &change("vpn.wireguard-peer", Operation::Create, &payload)) {
        assert!(planned.native[0].json().is_some_and(|body| body.is_array()), "{planned:?}");
    }
}
