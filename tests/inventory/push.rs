//! What a controller tells on its channels is read at once, and nothing else: its own readings go on as they were.

use chrono::TimeDelta;
use heddle_core::ControllerId;
use heddle_store::push::wanted::{self, Want};
use serde_json::{Value, json};

use super::{Device, Lab, two_ports};
use crate::devices::controllers::ended;
use crate::devices::devices;
use crate::support::{Database, on_both, until};

const KINDS: [&str; 5] = ["vlan", "port", "vpn-peer", "ssid", "route"];

/// A device with two ports, whose controller is read once and then not for an hour.
async fn start(database: Database, sites: &[&'static str]) -> Lab {
    let device = Device::start().await;
    for kind in KINDS {
        device.tell(kind, json!({ "objects": [] }));
    }
    device.tell("port", two_ports());
    for site in sites {
        device.script().sites.push(site);
        list(&device, site, &[(site, "online")]);
    }
    let options = device.options().with("SYNC_INTERVAL_SECS", "3600").with("INVENTORY_INTERVAL_SECS", "3600");
    let lab = Lab::start_with(database, device, options).await;
    lab.device.script().asked.clear();
    lab
}

/// Has a site list these devices.
fn list(device: &Device, site: &'static str, devices: &[(&str, &str)]) {
    let one = |(name, status): &(&str, &str)| json!({ "identity": format!("of-{name}"), "status": status });
    device.script().devices.insert(site, devices.iter().map(one).collect());
}

impl Lab {
    fn id(&self) -> ControllerId {
        self.controller.parse().expect("an id")
    }

    /// Asks for kinds at the vendor's sites, as a channel does.
    async fn told(&self, what: &[(&str, &str)]) {
        let app = &self.server.running().app;
        let now = app.clock.now();
        let want = |(kind, site_ref): &(&str, &str)| Want {
            kind: (*kind).to_owned(),
            site_ref: (*site_ref).to_owned(),
            due_at: now,
            told_at: now,
            again_at: None,
        };
        let wants: Vec<Want> = what.iter().map(want).collect();
        let mut tx = app.db.write().await.unwrap();
        wanted::want(&mut tx, self.id(), &wants).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Waits until all that was asked for is read.
    async fn settled(&self) {
        let app = &self.server.running().app;
        until("what the controller told is read", async || {
            let later = app.clock.now() + TimeDelta::hours(1);
            let mut tx = app.db.read().await.unwrap();
            wanted::of(&mut tx, self.id(), later).await.unwrap().is_empty()
        })
        .await;
    }

    async fn known(&self) -> Value {
        self.api.get(&format!("/controllers/{}", self.controller)).await.expect_status(200).body
    }

    async fn status_of(&self, name: &str) -> Value {
        let all = devices(&self.api, &format!("controller_id={}", self.controller)).await;
        let found = all.into_iter().find(|device| device["identity"] == format!("of-{name}"));
        found.map_or(Value::Null, |device| device["status"].clone())
    }

    /// Kinds and sites that were asked for since the last look, in their order. One reading of devices asks for the sites a
    /// few times in a row.
    fn asked(&self) -> Vec<(String, String)> {
        let mut asked = std::mem::take(&mut self.device.script().asked);
        asked.dedup_by(|next, last| next.0 == "sites" && next == last);
        asked
    }
}

fn times(controller: &Value) -> [&Value; 2] {
    [&controller["last_sync_at"], &controller["next_sync_at"]]
}

on_both! {
    async fn a_list_that_is_told_of_is_read_alone(database: Database) {
        let lab = start(database, &[]).await;
        let before = lab.known().await;
        lab.device.tell("port", json!({ "objects": [] }));
        lab.told(&[("port", "")]).await;
        lab.settled().await;
        assert_eq!(lab.asked(), [("port".to_owned(), String::new())]);
        assert!(lab.objects("port", "").await.is_empty());
        assert_eq!(lab.events().await.len(), 2, "both ports are gone");
        assert_eq!(times(&lab.known().await), times(&before));
    }
}

on_both! {
    async fn devices_that_are_told_of_are_read_without_lists(database: Database) {
        let lab = start(database, &["a", "b"]).await;
        let before = lab.known().await;
        list(&lab.device, "a", &[("a", "offline")]);
        list(&lab.device, "b", &[("b", "offline")]);
        lab.told(&[("device", "a")]).await;
        lab.settled().await;
        let asked: Vec<String> = lab.asked().iter().map(|(what, site)| format!("{what} {site}")).collect();
        assert_eq!(asked, ["sites ", "devices a"]);
        assert_eq!((lab.status_of("a").await, lab.status_of("b").await), (json!("offline"), json!("online")));
        assert_eq!(times(&lab.known().await), times(&before));
        lab.told(&[("device", "")]).await;
        lab.settled().await;
        assert_eq!(lab.status_of("b").await, "offline");
    }
}

on_both! {
    async fn a_device_that_moved_to_another_site_is_not_taken_for_lost(database: Database) {
        let lab = start(database, &["a", "b"]).await;
        list(&lab.device, "a", &[]);
        list(&lab.device, "b", &[("a", "online"), ("b", "online")]);
        lab.told(&[("device", "a")]).await;
        lab.settled().await;
        assert_eq!(lab.status_of("a").await, "online");
        let events = lab.api.get("/events?event_type=device.offline").await.expect_status(200).body;
        assert_eq!(events["items"], json!([]));
        list(&lab.device, "b", &[("b", "online")]);
        lab.told(&[("device", "b")]).await;
        lab.settled().await;
        assert_eq!(lab.status_of("a").await, "offline", "no site has it");
    }
}

on_both! {
    async fn a_device_that_two_sites_list_is_judged_by_the_site_that_it_is_at(database: Database) {
        let lab = start(database, &["a", "b"]).await;
        list(&lab.device, "a", &[("a", "online"), ("shared", "online")]);
        list(&lab.device, "b", &[("b", "online"), ("shared", "offline")]);
        lab.told(&[("device", "")]).await;
        lab.settled().await;
        lab.asked();
        list(&lab.device, "b", &[("b", "offline"), ("shared", "offline")]);
        lab.told(&[("device", "b")]).await;
        lab.settled().await;
        assert_eq!((lab.status_of("shared").await, lab.status_of("b").await), (json!("online"), json!("offline")));
        let asked: Vec<String> = lab.asked().iter().map(|(what, site)| format!("{what} {site}")).collect();
        assert_eq!(asked, ["sites ", "devices b"], "site a is not asked either");
    }
}

on_both! {
    async fn a_missing_device_is_not_asked_for_where_no_reading_sees_all(database: Database) {
        let lab = start(database, &["a", "b"]).await;
        lab.device.script().limited.insert("b");
        list(&lab.device, "a", &[]);
        lab.told(&[("device", "")]).await;
        lab.settled().await;
        lab.asked();
        lab.told(&[("device", "a")]).await;
        lab.settled().await;
        assert_eq!(lab.status_of("a").await, "online", "it may be at site b");
        let asked: Vec<String> = lab.asked().iter().map(|(what, site)| format!("{what} {site}")).collect();
        assert_eq!(asked, ["sites ", "devices a"], "a reading of all sites could not say more");
    }
}

on_both! {
    async fn what_is_told_while_it_is_read_is_read_again(database: Database) {
        let lab = start(database, &[]).await;
        lab.device.script().mute.insert("port ".to_owned());
        lab.told(&[("port", "")]).await;
        lab.device.was_asked("port", "").await;
        lab.told(&[("port", "")]).await;
        lab.device.script().mute.clear();
        lab.settled().await;
        assert_eq!(lab.asked().len(), 2);
    }
}

on_both! {
    async fn a_reading_of_all_takes_messages_in_between_and_reads_to_its_end(database: Database) {
        let lab = start(database, &[]).await;
        lab.device.script().mute.extend(KINDS.map(|kind| format!("{kind} ")));
        let path = format!("/controllers/{}/sync", lab.controller);
        let asked = lab.api.post(&path, &json!({})).await.expect_status(202).body;
        let is_list = |(kind, _): &(String, String)| KINDS.contains(&kind.as_str());
        until("the first list is asked for", async || lab.device.script().asked.iter().any(is_list)).await;
        lab.told(&[("device", "")]).await;
        lab.device.script().mute.clear();
        let ended = ended(&lab.api, &asked).await;
        assert_eq!(ended["state"], "succeeded", "{ended}");
        lab.settled().await;
        let kinds: Vec<String> = lab.asked().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!((&*kinds[0], &*kinds[2]), ("sites", "sites"), "devices come behind the first list: {kinds:?}");
        let mut lists: Vec<&str> = kinds.iter().map(String::as_str).filter(|kind| *kind != "sites").collect();
        lists.sort_unstable();
        let mut all = KINDS.to_vec();
        all.sort_unstable();
        assert_eq!(lists, all, "each list once");
    }
}

on_both! {
    async fn what_a_user_asks_for_is_not_answered_by_a_part(database: Database) {
        let lab = start(database, &[]).await;
        lab.device.script().mute.insert("port ".to_owned());
        lab.told(&[("port", "")]).await;
        lab.device.was_asked("port", "").await;
        let path = format!("/controllers/{}/sync", lab.controller);
        let asked = lab.api.post(&path, &json!({})).await.expect_status(202).body;
        lab.device.script().mute.clear();
        let ended = ended(&lab.api, &asked).await;
        assert_eq!(ended["state"], "succeeded", "{ended}");
        let kinds: Vec<String> = lab.asked().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds.iter().filter(|kind| *kind == "sites").count(), 1, "{kinds:?}");
        assert!(KINDS.iter().all(|kind| kinds.iter().any(|asked| asked == kind)), "{kinds:?}");
    }
}

on_both! {
    async fn what_cannot_be_read_is_left_to_the_interval(database: Database) {
        let lab = start(database, &["a"]).await;
        lab.told(&[("camera", ""), ("port", "gone")]).await;
        lab.settled().await;
        lab.device.script().broken.insert("a");
        lab.told(&[("device", "a")]).await;
        lab.settled().await;
        let known = lab.known().await;
        assert_eq!(known["status"], "online", "{known}");
        assert!(known["last_error"].as_str().is_some_and(|error| error.contains("site 'Site a'")), "{known}");
        lab.device.script().broken.clear();
        lab.told(&[("device", "")]).await;
        lab.settled().await;
        assert_eq!(lab.known().await["last_error"], Value::Null);
    }
}

on_both! {
    async fn a_site_that_does_not_answer_says_nothing_of_its_controller(database: Database) {
        let lab = start(database, &["a", "b"]).await;
        lab.device.script().slow.insert("a");
        lab.told(&[("device", "a")]).await;
        lab.settled().await;
        let known = lab.known().await;
        assert_eq!(known["status"], "online", "{known}");
        assert!(known["last_error"].as_str().is_some_and(|error| error.contains("site 'Site a'")), "{known}");
        assert_eq!((lab.status_of("a").await, lab.status_of("b").await), (json!("online"), json!("online")));
    }
}

on_both! {
    async fn nothing_is_asked_of_a_controller_that_went_offline(database: Database) {
        let lab = start(database, &[]).await;
        let path = format!("/controllers/{}", lab.controller);
        lab.api.patch(&path, &json!({ "url": "http://127.0.0.1:9" })).await.expect_status(200);
        lab.told(&[("device", ""), ("vlan", "")]).await;
        lab.settled().await;
        let known = lab.known().await;
        assert_eq!(known["status"], "offline", "{known}");
        assert!(lab.asked().is_empty());
    }
}

on_both! {
    async fn what_is_told_while_a_controller_is_found_offline_is_read_later(database: Database) {
        let lab = start(database, &["a"]).await;
        lab.device.script().held = Some("a");
        lab.told(&[("device", "a"), ("ssid", "")]).await;
        lab.device.was_asked("devices", "a").await;
        lab.told(&[("vlan", "")]).await;
        lab.device.script().slow.insert("a");
        lab.device.script().held = None;
        until("the controller is offline", async || lab.known().await["status"] == "offline").await;
        lab.device.was_asked("vlan", "").await;
        let asked = lab.asked();
        assert!(asked.iter().all(|(kind, _)| kind != "ssid"), "it was told before: {asked:?}");
    }
}

on_both! {
    async fn devices_that_cannot_be_read_in_between_end_no_reading_of_all(database: Database) {
        let lab = start(database, &["a"]).await;
        lab.device.script().mute.extend(KINDS.map(|kind| format!("{kind} ")));
        let path = format!("/controllers/{}/sync", lab.controller);
        let asked = lab.api.post(&path, &json!({})).await.expect_status(202).body;
        until("the first list is asked for", async || lab.device.script().asked.len() > 2).await;
        lab.device.script().broken.insert("a");
        lab.told(&[("device", "a")]).await;
        lab.device.script().mute.clear();
        let ended = ended(&lab.api, &asked).await;
        assert_eq!(ended["state"], "succeeded", "{ended}");
        lab.settled().await;
        let asked = lab.asked();
        assert_eq!(asked.iter().filter(|(kind, _)| kind == "devices").count(), 2, "{asked:?}");
        for kind in KINDS {
            assert_eq!(asked.iter().filter(|(asked, _)| asked == kind).count(), 1, "{kind} of {asked:?}");
        }
    }
}
