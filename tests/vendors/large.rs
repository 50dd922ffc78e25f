//! Controllers of large sites.

use std::time::{Duration, Instant};

use heddle_lab_omada::Seed;
use serde_json::json;

use super::practice::omada;
use super::{Adapters, Database, Options, Server, register};

const CLIENTS: u32 = 10_000;
/// Far more than it takes.
const WAIT: Duration = Duration::from_mins(3);

/// The adapter has 64 MiB, and all rows together are more: it holds one page of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_clients_of_a_site_are_listed() {
    let seed = Seed { clients: CLIENTS as usize, sites: 1, ..Seed::default() };
    let device = omada::controller(seed).await;
    let serving = Options::default().serving(Adapters::Of(vec!["omada".to_owned()]));
    let mut server = Server::start_with(Database::sqlite(), serving).await;
    let api = server.set_up().await;
    let at = format!("/controllers/{}", register(&api, "omada", &*device).await);
    let sync = api.post(&format!("{at}/sync"), &json!({})).await.expect_status(202).body;
    let path = format!("{at}/syncs/{}", sync["id"].as_str().expect("a sync has an id"));
    let started = Instant::now();
    loop {
        let sync = api.get(&path).await.expect_status(200).body;
        if !sync["ended_at"].is_null() {
            assert_eq!(sync["error"], json!(null), "{sync}");
            break;
        }
        assert!(started.elapsed() < WAIT, "the reading ends: {sync}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let devices = api.get("/devices?kind=client&per_page=1").await.expect_status(200).body;
    assert_eq!(devices["total"], CLIENTS, "{devices}");
    let clients = api.get("/inventory/client?per_page=1").await.expect_status(200).body;
    assert_eq!(clients["total"], CLIENTS, "{clients}");
    let read = api.get(&format!("{at}/inventory")).await.expect_status(200).body;
    let state = read["items"].as_array().expect("a list").iter().find(|one| one["kind"] == "client");
    let state = state.unwrap_or_else(|| panic!("the kind is listed: {read}"));
    assert_eq!(
        (&state["complete"], &state["error"], &state["left_out"]),
        (&json!("complete"), &json!(null), &json!(0)),
        "{state}"
    );
    server.stop().await;
}
