//! What another package of an adapter changes: what it may do at a device, against the one that serves.

use heddle_marketplace::in_words;
use heddle_marketplace::manifest::Manifest;
use heddle_runtime::Adapter;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What the package replaces, and what differs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ReplacedAdapterPackage")]
pub(super) struct Replaced {
    /// Version of the package that served before.
    version: String,
    /// SHA-256 of its manifest, hexadecimal.
    manifest_sha256: String,
    /// Imports that it did not ask for.
    capabilities_added: Vec<String>,
    /// Imports that it asked for and the new one does not.
    capabilities_removed: Vec<String>,
    /// What it could not do at a device, in words.
    rules_added: Vec<String>,
    /// What it could do at a device and the new one cannot, in words.
    rules_removed: Vec<String>,
}

impl Replaced {
    /// Compares a package with the one that serves.
    pub(super) fn of(serving: &Adapter, new: &Manifest) -> Self {
        let old = serving.manifest();
        let (old_rules, new_rules) = (in_words(old), in_words(new));
        let (old_imports, new_imports) = (capabilities(old), capabilities(new));
        Self {
            version: serving.version().to_owned(),
            manifest_sha256: serving.manifest_sha256().to_owned(),
            capabilities_added: without(&new_imports, &old_imports),
            capabilities_removed: without(&old_imports, &new_imports),
            rules_added: without(&new_rules, &old_rules),
            rules_removed: without(&old_rules, &new_rules),
        }
    }
}

/// Names of what the component asks to import, as the manifest has them.
pub(super) fn capabilities(manifest: &Manifest) -> Vec<String> {
    let Ok(Value::Object(asked)) = serde_json::to_value(&manifest.capabilities) else { return Vec::new() };
    asked.into_iter().filter(|(_, value)| *value == Value::Bool(true)).map(|(name, _)| name).collect()
}

fn without(lines: &[String], others: &[String]) -> Vec<String> {
    lines.iter().filter(|line| !others.contains(line)).cloned().collect()
}
