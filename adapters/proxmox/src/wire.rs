//! Bodies that the forms of the strategies cannot carry.

use heddle_sdk::{ChangePlan, Method, NativeBody};
use serde_json::{Map, Value, json};

/// Paths below which an update must name a list of what is emptied, and the list may be empty.
const FABRICS: &str = "/api2/json/cluster/sdn/fabrics/";
/// Parameters that are lists, however many members they have.
const LISTS: [&str; 3] = ["delete", "interfaces", "redistribute"];

/// Writes below these replace an object as a whole: what is left out is emptied, and an empty text is refused.
const REPLACED: [&str; 3] = ["/firewall/aliases/", "/firewall/ipset", "/firewall/groups"];

/// Writes the updates of fabrics as JSON, since no form has an empty list, and leaves out what a replacement empties.
pub(crate) fn complete(plan: &mut ChangePlan) {
    for call in &mut plan.native {
        let is_replaced = REPLACED.iter().any(|part| call.path.contains(part))
            || (call.path.ends_with("/dns") && !call.path.ends_with("/sdn/dns"));
        if is_replaced && let NativeBody::Form(fields) = &mut call.body {
            fields.retain(|(_, value)| !value.is_empty());
        }
        if call.method == Method::Put
            && call.path.starts_with(FABRICS)
            && let NativeBody::Form(fields) = &call.body
        {
            call.body = NativeBody::Json(as_json(fields).to_string());
        }
    }
}

fn as_json(fields: &[(String, String)]) -> Value {
    let mut body = Map::from_iter([("delete".to_owned(), json!([]))]);
    for (name, text) in fields {
        let values: Vec<&str> = if name == "delete" { text.split(',').collect() } else { vec![text] };
        if LISTS.contains(&name.as_str()) {
            let list = body.entry(name.clone()).or_insert_with(|| json!([]));
            if let Value::Array(items) = list {
                items.extend(values.into_iter().map(Value::from));
            }
        } else {
            body.insert(name.clone(), Value::from(text.clone()));
        }
    }
    Value::Object(body)
}
