//! What the tests of triggers, timers and hooks share: a plugin that writes down what called it (`tests/watcher`).

use std::time::Duration;

use serde_json::{Value, json};

use super::{Keys, archive_of, send};
use crate::sandbox::device::Device;
use crate::support::plugins;
use crate::support::{Api, Database, Options, Server};

pub(super) const HOOK_SECRET: &str = "hook-canary-4fTq8";

pub(super) fn guest() -> Vec<u8> {
    plugins::guest("watcher")
}

/// All that can call it.
pub(super) fn manifest(device: &str) -> Value {
    plugins::watcher(device)
}

pub(super) async fn install(api: &Api, archive: &[u8]) {
    send(api, archive).await.expect_status(201);
    plugins::agree(api, "watcher").await;
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
