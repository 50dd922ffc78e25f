//! Lists that lie, and what others notice of it.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{Device, Lab, each, id_of, objects, read, reading_at, two_ports};
use crate::support::on_both;

on_both! {
    async fn objects_that_do_not_fit_are_left_out_and_counted(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        let lab = Lab::start(database, device).await;
        lab.device.tell("port", json!({ "objects": [
            { "key": "p1", "label": "Uplink", "fields": { "number": "one" } },
            { "key": "", "fields": {} },
            { "key": "p4", "fields": { "colour": "red" } },
            { "key": "p5", "fields": { "name": "x".repeat(70_000) } },
            { "key": "p6", "label": "Twice", "fields": { "number": 6 } },
            { "key": "p6", "label": "Again", "fields": { "number": 7 } },
        ] }));
        lab.device.tell("ssid", json!({ "objects": [{ "key": "s", "fields": { "passphrase": "canary-5uP3r-secret" } }] }));
        lab.read().await;
        let reading = lab.reading("port").await;
        assert_eq!((&reading["left_out"], &reading["complete"]), (&json!(5), &json!("partial")), "{reading}");
        assert!(reading["error"].as_str().unwrap().contains("'p1'"), "{reading}");
        let ports = lab.objects("port", "sort=key").await;
        assert_eq!(each(&ports, "key"), ["p1", "p6"], "what was named stays, what was not is gone");
        assert_eq!((&ports[0]["fields"]["number"], &ports[1]["label"]), (&json!(1), &json!("Twice")));
        let secret = lab.reading("ssid").await;
        assert!(secret["error"].as_str().unwrap().contains("secret"), "{secret}");
        assert!(!secret.to_string().contains("canary"), "{secret}");
        assert!(lab.objects("ssid", "").await.is_empty());
    }
}

on_both! {
    async fn a_bad_list_spoils_no_other(database: Database) {
        let device = Device::start().await;
        device.tell("port", json!({ "trap": true }));
        device.tell("route", json!({ "many": [0, 3], "next": "2" }));
        device.tell_page("route", ("", "2"), json!({ "fault": "generic" }));
        device.tell("vpn-peer", json!({ "many": [0, 2], "next": "more" }));
        device.tell_page("vpn-peer", ("", "more"), json!({ "many": [2, 4], "next": "more" }));
        device.tell("vlan", json!({ "objects": [{ "key": "v", "label": "Guests", "fields": { "vlan_id": 20 } }] }));
        let lab = Lab::start(database, device).await;
        let devices = lab.api.get("/devices").await.expect_status(200).body;
        assert_eq!(devices["items"][0]["identity"], "hostile");
        let controller = lab.api.get(&format!("/controllers/{}", lab.controller)).await.expect_status(200).body;
        assert_eq!((&controller["status"], &controller["last_error"]), (&json!("online"), &Value::Null), "{controller}");
        assert_eq!(each(&lab.objects("vlan", "").await, "label"), ["Guests"]);
        let said = |reading: Value| reading["error"].as_str().unwrap_or_default().to_owned();
        assert!(said(lab.reading("port").await).contains("panic"));
        let broken = lab.reading("route").await;
        assert_eq!((&broken["read_at"], &broken["objects"]), (&Value::Null, &json!(3)), "{broken}");
        assert!(said(broken).contains("broke off"));
        let endless = lab.reading("vpn-peer").await;
        assert!(said(endless.clone()).contains("names itself"), "{endless}");
        assert_eq!(endless["objects"], 4);
        assert!(said(lab.reading("ssid").await).contains("no such list"));
        // A component that breaks down in a list is not asked for it again and again, and its devices are read.
        for _ in 0..6 {
            lab.read().await;
        }
        let asked = lab.device.script().asked.iter().filter(|(kind, _)| kind == "port").count();
        assert_eq!(asked, 1);
        assert!(lab.events().await.is_empty());
    }
}

on_both! {
    async fn more_objects_than_are_kept_are_left_out(database: Database) {
        let device = Device::start().await;
        for page in 0..6 {
            let (cursor, next) = (page.to_string(), (page + 1).to_string());
            let cursor = if page == 0 { "" } else { &cursor };
            let many = json!({ "many": [page * 10_000, (page + 1) * 10_000], "next": next });
            device.tell_page("port", ("", cursor), many);
        }
        let lab = Lab::start(database, device).await;
        let reading = lab.reading("port").await;
        assert_eq!((&reading["objects"], &reading["complete"]), (&json!(50_000), &json!("partial")), "{reading}");
        assert!(reading["error"].as_str().unwrap().contains("50000"), "{reading}");
        assert!(!reading["read_at"].is_null(), "{reading}");
        let page = lab.api.get("/inventory/port?per_page=1&search=n4999&sort=-key").await.expect_status(200).body;
        assert_eq!((&page["total"], &page["items"][0]["key"]), (&json!(11), &json!("49999")), "{page}");
        // Of a list that never shows all, what was seen longest ago makes room.
        lab.device.tell("port", json!({ "many": [70_000, 70_050], "complete": "rights_limited" }));
        lab.read().await;
        assert_eq!(lab.reading("port").await["objects"], 50_000);
        assert_eq!(lab.objects("port", "search=n7004").await.len(), 11, "one of before, and ten that are new");
        let told = lab.events().await;
        let of = |change: &str| told.iter().filter(|told| told["payload"]["change"] == change).count();
        assert_eq!((of("created"), of("removed"), told.len()), (50, 50, 100));
    }
}

