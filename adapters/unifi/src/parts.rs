//! Elements of lists that an update writes as a whole: ports, radios and outlets of a device.
//!
//! A change of one is planned as a change of the whole list, with the other elements as they are. What a reviewer sees and
//! what takes it back speak of the element alone.

use std::collections::BTreeMap;

use heddle_sdk::{Change, ChangePlan, Fault, FaultExt, Host, Operation, PlanStep, fault, json as sdk_json};
use serde_json::{Map, Value, json};

use crate::answer::rows;
use crate::site;

/// A feature of elements.
struct Kind {
    feature: &'static str,
    /// The list that they stand in.
    list: &'static str,
    /// What tells one from the others.
    by: &'static str,
    /// What people call one.
    noun: &'static str,
    /// The table of all that a device has; none where no table has all of them.
    table: Option<&'static str>,
}

const PARTS: [Kind; 4] = [
    Kind {
        feature: "unifi.ports.port",
        list: "port_overrides",
        by: "port_idx",
        noun: "port",
        table: Some("port_table"),
    },
    Kind {
        feature: "unifi.wifi.radio",
        list: "radio_table",
        by: "radio",
        noun: "radio",
        table: Some("radio_table"),
    },
    Kind {
        feature: "unifi.devices.outlet",
        list: "outlet_overrides",
        by: "index",
        noun: "outlet",
        table: None,
    },
    Kind {
        feature: "unifi.devices.gateway-port",
        list: "ethernet_overrides",
        by: "ifname",
        noun: "port of the gateway",
        table: None,
    },
];
/// What names a device in payloads.
const DEVICE: &str = "mac";

/// Changes of whole lists, and what they were asked as.
pub(crate) struct Whole {
    pub(crate) changes: Vec<Change>,
    /// The elements before and after, by the position of the change in `changes`.
    parts: BTreeMap<usize, Part>,
}

/// An element before and after a change.
struct Part {
    summary: String,
    before: Map<String, Value>,
    after: Map<String, Value>,
    /// The change that takes it back.
    back: Change,
}

/// The changes in the form in which they are planned.
pub(crate) fn whole(host: &dyn Host, changes: &[Change]) -> Result<Whole, Fault> {
    let mut out = Whole { changes: Vec::new(), parts: BTreeMap::new() };
    // Lists as the changes so far leave them.
    let mut lists: BTreeMap<(String, String, &str), Listed> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        let Some(kind) = PARTS.iter().find(|kind| kind.feature == change.feature) else {
            out.changes.push(change.clone());
            continue;
        };
        if change.operation != Operation::Update {
            return Err(fault::unsupported(format!("'{}' has no operation but 'update'", change.feature)));
        }
        let asked: Map<String, Value> = serde_json::from_str(&change.payload)
            .map_err(|_| fault::invalid("the payload is not an object"))?;
        let site = site::chosen(host, change.site.as_deref())?;
        let mac = asked.get(DEVICE).and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let place = (site, mac, kind.list);
        if !lists.contains_key(&place) {
            lists.insert(place.clone(), of_device(host, kind, &place)?);
        }
        let list = lists.entry(place.clone()).or_default();
        list.require(kind, &asked)?;
        let part = laid(change, kind, &asked, &mut list.elements);
        let payload = json!({ DEVICE: place.1, kind.list: list.elements });
        out.changes.push(Change { payload: payload.to_string(), ..change.clone() });
        out.parts.insert(index, part);
    }
    Ok(out)
}

/// A list of a device.
#[derive(Default)]
struct Listed {
    elements: Vec<Value>,
    /// What tells apart all that the device has.
    known: Vec<Value>,
}

impl Listed {
    /// Refuses an element that the device does not have, and one of several that nothing tells apart.
    fn require(&self, kind: &Kind, asked: &Map<String, Value>) -> Result<(), Fault> {
        let Kind { by, noun, .. } = kind;
        let name = asked.get(*by).cloned().unwrap_or_default();
        let own = self.elements.iter().filter(|element| is_named(element.get(*by), &name)).count();
        let refused =
            |message: String, reason: &str| Err(fault::invalid(message).with_field(format!("/{by}"), reason));
        if own > 1 {
            return refused(format!("the device has {own} of the {noun} {name}"), "names several of them");
        }
        let is_known = own == 1 || self.known.iter().any(|known| is_named(Some(known), &name));
        if kind.table.is_some() && !is_known {
            return refused(format!("the device has no {noun} {name}"), "names none of the device");
        }
        Ok(())
    }
}

