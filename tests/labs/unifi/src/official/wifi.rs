//! Broadcasts of WLANs. They are stored as WLANs of the older form; what that form lacks is kept beside it.

use serde_json::{Value, json};

use crate::console::Console;
use crate::official::{Answered, Call, absent, invalid, page, translated};
use crate::reply::Outcome;
use crate::rest;
use crate::row::{Row, flag, number, object, put, text, texts};

const TABLE: &str = "wlanconf";
/// Bands of the two forms.
const BANDS: [(&str, f64); 3] = [("2g", 2.4), ("5g", 5.0), ("6g", 6.0)];

/// Booleans of the two forms.
const FLAGS: [(&str, &str); 7] = [
    ("multicastToUnicastConversionEnabled", "mcastenhance_enabled"),
    ("clientIsolationEnabled", "l2_isolation"),
    ("hideName", "hide_ssid"),
    ("uapsdEnabled", "uapsd_enabled"),
    ("arpProxyEnabled", "proxy_arp"),
    ("bssTransitionEnabled", "bss_transition"),
    ("mloEnabled", "mlo_enabled"),
];
/// Those that only the standard kind has.
const STANDARD: [&str; 3] = ["arpProxyEnabled", "bssTransitionEnabled", "mloEnabled"];

pub(super) fn answer(own: &mut Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    match (call.request.method.as_str(), call.route.path.as_str()) {
        ("GET", "wifi/broadcasts") => {
            let rows = own.store.rows(site, TABLE).iter().map(|row| short(own, site, row)).collect();
            page::of(call, rows)
        }
        ("GET", _) => Ok(detail(own, site, find(own, call)?)),
        ("POST", _) => {
            let new = stored(own, call, Row::new())?;
            let id = rest::insert(own, site, TABLE, new).map_err(translated)?;
            Ok(detail(own, site, own.store.find(site, TABLE, &id).unwrap_or(&Row::new())))
        }
        ("PUT", _) => {
            let old = find(own, call)?.clone();
            let new = stored(own, call, old.clone())?;
            rest::replace(own, site, TABLE, &old, new).map_err(translated)?;
            Ok(detail(own, site, own.store.find(site, TABLE, text(&old, "_id")).unwrap_or(&old)))
        }
        _ => {
            let id = text(find(own, call)?, "_id").to_owned();
            rest::remove(own, site, TABLE, &id);
            Ok(Value::Null)
        }
    }
}

fn find<'a>(own: &'a Console, call: &Call<'_>) -> Outcome<&'a Row> {
    own.store.by_uuid(&call.site, TABLE, call.id()).ok_or_else(|| absent("WiFi broadcast", call.id()))
}

fn network(own: &Console, site: &str, id: &str) -> Value {
    let found = own.store.find(site, "networkconf", id);
    match found.filter(|row| text(row, "attr_hidden_id") != "LAN") {
        None => json!({ "type": "NATIVE" }),
        Some(row) => json!({ "type": "SPECIFIC", "networkId": text(row, "~uuid") }),
    }
}

fn security_type(wlan: &Row) -> String {
    let modern = match (flag(wlan, "wpa3_support"), flag(wlan, "wpa3_transition")) {
        (true, true) => "WPA2_WPA3",
        (true, false) => "WPA3",
        _ => "WPA2",
    };
    match text(wlan, "security") {
        "wpapsk" => format!("{modern}_PERSONAL"),
        "wpaeap" | "osen" => format!("{modern}_ENTERPRISE"),
        _ => "OPEN".to_owned(),
    }
}

