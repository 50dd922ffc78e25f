//! Collections of the second interface that are lists of objects.

use serde_json::{Value, json};

use crate::check;
use crate::console::{Change, Console};
use crate::facts::{Collection, Facts};
use crate::reply::{Outcome, Refusal};
use crate::row::{Row, flag, put, put_default, shown, text, texts};
use crate::v2::Call;
use crate::{dns, rest};

/// A collection: its path, the path of one object, its table, and what it needs.
struct Kind {
    list: &'static str,
    one: &'static str,
    table: &'static str,
    /// The word of the code that a site without a gateway answers; empty where none is needed.
    needs: &'static str,
    /// A PUT replaces the object; else it merges.
    replaces: bool,
    since: Option<&'static str>,
}

const fn kind(list: &'static str, table: &'static str, needs: &'static str, replaces: bool) -> Kind {
    Kind { list, one: list, table, needs, replaces, since: None }
}

const KINDS: [Kind; 13] = [
    kind("static-dns", "static_dns", "StaticDns", true),
    kind("apgroups", "apgroup", "", false),
    kind("content-filtering", "content-filtering", "ContentFiltering", true),
    kind("trafficrules", "trafficrules", "TrafficRule", true),
    kind("trafficroutes", "trafficroutes", "TrafficRoute", true),
    kind("nat", "nat", "Nat", true),
    kind("qos-rules", "qos-rules", "Qos", true),
    kind("bgp/config", "bgp/config", "Bgp", true),
    kind("ospf/router", "ospf/router", "Ospf", true),
    kind("acl-rules", "acl-rules", "", true),
    Kind {
        list: "network-members-groups",
        one: "network-members-group",
        table: "network-members-group",
        needs: "",
        replaces: false,
        since: None,
    },
    Kind {
        list: "object-oriented-network-configs",
        one: "object-oriented-network-config",
        table: "object-oriented-network-config",
        needs: "ObjectOrientedNetworking",
        replaces: true,
        since: Some("10.1"),
    },
    Kind {
        list: "power-supervisors",
        one: "power-supervisors",
        table: "power-supervisors",
        needs: "",
        replaces: false,
        since: Some("10.2"),
    },
];

pub(super) fn answer(own: &mut Console, call: &Call<'_>, parts: &[&str]) -> Outcome<Value> {
    if let ["wireguard", network, "users", rest @ ..] = parts {
        return peers(own, call, network, rest);
    }
    let path = parts.join("/");
    let method = call.request.method.as_str();
    // Content filters are made one path deeper.
    let (path, is_create) = match path.strip_suffix("/create") {
        Some(path) if path == "content-filtering" => (path.to_owned(), true),
        _ => (path, false),
    };
    if path == "content-filtering" && !is_create && matches!(method, "POST" | "PUT") {
        // Since 10.4 the list takes no new one; a PUT without an id does nothing.
        let is_dead = method == "POST" && own.settings.release.is_from("10.4");
        if method == "PUT" || is_dead {
            return if is_dead { Err(Refusal::not_found().with_status(405)) } else { Ok(json!({})) };
        }
    }
    let (kind, id) = find(&path).ok_or_else(Refusal::not_found)?;
    if !own.settings.release.has(kind.since, None) {
        return Err(Refusal::not_found());
    }
    if !kind.needs.is_empty() {
        crate::rules::needs_gateway(own, call.site, kind.needs)?;
    }
    match (method, id) {
        ("GET", None) if path == kind.list => {
            let rows = own.store.rows(call.site, kind.table).iter();
            Ok(Value::Array(rows.map(|row| present(kind, row)).collect()))
        }
        ("GET", Some(id)) if kind.one != kind.list => own
            .store
            .find(call.site, kind.table, id)
            .map(|row| present(kind, row))
            .ok_or_else(Refusal::not_found),
        ("GET", Some(_)) => Err(Refusal::not_found().with_status(405)),
        ("POST", None) if path == kind.one => create(own, call, kind),
        ("PUT", Some(id)) => update(own, call, kind, id),
        ("DELETE", Some(id)) => {
            delete(own, call.site, kind, id)?;
            Ok(json!({}))
        }
        _ => Err(Refusal::not_found().with_status(405)),
    }
}

