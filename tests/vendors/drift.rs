//! Drift at a controller of any vendor: what another tool edits is found, adopted and put back, and what this service does
//! is no drift.

use serde_json::{Value, json};

use super::practice::{Asked, Vendor};
use super::{Lab, register};
use crate::intent::{compared, open};
use crate::inventory::read;
use crate::support::{Adapters, Api, Database, Options, Server};

/// Another server that changes the same device.
struct Other {
    _server: Server,
    api: Api,
    controller: String,
}

impl Other {
    async fn start(lab: &Lab) -> Self {
        let serving = Adapters::Of(vec![lab.vendor.id().to_owned()]);
        let server = Server::start_with(Database::sqlite(), Options::default().serving(serving)).await;
        let api = server.set_up().await;
        let controller = register(&api, lab.vendor.id(), &*lab.device).await;
        read(&api, &controller).await;
        Self { _server: server, api, controller }
    }
}

pub(super) async fn named(api: &Api, kind: &str, label: &str) -> Value {
    let page = api.get(&format!("/inventory/{kind}?per_page=200")).await.expect_status(200).body;
    let found = page["items"].as_array().unwrap().iter().find(|object| object["label"] == label);
    found.unwrap_or_else(|| panic!("{label} is not there: {page}")).clone()
}

pub(super) async fn apply(api: &Api, change: &Value) {
    let path = format!("/gateway-vpn/changes/{}/apply", change["id"].as_str().unwrap());
    let done = api.post(&path, &json!({ "force": true })).await.expect_status(200).body;
    assert_eq!(done["outcome"]["state"], "applied", "{done}");
}

pub(super) async fn create(api: &Api, controller: &str, asked: &Asked) {
    let path = format!("/controllers/{controller}/inventory/{}/changes?verb=create", asked.kind);
    let change = api.post(&path, &json!({ "payload": asked.create })).await.expect_status(201).body;
    apply(api, &change).await;
}

async fn update(api: &Api, kind: &str, object: &Value, payload: &Value) {
    let path = format!("/inventory/{kind}/{}/changes?verb=update", object["id"].as_str().unwrap());
    let change = api.post(&path, &json!({ "payload": payload })).await.expect_status(201).body;
    apply(api, &change).await;
}

/// Reads the controller and compares what was read. A device that is asked by two servers may want a pause.
pub(super) async fn look(lab: &Lab) {
    for _ in 0..30 {
        let path = format!("/controllers/{}/sync", lab.controller);
        let asked = lab.api.post(&path, &json!({})).await.expect_status(202).body;
        let ended = crate::devices::controllers::ended(&lab.api, &asked).await;
        if ended["error"] != "the controller got too many calls" {
            assert_eq!(ended["state"], "succeeded", "{ended}");
            break;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    compared(&lab.server).await;
}

/// The difference of an object of this kind, which is the only one of its kind.
fn only(found: &[Value], kind: &str) -> Value {
    let of_kind: Vec<&Value> = found.iter().filter(|one| one["kind"] == kind).collect();
    assert_eq!(of_kind.len(), 1, "{found:?}");
    of_kind[0].clone()
}

async fn drift_is_found_adopted_and_put_back(vendor: &'static dyn Vendor) {
    let lab = Lab::start(Database::sqlite(), vendor).await;
    let asked = vendor.asked();
    look(&lab).await;
    assert!(open(&lab.api).await.is_empty(), "what is seen first is wanted");

    // What another tool creates is found, and goes when it is put back.
    let other = Other::start(&lab).await;
    create(&other.api, &other.controller, &asked).await;
    look(&lab).await;
    let found = open(&lab.api).await;
    assert!(found.iter().all(|one| one["label"] == "unknown"), "{found:?}");
    let created = only(&found, asked.kind);
    assert_eq!(created["change"], "created", "{created}");
    let before = lab.device.configuration();
    let path = format!("/drift/{}/put-back", created["id"].as_str().unwrap());
    let body = json!({ "label": "other_tool", "notes": "It was the other server" });
    let change = lab.api.post(&path, &body).await.expect_status(201).body;
    assert_eq!(
        (&change["operation"], lab.device.configuration() == before),
        (&json!("delete"), true),
        "{change}"
    );
    apply(&lab.api, &change).await;
    look(&lab).await;
    assert!(open(&lab.api).await.is_empty(), "{:?}", open(&lab.api).await);
    let closed =
        lab.api.get(&format!("/drift/{}", created["id"].as_str().unwrap())).await.expect_status(200).body;
    assert_eq!((&closed["status"], &closed["label"]), (&json!("put_back"), &json!("other_tool")), "{closed}");

    // What we create is no drift; what another tool makes of it is, and is put back or adopted.
    create(&lab.api, &lab.controller, &asked).await;
    look(&lab).await;
    assert!(open(&lab.api).await.is_empty(), "our own change: {:?}", open(&lab.api).await);
    let edit = async || {
        read(&other.api, &other.controller).await;
        let object = named(&other.api, asked.kind, asked.label).await;
        update(&other.api, asked.kind, &object, &asked.update).await;
        look(&lab).await;
        only(&open(&lab.api).await, asked.kind)
    };
    let edited = edit().await;
    assert_eq!((&edited["change"], &edited["basis"]), (&json!("changed"), &json!("applied")), "{edited}");
    let path = format!("/drift/{}/put-back", edited["id"].as_str().unwrap());
    let change = lab.api.post(&path, &json!({})).await.expect_status(201).body;
    let refused = lab.api.post(&path, &json!({})).await.expect_status(409);
    assert_eq!(refused.error_type(), "staged_already", "{}", refused.text);
    apply(&lab.api, &change).await;
    look(&lab).await;
    assert!(open(&lab.api).await.is_empty(), "{:?}", open(&lab.api).await);
    let edited = edit().await;
    let path = format!("/drift/{}/adopt", edited["id"].as_str().unwrap());
    lab.api.post(&path, &json!({})).await.expect_status(200);
    look(&lab).await;
    assert!(open(&lab.api).await.is_empty(), "{:?}", open(&lab.api).await);
}

test_each_vendor!(drift_is_found_adopted_and_put_back);
