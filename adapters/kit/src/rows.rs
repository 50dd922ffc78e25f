//! The kinds and features of a description, one by one.

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};

/// The rows of a description, in the order in which they were added.
#[derive(Debug)]
pub struct Rows {
    prefix: &'static str,
    kinds: Vec<Value>,
    features: Vec<Value>,
}

/// One operation of a feature.
#[derive(Debug)]
pub struct Operation<'a> {
    /// `create`, `update` or `delete`.
    pub word: &'a str,
    /// What the overlay says of its danger.
    pub danger: &'a str,
    /// Of the payload.
    pub schema: Value,
    /// Wall time of the write; the host's own where it is absent.
    pub time_limit_ms: Option<u32>,
    /// Whether a change takes it back.
    pub is_invertible: bool,
}

/// One feature.
#[derive(Debug)]
pub struct Feature<'a> {
    /// Without the vendor's prefix.
    pub id: &'a str,
    /// One of the overlay's.
    pub area: &'a str,
    /// As people read it.
    pub title: &'a str,
    /// The kind of the objects that it writes.
    pub kind: Option<&'a str>,
    /// Names of the payload that find an object; empty where it needs none.
    pub key: &'a [String],
    /// What can be staged.
    pub operations: Vec<Operation<'a>>,
    /// What the strategies carry out.
    pub binding: Value,
}

impl Rows {
    /// No rows yet; ids of features begin with `prefix`.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, kinds: Vec::new(), features: Vec::new() }
    }

    /// The whole id of a feature.
    pub fn id(&self, feature: &str) -> String {
        format!("{}.{feature}", self.prefix)
    }

    /// The kind that was added under an id.
    pub fn kind(&self, id: &str) -> Option<&Value> {
        self.kinds.iter().find(|known| known["id"] == id)
    }

    /// Adds a kind; its id is new, and its title is not empty.
    pub fn add_kind(&mut self, id: &str, area: &str, title: &str, binding: Value) -> anyhow::Result<()> {
        ensure!(self.kind(id).is_none(), "there are two kinds '{id}'");
        ensure!(!title.is_empty(), "the kind '{id}' has no title");
        self.kinds.push(json!({ "id": id, "area": area, "title": title, "binding": binding }));
        Ok(())
    }

    /// Adds a kind that is a file; with whose it is (`site` or `controller`), and what the description says of it.
    pub fn add_file(
        &mut self,
        (id, area): (&str, &str),
        title: &str,
        (per, file): (&str, Value),
        binding: Value,
    ) -> anyhow::Result<()> {
        self.add_kind(id, area, title, binding)?;
        if let Some(kind) = self.kinds.last_mut() {
            kind["per"] = json!(per);
            kind["file"] = file;
        }
        Ok(())
    }

    /// Adds a feature; its id is new, and its title is not empty.
    pub fn add_feature(&mut self, feature: Feature<'_>) -> anyhow::Result<()> {
        let Feature { id, area, title, kind, key, operations, binding } = feature;
        let mut row = json!({ "id": self.id(id), "area": area, "title": title });
        if let Some(kind) = kind {
            row["kind"] = json!(kind);
        }
        if !key.is_empty() {
            row["natural-key"] = json!(key);
        }
        row["operations"] = operations.into_iter().map(Operation::row).collect();
        row["binding"] = binding;
        self.add_row(row)
    }

    /// Adds a feature that is a row already, with its whole id; the same rules hold for it.
    pub fn add_row(&mut self, row: Value) -> anyhow::Result<()> {
        let id = &row["id"];
        ensure!(self.features.iter().all(|known| known["id"] != *id), "there are two features {id}");
        ensure!(
            row["title"].as_str().is_some_and(|title| !title.is_empty()),
            "the feature {id} has no title"
        );
        let action = row["binding"].get("action");
        let is_told =
            action.is_none_or(|action| action["summary"].as_str().is_some_and(|text| !text.is_empty()));
        ensure!(is_told, "nothing says what the action {id} does");
        let operations = row["operations"].as_array();
        ensure!(operations.is_some_and(|all| !all.is_empty()), "nothing can be staged of the feature {id}");
        self.features.push(row);
        Ok(())
    }

    /// The rows in the order of their ids.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        let id = |row: &Value| row["id"].as_str().unwrap_or_default().to_owned();
        self.kinds.sort_by_key(id);
        self.features.sort_by_key(id);
        self
    }

    /// The description. `areas` has the titles of areas; those without a row are left out.
    pub fn description(self, areas: &Map<String, Value>) -> anyhow::Result<Value> {
        for feature in &self.features {
            self.check_inverse(feature)?;
        }
        for kind in &self.kinds {
            self.check_parent(kind)?;
        }
        let all = || self.kinds.iter().chain(&self.features);
        let areas: Vec<Value> = areas
            .iter()
            .filter(|(id, _)| all().any(|one| one["area"] == id.as_str()))
            .map(|(id, title)| json!({ "id": id, "title": title }))
            .collect();
        Ok(json!({ "areas": areas, "kinds": self.kinds, "features": self.features }))
    }

    /// What takes an action back is a feature.
    fn check_inverse(&self, feature: &Value) -> anyhow::Result<()> {
        let Some(inverse) = feature["binding"]["action"]["inverse"].as_str() else { return Ok(()) };
        let is_known = self.features.iter().any(|known| known["id"] == inverse);
        ensure!(is_known, "the inverse of {} is no feature: '{inverse}'", feature["id"]);
        Ok(())
    }

    /// What objects belong to is a kind with a list.
    fn check_parent(&self, kind: &Value) -> anyhow::Result<()> {
        let Some(parent) = kind["binding"]["within"]["kind"].as_str() else { return Ok(()) };
        let known = self.kind(parent).with_context(|| format!("the parent of {} is no kind", kind["id"]))?;
        ensure!(known["binding"]["list"].is_object(), "the parent of {} has no list", kind["id"]);
        Ok(())
    }
}

