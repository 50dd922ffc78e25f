//! Orderings: which rule comes before which.
//!
//! A payload names some or all sections: the named ones share out, in the order given, the places that they have
//! now, and all others stay where they are. Or it moves one section next to another.

use std::collections::BTreeSet;

use heddle_sdk::{Change, Danger, Fault, FaultExt, Operation, PlanStep, fault};
use serde_json::{Value, json};

use super::section::Done;
use super::{Notes, SectionFeature, firewall, naming, section_feature};
use crate::touch::Touch;
use crate::uci::{Config, Edit};

pub(crate) struct OrderFeature {
    pub(crate) id: &'static str,
    pub(crate) area: &'static str,
    pub(crate) title: &'static str,
    pub(crate) config: &'static str,
    /// The feature of the sections that it orders.
    of: &'static str,
}

pub(crate) const ORDERS: &[OrderFeature] = &[
    OrderFeature {
        id: "openwrt.firewall.rule-order",
        area: "firewall",
        title: "Order of firewall rules",
        config: "firewall",
        of: "openwrt.firewall.rule",
    },
    OrderFeature {
        id: "openwrt.firewall.redirect-order",
        area: "firewall",
        title: "Order of port forwards",
        config: "firewall",
        of: "openwrt.firewall.redirect",
    },
];

pub(crate) fn find(id: &str) -> Option<&'static OrderFeature> {
    ORDERS.iter().find(|feature| feature.id == id)
}

fn sections_of(feature: &OrderFeature) -> &'static SectionFeature {
    section_feature(feature.of).expect("an ordering is of a feature of the table")
}

/// The sections in file order with their names.
fn names(feature: &OrderFeature, config: &Config) -> Vec<(usize, String)> {
    let named = naming::names(sections_of(feature), config);
    named.into_iter().map(|(uid, name)| (uid, name.join(":"))).collect()
}

/// Applies an ordering to the model.
pub(crate) fn apply(feature: &OrderFeature, change: &Change, config: &mut Config) -> Result<Done, Fault> {
    if change.operation != Operation::Update {
        return Err(fault::invalid(format!("'{}' can only be updated", feature.id)));
    }
    let payload: Value =
        serde_json::from_str(&change.payload).map_err(|_| fault::invalid("the payload is not JSON"))?;
    let config_before = config.clone();
    let (order, moved) = match (payload.get("order"), payload.get("name")) {
        (Some(_), None) => share_out(feature, &payload, config)?,
        (None, Some(_)) => move_one(feature, &payload, config)?,
        _ => {
            return Err(fault::invalid("give 'order', or 'name' with 'after' or 'before'")
                .with_field("/order", "give this, or 'name' with 'after' or 'before'"));
        }
    };
    let before = names(feature, config);
    let (calls, back) = config.apply(Edit::Order(order));
    let listed =
        |names: &[(usize, String)]| json!(names.iter().map(|(_, name)| name).collect::<Vec<_>>()).to_string();
    let step = PlanStep {
        summary: feature.title.to_lowercase().replacen("order", "change the order", 1),
        before: Some(listed(&before)),
        after: Some(listed(&names(feature, config))),
    };
    let inverse = back_again(feature, &config_before, &moved, change);
    let mut notes = Notes::default();
    firewall::review_order(&config_before, config, &mut notes);
    let touches = vec![Touch::Order(moved)];
    Ok(Done { calls, back, step, danger: Danger::Normal, notes, inverse, touches })
}

/// The sections that a payload names, in its order.
fn named(feature: &OrderFeature, wanted: &[(String, &str)], config: &Config) -> Result<Vec<usize>, Fault> {
    let mut uids = Vec::with_capacity(wanted.len());
    let mut seen = BTreeSet::new();
    let all = names(feature, config);
    for (pointer, name) in wanted {
        // An exact name first: looking up each in the file is for the rest.
        let exact = all.iter().find(|(_, known)| known == name).map(|(uid, _)| *uid);
        let uid = match exact {
            Some(uid) => Some(uid),
            None => naming::find(sections_of(feature), config, &[(*name).to_owned()])
                .map_err(|fault| fault.with_field(pointer, "stands for several sections"))?
                .map(|section| section.uid),
        };
        let uid = uid.ok_or_else(|| {
            fault::not_found(format!("there is no '{name}'")).with_field(pointer, "is not there")
        })?;
        if !seen.insert(uid) {
            return Err(
                fault::invalid(format!("'{name}' is named twice")).with_field(pointer, "is named twice")
            );
        }
        uids.push(uid);
    }
    Ok(uids)
}

