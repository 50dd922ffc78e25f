//! Devices and what people do with them; many controllers at once; trying a credential; how far a grant reaches.

mod bulk;
pub(crate) mod controllers;
mod credential_fields;
mod credentials;
mod departure;
mod hostile;
mod labels;
mod levels;
mod maintenance;
mod push;

use heddle_core::{Role, SiteId, SiteLevel};
use heddle_store::grants::{self, NewGrant};
use heddle_store::users::{self, NewUser};
use serde_json::{Value, json};

use crate::staging::Lab;
use crate::support::{Api, PASSWORD, Server, Socket};

/// Hosts behind the router that are on its wireless network.
pub(crate) const PHONE: &str = "a4:83:e7:11:22:33";
const LAPTOP: &str = "dc:a6:32:44:55:66";

fn id_of(object: &Value) -> &str {
    object["id"].as_str().expect("an object has an id")
}

/// Has the controller read, and returns when that reading has ended and its events have been published.
pub(crate) async fn read(lab: &Lab) {
    let mut socket = Socket::subscribe(&lab.api, &["*"]).await;
    let path = format!("/controllers/{}/sync", lab.controller);
    let asked = lab.api.post(&path, &json!({})).await.expect_status(202).body;
    let ended = controllers::ended(&lab.api, &asked).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    published(lab, &mut socket).await;
}

/// The events that were written before this, and were not taken from the socket yet. An ingested event marks their end.
pub(crate) async fn published(lab: &Lab, socket: &mut Socket) -> Vec<Value> {
    let mark = lab.api.post("/fabric/ingest", &json!({ "name": "mark" })).await.expect_status(202).body;
    let mut events = Vec::new();
    loop {
        let event = socket.next().await["event"].clone();
        if event["id"] == mark["event_id"] {
            return events;
        }
        events.push(event);
    }
}

/// The host leaves the network. A reading that began before would bring its device back: it is waited for.
async fn leave(lab: &Lab, host: &str) {
    lab.router.client_leaves(host);
    read(lab).await;
}

pub(crate) async fn devices(api: &Api, query: &str) -> Vec<Value> {
    let page = api.get(&format!("/devices?per_page=200&{query}")).await.expect_status(200).body;
    page["items"].as_array().expect("a page has items").clone()
}

pub(crate) async fn device(api: &Api, identity: &str) -> Value {
    let found = devices(api, "").await.into_iter().find(|device| device["identity"] == identity);
    found.unwrap_or_else(|| panic!("{identity} is on the network"))
}

/// Entries of the audit log with this action, the newest first.
async fn audited(api: &Api, action: &str) -> Vec<Value> {
    let page = api.get(&format!("/audit?per_page=200&action={action}")).await.expect_status(200).body;
    page["items"].as_array().expect("a page has items").clone()
}

/// A member of the first admin's organization with these grants, logged in.
pub(crate) async fn member(server: &Server, name: &str, role: Role, granted: &[(&str, SiteLevel)]) -> Api {
    let app = &server.running().app;
    let now = app.clock.now();
    let mut tx = app.db.write().await.unwrap();
    let first = users::find_by_login(&mut tx, "ada").await.unwrap().unwrap();
    let new = NewUser {
        id: app.clock.new_id(),
        org_id: first.user.org_id,
        username: name.to_owned(),
        email: format!("{name}@acme.test"),
        full_name: None,
        // The same password.
        password_hash: first.password_hash,
        role,
        now,
    };
    users::insert(&mut tx, &new).await.unwrap();
    for (site, level) in granted {
        let site_id: SiteId = site.parse().unwrap();
        let grant = NewGrant { user_id: new.id, site_id, level: *level, granted_by: first.user.id, now };
        grants::insert(&mut tx, &grant).await.unwrap();
    }
    tx.commit().await.unwrap();
    let login = json!({ "login": name, "password": PASSWORD });
    let tokens = server.nobody().post("/auth/login", &login).await.expect_status(200).body;
    server.nobody().with_token(tokens["access_token"].as_str().unwrap())
}
