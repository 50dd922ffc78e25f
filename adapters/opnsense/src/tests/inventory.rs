//! Who the firewall is, what is behind it, and every kind of object.

use heddle_lab_opnsense::{Release, Settings};
use heddle_sdk::testing::conformance::{Wanted, every_file};
use heddle_sdk::{Adapter as _, Attribute, Availability, Fault, FaultExt, Fetching, Listing};
use serde_json::Value;

use super::device::{Device, description, package};
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

/// Values for the filters without which a kind is not listed.
fn needed_filters(binding: &Value) -> Vec<Attribute> {
    let filters = [&binding["list"]["filters"], &binding["get"]["filters"]];
    let needed =
        filters.into_iter().filter_map(Value::as_object).flatten().filter(|(_, one)| one["required"] == true);
    needed.map(|(name, _)| Attribute { key: name.clone(), value: "192.168.1.20".to_owned() }).collect()
}

#[test]
fn alias_that_holds_an_address_is_found_by_it() {
    let device = Device::new();
    let filter = [Attribute { key: "ip".to_owned(), value: "192.168.1.20".to_owned() }];
    let listing = Listing { filter: &filter, ..Listing::of("firewall.alias-reference", 10) };
    let page = Opnsense::list_objects(&device.host(), &listing).unwrap();
    assert!(page.items[0].body.contains("web_servers"), "{}", page.items[0].body);
    Opnsense::list_objects(&device.host(), &Listing::of("firewall.alias-reference", 10)).unwrap_err();
}

#[test]
fn words_choose_the_rows_of_stored_and_of_live_lists() {
    let device = Device::new();
    let filter = [Attribute { key: "search".to_owned(), value: "web_ports".to_owned() }];
    let found = |kind: &str| {
        let listing = Listing { filter: &filter, ..Listing::of(kind, 10) };
        Opnsense::list_objects(&device.host(), &listing).unwrap().items.len()
    };
    assert_eq!((found("firewall.alias"), found("core.service")), (1, 0));
}

#[test]
fn vouchers_are_found_below_their_provider_and_group() {
    let device = Device::new();
    let body = serde_json::json!({ "count": 2, "validity": 3600, "vouchergroup": "guests" });
    device.person("captiveportal/voucher/generate_vouchers/Vouchers", &body);
    let page = Opnsense::list_objects(&device.host(), &Listing::of("captiveportal.voucher", 10)).unwrap();
    let keys: Vec<&str> = page.items.iter().map(|item| item.reference.key.as_str()).collect();
    assert_eq!(keys.len(), 2);
    assert!(keys.iter().all(|key| key.starts_with("Vouchers:guests:V")), "{keys:?}");
    let groups =
        Opnsense::list_objects(&device.host(), &Listing::of("captiveportal.voucher-group", 10)).unwrap();
    assert_eq!(groups.items[0].reference.key, "Vouchers:guests");
}

#[test]
fn rows_of_live_data_come_in_pages_and_each_once() {
    let device = Device::new();
    let mut keys = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let listing = Listing { cursor: cursor.as_deref(), ..Listing::of("core.service", 3) };
        let page = Opnsense::list_objects(&device.host(), &listing).unwrap();
        keys.extend(page.items.into_iter().map(|item| item.reference.key));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let all = keys.len();
    keys.sort();
    keys.dedup();
    assert!(keys.len() == all && all > 6, "{keys:?}");
}

#[test]
fn every_kind_is_listed_and_nothing_but_reads_is_sent() {
    let device = Device::new();
    let (stored, mut failures) = (device.stored(), Vec::new());
    for kind in description()["kinds"].as_array().unwrap().iter().filter(|kind| kind["file"].is_null()) {
        let id = kind["id"].as_str().unwrap();
        let filter = needed_filters(&kind["binding"]);
        match Opnsense::list_objects(&device.host(), &Listing { filter: &filter, ..Listing::of(id, 1000) }) {
            // What needs to be asked for something is nothing without it.
            Ok(_) if !filter.is_empty() => {}
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
fn every_file_is_fetched_and_nothing_but_reads_is_sent() {
    let device = Device::new();
    let capture =
        serde_json::json!({ "packetcapture": { "settings": { "interface": "lan", "fam": "any" } } });
    device.person("diagnostics/packet_capture/set", &capture);
    let body = serde_json::json!({ "name": "guests", "content": "UEsFBg==" });
    device.person("captiveportal/template/save_template", &body);
    let stored = device.stored();
    let first = |kind: &str| {
        let page = Opnsense::list_objects(&device.host(), &Listing::of(kind, 1)).unwrap();
        Wanted::of(&page.items[0].reference.key)
    };
    let before = device.posts.get();
    let wanted = |kind: &str| match kind {
        "core.config-revision-backup" => first("core.config-revision"),
        "diagnostics.health-export" => Wanted::of("system-memory").by("detail", "0"),
        "diagnostics.capture-export" => first("diagnostics.capture"),
        "diagnostics.insight-export" => Wanted::default()
            .by("provider", "FlowSourceAddrTotals")
            .by("from", "1700000000")
            .by("to", "1700003600")
            .by("resolution", "3600"),
        "captiveportal.template-export" => Wanted::of("guests"),
        _ => Wanted::default(),
    };
    assert_eq!(every_file(&device, package(), wanted), 20);
    assert_eq!((device.stored(), device.posts.get()), (stored, before));
}

#[test]
fn file_that_the_firewall_does_not_have_is_not_found() {
    let device = Device::new();
    let missing = Fetching { key: Some("config-1.xml"), ..Fetching::of("core.config-revision-backup") };
    let fault = Opnsense::fetch_file(&device.host(), &missing).unwrap_err();
    assert!(matches!(fault, Fault::NotFound(_)), "{fault:?}");
    let unnamed = Fetching::of("core.config-revision-backup");
    assert!(matches!(Opnsense::fetch_file(&device.host(), &unnamed).unwrap_err(), Fault::Invalid(_)));
    device.lab().fault(heddle_lab::Fault::vendor("login_page", Value::Null));
    let page = Opnsense::fetch_file(&device.host(), &Fetching::of("core.config-backup")).unwrap_err();
    assert!(matches!(page, Fault::NotReady(_)), "{page:?}");
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