fn share_out(
    feature: &OrderFeature,
    payload: &Value,
    config: &Config,
) -> Result<(Vec<usize>, Vec<usize>), Fault> {
    let wanted: Option<Vec<&str>> = payload
        .get("order")
        .and_then(Value::as_array)
        .and_then(|list| list.iter().map(Value::as_str).collect());
    let wanted = wanted.ok_or_else(|| {
        fault::invalid("'order' must be a list of names").with_field("/order", "must be a list of names")
    })?;
    let wanted: Vec<(String, &str)> =
        wanted.into_iter().enumerate().map(|(index, name)| (format!("/order/{index}"), name)).collect();
    let uids = named(feature, &wanted, config)?;
    let named: BTreeSet<usize> = uids.iter().copied().collect();
    let mut next = uids.iter();
    let order = config
        .order()
        .into_iter()
        .map(|uid| if named.contains(&uid) { *next.next().expect("as many places as names") } else { uid })
        .collect();
    Ok((order, uids))
}

/// The order with one section next to its neighbours, and all sections that it thereby moves past.
fn move_one(
    feature: &OrderFeature,
    payload: &Value,
    config: &Config,
) -> Result<(Vec<usize>, Vec<usize>), Fault> {
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    let name = text("name")
        .ok_or_else(|| fault::invalid("'name' must be a name").with_field("/name", "must be a name"))?;
    let moved = named(feature, &[("/name".to_owned(), name)], config)?[0];
    let neighbour = |field: &str| {
        text(field).map(|name| named(feature, &[(format!("/{field}"), name)], config).map(|uids| uids[0]))
    };
    // Either neighbour is enough; with both, the one before decides while it is there.
    let (after, before) = match (neighbour("after"), neighbour("before")) {
        (None, None) => {
            return Err(fault::invalid("'after' or 'before' is missing").with_field("/after", "is missing"));
        }
        (Some(Ok(after)), _) => (Some(after), None),
        (_, Some(Ok(before))) => (None, Some(before)),
        (Some(Err(fault)), _) | (None, Some(Err(fault))) => return Err(fault),
    };
    if after.or(before) == Some(moved) {
        return Err(fault::invalid(format!("'{name}' cannot be its own neighbour"))
            .with_field("/name", "is its own neighbour"));
    }
    let old = config.order();
    let mut order: Vec<usize> = old.iter().copied().filter(|uid| *uid != moved).collect();
    let place =
        order.iter().position(|uid| Some(*uid) == after.or(before)).expect("a neighbour is in the file");
    let place = if after.is_some() { place + 1 } else { place };
    order.insert(place, moved);
    let was = old.iter().position(|uid| *uid == moved).expect("it was found in the file");
    let (from, to) = (was.min(place), was.max(place));
    let kind = sections_of(feature).section;
    let passed = order[from..=to.min(order.len() - 1)].iter().copied();
    let mut moved: Vec<usize> =
        passed.filter(|uid| config.section(*uid).is_some_and(|section| section.kind == kind)).collect();
    // What it now stands next to is what it depends on, also where it passes nothing.
    moved.extend(after.or(before).filter(|uid| !moved.contains(uid)));
    Ok((order, moved))
}

/// The order before, as a change; none when names stand for places, as `Allow-Web#2` does.
fn back_again(
    feature: &OrderFeature,
    before: &Config,
    moved: &[usize],
    change: &Change,
) -> Option<Vec<Change>> {
    let places: Vec<String> = names(feature, before)
        .into_iter()
        .filter(|(uid, _)| moved.contains(uid))
        .map(|(_, name)| name)
        .collect();
    if places.len() < 2 {
        return Some(Vec::new());
    }
    let is_named = !places.iter().any(|name| name.contains('#'));
    is_named.then(|| vec![Change { payload: json!({"order": places}).to_string(), ..change.clone() }])
}

/// The ordering that puts a section back between what was before and after it, when it was not alone.
pub(crate) fn move_back(id: &str, config: &Config, uid: usize, change: &Change) -> Option<Change> {
    let all = names(find(id)?, config);
    let at = all.iter().position(|(of, _)| *of == uid)?;
    let before = at.checked_sub(1).and_then(|at| all.get(at)).map(|(_, name)| name);
    let after = all.get(at + 1).map(|(_, name)| name);
    let mut payload = json!({"name": all[at].1});
    if let Some(before) = before {
        payload["after"] = json!(before);
    }
    if let Some(after) = after {
        payload["before"] = json!(after);
    }
    (before.is_some() || after.is_some()).then(|| Change {
        feature: id.to_owned(),
        operation: Operation::Update,
        site: change.site.clone(),
        payload: payload.to_string(),
    })
}
