//! The configuration with which the router starts, from `household.json`: what the vendor ships, and a household with
//! guests and some tunnels.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::access::policies;
use crate::device::Router;
use crate::facts::Facts;
use crate::interfaces::{self, named, row_links};
use crate::settings::Settings;
use crate::store::{Link, Origin, Row, Store, Target, Value, Values, values};
use crate::vpn::{private_key, public_key};

const FILTER: &str = "ip/firewall/filter";

/// Who made the rows of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    BuiltIn,
    Own,
    Object,
}

/// Rows of one menu, in their order.
///
/// A value such as `@interface:bridge` names rows of a menu, with a mark before it negated ones. Values that begin with
/// a dollar sign are made: `$mac:2`, `$private:name`, `$public:name`, `$policies:list`, `$admin`.
#[derive(Deserialize)]
struct Entry {
    menu: String,
    kind: Kind,
    rows: Vec<BTreeMap<String, String>>,
}

/// Fills an empty router.
pub(crate) fn fill(router: &mut Router) {
    let settings = router.settings.clone();
    let entries: Vec<Entry> = serde_json::from_str(include_str!("../household.json"))
        .expect("household.json is read by every test");
    let store = &mut router.store;
    let loopback = Row { id: 0xFF, origin: Origin::BuiltIn, values: values(&[("name", "lo")]) };
    store.put(interfaces::LOOPBACK, loopback);
    for Entry { menu, kind, rows } in entries {
        let (menu, _) = Facts::get().menu(&menu).expect("the household names menus of the contract");
        let count = if menu == FILTER { settings.rules.min(rows.len()) } else { rows.len() };
        for row in rows.into_iter().take(count) {
            let values: Values =
                row.into_iter().map(|(field, text)| (field, value(store, &settings, &text))).collect();
            match kind {
                Kind::BuiltIn => {
                    store.add(menu, Origin::BuiltIn, values);
                }
                Kind::Own => {
                    store.add(menu, Origin::Own, values);
                }
                Kind::Object => store.put(menu, Row { id: 0, origin: Origin::BuiltIn, values }),
            }
        }
        if menu == FILTER {
            more_rules(store, count, settings.rules);
        }
    }
    accounts(store, &settings);
    open_vpn(router);
    // What a package or a board brings is not there without it.
    let absent: Vec<&'static str> =
        router.store.menus().filter(|menu| !router.has_menu(menu) && *menu != interfaces::LOOPBACK).collect();
    for menu in absent {
        router.store.retain(menu, |_| false);
    }
}

/// Rules behind those of the household, as many as asked for.
fn more_rules(store: &mut Store, from: usize, to: usize) {
    for number in from..to {
        let target = format!("10.{}.{}.0/24", number / 250 % 250, number % 250);
        let (port, comment) = ((1024 + number % 60_000).to_string(), format!("rule {number}"));
        let rule = values(&[
            ("chain", "forward"),
            ("action", "accept"),
            ("protocol", "tcp"),
            ("dst-address", &target),
            ("dst-port", &port),
            ("comment", &comment),
        ]);
        store.add(FILTER, Origin::Own, rule);
    }
}

fn accounts(store: &mut Store, settings: &Settings) {
    let users = [("full", &settings.admin, "system default user"), ("viewer", &settings.reader, "")];
    for (group, (name, password), comment) in users {
        let mut user = values(&[
            ("name", name),
            ("password", password),
            ("comment", comment),
            ("address", ""),
            ("inactivity-policy", "none"),
            ("inactivity-timeout", "10m"),
        ]);
        user.insert("group".to_owned(), value(store, settings, &format!("@user/group:{group}")));
        store.add("user", Origin::Own, user);
    }
}

/// One server up to 7.16, a list of servers since.
fn open_vpn(router: &mut Router) {
    let menu = "interface/ovpn-server/server";
    if router.release >= crate::Release::V7_22 {
        let server = values(&[("name", "ovpn1"), ("port", "1194"), ("disabled", "true")]);
        router.store.add(menu, Origin::Own, server);
    } else {
        let values = values(&[("port", "1194"), ("enabled", "false")]);
        router.store.put(menu, Row { id: 0, origin: Origin::BuiltIn, values });
    }
}

fn value(store: &Store, settings: &Settings, text: &str) -> Value {
    if let Some(made) = text.strip_prefix('$') {
        let (kind, of) = made.split_once(':').unwrap_or((made, ""));
        return match kind {
            "mac" => interfaces::mac(of.parse().unwrap_or(0)).into(),
            "private" => private_key(of).into(),
            "public" => public_key(&private_key(of)).unwrap_or_default().into(),
            "policies" => policies(of, None).unwrap_or_default().into(),
            _ => settings.admin.0.as_str().into(),
        };
    }
    let (negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let Some((menu, names)) = rest.strip_prefix('@').and_then(|rest| rest.split_once(':')) else {
        return text.into();
    };
    let (menu, _) = Facts::get().menu(menu).expect("the household names menus of the contract");
    let ids = names.split(',').filter_map(|name| match menu {
        "interface" => named(store, name).map(|(_, row)| row.id),
        menu => store.having(menu, "name", name).map(|row| row.id),
    });
    let ids: Vec<u64> = ids.collect();
    if negated {
        let links = ids.iter().map(|id| Link { negated: true, to: Target::Row(menu, *id) });
        return Value::Links(links.collect());
    }
    row_links(menu, &ids)
}
