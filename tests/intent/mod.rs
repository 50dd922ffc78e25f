//! What is wanted: drift of devices from it, and documents that say all of it. With real vendors: `tests/vendors/intent.rs`.

mod documents;
mod drift;

use std::time::Duration;

use heddle_store::wanted::{self, Followed};
use serde_json::Value;

use crate::support::{Api, Server};

/// Waits until every list that was read was compared with what is wanted.
pub(crate) async fn compared(server: &Server) {
    let app = &server.running().app;
    let mut followed = Vec::new();
    for adapter in app.runtime.adapters() {
        // Kinds of which nothing can be set are never compared.
        let kinds = adapter.description().model.iter().map(|filled| &filled.kind);
        let kinds = kinds.filter(|kind| is_followed(kind));
        followed.extend(kinds.map(|kind| Followed { vendor: adapter.id().to_owned(), kind: kind.clone() }));
    }
    for _ in 0..600 {
        let mut tx = app.db.read().await.unwrap();
        if wanted::due(&mut tx, &followed, 1).await.unwrap().is_empty() {
            return;
        }
        drop(tx);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the readings are not compared");
}

fn is_followed(kind: &str) -> bool {
    let kind = heddle_marketplace::model::find(kind).unwrap();
    ["create", "update"].iter().any(|verb| kind.written_fields(verb).next().is_some())
        && kind.id != "snapshot"
}

/// The open differences.
pub(crate) async fn open(api: &Api) -> Vec<Value> {
    let page = api.get("/drift?status=open&per_page=200").await.expect_status(200).body;
    page["items"].as_array().expect("a page has items").clone()
}
