//! What came and went with releases, and a field that changed its sense with one.

use heddle_lab_opnsense::{Release, Settings};
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Fault, FaultExt, Listing, Operation, Stage};
use serde_json::{Value, json};

use super::device::{Device, description};
use super::{change, plan, run, standing};
use crate::Opnsense;

fn of(release: Release) -> Device {
    Device::of(Settings { release, ..Settings::default() })
}

/// What a check of a firewall says that tells this version.
fn checked(version: &str) -> Result<String, Fault> {
    let host = FakeHost::new(|request, _| {
        let is_first = request.path.ends_with("system_information");
        let body = if is_first { json!({ "name": "fw", "versions": [version] }) } else { json!({}) };
        Ok(json_response(200, &body))
    });
    Opnsense::check(&host).map(|profile| profile.version)
}

#[test]
fn release_before_25_7_is_refused() {
    for old in ["OPNsense 24.1.10-amd64", "OPNsense 24.7.12_4-amd64", "OPNsense 25.1.12-amd64"] {
        let fault = checked(old).unwrap_err();
        assert!(
            matches!(&fault, Fault::Unsupported(info) if info.message.contains("25.7")),
            "{old}: {fault:?}"
        );
    }
    for (told, version) in [
        ("OPNsense 25.7-amd64", "25.7"),
        ("OPNsense 26.1.6_2-amd64", "26.1.6_2"),
        ("OPNsense 26.7.2-arm64", "26.7.2"),
        ("OPNsense 27.1.1-amd64", "27.1.1"),
    ] {
        assert_eq!(checked(told).unwrap(), version);
    }
    for other in ["FreeBSD 14.3-RELEASE", "pfSense 2.8.0", ""] {
        assert!(matches!(checked(other).unwrap_err(), Fault::Unsupported(_)), "{other}");
    }
}

#[test]
fn what_came_with_a_release_is_marked_with_it() {
    let marks = |section: &str, id: &str| {
        let found = description()[section].as_array().unwrap().iter().find(|one| one["id"] == id);
        found.unwrap_or_else(|| panic!("{section} have no {id}"))["releases"].clone()
    };
    for (from, kinds) in [
        ("26.1", &["nat.port-forward", "radvd.entry", "interfaces.settings", "hostdiscovery.settings"][..]),
        ("26.1", &["ntpd.status", "unbound.blocklist", "core.default-address"]),
        ("26.7", &["interfaces.assignment", "routing.gateway-group", "kea.dhcp4-option", "kea.ddns"]),
    ] {
        for id in kinds {
            assert_eq!(marks("kinds", id), json!({ "from": from }), "{id}");
        }
    }
    for (from, id) in [
        ("26.1", "nat.port-forward"),
        ("26.1", "core.setup-wizard-abort"),
        ("26.7", "interfaces.assignment"),
        ("26.7", "routing.gateway-group"),
        ("26.7", "kea.lease4"),
    ] {
        assert_eq!(marks("features", &format!("opnsense.{id}")), json!({ "from": from }), "{id}");
    }
    let tested = json!([{ "product": "OPNsense", "tested": ["26.1", "26.7"] }]);
    assert_eq!(description()["releases"], tested);
}

/// Routes that all tested releases lack. A plugin brings back those of the older DHCP server.
const GONE: [&str; 22] = [
    "/api/captiveportal/service/del_template",
    "/api/captiveportal/service/get_template",
    "/api/captiveportal/service/save_template",
    "/api/captiveportal/service/search_templates",
    "/api/diagnostics/interface/get_pf_sync_nodes",
    "/api/diagnostics/systemhealth/get_r_r_dlist",
    "/api/firewall/alias_util/update_bogons",
    "/api/firewall/category/search_no_category_item",
    "/api/firewall/d_nat/savepoint",
    "/api/firewall/d_nat/cancel_rollback",
    "/api/firewall/filter/savepoint",
    "/api/firewall/filter/cancel_rollback",
    "/api/firewall/filter/revert",
    "/api/firewall/npt/savepoint",
    "/api/firewall/one_to_one/savepoint",
    "/api/firewall/source_nat/savepoint",
    "/api/monit/settings/dirty",
    "/api/unbound/settings/add_domain_override",
    "/api/unbound/settings/del_domain_override",
    "/api/unbound/settings/search_domain_override",
    "/api/unbound/settings/set_domain_override",
    "/api/unbound/settings/toggle_domain_override",
];

