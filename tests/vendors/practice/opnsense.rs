//! `OPNsense`: a firewall with an API key.

use heddle_lab::Lab;
use heddle_lab_opnsense::{Firewall, Release, Settings};
use serde_json::json;

use super::skeleton::OnSkeleton;
use super::{Asked, Case, Practice, Vendor};

pub(super) struct OpnSense;

#[async_trait::async_trait]
impl Vendor for OpnSense {
    fn id(&self) -> &'static str {
        "opnsense"
    }

    fn releases(&self) -> &'static [&'static str] {
        &["26.1", "26.7"]
    }

    fn untested(&self) -> &'static str {
        "27.1.1_2"
    }

    async fn start_as(&self, release: &str) -> Box<dyn Practice> {
        let release = if release == "26.1" { Release::V26_1 } else { Release::V26_7 };
        firewall(Settings { release, ..Settings::default() }).await
    }

    fn case(&self) -> Case {
        Case {
            area: "firewall",
            feature: "opnsense.firewall.alias",
            kind: "firewall.alias",
            payload: json!({ "name": "printers", "type": "host", "content": ["192.0.2.7", "192.0.2.8"] }),
            key: "printers",
            finds: "firewall",
        }
    }

    fn asked(&self) -> Asked {
        Asked {
            kind: "vlan",
            create: json!({ "vlan_id": 77, "name": "cameras", "members": [{ "port": "lan", "tagged": true }] }),
            label: "cameras",
            update: json!({ "name": "lenses" }),
        }
    }
}

/// A practice device with these settings.
pub(in crate::vendors) async fn firewall(settings: Settings) -> Box<dyn Practice> {
    Box::new(OnSkeleton {
        device: Lab::builder(Firewall::new(settings)).start().await,
        tell: Firewall::tell_version,
        credential: json!({ "username": "admin-key", "password": "admin-secret" }),
        settings: json!({}),
        places: &["/stored", "/running"],
        moving: &[],
    })
}