impl Operation<'_> {
    /// The operation as the description has it.
    pub fn row(self) -> Value {
        let Self { word, danger, schema, time_limit_ms, is_invertible } = self;
        let mut row = json!({ "operation": word, "danger": danger, "payload-schema": schema });
        if let Some(limit) = time_limit_ms {
            row["time-limit-ms"] = json!(limit);
        }
        row["invertible"] = json!(is_invertible);
        row
    }
}

/// Sets a word of a binding where there is something to say: neither `null` nor `false`, and not empty.
pub fn say(binding: &mut Value, word: &str, value: impl Into<Value>) {
    let value = value.into();
    let is_nothing = match &value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    };
    if !is_nothing {
        binding[word] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(inverse: &str) -> Feature<'static> {
        Feature {
            id: "vm.start",
            area: "vm",
            title: "Start",
            kind: None,
            key: &[],
            operations: vec![Operation {
                word: "create",
                danger: "normal",
                schema: json!({}),
                time_limit_ms: None,
                is_invertible: true,
            }],
            binding: json!({ "action": { "summary": "start", "inverse": inverse } }),
        }
    }

    #[test]
    fn only_areas_with_rows_are_described() {
        let mut rows = Rows::new("acme");
        rows.add_kind("vm.vm", "vm", "Machine", json!({ "list": {} })).unwrap();
        rows.add_feature(action("acme.vm.start")).unwrap();
        let areas = Map::from_iter([("vm".to_owned(), json!("Machines")), ("dns".to_owned(), json!("DNS"))]);
        let description = rows.description(&areas).unwrap();
        assert_eq!(description["areas"], json!([{ "id": "vm", "title": "Machines" }]));
        assert_eq!(description["features"][0]["id"], "acme.vm.start");
    }

    #[test]
    fn rows_that_do_not_fit_together_are_refused() {
        let mut rows = Rows::new("acme");
        rows.add_feature(action("acme.vm.stop")).unwrap();
        assert!(rows.add_feature(action("acme.vm.stop")).is_err(), "its id is taken");
        assert!(rows.description(&Map::new()).is_err(), "its inverse is no feature");
        let mut rows = Rows::new("acme");
        rows.add_kind("vm.disk", "vm", "Disk", json!({ "within": { "kind": "vm.vm" } })).unwrap();
        assert!(rows.description(&Map::new()).is_err(), "its parent is no kind");
    }

    #[test]
    fn only_what_says_something_is_set() {
        let mut binding = json!({});
        for (word, value) in [("a", json!(false)), ("b", json!([])), ("c", json!("")), ("d", json!(0))] {
            say(&mut binding, word, value);
        }
        assert_eq!(binding, json!({ "d": 0 }));
    }
}
