//! A new password by a link in a mail.

mod link;
mod mails;
mod probing;

use serde_json::{Value, json};

use crate::support::{Answer, Api, PASSWORD, Server};

const NEW: &str = "Another-Mule-8-Charger";

/// A user with the tests' password; answers their id.
async fn add_user(admin: &Api, name: &str) -> String {
    let body = json!({
        "username": name, "email": format!("{name}@acme.test"), "password": PASSWORD, "role": "viewer",
    });
    let user = admin.post("/users", &body).await.expect_status(201).body;
    user["id"].as_str().expect("an id").to_owned()
}

async fn ask(api: &Api, email: &str) -> Answer {
    api.post("/auth/password/reset-request", &json!({ "email": email })).await
}

async fn reset(api: &Api, token: &str, password: &str) -> Answer {
    api.post("/auth/password/reset", &body(token, password)).await
}

fn body(token: &str, password: &str) -> Value {
    json!({ "token": token, "new_password": password })
}

async fn try_login(server: &Server, name: &str, password: &str) -> Answer {
    server.nobody().post("/auth/login", &json!({ "login": name, "password": password })).await
}