/// The collection of a path, and the id of one object.
fn find(path: &str) -> Option<(&'static Kind, Option<&str>)> {
    if let Some(kind) = KINDS.iter().find(|kind| kind.list == path || kind.one == path) {
        return Some((kind, None));
    }
    let (head, id) = path.rsplit_once('/')?;
    let kind = KINDS.iter().find(|kind| kind.one == head)?;
    Some((kind, Some(id)))
}

/// Objects of the newest collections call their id otherwise.
fn present(kind: &Kind, row: &Row) -> Value {
    let mut shown = shown(row);
    if kind.one != kind.list {
        let id = shown.remove("_id").unwrap_or_default();
        put(&mut shown, "id", id);
        shown.remove("site_id");
    }
    Value::Object(shown)
}

fn facts(kind: &Kind) -> &'static Collection {
    &Facts::get().v2[kind.one]
}

/// The fields of a body. Read-only ones are refused, not dropped.
fn fields(own: &Console, call: &Call<'_>, kind: &Kind) -> Outcome<Row> {
    let body = call.fields()?;
    if kind.table == "apgroup" {
        for (name, message) in
            [("attr_hidden_id", "hiddenId: must be null"), ("attr_no_delete", "nonDeletable: must be false")]
        {
            if body.get(name).is_some_and(|value| !value.is_null() && *value != json!(false)) {
                return Err(Refusal::new("InvalidPayload").with_message(message));
            }
        }
    }
    check::known(&facts(kind).fields, body, own.settings.release)
}

fn create(own: &mut Console, call: &Call<'_>, kind: &Kind) -> Outcome<Value> {
    let mut row = fields(own, call, kind)?;
    settle(own, call.site, kind, &mut row)?;
    let id = own.store.add(call.site, kind.table, row);
    let row = own.store.find(call.site, kind.table, &id).cloned().unwrap_or_default();
    own.changed(call.site, kind.table, &row, Change::Add);
    Ok(present(kind, &row))
}

fn update(own: &mut Console, call: &Call<'_>, kind: &Kind, id: &str) -> Outcome<Value> {
    let old = own.store.find(call.site, kind.table, id).cloned().ok_or_else(Refusal::not_found)?;
    if flag(&old, "is_predefined") {
        return Err(Refusal::new("CannotModifyPredefinedObject"));
    }
    let sent = fields(own, call, kind)?;
    let mut new: Row = if kind.replaces {
        let own_fields = old
            .iter()
            .filter(|(name, _)| name.starts_with('~') || matches!(name.as_str(), "_id" | "site_id"));
        own_fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    } else {
        old
    };
    new.extend(sent);
    settle(own, call.site, kind, &mut new)?;
    if let Some(stored) = own.store.find_mut(call.site, kind.table, id) {
        stored.clone_from(&new);
    }
    own.changed(call.site, kind.table, &new, Change::Update);
    Ok(present(kind, &new))
}

fn delete(own: &mut Console, site: &str, kind: &Kind, id: &str) -> Outcome<()> {
    let row = own.store.find(site, kind.table, id).cloned().ok_or_else(Refusal::not_found)?;
    if flag(&row, "attr_no_delete") || flag(&row, "is_predefined") {
        return Err(Refusal::new("NoDelete"));
    }
    rest::refuse_used(own, site, kind.table, id)?;
    rest::remove(own, site, kind.table, id);
    Ok(())
}

