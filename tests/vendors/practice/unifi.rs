//! UniFi: a console of several sites, by an API key.

use heddle_lab::Lab;
use heddle_lab_unifi::{Console, Release, Settings};
use serde_json::json;

use super::skeleton::OnSkeleton;
use super::{Asked, Case, Edit, Opened, Practice, Pushes, Vendor};

pub(super) struct UniFi;

#[async_trait::async_trait]
impl Vendor for UniFi {
    fn id(&self) -> &'static str {
        "unifi"
    }

    fn releases(&self) -> &'static [&'static str] {
        &["9.5", "10.1", "10.2", "10.3", "10.4"]
    }

    fn untested(&self) -> &'static str {
        "11.0.1"
    }

    async fn start_as(&self, release: &str) -> Box<dyn Practice> {
        let release = match release {
            "9.5" => Release::V9_5,
            "10.1" => Release::V10_1,
            "10.2" => Release::V10_2,
            "10.3" => Release::V10_3,
            _ => Release::V10_4,
        };
        console(Settings { release, ..Settings::default() }).await
    }

    fn case(&self) -> Case {
        Case {
            area: "firewall",
            feature: "unifi.firewall.group",
            kind: "firewall.group",
            payload: json!({ "name": "printers", "group_type": "address-group", "group_members": ["192.0.2.7"] }),
            key: "printers",
            finds: "switch",
        }
    }

    fn asked(&self) -> Asked {
        Asked {
            // A network is a VLAN, an interface and a pool there, so that an edit of one is an edit of all.
            kind: "address-group",
            create: json!({ "name": "offices", "type": "addresses", "members": ["192.0.2.0/24"] }),
            label: "offices",
            update: json!({ "members": ["198.51.100.0/24"] }),
        }
    }

    fn pushes(&self) -> Option<Pushes> {
        Some(Pushes {
            edits: [renamed("Office", "Desk"), renamed("Desk", "Office")],
            opened: Opened::ByHost {
                refusal: json!({ "kind": "vendor", "name": "events_refused" }),
                reason: "status 401",
            },
        })
    }
}

/// A network of the first site gets another name.
fn renamed(from: &str, to: &str) -> Edit {
    Edit {
        order: json!({ "do": "update", "table": "networkconf", "which": from, "body": { "name": to } }),
        says: json!({ "kind": "vlan", "change": "changed", "after": { "name": to } }),
    }
}

/// A practice device with these settings.
pub(in crate::vendors) async fn console(settings: Settings) -> Box<dyn Practice> {
    let key = settings.api_keys.first().cloned().unwrap_or_default();
    Box::new(OnSkeleton {
        device: Lab::builder(Console::new(settings)).start().await,
        tell: |console, version| console.settings.told_version = Some(version.to_owned()),
        credential: json!({ "api_key": key }),
        settings: json!({ "login": "api-key", "site": "default" }),
        places: &["/default"],
        // Clients come and go, and the controller keeps logs.
        moving: &["sta", "log", "event", "alarm", "state", "cfgversion", "last_seen"],
    })
}
