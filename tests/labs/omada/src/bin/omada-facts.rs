//! Makes `src/facts.json` from the two descriptions of the vendor's interface: the contract (routes, fields,
//! types,
//! limits) and the overlay (which routes serve one collection, natural keys, how a create answers).
//!
//! Only names, types, ranges and enumerations are taken. A field is one text: stars for arrays, a letter for
//! the type
//! or `#` and the number of a shape, `!` when it is required, then a range `1..64` or an enumeration `0|1|2`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use serde_json::{Map, Value, json};

/// Writes the facts of the Omada interface.
#[derive(Parser)]
struct Options {
    /// The contract.
    contract: PathBuf,
    /// The overlay.
    overlay: PathBuf,
    /// The file to write.
    output: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let read = |path: &PathBuf| -> anyhow::Result<Value> {
        let text = std::fs::read(path).with_context(|| path.display().to_string())?;
        Ok(serde_json::from_slice(&text)?)
    };
    let (contract, overlay) = (read(&options.contract)?, read(&options.overlay)?);
    let mut items = Vec::new();
    let mut places = Places::new();
    for entry in rows(&overlay["items"]).filter(|entry| entry["scope"] != "msp") {
        collect(entry, items.len(), &mut places);
        items.push(item(entry));
    }
    let read_by_post: Vec<&str> = rows(&overlay["reads_by_post"]).filter_map(Value::as_str).collect();
    let mut shapes = Shapes::default();
    let mut routes = Vec::new();
    for operation in rows(&contract["operations"]).filter(|operation| operation["scope"] != "msp") {
        let name = format!("{} {}", text(operation, "method"), text(operation, "path"));
        let Some((number, label, is_main)) = places.get(&name) else { continue };
        let is_read = text(operation, "method") == "GET" || read_by_post.contains(&name.as_str());
        routes.push(route(operation, *number, role(label, *is_main, is_read), &mut shapes));
    }
    let facts = [("items", items), ("shapes", shapes.list), ("routes", routes)];
    let parts: Vec<String> = facts
        .iter()
        .map(|(name, list)| {
            let lines: Vec<String> = list.iter().map(Value::to_string).collect();
            format!("\"{name}\":[\n{}\n]", lines.join(",\n"))
        })
        .collect();
    std::fs::write(&options.output, format!("{{\n{}\n}}\n", parts.join(",\n")))?;
    Ok(())
}

/// Where each route stands in the overlay: number of the item, label, whether the label is one of the agreed
/// words.
type Places = BTreeMap<String, (usize, String, bool)>;

fn collect(entry: &Value, number: usize, places: &mut Places) {
    for group in ["routes", "web", "template", "older", "also", "shared"] {
        for (label, names) in entry[group].as_object().into_iter().flatten() {
            let names: Vec<&Value> =
                names.as_array().map_or_else(|| vec![names], |list| list.iter().collect());
            for name in names.into_iter().filter_map(Value::as_str) {
                let place = (number, label.clone(), group != "also");
                if group == "routes" {
                    places.insert(name.to_owned(), place);
                } else {
                    places.entry(name.to_owned()).or_insert(place);
                }
            }
        }
    }
}

/// What a route does to its collection.
fn role(label: &str, is_main: bool, is_read: bool) -> &'static str {
    // The same setting, reached by the gateway.
    let word = label.trim_start_matches("by_gateway_").split('_').next().unwrap_or_default();
    match word {
        // A file is no row of the collection.
        _ if label == "delete_file" => "do",
        "list" | "paged" | "brief" => "list",
        "get" if is_read => "get",
        _ if is_read && !is_main => "read",
        "create" if !is_read => "create",
        "update" if !is_read => "update",
        "delete" if !is_read => "delete",
        "batch" if label == "batch_delete" => "delete",
        "toggle" => "toggle",
        "order" => "order",
        _ if is_read => "read",
        _ => "do",
    }
}

