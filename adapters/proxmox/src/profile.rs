//! Who the cluster is, and what it can do.

use heddle_sdk::{Capability, DeviceProfile, Fault, Host, fault, json as sdk_json};
use serde_json::{Value, json};

use crate::answer::{number, read};

/// The oldest release whose errors stand in the body.
const OLDEST: (u32, u32) = (8, 4);

/// A route that a capability stands or falls with, and what it is for.
const PROBES: [(&str, &str, &str); 6] = [
    ("ha-rules", "/cluster/ha/rules", "rules of high availability; from 9.0 on"),
    ("sdn-fabrics", "/cluster/sdn/fabrics/fabric", "SDN fabrics; from 9.0 on"),
    ("bulk-actions", "/cluster/bulk-action", "actions on many guests; from 9.0 on"),
    ("cpu-models", "/cluster/qemu/custom-cpu-models", "CPU models of one's own; newer than 9.1"),
    ("route-maps", "/cluster/sdn/route-maps", "SDN route maps; newer than 9.1"),
    ("ceph", "/cluster/ceph/status", "Ceph; install it and set it up"),
];

/// Privileges that capabilities stand for.
const PRIVILEGES: [(&str, &str, &str); 4] = [
    ("read-guests", "VM.Audit", "reading guests"),
    ("write-guests", "VM.Config.Options", "changing guests"),
    ("read-nodes", "Sys.Audit", "reading nodes"),
    ("write-nodes", "Sys.Modify", "changing nodes and the datacenter"),
];

/// Asks who the cluster is, and probes what depends on version, packages and rights.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let found = read(host, "/version")?;
    let version = sdk_json::text(&found, "/version")
        .filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
        .ok_or_else(|| fault::unsupported("the device does not say that it is a Proxmox VE"))?;
    fault::refuse_older("Proxmox VE", version, OLDEST)?;
    let status = read(host, "/cluster/status").unwrap_or_default();
    let rights = read(host, "/access/permissions").unwrap_or_default();
    let probed = PROBES
        .iter()
        .map(|(id, path, purpose)| Capability::probed(id, purpose, "not permitted", &read(host, path)));
    let held = PRIVILEGES.iter().map(|(id, privilege, purpose)| {
        let reason = format!("the privilege {privilege} is missing: {purpose}");
        Capability::known(id, holds(&rights, privilege), reason)
    });
    let of_kind =
        |kind: &'static str| sdk_json::items(&status, "").iter().filter(move |row| row["type"] == kind);
    let names: Vec<&str> = of_kind("node").filter_map(|row| sdk_json::text(row, "/name")).collect();
    let cluster = of_kind("cluster").find_map(|row| sdk_json::text(row, "/name"));
    let quorate = of_kind("cluster").find_map(|row| number(row, "/quorate"));
    Ok(DeviceProfile::new("Proxmox VE", version)
        .with_fact("cluster", cluster.map(str::to_owned))
        .with_fact("nodes", Some(names.join(", ")).filter(|text| !text.is_empty()))
        .with_fact("quorate", quorate.map(|yes| if yes == 1 { "yes" } else { "no" }.to_owned()))
        .with_capabilities([json!("proxmox"), json!(version), json!(cluster)], probed.chain(held).collect()))
}

/// Whether the user or token has a privilege somewhere; none where the rights are not told.
fn holds(rights: &Value, privilege: &str) -> Option<bool> {
    rights.as_object().map(|paths| paths.values().any(|own| own.get(privilege).is_some()))
}

/// Whether a privilege holds for the whole cluster.
pub(crate) fn holds_everywhere(rights: &Value, privilege: &str) -> bool {
    rights.get("/").is_some_and(|own| own.get(privilege).is_some())
}
