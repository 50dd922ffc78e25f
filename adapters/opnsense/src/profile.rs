//! Who the firewall is, and what it can do.

use heddle_sdk::{Attribute, Availability, Capability, DeviceProfile, Fault, Host, fault, json as sdk_json};
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

fn series(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '_']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Asks who the firewall is, and probes what depends on version and plugins.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let information = read(host, INFORMATION)?;
    let version = version_of(&information)
        .ok_or_else(|| fault::unsupported("the device does not say that it is an OPNsense"))?;
    if series(&version).is_some_and(|found| found < OLDEST) {
        let (year, month) = OLDEST;
        return Err(fault::unsupported(format!(
            "OPNsense {version} is too old; {year}.{month} is the oldest that works"
        )));
    }
    let capabilities: Vec<Capability> =
        PROBES.iter().map(|(id, path, purpose)| capability(id, purpose, &read(host, path))).collect();
    let present: Vec<&str> = capabilities
        .iter()
        .filter(|capability| matches!(capability.available, Availability::Yes))
        .map(|capability| capability.id.as_str())
        .collect();
    let fingerprint = json!(["opnsense", version, present]);
    let hostname = sdk_json::text(&information, "/name").map(str::to_owned);
    Ok(DeviceProfile {
        product: "OPNsense".to_owned(),
        fingerprint: hex::encode(sdk_json::digest(&fingerprint)),
        capabilities,
        facts: hostname.map(|value| Attribute { key: "hostname".to_owned(), value }).into_iter().collect(),
        version,
    })
}

fn capability(id: &str, purpose: &str, answer: &Result<Value, Fault>) -> Capability {
    let (available, reason) = match answer {
        Ok(_) => (Availability::Yes, None),
        Err(Fault::Unsupported(_)) => (Availability::No, Some(format!("absent: {purpose}"))),
        Err(Fault::Denied(_)) => (Availability::No, Some(format!("the user may not use it: {purpose}"))),
        Err(_) => (Availability::Unknown, None),
    };
    Capability { id: id.to_owned(), available, reason }
}
