//! Every menu of the facts answers, and every list keeps what is written.

use super::*;
use crate::facts::{Facts, Field, Kind, Menu, Type};

const RELEASES: [Release; 3] = [Release::V7_16, Release::V7_22, Release::V7_24];
/// Fields that no facts give a valid value for, by menu.
const OWN: [(&str, &[(&str, &str)]); 24] = [
    ("certificate", &[("common-name", "walk")]),
    ("file", &[("name", "walk.txt")]),
    ("interface/bridge/port", &[("bridge", "bridge"), ("interface", "ether1")]),
    ("interface/bridge/vlan", &[("bridge", "bridge"), ("vlan-ids", "300")]),
    ("interface/list/member", &[("list", "WAN"), ("interface", "ether3")]),
    ("interface/vlan", &[("interface", "ether1"), ("vlan-id", "300")]),
    (
        "interface/wireguard/peers",
        &[
            ("interface", "wireguard1"),
            ("public-key", "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="),
            ("allowed-address", "10.77.0.1/32"),
        ],
    ),
    ("ip/address", &[("address", "10.77.0.1/24"), ("interface", "ether3")]),
    ("ip/dhcp-server", &[("interface", "ether3")]),
    ("ip/dhcp-server/lease", &[("address", "10.77.0.9"), ("mac-address", "02:00:00:00:77:09")]),
    ("ip/dhcp-server/network", &[("address", "10.77.0.0/24")]),
    ("ip/dns/static", &[("name", "walk.lan"), ("address", "10.77.0.1")]),
    ("ip/firewall/address-list", &[("list", "walk"), ("address", "10.77.0.1")]),
    ("ip/pool", &[("name", "walk"), ("ranges", "10.77.0.10-10.77.0.20")]),
    ("ip/route", &[("dst-address", "10.77.0.0/16"), ("gateway", "192.168.88.2")]),
    ("ipv6/address", &[("address", "2001:db8:77::1/64"), ("interface", "ether3")]),
    ("ipv6/firewall/address-list", &[("list", "walk"), ("address", "2001:db8:77::/64")]),
    ("ipv6/route", &[("dst-address", "2001:db8:77::/64"), ("gateway", "2001:db8::1")]),
    ("ppp/secret", &[("name", "walk")]),
    ("queue/simple", &[("name", "walk"), ("target", "10.77.0.0/24")]),
    ("system/scheduler", &[("name", "walk"), ("start-time", "startup")]),
    ("user", &[("name", "walk"), ("group", "read"), ("password", "walk")]),
    ("user/group", &[("name", "walk"), ("policy", "read")]),
    (
        "interface/bridge/host",
        &[("bridge", "bridge"), ("interface", "ether3"), ("mac-address", "02:00:00:00:77:01")],
    ),
];
/// Values that move by themselves.
const MOVING: [&str; 8] =
    ["next-run", "uptime", "last-seen", "expires-after", "age", "since", "remote", ".about"];

/// A text that a field takes.
async fn sample(peer: &Peer, field: &Field, depth: u8) -> String {
    if let Some(word) = field.words.first().filter(|_| field.kind != Type::Link) {
        return word.clone();
    }
    let text = match field.kind {
        Type::Text if field.name.contains("address") => "10.77.0.1",
        Type::Text | Type::Flag => "walk",
        Type::Bool => "yes",
        Type::Int => return field.min.unwrap_or(1).max(1).to_string(),
        Type::Duration => {
            let least = field.range.as_ref().and_then(|range| range.split("..").next()).unwrap_or("10s");
            return least.to_owned();
        }
        Type::Enum | Type::Words | Type::Marks => {
            return field.options.first().cloned().unwrap_or_else(|| "walk".to_owned());
        }
        Type::List => match field.item.as_deref() {
            Some("range" | "integer") => "10",
            Some("ip-address" | "ip-range" | "ip-prefix") => "10.77.0.1",
            Some("ipv6-address" | "ipv6-prefix") => "2001:db8::1",
            Some("mac-address") => "02:00:00:00:77:02",
            _ => "walk",
        },
        Type::Link => return linked(peer, field, depth).await,
        Type::Mac => "02:00:00:00:77:02",
        Type::Ip | Type::Ip4 | Type::Prefix4 | Type::Range4 => "10.77.0.1",
        Type::Ip6 => "2001:db8::1",
        Type::Prefix6 => "2001:db8:77::/64",
    };
    text.to_owned()
}

