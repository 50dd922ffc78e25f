//! What every adapter needs to make its `description.json` from facts about its vendor's API and judgements about them.
//!
//! `facts.json` has routes and fields, `overlay.json` what no contract says: natural keys, dangers, what an apply
//! reaches, and what is left out and why. Both stand beside the adapter. Its example `describe-<vendor>` turns them
//! into the description: the same two files always give the same one.

mod coverage;

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use coverage::{Access, Coverage, State};

/// What comes of a vendor's facts.
#[derive(Debug)]
pub struct Made {
    /// The content of `description.json`.
    pub description: Value,
    /// How much of the vendor's API it covers; empty where the description is not made from a contract.
    pub coverage: Coverage,
}

/// The program of an adapter's example: writes the description beside the adapter and shows what it covers.
pub fn write(folder: &Path, made: &Made) -> anyhow::Result<()> {
    let path = folder.join(DESCRIPTION);
    fs::write(&path, text(&made.description)?).with_context(|| format!("cannot write {}", path.display()))?;
    write!(std::io::stdout(), "{}", made.coverage).context("the coverage cannot be shown")
}

/// Fails where the description beside the adapter is another one.
pub fn check(folder: &Path, made: &Made) -> anyhow::Result<()> {
    let path = folder.join(DESCRIPTION);
    let kept = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let made = text(&made.description)?;
    if kept == made {
        return Ok(());
    }
    let same = kept.lines().zip(made.lines()).take_while(|(kept, made)| kept == made).count();
    bail!(
        "{} differs from line {} on; `cargo xtask vendor {}` makes it again",
        path.display(),
        same + 1,
        folder.file_name().unwrap_or_default().to_string_lossy()
    )
}

/// Reads a file of facts or of judgements.
pub fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not as expected", path.display()))
}

/// The judgements of an overlay's section in their order; an error names the one that is not as expected.
pub fn parsed<T: DeserializeOwned>(section: &Map<String, Value>) -> anyhow::Result<Vec<(String, T)>> {
    let one = |(id, value): (&String, &Value)| {
        let judged = T::deserialize(value).with_context(|| format!("'{id}' of the overlay"))?;
        Ok((id.clone(), judged))
    };
    section.iter().map(one).collect()
}

/// A title within a sentence: `Port forward` is `port forward`, `DNS zone` stays.
pub fn noun(title: &str) -> String {
    let mut chars = title.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}

/// The same schema, where `null` empties the field.
pub fn nullable(mut schema: Value) -> Value {
    let kind = schema["type"].take();
    schema["type"] = serde_json::json!([kind, "null"]);
    if let Some(options) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        options.push(Value::Null);
    }
    schema
}

const DESCRIPTION: &str = "description.json";

/// The description as the file has it.
fn text(description: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(description)? + "\n")
}
