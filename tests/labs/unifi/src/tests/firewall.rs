//! The firewall: zones and policies on two interfaces, and the older rules.

use super::*;

async fn zone(peer: &Peer, name: &str) -> Value {
    peer.row("~2/firewall/zone", "name", name).await
}

fn older(name: &str, source: &Value, destination: &Value) -> Value {
    json!({
        "name": name, "action": "ALLOW", "enabled": true, "protocol": "tcp", "ip_version": "BOTH",
        "schedule": { "mode": "ALWAYS" },
        "source": { "zone_id": source["_id"], "matching_target": "ANY", "port_matching_type": "ANY" },
        "destination": { "zone_id": destination["_id"], "matching_target": "ANY", "port_matching_type": "SPECIFIC", "port": "22" },
    })
}

fn policy(name: &str, source: &Value, destination: &Value) -> Value {
    json!({
        "enabled": true, "name": name, "action": { "type": "BLOCK" }, "loggingEnabled": false,
        "source": { "zoneId": source["external_id"] },
        "destination": { "zoneId": destination["external_id"] },
        "ipProtocolScope": { "ipVersion": "IPV4_AND_IPV6" },
    })
}

#[tokio::test]
async fn an_allowing_policy_brings_its_return() {
    let peer = Peer::new().await;
    let (internal, dmz) = (zone(&peer, "Internal").await, zone(&peer, "DMZ").await);
    let before = peer.rows("~2/firewall-policies").await.len();
    let mut body = older("ssh", &internal, &dmz);
    body["create_allow_respond"] = json!(true);
    let made = peer.ok("POST", "~2/firewall-policies", body.clone()).await;
    assert_eq!(made["index"], 10_000);
    assert_eq!(peer.rows("~2/firewall-policies").await.len(), before + 2);
    let back = peer.row("~2/firewall-policies", "name", "ssh (Return)").await;
    assert_eq!((back["predefined"].as_bool(), &back["origin_id"]), (Some(true), &made["_id"]));
    let path = format!("~2/firewall-policies/{}", back["_id"].as_str().unwrap());
    assert_eq!(peer.refused("DELETE", &path, Value::Null).await, "api.err.FirewallPolicyNotFound");
    body["enabled"] = json!(false);
    peer.ok("PUT", &format!("~2/firewall-policies/{}", made["_id"].as_str().unwrap()), body).await;
    assert_eq!(peer.rows("~2/firewall-policies").await.len(), before + 1);
}

#[tokio::test]
async fn a_policy_says_what_it_matches() {
    let peer = Peer::new().await;
    let (internal, dmz) = (zone(&peer, "Internal").await, zone(&peer, "DMZ").await);
    let with = |target: Value| {
        let mut body = older("p", &internal, &dmz);
        for (name, value) in target.as_object().unwrap() {
            body["destination"][name] = value.clone();
        }
        body
    };
    let group = peer.row("~/rest/firewallgroup", "name", "Printers").await;
    for (target, code) in [
        (
            json!({ "matching_target": "IP", "ips": ["10.0.0.1"] }),
            "MissingFirewallPolicyDestinationMatchingTargetType",
        ),
        (
            json!({
                "matching_target": "IP", "matching_target_type": "SPECIFIC", "ip_group_id": group["_id"],
            }),
            "EmptyFirewallDestinationIps",
        ),
        (
            json!({ "matching_target": "NETWORK", "matching_target_type": "SPECIFIC" }),
            "EmptyFirewallDestinationNetworkIds",
        ),
        (json!({ "zone_id": "675100000000000000000000" }), "FirewallZoneNotFound"),
    ] {
        assert_eq!(
            peer.refused("POST", "~2/firewall-policies", with(target)).await,
            format!("api.err.{code}")
        );
    }
    let good =
        json!({ "matching_target": "IP", "matching_target_type": "OBJECT", "ip_group_id": group["_id"] });
    peer.ok("POST", "~2/firewall-policies", with(good)).await;
    let mut few = older("p", &internal, &dmz);
    few.as_object_mut().unwrap().remove("source");
    assert_eq!(peer.refused("POST", "~2/firewall-policies", few).await, "api.err.InvalidPayload");
    let mut block = older("p", &internal, &dmz);
    block["action"] = json!("BLOCK");
    block["create_allow_respond"] = json!(true);
    let code = peer.refused("POST", "~2/firewall-policies", block).await;
    assert_eq!(code, "api.err.FirewallPolicyCreateRespondTrafficPolicyNotAllowed");
}

