//! Who the firewall is, and what it can do.

use heddle_sdk::{Capability, DeviceProfile, Fault, Host, fault, json as sdk_json};
use serde_json::{Value, json};

use crate::answer::read;

/// Lists of all objects that belong to others came with it.
const OLDEST: (u32, u32) = (2, 7);
/// Versions of the commercial product are years and months.
const FIRST_OF_PLUS: u32 = 20;

/// What a capability stands or falls with: the package that brings it.
const PACKAGES: [(&str, &str, &str); 6] = [
    ("wireguard", "pfSense-pkg-WireGuard", "WireGuard"),
    ("haproxy", "pfSense-pkg-haproxy", "HAProxy"),
    ("acme", "pfSense-pkg-acme", "certificates by ACME"),
    ("freeradius", "pfSense-pkg-freeradius3", "RADIUS"),
    ("bind", "pfSense-pkg-bind", "BIND"),
    ("cron", "pfSense-pkg-Cron", "cron jobs"),
];

/// The version of pfSense: `2.8.1` of `2.8.1-RELEASE`.
pub(crate) fn version_of(told: &Value) -> Option<&str> {
    let text = sdk_json::text(told, "/version")?;
    Some(text.strip_suffix("-RELEASE").unwrap_or(text))
}

/// The product as people know it. An API is of its package, whose version is that of the profile; both have to be tested.
fn product(version: &str) -> String {
    let first = version.split('.').next().and_then(|first| first.parse::<u32>().ok()).unwrap_or_default();
    let edition = if first >= FIRST_OF_PLUS { "Plus" } else { "CE" };
    format!("pfSense {edition} {version}, REST API")
}

/// Asks who the firewall is, and which packages it has.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let system = read(host, "/system/version")?;
    let api = read(host, "/system/restapi/version")?;
    let lacks =
        || fault::unsupported("the device does not say that it is a pfSense with the REST API package");
    let (version, package) =
        (version_of(&system).ok_or_else(lacks)?, sdk_json::text(&api, "/current_version").ok_or_else(lacks)?);
    let package = package.trim_start_matches('v');
    fault::refuse_older("the REST API package", package, OLDEST)?;
    let capabilities = capabilities(&read(host, "/system/packages"));
    let name = read(host, "/system/hostname").ok();
    let hostname = name.as_ref().and_then(|name| sdk_json::text(name, "/hostname")).map(str::to_owned);
    Ok(DeviceProfile::new(product(version), package)
        .with_fact("hostname", hostname)
        .with_fact("pfsense", version.to_owned())
        .with_capabilities([json!("pfsense"), json!(version), json!(package)], capabilities))
}

fn capabilities(packages: &Result<Value, Fault>) -> Vec<Capability> {
    let has = |wanted: &str| {
        let rows = sdk_json::items(packages.as_ref().ok()?, "");
        Some(rows.iter().any(|row| sdk_json::text(row, "/name") == Some(wanted)))
    };
    let one = |(id, package, purpose): &(&str, &str, &str)| {
        Capability::known(id, has(package), format!("{purpose}: install {package}"))
    };
    PACKAGES.iter().map(one).collect()
}