/// The name of a row that a field may name; it is made when there is none.
async fn linked(peer: &Peer, field: &Field, depth: u8) -> String {
    let target = field.link.as_deref().unwrap();
    if target == "interface" {
        return "ether3".to_owned();
    }
    let known = peer.rows(target).await.iter().rev().find_map(|row| row["name"].as_str().map(str::to_owned));
    if let Some(name) = known {
        return name;
    }
    assert!(depth < 4, "{target}");
    let (_, menu) = Facts::get().menu(target).unwrap();
    let release = peer.lab.lock().release;
    let mut body = body_of(peer, target, menu, release, depth + 1).await;
    if menu.field("name", release).is_some() {
        body["name"] = json!("walk-target");
    }
    let row = peer.add(target, body).await;
    row["name"].as_str().unwrap_or_else(|| id(&row)).to_owned()
}

/// What a create of a menu needs.
async fn body_of(peer: &Peer, path: &str, menu: &Menu, release: Release, depth: u8) -> Value {
    if let Some((_, own)) = OWN.iter().find(|(menu, _)| *menu == path) {
        return own
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect::<serde_json::Map<_, _>>()
            .into();
    }
    let mut body = json!({});
    for field in menu.fields(release).filter(|field| field.required && !field.create) {
        body[field.name.as_str()] = json!(Box::pin(sample(peer, field, depth)).await);
    }
    body
}

fn still(row: &Value) -> Value {
    let mut row = row.clone();
    let fields = row.as_object_mut().unwrap();
    fields.retain(|name, _| !MOVING.contains(&name.as_str()));
    row
}

#[tokio::test]
async fn every_menu_answers_rows_or_an_object() {
    for release in RELEASES {
        let peer = Peer::of_release(release).await;
        for (path, menu) in Facts::get().menus().filter(|(path, _)| !path.is_empty()) {
            let answer = told(peer.request("GET", path).send().await.unwrap()).await;
            let exists = peer.lab.lock().has_menu(path);
            match menu.kind_in(release) {
                _ if !exists => assert_eq!(answer.0, 400, "{path} {answer:?}"),
                Kind::List => assert!(answer.0 == 200 && answer.1.is_array(), "{path} {answer:?}"),
                Kind::Object => assert!(answer.0 == 200 && answer.1.is_object(), "{path} {answer:?}"),
                Kind::None => assert_eq!(answer.1["detail"], "no such command", "{path}"),
            }
        }
    }
}

#[tokio::test]
async fn every_list_keeps_what_is_written() {
    for release in RELEASES {
        let peer = Peer::of_release(release).await;
        let mut walked = 0;
        for (path, menu) in Facts::get().menus() {
            let can = |command: &str| menu.can(command);
            if !(can("add")
                && can("set")
                && can("remove")
                && menu.kind_in(release) == Kind::List
                && peer.lab.lock().has_menu(path))
            {
                continue;
            }
            let body = body_of(&peer, path, menu, release, 0).await;
            let made = peer.add(path, body.clone()).await;
            for (name, value) in body.as_object().unwrap() {
                let is_hidden = path == "user" && name == "password";
                assert!(is_hidden || made.get(name).is_some(), "{path} lacks {name}={value}: {made}");
            }
            let one = format!("{path}/{}", id(&made));
            assert_eq!(still(&peer.get(&one).await), still(&made), "{path}");
            assert!(peer.rows(path).await.iter().any(|row| row[".id"] == made[".id"]), "{path}");
            changed(&peer, path, menu, release, &made).await;
            let status = peer.delete(path, id(&made)).await;
            assert!(status == 204 || status == 200, "{path} {status}");
            assert_eq!(told(peer.request("GET", &one).send().await.unwrap()).await.0, 404, "{path}");
            walked += 1;
        }
        assert!(walked > 200, "{walked}");
    }
}

/// A change shows, and the rest of the row stays.
async fn changed(peer: &Peer, path: &str, menu: &Menu, release: Release, made: &Value) {
    let Some(_) = menu.field("comment", release) else { return };
    let row = peer.change(path, id(made), json!({ "comment": "walked" })).await;
    assert_eq!(row["comment"], "walked", "{path}");
    let mut expected = still(made);
    expected["comment"] = json!("walked");
    assert_eq!(still(&row), expected, "{path}");
}

#[tokio::test]
async fn every_command_of_the_facts_is_known() {
    let peer = Peer::new().await;
    let ends = [
        "reboot",
        "shutdown",
        "reset-configuration",
        "check-disk",
        "load",
        "install",
        "downgrade",
        "apply-changes",
    ];
    for (path, menu) in Facts::get().menus() {
        for (name, _) in menu.commands() {
            if ends.contains(&name.as_str()) || !peer.lab.lock().has_menu(path) && !path.is_empty() {
                continue;
            }
            if menu.command(name, Release::V7_22).is_none() {
                continue;
            }
            let target = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let (status, answer) = peer.ask("POST", &target, json!({ "once": "" })).await;
            let is_judged = status == 200 || (status == 400 && answer["detail"].is_string());
            assert!(is_judged, "{target} {status} {answer}");
        }
    }
}
