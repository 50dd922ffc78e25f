//! An administrator whose grants name sites: what is the organization's is not theirs to change.

use heddle_core::{Role, SiteId};
use heddle_store::grants::{self, NewGrant};
use heddle_store::users::{self, NewUser};
use serde_json::{Value, json};

use crate::support::{Answer, Api, PASSWORD, Server, on_both};

/// Two sites, three credentials, and an administrator who may access the second site only.
struct World {
    server: Server,
    admin: Api,
    limited: Api,
    head: Value,
    branch: Value,
    /// Used at both sites.
    shared: Value,
    /// Used at the branch alone.
    own: Value,
    /// Used nowhere.
    unused: Value,
}

impl World {
    async fn start(database: crate::support::Database) -> Self {
        let server = Server::start(database).await;
        let admin = server.set_up().await;
        let head = admin.get("/sites").await.expect_status(200).body["items"][0]["id"].clone();
        let branch = created(&admin, "/sites", &json!({ "name": "Branch" })).await;
        let limited = log_in_limited(&server, &admin, &branch).await;
        let [shared, own, unused] = [
            credential(&admin, "shared").await,
            credential(&admin, "own").await,
            credential(&admin, "unused").await,
        ];
        Self { server, admin, limited, head, branch, shared, own, unused }
    }

    async fn register(&self, api: &Api, site: &Value, credential: &Value) -> Answer {
        let body = json!({
            "name": "edge", "site_id": site, "vendor": "openwrt", "url": "http://127.0.0.1:9",
            "credential_id": credential,
        });
        api.post("/controllers", &body).await
    }
}

async fn created(api: &Api, path: &str, body: &Value) -> Value {
    api.post(path, body).await.expect_status(201).body["id"].clone()
}

async fn credential(api: &Api, name: &str) -> Value {
    created(api, "/credentials", &json!({ "name": name, "username": "root", "password": "hunter2" })).await
}

/// A second administrator of the organization, with a grant for one site.
pub(super) async fn log_in_limited(server: &Server, admin: &Api, site: &Value) -> Api {
    let me = admin.get("/auth/me").await.expect_status(200).body;
    let app = &server.running().app;
    let now = app.clock.now();
    let mut tx = app.db.write().await.unwrap();
    let first = users::find_by_login(&mut tx, me["username"].as_str().unwrap()).await.unwrap().unwrap();
    let second = NewUser {
        id: app.clock.new_id(),
        org_id: first.user.org_id,
        username: "bea".to_owned(),
        email: "bea@acme.test".to_owned(),
        full_name: None,
        // The same password.
        password_hash: first.password_hash,
        role: Role::OrgAdmin,
        now,
    };
    users::insert(&mut tx, &second).await.unwrap();
    let site_id: SiteId = serde_json::from_value(site.clone()).unwrap();
    let grant = NewGrant {
        user_id: second.id,
        site_id,
        level: heddle_core::SiteLevel::Admin,
        granted_by: first.user.id,
        now,
    };
    grants::insert(&mut tx, &grant).await.unwrap();
    tx.commit().await.unwrap();
    let login = json!({ "login": "bea", "password": PASSWORD });
    let tokens = server.nobody().post("/auth/login", &login).await.expect_status(200).body;
    admin.with_token(tokens["access_token"].as_str().unwrap())
}

#[track_caller]
fn expect_all_sites(answer: Answer) {
    assert_eq!(answer.expect_status(403).error_type(), "all_sites_required");
}

on_both! {
    async fn what_is_the_organizations_needs_access_to_all_sites(database: Database) {
        let world = World::start(database).await;
        let limited = &world.limited;
        let one = format!("/credentials/{}", world.unused.as_str().unwrap());
        let new = json!({ "name": "mine", "password": "hunter2" });
        expect_all_sites(limited.post("/credentials", &new).await);
        expect_all_sites(limited.patch(&one, &json!({ "password": "other" })).await);
        expect_all_sites(limited.delete(&one).await);
        world.admin.delete(&one).await.expect_status(204);
        expect_all_sites(limited.post(&format!("{one}/restore"), &json!({})).await);
        let me = limited.get("/auth/me").await.expect_status(200).body;
        let organization = format!("/organizations/{}", me["organization_id"].as_str().unwrap());
        expect_all_sites(limited.patch(&organization, &json!({ "name": "Mine" })).await);
        expect_all_sites(limited.get("/audit").await);
        expect_all_sites(limited.get("/audit/validate").await);
        expect_all_sites(limited.post("/sites", &json!({ "name": "Mine" })).await);
        world.admin.get("/audit").await.expect_status(200);
    }
}

on_both! {
    async fn a_credential_of_other_sites_cannot_be_sent_elsewhere(database: Database) {
        let world = World::start(database).await;
        let limited = &world.limited;
        world.register(&world.admin, &world.head, &world.shared).await.expect_status(201);
        let at_branch = world.register(&world.admin, &world.branch, &world.shared).await.expect_status(201);
        world.register(&world.admin, &world.branch, &world.own).await.expect_status(201);

        expect_all_sites(world.register(limited, &world.branch, &world.shared).await);
        expect_all_sites(world.register(limited, &world.branch, &world.unused).await);
        world.register(limited, &world.head, &world.own).await.expect_status(422);
        world.register(limited, &world.branch, &world.own).await.expect_status(201);

        let path = format!("/controllers/{}", at_branch.body["id"].as_str().unwrap());
        expect_all_sites(limited.patch(&path, &json!({ "url": "http://127.0.0.1:10" })).await);
        expect_all_sites(limited.patch(&path, &json!({ "tls": { "mode": "insecure" } })).await);
        expect_all_sites(limited.patch(&path, &json!({ "credential_id": world.unused })).await);
        let same = json!({ "name": "renamed", "url": "http://127.0.0.1:9", "credential_id": world.shared });
        limited.patch(&path, &same).await.expect_status(200);
        limited.patch(&path, &json!({ "credential_id": world.own })).await.expect_status(200);
        limited.patch(&path, &json!({ "url": "http://127.0.0.1:10" })).await.expect_status(200);
        drop(world.server);
    }
}
