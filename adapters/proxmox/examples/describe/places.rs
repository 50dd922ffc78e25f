//! Which parent the objects of a path belong to, and how payloads name it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::overlay::Parent;

/// Below which all paths stand.
pub(super) const BASE: &str = "/api2/json";

/// The parent of a path.
pub(super) fn parent_of<'o>(parents: &'o [Parent], path: &str) -> Option<&'o Parent> {
    parents.iter().find(|parent| {
        path.strip_prefix(parent.prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Names of the variables of a path.
pub(super) fn variables(path: &str) -> Vec<&str> {
    let open = path.split('{').skip(1);
    open.filter_map(|rest| rest.split_once('}').map(|(name, _)| name)).collect()
}

/// A path with other names for its variables.
pub(super) fn renamed(path: &str, names: &BTreeMap<String, String>) -> String {
    names.iter().fold(path.to_owned(), |path, (old, new)| {
        path.replacen(&format!("{{{old}}}"), &format!("{{{new}}}"), 1)
    })
}

/// A path as bindings have it.
pub(super) fn bound(path: &str, parent: Option<&Parent>) -> String {
    format!("{BASE}{}", parent.map_or_else(|| path.to_owned(), |parent| renamed(path, &parent.rename)))
}

/// A path of one object with `{id}` for its last variable.
pub(super) fn with_id(path: &str) -> String {
    match path.rfind('{') {
        Some(at) if path.ends_with('}') => format!("{}{{id}}", &path[..at]),
        _ => path.to_owned(),
    }
}

/// The `within` of a binding.
pub(super) fn within(parent: &Parent) -> Value {
    json!({ "kind": parent.kind, "params": parent.params, "key": parent.key })
}

/// The call that ends the task which a write at this path starts; none where the path does not say which node has it.
pub(super) fn cancel(path: &str) -> Option<Value> {
    let job = format!("{BASE}/nodes/{{node}}/tasks/{{job}}");
    let is_of_node = path.starts_with(&format!("{BASE}/nodes/{{node}}/"));
    is_of_node.then(|| json!({ "method": "DELETE", "path": job, "job": "/data" }))
}

/// How a payload writes a value that names an object.
pub(super) fn name_schema(name: &str) -> Value {
    if name == "vmid" || name == "newid" {
        json!({ "type": "integer", "minimum": 100, "maximum": 999_999_999 })
    } else {
        json!({ "type": "string", "minLength": 1, "maxLength": 256 })
    }
}
