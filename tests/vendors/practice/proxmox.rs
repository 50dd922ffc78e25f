//! Proxmox VE: a cluster with a token, whose tasks take time.

use std::time::Duration;

use heddle_lab::Lab;
use heddle_lab_proxmox::{Proxmox as Cluster, ROOT_TOKEN, Setup};
use serde_json::json;

use super::skeleton::OnSkeleton;
use super::{Asked, Case, Edit, Opened, Practice, Pushes, Task, Vendor};

pub(super) struct Proxmox;

#[async_trait::async_trait]
impl Vendor for Proxmox {
    fn id(&self) -> &'static str {
        "proxmox"
    }

    fn releases(&self) -> &'static [&'static str] {
        &["8.4", "9.0", "9.1"]
    }

    fn untested(&self) -> &'static str {
        "10.0.1"
    }

    async fn start_as(&self, release: &str) -> Box<dyn Practice> {
        let (major, minor) = release.split_once('.').expect("a release has two numbers");
        let number = |text: &str| text.parse().expect("a release has numbers");
        let setup = Setup { release: (number(major), number(minor)), ..quick_tasks() };
        cluster(setup, &["/sdn", "/firewalls", "/guests"]).await
    }

    fn case(&self) -> Case {
        Case {
            area: "sdn",
            feature: "proxmox.sdn.zone",
            kind: "sdn.zone",
            payload: json!({ "zone": "zone7", "type": "simple" }),
            key: "zone7",
            finds: "virtual-machine",
        }
    }

    fn asked(&self) -> Asked {
        Asked {
            kind: "address-group",
            create: json!({ "name": "offices", "type": "addresses", "members": ["192.0.2.0/24"] }),
            label: "offices",
            update: json!({ "members": ["198.51.100.0/24"] }),
        }
    }

    fn pushes(&self) -> Option<Pushes> {
        let power = |is_on: bool, state: &str| Edit {
            order: json!({ "edit": "guest_power", "vmid": 103, "on": is_on, "task": true }),
            says: json!({ "kind": "guest", "label": "desktop", "after": { "state": state } }),
        };
        Some(Pushes {
            edits: [power(true, "running"), power(false, "stopped")],
            opened: Opened::ByHost {
                // Readings do not ask for it.
                refusal: json!({ "kind": "status", "status": 403, "path": "/api2/json/cluster/tasks" }),
                reason: "status 403",
            },
        })
    }

    fn task(&self) -> Option<Task> {
        Some(Task { area: "vm", feature: "proxmox.vm.start", payload: json!({ "vmid": 103 }) })
    }
}

pub(in crate::vendors) fn quick_tasks() -> Setup {
    Setup { task_time: Duration::from_millis(200), ..Setup::default() }
}

/// A cluster whose tasks run for minutes, unless they are ended.
pub(in crate::vendors) async fn slow_cluster() -> Box<dyn Practice> {
    cluster(Setup { task_time: Duration::from_mins(5), ..Setup::default() }, &["/guests"]).await
}

async fn cluster(setup: Setup, places: &'static [&'static str]) -> Box<dyn Practice> {
    Box::new(OnSkeleton {
        device: Lab::builder(Cluster::new(setup)).start().await,
        tell: Cluster::tell_version,
        credential: json!({ "api_key": ROOT_TOKEN.trim_start_matches("PVEAPIToken=") }),
        settings: json!({ "login": "token" }),
        places,
        moving: &[],
    })
}
