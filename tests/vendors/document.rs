//! What the service says of itself with every adapter installed.

use crate::support::{Adapters, Database, Options, Server, adapters};

/// The catalogue without schemas of adapters, in bytes.
const CATALOG_BYTES_MAX: usize = 3_000_000;

/// The served document with all adapters, in bytes.
const DOCUMENT_BYTES_MAX: usize = 3_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn every_adapter_is_in_the_document_and_the_document_stays_small() {
    let options = Options::default().serving(Adapters::All);
    let server = Server::start_with(Database::sqlite(), options).await;
    let api = server.set_up().await;
    let document = api.get("/openapi.json").await.expect_status(200);
    assert!(document.text.len() < DOCUMENT_BYTES_MAX, "{} bytes", document.text.len());
    // With thousands of operations the catalogue shows their names, and refuses to show the schemas of all.
    let catalog = api.get("/fabric/catalog").await.expect_status(200);
    assert!(catalog.text.len() < CATALOG_BYTES_MAX, "{} bytes", catalog.text.len());
    let refused = api.get("/fabric/catalog?schemas=true").await.expect_status(422);
    assert!(refused.text.contains("narrow it by search"), "{}", refused.text);
    let paths: Vec<&String> = document.body["paths"].as_object().unwrap().keys().collect();
    for id in adapters() {
        assert!(paths.iter().any(|path| path.contains(&format!("/gateway-{id}-"))), "{id}");
    }
}
