//! Files that devices answer: the host keeps them, and nothing here sees their bytes.

use super::binding::{FileBinding, FilterForm, Verb};
use super::calls::form_text;
use super::path::{filled, filled_json, filled_with, unfilled, with_query};
use super::{Place, Vendor};
use crate::{Auth, Body, Fault, FaultExt, Fetching, Host, Request, Saved, SavedFile, fault};

/// The parameter of a path that has the key.
const KEY: &str = "key";

/// The file of a kind, as its binding says.
pub fn fetch(vendor: &dyn Vendor, host: &dyn Host, fetching: &Fetching<'_>) -> Result<SavedFile, Fault> {
    let binding = FileBinding::of(host, fetching.kind)?;
    let request = request(vendor, host, &binding, fetching)?;
    match host.save(request, Auth::session(vendor.session()))? {
        // A page of a browser: a login, or what a device says while it starts.
        Saved::File(file) if is_page(&file) && !binding.file.page => {
            Err(fault::not_ready(format!("the device answered a page instead of the {}", binding.noun)))
        }
        Saved::File(file) if file.size_bytes == 0 => {
            Err(fault::not_found(format!("the device has no {}", binding.noun)))
        }
        Saved::File(file) => Ok(file),
        Saved::Answer(response) => {
            vendor.content(&response)?;
            let message = format!("the device answered something else than a {}", binding.noun);
            Err(fault::generic(message).with_upstream_status(response.status))
        }
    }
}

fn is_page(file: &SavedFile) -> bool {
    file.content_type.as_deref() == Some("text/html")
}

fn request(
    vendor: &dyn Vendor,
    host: &dyn Host,
    binding: &FileBinding,
    fetching: &Fetching<'_>,
) -> Result<Request, Fault> {
    let route = &binding.file;
    let (mut place, given) = given(binding, fetching)?;
    place.extend(vendor.scope(host, fetching.site)?);
    let path = filled(&route.path, &place, "");
    if let Some(name) = unfilled(&path) {
        return Err(fault::unsupported(format!("nothing gives '{name}' of the path of {}", fetching.kind)));
    }
    let request = Request::new(route.method.method(), path);
    if route.method == Verb::Get {
        let path = with_query(&request.path, &given);
        return Ok(Request { path, ..request });
    }
    if let Some(form) = &route.form {
        let constants = filled_with(form, &place, "");
        let constants = constants.iter().map(|(name, value)| (name.clone(), form_text(value)));
        return Ok(Request { body: Body::Form(constants.chain(given).collect()), ..request });
    }
    let mut body = filled_json(&route.body.clone().unwrap_or_else(|| serde_json::json!({})), &place, "");
    for (name, value) in given {
        body[name] = value.into();
    }
    Ok(request.with_json(&body))
}

/// What people gave: parameters of the path, and those of the query or the body.
fn given(binding: &FileBinding, fetching: &Fetching<'_>) -> Result<(Place, Vec<(String, String)>), Fault> {
    let route = &binding.file;
    fetching.refuse_filters_but(&route.filters.keys().map(String::as_str).collect::<Vec<_>>())?;
    let is_in_path = |param: &str| route.path.contains(&format!("{{{param}}}"));
    let (mut place, mut others) = (Place::new(), Vec::new());
    match (fetching.key, is_in_path(KEY)) {
        (Some(key), true) => drop(place.insert(KEY.to_owned(), key.to_owned())),
        (None, true) => {
            let message = format!("a {} is fetched with the key of what it is of", binding.noun);
            return Err(fault::invalid(message).with_field("/key", "is needed"));
        }
        (Some(_), false) => {
            let message = format!("there is one {}; leave the key out", binding.noun);
            return Err(fault::invalid(message).with_field("/key", "is not taken"));
        }
        (None, false) => {}
    }
    for (name, filter) in &route.filters {
        let value = fetching.filter.iter().find(|one| one.key == *name).map(|one| one.value.clone());
        match value {
            Some(value) if is_in_path(&filter.param) => drop(place.insert(filter.param.clone(), value)),
            Some(value) if filter.form == FilterForm::Text => others.push((filter.param.clone(), value)),
            Some(_) => {
                let message = format!("the filter '{name}' of {} cannot be sent", fetching.kind);
                return Err(fault::unsupported(message));
            }
            None if filter.required => {
                let message = format!("a {} is fetched with a filter by '{name}'", binding.noun);
                return Err(fault::invalid(message).with_field("/filter", format!("name '{name}'")));
            }
            None => {}
        }
    }
    Ok((place, others))
}
