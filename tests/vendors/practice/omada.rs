//! TP-Link Omada: a controller that has sites, and provisions its devices by itself.

use heddle_lab::Lab;
use heddle_lab_omada::{Omada as Software, Release, Seed};
use serde_json::{Value, json};

use super::skeleton::OnSkeleton;
use super::{Asked, Case, Edit, Opened, Practice, Pushes, Vendor};

pub(super) struct Omada;

#[async_trait::async_trait]
impl Vendor for Omada {
    fn id(&self) -> &'static str {
        "omada"
    }

    fn releases(&self) -> &'static [&'static str] {
        &["5.15", "6.0", "6.2"]
    }

    fn untested(&self) -> &'static str {
        "7.0.0.4"
    }

    async fn start_as(&self, release: &str) -> Box<dyn Practice> {
        let release = match release {
            "5.15" => Release::V515,
            "6.0" => Release::V60,
            _ => Release::V62,
        };
        controller(Seed { release, ..Seed::default() }).await
    }

    fn case(&self) -> Case {
        Case {
            area: "profiles",
            feature: "omada.profiles.rate-limit",
            kind: "profiles.rate-limit",
            payload: json!({ "name": "guests", "downLimitEnable": false, "upLimitEnable": false }),
            key: "guests",
            finds: "access-point",
        }
    }

    fn asked(&self) -> Asked {
        Asked {
            kind: "dhcp-reservation",
            create: json!({ "mac": "aa:bb:cc:00:00:77", "address": "192.168.20.77", "scope": "Staff" }),
            label: "AA-BB-CC-00-00-77",
            update: json!({ "address": "192.168.20.78" }),
        }
    }

    fn pushes(&self) -> Option<Pushes> {
        let state = |state: &str, status: &str| Edit {
            order: json!({ "site": "Main", "device": "AP office", "state": state }),
            says: json!({ "new_status": status }),
        };
        Some(Pushes {
            edits: [state("down", "offline"), state("up", "online")],
            opened: Opened::ByController(webhook),
        })
    }
}

/// A person has the log of the first site sent, and tries it.
fn webhook(controller: &dyn Practice, url: &str, secret: &str) {
    let call = |method: &str, path: &str, body: Value| {
        controller.edit(&json!({ "method": method, "path": format!("/openapi/{path}"), "body": body }))
    };
    let all = "v1/{omadacId}/webhook/settings";
    let webhook = json!({ "name": "heddle", "urlList": [url], "retryPolicy": 1, "shardedSecret": secret, "template": 0 });
    call("POST", all, webhook.clone());
    let listed = call("GET", all, Value::Null);
    let id = listed[0]["webhookId"].as_str().expect("the webhook is listed").to_owned();
    let sites = call("GET", "v1/{omadacId}/sites?page=1&pageSize=10", Value::Null);
    let site = sites["data"][0]["siteId"].as_str().expect("a site is listed").to_owned();
    let settings = json!({ "webhookConfig": { "webhookEnable": true, "webhookId": id } });
    call("PATCH", &format!("v2/{{omadacId}}/sites/{site}/site/log-notification"), settings);
    call("POST", &format!("{all}/{id}"), webhook);
}

/// A practice device that begins with this.
pub(in crate::vendors) async fn controller(seed: Seed) -> Box<dyn Practice> {
    Box::new(OnSkeleton {
        device: Lab::builder(Software::new(seed)).start().await,
        tell: |omada, version| omada.told_version = Some(version.to_owned()),
        credential: json!({ "username": "lab-client", "password": "lab-secret" }),
        settings: json!({ "site": "Main" }),
        places: &[""],
        // Devices are provisioned after each change, and the controller keeps a log.
        moving: &["detailStatus", "insights.audit-log"],
    })
}
