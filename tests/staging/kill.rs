//! The server is killed for real, at random moments of an apply, and started again.

use std::time::Duration;

use heddle_core::secret::random_bytes;
use heddle_openwrt_router::Router;
use serde_json::{Value, json};

use super::{ROUTER_PASSWORD, start_router};
use crate::support::{Api, Database, Options, PASSWORD, Process, register};

async fn settled(api: &Api, id: &str) -> Value {
    for _ in 0..600 {
        let change = api.get(&format!("/gateway-vpn/changes/{id}")).await.expect_status(200).body;
        if change["outcome"]["step"] == "idle" {
            return change;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("change {id} is not settled: {}", api.get(&format!("/gateway-vpn/changes/{id}")).await.text);
}

/// What is told of the change is what the router holds, and it holds it once.
async fn check_truth(api: &Api, router: &Router, id: &str, name: &str) -> String {
    let change = settled(api, id).await;
    let config = router.config_text("firewall").expect("the router has a firewall");
    let times = config.matches(&format!("'{name}'")).count();
    let state = change["outcome"]["state"].as_str().expect("a change has an outcome").to_owned();
    match state.as_str() {
        "applied" => assert_eq!(times, 1, "{name} is applied once: {change}"),
        "none" | "failed" | "reverted" => assert_eq!(times, 0, "{name} is not there: {change}"),
        other => panic!("{name} ended {other}: {change}"),
    }
    assert_eq!(change["status"] == "applied", state == "applied", "{change}");
    state
}

async fn kill_many(database: Database, kills: usize) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let router = start_router().await;
    let options = Options::default()
        .with("SYNC_INTERVAL_SECS", "3600")
        .with("LOG_FILTER", "warn")
        .with("APPLY_SETTLE_MS", "50")
        .with("APPLY_HOLD_SECS", "8");
    let mut process = Process::start(folder.path(), &database, &options).await;
    let setup = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
        "site": { "name": "Head office" },
    });
    let answer = process.api.post("/setup/complete", &setup).await.expect_status(201);
    let token = answer.body["access_token"].as_str().expect("a token").to_owned();
    process = process.with_token(&token);
    let controller = register(&process.api, &router.url(), ROUTER_PASSWORD).await;
    let stage = format!(
        "/gateway-openwrt-firewall/{}/changes/openwrt.firewall.rule?operation=create",
        controller["id"].as_str().expect("an id")
    );

    let mut ends = std::collections::BTreeMap::<String, usize>::new();
    for round in 0..kills {
        let name = format!("Kill-{round:03}");
        let payload = json!({ "payload": {
            "name": name, "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
        } });
        let change = process.api.post(&stage, &payload).await.expect_status(201).body;
        assert!(change["plan"].is_object(), "{change}");
        let id = change["id"].as_str().expect("an id").to_owned();
        let api = process.api.clone();
        let path = format!("/gateway-vpn/changes/{id}/apply");
        let applying = async move {
            api.try_send("POST", &path, Some(json!({ "force": true }).to_string().into_bytes())).await
        };
        let dying = async {
            // From the first byte to after the end: an apply takes about 100 ms and 50 ms of settling.
            let random = u64::from(random_bytes::<1>()[0]);
            tokio::time::sleep(Duration::from_millis(random)).await;
            process.kill();
        };
        let (_, ()) = tokio::join!(applying, dying);
        process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        *ends.entry(check_truth(&process.api, &router, &id, &name).await).or_default() += 1;
        // The change can still be brought to its end, or is at its end.
        if process.api.get(&format!("/gateway-vpn/changes/{id}")).await.body["status"] == "pending" {
            let discard = format!("/gateway-vpn/changes/{id}/discard");
            process.api.post(&discard, &json!({})).await.expect_status(200);
        }
    }
    let audit = process.api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(audit["valid"], true, "{audit}");
    let applied = ends.get("applied").copied().unwrap_or_default();
    let counters = router.counters();
    assert!(
        usize::try_from(counters.applies).is_ok_and(|applies| applies >= applied),
        "{counters:?} {ends:?}"
    );
    assert!(ends.len() > 1, "the kills fell on different moments: {ends:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_kills_lose_nothing_and_apply_nothing_twice_on_sqlite() {
    kill_many(Database::sqlite(), 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_nothing_and_apply_nothing_twice_on_postgres() {
    if let Some(database) = Database::postgres().await {
        kill_many(database, 30).await;
    }
}