fn short(own: &Console, site: &str, wlan: &Row) -> Value {
    let mut made = json!({
        "type": if flag(wlan, "enhanced_iot") { "IOT_OPTIMIZED" } else { "STANDARD" },
        "id": text(wlan, "~uuid"),
        "name": text(wlan, "name"), "enabled": flag(wlan, "enabled"),
        "metadata": { "origin": "USER_DEFINED" },
        "network": network(own, site, text(wlan, "networkconf_id")),
        "securityConfiguration": { "type": security_type(wlan) },
    });
    if let Some(filter) = devices(own, site, wlan) {
        made["broadcastingDeviceFilter"] = filter;
    }
    if !flag(wlan, "enhanced_iot") {
        let bands = crate::wlans::radios_of(wlan);
        let shown = BANDS.iter().zip(["ng", "na", "6e"]).filter(|(_, radio)| bands.contains(radio));
        made["broadcastingFrequenciesGHz"] = shown.map(|((_, band), _)| number_of(*band)).collect();
        if flag(wlan, "is_guest") {
            made["hotspotConfiguration"] = json!({ "type": "CAPTIVE_PORTAL" });
        }
    }
    made
}

/// A band as the interface writes it: whole numbers without a fraction.
fn number_of(band: f64) -> Value {
    if band.fract() == 0.0 { json!(if band > 5.5 { 6 } else { 5 }) } else { json!(band) }
}

/// The access points that send it; all of them have no filter.
fn devices(own: &Console, site: &str, wlan: &Row) -> Option<Value> {
    if !matches!(text(wlan, "ap_group_mode"), "groups" | "devices") {
        return None;
    }
    if let Some(tags) = object(wlan, "~official").and_then(|raw| object(raw, "broadcastingDeviceFilter"))
        && text(tags, "type") == "DEVICE_TAGS"
    {
        return Some(json!(tags));
    }
    let rows = own.store.rows(site, "device").iter();
    let points = rows
        .filter(|row| text(row, "type") == "uap" && crate::wlans::serves(own, site, wlan, text(row, "mac")));
    let ids: Vec<&str> = points.map(|row| text(row, "~uuid")).collect();
    Some(json!({ "type": "DEVICES", "deviceIds": ids }))
}

fn detail(own: &Console, site: &str, wlan: &Row) -> Value {
    let is_standard = !flag(wlan, "enhanced_iot");
    let mut made = object(wlan, "~official").map_or_else(|| json!({}), |raw| json!(raw));
    for (field, name) in FLAGS {
        if is_standard || !STANDARD.contains(&field) {
            made[field] = json!(flag(wlan, name));
        }
    }
    for (field, value, is_for_all) in [
        ("channel2gLockedTo6", json!(false), true),
        ("dtimPeriod2gLockedTo3", json!(false), true),
        ("advertiseDeviceName", json!(false), false),
    ] {
        let is_known = is_for_all && own.settings.release.is_from("10.4") || !is_for_all && is_standard;
        if is_known && made.get(field).is_none() {
            made[field] = value;
        }
    }
    if flag(wlan, "mac_filter_enabled") {
        made["clientFilteringPolicy"] = json!({
            "action": if text(wlan, "mac_filter_policy") == "allow" { "ALLOW" } else { "BLOCK" },
            "macAddressFilter": texts(wlan, "mac_filter_list"),
        });
    } else if let Some(made) = made.as_object_mut() {
        made.remove("clientFilteringPolicy");
    }
    for (field, value) in short(own, site, wlan).as_object().into_iter().flatten() {
        made[field] = value.clone();
    }
    made["securityConfiguration"] = security(own, site, wlan);
    for field in ["broadcastingDeviceFilter", "hotspotConfiguration"] {
        if short(own, site, wlan).get(field).is_none()
            && let Some(made) = made.as_object_mut()
        {
            made.remove(field);
        }
    }
    made
}

