//! An `OpenID` provider of a test's own, written by others, which can be stopped and started again.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use url::Url;

use super::{free_port, tool, variable};

/// What must not be seen anywhere.
pub(crate) const CLIENT_SECRET: &str = "provider-canary-9Qx";

/// Where the provider tells what its scopes stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClaimsAt {
    IdToken,
    UserInfo,
}

pub(crate) struct OidcProvider {
    child: Child,
    port: u16,
    redirect_uri: String,
    claims: ClaimsAt,
    folder: TempDir,
}

/// What a browser comes back with.
#[derive(Debug, Clone)]
pub(crate) struct Returned {
    pub(crate) code: String,
    pub(crate) state: String,
    pub(crate) iss: Option<String>,
}

impl OidcProvider {
    /// A provider that sends browsers back to this page.
    pub(crate) async fn start(redirect_uri: &str, claims: ClaimsAt) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("identity/sso/provider.mjs");
        // A module finds packages upward from its own place.
        std::fs::copy(script, folder.path().join("provider.mjs")).expect("the script can be copied");
        let modules = tool("TEST_NODE_MODULES", "the npm packages of tests/identity/sso/package.json");
        std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).expect("a link can be made");
        let port = free_port();
        let child = spawn(&folder, port, redirect_uri, claims);
        let provider = Self { child, port, redirect_uri: redirect_uri.to_owned(), claims, folder };
        provider.wait_ready().await;
        provider
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn stop(&mut self) {
        self.child.kill().expect("the process runs");
        self.child.wait().expect("the process ends");
    }

    /// Starts it again on the same port, with new keys under the same names.
    pub(crate) async fn restart(&mut self) {
        self.child = spawn(&self.folder, self.port, &self.redirect_uri, self.claims);
        self.wait_ready().await;
    }

    /// Goes through the provider's pages as a browser does.
    pub(crate) async fn sign_in(&self, authorization_url: &str, person: &str) -> Returned {
        let mut browser = Browser::new();
        let mut page = browser.get(authorization_url).await;
        for _ in 0..10 {
            match page {
                Page::Elsewhere(address) => {
                    if address.starts_with(&self.redirect_uri) {
                        return returned(&address);
                    }
                    page = browser.get(&address).await;
                }
                Page::Form { action, prompt } => {
                    let fields = [("prompt", prompt.as_str()), ("login", person), ("password", "x")];
                    page = browser.post(&action, &fields).await;
                }
            }
        }
        panic!("the provider's pages do not end");
    }

    async fn wait_ready(&self) {
        let started = Instant::now();
        let address = format!("{}/.well-known/openid-configuration", self.issuer());
        let browser = Browser::new();
        while !browser.http.get(&address).send().await.is_ok_and(|answer| answer.status() == 200) {
            if started.elapsed() > Duration::from_mins(1) {
                let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                panic!("the OpenID provider does not come up: {log}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for OidcProvider {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &TempDir, port: u16, redirect_uri: &str, claims: ClaimsAt) -> Child {
    let log = std::fs::File::create(folder.path().join("log")).expect("a log can be written");
    let node = variable("TEST_NODE").unwrap_or_else(|| "node".to_owned());
    let spawned = Command::new(&node)
        .current_dir(folder.path())
        .arg("provider.mjs")
        .env("OIDC_PORT", port.to_string())
        .env("OIDC_REDIRECT_URIS", redirect_uri)
        .env("OIDC_CLAIMS", if matches!(claims, ClaimsAt::IdToken) { "token" } else { "userinfo" })
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    spawned.unwrap_or_else(|cause| {
        panic!("'{node}' cannot be started ({cause}): install nodejs, or name the program in TEST_NODE")
    })
}

fn returned(address: &str) -> Returned {
    let url = Url::parse(address).expect("an address");
    let pairs: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let value = |name: &str| pairs.get(name).cloned();
    Returned {
        code: value("code").unwrap_or_else(|| panic!("the provider refuses: {address}")),
        state: value("state").expect("a state comes back"),
        iss: value("iss"),
    }
}

/// Keeps cookies, and reads of pages what a script needs.
struct Browser {
    http: reqwest::Client,
    cookies: BTreeMap<String, String>,
}

enum Page {
    Elsewhere(String),
    Form { action: String, prompt: String },
}

impl Browser {
    fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
        let builder = reqwest::Client::builder();
        let http = builder.no_proxy().redirect(reqwest::redirect::Policy::none()).build();
        Self { http: http.expect("a client can be built"), cookies: BTreeMap::new() }
    }

    async fn get(&mut self, address: &str) -> Page {
        let request = self.http.get(address);
        self.send(address, request).await
    }

    async fn post(&mut self, address: &str, fields: &[(&str, &str)]) -> Page {
        let request = self.http.post(address).form(fields);
        self.send(address, request).await
    }

    async fn send(&mut self, address: &str, request: reqwest::RequestBuilder) -> Page {
        let line: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = request.header("cookie", line.join("; ")).send().await.expect("the provider answers");
        for set in answer.headers().get_all("set-cookie") {
            let pair = set.to_str().expect("cookies are ASCII").split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie has a name");
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        let base = Url::parse(address).expect("an address");
        let absolute = |text: &str| base.join(text).expect("an address").to_string();
        if let Some(location) = answer.headers().get("location") {
            return Page::Elsewhere(absolute(location.to_str().expect("an address is ASCII")));
        }
        let status = answer.status();
        let html = answer.text().await.expect("a page is text");
        let between = |before: &str| {
            let (_, rest) =
                html.split_once(before).unwrap_or_else(|| panic!("{status}: no '{before}' in {html}"));
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        Page::Form { action: absolute(&between("action=\"")), prompt: between("name=\"prompt\" value=\"") }
    }
}
