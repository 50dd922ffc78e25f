//! Lists of objects, and which callers see them.

use heddle_core::{Role, SiteLevel};
use serde_json::{Value, json};

use super::{Device, Lab, each, id_of, objects, read, reading, two_ports};
use crate::devices::member;
use crate::support::{Server, on_both};

on_both! {
    async fn objects_of_all_controllers_are_found(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        device.tell("vlan", json!({ "objects": [
            { "key": "v20", "label": "Gäste", "fields": { "vlan_id": 20, "subnets": ["10.0.20.0/24"] } },
        ] }));
        let lab = Lab::start(database, device).await;
        let second = lab.device.register(&lab.api, "second", &lab.site).await;
        read(&lab.api, &second).await;
        assert_eq!(lab.objects("port", "").await.len(), 4);
        for (query, keys) in [
            (format!("controller_id={second}&sort=-key"), vec!["p2", "p1"]),
            (format!("controller_id={second}&origin=vendor"), vec!["p2"]),
            (format!("controller_id={second}&device=hostile"), vec!["p1"]),
            (format!("site_id={}&search=UPLINK", lab.site), vec!["p1", "p1"]),
            ("vendor=hostile&search=p2".to_owned(), vec!["p2", "p2"]),
            ("vendor=openwrt".to_owned(), vec![]),
            ("search=10.0.20".to_owned(), vec![]),
        ] {
            assert_eq!(each(&lab.objects("port", &query).await, "key"), keys, "{query}");
        }
        for search in ["g%C3%84ste", "10.0.20.0", "v20"] {
            assert_eq!(lab.objects("vlan", &format!("search={search}")).await.len(), 2, "{search}");
        }
        let port = lab.objects("port", &format!("controller_id={}&search=p1", lab.controller)).await.remove(0);
        let devices = lab.api.get(&format!("/devices?controller_id={}", lab.controller)).await.expect_status(200).body;
        assert_eq!((&port["device_id"], &port["device_key"]), (&devices["items"][0]["id"], &json!("hostile")));
        assert_eq!((&port["site_ref"], &port["native"]["key"]), (&Value::Null, &json!("p1")), "{port}");
        let path = format!("/inventory/port/{}", id_of(&port));
        assert_eq!(lab.api.get(&path).await.expect_status(200).body, port);
        lab.api.get(&format!("/inventory/vlan/{}", id_of(&port))).await.expect_status(404);
        lab.api.get("/inventory/port?sort=colour").await.expect_status(422);

        lab.api.delete(&format!("/controllers/{second}")).await.expect_status(204);
        assert_eq!(lab.objects("port", "").await.len(), 2, "a removed controller has none");
        lab.api.post(&format!("/controllers/{second}/restore"), &json!({})).await.expect_status(200);
        assert_eq!(lab.objects("port", "").await.len(), 4);
    }
}

on_both! {
    async fn kinds_say_what_they_hold(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        let lab = Lab::start(database, device).await;
        let kinds = lab.api.get("/inventory").await.expect_status(200).body;
        let of = |id: &str| kinds["items"].as_array().unwrap().iter().find(|kind| kind["id"] == id).unwrap().clone();
        assert_eq!((&of("port")["objects"], &of("port")["vendors"]), (&json!(2), &json!(["hostile"])));
        assert_eq!((&of("camera")["objects"], &of("camera")["vendors"]), (&json!(0), &json!([])));
        let peer = of("vpn-peer");
        let measured = peer["fields"].as_array().unwrap().iter().find(|field| field["name"] == "rx_bytes").unwrap();
        assert_eq!((&measured["is_measured"], &of("vlan")["title"]), (&json!(true), &json!("VLAN")));
        let schema = lab.api.get("/inventory/vlan/schema").await.expect_status(200).body;
        assert_eq!(schema["properties"]["vlan_id"]["maximum"], 4094);
        for path in ["/inventory/vlans", "/inventory/vlans/schema", "/inventory/vlans/01900000-0000-7000-8000-000000000000"] {
            let refused = lab.api.get(path).await.expect_status(404);
            assert!(refused.message().contains("'vlan'"), "{path}: {}", refused.text);
        }
    }
}

