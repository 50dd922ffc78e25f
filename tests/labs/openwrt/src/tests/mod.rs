//! One test per behaviour that was observed on the real daemons. Most speak to the dispatcher, and move time by hand.

mod apply;
mod faults;
mod household;
mod inventory;
mod rpc;
mod staging;
mod streams;

use std::time::Duration;

use heddle_lab::Instant;
use serde_json::{Value, json};

use crate::device::Device;
use crate::dispatch::{Answer, answer};
use crate::router::RouterBuilder;
use crate::session::{Access, NULL_SESSION};

/// A router without its ports.
struct Bench {
    device: Device,
}

impl Bench {
    fn new() -> Self {
        let builder = RouterBuilder::default().user("monitor", "m", Access::ReadOnly).user(
            "netop",
            "n",
            Access::Writes(vec!["network".to_owned()]),
        );
        Self { device: Device::new(builder.settings(), Instant::now()) }
    }

    fn send(&mut self, body: &Value) -> Value {
        match answer(&mut self.device, body.to_string().as_bytes()) {
            Answer::Json(json) | Answer::LastJson(json) => json,
            Answer::Lost(_) => panic!("the answer was lost"),
        }
    }

    /// The `result` of a call, or the code of its JSON-RPC error.
    fn call(&mut self, sid: &str, name: &str, args: Value) -> Value {
        let (object, method) = name.rsplit_once('.').unwrap();
        let mut out = self.send(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "call", "params": [sid, object, method, args] }),
        );
        match out.get_mut("result") {
            Some(result) => result.take(),
            None => out["error"]["code"].take(),
        }
    }

    fn login(&mut self, user: &str, password: &str) -> String {
        let out = self.call(NULL_SESSION, "session.login", json!({ "username": user, "password": password }));
        out[1]["ubus_rpc_session"].as_str().unwrap().to_owned()
    }

    fn root(&mut self) -> String {
        self.login("root", "openwrt")
    }

    fn pass_secs(&mut self, secs: u64) {
        let now = self.device.now + Duration::from_secs(secs);
        self.device.advance(now);
    }

    /// One committed option.
    fn option(&self, config: &str, section: &str, option: &str) -> Option<Value> {
        Some(self.device.config(config).section(section)?.option(option)?.to_json())
    }

    #[track_caller]
    fn check(&mut self, sid: &str, name: &str, args: Value, expected: Value) {
        let shown = args.to_string();
        assert_eq!(self.call(sid, name, args), expected, "{name} {shown}");
    }
}

/// Stages a description on the WAN interface: a change that nothing depends on.
fn harmless() -> Value {
    json!({ "config": "network", "section": "wan", "values": { "metric": "7" } })
}
