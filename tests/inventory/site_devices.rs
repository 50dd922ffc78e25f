//! Devices at sites of the vendor's own: where they are, which callers learn of them, and what one bad site spoils.

use heddle_core::{Role, SiteLevel};
use serde_json::{Value, json};

use super::{Device, Lab, each, id_of};
use crate::devices::{controllers, devices, member};
use crate::support::{Api, Database, Socket, on_both};

/// A controller with the sites `a` and `b`, each with one device that is online.
async fn start(database: Database) -> Lab {
    let device = Device::start().await;
    device.script().sites = vec!["a", "b"];
    tell(&device, "a", "online", "1");
    tell(&device, "b", "online", "1");
    Lab::start(database, device).await
}

fn tell(device: &Device, site: &'static str, status: &str, firmware: &str) {
    let identity = format!("of-{site}");
    let told = json!([{ "identity": identity, "status": status, "firmware": firmware }]);
    device.script().devices.insert(site, told);
}

async fn branch(lab: &Lab) -> String {
    id_of(&lab.api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body)
}

impl Lab {
    fn at(&self, rest: &str) -> String {
        format!("/controllers/{}{rest}", self.controller)
    }

    async fn choose(&self, site_ref: &str, choice: &Value) -> Value {
        let path = self.at(&format!("/vendor-sites/{site_ref}"));
        self.api.post(&path, choice).await.expect_status(200).body
    }

    /// Reads the controller, and returns how that went.
    async fn sync(&self) -> Value {
        let asked = self.api.post(&self.at("/sync"), &json!({})).await.expect_status(202).body;
        controllers::ended(&self.api, &asked).await
    }

    async fn device_of(&self, site_ref: &str) -> Value {
        let all = devices(&self.api, &format!("controller_id={}", self.controller)).await;
        let found = all.iter().find(|device| device["site_ref"] == site_ref);
        found.cloned().unwrap_or_else(|| panic!("no device of {site_ref} among {all:?}"))
    }
}

/// The devices that events of this type tell the caller of.
async fn told(api: &Api, event_type: &str) -> Vec<Value> {
    let page =
        api.get(&format!("/events?event_type={event_type}&per_page=200")).await.expect_status(200).body;
    let items = page["items"].as_array().expect("a page has items").iter();
    items.map(|event| event["payload"]["device_id"].clone()).collect()
}

on_both! {
    async fn events_of_a_device_are_at_the_site_that_it_is_at(database: Database) {
        let lab = start(database).await;
        let branch = branch(&lab).await;
        lab.choose("b", &json!({ "site_id": branch })).await;
        let hanna = member(&lab.server, "hanna", Role::Viewer, &[(&lab.site, SiteLevel::Read)]).await;
        let bo = member(&lab.server, "bo", Role::Viewer, &[(&branch, SiteLevel::Read)]).await;
        let (of_a, of_b) = (lab.device_of("a").await["id"].clone(), lab.device_of("b").await["id"].clone());
        let mut streams = (Socket::subscribe(&hanna, &["device.*"]).await, Socket::subscribe(&bo, &["device.*"]).await);
        // Another firmware, and one of them goes offline.
        tell(&lab.device, "b", "offline", "2");
        lab.read().await;
        let streamed = streams.1.event("device.state_changed").await;
        assert_eq!(streamed["payload"]["device_id"], of_b, "{streamed}");
        let streamed = streams.1.event("device.offline").await;
        assert_eq!(streamed["payload"]["device_id"], of_b, "{streamed}");
        tell(&lab.device, "a", "online", "2");
        lab.read().await;
        let streamed = streams.0.event("device.state_changed").await;
        assert_eq!(streamed["payload"]["device_id"], of_a, "{streamed}");
        assert_eq!(told(&bo, "device.state_changed").await, std::slice::from_ref(&of_b));
        assert_eq!(told(&bo, "device.offline").await, std::slice::from_ref(&of_b));
        assert!(told(&hanna, "device.offline").await.is_empty());
        assert_eq!(told(&lab.api, "device.offline").await, std::slice::from_ref(&of_b));
    }
}

on_both! {
    async fn a_device_that_two_sites_list_is_where_it_is_online(database: Database) {
        let device = Device::start().await;
        device.script().sites = vec!["a", "b"];
        let phone = |status: &str| json!([{ "identity": "phone", "status": status }]);
        device.script().devices = [("a", phone("online")), ("b", phone("offline"))].into();
        let lab = Lab::start(database, device).await;
        assert_eq!(lab.device_of("a").await["status"], "online");
        lab.device.script().devices = [("a", phone("offline")), ("b", phone("offline"))].into();
        lab.read().await;
        assert_eq!(lab.device_of("a").await["status"], "offline", "it is where it was");
        lab.device.script().devices = [("a", phone("offline")), ("b", phone("online"))].into();
        lab.read().await;
        assert_eq!(lab.device_of("b").await["status"], "online");
        lab.device.script().devices = [("a", phone("online")), ("b", phone("online"))].into();
        lab.read().await;
        assert_eq!(lab.device_of("b").await["status"], "online", "it is where it was");
    }
}

