//! Names of operations, made of verb and noun, and the groups into which the document sorts them.
//!
//! A client generator makes a method of each operation and a class of each group, so both use words of the field. They
//! follow from the path and from the nouns of the features.

use axum::http::Method;

use crate::http::routes::{Route, Routes};

/// Returns the name of an operation: `list_sites`, `create_site`, `apply_change`.
pub(super) fn id(table: &Routes, route: &Route) -> String {
    if let Some(name) = &route.doc.name {
        return name.to_string();
    }
    let nouns = table.glossaries.iter().flat_map(|glossary| glossary.nouns);
    let collection = nouns
        .filter(|(path, ..)| {
            route.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
        .max_by_key(|(path, ..)| path.len());
    match collection {
        Some((path, one, many)) => within(&route.method, &route.path[path.len()..], one, many),
        None => format!("{}_{}", verb(&route.method), words(route.path.split('/'))),
    }
}

/// An operation at a collection, at one of its objects, or at something of either.
fn within(method: &Method, rest: &str, one: &str, many: &str) -> String {
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let is_param = |part: &str| part.starts_with('{');
    let named: Vec<&str> = parts.iter().copied().filter(|part| !is_param(part)).collect();
    match (named.as_slice(), parts.first().is_some_and(|part| is_param(part))) {
        ([], false) if method == Method::GET => format!("list_{many}"),
        ([], false) => format!("{}_{one}", verb(method)),
        ([], true) => format!("{}_{one}", verb(method)),
        ([act], true) if method == Method::POST => format!("{}_{one}", act.replace('-', "_")),
        ([act], false) if method == Method::POST => format!("{}_{many}", act.replace('-', "_")),
        (of, _) if method == Method::GET => {
            let is_list = parts.last().is_some_and(|last| !is_param(last) && last.ends_with('s'));
            format!("{}_{one}_{}", if is_list { "list" } else { "get" }, words(of.iter().copied()))
        }
        (of, _) => format!("{}_{one}_{}", verb(method), words(of.iter().copied())),
    }
}

fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "create",
        "PATCH" => "update",
        "PUT" => "set",
        "DELETE" => "delete",
        _ => "get",
    }
}

fn words<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = parts
        .filter(|part| !part.is_empty() && !part.starts_with('{'))
        .map(|part| part.replace(['-', '.'], "_"))
        .collect();
    words.join("_")
}

/// Returns the name of a route's group, and its subject.
pub(super) fn group(table: &Routes, route: &Route) -> (String, String) {
    if let Some(group) = &route.doc.group {
        return group.clone();
    }
    let first = route.path.split('/').nth(1).unwrap_or_default();
    let mut groups = table.glossaries.iter().flat_map(|glossary| glossary.groups);
    match groups.find(|(known, ..)| *known == first) {
        Some((_, name, about)) => ((*name).to_owned(), (*about).to_owned()),
        None => (first.to_owned(), format!("Routes below /{first}.")),
    }
}
