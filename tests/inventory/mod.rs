//! Objects in the words of the model: how they are read, what events tell of them, and which callers see them.

mod bounds;
mod changes;
mod due;
mod hooks;
mod lists;
mod push;
mod restart;
mod site_devices;
mod sites;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::staging::scripted::{lay_package, lay_package_with};
use crate::support::{Api, Database, Options, Server};

/// What the device says.
#[derive(Default)]
pub(crate) struct Script {
    /// Pages by kind, site and cursor.
    pages: BTreeMap<(String, String, String), Value>,
    /// Its sites.
    sites: Vec<&'static str>,
    /// How many sites it has besides, with numbers as ids.
    many_sites: usize,
    /// Devices by site; one of its own where a site is not named.
    devices: BTreeMap<&'static str, Value>,
    /// Sites whose devices cannot be listed.
    broken: BTreeSet<&'static str>,
    /// Sites whose devices are not listed in time.
    slow: BTreeSet<&'static str>,
    /// Sites whose devices are not all listed, for want of rights.
    limited: BTreeSet<&'static str>,
    /// A site whose devices are not listed before this is emptied.
    held: Option<&'static str>,
    /// Lists that do not answer until they are taken out of here.
    mute: BTreeSet<String>,
    /// What was asked for: kind and cursor, or `sites` when its devices are read.
    asked: Vec<(String, String)>,
}

type Shared = Arc<Mutex<Script>>;

fn lock(script: &Shared) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The sites, and with `site` the devices of one.
async fn sites(State(script): State<Shared>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    let Some(site) = query.get("site").map(String::as_str) else {
        let mut script = lock(&script);
        script.asked.push(("sites".to_owned(), String::new()));
        let many = (0..script.many_sites).map(|n| n.to_string());
        let all: Vec<String> = script.sites.iter().map(ToString::to_string).chain(many).collect();
        return Json(json!({ "sites": all })).into_response();
    };
    lock(&script).asked.push(("devices".to_owned(), site.to_owned()));
    while lock(&script).held == Some(site) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let script = lock(&script);
    if script.broken.contains(site) {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    if script.slow.contains(site) {
        return StatusCode::GATEWAY_TIMEOUT.into_response();
    }
    let limited = script.limited.contains(site);
    Json(json!({ "devices": script.devices.get(site), "limited": limited })).into_response()
}

async fn model(
    State(script): State<Shared>,
    Path(kind): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let of = |name: &str| query.get(name).cloned().unwrap_or_default();
    let name = format!("{kind} {}", of("cursor"));
    lock(&script).asked.push((kind.clone(), of("cursor")));
    while lock(&script).mute.contains(&name) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let page = lock(&script).pages.get(&(kind, of("site"), of("cursor"))).cloned();
    page.map_or_else(|| StatusCode::NOT_FOUND.into_response(), |page| Json(page).into_response())
}

/// A device whose adapter fills the model with what it says.
pub(crate) struct Device {
    url: String,
    script: Shared,
    serving: tokio::task::JoinHandle<()>,
    packages: tempfile::TempDir,
}

impl Drop for Device {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Device {
    pub(crate) async fn start() -> Self {
        let packages = tempfile::tempdir().expect("a folder can be made");
        lay_package(packages.path(), "1.0.0");
        let script = Shared::default();
        let routes = Router::new()
            .route("/read", get(sites))
            .route("/model/{kind}", get(model))
            .with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("the listener has an address"));
        #[expect(
            clippy::disallowed_methods,
            reason = "the device is the outside world, and ends with the test"
        )]
        let serving =
            tokio::spawn(async move { axum::serve(listener, routes).await.expect("the device serves") });
        Self { url, script, serving, packages }
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        lock(&self.script)
    }

    /// Has a site whose devices cannot be listed.
    pub(crate) fn break_site(&self, site: &'static str) {
        let mut script = self.script();
        script.sites.push(site);
        script.broken.insert(site);
    }

    /// Answers a list of a kind with this page.
    pub(crate) fn tell(&self, kind: &str, page: Value) {
        self.tell_page(kind, ("", ""), page);
    }

    /// Answers this page of a list, by site and cursor.
    pub(crate) fn tell_page(&self, kind: &str, (site, cursor): (&str, &str), page: Value) {
        self.script().pages.insert((kind.to_owned(), site.to_owned(), cursor.to_owned()), page);
    }

    /// Has the adapter declare more, for a server that starts later.
    fn declare(&self, more: &Value) {
        lay_package_with(self.packages.path(), "1.0.0", more);
    }

    pub(crate) fn options(&self) -> Options {
        let packages = self.packages.path();
        Options::default()
            .with("ADAPTER_PACKAGES", packages.display().to_string())
            .with("ADAPTER_TRUSTED_KEYS", packages.join("trusted-keys.json").display().to_string())
    }

    /// Registers it at a site; returns the controller's id.
    pub(crate) async fn register(&self, api: &Api, name: &str, site: &str) -> String {
        let credential = json!({ "name": name, "username": "root", "password": "canary-5uP3r-secret" });
        let credential = api.post("/credentials", &credential).await.expect_status(201).body;
        let controller = json!({
            "name": name, "site_id": site, "vendor": "hostile", "url": self.url, "credential_id": credential["id"],
        });
        let controller = api.post("/controllers", &controller).await.expect_status(201).body;
        id_of(&controller)
    }

    /// Waits until a page of a kind was asked for, or the devices of a site: `devices` and the site.
    pub(crate) async fn was_asked(&self, kind: &str, cursor: &str) {
        let wanted = (kind.to_owned(), cursor.to_owned());
        for _ in 0..600 {
            if self.script().asked.contains(&wanted) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the page {wanted:?} is not asked for");
    }
}

