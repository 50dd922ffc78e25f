//! pfSense: a firewall with the REST API package, by name and password.

use heddle_lab::Lab;
use heddle_lab_pfsense::{Pfsense as Firewall, Release, Settings};
use serde_json::json;

use super::skeleton::OnSkeleton;
use super::{Asked, Case, Practice, Vendor};

pub(super) struct PfSense;

#[async_trait::async_trait]
impl Vendor for PfSense {
    fn id(&self) -> &'static str {
        "pfsense"
    }

    fn releases(&self) -> &'static [&'static str] {
        &["2.7", "2.8", "2.10"]
    }

    fn untested(&self) -> &'static str {
        "2.11.1"
    }

    async fn start_as(&self, release: &str) -> Box<dyn Practice> {
        let release = match release {
            "2.7" => Release::V2_7,
            "2.8" => Release::V2_8,
            _ => Release::V2_10,
        };
        firewall(Settings { release, ..Settings::default() }).await
    }

    fn case(&self) -> Case {
        Case {
            area: "firewall",
            feature: "pfsense.firewall.alias",
            kind: "firewall.alias",
            payload: json!({ "name": "printers", "type": "host", "address": ["192.0.2.7", "192.0.2.8"], "detail": ["first", "second"] }),
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
        tell: Firewall::tell_package,
        credential: json!({ "username": "admin", "password": "pfsense" }),
        settings: json!({}),
        places: &["/stored", "/running"],
        moving: &[],
    })
}
