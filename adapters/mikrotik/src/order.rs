//! Places of rows: people name the row that shall stand behind by what they know it by, and the router by its id.

use heddle_sdk::crud::{self, KindBinding};
use heddle_sdk::{Change, Fault, FaultExt, Host, fault};
use serde_json::{Map, Value, json};

use crate::VENDOR;

/// How the features that move rows end.
const ORDER: &str = "-order";
/// The field that names the row behind.
const PLACE: &str = "place-before";
/// The row that stood behind before, for the way back.
const NEXT: &str = "next";

/// The changes with ids of rows where they name places.
pub(crate) fn by_id(host: &dyn Host, changes: &[Change]) -> Result<Vec<Change>, Fault> {
    changes.iter().map(|change| one(host, change)).collect()
}

/// Refuses a second move in the same list: the way back of each is where its row stood before the first of them.
pub(crate) fn once(changes: &[Change]) -> Result<(), Fault> {
    let mut moves: Vec<&str> = changes.iter().map(|one| one.feature.as_str()).collect();
    moves.retain(|feature| feature.ends_with(ORDER));
    moves.sort_unstable();
    match moves.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            Err(fault::invalid(format!("'{}' moves one row at a time; apply this move first", pair[0])))
        }
    }
}

fn one(host: &dyn Host, change: &Change) -> Result<Change, Fault> {
    let kind = change.feature.strip_prefix("mikrotik.").and_then(|rest| rest.strip_suffix(ORDER));
    let payload = serde_json::from_str::<Map<String, Value>>(&change.payload).ok();
    let (Some(kind), Some(mut payload)) = (kind, payload) else { return Ok(change.clone()) };
    let rows = crud::every_object(&VENDOR, host, kind, change.site.as_deref())?;
    let id_of = |key: &str| {
        let ids = rows.iter().filter_map(|(reference, _)| {
            let id = reference.locators.first()?.value.as_str();
            (reference.key == key || id == key).then_some(id)
        });
        let ids: Vec<&str> = ids.collect();
        if let [id] = ids[..] { Some(id.to_owned()) } else { None }
    };
    let own = KindBinding::of(host, kind)?.key;
    let text = |name: &String| payload.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let key = own.iter().map(text).collect::<Vec<_>>().join(":");
    let is_own = |reference: &heddle_sdk::ObjectRef| {
        reference.key == key || reference.locators.first().is_some_and(|one| one.value == key)
    };
    let known = rows.iter().find(|(reference, _)| is_own(reference));
    if let Some(next) = known.and_then(|(_, row)| row.get(PLACE)).filter(|next| !next.is_null()) {
        payload.insert(NEXT.to_owned(), next.clone());
    }
    if let Some(behind) = payload.get(PLACE).and_then(Value::as_str) {
        // An unknown id would move the row to the end without a word.
        let id = id_of(behind).ok_or_else(|| {
            fault::invalid(format!("'{behind}' is not one row that can be moved"))
                .with_field(format!("/{PLACE}"), "names no single row that a person made")
        })?;
        payload.insert(PLACE.to_owned(), json!(id));
    }
    Ok(Change { payload: Value::Object(payload).to_string(), ..change.clone() })
}