fn security(own: &Console, site: &str, wlan: &Row) -> Value {
    let kind = security_type(wlan);
    let raw = object(wlan, "~official").and_then(|raw| object(raw, "securityConfiguration"));
    let raw = raw.filter(|raw| text(raw, "type") == kind);
    let mut made = raw.map_or_else(|| json!({ "type": kind }), |raw| json!(raw));
    if kind == "OPEN" {
        return made;
    }
    made["fastRoamingEnabled"] = json!(flag(wlan, "fast_roaming_enabled"));
    if let Some(rekey) = number(wlan, "group_rekey").filter(|secs| *secs > 0) {
        made["groupRekeyIntervalSeconds"] = json!(rekey);
    }
    let has_choice = !matches!(kind.as_str(), "WPA3_PERSONAL" | "WPA3_ENTERPRISE");
    match text(wlan, "pmf_mode") {
        "required" if has_choice => made["pmfMode"] = json!("REQUIRED"),
        "optional" if has_choice => made["pmfMode"] = json!("OPTIONAL"),
        _ if kind.starts_with("WPA2_WPA3") => made["pmfMode"] = json!("OPTIONAL"),
        _ => {}
    }
    if kind.starts_with("WPA2_WPA3") {
        made["wpa3FastRoamingEnabled"] = json!(flag(wlan, "wpa3_fast_roaming"));
    }
    if kind.ends_with("ENTERPRISE") {
        made["coaEnabled"] = json!(flag(wlan, "radius_das_enabled"));
        let profile = own.store.uuid_of(site, "radiusprofile", text(wlan, "radiusprofile_id"));
        if made.get("radiusConfiguration").is_none() {
            made["radiusConfiguration"] = json!({});
        }
        made["radiusConfiguration"]["profileId"] = json!(profile);
        if kind == "WPA3_ENTERPRISE" && made.get("securityMode").is_none() {
            made["securityMode"] = json!("DEFAULT");
        }
        return made;
    }
    made["passphrase"] = json!(text(wlan, "x_passphrase"));
    if kind != "WPA2_PERSONAL" {
        made["saeConfiguration"] = json!({
            "anticloggingThresholdSeconds": number(wlan, "sae_anti_clogging").unwrap_or(5),
            "syncTimeSeconds": number(wlan, "sae_sync").unwrap_or(5),
        });
    }
    made
}

/// The stored form of an official broadcast over what was stored: what the body leaves out is reset.
fn stored(own: &Console, call: &Call<'_>, mut made: Row) -> Outcome<Row> {
    let body = &call.body;
    let site = call.site.as_str();
    put(&mut made, "name", body["name"].clone());
    put(&mut made, "enabled", body["enabled"].clone());
    put(&mut made, "enhanced_iot", text(body, "type") == "IOT_OPTIMIZED");
    put(&mut made, "setting_preference", "manual");
    put(&mut made, "~official", json!(body));
    for (field, name) in FLAGS {
        put(&mut made, name, flag(body, field));
    }
    let network = object(body, "network");
    let usual =
        own.store.having(site, "networkconf", "attr_hidden_id", "LAN").map(|row| text(row, "_id").to_owned());
    let id = match network.map(|network| text(network, "networkId")).filter(|id| !id.is_empty()) {
        None => usual.unwrap_or_default(),
        Some(id) => own.store.id_of(site, "networkconf", id).ok_or_else(|| absent("network", id))?,
    };
    put(&mut made, "networkconf_id", id);
    let bands = body.get("broadcastingFrequenciesGHz").and_then(Value::as_array);
    let chosen = |band: f64| {
        bands.is_some_and(|own| {
            own.iter().any(|own| own.as_f64().is_some_and(|own| (own - band).abs() < 0.01))
        })
    };
    let bands: Vec<&str> = match bands {
        None => vec!["2g"],
        Some(_) => BANDS.iter().filter(|(_, band)| chosen(*band)).map(|(word, _)| *word).collect(),
    };
    put(&mut made, "wlan_bands", json!(bands));
    put(&mut made, "is_guest", body.contains_key("hotspotConfiguration"));
    let filter = object(body, "clientFilteringPolicy");
    put(&mut made, "mac_filter_enabled", filter.is_some());
    if let Some(filter) = filter {
        put(&mut made, "mac_filter_policy", if text(filter, "action") == "ALLOW" { "allow" } else { "deny" });
        put(&mut made, "mac_filter_list", json!(texts(filter, "macAddressFilter")));
    }
    points(own, site, object(body, "broadcastingDeviceFilter"), &mut made)?;
    write_security(own, site, body, &mut made)?;
    let override_24 = object(body, "dtimPeriodByFrequencyGHzOverride").and_then(|own| number(own, "2.4"));
    if flag(body, "dtimPeriod2gLockedTo3") && override_24.is_some_and(|period| period != 3) {
        return Err(invalid("'dtimPeriodByFrequencyGHzOverride.2.4' must be 3"));
    }
    Ok(made)
}