#[tokio::test]
async fn the_order_of_a_pair_names_every_policy_of_it() {
    let peer = Peer::new().await;
    let (internal, dmz) = (zone(&peer, "Internal").await, zone(&peer, "DMZ").await);
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(peer.ok("POST", "~i/firewall/policies", policy(name, &internal, &dmz)).await["id"].clone());
    }
    let pair = format!(
        "sourceFirewallZoneId={}&destinationFirewallZoneId={}",
        internal["external_id"].as_str().unwrap(),
        dmz["external_id"].as_str().unwrap()
    );
    let path = format!("~i/firewall/policies/ordering?{pair}");
    let read = peer.get(&path).await;
    assert_eq!(read["orderedFirewallPolicyIds"]["beforeSystemDefined"], json!(ids));
    let order = |before: &[&Value], after: &[&Value]| {
        json!({
            "orderedFirewallPolicyIds": { "beforeSystemDefined": before, "afterSystemDefined": after },
        })
    };
    assert_eq!(peer.ask("PUT", &path, order(&[&ids[0], &ids[1]], &[])).await.0, 400);
    peer.ok("PUT", &path, order(&[&ids[2], &ids[0]], &[&ids[1]])).await;
    let rows = peer.rows("~2/firewall-policies").await;
    let index = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["index"].as_i64().unwrap();
    assert_eq!((index("c"), index("a"), index("b")), (10_000, 10_001, 40_000));
}

#[tokio::test]
async fn a_policy_of_the_older_form_reads_in_the_official_one() {
    let peer = Peer::new().await;
    let read = peer.row("~i/firewall/policies?limit=200", "name", "Things may resolve names").await;
    assert_eq!(read["ipProtocolScope"]["protocolFilter"]["protocol"]["name"], "UDP");
    let ports = &read["destination"]["trafficFilter"]["portFilter"];
    assert_eq!(ports["items"][1], json!({ "type": "PORT_NUMBER", "value": 5353 }));
    assert_eq!(read["metadata"]["origin"], "USER_DEFINED");
    let system = peer.row("~i/firewall/policies?limit=200", "name", "Block All Traffic").await;
    assert_eq!(system["metadata"]["origin"], "SYSTEM_DEFINED");
    let path = format!("~i/firewall/policies/{}", system["id"].as_str().unwrap());
    assert_eq!(peer.get(&path).await["name"], "Block All Traffic");
    assert_eq!(peer.ask("DELETE", &path, Value::Null).await.0, 400);
}

#[tokio::test]
async fn a_patch_takes_the_logging_alone() {
    let peer = Peer::new().await;
    let read = peer.row("~i/firewall/policies?limit=200", "name", "No mail from guests").await;
    let path = format!("~i/firewall/policies/{}", read["id"].as_str().unwrap());
    assert_eq!(peer.ok("PATCH", &path, json!({ "loggingEnabled": false })).await["loggingEnabled"], false);
    let code = peer.refused("PATCH", &path, json!({ "enabled": false })).await;
    assert_eq!(code, "api.request.unknown-property");
}

#[tokio::test]
async fn each_network_is_in_one_zone() {
    let peer = Peer::new().await;
    let office = peer.row("~i/networks", "name", "Office").await;
    let made =
        peer.ok("POST", "~i/firewall/zones", json!({ "name": "Staff", "networkIds": [office["id"]] })).await;
    assert_eq!(peer.row("~i/networks", "name", "Office").await["zoneId"], made["id"]);
    let internal = peer.row("~i/firewall/zones", "name", "Internal").await;
    assert!(!internal["networkIds"].as_array().unwrap().contains(&office["id"]));
    let path = format!("~i/firewall/zones/{}", made["id"].as_str().unwrap());
    peer.ok("DELETE", &path, Value::Null).await;
    assert_eq!(peer.row("~i/networks", "name", "Office").await["zoneId"], internal["id"]);
    let own = format!("~i/firewall/zones/{}", internal["id"].as_str().unwrap());
    assert_eq!(peer.ask("DELETE", &own, Value::Null).await.0, 400);
}

#[tokio::test]
async fn a_zone_takes_three_fields() {
    let peer = Peer::new().await;
    let things = zone(&peer, "Things").await;
    let path = format!("~2/firewall/zone/{}", things["_id"].as_str().unwrap());
    let (status, answer) = peer.ask("PUT", &path, things.clone()).await;
    assert_eq!(status, 400);
    assert!(answer["message"].as_str().unwrap().starts_with("Unrecognized field"), "{answer}");
    assert_eq!(peer.ask("POST", "~2/firewall/zone", json!({ "name": "z" })).await.0, 500);
    peer.ok("PUT", &path, json!({ "name": "Gadgets", "network_ids": [] })).await;
    let iot = peer.row("~/rest/networkconf", "name", "IoT").await;
    assert_eq!(iot["firewall_zone_id"], zone(&peer, "Internal").await["_id"]);
}

#[tokio::test]
async fn a_zone_is_stored_although_the_answer_says_otherwise() {
    let peer = Peer::new().await;
    peer.lab.edit(&json!({ "do": "delete", "table": "firewall_zone", "which": "Hotspot" })).unwrap();
    let body = json!({ "name": "Late", "network_ids": [] });
    assert_eq!(
        peer.refused("POST", "~2/firewall/zone", body).await,
        "api.err.CouldNotFindHotspotFirewallZone"
    );
    zone(&peer, "Late").await;
}

