//! Objects of the model as a device tells them, so that a test plays lists of every kind, also such as lie.

use heddle_sdk::{
    Auth, Completeness, Device, DevicePage, Fault, Host, ModelObject, ModelPage, ObjectRef, Origin, Request,
    SitePage, Status, VendorSite, fault,
};
use serde_json::{Value, json};

/// The sites that `/read` names: `{"sites": ["a"]}`.
pub(crate) fn sites(host: &dyn Host) -> Result<SitePage, Fault> {
    let told: Value = host.send(Request::get("/read"), Auth::None)?.json().unwrap_or_default();
    let sites = told["sites"].as_array().map(Vec::as_slice).unwrap_or_default();
    let site = |id: &Value| {
        let id = id.as_str().unwrap_or_default().to_owned();
        VendorSite { name: format!("Site {id}"), id }
    };
    Ok(SitePage { items: sites.iter().map(site).collect(), next: None })
}

/// The devices of a site as `/read?site={site}` says: `{"devices": [{"identity", "status", "firmware"}]}`; one without that. With
/// `{"limited": true}` the list lacks some. A status of 500 is a fault, and one of 504 a timeout.
pub(crate) fn devices(host: &dyn Host, site: &str) -> Result<DevicePage, Fault> {
    let answer = host.send(Request::get(format!("/read?site={site}")), Auth::None)?;
    if answer.status == 500 {
        return Err(fault::generic("the list broke off"));
    }
    if answer.status == 504 {
        return Err(fault::timeout("the site does not answer"));
    }
    let told: Value = answer.json().unwrap_or_default();
    let items = match told["devices"].as_array() {
        Some(devices) => devices.iter().map(device).collect(),
        None => vec![device(&json!({ "identity": format!("hostile-{site}") }))],
    };
    let complete = if told["limited"] == true { Completeness::RightsLimited } else { Completeness::Complete };
    Ok(DevicePage { items, next: None, complete })
}

fn device(told: &Value) -> Device {
    let status = match told["status"].as_str() {
        Some("online") => Status::Online,
        Some("offline") => Status::Offline,
        _ => Status::Unknown,
    };
    let named = Device::named(told["identity"].as_str().unwrap_or_default());
    Device { kind: "router".into(), status, firmware: told["firmware"].as_str().map(str::to_owned), ..named }
}

/// A page as `/model/{kind}` says: `{"objects", "next", "complete"}`, with `{"many": [from, to]}` for objects with
/// numbers as keys, `{"fault"}` for a fault of this kind, `{"trap"}` for a component that breaks down.
pub(crate) fn page(
    host: &dyn Host,
    kind: &str,
    site: Option<&str>,
    cursor: Option<&str>,
) -> Result<ModelPage, Fault> {
    let (site, cursor) = (site.unwrap_or_default(), cursor.unwrap_or_default());
    let path = format!("/model/{kind}?site={site}&cursor={cursor}");
    let answer = host.send(Request::get(path), Auth::None)?;
    if answer.status == 404 {
        return Err(fault::unsupported("the device has no such list"));
    }
    let told: Value = answer.json()?;
    if told["trap"] == true {
        crate::burn::panic(host);
    }
    if let Some(kind) = told["fault"].as_str() {
        return Err(match kind {
            "denied" => fault::denied("the user may not see it"),
            "unsupported" => fault::unsupported("the device has no such list"),
            "connection" => fault::connection("the device does not answer"),
            _ => fault::generic("the list broke off"),
        });
    }
    let listed = told["objects"].as_array().map(Vec::as_slice).unwrap_or_default();
    let many = told["many"][0].as_u64().unwrap_or_default()..told["many"][1].as_u64().unwrap_or_default();
    let many = many.map(|n| json!({ "key": n.to_string(), "fields": { "name": format!("n{n}") } }));
    Ok(ModelPage {
        items: listed.iter().cloned().chain(many).map(|told| object(&told)).collect(),
        next: told["next"].as_str().map(str::to_owned),
        complete: match told["complete"].as_str() {
            Some("partial") => Completeness::Partial,
            Some("rights_limited") => Completeness::RightsLimited,
            _ => Completeness::Complete,
        },
    })
}

fn object(told: &Value) -> ModelObject {
    let text = |name: &str| told[name].as_str().map(str::to_owned);
    let key = text("key").unwrap_or_default();
    let native = ObjectRef { kind: "calm".to_owned(), site: None, key: key.clone(), locators: vec![] };
    ModelObject {
        label: text("label").unwrap_or_default(),
        origin: if told["origin"] == "vendor" { Origin::Vendor } else { Origin::Own },
        device: text("device"),
        native: Some(native),
        fields: told["fields"].to_string(),
        key,
    }
}
