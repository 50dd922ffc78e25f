//! `OpenWrt`: a router that is asked by ubus, whose record has objects and methods in place of paths.

use heddle_lab_openwrt::{Change, Fault, Router};
use serde_json::{Value, json};

use super::{Asked, Case, Edit, Opened, Practice, Pushes, Vendor};
use crate::staging::{ROUTER_PASSWORD, start_router};

pub(super) struct OpenWrt;

#[async_trait::async_trait]
impl Vendor for OpenWrt {
    fn id(&self) -> &'static str {
        "openwrt"
    }

    fn releases(&self) -> &'static [&'static str] {
        &["24.10"]
    }

    fn untested(&self) -> &'static str {
        "25.12.0"
    }

    async fn start_as(&self, _release: &str) -> Box<dyn Practice> {
        Box::new(Device(start_router().await))
    }

    fn case(&self) -> Case {
        Case {
            area: "firewall",
            feature: "openwrt.firewall.rule",
            kind: "firewall.rule",
            payload: json!({ "name": "Allow-8443", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" }),
            key: "Allow-8443",
            finds: "router",
        }
    }

    fn asked(&self) -> Asked {
        Asked {
            kind: "dhcp-reservation",
            create: json!({ "mac": "aa:bb:cc:00:00:77", "address": "192.168.1.77", "hostname": "desk" }),
            label: "desk",
            update: json!({ "address": "192.168.1.78" }),
        }
    }

    fn pushes(&self) -> Option<Pushes> {
        let wan = |auto: &str, uplink: bool| Edit {
            order: json!(["set", "wan", "auto", auto]),
            says: json!({ "kind": "port", "change": "changed", "label": "wan", "after": { "uplink": uplink } }),
        };
        Some(Pushes {
            edits: [wan("0", false), wan("1", true)],
            opened: Opened::ByHost { refusal: json!("no streams"), reason: "404" },
        })
    }
}

struct Device(Router);

impl Practice for Device {
    fn url(&self) -> String {
        self.0.url()
    }
    fn credential(&self) -> Value {
        json!({ "username": "root", "password": ROUTER_PASSWORD })
    }
    fn configuration(&self) -> Value {
        json!(self.0.fingerprint())
    }
    fn cut(&self) {
        self.0.fault(Fault::Cut { for_ms: None });
    }
    fn mend(&self) {
        self.0.clear_faults();
        self.0.lack_streams(false);
    }
    /// An edit of the file of the network.
    fn edit(&self, order: &Value) -> Value {
        let change = Change::from_json(order).expect("a change of the configuration");
        assert!(self.0.edit("network", &[change]), "the router has this file");
        Value::Null
    }
    /// An older web server has no streams.
    fn refuse(&self, _fault: &Value) {
        self.0.lack_streams(true);
        self.0.close_connections();
    }
    fn tell(&self, version: &str) {
        self.0.tell_release(version);
    }
    fn name_of(&self, call: &Value) -> String {
        let text =
            |at: usize| call["body"]["params"][at].as_str().expect("a call has an object and a method");
        written(text(1), text(2), &call["body"]["params"][3])
    }
    fn executed(&self) -> Vec<String> {
        let writes = self.0.calls().into_iter().filter(|call| call.is_write && call.status == 0);
        writes.map(|call| written(&call.object, &call.method, &call.args)).collect()
    }
    fn forget(&self) {
        self.0.forget_calls();
    }
}

/// A write by its method and by what names its section.
fn written(object: &str, method: &str, args: &Value) -> String {
    let place =
        ["config", "section", "type", "name", "option"].map(|name| args[name].as_str().unwrap_or("-"));
    format!("{object}.{method} {}", place.join(" "))
}