#[test]
fn no_path_is_one_that_a_release_took_away() {
    let text = description().to_string();
    for gone in GONE {
        assert!(!text.contains(&format!("\"{gone}\"")) && !text.contains(&format!("\"{gone}/")), "{gone}");
    }
}

/// Up to 26.1.9 a route says that it is off, and since then that it is on. The firewall ignores the other word in
/// silence, so that it is refused before it is sent.
#[test]
fn switch_of_a_static_route_is_not_sent_to_a_release_that_ignores_it() {
    for (release, has_it) in [(Release::V26_1, false), (Release::V26_7, true)] {
        let device = of(release);
        let in_table = || {
            let page =
                Opnsense::list_objects(&device.host(), &Listing::of("diagnostics.route", 1000)).unwrap();
            page.items.iter().filter(|item| item.body.contains("192.0.2.0/24")).count()
        };
        let route = json!({ "network": "192.0.2.0/24", "gateway": "WAN_GW" });
        let made = plan(&device, &change("routing.static-route", Operation::Create, &route)).unwrap();
        run(&device, Stage::Apply, &made).unwrap();
        assert_eq!((standing(&device, &made).as_str(), in_table()), ("after", 1), "{release:?}");
        let off = json!({ "network": "192.0.2.0/24", "gateway": "WAN_GW", "enabled": false });
        let off = plan(&device, &change("routing.static-route", Operation::Update, &off));
        if has_it {
            let off = off.unwrap();
            run(&device, Stage::Apply, &off).unwrap();
            assert_eq!((standing(&device, &off).as_str(), in_table()), ("after", 0));
            run(&device, Stage::Restore, &off).unwrap();
            assert_eq!((standing(&device, &off).as_str(), in_table()), ("before", 1));
        } else {
            let fault = off.unwrap_err();
            assert!(matches!(fault, Fault::Invalid(_)), "{fault:?}");
            assert_eq!(fault.info().fields[0].pointer, "/enabled");
        }
    }
}

/// Both stand in one list of the firewall and differ by their type.
#[test]
fn forward_and_dns_over_tls_are_not_mixed_up() {
    let device = Device::new();
    let keys = |kind: &str| -> Vec<String> {
        let page = Opnsense::list_objects(&device.host(), &Listing::of(kind, 1000)).unwrap();
        page.items.into_iter().map(|item| item.reference.key).collect()
    };
    let before = (keys("unbound.dot").len(), keys("unbound.forward").len());
    let dot =
        json!({ "domain": "tls.example", "server": "192.0.2.53", "port": "853", "verify": "dns.example" });
    let forward = json!({ "domain": "plain.example", "server": "192.0.2.54", "port": "5353" });
    for (feature, payload) in [("unbound.dot", dot), ("unbound.forward", forward)] {
        let made = plan(&device, &change(feature, Operation::Create, &payload)).unwrap();
        run(&device, Stage::Apply, &made).unwrap();
        assert_eq!(standing(&device, &made), "after", "{feature}");
    }
    let (dots, forwards) = (keys("unbound.dot"), keys("unbound.forward"));
    assert_eq!((dots.len(), forwards.len()), (before.0 + 1, before.1 + 1), "{dots:?} {forwards:?}");
    assert!(
        dots.iter().any(|key| key.contains("tls.example")) && !dots.iter().any(|key| key.contains("plain"))
    );
    assert!(
        forwards.iter().any(|key| key.contains("plain")) && !forwards.iter().any(|key| key.contains("tls"))
    );
}

#[test]
fn every_kind_of_an_older_release_is_read_or_not_offered() {
    let device = of(Release::V26_1);
    let (mut lacking, mut read) = (0, 0);
    for kind in description()["kinds"].as_array().unwrap() {
        let (id, binding) = (kind["id"].as_str().unwrap(), &kind["binding"]);
        // A file is fetched, and not listed.
        if kind["file"].is_object() {
            continue;
        }
        let filters = [&binding["list"]["filters"], &binding["get"]["filters"]];
        let mut filters = filters.into_iter().filter_map(Value::as_object).flatten();
        if filters.any(|(_, filter)| filter["required"] == true) {
            continue;
        }
        let listed = Opnsense::list_objects(&device.host(), &Listing::of(id, 1000));
        if kind["releases"]["from"] == "26.7" {
            assert!(matches!(listed, Err(Fault::Unsupported(_))), "{id}: {listed:?}");
            lacking += 1;
        } else {
            assert!(listed.is_ok(), "{id}: {listed:?}");
            read += 1;
        }
    }
    assert!(read > 300 && lacking > 5, "{read} {lacking}");
    assert_eq!(device.posts.get(), 0);
}
