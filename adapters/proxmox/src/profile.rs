//! Who the cluster is, and what it can do.

use heddle_sdk::{Attribute, Availability, Capability, DeviceProfile, Fault, Host, fault, json as sdk_json};
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

fn release(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Asks who the cluster is, and probes what depends on version, packages and rights.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let found = read(host, "/version")?;
    let version = sdk_json::text(&found, "/version").unwrap_or_default().to_owned();
    let known = release(&version)
        .ok_or_else(|| fault::unsupported("the device does not say that it is a Proxmox VE"))?;
    if known < OLDEST {
        let (major, minor) = OLDEST;
        return Err(fault::unsupported(format!(
            "Proxmox VE {version} is too old; {major}.{minor} is the oldest that works"
        )));
    }
    let status = read(host, "/cluster/status").unwrap_or_default();
    let rights = read(host, "/access/permissions").unwrap_or_default();
    let mut capabilities: Vec<Capability> =
        PROBES.iter().map(|(id, path, purpose)| probed(id, purpose, &read(host, path))).collect();
    capabilities
        .extend(PRIVILEGES.iter().map(|(id, privilege, purpose)| held(id, privilege, purpose, &rights)));
    let present: Vec<&str> = capabilities
        .iter()
        .filter(|capability| matches!(capability.available, Availability::Yes))
        .map(|capability| capability.id.as_str())
        .collect();
    let facts = facts(&status);
    let cluster = facts.iter().find(|fact| fact.key == "cluster").map(|fact| fact.value.as_str());
    let fingerprint = hex::encode(sdk_json::digest(&json!(["proxmox", version, cluster, present])));
    Ok(DeviceProfile { product: "Proxmox VE".to_owned(), version, fingerprint, capabilities, facts })
}

fn facts(status: &Value) -> Vec<Attribute> {
    let rows = sdk_json::items(status, "");
    let of_kind = |kind: &'static str| rows.iter().filter(move |row| row["type"] == kind);
    let names: Vec<&str> = of_kind("node").filter_map(|row| sdk_json::text(row, "/name")).collect();
    let cluster = of_kind("cluster").find_map(|row| sdk_json::text(row, "/name"));
    let quorate = of_kind("cluster").find_map(|row| number(row, "/quorate"));
    let fact = |key: &str, value: Option<String>| Some(Attribute { key: key.to_owned(), value: value? });
    [
        fact("cluster", cluster.map(str::to_owned)),
        fact("nodes", Some(names.join(", ")).filter(|text| !text.is_empty())),
        fact("quorate", quorate.map(|yes| if yes == 1 { "yes" } else { "no" }.to_owned())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn probed(id: &str, purpose: &str, answer: &Result<Value, Fault>) -> Capability {
    let (available, reason) = match answer {
        Ok(_) => (Availability::Yes, None),
        Err(Fault::Unsupported(_)) => (Availability::No, Some(format!("absent: {purpose}"))),
        Err(Fault::Denied(_)) => (Availability::No, Some(format!("not permitted: {purpose}"))),
        Err(_) => (Availability::Unknown, None),
    };
    Capability { id: id.to_owned(), available, reason }
}

/// Whether the user or token has a privilege somewhere.
fn held(id: &str, privilege: &str, purpose: &str, rights: &Value) -> Capability {
    let paths = rights.as_object().into_iter().flatten();
    let has_it = paths.clone().any(|(_, own)| own.get(privilege).is_some());
    let (available, reason) = match (has_it, rights.is_object()) {
        (true, _) => (Availability::Yes, None),
        (false, true) => (Availability::No, Some(format!("the privilege {privilege} is missing: {purpose}"))),
        (false, false) => (Availability::Unknown, None),
    };
    Capability { id: id.to_owned(), available, reason }
}

/// Whether a privilege holds for the whole cluster.
pub(crate) fn holds_everywhere(rights: &Value, privilege: &str) -> bool {
    rights.get("/").is_some_and(|own| own.get(privilege).is_some())
}
