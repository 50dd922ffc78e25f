//! Events: handed in, read by number, and heard on the stream.

mod abuse;
mod conformance;
mod ingest;
mod pace;
mod reading;
mod revoked;
mod stream;
mod wakeups;

use serde_json::{Value, json};

use crate::support::Api;

/// Hands an event in, and answers the receipt.
async fn ingest(api: &Api, name: &str) -> Value {
    let body = json!({ "name": name, "payload": { "name": name } });
    api.post("/fabric/ingest", &body).await.expect_status(202).body
}
