//! What the tests of triggers, timers and hooks share: a plugin that writes down what called it (`tests/watcher`).

use std::time::Duration;

use serde_json::{Value, json};

use super::{Keys, archive_of, send};
use crate::sandbox::device::Device;
use crate::support::{Api, Database, Options, Server, target_folder};

pub(super) const HOOK_SECRET: &str = "hook-canary-4fTq8";

pub(super) fn guest() -> Vec<u8> {
    let path = target_folder().join("guests/watcher.wasm");
    std::fs::read(&path)
        .unwrap_or_else(|_| panic!("'{}' is missing; run 'cargo xtask components' first", path.display()))
}

/// All that can call it.
pub(super) fn manifest(device: &str) -> Value {
    let object = || json!({ "type": "object" });
    json!({
        "schema": 1, "id": "watcher", "version": "1.0.0", "kind": "plugin", "api": "1.0", "name": "Watcher",
        "license": "Apache-2.0", "component": "component.wasm",
        "capabilities": {
            "http": [{ "name": "api", "origin": device, "methods": ["POST"], "paths": ["/v1/**"], "private": true }],
            "secrets": [{ "name": "key", "target": "api", "places": ["bearer"] }],
            "events": { "emit": ["plugin.watcher.seen"], "subscribe": ["ingest.external", "controller.change.staged"] },
            "fabric": { "call": ["openwrt.firewall.rule.create"] },
            "kv": { "bytes": 100_000, "migrates": true },
            "schedule": { "min-interval-s": 60 },
        },
        "event-types": [{ "type": "plugin.watcher.seen", "title": "Seen", "payload-schema": object() }],
        "triggers": [
            { "id": "seen", "title": "Write down", "effect": "outward", "events": ["ingest.external"] },
            { "id": "restage", "title": "Stage once more", "effect": "stage", "events": ["controller.change.staged"] },
            { "id": "nightly", "title": "By the clock", "effect": "read" },
        ],
        "tools": [{
            "id": "ask", "title": "Ask", "description": "Says what called the plugin.",
            "params-schema": object(), "output-schema": object(),
        }],
        "hooks": [
            { "name": "answers", "title": "Answers", "effect": "outward", "signature": {
                "scheme": "hmac-sha256", "secret": "signing-secret", "header": "x-signature", "prefix": "v0=",
                "signed": "v0:{header.x-time}:{body}", "timestamp": { "header": "x-time", "tolerance-s": 300 },
            } },
            { "name": "ping", "title": "Ping", "effect": "read", "signature": {
                "scheme": "token", "secret": "ping-token", "header": "x-token",
            } },
        ],
        "config-schema": { "type": "object" },
    })
}

pub(super) async fn install(api: &Api, archive: &[u8]) {
    send(api, archive).await.expect_status(201);
    let asked = api.get("/plugins/watcher/consent").await.expect_status(200).body;
    let body = json!({ "grant_hash": asked["grant_hash"] });
    api.post("/plugins/watcher/consent", &body).await.expect_status(200);
}

pub(super) async fn switch(api: &Api, enabled: bool, settings: Value) {
    let body = json!({ "enabled": enabled, "settings": settings });
    api.put("/plugins/watcher/organization", &body).await.expect_status(200);
}

/// A server with the plugin switched on in the first organization.
pub(super) struct Watch {
    pub(super) server: Server,
    pub(super) api: Api,
    pub(super) device: Device,
    pub(super) keys: Keys,
}

impl Watch {
    pub(super) async fn start(database: Database, settings: Value) -> Self {
        Self::start_with(database, settings, |options| options).await
    }

    pub(super) async fn start_with(
        database: Database,
        settings: Value,
        change: impl FnOnce(Options) -> Options,
    ) -> Self {
        let (keys, device) = (Keys::new(), Device::start().await);
        let server = Server::start_with(database, change(keys.options())).await;
        let api = server.set_up().await;
        install(&api, &archive_of(&manifest(&device.url()), guest(), &keys.acme)).await;
        switch(&api, true, settings).await;
        let watch = Self { server, api, device, keys };
        until(&watch.api, |log| log.iter().any(|line| line.starts_with("configured"))).await;
        watch
    }
}

/// Hands an event in.
pub(super) async fn ingest(api: &Api, name: &str, does: &str) {
    let body = json!({ "name": name, "payload": { "do": does } });
    api.post("/fabric/ingest", &body).await.expect_status(202);
}

/// What the plugin has written down, and its timers.
pub(super) async fn asked(api: &Api) -> Value {
    let body = json!({ "operation_id": "plugin.watcher.ask", "params": {} });
    let run = api.post("/actions", &body).await.expect_status(201).body;
    assert_eq!(run["success"], true, "{run}");
    run["steps"][0]["output"].clone()
}

pub(super) async fn log(api: &Api) -> Vec<String> {
    let lines = asked(api).await["log"].as_array().unwrap().clone();
    lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

/// The log, once it is so.
pub(super) async fn until(api: &Api, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
    let mut last = Vec::new();
    for _ in 0..300 {
        last = log(api).await;
        if is_so(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it did not come: {last:?}, {}", triggers(api).await)
}

/// What the API says of the triggers.
pub(super) async fn triggers(api: &Api) -> Value {
    api.get("/plugins/watcher/triggers").await.expect_status(200).body
}

/// One trigger of these, once it is so.
pub(super) async fn trigger_until(api: &Api, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..300 {
        let all = triggers(api).await;
        last = all["triggers"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap().clone();
        if is_so(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it did not come: {last}")
}

/// The names of events that a trigger was told of, in order.
pub(super) fn names(log: &[String], trigger: &str) -> Vec<String> {
    let prefix = format!("{trigger}: ");
    let lines = log.iter().filter_map(|line| line.strip_prefix(&prefix));
    lines.flat_map(|line| line.split(' ').map(str::to_owned)).collect()
}
