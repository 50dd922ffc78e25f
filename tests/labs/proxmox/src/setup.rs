//! What can be chosen about a cluster.

use std::time::Duration;

/// The header of the administrator's API token, which has all rights of `root@pam`.
pub const ROOT_TOKEN: &str = "PVEAPIToken=root@pam!heddle=6f1c2a34-9d0e-4b57-8a61-3c5d7e9f1a20";

/// The header of a token that reads everything and writes nothing.
pub const AUDITOR_TOKEN: &str = "PVEAPIToken=auditor@pve!heddle=0b7d4c12-58fe-4a93-9b06-e1d2c3b4a596";

/// The choices, each with a usual value.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Name of the cluster.
    pub name: String,
    /// Password of `root@pam`.
    pub password: String,
    /// The product's release, major and minor. Before 8.4 errors stand in the status line only, before 9.0 HA has
    /// groups and no rules.
    pub release: (u32, u32),
    /// The version that it tells, whatever its release is.
    pub told_version: Option<String>,
    /// Guests beside those of the household.
    pub guests: usize,
    /// How long a short task takes. Long ones take a multiple of it.
    pub task_time: Duration,
    /// How long a node is away when it restarts.
    pub boot_time: Duration,
    /// Whether Ceph is installed and set up.
    pub has_ceph: bool,
    /// How long a refused login waits for its answer, in real time.
    pub login_delay: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            name: "lab".to_owned(),
            password: "proxmox".to_owned(),
            release: (9, 1),
            told_version: None,
            guests: 0,
            task_time: Duration::from_millis(500),
            boot_time: Duration::from_secs(5),
            has_ceph: false,
            login_delay: Duration::from_secs(3),
        }
    }
}
