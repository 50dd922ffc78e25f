//! `MikroTik`: a router whose every write acts at once.

use heddle_lab::Lab;
use heddle_lab_mikrotik::{Release, Router, Settings};
use serde_json::json;

use super::skeleton::OnSkeleton;
use super::{Asked, Case, Practice, Vendor};

pub(super) struct Mikrotik;

#[async_trait::async_trait]
impl Vendor for Mikrotik {
    fn id(&self) -> &'static str {
        "mikrotik"
    }

    fn releases(&self) -> &'static [&'static str] {
        &["7.16", "7.22", "7.24"]
    }

    fn untested(&self) -> &'static str {
        "7.30.1"
    }

    async fn start_as(&self, release: &str) -> Box<dyn Practice> {
        let release = match release {
            "7.16" => Release::V7_16,
            "7.22" => Release::V7_22,
            _ => Release::V7_24,
        };
        Box::new(OnSkeleton {
            device: Lab::builder(Router::new(Settings { release, ..Settings::default() })).start().await,
            tell: Router::tell_version,
            credential: json!({ "username": "admin", "password": "heddle-lab" }),
            settings: json!({}),
            places: &["/configuration"],
            moving: &[],
        })
    }

    fn case(&self) -> Case {
        Case {
            area: "dhcp",
            feature: "mikrotik.dhcp.pool",
            kind: "dhcp.pool",
            payload: json!({ "name": "printers", "ranges": ["192.0.2.10-192.0.2.20"] }),
            key: "printers",
            finds: "router",
        }
    }

    fn asked(&self) -> Asked {
        Asked {
            kind: "dhcp-reservation",
            create: json!({
                "scope": "defconf", "mac": "aa:bb:cc:00:00:77", "address": "192.168.88.77", "hostname": "desk",
            }),
            label: "desk",
            update: json!({ "hostname": "table" }),
        }
    }
}
