//! Lists that lie, and what others notice of it.

use serde_json::{Value, json};

use super::{Device, Lab, each, id_of, objects, read, two_ports};
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
