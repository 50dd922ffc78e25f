//! What a program without a sandbox does: one client, one session, no limits.
//!
//! The baseline of whatever calls an adapter. It waits for each answer on the
//! thread that asks, so it must not be used on a thread that serves.

use heddle_lab_openwrt::Router;
use heddle_sdk::testing::json_body;
use heddle_sdk::{Auth, Fault, Host, Request, Response, fault};
use serde_json::{Value, json};
use tokio::runtime::{Handle, Runtime};

pub(crate) struct PlainHost {
    runtime: Handle,
    http: reqwest::Client,
    url: String,
    session: String,
}

impl PlainHost {
    pub(crate) fn log_in(runtime: &Runtime, router: &Router, password: &str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the baseline has no egress engine")]
        let http = reqwest::Client::builder().no_proxy().build().expect("a client can be built");
        let url = format!("{}/ubus", router.url());
        let session = "00000000000000000000000000000000".to_owned();
        let mut host = Self { runtime: runtime.handle().clone(), http, url, session };
        let login = json!({
            "jsonrpc": "2.0", "id": 1, "method": "call",
            "params": ["", "session", "login", { "username": "root", "password": password, "timeout": 1200 }],
        });
        let answer = host.send(Request::new(heddle_sdk::Method::Post, "/ubus").with_json(&login), Auth::None);
        let answer = answer.and_then(|answer| answer.json()).expect("the router takes the password");
        answer["result"][1]["ubus_rpc_session"].as_str().expect("a session").clone_into(&mut host.session);
        host
    }

    /// Puts the session into a call, or into each of several.
    fn authorise(&self, body: &mut Value) {
        match body {
            Value::Array(calls) => calls.iter_mut().for_each(|call| self.authorise(call)),
            call => call["params"][0] = json!(self.session),
        }
    }
}

impl Host for PlainHost {
    fn send(&self, request: Request, _: Auth) -> Result<Response, Fault> {
        let mut body = json_body(&request).ok_or_else(|| fault::generic("the body is not JSON"))?;
        self.authorise(&mut body);
        let request = self.http.post(&self.url).header("content-type", "application/json");
        let exchange = async {
            let response = request.body(body.to_string()).send().await?;
            Ok::<_, reqwest::Error>((response.status().as_u16(), response.bytes().await?))
        };
        let (status, body) =
            self.runtime.block_on(exchange).map_err(|error| fault::connection(error.to_string()))?;
        Ok(Response { status, reason: None, headers: Vec::new(), body: body.to_vec(), elapsed_ms: 0 })
    }
}