/// A list of a device as it is.
fn of_device(
    host: &dyn Host,
    kind: &Kind,
    (site, mac, list): &(String, String, &str),
) -> Result<Listed, Fault> {
    let devices = rows(host, &format!("/api/s/{site}/stat/device"))?;
    let is_meant =
        |row: &&Value| sdk_json::text(row, "/mac").is_some_and(|own| own.eq_ignore_ascii_case(mac));
    let device = devices.iter().find(is_meant).ok_or_else(|| {
        fault::not_found(format!("there is no device '{mac}'"))
            .with_field("/mac", "names no device of the site")
    })?;
    let table = kind.table.map(|table| sdk_json::items(device, &format!("/{table}")));
    let known = table.unwrap_or_default().iter().filter_map(|one| one.get(kind.by).cloned()).collect();
    Ok(Listed { elements: sdk_json::items(device, &format!("/{list}")).to_vec(), known })
}

/// Lays what is asked over the element of a list. An element that has nothing but its name is left out.
fn laid(
    change: &Change,
    Kind { feature, by, noun, .. }: &Kind,
    asked: &Map<String, Value>,
    list: &mut Vec<Value>,
) -> Part {
    let name = asked.get(*by).cloned().unwrap_or_default();
    let at = list.iter().position(|element| is_named(element.get(*by), &name));
    let before = at.and_then(|at| list[at].as_object().cloned()).unwrap_or_default();
    let mut after = before.clone();
    after.insert((*by).to_owned(), name.clone());
    let mut back = Map::from_iter([
        (DEVICE.to_owned(), asked.get(DEVICE).cloned().unwrap_or_default()),
        ((*by).to_owned(), name.clone()),
    ]);
    for (field, value) in asked.iter().filter(|(field, _)| *field != DEVICE && field != by) {
        back.insert(field.clone(), before.get(field).cloned().unwrap_or_default());
        if value.is_null() {
            after.remove(field);
        } else {
            after.insert(field.clone(), value.clone());
        }
    }
    let is_bare = after.len() == 1;
    match at {
        Some(at) if is_bare => drop(list.remove(at)),
        Some(at) => list[at] = Value::Object(after.clone()),
        None if is_bare => {}
        None => list.push(Value::Object(after.clone())),
    }
    let label = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
    let device = asked.get(DEVICE).and_then(Value::as_str).unwrap_or_default();
    Part {
        summary: format!("update {noun} '{label}' of '{device}'"),
        before,
        after,
        back: Change {
            feature: (*feature).to_owned(),
            operation: Operation::Update,
            site: change.site.clone(),
            payload: Value::Object(back).to_string(),
        },
    }
}

/// Numbers are texts on some releases.
fn is_named(found: Option<&Value>, wanted: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    found.is_some_and(|found| text(found) == text(wanted))
}

impl Whole {
    /// Says in a plan what becomes of elements, and how they go back.
    pub(crate) fn tell(self, plan: &mut ChangePlan) {
        let has_calls = !plan.native.is_empty();
        for (index, part) in &self.parts {
            let Some(step) = plan.steps.get_mut(*index) else { continue };
            let shown = |element: &Map<String, Value>| Value::Object(element.clone()).to_string();
            let is_same = part.before == part.after;
            let summary =
                if is_same { format!("{}: it is so already", part.summary) } else { part.summary.clone() };
            *step = PlanStep { summary, before: Some(shown(&part.before)), after: Some(shown(&part.after)) };
        }
        if !self.parts.is_empty()
            && has_calls
            && let Some(inverse) = &mut plan.inverse
        {
            let known: Vec<Change> = std::mem::take(inverse);
            let is_part = |change: &Change| PARTS.iter().any(|kind| kind.feature == change.feature);
            let backs = self.parts.into_values().rev().map(|part| part.back);
            inverse.extend(backs);
            inverse.extend(known.into_iter().filter(|change| !is_part(change)));
        }
    }
}
