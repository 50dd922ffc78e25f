//! Which releases a description speaks of: those that it was tested with, and those that have what others lack.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Stands beside the adapter, for what no contract says of releases.
const RELEASES: &str = "releases.json";

/// The content of the file. How releases are written is a rule of the package format.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Releases {
    /// Becomes `releases` of the description.
    releases: Vec<Value>,
    /// What only some releases have.
    #[serde(default)]
    only: Vec<Only>,
}

/// Entries of the description that are there from a release on, or up to one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Only {
    /// Becomes `releases` of each entry.
    releases: Map<String, Value>,
    /// Where that is known from.
    #[serde(rename = "why")]
    _why: String,
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    features: Vec<String>,
    #[serde(default)]
    model: Vec<String>,
}

/// Adds to a description what the file beside the adapter says; an adapter without the file says nothing of releases.
pub(crate) fn add(folder: &Path, description: &mut Value) -> anyhow::Result<()> {
    let path = folder.join(RELEASES);
    if !path.exists() {
        return Ok(());
    }
    let said: Releases = crate::read(&path)?;
    for only in &said.only {
        let lists = [
            ("kinds", "id", &only.kinds),
            ("features", "id", &only.features),
            ("model", "kind", &only.model),
        ];
        for (list, key, names) in lists {
            for name in names {
                mark(description, (list, key, name), &only.releases)
                    .with_context(|| format!("'{name}' of {RELEASES}"))?;
            }
        }
    }
    description["releases"] = said.releases.into();
    Ok(())
}

fn mark(
    description: &mut Value,
    (list, key, name): (&str, &str, &str),
    releases: &Map<String, Value>,
) -> anyhow::Result<()> {
    let rows = description[list].as_array_mut();
    let mut found = rows.into_iter().flatten().filter(|row| row[key] == name);
    let row = found.next().with_context(|| format!("the description has none in its {list}"))?;
    ensure!(row.get("releases").is_none(), "its releases are named twice");
    row["releases"] = releases.clone().into();
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_marked_once_and_must_be_there() {
        let mut description = json!({ "kinds": [{ "id": "vm.disk" }], "model": [{ "kind": "disk" }] });
        let from = Map::from_iter([("from".to_owned(), json!("9.0"))]);
        mark(&mut description, ("kinds", "id", "vm.disk"), &from).unwrap();
        mark(&mut description, ("model", "kind", "disk"), &from).unwrap();
        assert_eq!(description["kinds"][0]["releases"], json!({ "from": "9.0" }));
        assert_eq!(description["model"][0]["releases"], json!({ "from": "9.0" }));
        assert!(mark(&mut description, ("kinds", "id", "vm.disk"), &from).is_err(), "twice");
        assert!(mark(&mut description, ("features", "id", "acme.vm.disk"), &from).is_err(), "absent");
    }
}
