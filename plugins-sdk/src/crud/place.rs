//! Which list or settings of a kind are meant: those of the controller, of a site, or of one of its parents.

use serde_json::Value;

use super::binding::{KindBinding, Within};
use super::field::{at, plain};
use super::read::{self, Ask, Row};
use super::several::{Several, together};
use super::{Place, Vendor};
use crate::{Completeness, Fault, Host, fault};

/// The places that a kind has a list or settings in, those alone that are meant at every level.
pub(crate) fn all(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    scope: &Place,
    is_meant: &dyn Fn(&Within, &Place) -> bool,
) -> Result<Vec<Place>, Fault> {
    let Some(within) = &binding.within else { return Ok(vec![scope.clone()]) };
    let parent = KindBinding::of(host, &within.kind)?;
    let mut out = Vec::new();
    for place in all(vendor, host, &parent, scope, is_meant)? {
        let rows = read::all(vendor, host, &parent, Ask::of(&place))?;
        out.extend(below(within, &place, &rows, is_meant));
    }
    Ok(out)
}

/// As [`all`], without what belongs to parents that fail, and how much of it that is. The fault only where all of them
/// fail. A list lacks those objects; what is planned needs to know all of them.
pub(crate) fn reachable(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    scope: &Place,
    is_meant: &dyn Fn(&Within, &Place) -> bool,
) -> Result<(Vec<Place>, Completeness), Fault> {
    let Some(within) = &binding.within else { return Ok((vec![scope.clone()], Completeness::Complete)) };
    let parent = KindBinding::of(host, &within.kind)?;
    let (above, complete) = reachable(vendor, host, &parent, scope, is_meant)?;
    let (mut out, mut several) = (Vec::new(), Several::default());
    for place in above {
        let rows = several.take(read::all(vendor, host, &parent, Ask::of(&place)));
        out.extend(below(within, &place, &rows.unwrap_or_default(), is_meant));
    }
    let complete = together(complete, several.complete());
    several.fault().map_or(Ok((out, complete)), Err)
}

/// The places below the rows of a parent.
fn below(
    within: &Within,
    place: &Place,
    rows: &[Row],
    is_meant: &dyn Fn(&Within, &Place) -> bool,
) -> Vec<Place> {
    let places = rows.iter().filter(|row| read::has(&row.value, &within.only, place));
    places.filter_map(|row| of_row(within, row)).filter(|place| is_meant(within, place)).collect()
}

/// Whether the parameters by which people know a parent are those that a caller names.
pub(crate) fn is_named(within: &Within, place: &Place, named: &dyn Fn(&str) -> Option<String>) -> bool {
    within.key.iter().all(|name| named(name).is_none_or(|wanted| place.get(name) == Some(&wanted)))
}

/// The place of a parent's objects; none where its row lacks a parameter.
fn of_row(within: &Within, row: &Row) -> Option<Place> {
    let mut place = row.place.clone();
    for (name, source) in &within.params {
        let value = at(&row.value, source).map(plain).or_else(|| row.place.get(source).cloned());
        place.insert(name.clone(), value.filter(|value| !value.is_empty())?);
    }
    Some(place)
}

/// The one place that a payload names.
pub(crate) fn of_payload(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &KindBinding,
    scope: &Place,
    payload: &Value,
) -> Result<Place, Fault> {
    let Some(within) = &binding.within else { return Ok(scope.clone()) };
    let named = |name: &str| payload.get(name).map(plain).filter(|text| !text.is_empty());
    let known = within.key.iter().filter_map(|name| named(name));
    let name = known.collect::<Vec<_>>().join(":");
    let mut places = all(vendor, host, binding, scope, &|within, place| is_named(within, place, &named))?;
    let field = |fault: Fault, message: &str| {
        let pointer = within.key.first().map(|name| format!("/{name}"));
        pointer.into_iter().fold(fault, |fault, pointer| crate::FaultExt::with_field(fault, pointer, message))
    };
    match places.len() {
        1 => Ok(places.remove(0)),
        0 => {
            let parent = KindBinding::of(host, &within.kind)?;
            let message = format!("there is no {} '{name}' that has a {}", parent.noun, binding.noun);
            Err(field(fault::not_found(message), "names nothing that the device has"))
        }
        several => {
            let message = format!("'{name}' names {several} objects that have a {}", binding.noun);
            Err(field(fault::invalid(message), "names several objects"))
        }
    }
}

/// The values by which people know the parent.
pub(crate) fn prefix(binding: &KindBinding, place: &Place) -> Vec<String> {
    let keys = binding.within.iter().flat_map(|within| &within.key);
    keys.map(|name| place.get(name).cloned().unwrap_or_default()).collect()
}

/// The natural key of an object in its place, as people read it.
pub(crate) fn full_key(binding: &KindBinding, place: &Place, own: &str) -> String {
    let own = Some(own.to_owned()).filter(|own| !own.is_empty());
    prefix(binding, place).into_iter().chain(own).collect::<Vec<_>>().join(":")
}
