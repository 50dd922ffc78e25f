//! Apps that act for a user: what a browser and an app see of it, over HTTP alone.

mod apps;
mod authorize;
mod browser;
mod consent;
mod ends;
mod token;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use self::browser::Browser;
use crate::support::{Answer, Api, Server};

/// RFC 7636 appendix B.
pub(super) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(super) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub(super) const CALLBACK: &str = "https://app.example/cb";

/// An app as its owner knows it.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) id: String,
    pub(super) secret: Option<String>,
}

/// A confidential app for these scopes.
pub(crate) async fn register(api: &Api, scopes: &[&str]) -> App {
    register_as(api, "confidential", scopes).await
}

pub(super) async fn register_as(api: &Api, kind: &str, scopes: &[&str]) -> App {
    let body = json!({
        "name": "Reader", "client_type": kind, "redirect_uris": [CALLBACK], "scopes": scopes,
    });
    let made = api.post("/oauth2/apps", &body).await.expect_status(201).body;
    App {
        id: made["id"].as_str().unwrap().to_owned(),
        secret: made["client_secret"].as_str().map(str::to_owned),
    }
}

pub(super) fn form(fields: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

impl App {
    /// A right request, with parameters changed: `Some` replaces or adds, `None` leaves out.
    pub(super) fn request(&self, changes: &[(&str, Option<&str>)]) -> String {
        let mut fields: Vec<(&str, &str)> = vec![
            ("response_type", "code"),
            ("client_id", &self.id),
            ("redirect_uri", CALLBACK),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("state", "a state/?&"),
        ];
        for (name, value) in changes {
            fields.retain(|(known, _)| known != name);
            fields.extend(value.map(|value| (*name, value)));
        }
        format!("/api/v1/oauth2/authorize?{}", form(&fields))
    }

    /// Asks as this app, with HTTP Basic where it has a secret.
    pub(crate) async fn ask(&self, server: &Server, path: &str, fields: &[(&str, &str)]) -> Answer {
        let nobody = server.nobody().with("content-type", "application/x-www-form-urlencoded");
        if let Some(secret) = &self.secret {
            let basic = format!("Basic {}", STANDARD.encode(format!("{}:{secret}", self.id)));
            nobody.with("authorization", &basic).send("POST", path, Some(form(fields).into_bytes())).await
        } else {
            let all = [fields, &[("client_id", self.id.as_str())]].concat();
            nobody.send("POST", path, Some(form(&all).into_bytes())).await
        }
    }

    pub(super) async fn exchange(&self, server: &Server, code: &str) -> Answer {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        self.ask(server, "/oauth2/token", &fields).await
    }

    pub(crate) async fn refresh(&self, server: &Server, refresh_token: &str) -> Answer {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        self.ask(server, "/oauth2/token", &fields).await
    }

    /// A code that this user allowed, for all that the app is registered for.
    pub(super) async fn code(&self, server: &Server, user: &str) -> String {
        let mut browser = Browser::new(server);
        browser.log_in(server, user).await;
        let question = browser.get(&self.request(&[])).await.expect_status(200);
        let sent = browser.submit(&question, &[("decision", "allow")]).await.expect_status(303);
        parameter(sent.header("location"), "code").expect("the answer has a code")
    }

    /// What the app got for this user: its access token, and its refresh token.
    pub(crate) async fn tokens(&self, server: &Server, user: &str) -> Value {
        let code = self.code(server, user).await;
        self.exchange(server, &code).await.expect_status(200).body
    }
}

/// A parameter of an address.
pub(super) fn parameter(address: &str, name: &str) -> Option<String> {
    let address: url::Url = address.parse().expect("an address is absolute");
    address.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

pub(super) fn text<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap_or_else(|| panic!("{name} is a text in {body}"))
}

/// A client with the access token of an answer.
pub(crate) fn acting(server: &Server, tokens: &Value) -> Api {
    server.nobody().with_token(text(tokens, "access_token"))
}

/// A user of the organization that the caller names, with the tests' password.
pub(super) async fn member(api: &Api, name: &str, role: &str, organization: Option<&str>) -> Value {
    let mut body = json!({
        "username": name, "email": format!("{name}@acme.test"), "password": crate::support::PASSWORD, "role": role,
    });
    if let Some(organization) = organization {
        body["organization_id"] = json!(organization);
    }
    api.post("/users", &body).await.expect_status(201).body
}

/// Another address with each browser: few log-ins are let through of one.
pub(super) fn next_address() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let offset = COUNT.fetch_add(1, Ordering::Relaxed) % (1 << 16);
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 77, 0, 0).to_bits() + offset).to_string()
}
