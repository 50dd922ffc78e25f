//! Rules that switches enforce, in one order for the site.

use serde_json::{Value, json};

use crate::console::{Change, Console};
use crate::official::{Answered, Call, absent, invalid, page};
use crate::reply::Outcome;
use crate::row::{Row, object, put, text, texts};

const TABLE: &str = "acl_rule";

pub(super) fn answer(own: &mut Console, call: &Call<'_>) -> Answered {
    let site = call.site.as_str();
    match (call.request.method.as_str(), call.route.path.as_str()) {
        ("GET", "acl-rules") => {
            let rows = own
                .store
                .rows(site, TABLE)
                .iter()
                .enumerate()
                .map(|(place, row)| shown(place, row))
                .collect();
            page::of(call, rows)
        }
        ("GET", "acl-rules/ordering") => Ok(ordering(own, site)),
        ("PUT", "acl-rules/ordering") => reorder(own, call),
        ("POST", _) => {
            check(own, call)?;
            let mut row = Row::new();
            put(&mut row, "~official", json!(call.body));
            put(&mut row, "name", text(&call.body, "name"));
            let id = own.store.add(site, TABLE, row);
            let row = own.store.find(site, TABLE, &id).cloned().unwrap_or_default();
            own.changed(site, TABLE, &row, Change::Add);
            Ok(one(own, site, &id))
        }
        (method, _) => {
            let id = own.store.id_of(site, TABLE, call.id()).ok_or_else(|| absent("ACL rule", call.id()))?;
            match method {
                "PUT" => {
                    check(own, call)?;
                    if let Some(row) = own.store.find_mut(site, TABLE, &id) {
                        put(row, "~official", json!(call.body));
                        put(row, "name", text(&call.body, "name"));
                    }
                    let row = own.store.find(site, TABLE, &id).cloned().unwrap_or_default();
                    own.changed(site, TABLE, &row, Change::Update);
                }
                "DELETE" => {
                    if let Some(row) = own.store.remove(site, TABLE, &id) {
                        own.changed(site, TABLE, &row, Change::Delete);
                    }
                    return Ok(Value::Null);
                }
                _ => {}
            }
            Ok(one(own, site, &id))
        }
    }
}

fn one(own: &Console, site: &str, id: &str) -> Value {
    let mut rows = own.store.rows(site, TABLE).iter().enumerate();
    let found = rows.find(|(_, row)| text(row, "_id") == id);
    found.map_or(Value::Null, |(place, row)| shown(place, row))
}

/// The place decides; an index that was sent does not.
fn shown(place: usize, row: &Row) -> Value {
    let mut made = row.get("~official").cloned().unwrap_or_default();
    made["id"] = json!(text(row, "~uuid"));
    made["index"] = json!(place);
    made["metadata"] = json!({ "origin": "USER_DEFINED" });
    made
}

/// What the parts of a rule that the contract leaves open have to be.
fn check(own: &Console, call: &Call<'_>) -> Outcome<()> {
    let body = &call.body;
    let is_mac = text(body, "type") == "MAC";
    let (kinds, lists): (&[&str], &[(&str, &str)]) = if is_mac {
        (&["MAC_ADDRESSES"], &[("MAC_ADDRESSES", "macAddresses")])
    } else {
        (
            &["IP_ADDRESSES_OR_SUBNETS", "NETWORKS", "PORTS"],
            &[
                ("IP_ADDRESSES_OR_SUBNETS", "ipAddressesOrSubnets"),
                ("NETWORKS", "networkIds"),
                ("PORTS", "portFilter"),
            ],
        )
    };
    for side in ["sourceFilter", "destinationFilter"] {
        let Some(filter) = object(body, side) else { continue };
        let kind = text(filter, "type");
        if !kinds.contains(&kind) {
            return Err(invalid(&format!("'{side}.type' must be one of {}", kinds.join(", "))));
        }
        let list = lists.iter().find(|(own, _)| *own == kind).map_or("", |(_, list)| *list);
        if filter.get(list).and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Err(invalid(&format!("'{side}.{list}' must not be empty")));
        }
        for id in texts(filter, "networkIds") {
            own.store.id_of(&call.site, "networkconf", id).ok_or_else(|| absent("network", id))?;
        }
    }
    let devices =
        object(body, "enforcingDeviceFilter").map(|filter| texts(filter, "deviceIds")).unwrap_or_default();
    for id in devices {
        own.store.id_of(&call.site, "device", id).ok_or_else(|| absent("device", id))?;
    }
    if is_mac {
        let id = text(body, "networkIdFilter");
        own.store.id_of(&call.site, "networkconf", id).ok_or_else(|| absent("network", id))?;
    }
    Ok(())
}

fn ordering(own: &Console, site: &str) -> Value {
    let ids: Vec<&str> = own.store.rows(site, TABLE).iter().map(|row| text(row, "~uuid")).collect();
    json!({ "orderedAclRuleIds": ids })
}

/// The new order names every rule.
fn reorder(own: &mut Console, call: &Call<'_>) -> Answered {
    let sent = texts(&call.body, "orderedAclRuleIds");
    let rows = own.store.rows(&call.site, TABLE);
    let is_whole = sent.len() == rows.len() && rows.iter().all(|row| sent.contains(&text(row, "~uuid")));
    if !is_whole {
        return Err(invalid("'orderedAclRuleIds' must name every user-defined ACL rule"));
    }
    let place = |row: &Row| sent.iter().position(|id| *id == text(row, "~uuid"));
    own.store.rows_mut(&call.site, TABLE).sort_by_key(place);
    own.provision(&call.site, &["usw"]);
    Ok(ordering(own, &call.site))
}
