//! Who the controller is, and what it can do.

use heddle_sdk::{Capability, DeviceProfile, Fault, Host, fault, json as sdk_json};
use serde_json::{Value, json};

use crate::answer::{read, rows};
use crate::login::Login;
use crate::site;

/// The oldest release whose interfaces have what the description names.
const OLDEST: (u32, u32) = (9, 0);

/// Capabilities that a type of device brings along.
const DEVICES: [(&str, &[&str]); 3] = [
    ("gateway", &["ugw", "udm", "uxg", "ucg"]),
    ("switch", &["usw", "udm"]),
    ("access-point", &["uap", "udm"]),
];

/// Logs in, and asks who the controller is.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let sites = site::list(host)?.items;
    let status = read(host, "/status")?;
    let version = sdk_json::text(&status, "/meta/server_version")
        .ok_or_else(|| fault::unsupported("the device does not say that it is a UniFi Network controller"))?;
    fault::refuse_older("UniFi Network", version, OLDEST)?;
    let uuid = sdk_json::text(&status, "/meta/uuid").unwrap_or_default();
    let site = site::chosen(host, None)?;
    let capabilities = capabilities(host, &site)?;
    let names: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
    let platform = if Login::of(host) == Login::SelfHosted { "self-hosted" } else { "UniFi OS" };
    Ok(DeviceProfile::new("UniFi Network", version)
        .with_fact("platform", platform.to_owned())
        .with_fact("uuid", uuid.to_owned())
        .with_fact("sites", names.join(", "))
        .with_capabilities([json!("unifi"), json!(version), json!(uuid)], capabilities))
}

fn capabilities(host: &dyn Host, site: &str) -> Result<Vec<Capability>, Fault> {
    let devices = rows(host, &format!("/api/s/{site}/stat/device"))?;
    let has = |types: &[&str]| {
        let is_one = |row: &Value| sdk_json::text(row, "/type").is_some_and(|kind| types.contains(&kind));
        devices.iter().any(is_one)
    };
    let brought = DEVICES
        .iter()
        .map(|(id, types)| Capability::known(id, Some(has(types)), "the site has no such device"));
    let probed = [
        ("official-api", "/integration/v1/info".to_owned(), "the official API; from 10.1 on, by API key"),
        (
            "zones",
            format!("/v2/api/site/{site}/firewall/zone"),
            "a firewall by zones; a gateway has to have it",
        ),
    ]
    .map(|(id, path, purpose)| {
        Capability::probed(id, purpose, "the account may not use it", &read(host, &path))
    });
    Ok(brought.chain(probed).collect())
}
