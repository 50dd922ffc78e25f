//! Events by HTTP: what receivers get, however they behave and whichever process ends.

mod deliveries;
mod limits;
mod processes;
pub(crate) mod receiver;
mod rights;
mod signature;
mod subscriptions;
mod templates;

use std::future::Future;
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::event::NewEvent;
use heddle_core::{Clock, DeviceId, OrgId};
use heddle_store::{Db, events};
use serde_json::{Value, json};

use self::receiver::Receiver;
use crate::support::{Api, Database, Options, Server, event_type};

/// The tests' receivers are on this machine, which an operator has to allow twice.
pub(crate) fn options() -> Options {
    crate::surface::unlimited().with("FABRIC_WEBHOOK_ALLOWED_HOSTS", "127.0.0.1")
}

pub(crate) async fn start(database: Database) -> (Server, Api, Receiver) {
    let server = Server::start_with(database, options()).await;
    let api = server.set_up().await;
    (server, api, Receiver::start().await)
}

async fn organization(api: &Api) -> OrgId {
    let me = api.get("/auth/me").await.expect_status(200).body;
    me["organization_id"].as_str().unwrap().parse().unwrap()
}

/// Subscribes a path of the receiver to events of devices.
async fn subscribe(api: &Api, url: &str) -> String {
    let body = json!({ "name": url, "url": url, "events": ["device.*"] });
    api.post("/webhooks", &body).await.expect_status(201).body["id"].as_str().unwrap().to_owned()
}

fn offline(org: OrgId, device: Option<DeviceId>, name: &str) -> NewEvent {
    NewEvent {
        event_type: event_type("device.offline"),
        org_id: org,
        site_id: None,
        controller_id: None,
        device_id: device,
        causation_id: None,
        run_id: None,
        payload: json!({ "name": name, "password": "hunter2" }),
    }
}

/// Writes an event, and answers its number.
async fn emit(server: &Server, api: &Api, device: Option<DeviceId>, name: &str) -> i64 {
    let app = &server.running().app;
    write(&app.db, &app.clock, &offline(organization(api).await, device, name)).await
}

async fn write(db: &Db, clock: &Clock, event: &NewEvent) -> i64 {
    let mut tx = db.write().await.unwrap();
    let seq = events::append(&mut tx, event, clock).await.unwrap().seq;
    tx.commit().await.unwrap();
    seq
}

/// Moves the server's clock, and logs in again: tokens are of before.
async fn later(server: &Server, by: TimeDelta) -> Api {
    server.running().app.clock.advance(by);
    server.log_in("ada").await
}

/// Waits for something, and fails the test when it does not come.
async fn until<T, F: Future<Output = Option<T>>>(what: &str, look: impl Fn() -> F) -> T {
    for _ in 0..600 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not come");
}

async fn deliveries(api: &Api, subscription: &str) -> Vec<Value> {
    let path = format!("/webhooks/{subscription}/deliveries?per_page=200");
    api.get(&path).await.expect_status(200).body["items"].as_array().unwrap().clone()
}

/// The only delivery of a subscription, once it is as is asked for.
async fn delivery(api: &Api, subscription: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until("the delivery", || async {
        let found = deliveries(api, subscription).await;
        assert!(found.len() <= 1, "{found:?}");
        found.into_iter().find(|row| is_so(row))
    })
    .await
}
