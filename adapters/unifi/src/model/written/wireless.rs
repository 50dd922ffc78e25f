//! Wireless networks.

use heddle_sdk::crud::{Asked, Expressed, refused};
use heddle_sdk::{Fault, Operation, json as sdk_json};
use serde_json::{Map, Value, json};

use super::{With, asked_text, texts};
use crate::answer::{read, rows};
use crate::site;

const PROFILE: (&str, &str) = ("profiles.radius", "RADIUS profile");

pub(super) fn ssid(with: With<'_>, asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    if change.operation == Operation::Delete {
        return Ok(());
    }
    match asked.fields.get("radius_profile") {
        None => {}
        Some(Value::String(name)) => {
            let id = with.id("radius_profile", PROFILE, asked.site, name)?;
            change.payload.insert("radiusprofile_id".to_owned(), json!(id));
        }
        Some(_) => drop(change.payload.insert("radiusprofile_id".to_owned(), json!(""))),
    }
    secure(asked, &mut change.payload)?;
    if let Some(bands) = asked.fields.get("bands") {
        let word = |band: &String| match band.as_str() {
            "2.4" => Ok("2g"),
            "5" => Ok("5g"),
            "6" => Ok("6g"),
            _ => Err(refused("bands", "can be 2.4, 5 and 6")),
        };
        let words: Result<Vec<&str>, Fault> = texts(bands).iter().map(word).collect();
        change.payload.insert("wlan_bands".to_owned(), json!(words?));
    }
    let vlan = match asked.fields.get("vlan_id") {
        // Packets without a tag are those of the first network.
        Some(Value::Null) => Some(1),
        Some(vlan) => vlan.as_u64(),
        None => (change.operation == Operation::Create).then_some(1),
    };
    if let Some(vlan) = vlan {
        let network = with
            .beside
            .of_vlan(vlan)
            .ok_or_else(|| refused("vlan_id", "is that of no network of the site; make the network first"))?;
        change.payload.insert("networkconf_id".to_owned(), json!(network.id));
    }
    if change.operation == Operation::Create {
        groups(with, asked, &mut change.payload)?;
    }
    Ok(())
}

/// A new network is carried by all access points, and its clients have no limit but that of all.
fn groups(with: With<'_>, asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let place = site::chosen(with.host, asked.site)?;
    let of_points = read(with.host, &format!("/v2/api/site/{place}/apgroups"))?;
    let is_first = |row: &&Value| row.get("attr_no_delete") == Some(&Value::Bool(true));
    let found = sdk_json::items(&of_points, "").iter().find(is_first);
    if let Some(id) = found.and_then(|row| row.get("_id")) {
        payload.insert("ap_group_ids".to_owned(), json!([id]));
    }
    let of_clients = rows(with.host, &format!("/api/s/{place}/rest/usergroup"))?;
    if let Some(id) = of_clients.iter().find(is_first).and_then(|row| row.get("_id")) {
        payload.insert("usergroup_id".to_owned(), id.clone());
    }
    Ok(())
}

/// How stations prove themselves: a passphrase goes with the words that have one.
fn secure(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let passphrase = asked.fields.get("passphrase").filter(|value| !value.is_null());
    let word = asked_text(asked, "security");
    // The word, the newest WPA, whether the one before is taken, too.
    let told = match word {
        None => None,
        Some("open") => Some(("open", false, false)),
        Some("wpa2-psk") => Some(("wpapsk", false, false)),
        Some("wpa3-sae") => Some(("wpapsk", true, false)),
        Some("wpa2-wpa3") => Some(("wpapsk", true, true)),
        Some("wpa2-enterprise") => Some(("wpaeap", false, false)),
        Some("wpa3-enterprise") => Some(("wpaeap", true, false)),
        Some("wpa2-wpa3-enterprise") => Some(("wpaeap", true, true)),
        Some(_) => return Err(refused("security", "has no word for it there; stage unifi.wifi.wlan")),
    };
    if let Some((security, is_third, is_mixed)) = told {
        let has_key = security == "wpapsk";
        if passphrase.is_some() && !has_key {
            return Err(refused("passphrase", "is nothing that such a network has"));
        }
        let is_new = asked.verb == "create";
        if is_new && has_key && passphrase.is_none() {
            return Err(refused("passphrase", "is needed then"));
        }
        if is_new && security == "wpaeap" && !payload.contains_key("radiusprofile_id") {
            return Err(refused("radius_profile", "is needed then"));
        }
        payload.insert("security".to_owned(), json!(security));
        if security != "open" {
            payload.insert("wpa_mode".to_owned(), json!("wpa2"));
            payload.insert("wpa_enc".to_owned(), json!("ccmp"));
        }
        payload.insert("wpa3_support".to_owned(), json!(is_third));
        payload.insert("wpa3_transition".to_owned(), json!(is_mixed));
        // The third WPA wants protected frames.
        let is_free = !payload.contains_key("pmf_mode");
        if is_third && is_free {
            payload.insert("pmf_mode".to_owned(), json!(if is_mixed { "optional" } else { "required" }));
        }
    }
    if let Some(passphrase) = passphrase {
        payload.insert("x_passphrase".to_owned(), passphrase.clone());
    }
    Ok(())
}