on_both! {
    async fn a_user_of_a_site_does_not_see_another(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        let lab = Lab::start(database, device).await;
        let branch = id_of(&lab.api.post("/sites", &json!({ "name": "Branch" })).await.expect_status(201).body);
        let second = lab.device.register(&lab.api, "second", &branch).await;
        read(&lab.api, &second).await;
        let own = member(&lab.server, "vera", Role::Viewer, &[(&branch, SiteLevel::Read)]).await;
        let seen = objects(&own, "port", "").await;
        assert_eq!(each(&seen, "controller_id"), [&json!(second), &json!(second)]);
        let kinds = own.get("/inventory").await.expect_status(200).body;
        let ports = kinds["items"].as_array().unwrap().iter().find(|kind| kind["id"] == "port").unwrap();
        assert_eq!(ports["objects"], 2);
        let other = lab.objects("port", &format!("controller_id={}", lab.controller)).await.remove(0);
        own.get(&format!("/inventory/port/{}", id_of(&other))).await.expect_status(404);
        own.get(&format!("/controllers/{}/inventory", lab.controller)).await.expect_status(404);
        assert_eq!(reading(&own, &second, "port").await["objects"], 2);

        // A controller that moves takes its objects along.
        let moved = json!({ "site_id": lab.site });
        lab.api.patch(&format!("/controllers/{second}"), &moved).await.expect_status(200);
        assert!(objects(&own, "port", "").await.is_empty());
        let all = lab.objects("port", &format!("site_id={}", lab.site)).await;
        assert_eq!(all.len(), 4);
    }
}

on_both! {
    async fn an_organization_does_not_see_another(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        let lab = Lab::start(database, device).await;
        let other = lab.api.post("/organizations", &json!({ "name": "Other", "slug": "other" })).await.expect_status(201).body;
        let user = json!({
            "username": "otto", "email": "otto@other.test", "password": crate::support::PASSWORD, "role": "org_admin",
            "organization_id": other["id"],
        });
        lab.api.post("/users", &user).await.expect_status(201);
        let stranger = lab.server.log_in("otto").await;
        assert!(objects(&stranger, "port", "").await.is_empty());
        let port = lab.objects("port", "").await.remove(0);
        stranger.get(&format!("/inventory/port/{}", id_of(&port))).await.expect_status(404);
        stranger.get(&format!("/controllers/{}/inventory", lab.controller)).await.expect_status(404);
    }
}

on_both! {
    async fn objects_can_be_read_with_every_reading_of_devices(database: Database) {
        let device = Device::start().await;
        device.tell("port", two_ports());
        let options = device.options().with("SYNC_INTERVAL_SECS", "1").with("INVENTORY_INTERVAL_SECS", "0");
        let lab = Lab::start_with(database, device, options).await;
        lab.device.tell("port", json!({ "objects": [] }));
        for _ in 0..600 {
            if lab.objects("port", "").await.is_empty() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the objects are not read again: {}", lab.reading("port").await);
    }
}

on_both! {
    async fn objects_need_the_permission_that_their_events_need(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let key = json!({ "name": "reader", "scopes": ["device:read"] });
        let key = admin.post("/api-keys", &key).await.expect_status(201).body;
        let reader = server.nobody().with("x-api-key", key["api_key"].as_str().expect("the key is shown once"));
        reader.get("/inventory/vlan").await.expect_status(200);
        for path in ["/inventory/vpn-peer", "/inventory/firmware"] {
            admin.get(path).await.expect_status(200);
            let refused = reader.get(path).await.expect_status(403).body;
            assert_eq!(refused["error"]["type"], "scope_ceiling", "{refused}");
        }
    }
}
