//! Webhooks: which lines of the logs are sent, and what the messages hold.

use std::time::Duration;

use serde_json::{Value, json};

use super::Peer;

/// The messages that came to another controller, which has no such address and refuses them.
async fn heard(receiver: &Peer, count: usize) -> Vec<Value> {
    loop {
        let posts = receiver.lab.record().into_iter().filter(|exchange| exchange.path == "/heard");
        let messages: Vec<Value> = posts.map(|one| serde_json::from_str(&one.body).unwrap()).collect();
        if messages.len() >= count {
            return messages;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A webhook to the receiver, which the log settings of the site name.
async fn told(peer: &Peer, receiver: &Peer) -> String {
    let webhook = json!({ "name": "heddle", "urlList": [format!("{}/heard", receiver.lab.url())], "retryPolicy": 0,
        "shardedSecret": "one", "template": 0 });
    peer.ok("POST", "v1 all webhook/settings", webhook).await;
    let id = peer.get("v1 all webhook/settings").await[0]["webhookId"].as_str().unwrap().to_owned();
    let settings = json!({ "webhookConfig": { "webhookEnable": true, "webhookId": id } });
    peer.ok("PATCH", "v2 site site/log-notification", settings).await;
    id
}

#[tokio::test]
async fn devices_and_clients_that_come_and_go_are_told() {
    let (peer, receiver) = (Peer::new().await, Peer::new().await);
    told(&peer, &receiver).await;
    let device = peer.rows("v1 site devices").await[0].clone();
    let edit = json!({ "site": peer.site, "device": device["mac"], "state": "down" });
    peer.lab.edit(&edit).unwrap();
    let message = heard(&receiver, 1).await.remove(0);
    let text = format!("{} is offline.", device["name"].as_str().unwrap());
    assert_eq!((&message["text"], &message["Site"]), (&json!([text]), &json!("Main")), "{message}");
    assert!(message["shardSecret"].is_string() && message["Controller"].is_string(), "{message}");
    let client = peer.rows("v1 site clients").await[0].clone();
    peer.lab.edit(&json!({ "site": peer.site, "client": client["mac"], "active": false })).unwrap();
    let message = heard(&receiver, 2).await.remove(1);
    assert!(message["text"][0].as_str().is_some_and(|text| text.starts_with("[client:")), "{message}");
}

#[tokio::test]
async fn only_what_the_log_settings_name_is_sent() {
    let (peer, receiver) = (Peer::new().await, Peer::new().await);
    let id = told(&peer, &receiver).await;
    let mac = peer.rows("v1 site devices").await[0]["mac"].clone();
    let settings = |is_sent: bool| {
        json!({ "webhookConfig": { "webhookEnable": true, "webhookId": id }, "eventNotifications": [
            { "key": "DEVICE_STATE", "enable": true, "email": false, "webhook": is_sent } ] })
    };
    peer.ok("PATCH", "v2 site site/log-notification", settings(false)).await;
    peer.lab.edit(&json!({ "site": peer.site, "device": mac, "state": "down" })).unwrap();
    peer.ok("PATCH", "v2 site site/log-notification", settings(true)).await;
    peer.lab.edit(&json!({ "site": peer.site, "device": mac, "state": "up" })).unwrap();
    let messages = heard(&receiver, 1).await;
    assert_eq!(messages.len(), 1);
    assert!(messages[0]["text"][0].as_str().is_some_and(|text| text.ends_with("is online.")), "{messages:?}");
}

#[tokio::test]
async fn a_test_message_goes_to_the_addresses_of_the_call() {
    let (peer, receiver) = (Peer::new().await, Peer::new().await);
    let id = told(&peer, &receiver).await;
    let body =
        json!({ "name": "heddle", "urlList": [format!("{}/heard", receiver.lab.url())], "template": 0 });
    peer.ok("POST", &format!("v1 all webhook/settings/{id}"), body).await;
    let message = heard(&receiver, 1).await.remove(0);
    assert_eq!(message["Site"], "Global", "{message}");
}
