//! The lists that objects stand in: of the configuration, or of a parent; places in them, and their order.

use serde_json::{Value, json};

use crate::call::Call;
use crate::device::Pfsense;
use crate::facts::{Facts, Model};
use crate::query;
use crate::reply::Refusal;
use crate::represent::{self, Row};
use crate::store::{Config, Object, place_of};

pub(crate) fn parent_model(model: &Model) -> Option<&'static Model> {
    model.parent.as_deref().and_then(|parent| Facts::get().model(parent))
}

/// The list of a model: those that make certificates write into the list of certificates.
fn list_name(model: &Model) -> &str {
    match model.name.as_str() {
        "CertificateGenerate" | "CertificateSigningRequest" | "CertificateSigningRequestSign" => {
            "Certificate"
        }
        "CertificateAuthorityGenerate" => "CertificateAuthority",
        name => name,
    }
}

/// The list that a model's objects stand in.
pub(crate) fn list_of(config: &Config, model: &Model, parent: Option<&Value>) -> Vec<Object> {
    match parent_model(model) {
        None => config.list(list_name(model)).to_vec(),
        Some(above) => {
            let at = parent.and_then(|id| place_of(above, id, config.list(&above.name))).unwrap_or(0);
            config
                .list(&above.name)
                .get(at)
                .map(|object| Config::children(object, &model.name))
                .unwrap_or_default()
        }
    }
}

pub(crate) fn put_list(config: &mut Config, model: &Model, parent: Option<&Value>, list: Vec<Object>) {
    match parent_model(model) {
        None => *config.list_mut(list_name(model)) = list,
        Some(above) => {
            let at = parent.and_then(|id| place_of(above, id, config.list(&above.name))).unwrap_or(0);
            let above = config.list_mut(&above.name);
            if above.is_empty() {
                above.push(Object::new());
            }
            if let Some(object) = above.get_mut(at) {
                Config::put_children(object, &model.name, list);
            }
        }
    }
}

/// Moves the newest or changed object to its place. Returns where it stands.
pub(crate) fn place_and_sort(
    firewall: &Pfsense,
    call: &Call,
    list: &mut Vec<Object>,
) -> Result<usize, Refusal> {
    let at = list.len() - 1;
    let at = place(call, list, at)?;
    Ok(sort(firewall, call, list, at))
}

/// Carries out `placement`. A place behind the last one is an error, though the vendor means to allow it.
pub(crate) fn place(call: &Call, list: &mut Vec<Object>, at: usize) -> Result<usize, Refusal> {
    let Some(placement) = &call.placement else { return Ok(at) };
    let Some(wanted) = placement.as_i64() else {
        return Err(Refusal::unexpected("Cannot assign to property $placement of type ?int"));
    };
    let wanted = usize::try_from(wanted).unwrap_or(0);
    if wanted >= list.len() {
        let text = "Failed to set placement for Model object.";
        return Err(Refusal::server("MODEL_FAILED_TO_SET_PLACEMENT", text));
    }
    let object = list.remove(at);
    list.insert(wanted, object);
    Ok(wanted)
}

/// Sorts the stored list, by the model's own order or by that of the request.
pub(crate) fn sort(firewall: &Pfsense, call: &Call, list: &mut Vec<Object>, at: usize) -> usize {
    let model = call.model;
    let fields = call.sort_by.as_ref().unwrap_or(&model.sort);
    if fields.is_empty() {
        return at;
    }
    let usual = if model.name == "DHCPServerStaticMapping" { "SORT_NATURAL" } else { "SORT_REGULAR" };
    let flags = call.sort_flags.as_deref().unwrap_or(usual);
    let mut rows: Vec<Row> = list
        .iter()
        .enumerate()
        .map(|(at, object)| represent::row(firewall, model, Some(json!(at)), None, object))
        .collect();
    query::sort(&mut rows, fields, call.is_descending, flags);
    let places: Vec<usize> = rows
        .iter()
        .filter_map(|row| row.id.as_ref().and_then(Value::as_u64))
        .filter_map(|at| usize::try_from(at).ok())
        .collect();
    *list = places.iter().map(|at| list[*at].clone()).collect();
    places.iter().position(|old| *old == at).unwrap_or(at)
}
