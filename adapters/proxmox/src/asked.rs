//! Reads that need values which only people can say: filters fill the path and the query of one request.

use heddle_sdk::crud::{Vendor as _, escaped};
use heddle_sdk::{
    Auth, Completeness, Fault, FaultExt, Host, Listing, Object, ObjectPage, ObjectRef, Request, fault,
};
use serde_json::Value;

use crate::answer::Proxmox;

const ANSWER_BYTES_MAX: u32 = 8 << 20;
/// The key of an answer that is no list.
const ONLY: &str = "settings";

fn names<'b>(binding: &'b Value, which: &str) -> Vec<&'b str> {
    binding["asked"][which].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The fault of a read without what it needs.
pub(crate) fn needs_filter(kind: &str, binding: &Value) -> Fault {
    let needed = names(binding, "needs").join(", ");
    fault::invalid(format!("'{kind}' is listed with a filter by {needed}"))
        .with_field("/filter", format!("name {needed}"))
}

/// The answer to what the filters ask for, as one page.
pub(crate) fn list(host: &dyn Host, listing: &Listing<'_>, binding: &Value) -> Result<ObjectPage, Fault> {
    let (needed, taken) = (names(binding, "needs"), names(binding, "takes"));
    let all: Vec<&str> = needed.iter().chain(&taken).copied().collect();
    listing.refuse_filters_but(&all)?;
    let given = |name: &str| listing.filter.iter().find(|one| one.key == name).map(|one| one.value.as_str());
    if needed.iter().any(|name| given(name).is_none_or(str::is_empty)) {
        return Err(needs_filter(listing.kind, binding));
    }
    let mut path = binding["asked"]["path"].as_str().unwrap_or_default().to_owned();
    let mut query = Vec::new();
    for (name, value) in all.iter().filter_map(|name| Some((*name, given(name)?))) {
        let place = format!("{{{name}}}");
        if path.contains(&place) {
            path = path.replace(&place, &escaped(value));
        } else {
            query.push(format!("{}={}", escaped(name), escaped(value)));
        }
    }
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    let vendor = Proxmox::of(host);
    let mut request = Request::get(path);
    request.max_response_bytes = Some(ANSWER_BYTES_MAX);
    let answer = vendor.content(&host.send(request, Auth::session(vendor.session()))?)?;
    let items: Vec<Object> = match answer {
        Value::Array(rows) => {
            rows.iter().enumerate().map(|(at, row)| object(listing.kind, &at.to_string(), row)).collect()
        }
        Value::Null => Vec::new(),
        one => vec![object(listing.kind, ONLY, &one)],
    };
    let total = Some(items.len() as u64);
    Ok(ObjectPage { items, next: None, total, complete: Completeness::Complete })
}

fn object(kind: &str, key: &str, value: &Value) -> Object {
    let reference =
        ObjectRef { kind: kind.to_owned(), site: None, key: key.to_owned(), locators: Vec::new() };
    Object { reference, revision: None, body: value.to_string() }
}
