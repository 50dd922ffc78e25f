//! What is only read: lists, single answers, and answers to what a filter asks for.

use anyhow::Context as _;
use heddle_adapter_kit::{noun, say};
use serde_json::{Map, Value, json};

use super::grammar::Maker;
use super::overlay::{FieldFacts, Read};
use super::places::{self, variables};

/// Parameters that filters cannot carry.
const HIDDEN: [&str; 5] = ["password", "username", "domain", "digest", "download"];

impl Maker<'_> {
    pub(super) fn read(&mut self, id: &str, read: &Read) -> anyhow::Result<()> {
        self.routes.cover(&read.route)?;
        let (name, route) = self.routes.find(&read.route)?;
        let area = route.area.clone();
        let (method, path) = read.route.split_once(' ').context("a route is a method and a path")?;
        let in_path = variables(name);
        let is_query = |field: &&&FieldFacts| {
            !in_path.contains(&field.name.as_str()) && !HIDDEN.contains(&field.name.as_str())
        };
        let fields = self.routes.fields(route);
        let query: Vec<&FieldFacts> = fields.iter().filter(is_query).copied().collect();
        let is_list = route.answer.as_deref() == Some("array");
        let mut binding = json!({ "noun": noun(&read.title) });
        if read.asked {
            binding["asked"] = asked(path, &query);
            return self.rows.add_kind(id, &area, &read.title, binding);
        }
        let parent = self.parent(path);
        let mut bound = places::bound(path, parent);
        if let Some(query) = &read.query {
            bound = format!("{bound}?{query}");
        }
        if let Some(parent) = parent {
            binding["within"] = places::within(parent);
        }
        if is_list {
            binding["shape"] = json!("rows");
            binding["list"] = json!({ "path": bound });
            binding["key"] = json!(read.key);
            let filters = filters(&query, parent.map(|parent| parent.key.as_slice()).unwrap_or_default());
            say(&mut binding["list"], "filters", filters);
        } else {
            binding["shape"] = json!("answer");
            binding["get"] = json!({ "path": bound });
            if method != "GET" {
                binding["get"]["method"] = json!(method);
            }
        }
        say(&mut binding, "fields", read.fields.clone());
        self.rows.add_kind(id, &area, &read.title, binding)
    }
}

/// Filters that become parameters of the query; those of the parent's key keep their names.
fn filters(query: &[&FieldFacts], taken: &[String]) -> Map<String, Value> {
    let free = query.iter().filter(|field| !taken.contains(&field.name));
    free.map(|field| (field.name.clone(), json!({ "param": field.name }))).collect()
}

/// A read that this adapter carries out by itself: filters fill the path and the query.
fn asked(path: &str, query: &[&FieldFacts]) -> Value {
    let needed: Vec<&str> = variables(path)
        .into_iter()
        .chain(query.iter().filter(|field| field.required).map(|field| field.name.as_str()))
        .collect();
    let optional: Vec<&str> =
        query.iter().filter(|field| !field.required).map(|field| field.name.as_str()).collect();
    json!({ "path": format!("{}{path}", places::BASE), "needs": needed, "takes": optional })
}
