//! Two organizations with one of everything, and users who may look at the first.

use std::collections::BTreeMap;

use heddle_core::adapter::{Completeness, DeviceStatus, SeenDevice};
use heddle_core::notification::{Audience, Severity};
use heddle_core::{ControllerId, OauthAppId, OauthGrantId, OrgId, Role, SiteId, UserId};
use heddle_store::devices::{self, DeviceFilter, Seen};
use heddle_store::notices::{self, NewNotice};
use heddle_store::oauth2::{self, NewGrant};
use heddle_store::sso::{self, NewIdentity};
use heddle_store::users::{self, NewUser};
use heddle_store::webhooks::deliveries::{self, NewDelivery};
use heddle_store::{Scope, Tx, events};
use serde_json::{Value, json};

use crate::support::{Api, Database, PASSWORD, Server};

/// Well formed, and of nothing.
pub(super) const ABSENT: &str = "01900000-0000-7000-8000-000000000000";

/// Ids by the names that paths give them.
pub(super) type Ids = BTreeMap<&'static str, String>;

pub(super) struct World {
    pub(super) server: Server,
    /// The first `super_admin`, of the own organization.
    pub(super) admin: Api,
    pub(super) own: Ids,
    pub(super) foreign: Ids,
    /// Removed objects of the other organization.
    pub(super) removed: Ids,
}

impl World {
    pub(super) async fn start(database: Database) -> Self {
        let server = Server::start_with(database, super::unlimited()).await;
        let admin = server.set_up().await;
        let me = admin.get("/auth/me").await.expect_status(200).body;
        let first = text(&me["organization_id"]);
        let second = created(&admin, "/organizations", &json!({ "name": "Umbrella" })).await;
        let gone = created(&admin, "/organizations", &json!({ "name": "Gone" })).await;
        let (own, _) = fill(&server, &admin, &first).await;
        let (foreign, mut removed) = fill(&server, &admin, &second).await;
        admin.delete(&format!("/organizations/{gone}")).await.expect_status(204);
        removed.insert("organization_id", gone);
        Self { server, admin, own, foreign, removed }
    }