#[tokio::test]
async fn a_batch_answers_well_and_changes_nothing() {
    let peer = Peer::new().await;
    let mut rows = peer.rows("~2/firewall-policies").await;
    rows.retain(|row| row["name"] == "No mail from guests");
    rows[0]["enabled"] = json!(false);
    peer.ok("PUT", "~2/firewall-policies/batch", json!(rows)).await;
    assert_eq!(peer.row("~2/firewall-policies", "name", "No mail from guests").await["enabled"], true);
}

#[tokio::test]
async fn a_site_has_either_zones_or_the_older_rules() {
    let peer = Peer::new().await;
    assert!(peer.rows("~/rest/firewallrule").await.is_empty());
    let rule = json!({ "name": "r", "ruleset": "LAN_IN", "rule_index": 2005, "action": "drop" });
    assert_eq!(peer.refused("POST", "~/rest/firewallrule", rule.clone()).await, "api.err.NotFound");
    let older = Peer::of(Settings { has_zones: false, ..Settings::default() }).await;
    assert_eq!(older.rows("~/rest/firewallrule").await.len(), 2);
    older.add("firewallrule", rule.clone()).await;
    assert_eq!(older.refused("POST", "~/rest/firewallrule", rule).await, "api.err.FirewallRuleIndexExisted");
    let first = older.row("~/rest/firewallrule", "name", "Drop invalid").await;
    let body = json!({
        "cmd": "reorder", "ruleset": "WAN_IN", "rules": [{ "_id": first["_id"], "rule_index": "2010" }],
    });
    older.command("firewall", body).await;
    assert_eq!(older.row("~/rest/firewallrule", "name", "Drop invalid").await["rule_index"], 2010);
    let code = older.refused("GET", "~i/firewall/zones", Value::Null).await;
    assert_eq!(code, "api.firewall.zone-based-firewall-not-configured");
    assert_eq!(older.get("~2/firewall/zone").await, json!([]));
}

#[tokio::test]
async fn two_groups_on_a_side_are_of_different_types() {
    let peer = Peer::of(Settings { has_zones: false, ..Settings::default() }).await;
    let printers = peer.row("~/rest/firewallgroup", "name", "Printers").await;
    let more = json!({ "name": "More", "group_type": "address-group", "group_members": ["10.0.0.0/8"] });
    let more = peer.add("firewallgroup", more).await;
    let rule = json!({
        "name": "r", "ruleset": "LAN_IN", "rule_index": 2005, "action": "drop",
        "src_firewallgroup_ids": [printers["_id"], more["_id"]],
    });
    assert_eq!(peer.refused("POST", "~/rest/firewallrule", rule).await, "api.err.FirewallGroupTypeExists");
}

#[tokio::test]
async fn rules_of_switches_have_one_order() {
    let peer = Peer::new().await;
    let rule = |name: &str| {
        json!({
            "type": "IPV4", "enabled": true, "name": name, "action": "BLOCK",
            "sourceFilter": { "type": "IP_ADDRESSES_OR_SUBNETS", "ipAddressesOrSubnets": ["10.30.0.0/24"] },
        })
    };
    let one = peer.ok("POST", "~i/acl-rules", rule("one")).await;
    let two = peer.ok("POST", "~i/acl-rules", rule("two")).await;
    let order = json!({ "orderedAclRuleIds": [two["id"], one["id"]] });
    assert_eq!(peer.ok("PUT", "~i/acl-rules/ordering", order.clone()).await, order);
    assert_eq!(peer.row("~i/acl-rules", "name", "two").await["index"], 0);
    assert_eq!(
        peer.ask("PUT", "~i/acl-rules/ordering", json!({ "orderedAclRuleIds": [one["id"]] })).await.0,
        400
    );
    let mut wrong = rule("three");
    wrong["sourceFilter"] = json!({ "type": "MAC_ADDRESSES", "macAddresses": [CORE] });
    assert_eq!(peer.ask("POST", "~i/acl-rules", wrong).await.0, 400);
}

#[tokio::test]
async fn both_protocols_at_once_are_a_preset() {
    let peer = Peer::new().await;
    let (internal, dmz) = (zone(&peer, "Internal").await, zone(&peer, "DMZ").await);
    let mut body = policy("p", &internal, &dmz);
    body["ipProtocolScope"]["protocolFilter"] =
        json!({ "type": "NAMED_PROTOCOL", "protocol": { "name": "TCP_UDP" }, "matchOpposite": false });
    let code = peer.refused("POST", "~i/firewall/policies", body.clone()).await;
    assert_eq!(code, "api.request.unknown-type-id");
    body["ipProtocolScope"]["protocolFilter"] =
        json!({ "type": "PRESET", "preset": { "name": "TCP_UDP" }, "matchOpposite": true });
    let code = peer.refused("POST", "~i/firewall/policies", body.clone()).await;
    assert_eq!(code, "api.request.unknown-property");
    body["ipProtocolScope"]["protocolFilter"] = json!({ "type": "PRESET", "preset": { "name": "TCP_UDP" } });
    peer.ok("POST", "~i/firewall/policies", body).await;
    assert_eq!(peer.row("~2/firewall-policies", "name", "p").await["protocol"], "tcp_udp");
}
