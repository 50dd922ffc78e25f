//! Which site is meant.

use heddle_lab_omada::Seed;
use heddle_sdk::{Adapter as _, Change, Fault, FaultExt, Listing, Operation};
use serde_json::json;

use super::device::Device;
use crate::Omada;

fn of_sites(sites: usize) -> Device {
    let mut device = Device::with(Seed { sites, clients: 2, ..Seed::default() }, "lab-secret");
    device.settings = json!({});
    device
}

fn networks(device: &Device, site: Option<&str>) -> Result<usize, Fault> {
    let listing = Listing { site, ..Listing::of("switch.network", 100) };
    Omada::list_objects(&device.host(), &listing).map(|page| page.items.len())
}

#[test]
fn only_site_needs_no_choice() {
    assert_eq!(networks(&of_sites(1), None).unwrap(), 4);
}

#[test]
fn several_sites_without_a_choice_are_named() {
    let fault = networks(&of_sites(2), None).unwrap_err();
    assert!(matches!(fault, Fault::Invalid(_)));
    let message = &fault.info().message;
    assert!(message.contains("'Main'") && message.contains("'Branch'"), "{message}");
    assert_eq!(fault.info().fields[0].pointer, "/site");
}

#[test]
fn site_is_chosen_by_name_by_id_and_by_the_settings() {
    let mut device = of_sites(2);
    let branch = device.sites[1].clone();
    assert_eq!(networks(&device, Some("Branch")).unwrap(), 4);
    assert_eq!(networks(&device, Some(&branch)).unwrap(), 4);
    let fault = networks(&device, Some("Nowhere")).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(info) if info.message.contains("'Branch'")));
    device.settings = json!({ "site": branch });
    assert_eq!(networks(&device, None).unwrap(), 4);
    device.settings = json!({ "site": "Nowhere" });
    assert!(networks(&device, None).is_err());
    assert!(networks(&device, Some("Main")).is_ok(), "the call goes before the settings");
}

#[test]
fn write_goes_to_the_site_of_the_change_and_to_no_other() {
    let device = of_sites(2);
    let payload = json!({ "name": "of the branch" }).to_string();
    let change = Change {
        feature: "omada.device.tag".to_owned(),
        operation: Operation::Create,
        site: Some("Branch".to_owned()),
        payload,
    };
    let made = Omada::plan(&device.host(), std::slice::from_ref(&change)).unwrap();
    assert!(made.native.iter().all(|call| call.path.contains(&device.sites[1])), "{:?}", made.native);
    super::run(&device, heddle_sdk::Stage::Apply, &made).unwrap();
    let state = device.lab().state();
    assert!(state[&device.sites[1]]["device.tag"].to_string().contains("of the branch"));
    assert!(!state[&device.sites[0]].to_string().contains("of the branch"));
}

#[test]
fn devices_are_those_of_the_site() {
    let device = of_sites(2);
    assert!(Omada::list_devices(&device.host(), None, None).is_err());
    let page = Omada::list_devices(&device.host(), Some("Branch"), None).unwrap();
    assert!(page.items.iter().all(|item| item.site.as_ref() == Some(&device.sites[1])));
    let main = Omada::list_devices(&device.host(), Some("Main"), None).unwrap();
    assert_ne!(page.items[0].identity, main.items[0].identity);
}

#[test]
fn sites_are_listed_by_their_ids_and_the_settings_leave_one() {
    let mut device = of_sites(3);
    let listed = |device: &Device| -> Vec<(String, String)> {
        let page = Omada::list_sites(&device.host(), None).unwrap();
        page.items.into_iter().map(|site| (site.id, site.name)).collect()
    };
    let all = listed(&device);
    assert_eq!(all.iter().map(|(id, _)| id).collect::<Vec<_>>(), device.sites.iter().collect::<Vec<_>>());
    assert_eq!(all[1].1, "Branch");
    for (id, _) in &all {
        let page = Omada::list_devices(&device.host(), Some(id), None).unwrap();
        assert!(!page.items.is_empty() && page.items.iter().all(|item| item.site.as_ref() == Some(id)));
        assert!(!Omada::list_model(&device.host(), "vlan", Some(id), None).unwrap().items.is_empty());
    }
    device.settings = json!({ "site": "Branch" });
    assert_eq!(listed(&device), [all[1].clone()]);
    device.settings = json!({ "site": all[2].0 });
    assert_eq!(listed(&device), [all[2].clone()]);
    device.settings = json!({ "site": "Nowhere" });
    assert!(Omada::list_sites(&device.host(), None).is_err());
}

#[test]
fn site_that_is_gone_is_no_empty_list() {
    let device = of_sites(2);
    let fault = networks(&device, Some("0123456789abcdef01234567")).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(info) if info.message.contains("does not exist")), "{fault:?}");
}
