//! What authentication costs the database: nothing for a caller who was known a moment ago.
//!
//! Counts what the databases' driver logs of each statement. That leaves out
//! the beginning and the end of a transaction that only reads.

use std::time::{Duration, Instant};

use heddle_core::DeviceId;
use heddle_core::adapter::{Completeness, DeviceStatus, SeenDevice};
use heddle_store::devices::{self, Seen};
use heddle_store::object::Object as _;
use heddle_store::{Controller, Device, Scope};
use serde_json::json;
use tracing::Instrument as _;

use crate::support::trace::{counted_request, statements};
use crate::support::{Api, Server, on_both, register};

/// Less than a caller stays known.
const WARM: Duration = Duration::from_millis(700);
const ATTEMPTS: usize = 50;

on_both! {
    async fn a_warm_request_runs_the_statements_of_its_handler_only(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let device = add_device(&server, &admin).await;
        let path = format!("/devices/{device}");
        let key = admin.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let holder = server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());

        let handler = statements_of_the_handler(&server, device).await;
        assert_eq!(handler.len(), 1, "{handler:?}");
        for caller in [&admin, &holder] {
            let (cold, warm) = cold_and_warm(&server, caller, &path).await;
            assert!(cold.len() > handler.len() && cold.ends_with(&handler), "{cold:?}");
            assert_eq!(warm, handler);
        }
    }
}

/// The statements of a request by a caller who is not known, and of the next one, while the caller is known.
async fn cold_and_warm(server: &Server, caller: &Api, path: &str) -> (Vec<String>, Vec<String>) {
    for _ in 0..ATTEMPTS {
        server.running().app.callers.forget();
        let started = Instant::now();
        let [cold, warm] = [counted_request(), counted_request()];
        caller.with("x-request-id", &cold).get(path).await.expect_status(200);
        caller.with("x-request-id", &warm).get(path).await.expect_status(200);
        // On a machine that is busy the second one may come too late.
        if started.elapsed() < WARM {
            return (statements(&cold), statements(&warm));
        }
    }
    panic!("two requests take longer than {WARM:?} each time");
}

/// What reads the device, without a request around it.
async fn statements_of_the_handler(server: &Server, device: DeviceId) -> Vec<String> {
    let request = counted_request();
    let work = async {
        let mut tx = server.running().app.db.read().await.unwrap();
        Device::find(&mut tx, &Scope::everything(), device).await.unwrap().unwrap();
    };
    work.instrument(tracing::info_span!("request", request.id = %format!("ext-{request}"))).await;
    statements(&request)
}

async fn add_device(server: &Server, admin: &Api) -> DeviceId {
    let controller = register(admin, "http://127.0.0.1:9", "unused").await;
    let app = &server.running().app;
    let mut tx = app.db.write().await.unwrap();
    let id = serde_json::from_value(controller["id"].clone()).unwrap();
    let controller = Controller::find(&mut tx, &Scope::everything(), id).await.unwrap().unwrap();
    let device = SeenDevice {
        identity: "02:00:00:00:00:01".to_owned(),
        name: "ap".to_owned(),
        kind: "access_point".to_owned(),
        status: DeviceStatus::Online,
        model: None,
        serial: None,
        firmware: None,
        mac: None,
        addresses: Vec::new(),
        site: None,
        attributes: json!({}),
        measurements: json!({}),
    };
    let seen = Seen {
        org_id: controller.org_id,
        site_id: controller.site_id,
        controller_id: controller.id,
        devices: &[device],
        sites: &std::collections::HashMap::new(),
        unread: &std::collections::HashSet::new(),
        complete: Completeness::Partial,
    };
    let sightings = devices::upsert_seen(&mut tx, &seen, &app.clock).await.unwrap();
    tx.commit().await.unwrap();
    sightings[0].device_id
}
