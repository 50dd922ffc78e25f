//! Who the controller is, and what it can do.

use heddle_sdk::{Capability, DeviceProfile, Fault, FaultExt, Host, fault, json as sdk_json};
use serde_json::json;

use crate::answer::read;
use crate::site;

/// The oldest release whose Open API has what the description names.
const OLDEST: (u32, u32) = (5, 15);
const SETUP_RETRY_MS: u64 = 60_000;

/// A route that a capability stands or falls with, and what it is for.
const PROBES: [(&str, &str, &str); 5] = [
    ("port-settings", "switches/ports/overview", "all settings of switch ports; from 6.2 on"),
    ("network-devices", "networks/vlans", "networks with their devices; from 6.2 on"),
    ("lan-dns", "setting/lan/dns", "names of the site's own"),
    ("stacks", "stacks", "stacks of switches"),
    ("telephony", "setting/voip/voip-devices", "telephony"),
];

/// Capabilities that a kind of device brings along, by its type.
const DEVICES: [(&str, &str); 4] =
    [("gateway", "gateway"), ("switch", "switch"), ("access-point", "ap"), ("olt", "olt")];

/// Asks who the controller is, logs in, and probes what depends on release and devices.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let info = site::info(host)?;
    let version = sdk_json::text(&info, "/controllerVer")
        .ok_or_else(|| fault::unsupported("the device does not say that it is an Omada controller"))?;
    if info.get("configured") == Some(&json!(false)) {
        return Err(fault::not_ready("the controller was not set up; finish its wizard first")
            .with_retry_after_ms(SETUP_RETRY_MS));
    }
    fault::refuse_older("Omada controller", version, OLDEST)?;
    let controller = site::controller(host)?;
    let sites = site::sites(host, &controller)?;
    // Without a choice of the site, what depends on devices is not known.
    let place = site::chosen(host, &controller, None).ok();
    let capabilities = match &place {
        Some(site) => capabilities(host, &format!("/openapi/v1/{controller}/sites/{}", site.id))?,
        None => Vec::new(),
    };
    let names: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
    Ok(DeviceProfile::new("Omada", version)
        .with_fact("omadac-id", controller.clone())
        .with_fact("sites", names.join(", "))
        .with_fact("site", place.map(|site| site.name))
        .with_capabilities([json!("omada"), json!(version), json!(controller)], capabilities))
}

fn capabilities(host: &dyn Host, below: &str) -> Result<Vec<Capability>, Fault> {
    let devices = site::rows(host, &format!("{below}/devices"))?;
    let has = |kind: &str| devices.iter().any(|device| device.get("type") == Some(&json!(kind)));
    let brought = DEVICES
        .iter()
        .map(|(id, kind)| Capability::known(id, Some(has(kind)), "the site has no such device"));
    let probed = PROBES.iter().map(|(id, path, purpose)| {
        let answer = read(host, &format!("{below}/{path}?page=1&pageSize=1"));
        Capability::probed(id, purpose, "the application may not use it", &answer)
    });
    Ok(brought.chain(probed).collect())
}
