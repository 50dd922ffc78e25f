//! What is only read.

use heddle_adapter_kit::{Access, Parent, noun, say};
use serde_json::{Map, Value, json};

use super::facts::{Api, Body, Name, params};
use super::grammar::{Maker, listed};
use super::overlay::Read;

/// Parameters that pages are asked for with, or that belong to every path.
const OWN: [&str; 5] = ["offset", "limit", "site", "siteId", "id"];

impl Maker<'_> {
    pub(super) fn read(&mut self, id: &str, read: &Read) -> anyhow::Result<()> {
        let route = self.route(&read.route)?;
        let name = Name::parse(&read.route)?;
        let parent = self.parent(read.within.as_ref())?;
        let body = if name.method == "GET" { Body::default() } else { self.body(&read.route)? };
        let asked = filters(name.path, &route.query.keys().collect::<Vec<_>>(), &body, parent);
        let mut binding = json!({ "noun": noun(&read.title) });
        let is_of_one = read.answer || parent.is_some() && read.row.is_none();
        if is_of_one {
            binding["shape"] = json!("answer");
            binding["get"] = json!({ "path": name.path });
            if name.api() == Api::First && !name.is_of_console() {
                binding["get"]["item"] = json!("/data");
            }
            say(&mut binding["get"], "filters", asked);
        } else {
            binding["shape"] = json!(if read.row.is_some() { "items" } else { "rows" });
            let mut list = listed(&name, name.path);
            if let Some(rows) = &read.rows {
                list["rows"] = json!(rows);
            }
            if let Some(row) = &read.row {
                list["id"] = json!(row);
            }
            say(&mut list, "filters", asked);
            binding["list"] = list;
            say(&mut binding, "key", json!(read.key));
            if !read.hidden.is_empty() {
                // Only what is named is shown.
                let shown =
                    ["_id", "note", "status", "create_time", "duration", "quota", "used", "for_hotspot"];
                let fields = shown.into_iter().map(|name| (name.to_owned(), json!("json")));
                binding["fields"] = Value::Object(fields.collect());
            }
        }
        let mut key = Vec::new();
        if let Some(parent) = parent {
            binding["within"] = parent.within();
            key.clone_from(&parent.key);
        }
        key.extend(read.key.iter().cloned());
        self.keys.insert(id.to_owned(), key);
        if read.per.is_some() {
            self.of_controller.insert(("kinds", id.to_owned()));
        }
        if !read.again {
            self.claim(&read.route, Access::Read);
        }
        self.rows.add_kind(id, &read.area, &read.title, binding)
    }
}

/// Filters that people may give: those of the query and of the body, and what stands in the path.
fn filters(path: &str, query: &[&String], body: &Body, parent: Option<&Parent>) -> Map<String, Value> {
    let given = |name: &str| parent.is_some_and(|parent| parent.params.contains_key(name));
    let in_path = params(path).into_iter().filter(|name| !given(name)).map(|name| (name, json!({}), true));
    let in_query = query.iter().map(|name| (name.as_str(), json!({}), false));
    let in_body = body
        .properties
        .iter()
        .map(|(name, schema)| (name.as_str(), schema.clone(), body.required.contains(name)));
    let asked = in_path.chain(in_query).chain(in_body).filter(|(name, ..)| !OWN.contains(name));
    let filter = |(name, schema, is_required): (&str, Value, bool)| {
        let mut filter = json!({ "param": name });
        say(&mut filter, "required", is_required);
        match schema["type"].as_str() {
            Some("array") => filter["as"] = json!("list"),
            Some("boolean") => filter["as"] = json!("flag"),
            _ => {}
        }
        (name.trim_start_matches('_').to_owned(), filter)
    };
    asked.map(filter).collect()
}
