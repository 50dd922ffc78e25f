//! Connections, schedules and actions: what starts which steps, with which user's rights, and the outcome.

mod actions;
mod connections;
mod courses;
mod crowds;
mod declared;
mod firing;
mod flow;
mod processes;
mod rights;
mod schedules;
mod signing;
mod writes;

use std::time::Duration;

use heddle_core::event::{EventType, NewEvent};
use heddle_core::{OrgId, Role};
use heddle_kernel::app::App;
use heddle_store::users::{self, NewUser};
use serde_json::{Value, json};

use crate::support::{Api, Database, PASSWORD, Server};

/// A server, its first admin, and their organization.
struct World {
    server: Server,
    api: Api,
    org: OrgId,
}

impl World {
    async fn start(database: Database) -> Self {
        let server = Server::start(database).await;
        let api = server.set_up().await;
        let org = organization(&api).await;
        Self { server, api, org }
    }

    /// The same server again, with a new session of the admin.
    async fn restart(&mut self) {
        self.server.restart().await;
        self.api = self.server.log_in("ada").await;
    }

    fn app(&self) -> &App {
        &self.server.running().app
    }

    async fn emit(&self, event_type: EventType, payload: Value) {
        emit(self.app(), self.org, event_type, payload).await;
    }

    /// Makes an enabled Connection with these fields in addition to those that it needs.
    async fn connect(&self, fields: Value) -> Value {
        connect(&self.api, fields).await
    }

    async fn runs(&self, connection: &Value, count: usize) -> Vec<Value> {
        runs(&self.api, &format!("/fabric/connections/{}", id_of(connection)), count).await
    }

    /// A member of the organization with this role, logged in, and their id.
    async fn member(&self, name: &str, role: Role) -> (String, Api) {
        let app = self.app();
        let mut tx = app.db.write().await.unwrap();
        let first = users::find_by_login(&mut tx, "ada").await.unwrap().unwrap();
        let new = NewUser {
            id: app.clock.new_id(),
            org_id: self.org,
            username: name.to_owned(),
            email: format!("{name}@acme.test"),
            full_name: None,
            password_hash: first.password_hash,
            role,
            now: app.clock.now(),
        };
        users::insert(&mut tx, &new).await.unwrap();
        tx.commit().await.unwrap();
        let login = json!({ "login": name, "password": PASSWORD });
        let tokens = self.server.nobody().post("/auth/login", &login).await.expect_status(200).body;
        (new.id.to_string(), self.server.nobody().with_token(tokens["access_token"].as_str().unwrap()))
    }
}

async fn organization(api: &Api) -> OrgId {
    let me = api.get("/auth/me").await.expect_status(200).body;
    me["organization_id"].as_str().unwrap().parse().unwrap()
}

fn id_of(object: &Value) -> &str {
    object["id"].as_str().expect("an object has an id")
}

/// Of no site and no device.
fn event(event_type: EventType, org: OrgId, payload: Value) -> NewEvent {
    NewEvent {
        event_type,
        org_id: org,
        site_id: None,
        controller_id: None,
        device_id: None,
        causation_id: None,
        run_id: None,
        payload,
    }
}

async fn emit(app: &App, org: OrgId, event_type: EventType, payload: Value) {
    let event = event(event_type, org, payload);
    let mut tx = app.db.write().await.unwrap();
    heddle_store::events::append(&mut tx, &event, &app.clock).await.unwrap();
    tx.commit().await.unwrap();
}

/// A body of a Connection on devices that go offline, with these fields instead.
fn filled(fields: Value) -> Value {
    let mut body = json!({
        "name": "Tell",
        "source_event": "device.offline",
        "steps": [{ "operation_id": "sites.list", "params": { "search": "{{trigger.name}}" } }],
    });
    for (name, value) in fields.as_object().cloned().unwrap_or_default() {
        body[name] = value;
    }
    let has_name = matches!(body["source_event"].as_str(), Some("device.offline" | "device.*" | "*"));
    if !has_name && fields.get("steps").is_none() {
        body["steps"] = json!([{ "operation_id": "sites.list" }]);
    }
    body
}

async fn connect(api: &Api, fields: Value) -> Value {
    api.post("/fabric/connections", &filled(fields)).await.expect_status(201).body
}

fn has_ended(run: &Value) -> bool {
    !matches!(run["state"].as_str().unwrap(), "queued" | "running" | "waiting")
}

/// The Connection once it is broken: its author's loss is seen within seconds.
async fn broken(api: &Api, path: &str) -> Value {
    let mut seen = Value::Null;
    for _ in 0..300 {
        seen = api.get(path).await.expect_status(200).body;
        if seen["state"] == "broken" {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it is not broken: {seen}");
}

/// Waits until so many runs have ended, and answers them, the newest first.
async fn runs(api: &Api, of: &str, count: usize) -> Vec<Value> {
    let mut seen = Value::Null;
    for _ in 0..300 {
        seen = api.get(&format!("{of}/runs?limit=200")).await.expect_status(200).body;
        let ended: Vec<Value> =
            seen["items"].as_array().unwrap().iter().filter(|run| has_ended(run)).cloned().collect();
        assert!(ended.len() <= count, "more than {count}: {seen}");
        if ended.len() == count {
            return ended;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("there are not {count} runs: {seen}");
}

fn device(name: &str) -> Value {
    let id = "01900000-0000-7000-8000-000000000001";
    json!({ "device_id": id, "controller_id": id, "site_id": id, "name": name })
}