    /// A member of the own organization with this role.
    pub(super) async fn member(&self, role: Role) -> Api {
        member(&self.server, &self.own["organization_id"], role, &role.to_string()).await.1
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("an id").to_owned()
}

async fn created(api: &Api, path: &str, body: &Value) -> String {
    text(&api.post(path, body).await.expect_status(201).body["id"])
}

/// One of everything in this organization, and one of everything that can be removed, removed.
async fn fill(server: &Server, admin: &Api, organization: &str) -> (Ids, Ids) {
    let mut ids: Ids = [("organization_id", organization.to_owned())].into();
    let mut removed = Ids::new();
    for (name, into) in [("Kept", &mut ids), ("Removed", &mut removed)] {
        let site = json!({ "name": name, "organization_id": organization });
        let site = created(admin, "/sites", &site).await;
        let credential =
            json!({ "name": name, "username": "root", "password": "x", "organization_id": organization });
        let credential = created(admin, "/credentials", &credential).await;
        let controller = json!({
            "name": name, "site_id": site, "vendor": "openwrt", "url": "http://127.0.0.1:9", "credential_id": credential,
        });
        let controller = created(admin, "/controllers", &controller).await;
        let change =
            format!("/gateway-openwrt-firewall/{controller}/changes/openwrt.firewall.rule?operation=create");
        let payload = json!({ "payload": { "name": "r", "src": "wan", "target": "ACCEPT" } });
        into.insert("change_id", created(admin, &change, &payload).await);
        into.insert("set_id", change_set(admin, &change, &payload).await);
        into.insert("device_id", device(server, organization, &site, &controller).await);
        let user_name = format!("{}-{}", name.to_lowercase(), &organization[24..]);
        let (user, api) = member(server, organization, Role::Viewer, &user_name).await;
        let sessions = api.get("/auth/sessions").await.expect_status(200).body;
        into.insert("session_id", text(&sessions["items"][0]["id"]));
        into.insert("api_key_id", created(&api, "/api-keys", &json!({ "name": name })).await);
        apps(server, &api, name, &user, into).await;
        let role = json!({ "name": name, "permissions": ["device:read"], "organization_id": organization });
        into.insert("role_id", created(admin, "/roles", &role).await);
        let provider = json!({
            "kind": "saml", "label": name, "organization_id": organization,
            "saml": { "entry_point": "https://id.example/sso", "entity_id": "urn:heddle" },
        });
        into.insert("provider_id", created(admin, "/auth/sso/providers", &provider).await);
        into.insert("identity_id", identity(server, &into["provider_id"], &user).await);
        let channel = json!({
            "kind": "slack", "label": name, "webhook_url": "https://hooks.example/x", "organization_id": organization,
        });
        into.insert("channel_id", created(admin, "/notifications/channels", &channel).await);
        into.insert("notice_id", notice(server, organization).await);
        into.insert("event_id", event(server, organization).await);
        fill_fabric(admin, organization, into).await;
        webhooks(server, admin, organization, name, into).await;
        into.insert("user_id", user);
        let sync =
            admin.post(&format!("/controllers/{controller}/sync"), &json!({})).await.expect_status(202);
        into.insert("sync_id", sync.body["id"].as_str().unwrap().to_owned());
        into.insert("gateway_id", controller.clone());
        into.insert("controller_id", controller);
        into.insert("credential_id", credential);
        into.insert("site_id", site);
    }
    for (kind, name) in [
        ("notifications/channels", "channel_id"),
        ("fabric/connections", "connection_id"),
        ("automation/rules", "rule_id"),
        ("automation/schedules", "schedule_id"),
        ("webhooks", "subscription_id"),
        ("webhooks/templates", "template_id"),
        ("oauth2/apps", "app_id"),
        ("users", "user_id"),
        ("roles", "role_id"),
        ("auth/sso/providers", "provider_id"),
        ("devices", "device_id"),
        ("controllers", "controller_id"),
        ("credentials", "credential_id"),
        ("sites", "site_id"),
    ] {
        admin.delete(&format!("/{kind}/{}", removed[name])).await.expect_status(204);
    }
    (ids, removed)
}

/// A set of two changes that are staged like this.
async fn change_set(admin: &Api, change: &str, payload: &Value) -> String {
    let members = [created(admin, change, payload).await, created(admin, change, payload).await];
    created(admin, "/gateway-vpn/changes/sets", &json!({ "change_ids": members })).await
}

/// A notice for all users of the organization.
async fn notice(server: &Server, organization: &str) -> String {
    let app = &server.running().app;
    let new = NewNotice {
        id: app.clock.new_id(),
        org_id: organization.parse().unwrap(),
        audience: Audience::Organization,
        user_id: None,
        severity: Severity::Info,
        subject: "Tested".to_owned(),
        body: String::new(),
        source: "test".to_owned(),
        origin: None,
        now: app.clock.now(),
    };
    let mut tx = app.db.write().await.unwrap();
    notices::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
    new.id.to_string()
}

/// The organization's first event.
async fn event(server: &Server, organization: &str) -> String {
    let app = &server.running().app;
    let mut tx = app.db.read().await.unwrap();
    let found =
        events::list(&mut tx, &app.declared.events, organization.parse().unwrap(), 0, None, 1).await.unwrap();
    found.events[0].event.id.to_string()
}

/// What starts steps, and a run.
async fn fill_fabric(admin: &Api, organization: &str, into: &mut Ids) {
    let steps = json!([{ "operation_id": "sites.list" }]);
    let connection = json!({
        "source_event": "device.offline", "steps": steps, "state": "paused", "organization_id": organization,
    });
    let connection_id = created(admin, "/fabric/connections", &connection).await;
    let trial = admin.post(&format!("/fabric/connections/{connection_id}/test"), &json!({})).await;
    into.insert("run_id", text(&trial.expect_status(200).body["id"]));
    into.insert("connection_id", connection_id);
    into.insert("rule_id", created(admin, "/automation/rules", &connection).await);
    let schedule = json!({
        "name": "Yearly", "cron": "0 0 1 1 *", "time_zone": "UTC", "missed": "skip", "steps": steps, "state": "paused",
        "organization_id": organization,
    });
    into.insert("schedule_id", created(admin, "/automation/schedules", &schedule).await);
}

/// A template, a subscription that is off, and a delivery that is therefore not sent.
async fn webhooks(server: &Server, admin: &Api, organization: &str, name: &str, into: &mut Ids) {
    let template = json!({ "name": name, "payload": {}, "organization_id": organization });
    into.insert("template_id", created(admin, "/webhooks/templates", &template).await);
    let hook = json!({
        "name": name, "url": "https://hook.example/", "events": ["device.*"], "is_enabled": false,
        "organization_id": organization,
    });
    let hook = created(admin, "/webhooks", &hook).await;
    let app = &server.running().app;
    let new = NewDelivery {
        id: app.clock.new_id(),
        org_id: organization.parse().unwrap(),
        subscription_id: hook.parse().unwrap(),
        event_id: app.clock.new_id(),
        event_type: "device.offline".to_owned(),
        seq: 1,
        site_id: None,
        device_id: None,
        event: json!({}),
        now: app.clock.now(),
    };
    let mut tx = app.db.write().await.unwrap();
    deliveries::insert(&mut tx, std::slice::from_ref(&new)).await.unwrap();
    tx.commit().await.unwrap();
    into.insert("delivery_id", new.id.to_string());
    into.insert("subscription_id", hook);
}

async fn device(server: &Server, organization: &str, site: &str, controller: &str) -> String {
    let app = &server.running().app;
    let org_id: OrgId = organization.parse().unwrap();
    let seen = SeenDevice {
        identity: "AA:BB:CC:00:00:01".to_owned(),
        name: "edge".to_owned(),
        kind: "router".to_owned(),
        status: DeviceStatus::Online,
        model: None,
        serial: None,
        firmware: None,
        mac: None,
        addresses: Vec::new(),
        site: None,
        attributes: json!({}),
        measurements: json!({}),
    };
    let controller_id: ControllerId = controller.parse().unwrap();
    let site_id: SiteId = site.parse().unwrap();
    let seen = Seen { org_id, site_id, controller_id, devices: &[seen], complete: Completeness::Partial };
    let mut tx = app.db.write().await.unwrap();
    devices::upsert_seen(&mut tx, &seen, &app.clock).await.unwrap();
    let filter = DeviceFilter { controller_id: Some(controller_id), ..DeviceFilter::default() };
    let page = heddle_core::page::PageRequest { page: 1, per_page: 1 };
    let (found, _) = devices::list(&mut tx, &Scope::organization(org_id), &filter, page).await.unwrap();
    tx.commit().await.unwrap();
    found[0].id.to_string()
}

/// An app that was registered, and what a user allowed it.
async fn apps(server: &Server, api: &Api, name: &str, user: &str, into: &mut Ids) {
    let registered = json!({
        "name": name, "client_type": "public", "redirect_uris": ["https://app.example/cb"], "scopes": ["device:read"],
    });
    let registered = created(api, "/oauth2/apps", &registered).await;
    into.insert("grant_id", grant(server, &registered, user).await);
    into.insert("app_id", registered);
}

/// What this user allowed an app, as if its code had been exchanged.
async fn grant(server: &Server, registered: &str, user: &str) -> String {
    let app = &server.running().app;
    let (app_id, user_id): (OauthAppId, UserId) = (registered.parse().unwrap(), user.parse().unwrap());
    let (id, now): (OauthGrantId, _) = (app.clock.new_id(), app.clock.now());
    let later = now + chrono::TimeDelta::days(1);
    let new = NewGrant {
        id,
        app_id,
        user_id,
        scopes: vec!["device:read".to_owned()],
        token_version: 0,
        code_hash: id.to_string(),
        code_challenge: "challenge".to_owned(),
        redirect_uri: "https://app.example/cb".to_owned(),
        code_expires_at: later,
        now,
    };
    let mut tx = app.db.write().await.unwrap();
    oauth2::insert_grant(&mut tx, &new).await.unwrap();
    assert!(oauth2::spend_code(&mut tx, id, later, now).await.unwrap());
    tx.commit().await.unwrap();
    id.to_string()
}

/// The identity of this user at a provider, as if they had signed in there.
async fn identity(server: &Server, provider: &str, user: &str) -> String {
    let app = &server.running().app;
    let new = NewIdentity {
        id: app.clock.new_id(),
        provider_id: provider.parse().unwrap(),
        issuer: "https://id.example".to_owned(),
        subject: user.to_owned(),
        user_id: user.parse().unwrap(),
        created_user: false,
        now: app.clock.now(),
    };
    let mut tx = app.db.write().await.unwrap();
    let made = sso::insert_identity(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
    made.id.to_string()
}

/// A user with the first admin's password, and their client.
async fn member(server: &Server, organization: &str, role: Role, name: &str) -> (String, Api) {
    let app = &server.running().app;
    let mut tx = app.db.write().await.unwrap();
    let user = new_user(&mut tx, organization.parse().unwrap(), role, name, app).await;
    tx.commit().await.unwrap();
    let login = json!({ "login": name, "password": PASSWORD });
    let tokens = server.nobody().post("/auth/login", &login).await.expect_status(200).body;
    (user, server.nobody().with_token(tokens["access_token"].as_str().unwrap()))
}

async fn new_user(
    tx: &mut Tx,
    org_id: OrgId,
    role: Role,
    name: &str,
    app: &heddle_kernel::app::App,
) -> String {
    let admin = users::find_by_login(tx, "ada").await.unwrap().unwrap();
    let new = NewUser {
        id: app.clock.new_id(),
        org_id,
        username: name.to_owned(),
        email: format!("{name}@acme.test"),
        full_name: None,
        password_hash: admin.password_hash,
        role,
        now: app.clock.now(),
    };
    users::insert(tx, &new).await.unwrap();
    new.id.to_string()
}