fn item(entry: &Value) -> Value {
    let routes = &entry["routes"];
    let first = ["list", "get", "update", "create", "do"].iter().find_map(|label| routes[label].as_str());
    let parents: Vec<&str> = match first {
        Some(name)
            if routes["list"].is_string()
                || entry["shape"] == "singleton"
                || DOCUMENTS.contains(&text(entry, "id")) =>
        {
            parameters(name)
        }
        _ => Vec::new(),
    };
    // A parameter that the create does not have chooses rows, not the collection.
    let made = routes["create"].as_str().map(parameters);
    let parents = parents.into_iter().filter(|name| made.as_ref().is_none_or(|made| made.contains(name)));
    let is_document = entry["shape"] == "singleton" || DOCUMENTS.contains(&text(entry, "id"));
    let is_collection =
        routes["list"].is_string() && entry["shape"] != "status" && entry["shape"] != "log" && !is_document;
    let created = entry["created"].as_str().unwrap_or_default();
    let created = match created.split_once("answer: result.") {
        Some((_, name)) => name.split(' ').next().unwrap_or("id"),
        None if created.starts_with("inner") => "inner",
        None if created.starts_with("a result") => "bare",
        None => "",
    };
    let mut facts = json!({
        "id": entry["id"],
        "collection": is_collection,
        "document": is_document,
        "bare": entry["rows"] == "bare array" && !is_document,
        "id_field": id_field(entry),
        "key": if entry["key_is"] == "unique at the vendor" { entry["natural_key"].clone() } else { json!([]) },
        "created": created,
        "merges": entry["partial_update"] != "replaces",
        "web_merges": entry["partial_update_web"] == "merges",
        "parents": parents.filter(|name| !SCOPES.contains(name)).collect::<Vec<_>>(),
        "uses": entry["references"],
    });
    if let Some(fields) = facts.as_object_mut() {
        fields.retain(|_, value| {
            !matches!(value, Value::Null | Value::Bool(false)) && *value != json!([]) && *value != ""
        });
    }
    facts
}

/// What the overlay calls lists, and is written as one object.
const DOCUMENTS: [&str; 3] = ["wifi.ap-override", "olt.service-profile-pots", "olt.onu-auto-auth-port"];

/// The field of a row with its id. Where a path names a parent before it, the overlay took that one.
fn id_field(entry: &Value) -> Value {
    match text(entry, "id") {
        "firewall.ip-mac-binding" => Value::Null,
        "olt.gem-port" => json!("gemPortId"),
        "olt.gem-mapping" => json!("gemMappingId"),
        "voip.call-forwarding" => json!("ruleId"),
        "insights.report-tab" => json!("tabId"),
        "switch.port-tag" => json!("tagId"),
        _ => entry["id_field"].clone(),
    }
}

const ANSWER_FIELDS_MAX: usize = 90;
const SCOPES: [&str; 3] = ["omadacId", "siteId", "siteTemplateId"];

fn parameters(name: &str) -> Vec<&str> {
    name.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
}

fn route(operation: &Value, item: usize, role: &str, shapes: &mut Shapes) -> Value {
    let mut body = Node::default();
    let mut query = Map::new();
    let mut has_body = false;
    for field in rows(&operation["fields"]) {
        let leaf = Leaf::of_field(field);
        match text(field, "in") {
            "query" if leaf.is_required || !leaf.limits.is_empty() => {
                query.insert(text(field, "name").to_owned(), json!(leaf.to_text(&leaf.letter)));
            }
            "body" => {
                has_body = true;
                body.place(text(field, "name"), leaf);
            }
            _ => {}
        }
    }
    let mut answer = Node::default();
    let lines: Vec<&str> = rows(&operation["response"]).filter_map(Value::as_str).collect();
    for line in lines.iter().filter(|line| **line != "paginated") {
        let (name, kind) = line.split_once(':').unwrap_or((line, "object"));
        let (kind, values) = kind.split_once('=').unwrap_or((kind, ""));
        answer.place(name, Leaf { limits: values.to_owned(), ..Leaf::of_type(kind) });
    }
    let body = if has_body { body.to_text(shapes) } else { String::new() };
    let answer = if lines.is_empty() { String::new() } else { answer.to_text(shapes) };
    let query = if query.is_empty() { String::new() } else { shapes.number(Value::Object(query)) };
    let codes = operation["error_codes"].as_array().cloned().unwrap_or_default();
    // Which of the two descriptions list it: a release of that generation has the route.
    let seen: Vec<&str> = rows(&operation["seen_in"]).filter_map(Value::as_str).collect();
    let era = match seen.as_slice() {
        ["2026-04"] => "new",
        ["2025-10"] => "old",
        _ => "",
    };
    // The contract lists no more fields of an answer than this: the rest is not known.
    let is_cut = lines.len() >= ANSWER_FIELDS_MAX;
    let (method, path) = (text(operation, "method"), short(text(operation, "path")));
    json!([method, path, item, role, body, query, answer, codes, era, u8::from(is_cut)])
}

