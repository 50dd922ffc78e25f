//! What holds after a process was killed between two pages of a list.

use serde_json::{Value, json};

use super::{Device, each, events, id_of, objects, read, reading};
use crate::support::{Process, on_both};

fn page(enabled: bool) -> Value {
    json!({ "next": "2", "objects": [{ "key": "p1", "label": "One", "fields": { "enabled": enabled } }] })
}

on_both! {
    async fn a_site_that_goes_while_it_is_first_read_leaves_no_objects(database: Database) {
        let device = Device::start().await;
        device.script().sites = vec!["a", "b"];
        let vlan = json!({ "next": "2", "objects": [{ "key": "v", "label": "Guests", "fields": { "vlan_id": 20 } }] });
        device.tell_page("vlan", ("a", ""), vlan);
        device.script().mute.insert("vlan 2".to_owned());
        let folder = tempfile::tempdir().expect("a folder can be made");
        let process = Process::start(folder.path(), &database, &device.options()).await;
        let (mut process, token) = process.set_up().await;
        let site = id_of(&process.api.get("/sites").await.expect_status(200).body["items"][0]);
        let controller = device.register(&process.api, "first", &site).await;
        device.was_asked("vlan", "2").await;
        process.kill();
        device.script().mute.clear();
        device.script().sites = vec!["b"];
        let process = Process::start(folder.path(), &database, &device.options()).await.with_token(&token);
        assert_eq!(objects(&process.api, "vlan", "").await.len(), 1, "the part was stored");
        read(&process.api, &controller).await;
        assert!(objects(&process.api, "vlan", "").await.is_empty());
        assert!(events(&process.api).await.is_empty(), "nobody was told of it");
    }
}

on_both! {
    async fn a_list_goes_on_where_a_killed_process_left_it(database: Database) {
        let device = Device::start().await;
        device.tell("port", page(true));
        device.tell_page("port", ("", "2"), json!({ "objects": [{ "key": "p2", "label": "Two", "fields": {} }] }));
        let folder = tempfile::tempdir().expect("a folder can be made");
        let process = Process::start(folder.path(), &database, &device.options()).await;
        let (mut process, token) = process.set_up().await;
        let site = id_of(&process.api.get("/sites").await.expect_status(200).body["items"][0]);
        let controller = device.register(&process.api, "first", &site).await;
        read(&process.api, &controller).await;
        assert_eq!(objects(&process.api, "port", "").await.len(), 2);

        device.tell("port", page(false));
        device.script().mute.insert("port 2".to_owned());
        device.script().asked.clear();
        process.api.post(&format!("/controllers/{controller}/sync"), &json!({})).await.expect_status(202);
        device.was_asked("port", "2").await;
        process.kill();
        device.script().mute.clear();
        let process = Process::start(folder.path(), &database, &device.options()).await.with_token(&token);
        let stored = objects(&process.api, "port", "").await;
        assert_eq!((each(&stored, "label"), &stored[0]["fields"]), (vec![&json!("One"), &json!("Two")], &json!({ "enabled": false })));
        assert!(events(&process.api).await.is_empty(), "the list has not ended");
        read(&process.api, &controller).await;
        read(&process.api, &controller).await;
        let told = events(&process.api).await;
        assert_eq!((told.len(), &told[0]["payload"]["before"]), (1, &json!({ "enabled": true })), "{told:?}");
        let state = reading(&process.api, &controller, "port").await;
        assert_eq!((&state["complete"], &state["objects"]), (&json!("complete"), &json!(2)));
    }
}
