//! The world of a plugin in a language that has no SDK: what its manifest asks for, and no more, since a server refuses
//! imports without their capability.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::project::{Import, Project};
use crate::sdk::wit;

/// Name of the world.
pub(super) const WORLD: &str = "component";
/// Packages of the interface that the world needs.
const PACKAGES: [&str; 3] = ["common", "host", "plugin"];

/// What every component may import.
const FREE: [&str; 5] = [
    "heddle:host/context",
    "heddle:host/log",
    "heddle:host/progress",
    "heddle:host/clock",
    "heddle:host/random",
];

/// Writes the world and all that it names below the cache. Returns its folder.
pub(super) fn write(project: &Project) -> anyhow::Result<PathBuf> {
    let (imports, exports) = (project.imports()?, project.exports()?);
    let folder = project.cache()?.join("wit");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    for package in PACKAGES {
        for (name, bytes) in wit(package) {
            put(&folder.join("deps").join(package).join(name), bytes)?;
        }
    }
    put(&folder.join("world.wit"), world(&imports, &exports).as_bytes())?;
    Ok(folder)
}

fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    std::fs::write(path, bytes).with_context(|| format!("'{}' cannot be written", path.display()))
}

fn world(imports: &[Import], exports: &[&str]) -> String {
    let mut text = format!("package author:plugin;\n\nworld {WORLD} {{\n");
    for name in FREE.into_iter().chain(imports.iter().map(|import| import.interface)) {
        text.push_str(&format!("  import {name}@1.0.0;\n"));
    }
    for name in exports {
        text.push_str(&format!("  export heddle:plugin/{name}@1.0.0;\n"));
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_world_has_what_the_manifest_asks_for() {
        let exports = ["lifecycle", "actions"];
        let of = |capabilities| world(&Import::of(&serde_json::from_value(capabilities).unwrap()), &exports);
        let none = of(json!({}));
        assert!(
            none.contains("heddle:host/clock@1.0.0") && none.contains("export heddle:plugin/actions@1.0.0")
        );
        for (capabilities, import) in [
            (json!({ "kv": {} }), "heddle:plugin/kv"),
            (json!({ "events": { "emit": ["plugin.a.b"] } }), "heddle:plugin/events"),
            (json!({ "fabric": { "call": ["a.b"] } }), "heddle:plugin/fabric"),
            (json!({ "schedule": { "min-interval-s": 60 } }), "heddle:plugin/schedule"),
            (
                json!({ "http": [{ "name": "api", "origin": "https://a.test", "methods": ["GET"], "paths": ["/"] }] }),
                "heddle:host/http",
            ),
        ] {
            assert!(of(capabilities).contains(import) && !none.contains(import), "{import}");
        }
    }
}
