//! WLANs: what may be written, and where they are on air.

use serde_json::json;

use crate::console::Console;
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, number, put, put_default, text, texts};

/// Whether an access point sends the WLAN.
pub(crate) fn serves(own: &Console, site: &str, wlan: &Row, mac: &str) -> bool {
    let groups = texts(wlan, "ap_group_ids");
    let mut macs = texts(wlan, "~devices").into_iter();
    match text(wlan, "ap_group_mode") {
        "groups" => groups.iter().any(|id| {
            own.store
                .find(site, "apgroup", id)
                .is_some_and(|group| texts(group, "device_macs").contains(&mac))
        }),
        "devices" => macs.any(|own| own == mac),
        _ => true,
    }
}

/// The radios that send the WLAN.
pub(crate) fn radios_of(wlan: &Row) -> Vec<&'static str> {
    let bands = texts(wlan, "wlan_bands");
    let all = [("2g", "ng"), ("5g", "na"), ("6g", "6e")];
    let chosen: Vec<&str> =
        all.iter().filter(|(band, _)| bands.contains(band)).map(|(_, radio)| *radio).collect();
    match (bands.is_empty(), text(wlan, "wlan_band")) {
        (false, _) => chosen,
        (true, "2g") => vec!["ng"],
        (true, "5g") => vec!["na"],
        (true, _) => vec!["ng", "na"],
    }
}

/// What a new WLAN has beside what is sent.
pub(crate) fn defaults(own: &Console, site: &str, row: &mut Row) {
    let default_group =
        own.store.having(site, "usergroup", "attr_hidden_id", "Default").map(|row| row["_id"].clone());
    let network =
        own.store.having(site, "networkconf", "attr_hidden_id", "LAN").map(|row| row["_id"].clone());
    for (name, value) in [
        ("enabled", json!(true)),
        ("security", json!("open")),
        ("wpa_mode", json!("wpa2")),
        ("wpa_enc", json!("ccmp")),
        ("wpa3_support", json!(false)),
        ("wpa3_transition", json!(false)),
        ("pmf_mode", json!("disabled")),
        ("hide_ssid", json!(false)),
        ("is_guest", json!(false)),
        ("ap_group_mode", json!("all")),
        ("wlan_bands", json!(["2g", "5g"])),
        ("mac_filter_enabled", json!(false)),
        ("mac_filter_policy", json!("deny")),
        ("mac_filter_list", json!([])),
        ("schedule_with_duration", json!([])),
        ("setting_preference", json!("manual")),
        ("minrate_setting_preference", json!("auto")),
        ("dtim_mode", json!("default")),
        ("dtim_ng", json!(3)),
        ("dtim_na", json!(3)),
        ("dtim_6e", json!(3)),
        ("group_rekey", json!(0)),
        ("no2ghz_oui", json!(true)),
        ("name_combine_enabled", json!(true)),
        ("usergroup_id", default_group.unwrap_or_default()),
        ("networkconf_id", network.unwrap_or_default()),
    ] {
        put_default(row, name, value);
    }
}

/// Whether a WLAN may be as it would be after the write.
pub(crate) fn check(own: &Console, site: &str, old: Option<&Row>, new: &mut Row) -> Outcome<()> {
    let id = text(new, "_id").to_owned();
    if texts(new, "ap_group_ids").is_empty() && text(new, "ap_group_mode") != "devices" {
        return Err(Refusal::new("ApGroupMissing"));
    }
    for group in texts(new, "ap_group_ids") {
        if own.store.find(site, "apgroup", group).is_none() {
            return Err(Refusal::new("IdInvalid"));
        }
    }
    let references = [
        ("networkconf_id", "networkconf"),
        ("usergroup_id", "usergroup"),
        ("radiusprofile_id", "radiusprofile"),
    ];
    for (field, table) in references {
        let named = text(new, field);
        if !named.is_empty() && own.store.find(site, table, named).is_none() {
            return Err(Refusal::new("IdInvalid"));
        }
    }
    match text(new, "security") {
        "wpapsk" if text(new, "x_passphrase").is_empty() && !flag(new, "private_preshared_keys_enabled") => {
            return Err(Refusal::invalid("x_passphrase", "[\\x20-\\x7E]{8,255}|[0-9a-fA-F]{64}"));
        }
        "wpaeap" if text(new, "radiusprofile_id").is_empty() => {
            return Err(Refusal::new("RadiusProfileMissing"));
        }
        _ => {}
    }
    let has_modern = flag(new, "wpa3_support") || text(new, "security") == "open";
    if texts(new, "wlan_bands").contains(&"6g") && !has_modern {
        return Err(Refusal::new("Wpa3RequiredFor6GHz"));
    }
    if flag(new, "wpa3_transition") && !flag(new, "wpa3_support") {
        return Err(Refusal::new("InvalidPayload"));
    }
    if old.is_none_or(|old| old.get("ap_group_ids") != new.get("ap_group_ids")) {
        has_room(own, site, &id, new)?;
    }
    // The mode decides which WLAN it is: a change makes another one of it.
    if old.is_some_and(|old| text(old, "setting_preference") != text(new, "setting_preference")) {
        let generation = number(new, "~generation").unwrap_or_default() + 1;
        put(new, "~generation", generation);
        put(new, "~uuid", crate::row::uuid("wlanconf", &format!("{id} {generation}")));
    }
    Ok(())
}

/// Refuses one WLAN more than an access point serves; those that are off count as well.
fn has_room(own: &Console, site: &str, id: &str, new: &Row) -> Outcome<()> {
    let others: Vec<&Row> =
        own.store.rows(site, "wlanconf").iter().filter(|row| text(row, "_id") != id).collect();
    for device in own.store.rows(site, "device").iter().filter(|row| text(row, "type") == "uap") {
        let mac = text(device, "mac");
        let served = others.iter().filter(|row| serves(own, site, row, mac)).count();
        if serves(own, site, new, mac) && served >= own.settings.wlans_max {
            return Err(Refusal::new("WlanLimitReached")
                .with_message("too many WiFi broadcasts assigned to the device"));
        }
    }
    Ok(())
}

/// Lets an access point join the usual group.
pub(crate) fn join_usual_group(own: &mut Console, site: &str, mac: &str) {
    let Some(group) = own.store.having_mut(site, "apgroup", "attr_hidden_id", "default") else { return };
    let mut macs: Vec<String> = texts(group, "device_macs").into_iter().map(str::to_owned).collect();
    if !macs.iter().any(|own| own == mac) {
        macs.push(mac.to_owned());
    }
    put(group, "device_macs", macs);
}

/// Takes an access point out of every group.
pub(crate) fn leave_groups(own: &mut Console, site: &str, mac: &str) {
    for group in own.store.rows_mut(site, "apgroup") {
        let kept: Vec<String> =
            texts(group, "device_macs").into_iter().filter(|own| *own != mac).map(str::to_owned).collect();
        put(group, "device_macs", kept);
    }
}
