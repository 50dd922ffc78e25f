//! Every route of the facts answers, and every table keeps what it is given.

use super::*;
use crate::facts::{Base, Facts, Field};

/// Commands that would end the console or a site.
const ENDS: [&str; 5] = ["reboot", "delete-site", "restore", "revoke-admin", "delete-device"];

/// A value that a field takes.
fn sample(field: &Field) -> Option<Value> {
    let one = if let Some(word) = field.values.first() {
        if field.kind.base == Base::Integer { json!(word.parse::<i64>().unwrap()) } else { json!(word) }
    } else {
        match field.kind.base {
            Base::Boolean => json!(true),
            Base::Integer | Base::Number => {
                let fits = |number: &i64| field.unmatched(&number.to_string()).is_none();
                json!((0..100_000).chain(-100..0).find(fits)?)
            }
            Base::Text | Base::Uuid => {
                let texts = [
                    "walk",
                    "10.77.0.1",
                    "10.77.0.0/24",
                    "02:00:5e:77:00:01",
                    "5",
                    "100",
                    "08:00",
                    "mon",
                    "wan",
                    "WAN",
                ];
                json!(texts.iter().find(|text| field.unmatched(text).is_none())?)
            }
            Base::Object => {
                let inside =
                    field.inside.iter().filter_map(|inner| Some((inner.name.clone(), sample(inner)?)));
                Value::Object(inside.collect())
            }
            Base::Any => return None,
        }
    };
    Some(if field.kind.is_list { json!([one]) } else { one })
}

fn is_link(name: &str) -> bool {
    name.ends_with("_id") || name.ends_with("_ids") || name == "locked"
}

