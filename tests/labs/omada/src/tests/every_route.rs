//! Every route of the facts answers, and every collection keeps what it is given.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Peer, sample};
use crate::facts::{Item, Role, Route, facts};

/// A value for each parameter of a path.
fn values(peer: &Peer) -> BTreeMap<&'static str, String> {
    let locked = peer.lab.lock();
    let of = |kind: &str| {
        let rows = locked.store.rows(&peer.site, "device.device");
        rows.iter().find(|row| row["type"] == kind).unwrap()["mac"].as_str().unwrap().to_owned()
    };
    let group = locked.store.rows(&peer.site, "wifi.wlan-group")[0]["wlanId"].as_str().unwrap().to_owned();
    BTreeMap::from([
        ("omadacId", peer.id.clone()),
        ("siteId", peer.site.clone()),
        ("siteTemplateId", "66a0000000000000000000ff".to_owned()),
        ("deviceMac", of("switch")),
        ("switchMac", of("switch")),
        ("apMac", of("ap")),
        ("gatewayMac", of("gateway")),
        ("wlanId", group),
        ("port", "7".to_owned()),
    ])
}

fn path(route: &Route, values: &BTreeMap<&str, String>) -> String {
    let parts =
        route.parts.iter().map(|part| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            Some(name) => values.get(name).cloned().unwrap_or_else(|| "1".to_owned()),
            None => part.clone(),
        });
    format!("/{}", parts.collect::<Vec<_>>().join("/"))
}

fn query(route: &Route) -> String {
    let shape = route.query.map_or(&[][..], |number| facts().shape(number));
    let pairs = shape.iter().filter(|(_, field)| field.is_required).map(|(name, field)| {
        let value = sample(&crate::facts::Field { is_array: false, ..field.clone() });
        format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    });
    pairs
        .map(|pair| pair.replace("page=0", "page=1").replace("pageSize=0", "pageSize=10"))
        .collect::<Vec<_>>()
        .join("&")
}

async fn ask(peer: &Peer, route: &Route, path: &str, body: Option<&Value>) -> Value {
    let request = peer.request(&route.method, &format!("{path}?{}", query(route)));
    let request = if route.is_web {
        request.header("cookie", &peer.cookie).header("csrf-token", &peer.csrf)
    } else {
        request.header("authorization", format!("AccessToken={}", peer.token))
    };
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    let text = request.send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{} {} answered {text}", route.method, route.name))
}

#[tokio::test]
async fn every_read_answers_its_shape_or_a_code_of_the_vendor() {
    let peer = Peer::with(|omada| omada.is_pro = true).await;
    let values = values(&peer);
    for route in facts().routes.iter().filter(|route| route.method == "GET") {
        let answer = ask(&peer, route, &path(route, &values), None).await;
        assert!(answer["errorCode"].is_i64(), "{} answered {answer}", route.name);
        if answer["errorCode"] == 0 && route.answer.as_ref().is_some_and(|field| field.is_array) {
            assert!(answer["result"].is_array(), "{} answered {answer}", route.name);
        }
    }
}

#[tokio::test]
async fn every_write_answers_a_body_of_its_shape() {
    let peer = Peer::with(|omada| omada.is_pro = true).await;
    let values = values(&peer);
    // A network is created on the Open API only.
    let is_gone = |route: &Route| route.name == "web site setting/lan/networks";
    let restarts = |route: &Route| {
        route.name.contains("restore") || route.name.ends_with("cmd/reboot") || is_gone(route)
    };
    let ends_site =
        |route: &Route| facts().items[route.item].id == "system.site" || route.name.contains("forget");
    for route in facts()
        .routes
        .iter()
        .filter(|route| route.exists_now() && route.method != "GET" && !restarts(route) && !ends_site(route))
    {
        let body = route.body.as_ref().map(sample);
        let answer = ask(&peer, route, &path(route, &values), body.as_ref()).await;
        assert!(answer["errorCode"].is_i64(), "{} {} answered {answer}", route.method, route.name);
        assert_ne!(answer["errorCode"], -1600, "{} {}", route.method, route.name);
    }
}

/// Collections whose creates need more than their schema tells, or whose list shows only a part.
const BY_HAND: [&str; 5] =
    ["wifi.ssid", "system.dhcp-reservation", "system.site", "diagnostics.cli", "firewall.url-filter"];

fn has_own_list(item: &Item) -> bool {
    item.is_collection && !item.id.starts_with("olt.") && !BY_HAND.contains(&item.id.as_str())
}

#[tokio::test]
async fn what_a_collection_was_given_is_listed() {
    let peer = Peer::with(|omada| omada.is_pro = true).await;
    let values = values(&peer);
    let (mut checked, mut failures) = (0, Vec::new());
    for (number, _) in facts().items.iter().enumerate().filter(|(_, item)| has_own_list(item)) {
        let of = |role: Role| {
            let own =
                |route: &&Route| route.item == number && route.role == role && route.name.starts_with('v');
            facts()
                .routes
                .iter()
                .filter(own)
                .find(|route| route.exists_now() && route.name.contains(" site "))
        };
        let (Some(list), Some(create)) =
            (of(Role::List).filter(|list| list.method == "GET"), of(Role::Create))
        else {
            continue;
        };
        let Some(body) = create.body.as_ref().map(sample) else { continue };
        let count = |answer: &Value| {
            let result = &answer["result"];
            result["totalRows"].as_u64().or_else(|| result.as_array().map(|rows| rows.len() as u64))
        };
        let before = count(&ask(&peer, list, &path(list, &values), None).await);
        let answer = ask(&peer, create, &path(create, &values), Some(&body)).await;
        if answer["errorCode"] != 0 {
            failures.push(format!("{} {body} answered {answer}", create.name));
            continue;
        }
        let after = count(&ask(&peer, list, &path(list, &values), None).await);
        if after != before.map(|before| before + 1) {
            failures.push(format!("{} then {}: {before:?} {after:?}", create.name, list.name));
        }
        checked += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(checked > 60, "only {checked} collections were checked");
}
