//! Users, stored roles, grants of sites, dashboards, quotas: what belongs to which user, and which user decides it.

mod dashboard;
mod quotas;
mod roles;
mod second_factor;
mod site_access;
mod site_access_bulk;
mod user_rules;
mod user_sessions;
mod users;

use serde_json::{Value, json};

use crate::support::{Answer, Api, Database, Options, PASSWORD, Server};

const ABSENT: &str = "01900000-0000-7000-8000-000000000000";

/// The first organization, with its first administrator.
struct World {
    server: Server,
    /// `super_admin`.
    root: Api,
    org: String,
    /// The first site.
    site: String,
}

/// A person with an account.
struct Member {
    id: String,
    api: Api,
}

impl Member {
    fn path(&self) -> String {
        format!("/users/{}", self.id)
    }
}

/// A second organization.
struct Other {
    org: String,
    admin: Member,
}

impl World {
    async fn start(database: Database) -> Self {
        Self::start_with(database, Options::default()).await
    }

    async fn start_with(database: Database, options: Options) -> Self {
        let server = Server::start_with(database, options).await;
        let root = server.set_up().await;
        let me = root.get("/auth/me").await.expect_status(200).body;
        let site = text(&root.get("/sites").await.expect_status(200).body["items"][0]["id"]);
        Self { server, root, org: text(&me["organization_id"]), site }
    }

    /// A new user of the first organization, logged in.
    async fn member(&self, name: &str, role: &str) -> Member {
        self.member_of(&self.org, name, role).await
    }

    async fn member_of(&self, org: &str, name: &str, role: &str) -> Member {
        let mut body = new_user(name, role);
        body["organization_id"] = json!(org);
        let user = self.root.post("/users", &body).await.expect_status(201).body;
        Member { id: text(&user["id"]), api: self.log_in(name).await }
    }

    async fn log_in(&self, name: &str) -> Api {
        let tokens = self.try_log_in(name, PASSWORD).await.expect_status(200).body;
        self.root.with_token(tokens["access_token"].as_str().unwrap())
    }

    async fn try_log_in(&self, name: &str, password: &str) -> Answer {
        self.server.nobody().post("/auth/login", &json!({ "login": name, "password": password })).await
    }

    async fn new_site(&self, api: &Api, name: &str) -> String {
        text(&api.post("/sites", &json!({ "name": name })).await.expect_status(201).body["id"])
    }

    /// A second organization with one administrator.
    async fn other(&self) -> Other {
        let org = self.root.post("/organizations", &json!({ "name": "Other" })).await.expect_status(201).body;
        let org = text(&org["id"]);
        let admin = self.member_of(&org, "otto", "org_admin").await;
        Other { org, admin }
    }

    /// The newest entries of the audit log with this action, as the first administrator reads them.
    async fn audited(&self, action: &str) -> Vec<Value> {
        let page = self.root.get(&format!("/audit?action={action}")).await.expect_status(200).body;
        page["items"].as_array().unwrap().clone()
    }
}

fn new_user(name: &str, role: &str) -> Value {
    json!({ "username": name, "email": format!("{name}@acme.test"), "password": PASSWORD, "role": role })
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[track_caller]
fn refused(answer: Answer, status: u16, kind: &str) -> Answer {
    let answer = answer.expect_status(status);
    assert_eq!(answer.error_type(), kind, "{}", answer.text);
    answer
}

/// The names of one field of every item of a page.
fn column(page: &Value, field: &str) -> Vec<String> {
    page["items"].as_array().expect("a page").iter().map(|item| text(&item[field])).collect()
}

/// The same request, on the condition that the object still has this `ETag`.
async fn if_match(api: &Api, method: &str, path: &str, tag: &str, body: &Value) -> u16 {
    #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http
        .request(method.parse().unwrap(), format!("{}/api/v1{path}", api.base()))
        .bearer_auth(api.token())
        .header("if-match", tag)
        .header("content-type", "application/json")
        .body(body.to_string());
    request.send().await.unwrap().status().as_u16()
}
