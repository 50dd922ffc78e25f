//! `adapters/README.md` says which kinds of the model each adapter fills, as their descriptions do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use heddle_marketplace::model;
use serde_json::Value;

use crate::support::{adapters, variable};

/// What stands around the tables.
const MARKS: [&str; 2] = ["<!-- model -->\n", "<!-- /model -->\n"];

fn adapters_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters")
}

/// The fields that each adapter fills, by kind and adapter.
fn filled() -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let mut all: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for adapter in adapters() {
        let description = description(&adapter);
        for filled in description["model"].as_array().into_iter().flatten() {
            let fields = serde_json::from_value(filled["fields"].clone()).unwrap();
            let kind = filled["kind"].as_str().unwrap().to_owned();
            all.entry(kind).or_default().insert(adapter.clone(), fields);
        }
    }
    all
}

fn tables() -> String {
    let (filled, adapters) = (filled(), adapters());
    let mut text = format!("| Kind | Fields | {} |\n", adapters.join(" | "));
    writeln!(text, "|---|---|{}", "---|".repeat(adapters.len())).unwrap();
    let count = |kind: &str, adapter: &str| {
        filled
            .get(kind)
            .and_then(|by| by.get(adapter))
            .map_or("–".to_owned(), |fields| fields.len().to_string())
    };
    let readable =
        |kind: &model::ModelKind| kind.properties().filter(|(field, _)| !kind.is_secret(field)).count();
    for kind in &model::KINDS {
        let counts: Vec<String> = adapters.iter().map(|adapter| count(kind.id, adapter)).collect();
        writeln!(text, "| `{}` | {} | {} |", kind.id, readable(kind), counts.join(" | ")).unwrap();
    }
    text.push_str(&written(&adapters));
    text.push_str("\nFields that are not known:\n\n| Kind | Adapter | Not known |\n|---|---|---|\n");
    for kind in &model::KINDS {
        for (adapter, fields) in filled.get(kind.id).into_iter().flatten() {
            let missing: Vec<String> = kind
                .properties()
                .filter(|(field, _)| !kind.is_secret(field) && !fields.contains(field))
                .map(|(field, _)| format!("`{field}`"))
                .collect();
            if !missing.is_empty() {
                writeln!(text, "| `{}` | {adapter} | {} |", kind.id, missing.join(", ")).unwrap();
            }
        }
    }
    text
}

/// What can be asked of the objects of each kind, by adapter; a verb with the number of fields that can be given.
fn written(adapters: &[String]) -> String {
    let mut text = format!("\nWhat can be asked of them:\n\n| Kind | {} |\n", adapters.join(" | "));
    writeln!(text, "|---|{}", "---|".repeat(adapters.len())).unwrap();
    let descriptions: Vec<Value> = adapters.iter().map(|adapter| description(adapter)).collect();
    for kind in model::KINDS.iter().filter(|kind| kind.verbs().next().is_some()) {
        let cells = descriptions.iter().map(|description| {
            let filled =
                description["model"].as_array().into_iter().flatten().find(|one| one["kind"] == kind.id);
            let verbs = filled.and_then(|filled| filled["writes"].as_array()).into_iter().flatten();
            let shown: Vec<String> = verbs
                .map(|write| {
                    let verb = write["verb"].as_str().unwrap();
                    match write["fields"].as_array().map_or(0, Vec::len) {
                        0 => verb.to_owned(),
                        fields => format!("{verb} {fields}/{}", kind.written_fields(verb).count()),
                    }
                })
                .collect();
            if shown.is_empty() { "–".to_owned() } else { shown.join(", ") }
        });
        let cells: Vec<String> = cells.collect();
        writeln!(text, "| `{}` | {} |", kind.id, cells.join(" | ")).unwrap();
    }
    text
}

fn description(adapter: &str) -> Value {
    let path = adapters_folder().join(adapter).join("description.json");
    serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
}

/// `UPDATE_SNAPSHOTS=1` writes them anew.
#[test]
fn the_tables_of_the_model_are_what_the_descriptions_say() {
    let path = adapters_folder().join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(MARKS[0]).expect("adapters/README.md has the tables");
    let (written, after) = rest.split_once(MARKS[1]).expect("the tables end");
    let tables = tables();
    if variable("UPDATE_SNAPSHOTS").is_some() {
        fs::write(path, format!("{before}{}{tables}{}{after}", MARKS[0], MARKS[1])).unwrap();
        return;
    }
    assert_eq!(written, tables, "write them anew with UPDATE_SNAPSHOTS=1");
}