/// The path with a word for what most paths begin with: `v1 site …`, `v2 template …`, `web …`.
fn short(path: &str) -> String {
    let path = path.replacen("/openapi/", "", 1).replacen("/{omadacId}/api/v2/", "web/{omadacId}/", 1);
    let scopes = [
        ("/{omadacId}/sites/{siteId}", " site "),
        ("/{omadacId}/sitetemplates/{siteTemplateId}", " template "),
    ];
    for (long, word) in scopes {
        if let Some((version, rest)) = path.split_once(&format!("{long}/")) {
            return format!("{version}{word}{rest}");
        }
    }
    path.replacen("/{omadacId}/", " all ", 1)
}

/// The object shapes, each written once.
#[derive(Default)]
struct Shapes {
    list: Vec<Value>,
    known: BTreeMap<String, usize>,
}

impl Shapes {
    fn number(&mut self, shape: Value) -> String {
        let number = *self.known.entry(shape.to_string()).or_insert_with(|| {
            self.list.push(shape);
            self.list.len() - 1
        });
        format!("#{number}")
    }
}

#[derive(Clone, Default)]
struct Leaf {
    stars: String,
    letter: String,
    is_required: bool,
    limits: String,
}

impl Leaf {
    fn of_type(name: &str) -> Self {
        let (stars, name) = match name.strip_prefix("array<") {
            Some(inner) => ("*", inner.trim_end_matches('>')),
            None => ("", name),
        };
        let letter = match name {
            "string" => "s",
            "integer" => "i",
            "number" => "n",
            "boolean" => "b",
            "object" => "o",
            _ => "a",
        };
        Self { stars: stars.to_owned(), letter: letter.to_owned(), ..Self::default() }
    }

    fn of_field(field: &Value) -> Self {
        let mut leaf = Self::of_type(text(field, "type"));
        leaf.is_required = field["required"] == true;
        let range = |low: &Value, high: &Value| {
            let part = |value: &Value| if value.is_null() { String::new() } else { value.to_string() };
            if low.is_null() && high.is_null() {
                String::new()
            } else {
                format!("{}..{}", part(low), part(high))
            }
        };
        let values: Vec<String> =
            rows(&field["enum"]).map(|value| value.to_string().replace('"', "")).collect();
        leaf.limits = if !values.is_empty() {
            values.join("|")
        } else if leaf.letter == "s" {
            range(&field["min_len"], &field["max_len"])
        } else {
            range(&field["min"], &field["max"])
        };
        leaf
    }

    fn to_text(&self, kind: &str) -> String {
        let mark = if self.is_required { "!" } else { "" };
        let space = if self.limits.is_empty() { "" } else { " " };
        format!("{}{kind}{mark}{space}{}", self.stars, self.limits)
    }
}

/// A field with the fields inside it.
#[derive(Default)]
struct Node {
    leaf: Leaf,
    inside: Map<String, Value>,
    children: BTreeMap<String, Node>,
}

impl Node {
    fn place(&mut self, path: &str, leaf: Leaf) {
        if path == "[]" || path.is_empty() {
            self.leaf = Leaf { stars: "*".to_owned(), ..leaf };
            return;
        }
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let name = first.trim_end_matches("[]");
        let is_array = first.ends_with("[]");
        if name.is_empty() {
            "*".clone_into(&mut self.leaf.stars);
            return self.place(rest, leaf);
        }
        self.inside.entry(name.to_owned()).or_insert(Value::Null);
        let child = self.children.entry(name.to_owned()).or_default();
        if is_array {
            "*".clone_into(&mut child.leaf.stars);
        }
        if rest.is_empty() {
            let stars = child.leaf.stars.clone();
            child.leaf = leaf;
            if is_array {
                child.leaf.stars = stars;
            }
        } else {
            child.place(rest, leaf);
        }
    }

    fn to_text(&self, shapes: &mut Shapes) -> String {
        if self.children.is_empty() {
            let kind = if self.leaf.letter.is_empty() { "o" } else { &self.leaf.letter };
            return self.leaf.to_text(kind);
        }
        let mut shape = Map::new();
        for name in self.inside.keys() {
            if let Some(child) = self.children.get(name) {
                shape.insert(name.clone(), json!(child.to_text(shapes)));
            }
        }
        let number = shapes.number(Value::Object(shape));
        self.leaf.to_text(&number)
    }
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}
