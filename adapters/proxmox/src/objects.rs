//! Objects as the inventory shows them: without what is absent, and with what names them.

use heddle_sdk::{Fault, Host, Listing, Object, ObjectPage, crud};
use serde_json::Value;

use crate::answer::Proxmox;
use crate::asked;

/// A page of objects.
pub(crate) fn list(host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
    let binding = host.kind_binding(listing.kind).unwrap_or_default();
    if binding.get("asked").is_some() {
        return asked::list(host, listing, &binding);
    }
    let mut page = crud::list_objects(&Proxmox::of(host), host, listing)?;
    page.items.iter_mut().for_each(|object| tidy(object, &binding));
    Ok(page)
}

/// One object by its natural key.
pub(crate) fn get(host: &dyn Host, kind: &str, site: Option<&str>, key: &str) -> Result<Object, Fault> {
    let binding = host.kind_binding(kind).unwrap_or_default();
    if binding.get("asked").is_some() {
        return Err(asked::needs_filter(kind, &binding));
    }
    let mut object = crud::get_object(&Proxmox::of(host), host, kind, site, key)?;
    tidy(&mut object, &binding);
    Ok(object)
}

/// Takes out what is absent: lists tell only a part of an object, and what they leave out is not empty. Answers that
/// leave the object's own name out get it back.
fn tidy(object: &mut Object, binding: &Value) {
    let Ok(Value::Object(mut body)) = serde_json::from_str::<Value>(&object.body) else { return };
    body.retain(|_, value| !value.is_null());
    let names: Vec<&str> =
        binding["key"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if let [name] = names[..]
        && !body.contains_key(name)
    {
        let parents = binding["within"]["key"].as_array().map_or(0, Vec::len);
        let own = object.reference.key.splitn(parents + 1, ':').nth(parents).unwrap_or_default();
        let field = &binding["fields"][name];
        let number = own.parse::<u64>().ok().filter(|_| field == "number" || field["type"] == "number");
        body.insert(name.to_owned(), number.map_or_else(|| Value::from(own), Value::from));
    }
    object.body = Value::Object(body).to_string();
}
