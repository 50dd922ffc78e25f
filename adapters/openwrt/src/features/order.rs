//! Orderings: which rule comes before which.
//!
//! A payload names some or all sections. The named ones share out, in the order
//! given, the places that they have now; all others stay where they are.

use heddle_sdk::{Change, Danger, Fault, FaultExt, Operation, PlanStep, fault};
use serde_json::{Value, json};

use super::Notes;
use super::section::Done;
use crate::uci::{Config, Edit};

pub(crate) struct OrderFeature {
    pub(crate) id: &'static str,
    pub(crate) area: &'static str,
    pub(crate) title: &'static str,
    pub(crate) config: &'static str,
    section: &'static str,
}

pub(crate) const ORDERS: &[OrderFeature] = &[
    OrderFeature {
        id: "openwrt.firewall.rule-order",
        area: "firewall",
        title: "Order of firewall rules",
        config: "firewall",
        section: "rule",
    },
    OrderFeature {
        id: "openwrt.firewall.redirect-order",
        area: "firewall",
        title: "Order of port forwards",
        config: "firewall",
        section: "redirect",
    },
];

pub(crate) fn find(id: &str) -> Option<&'static OrderFeature> {
    ORDERS.iter().find(|feature| feature.id == id)
}

/// Names of the sections in file order; empty where one has none.
fn names(feature: &OrderFeature, config: &Config) -> Vec<(usize, String)> {
    config
        .of_kind(feature.section)
        .map(|section| (section.uid, section.text("name").unwrap_or_default().to_owned()))
        .collect()
}

/// Applies an ordering to the model.
pub(crate) fn apply(feature: &OrderFeature, change: &Change, config: &mut Config) -> Result<Done, Fault> {
    if change.operation != Operation::Update {
        return Err(fault::invalid(format!("'{}' can only be updated", feature.id)));
    }
    let payload: Value =
        serde_json::from_str(&change.payload).map_err(|_| fault::invalid("the payload is not JSON"))?;
    let wanted: Option<Vec<&str>> = payload
        .get("order")
        .and_then(Value::as_array)
        .and_then(|list| list.iter().map(Value::as_str).collect());
    let wanted = wanted.ok_or_else(|| {
        fault::invalid("'order' must be a list of names").with_field("/order", "must be a list of names")
    })?;
    let before = names(feature, config);
    let mut uids = Vec::with_capacity(wanted.len());
    for (index, name) in wanted.iter().enumerate() {
        let matching: Vec<usize> =
            before.iter().filter(|(_, found)| found == name).map(|(uid, _)| *uid).collect();
        let pointer = format!("/order/{index}");
        match matching[..] {
            [uid] if uids.contains(&uid) => {
                return Err(
                    fault::invalid(format!("'{name}' is named twice")).with_field(pointer, "is named twice")
                );
            }
            [uid] => uids.push(uid),
            [] => {
                return Err(
                    fault::not_found(format!("there is no '{name}'")).with_field(pointer, "is not there")
                );
            }
            _ => {
                return Err(fault::invalid(format!("several are called '{name}'; rename all but one first"))
                    .with_field(pointer, "is not unique"));
            }
        }
    }
    let mut next = uids.iter();
    let order = config
        .order()
        .into_iter()
        .map(|uid| if uids.contains(&uid) { *next.next().expect("as many places as names") } else { uid })
        .collect();
    let (calls, back) = config.apply(Edit::Order(order));
    let listed =
        |names: &[(usize, String)]| json!(names.iter().map(|(_, name)| name).collect::<Vec<_>>()).to_string();
    let after = names(feature, config);
    let step = PlanStep {
        summary: feature.title.to_lowercase().replacen("order", "change the order", 1),
        before: Some(listed(&before)),
        after: Some(listed(&after)),
    };
    let places: Vec<&str> =
        before.iter().filter(|(uid, _)| uids.contains(uid)).map(|(_, name)| name.as_str()).collect();
    let payload = json!({"order": places}).to_string();
    let inverse = vec![Change { payload, ..change.clone() }];
    Ok(Done { calls, back, step, danger: Danger::Normal, notes: Notes::default(), inverse: Some(inverse) })
}

/// The ordering that puts a section back to its place, when all names are unique.
pub(crate) fn change_back(id: &str, config: &Config, change: &Change) -> Option<Change> {
    let all: Vec<String> = names(find(id)?, config).into_iter().map(|(_, name)| name).collect();
    let mut unique: Vec<&String> = all.iter().filter(|name| !name.is_empty()).collect();
    unique.sort_unstable();
    unique.dedup();
    if unique.len() != all.len() || all.len() < 2 {
        return None;
    }
    Some(Change {
        feature: id.to_owned(),
        operation: Operation::Update,
        site: change.site.clone(),
        payload: json!({"order": all}).to_string(),
    })
}