fn points(own: &Console, site: &str, filter: Option<&Row>, made: &mut Row) -> Outcome<()> {
    let usual = own.store.having(site, "apgroup", "attr_hidden_id", "default").map(|row| row["_id"].clone());
    put(made, "ap_group_ids", json!(usual.into_iter().collect::<Vec<_>>()));
    let Some(filter) = filter else {
        put(made, "ap_group_mode", "all");
        return Ok(());
    };
    let mut macs = Vec::new();
    for id in texts(filter, "deviceIds") {
        let device = own.store.by_uuid(site, "device", id).ok_or_else(|| absent("device", id))?;
        macs.push(text(device, "mac").to_owned());
    }
    for id in texts(filter, "deviceTagIds") {
        let tag = own.store.by_uuid(site, "device_tag", id).ok_or_else(|| absent("device tag", id))?;
        macs.extend(texts(tag, "device_macs").into_iter().map(str::to_owned));
    }
    put(made, "ap_group_mode", "devices");
    put(made, "~devices", json!(macs));
    Ok(())
}

fn write_security(own: &Console, site: &str, body: &Row, made: &mut Row) -> Outcome<()> {
    let empty = Row::new();
    let security = object(body, "securityConfiguration").unwrap_or(&empty);
    let kind = text(security, "type");
    let word = if kind == "OPEN" {
        "open"
    } else if kind.ends_with("PERSONAL") {
        "wpapsk"
    } else {
        "wpaeap"
    };
    put(made, "security", word);
    put(made, "wpa3_support", kind.contains("WPA3"));
    put(made, "wpa3_transition", kind.starts_with("WPA2_WPA3"));
    put(
        made,
        "pmf_mode",
        match (kind, text(security, "pmfMode")) {
            ("WPA3_PERSONAL" | "WPA3_ENTERPRISE", _) | (_, "REQUIRED") => "required",
            (_, "OPTIONAL") => "optional",
            _ => "disabled",
        },
    );
    put(made, "fast_roaming_enabled", flag(security, "fastRoamingEnabled"));
    put(made, "wpa3_fast_roaming", flag(security, "wpa3FastRoamingEnabled"));
    put(made, "radius_das_enabled", flag(security, "coaEnabled"));
    put(made, "group_rekey", number(security, "groupRekeyIntervalSeconds").unwrap_or(0));
    match security.get("passphrase") {
        Some(passphrase) => put(made, "x_passphrase", passphrase.clone()),
        None => drop(made.remove("x_passphrase")),
    }
    put(made, "private_preshared_keys_enabled", security.contains_key("presharedKeys"));
    if let Some(sae) = object(security, "saeConfiguration") {
        put(made, "sae_anti_clogging", sae["anticloggingThresholdSeconds"].clone());
        put(made, "sae_sync", sae["syncTimeSeconds"].clone());
    }
    if word == "wpaeap" {
        let id = object(security, "radiusConfiguration").map_or("", |radius| text(radius, "profileId"));
        let id = own.store.id_of(site, "radiusprofile", id).ok_or_else(|| absent("RADIUS profile", id))?;
        put(made, "radiusprofile_id", id);
    }
    Ok(())
}