/// What the controller checks and fills in beyond the form of single fields.
fn settle(own: &Console, site: &str, kind: &Kind, row: &mut Row) -> Outcome<()> {
    let missing =
        |name: &str| Refusal::new("InvalidPayload").with_message(&format!("{name}: must not be null"));
    let needs = |row: &Row, name: &str| if row.contains_key(name) { Ok(()) } else { Err(missing(name)) };
    match kind.table {
        "static_dns" => dns::check(own, site, row),
        "apgroup" => {
            needs(row, "name")?;
            needs(row, "device_macs")?;
            let is_point = |mac: &&str| {
                own.store
                    .having(site, "device", "mac", mac)
                    .is_some_and(|device| text(device, "type") == "uap")
            };
            if texts(row, "device_macs").iter().all(is_point) {
                Ok(())
            } else {
                Err(Refusal::new("InvalidDeviceInApGroup"))
            }
        }
        "content-filtering" => {
            needs(row, "name")?;
            if texts(row, "categories").is_empty() {
                return Err(Refusal::new("InvalidPayload").with_message("categories: must not be empty"));
            }
            for (name, value) in [
                ("enabled", json!(true)),
                ("schedule", json!({ "mode": "ALWAYS" })),
                ("allow_list", json!([])),
                ("block_list", json!([])),
            ] {
                put_default(row, name, value);
            }
            Ok(())
        }
        "nat" => {
            needs(row, "type")?;
            // Filters gain what they do not say.
            for side in ["source_filter", "destination_filter"] {
                let filter = row.entry(side).or_insert_with(|| json!({ "filter_type": "NONE" }));
                if let Some(filter) = filter.as_object_mut() {
                    put_default(filter, "invert_address", json!(false));
                    put_default(filter, "invert_port", json!(false));
                    put_default(filter, "firewall_group_ids", json!([]));
                }
            }
            let next = own.store.rows(site, "nat").len();
            put_default(row, "rule_index", json!(next));
            put_default(row, "enabled", json!(true));
            put_default(row, "is_predefined", json!(false));
            Ok(())
        }
        "power-supervisors" => {
            needs(row, "client_mac")?;
            if crate::row::objects(row, "power_sources").is_empty() {
                put(row, "power_sources", json!([{ "mac": "02:00:5e:00:01:02", "port_idx": 5 }]));
            }
            Ok(())
        }
        "network-members-group" => {
            needs(row, "name")?;
            needs(row, "members")
        }
        "trafficrules" | "trafficroutes" => {
            needs(row, "matching_target")?;
            put_default(row, "enabled", json!(true));
            Ok(())
        }
        "qos-rules" | "acl-rules" | "object-oriented-network-config" => needs(row, "name"),
        _ => Ok(()),
    }
}

/// Peers of a tunnel: written several at once.
fn peers(own: &mut Console, call: &Call<'_>, network: &str, rest: &[&str]) -> Outcome<Value> {
    let server = own
        .store
        .find(call.site, "networkconf", network)
        .filter(|row| text(row, "vpn_type") == "wireguard-server");
    if server.is_none() {
        return Err(Refusal::new("WireguardServerNotFound").with_status(404));
    }
    let table = format!("wireguard:{network}");
    let list = call.body.as_array().cloned().unwrap_or_default();
    match (call.request.method.as_str(), rest) {
        ("GET", []) => {}
        ("POST", ["batch"]) => {
            for peer in &list {
                let mut row = peer.as_object().cloned().ok_or_else(|| Refusal::new("InvalidPayload"))?;
                if text(&row, "public_key").is_empty() || !row.get("allowed_ips").is_none_or(Value::is_array)
                {
                    return Err(Refusal::new("InvalidPayload"));
                }
                if own.store.having(call.site, &table, "public_key", text(&row, "public_key")).is_some() {
                    return Err(Refusal::new("WireguardPublicKeyUsed"));
                }
                put(&mut row, "network_id", network);
                put_default(&mut row, "allowed_ips", json!([]));
                own.store.add(call.site, &table, row);
            }
        }
        ("PUT", ["batch"]) => {
            for peer in &list {
                let id = peer["_id"].as_str().unwrap_or_default();
                let stored = own.store.find_mut(call.site, &table, id).ok_or_else(Refusal::not_found)?;
                stored.extend(peer.as_object().cloned().unwrap_or_default());
            }
        }
        ("POST", ["batch_delete"]) => {
            own.store.rows_mut(call.site, &table).retain(|row| !list.iter().any(|id| *id == row["_id"]));
        }
        _ => return Err(Refusal::not_found()),
    }
    own.provision(call.site, &["udm"]);
    Ok(Value::Array(own.store.rows(call.site, &table).iter().map(|row| Value::Object(shown(row))).collect()))
}
