//! Plugins in numbers: many of them, many calls, many versions, and one that is hostile.

pub(crate) mod canary;
pub(crate) mod crowd;
pub(crate) mod loud;
pub(crate) mod swaps;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::plugins::{self, Keys, agree, named, send};
use crate::support::{Api, Database, Options, PASSWORD, Server};

const NO_LIMIT: &str = "1000000";
/// The device of a plugin that asks it nothing.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

/// A server that takes packages of these keys, and its first administrator.
async fn served(keys: &Keys, change: impl FnOnce(Options) -> Options) -> (Server, Api) {
    let options = keys
        .options()
        .with("RATE_LIMIT_RPM", NO_LIMIT)
        .with("RATE_LIMIT_BURST", NO_LIMIT)
        .with("DB_POOL_SIZE", "20");
    let server = Server::start_with(Database::sqlite(), change(options)).await;
    let api = server.set_up().await;
    (server, api)
}

/// Has a package in service.
async fn install(api: &Api, id: &str, archive: &[u8]) {
    let sent = send(api, archive).await.expect_status(201).body;
    assert_eq!(sent["state"], "awaiting_consent", "{sent}");
    agree(api, id).await;
}

/// Switches a plugin on in the organization of this client.
async fn switch_on(api: &Api, id: &str) {
    let body = json!({ "enabled": true, "settings": {} });
    api.put(&format!("/plugins/{id}/organization"), &body).await.expect_status(200);
}

/// An administrator of another organization.
async fn organization(server: &Server, api: &Api, name: &str) -> Api {
    let created = api.post("/organizations", &json!({ "name": name })).await.expect_status(201).body;
    let user = json!({
        "username": name, "email": format!("{name}@bench.test"), "password": PASSWORD, "role": "org_admin",
        "organization_id": created["id"],
    });
    api.post("/users", &user).await.expect_status(201);
    server.log_in(name).await
}

/// The guest that does what its parameters say, as a plugin of this id that reaches this device.
fn scripted(id: &str, device: SocketAddr) -> Value {
    let mut manifest = named(&plugins::scripted(&format!("http://{device}")), id);
    manifest["limits"]["cpu-ms"] = json!(1_000);
    manifest["capabilities"]["http"][0]["paths"] = json!(["/v1/**", "/echo"]);
    manifest["capabilities"]["secrets"][0]["places"] = json!(["bearer", "header:X-Key", "query:key"]);
    manifest["capabilities"]["kv"]["bytes"] = json!(100_000);
    manifest["config-schema"] = json!({ "type": "object" });
    for event in manifest["event-types"].as_array_mut().expect("it emits one") {
        event["payload-schema"] = json!({ "type": "object" });
    }
    manifest
}

/// The guest that writes down what calls it, as a plugin of this id that is told of these events and stores so many bytes.
fn watcher(id: &str, events: &str, bytes: u32) -> Value {
    let mut manifest = named(&plugins::watcher(&format!("http://{NOBODY}")), id);
    manifest["capabilities"]["events"]["subscribe"] = json!([events]);
    manifest["capabilities"]["kv"]["bytes"] = json!(bytes);
    manifest["triggers"] =
        json!([{ "id": "seen", "title": "Write down", "effect": "read", "events": [events] }]);
    manifest
}

/// The body of a request that has an action carried out.
fn asks(id: &str, action: &str, step: &Value) -> Value {
    json!({ "operation_id": format!("plugin.{id}.{action}"), "params": step })
}

/// How long so many calls of an action take, one after the other; each must work.
async fn act(api: &Api, body: &Value, count: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        let run = api.post("/actions", body).await.expect_status(201).body;
        times.push(started.elapsed());
        assert_eq!(run["success"], true, "{run}");
    }
    times
}
