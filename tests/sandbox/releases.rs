//! Releases of controllers are judged again when a package that says something else of them comes.

use std::time::Duration;

use heddle_marketplace::{DESCRIPTION, PublisherKey, pack, write_archive};
use serde_json::{Value, json};

use super::install::Store;
use super::package::{contents, hostile, manifest_with};
use super::uploads::send;
use crate::inventory::Device;
use crate::support::{Api, Server, Socket, on_both};

/// A package of the guest, whose device always says that it runs release 1; `tested` is the series that it names.
fn archive(version: &str, tested: Option<&str>, key: &PublisherKey) -> Vec<u8> {
    let mut files = contents(&hostile());
    let mut description: Value = serde_json::from_slice(&files[DESCRIPTION]).unwrap();
    if let Some(tested) = tested {
        description["releases"] = json!([{ "product": "Hostile", "tested": [tested] }]);
    }
    files.insert(DESCRIPTION.to_owned(), description.to_string().into_bytes());
    let manifest = manifest_with("/version", json!(version)).to_string();
    write_archive(&pack(manifest.as_bytes(), files, key).unwrap()).unwrap()
}

/// Waits until the controller is in a state, and answers it.
async fn becomes(api: &Api, path: &str, state: &str) -> Value {
    let mut seen = Value::Null;
    for _ in 0..300 {
        seen = api.get(path).await.expect_status(200).body;
        if seen["firmware"] == "1" && seen["release_state"] == state {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the controller did not become '{state}': {seen}");
}

on_both! {
    async fn another_package_judges_again_and_a_permission_stays(database: Database) {
        let store = Store::new();
        let mut server = Server::start_with(database, store.options()).await;
        let mut api = server.set_up().await;
        send(&api, &archive("1.0.0", None, &store.acme)).await.expect_status(201);
        let device = Device::start().await;
        let sites = api.get("/sites").await.expect_status(200).body;
        let site = sites["items"][0]["id"].as_str().unwrap();
        let path = format!("/controllers/{}", device.register(&api, "edge", site).await);
        becomes(&api, &path, "unknown").await;
        let release = format!("{path}/untested-release");
        let refused = api.post(&release, &json!({ "version": "1" })).await.expect_status(409);
        assert!(refused.text.contains("is unknown"), "{}", refused.text);

        let mut stream = Socket::subscribe(&api, &["controller.release.changed"]).await;
        send(&api, &archive("1.1.0", Some("2"), &store.acme)).await.expect_status(201);
        becomes(&api, &path, "untested").await;
        let event = stream.next().await;
        assert_eq!(event["event"]["payload"]["release_state"], "untested", "{event}");
        api.post(&release, &json!({ "version": "1" })).await.expect_status(200);
        assert_eq!(stream.next().await["event"]["payload"]["release_state"], "allowed");

        send(&api, &archive("1.2.0", Some("1"), &store.acme)).await.expect_status(201);
        let seen = becomes(&api, &path, "tested").await;
        assert_eq!(seen["allowed_release"], "1");
        api.post("/adapters/hostile/rollback", &json!({})).await.expect_status(200);
        becomes(&api, &path, "allowed").await;

        server.restart().await;
        api = server.log_in("ada").await;
        becomes(&api, &path, "allowed").await;
        api.delete(&release).await.expect_status(204);
        becomes(&api, &path, "untested").await;
    }
}

on_both! {
    async fn a_release_whose_devices_cannot_be_listed_is_noticed(database: Database) {
        let store = Store::new();
        let server = Server::start_with(database, store.options()).await;
        let api = server.set_up().await;
        send(&api, &archive("1.0.0", Some("2"), &store.acme)).await.expect_status(201);
        let device = Device::start().await;
        device.break_site("a");
        let mut stream = Socket::subscribe(&api, &["controller.release.changed"]).await;
        let sites = api.get("/sites").await.expect_status(200).body;
        let site = sites["items"][0]["id"].as_str().unwrap();
        let path = format!("/controllers/{}", device.register(&api, "edge", site).await);
        let seen = becomes(&api, &path, "untested").await;
        let known = (&seen["product"], &seen["last_sync_at"]);
        assert_eq!(known, (&json!("Hostile"), &Value::Null), "it was never read to the end: {seen}");
        assert!(seen["last_error"].as_str().unwrap().contains("the list broke off"), "{seen}");
        let event = stream.next().await;
        assert_eq!(event["event"]["payload"]["release_state"], "untested", "{event}");
    }
}

on_both! {
    async fn a_permission_is_withdrawn_while_the_adapter_is_out_of_service(database: Database) {
        let store = Store::new();
        let mut server = Server::start_with(database, store.options()).await;
        let mut api = server.set_up().await;
        send(&api, &archive("1.0.0", Some("2"), &store.acme)).await.expect_status(201);
        let device = Device::start().await;
        let sites = api.get("/sites").await.expect_status(200).body;
        let site = sites["items"][0]["id"].as_str().unwrap();
        let path = format!("/controllers/{}", device.register(&api, "edge", site).await);
        becomes(&api, &path, "untested").await;
        let release = format!("{path}/untested-release");
        api.post(&release, &json!({ "version": "1" })).await.expect_status(200);

        store.trust(&[store.globex.trusted()]);
        server.restart().await;
        api = server.log_in("ada").await;
        api.get("/adapters/hostile").await.expect_status(404);
        api.delete(&release).await.expect_status(204);
        let seen = becomes(&api, &path, "untested").await;
        assert_eq!(seen["allowed_release"], Value::Null);
    }
}
