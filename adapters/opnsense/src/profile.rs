//! Who the firewall is, and what it can do.

use heddle_sdk::{Capability, DeviceProfile, Fault, Host, fault, json as sdk_json};
use serde_json::{Value, json};

use crate::answer::read;

const INFORMATION: &str = "/api/diagnostics/system/system_information";
/// Lists show stored values beside their labels since then.
const OLDEST: (u32, u32) = (25, 7);

/// A route that a capability stands or falls with, and what it is for.
const PROBES: [(&str, &str, &str); 7] = [
    ("port-forward", "/api/firewall/d_nat/get_rule", "port forwards; from 26.1 on"),
    ("interface-assignment", "/api/interfaces/assignment/search_item", "assignments; from 26.7 on"),
    ("dnsmasq", "/api/dnsmasq/service/status", "Dnsmasq"),
    ("kea", "/api/kea/service/status", "Kea DHCP"),
    ("frr", "/api/quagga/general/get", "dynamic routing; install os-frr"),
    ("haproxy", "/api/haproxy/service/status", "HAProxy; install os-haproxy"),
    ("bind", "/api/bind/service/status", "BIND; install os-bind"),
];

/// The version of the product: `26.7.2` of `OPNsense 26.7.2-amd64`.
fn version_of(information: &Value) -> Option<String> {
    let product = information.pointer("/versions/0")?.as_str()?.strip_prefix("OPNsense ")?;
    Some(product.split('-').next().unwrap_or(product).to_owned())
}

/// Asks who the firewall is, and probes what depends on version and plugins.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let information = read(host, INFORMATION)?;
    let version = version_of(&information)
        .ok_or_else(|| fault::unsupported("the device does not say that it is an OPNsense"))?;
    fault::refuse_older("OPNsense", &version, OLDEST)?;
    let capabilities = PROBES.iter().map(|(id, path, purpose)| {
        Capability::probed(id, purpose, "the user may not use it", &read(host, path))
    });
    Ok(DeviceProfile::new("OPNsense", version.as_str())
        .with_fact("hostname", sdk_json::text(&information, "/name").map(str::to_owned))
        .with_capabilities([json!("opnsense"), json!(version)], capabilities.collect()))
}
