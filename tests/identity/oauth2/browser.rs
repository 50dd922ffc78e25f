//! A browser without scripts: a cookie jar, forms, and navigation that follows nothing by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::{form, next_address};
use crate::support::{Answer, Contract, PASSWORD, Server};

pub(super) struct Browser {
    base: String,
    address: String,
    http: reqwest::Client,
    contract: Arc<Contract>,
    pub(super) cookies: BTreeMap<String, String>,
    /// What the browser says of the site that sends a form: `Sec-Fetch-Site`. Old ones say nothing.
    pub(super) site: Option<&'static str>,
}

/// A form of a page.
pub(super) struct Form {
    pub(super) action: String,
    pub(super) hidden: Vec<(String, String)>,
}

impl Browser {
    pub(super) fn new(server: &Server) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client can be built");
        Self {
            base: server.nobody().base().to_owned(),
            address: next_address(),
            http,
            contract: server.contract(),
            cookies: BTreeMap::new(),
            site: None,
        }
    }

    /// Logs in at the interface, as a page with scripts would.
    pub(super) async fn log_in(&mut self, server: &Server, user: &str) {
        let login = json!({ "login": user, "password": PASSWORD });
        let answer = server.nobody().post("/auth/login", &login).await.expect_status(200);
        self.keep_cookies(&answer);
    }

    /// A navigation from a page of this service, or by hand.
    pub(super) async fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, None, true).await
    }

    /// A navigation from another site: `SameSite=Strict` cookies stay behind.
    pub(super) async fn come_from_elsewhere(&mut self, path: &str) -> Answer {
        self.send("GET", path, None, false).await
    }

    pub(super) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.send("POST", path, Some(form(fields)), true).await
    }

    /// Sends the only form of a page, with what was typed.
    pub(super) async fn submit(&mut self, page: &Answer, typed: &[(&str, &str)]) -> Answer {
        let shown = form_of(page);
        let mut fields: Vec<(&str, &str)> =
            shown.hidden.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        for (name, value) in typed {
            fields.retain(|(known, _)| known != name);
            fields.push((name, value));
        }
        self.post(&shown.action, &fields).await
    }

    /// Where a page sends on by itself.
    pub(super) async fn follow(&mut self, page: &Answer) -> Answer {
        let to = page.text.split("content=\"0; url=").nth(1).expect("the page sends on").split('"').next();
        let to = unescape(to.expect("an address ends"));
        self.get(&to).await
    }

    async fn send(&mut self, method: &str, path: &str, body: Option<String>, with_cookies: bool) -> Answer {
        let url = format!("{}{path}", self.base);
        let mut request = self.http.request(method.parse().expect("a method"), url);
        request = request.header("x-forwarded-for", &self.address);
        if with_cookies && !self.cookies.is_empty() {
            let line: Vec<String> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header("cookie", line.join("; "));
        }
        if let Some(site) = self.site {
            request = request.header("sec-fetch-site", site);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        }
        let response = request.send().await.expect("the server answers");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.expect("the answer ends");
        let body = serde_json::from_str(&text).unwrap_or_default();
        let answer = Answer { status, headers, text, body };
        self.contract.check(method, path.strip_prefix("/api/v1").expect("a path below the prefix"), &answer);
        self.keep_cookies(&answer);
        answer
    }

    fn keep_cookies(&mut self, answer: &Answer) {
        for line in answer.headers.get_all("set-cookie") {
            let line = line.to_str().expect("cookies are ASCII");
            assert!(line.contains("SameSite=Strict"), "{line}");
            let (name, value) =
                line.split(';').next().and_then(|pair| pair.split_once('=')).expect("a cookie");
            if line.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}

pub(super) fn form_of(page: &Answer) -> Form {
    assert_eq!(page.text.matches("<form ").count(), 1, "one form: {}", page.text);
    let action = between(&page.text, "action=\"", "\"").expect("a form has an action");
    let hidden = page.text.split("<input type=\"hidden\" ").skip(1).map(|field| {
        let name = between(field, "name=\"", "\"").expect("a field has a name");
        (name, between(field, "value=\"", "\"").expect("it has a value"))
    });
    Form { action, hidden: hidden.collect() }
}

fn between(text: &str, start: &str, end: &str) -> Option<String> {
    text.split_once(start)?.1.split_once(end).map(|(value, _)| unescape(value))
}

fn unescape(text: &str) -> String {
    let text = text.replace("&quot;", "\"").replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&amp;", "&")
}
