//! Who the controller is, and what it can do.

use heddle_sdk::{
    Attribute, Availability, Capability, DeviceProfile, Fault, FaultExt, Host, fault, json as sdk_json,
};
use serde_json::{Value, json};

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

fn series(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Asks who the controller is, logs in, and probes what depends on release and devices.
pub(crate) fn check(host: &dyn Host) -> Result<DeviceProfile, Fault> {
    let info = site::info(host)?;
    let version = sdk_json::text(&info, "/controllerVer")
        .ok_or_else(|| fault::unsupported("the device does not say that it is an Omada controller"))?
        .to_owned();
    if info.get("configured") == Some(&json!(false)) {
        return Err(fault::not_ready("the controller was not set up; finish its wizard first")
            .with_retry_after_ms(SETUP_RETRY_MS));
    }
    if series(&version).is_some_and(|found| found < OLDEST) {
        let (major, minor) = OLDEST;
        return Err(fault::unsupported(format!(
            "Omada controller {version} is too old; {major}.{minor} is the oldest that works"
        )));
    }
    let controller = site::controller(host)?;
    let sites = site::sites(host, &controller)?;
    // Without a choice of the site, what depends on devices is not known.
    let place = site::chosen(host, &controller, None).ok();
    let capabilities = match &place {
        Some(site) => capabilities(host, &format!("/openapi/v1/{controller}/sites/{}", site.id))?,
        None => Vec::new(),
    };
    let present: Vec<&str> = capabilities
        .iter()
        .filter(|capability| matches!(capability.available, Availability::Yes))
        .map(|capability| capability.id.as_str())
        .collect();
    let fingerprint = json!(["omada", version, controller, present]);
    let names: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
    let fact = |key: &str, value: String| Attribute { key: key.to_owned(), value };
    let mut facts = vec![fact("omadac-id", controller.clone()), fact("sites", names.join(", "))];
    facts.extend(place.map(|site| fact("site", site.name)));
    Ok(DeviceProfile {
        product: "Omada".to_owned(),
        fingerprint: hex::encode(sdk_json::digest(&fingerprint)),
        capabilities,
        facts,
        version,
    })
}

fn capabilities(host: &dyn Host, below: &str) -> Result<Vec<Capability>, Fault> {
    let devices = site::rows(host, &format!("{below}/devices"))?;
    let has = |kind: &str| devices.iter().any(|device| device.get("type") == Some(&json!(kind)));
    let mut out: Vec<Capability> = DEVICES
        .iter()
        .map(|(id, kind)| Capability {
            id: (*id).to_owned(),
            available: if has(kind) { Availability::Yes } else { Availability::No },
            reason: (!has(kind)).then(|| "the site has no such device".to_owned()),
        })
        .collect();
    out.extend(PROBES.iter().map(|(id, path, purpose)| {
        probed(id, purpose, &read(host, &format!("{below}/{path}?page=1&pageSize=1")))
    }));
    Ok(out)
}

fn probed(id: &str, purpose: &str, answer: &Result<Value, Fault>) -> Capability {
    let (available, reason) = match answer {
        Ok(_) => (Availability::Yes, None),
        Err(Fault::Unsupported(_)) => (Availability::No, Some(format!("absent: {purpose}"))),
        Err(Fault::Denied(_)) => {
            (Availability::No, Some(format!("the application may not use it: {purpose}")))
        }
        Err(_) => (Availability::Unknown, None),
    };
    Capability { id: id.to_owned(), available, reason }
}