on_both! {
    async fn no_site_takes_the_room_of_another(database: Database) {
        let device = Device::start().await;
        device.script().sites = vec!["a", "b"];
        device.tell_page("vlan", ("a", ""), json!({ "many": [0, 10_000], "next": "1" }));
        for page in 1..5 {
            let many = json!({ "many": [page * 10_000, (page + 1) * 10_000], "next": (page + 1).to_string() });
            device.tell_page("vlan", ("a", &page.to_string()), many);
        }
        device.tell_page("vlan", ("a", "5"), json!({ "objects": [] }));
        device.tell_page("vlan", ("b", ""), json!({ "many": [0, 10] }));
        let lab = Lab::start(database, device).await;
        let at = async |site: &str| reading_at(&lab.api, &lab.controller, "vlan", site).await["objects"].clone();
        // The server may have begun by itself before it was asked: then this was the second reading.
        assert!([json!(50_000), json!(49_990)].contains(&at("a").await));
        assert_eq!(at("b").await, json!(10), "it finds room at once");
        lab.read().await;
        assert_eq!((at("a").await, at("b").await), (json!(49_990), json!(10)), "what is beyond the share gives way");
    }
}

on_both! {
    async fn what_a_list_that_is_never_whole_does_not_show_is_removed_after_a_week(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        device.tell("route", json!({ "many": [0, 2] }));
        let mut lab = Lab::start(database, device).await;
        lab.device.tell("port", json!({ "many": [0, 1], "complete": "rights_limited" }));
        lab.device.tell("route", json!({ "objects": [], "next": "2" }));
        lab.device.tell_page("route", ("", "2"), json!({ "fault": "denied" }));
        for (days, left) in [(6, 3), (2, 1)] {
            lab.server.running().app.clock.advance(TimeDelta::days(days));
            lab.api = lab.server.log_in("ada").await;
            lab.read().await;
            assert_eq!(lab.objects("port", "").await.len(), left);
            assert_eq!(lab.objects("route", "").await.len(), 2, "a list that breaks off shows nothing");
        }
        let told = lab.events().await;
        assert_eq!(each(&told[1..], "event_type"), ["device.object_changed", "device.object_changed"]);
        assert!(told[1..].iter().all(|told| told["payload"]["change"] == "removed"), "{told:?}");
    }
}

on_both! {
    async fn an_endless_list_delays_no_other_controller(database: Database) {
        let slow = Device::start().await;
        slow.tell("port", json!({ "many": [0, 1], "next": "never" }));
        slow.script().mute.insert("port never".to_owned());
        let lab = Lab::start(database, Device::start().await).await;
        lab.device.tell("port", two_ports());
        // More of them than are read at a time.
        for n in 0..12 {
            slow.register(&lab.api, &format!("slow {n}"), &lab.site).await;
        }
        slow.was_asked("port", "never").await;
        let slow_ones = lab.api.get("/controllers?per_page=200&search=slow&status=online").await.expect_status(200).body;
        assert!(slow_ones["total"].as_i64().unwrap() > 0, "their devices are read first: {slow_ones}");
        let other = lab.api.post("/organizations", &json!({ "name": "Other", "slug": "other" })).await.expect_status(201).body;
        let site = json!({ "name": "Other", "organization_id": other["id"] });
        let site = id_of(&lab.api.post("/sites", &site).await.expect_status(201).body);
        let credential = json!({ "name": "o", "username": "root", "password": "x", "organization_id": other["id"] });
        let credential = lab.api.post("/credentials", &credential).await.expect_status(201).body;
        let controller = json!({
            "name": "other", "site_id": site, "vendor": "hostile", "url": lab.device.url, "credential_id": credential["id"],
        });
        let controller = id_of(&lab.api.post("/controllers", &controller).await.expect_status(201).body);
        // Their own organization's devices, and another one's objects.
        lab.api.post(&format!("/controllers/{}/sync", lab.controller), &json!({})).await.expect_status(202);
        read(&lab.api, &controller).await;
        assert_eq!(objects(&lab.api, "port", &format!("controller_id={controller}")).await.len(), 2);
    }
}
