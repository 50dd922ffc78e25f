//! What is only read.

use anyhow::bail;
use heddle_adapter_kit::{Parent, noun, say};
use serde_json::{Map, Value, json};

use super::facts::{Kind, Leaf, Name, Route};
use super::grammar::{Maker, page};
use super::overlay::Read;

/// Parameters that pages are asked for with.
const PAGING: [&str; 4] = ["page", "pageSize", "currentPage", "currentPageSize"];
/// Objects of the vendor's own that the description takes for parameters; the controller wants the word and no more.
const OBJECTS: [&str; 4] = ["queryParam", "queryDataVO", "dto", "dnsCacheQueryVO"];

/// The part of a query that is the same each time: what the parent gives, and words that the controller wants.
pub(super) fn constants(route: &Route, parent: Option<&Parent>, own: Option<&str>) -> String {
    let of_parent = |name: &String| parent.is_some_and(|parent| parent.params.contains_key(name));
    let mut parts: Vec<String> = own.map(str::to_owned).into_iter().collect();
    for (name, text) in &route.query {
        let is_required = text.as_str().is_some_and(|text| Leaf::parse(text).is_required);
        if of_parent(name) {
            parts.push(format!("{name}={{{name}}}"));
        } else if is_required && OBJECTS.contains(&name.as_str()) {
            parts.push(format!("{name}=%7B%7D"));
        }
    }
    parts.join("&")
}

/// Filters that people may give, by the name without the vendor's prefix.
fn filters(name: &Name, route: &Route, body: &[(String, Leaf)], given: &[String]) -> Map<String, Value> {
    let of_query =
        route.query.iter().filter_map(|(name, text)| Some((name.clone(), Leaf::parse(text.as_str()?))));
    // The query of a POST is a part of its path, so it has only what the controller wants.
    let of_query = of_query.filter(|(_, leaf)| name.method == "GET" || leaf.is_required);
    let of_path =
        holes(&name.path()).into_iter().map(|name| (name, Leaf { is_required: true, ..Leaf::parse("s") }));
    let asked = of_query.chain(of_path).chain(body.iter().cloned()).filter(|(name, _)| {
        let is_paging = PAGING.contains(&name.as_str()) || OBJECTS.contains(&name.as_str());
        !is_paging && !given.contains(name)
    });
    let filter = |(name, leaf): (String, Leaf)| {
        let mut filter = json!({ "param": name });
        if leaf.is_required {
            filter["required"] = json!(true);
        }
        match form(&leaf)? {
            "text" => {}
            form => filter["as"] = json!(form),
        }
        Some((name.strip_prefix("filters.").unwrap_or(&name).to_owned(), filter))
    };
    asked.filter_map(filter).collect()
}

/// The parameters in a path, but not those of the site.
fn holes(path: &str) -> Vec<String> {
    let parts = path.split('{').skip(1).filter_map(|part| part.split_once('}'));
    parts
        .map(|(name, _)| name.to_owned())
        .filter(|name| !["omadacId", "siteId"].contains(&name.as_str()))
        .collect()
}

/// What a filter becomes in a body; none where no filter can give it.
fn form(leaf: &Leaf) -> Option<&'static str> {
    match leaf.kind {
        Kind::Text | Kind::Integer | Kind::Number if leaf.is_array => Some("list"),
        Kind::Text | Kind::Integer | Kind::Number => Some("text"),
        Kind::Boolean if !leaf.is_array => Some("flag"),
        _ => None,
    }
}

/// The binding of rows, which are objects where something names each of them.
fn listed(binding: &mut Value, read: &Read, rows: &str, page: Option<Value>) {
    binding["shape"] = json!(if read.id.is_some() { "items" } else { "rows" });
    binding["key"] = json!(read.key);
    let list = &mut binding["list"];
    list["rows"] = json!(rows);
    if let Some(id) = &read.id {
        list["id"] = json!(id);
    }
    if let Some(page) = page {
        list["page"] = page;
    }
    say(list, "only", read.only.clone());
}

impl Maker<'_> {
    pub(super) fn read(&mut self, id: &str, read: &Read) -> anyhow::Result<()> {
        let Some((name, values)) = read.values.iter().next() else {
            return self.read_one(id, &read.title, read, None);
        };
        for value in values {
            let title = format!("{} {value}", read.title);
            self.read_one(&format!("{id}-{value}"), &title, read, Some((name, value)))?;
        }
        Ok(())
    }

    fn read_one(
        &mut self,
        id: &str,
        title: &str,
        read: &Read,
        value: Option<(&String, &String)>,
    ) -> anyhow::Result<()> {
        let route = self.facts.route(&read.route)?;
        let name = Name::parse(&read.route)?;
        let parent = self.parent(read.within.as_ref())?;
        let mut path = name.path();
        let mut given: Vec<String> =
            parent.into_iter().flat_map(|parent| parent.params.keys().cloned()).collect();
        if let Some((name, value)) = value {
            path = path.replace(&format!("{{{name}}}"), value);
            given.push(name.clone());
        }
        // What comes in pages and is no list is asked for as one page.
        let whole = page(route, &[]).filter(|_| self.facts.rows(route).is_none() && name.method == "GET");
        let whole = whole.map(|page| format!("page=1&pageSize={}", page["size-max"]));
        let mut query = constants(route, parent, whole.as_deref());
        let body = if name.method == "GET" { Vec::new() } else { self.facts.body(route, None) };
        given.extend(read.body.iter().filter_map(Value::as_object).flat_map(|body| body.keys().cloned()));
        let is_free = |(name, leaf): &&(String, Leaf)| !given.contains(name) && form(leaf).is_none();
        if let Some((lacking, _)) = body.iter().filter(is_free).find(|(_, leaf)| leaf.is_required) {
            bail!("its body needs '{lacking}', which no filter can give");
        }
        let asked = filters(&name, route, &body, &given);
        if name.method != "GET" {
            for param in route.query.keys().filter(|param| asked.contains_key(*param)) {
                query.push_str(&format!("&{param}={{{param}}}"));
            }
        }
        let query = query.trim_start_matches('&');
        if !query.is_empty() {
            path = format!("{path}?{query}");
        }
        let mut binding = json!({ "noun": noun(title) });
        let rows = self.facts.rows(route);
        let part = if rows.is_some() { "list" } else { "get" };
        binding[part] = json!({ "path": path });
        if name.method != "GET" {
            binding[part]["method"] = json!(name.method);
        }
        if let Some(body) = &read.body {
            binding[part]["body"] = body.clone();
        }
        say(&mut binding[part], "filters", asked);
        match rows {
            Some(rows) => listed(&mut binding, read, rows, page(route, &body)),
            None => binding["shape"] = json!("answer"),
        }
        let mut key = Vec::new();
        if let Some(parent) = parent {
            binding["within"] = parent.within();
            key.clone_from(&parent.key);
        }
        key.extend(read.key.iter().cloned());
        self.keys.insert(id.to_owned(), key);
        self.routes.read(read.route.clone());
        let area = route.area.clone();
        self.rows.add_kind(id, &area, title, binding)
    }
}