on_both! {
    async fn a_site_that_is_ignored_while_it_is_read_keeps_nothing(database: Database) {
        let lab = start(database).await;
        let of_b = lab.device_of("b").await;
        lab.device.script().asked.clear();
        lab.device.script().held = Some("b");
        let asked = lab.api.post(&lab.at("/sync"), &json!({})).await.expect_status(202).body;
        lab.device.was_asked("devices", "b").await;
        lab.choose("b", &json!({ "is_ignored": true })).await;
        lab.device.script().held = None;
        controllers::ended(&lab.api, &asked).await;
        let left = devices(&lab.api, &format!("controller_id={}", lab.controller)).await;
        assert_eq!(each(&left, "identity"), ["of-a"]);
        let path = format!("/devices/{}/restore", id_of(&of_b));
        let refused = lab.api.post(&path, &json!({})).await.expect_status(409);
        assert!(refused.message().contains("site 'Site b'"), "{}", refused.text);
        lab.choose("b", &json!({ "is_ignored": false })).await;
        lab.read().await;
        assert_eq!(lab.device_of("b").await["id"], of_b["id"]);
    }
}

on_both! {
    async fn a_site_that_cannot_be_read_spoils_no_other(database: Database) {
        let lab = start(database).await;
        lab.device.script().broken = ["b"].into();
        lab.device.script().devices.insert("a", json!([]));
        let sync = lab.sync().await;
        assert_eq!((&sync["state"], &sync["devices_seen"]), (&json!("succeeded"), &json!(0)), "{sync}");
        assert!(sync["error"].as_str().unwrap().contains("site 'Site b': the list broke off"), "{sync}");
        let controller = lab.api.get(&lab.at("")).await.expect_status(200).body;
        assert_eq!(controller["status"], "online");
        assert!(controller["last_error"].as_str().unwrap().contains("'Site b'"), "{controller}");
        assert_eq!(lab.device_of("a").await["status"], "offline", "its site no longer lists it");
        assert_eq!(lab.device_of("b").await["status"], "online", "nothing is known of it");

        tell(&lab.device, "a", "online", "1");
        lab.device.script().broken = ["a", "b"].into();
        let sync = lab.sync().await;
        assert_eq!(sync["state"], "failed", "{sync}");
        lab.choose("b", &json!({ "is_ignored": true })).await;
        lab.device.script().broken = ["b"].into();
        let sync = lab.sync().await;
        assert_eq!((&sync["state"], &sync["error"]), (&json!("succeeded"), &Value::Null), "{sync}");
        let controller = lab.api.get(&lab.at("")).await.expect_status(200).body;
        assert_eq!(controller["last_error"], Value::Null);
    }
}

on_both! {
    async fn a_controller_that_was_never_read_to_its_end_has_its_sites(database: Database) {
        let device = Device::start().await;
        device.script().sites = vec!["a", "b"];
        device.script().broken = ["a", "b"].into();
        let lab = Lab::start_unread(database, device).await;
        let sync = lab.sync().await;
        assert_eq!(sync["state"], "failed", "{sync}");
        let sites = lab.api.get(&lab.at("/vendor-sites")).await.expect_status(200).body;
        assert_eq!(each(sites.as_array().unwrap(), "site_ref"), ["a", "b"]);
        lab.choose("b", &json!({ "is_ignored": true })).await;
        lab.device.script().broken = ["b"].into();
        lab.read().await;
        lab.device_of("a").await;
    }
}

on_both! {
    async fn more_than_a_thousand_sites_are_read(database: Database) {
        let device = Device::start().await;
        device.script().many_sites = 1_001;
        let lab = Lab::start(database, device).await;
        let page = lab.api.get(&format!("/devices?per_page=1&controller_id={}", lab.controller)).await.expect_status(200).body;
        assert_eq!(page["total"], 1_001);
    }
}

on_both! {
    async fn a_caller_of_one_site_learns_of_it_and_of_no_other(database: Database) {
        let lab = start(database).await;
        let branch = branch(&lab).await;
        let bo = member(&lab.server, "bo", Role::Viewer, &[(&branch, SiteLevel::Read)]).await;
        let reads = ["/vendor-sites", "/inventory", "/sites"];
        for read in reads {
            bo.get(&lab.at(read)).await.expect_status(404);
        }
        lab.choose("b", &json!({ "site_id": branch })).await;
        lab.device.tell_page("vlan", ("b", ""), json!({ "objects": [] }));
        lab.read().await;
        let sites = bo.get(&lab.at("/vendor-sites")).await.expect_status(200).body;
        assert_eq!(each(sites.as_array().unwrap(), "site_ref"), ["b"]);
        let lists = bo.get(&lab.at("/inventory")).await.expect_status(200).body;
        assert_eq!((&lists["total"], &lists["items"][0]["site_ref"]), (&json!(1), &json!("b")), "{lists}");
        let sites = bo.get(&lab.at("/sites")).await.expect_status(200).body;
        assert_eq!((&sites["total"], &sites["items"][0]["id"]), (&json!(1), &json!(branch)), "{sites}");
        bo.get(&lab.at("")).await.expect_status(404);
        lab.device.script().sites = vec!["a"];
        lab.read().await;
        for read in reads {
            bo.get(&lab.at(read)).await.expect_status(404);
        }
    }
}

on_both! {
    async fn a_site_with_vendors_sites_is_not_removed(database: Database) {
        let lab = start(database).await;
        let branch = branch(&lab).await;
        lab.choose("b", &json!({ "site_id": branch })).await;
        let path = format!("/sites/{branch}");
        let refused = lab.api.delete(&path).await.expect_status(409);
        assert!(refused.message().contains("'first'"), "{}", refused.text);
        lab.choose("b", &json!({ "site_id": null })).await;
        lab.api.delete(&path).await.expect_status(204);
        let refused = lab.api.post(&lab.at("/vendor-sites/b"), &json!({ "site_id": branch })).await.expect_status(422);
        assert!(refused.text.contains("site not found"), "{}", refused.text);
    }
}
