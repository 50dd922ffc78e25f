//! Signing in at an identity provider: a real one, a hostile one, and a directory.

mod browser;
mod hostile;
mod ldap;
mod neutral;
mod oidc;
mod providers;
mod saml;

use serde_json::{Value, json};

use crate::support::oidc::Returned;
use crate::support::{Answer, Api, Server};

/// The page that a sign-in comes back to. Nothing listens there: the tests read the address.
const PAGE: &str = "http://127.0.0.1:1/back";

/// An `OpenID` provider's settings, as an administrator gives them.
fn oidc_body(issuer: &str, client_id: &str, secret: Option<&str>) -> Value {
    let mut body = json!({
        "kind": "oidc",
        "label": "Company account",
        "allow_registration": true,
        "oidc": { "issuer": issuer, "client_id": client_id, "redirect_uris": [PAGE] },
    });
    if let Some(secret) = secret {
        body["client_secret"] = json!(secret);
    }
    body
}

fn with(mut body: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().expect("changes are an object") {
        body[name] = value.clone();
    }
    body
}

async fn add(admin: &Api, body: &Value) -> String {
    let provider = admin.post("/auth/sso/providers", body).await.expect_status(201).body;
    provider["id"].as_str().expect("an id").to_owned()
}

/// A sign-in that a browser began.
struct Began {
    url: String,
    state: String,
    /// The browser, with the cookie that binds the sign-in to it.
    browser: Api,
}

async fn begin(server: &Server, provider: &str) -> Began {
    begin_at(server, provider, PAGE).await
}

async fn begin_at(server: &Server, provider: &str, page: &str) -> Began {
    let body = json!({ "provider_id": provider, "redirect_uri": page });
    let answer = server.nobody().post("/auth/sso/oidc/authorize", &body).await.expect_status(200);
    let cookie = answer.header("set-cookie");
    for part in ["svc_sso_", "HttpOnly", "SameSite=Strict", "Path=/api/v1/auth/sso", "Max-Age=600"] {
        assert!(cookie.contains(part), "{part} in {cookie}");
    }
    let text = |name: &str| answer.body[name].as_str().expect("a text").to_owned();
    Began {
        url: text("authorization_url"),
        state: text("state"),
        browser: server.nobody().with("cookie", cookie.split(';').next().unwrap_or_default()),
    }
}

impl Began {
    async fn end(&self, code: &str, iss: Option<&str>) -> Answer {
        let mut body = json!({ "code": code, "state": self.state });
        if let Some(iss) = iss {
            body["iss"] = json!(iss);
        }
        self.browser.post("/auth/sso/oidc/callback", &body).await
    }

    async fn end_with(&self, returned: &Returned) -> Answer {
        assert_eq!(returned.state, self.state);
        self.end(&returned.code, returned.iss.as_deref()).await
    }
}

async fn users(admin: &Api) -> i64 {
    admin.get("/users?per_page=1").await.expect_status(200).body["total"].as_i64().expect("a number")
}

/// Audit entries of this action, the newest first.
async fn audited(admin: &Api, action: &str) -> Vec<Value> {
    let page = admin.get("/audit?per_page=200").await.expect_status(200).body;
    let all = page["items"].as_array().expect("items").clone();
    all.into_iter().filter(|entry| entry["action"] == action).collect()
}