/// A server, its admin, and a controller of the device.
pub(crate) struct Lab {
    pub(crate) server: Server,
    pub(crate) api: Api,
    pub(crate) site: String,
    pub(crate) controller: String,
    pub(crate) device: Device,
}

pub(crate) fn id_of(object: &Value) -> String {
    object["id"].as_str().expect("an object has an id").to_owned()
}

/// Two objects of the kind `port`, on one device.
pub(crate) fn two_ports() -> Value {
    json!({ "objects": [
        { "key": "p1", "label": "Uplink", "device": "hostile", "fields": { "number": 1, "enabled": true } },
        { "key": "p2", "label": "Desk", "origin": "vendor", "fields": { "number": 2, "enabled": true } },
    ] })
}

impl Lab {
    /// The device says what it should before it is registered.
    pub(crate) async fn start(database: Database, device: Device) -> Self {
        let options = device.options();
        Self::start_with(database, device, options).await
    }

    pub(crate) async fn start_with(database: Database, device: Device, options: Options) -> Self {
        let lab = Self::registered(database, device, options).await;
        lab.read().await;
        lab
    }

    /// Of its first reading nothing is expected.
    async fn start_unread(database: Database, device: Device) -> Self {
        let options = device.options();
        Self::registered(database, device, options).await
    }

    async fn registered(database: Database, device: Device, options: Options) -> Self {
        let server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        let site = id_of(&api.get("/sites").await.expect_status(200).body["items"][0]);
        let controller = device.register(&api, "first", &site).await;
        Self { server, api, site, controller, device }
    }

    /// Has the controller read to its end.
    pub(crate) async fn read(&self) {
        read(&self.api, &self.controller).await;
    }

    pub(crate) async fn objects(&self, kind: &str, query: &str) -> Vec<Value> {
        objects(&self.api, kind, query).await
    }

    /// How the last reading of a kind went.
    pub(crate) async fn reading(&self, kind: &str) -> Value {
        reading(&self.api, &self.controller, kind).await
    }

    /// Events of objects, the oldest first.
    pub(crate) async fn events(&self) -> Vec<Value> {
        events(&self.api).await
    }
}

/// Has a controller read to its end, objects and all.
pub(crate) async fn read(api: &Api, controller: &str) {
    let asked =
        api.post(&format!("/controllers/{controller}/sync"), &json!({})).await.expect_status(202).body;
    let ended = crate::devices::controllers::ended(api, &asked).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
}

pub(crate) async fn objects(api: &Api, kind: &str, query: &str) -> Vec<Value> {
    let page = api.get(&format!("/inventory/{kind}?per_page=200&{query}")).await.expect_status(200).body;
    page["items"].as_array().expect("a page has items").clone()
}

pub(crate) async fn reading(api: &Api, controller: &str, kind: &str) -> Value {
    readings(api, controller).await.into_iter().find(|item| item["kind"] == kind).unwrap_or(Value::Null)
}

/// How the last reading of a kind at a site of the vendor's went.
pub(crate) async fn reading_at(api: &Api, controller: &str, kind: &str, site: &str) -> Value {
    let is_it = |item: &Value| item["kind"] == kind && item["site_ref"] == site;
    readings(api, controller).await.into_iter().find(is_it).unwrap_or(Value::Null)
}

pub(crate) async fn readings(api: &Api, controller: &str) -> Vec<Value> {
    let page =
        api.get(&format!("/controllers/{controller}/inventory?per_page=200")).await.expect_status(200).body;
    page["items"].as_array().expect("a page has items").clone()
}

/// Events of objects, the oldest first.
pub(crate) async fn events(api: &Api) -> Vec<Value> {
    let page = api.get("/events?per_page=200&sort=occurred_at").await.expect_status(200).body;
    let items = page["items"].as_array().expect("a page has items");
    let is_of_objects = |event: &&Value| {
        let name = event["event_type"].as_str().expect("an event has a type");
        name.ends_with(".object_changed") || name == "controller.inventory_changed"
    };
    items.iter().filter(is_of_objects).cloned().collect()
}

/// The values of a field of all items.
pub(crate) fn each<'a>(items: &'a [Value], field: &str) -> Vec<&'a Value> {
    items.iter().map(|item| &item[field]).collect()
}