#[tokio::test]
async fn every_older_route_is_there() {
    let peer = Peer::of(Settings { release: Release::V9_5, logins_max: 0, ..Settings::default() }).await;
    let id = peer.row("~/rest/usergroup", "name", "Default").await["_id"].as_str().unwrap().to_owned();
    let (mut walked, mut unknown) = (0, Vec::new());
    for route in &Facts::get().routes {
        let (method, path) = (route[0].as_str(), route[1].as_str());
        let is_own = path.starts_with("~/") || path.starts_with("~2/");
        // One slip of a client has no slash; what came later is not there yet; the gateway, upgraded with all
        // others, would take the console along.
        let is_skipped = ["{section_id}", "cmd/restore", "upgrade-all", "object-oriented"]
            .iter()
            .any(|part| path.contains(part));
        if !is_own || is_skipped {
            continue;
        }
        let path = path
            .replace("{mac}", CORE)
            .replace("{class}", "all")
            .replace("{wan}", "WAN")
            .replace(['{', '}'], "|");
        let path: String = path
            .split('|')
            .enumerate()
            .map(|(place, part)| if place % 2 == 1 { id.as_str() } else { part })
            .collect();
        for command in route.get(2).map_or(vec![""], |commands| commands.split('|').collect()) {
            if ENDS.contains(&command) || path.contains("rest/device") && method == "GET" {
                continue;
            }
            let body = match (method, command) {
                ("GET" | "DELETE", _) => Value::Null,
                (_, "") if path.ends_with("cmd/stat") => json!({ "cmd": "reset-dpi" }),
                (_, "") => json!({}),
                (_, command) => json!({ "cmd": command }),
            };
            let (status, answer) = peer.ask(method, &path, body).await;
            let code = answer["meta"]["msg"].as_str().or_else(|| answer["code"].as_str()).unwrap_or("ok");
            let is_known = !matches!(code, "api.err.UnknownCommand")
                && (status != 404 || code != "api.err.NotFound" || path.contains(&id));
            // A site with zones has no older rules.
            if !(is_known && status != 405 || path.ends_with("rest/firewallrule")) {
                unknown.push(format!("{method} {path} {command} answered {status} {answer}"));
            }
            walked += 1;
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(walked > 350, "{walked}");
}

#[tokio::test]
async fn every_setting_keeps_what_it_is_given() {
    let peer = Peer::new().await;
    let mut walked = 0;
    for (key, facts) in &Facts::get().settings {
        if !Release::V10_4.has(facts.since.as_deref(), facts.until.as_deref()) {
            continue;
        }
        let body: Value = facts
            .fields
            .iter()
            .filter(|field| !is_link(&field.name))
            .filter_map(|field| Some((field.name.clone(), sample(field)?)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let mut body = body;
        for name in body.as_object().unwrap().keys().cloned().collect::<Vec<_>>() {
            if name.ends_with("preference") {
                body[name] = json!("manual");
            }
        }
        let answer = peer.ok("PUT", &format!("~/set/setting/{key}"), body.clone()).await;
        let stored = peer.get(&format!("~/get/setting/{key}")).await["data"][0].clone();
        assert_eq!(answer["data"][0], stored, "{key}");
        walked += 1;
    }
    assert!(walked > 40, "{walked}");
}

#[tokio::test]
async fn every_table_keeps_what_it_is_given() {
    let peer = Peer::of(Settings { has_zones: false, release: Release::V10_1, ..Settings::default() }).await;
    let group = peer.row("~2/apgroups", "name", "All APs").await["_id"].clone();
    for (table, facts) in &Facts::get().rest {
        if matches!(table.as_str(), "device" | "rogueknown" | "portalfile") {
            continue;
        }
        let is_plain = |field: &&Field| !is_link(&field.name) && field.name != "private_preshared_keys";
        let is_there = |field: &&Field| Release::V10_1.has(field.since.as_deref(), None);
        let fields = facts.fields.iter().filter(is_plain).filter(is_there);
        let mut body: Value = fields
            .filter_map(|field| Some((field.name.clone(), sample(field)?)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        for (name, value) in own(table, &group).as_object().unwrap() {
            body[name] = value.clone();
        }
        for name in body.as_object().unwrap().keys().cloned().collect::<Vec<_>>() {
            if name.ends_with("preference") {
                body[name] = json!("manual");
            }
        }
        let made = peer.add(table, body.clone()).await;
        for (name, value) in body.as_object().unwrap() {
            let is_rewritten = is_rewritten(table, name);
            assert!(is_rewritten || made[name] == *value, "{table}.{name}: {value} became {}", made[name]);
        }
        let path = format!("~/rest/{table}/{}", made["_id"].as_str().unwrap());
        assert_eq!(peer.get(&path).await["data"][0], made, "{table}");
        peer.ok("DELETE", &path, Value::Null).await;
        assert_eq!(peer.get(&path).await["data"], json!([]), "{table}");
    }
}

/// What the controller decides by itself.
fn is_rewritten(table: &str, field: &str) -> bool {
    match table {
        "networkconf" => matches!(field, "mdns_enabled" | "dhcpdv6_enabled"),
        "wlanconf" => {
            matches!(field, "iapp_enabled" | "wpa3_support" | "wpa3_transition" | "pmf_mode" | "dtim_ng")
        }
        "user" => field == "mac",
        _ => false,
    }
}

/// Values that fields need of each other.
fn own(table: &str, group: &Value) -> Value {
    match table {
        "networkconf" => json!({
            "purpose": "corporate", "vlan_enabled": true, "vlan": 777, "ip_subnet": "10.77.0.1/24",
            "dhcp_relay_enabled": false,
            "dhcpd_start": "10.77.0.10", "dhcpd_stop": "10.77.0.99", "dhcpd_gateway": "10.77.0.1",
            "dhcpd_gateway_enabled": true,
            "gateway_type": "default", "network_isolation_enabled": false,
        }),
        "wlanconf" => json!({
            "security": "wpapsk", "x_passphrase": "long enough", "ap_group_ids": [group],
            "enhanced_iot": false,
            "wlan_bands": ["2g"], "wpa3_support": true, "wpa3_transition": true,
        }),
        "firewallrule" => json!({ "ruleset": "LAN_IN", "rule_index": 2050 }),
        "firewallgroup" => json!({ "group_type": "address-group", "group_members": ["10.77.0.1"] }),
        "portforward" => json!({ "fwd": "10.77.0.5", "dst_port": "7700", "fwd_port": "7700", "src": "any" }),
        "routing" => json!({
            "static-route_network": "10.78.0.0/16", "static-route_nexthop": "192.168.1.9",
            "gateway_type": "default",
            "static-route_type": "nexthop-route",
        }),
        "radiusprofile" => {
            json!({
                "use_usg_auth_server": false,
                "auth_servers": [{ "ip": "10.77.0.1", "port": 1812, "x_secret": "s" }],
            })
        }
        "user" => {
            json!({
                "mac": "02:00:5e:77:00:77", "use_fixedip": true, "fixed_ip": "10.10.0.77",
                "local_dns_record": "a.lan",
            })
        }
        "dhcpoption" => json!({ "code": 200 }),
        _ => json!({}),
    }
}
