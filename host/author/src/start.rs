//! `new`: the folder of a plugin that works.

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::project::Language;
use crate::sdk::{LOCK, write_schema, write_sdk};

/// Fewest and most characters of an id, as the package format has them.
const ID_CHARS: std::ops::RangeInclusive<usize> = 3..=41;

const TESTS_OF_RUST: &str =
    "\n`cargo test` runs the tests of the source, once `heddle plugin build` has written the SDK.\n";

/// Writes the folder of a new plugin, whose name is the plugin's id. One that exists is left alone.
pub(crate) fn new(folder: &Path, language: Language, out: &mut dyn Write) -> anyhow::Result<()> {
    let id = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    ensure!(
        is_id(id),
        "'{id}' is no id of a plugin: a-z, 0-9 and '-', a letter first, {} to {} characters",
        ID_CHARS.start(),
        ID_CHARS.end()
    );
    std::fs::create_dir(folder)
        .with_context(|| format!("the folder '{}' cannot be made", folder.display()))?;
    for (name, text) in files(language) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        let tests = if language == Language::Rust { TESTS_OF_RUST } else { "" };
        let text = text.replace("{id}", id).replace("{source}", language.source()).replace("{tests}", tests);
        std::fs::write(path, text)?;
    }
    let cache = folder.join(".heddle");
    std::fs::create_dir(&cache)?;
    write_schema(&cache)?;
    if language == Language::Rust {
        write_sdk(&cache)?;
    }
    writeln!(
        out,
        "wrote the plugin '{id}'; next:\n  cd {}\n  heddle plugin build\n  heddle plugin call greet --params '{{\"name\": \"Ada\"}}'",
        folder.display()
    )?;
    Ok(())
}

fn is_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    ID_CHARS.contains(&id.len())
        && id.bytes().all(is_plain)
        && id.starts_with(|first: char| first.is_ascii_lowercase())
}

fn files(language: Language) -> Vec<(&'static str, &'static str)> {
    let mut files = vec![
        ("manifest.json", include_str!("templates/manifest.json.txt")),
        ("README.md", include_str!("templates/README.md.txt")),
        (".gitignore", include_str!("templates/gitignore.txt")),
        ("calls/greet.json", include_str!("templates/greet.json.txt")),
    ];
    match language {
        Language::Rust => files.extend([
            ("Cargo.toml", include_str!("templates/rust/Cargo.toml.txt")),
            ("Cargo.lock", LOCK),
            ("src/lib.rs", include_str!("templates/rust/lib.rs.txt")),
        ]),
        Language::JavaScript => {
            files.push((language.source(), include_str!("templates/javascript/plugin.js.txt")));
        }
        Language::Python => {
            files.push((language.source(), include_str!("templates/python/plugin.py.txt")));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;
    use crate::package;
    use crate::project::Project;

    #[test]
    fn a_name_is_an_id_and_a_folder_that_exists_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for bad in ["Greeter", "ab", "1st-one", "a_b_c", &"a".repeat(42)] {
            let refused = new(&folder.path().join(bad), Language::Rust, &mut Vec::new()).unwrap_err();
            assert!(refused.to_string().contains("no id"), "{refused}");
        }
        let root = folder.path().join("greeter");
        new(&root, Language::JavaScript, &mut Vec::new()).unwrap();
        std::fs::write(root.join("README.md"), "mine").unwrap();
        new(&root, Language::JavaScript, &mut Vec::new()).unwrap_err();
        assert_eq!(std::fs::read_to_string(root.join("README.md")).unwrap(), "mine");
        assert!(std::fs::read_to_string(root.join("manifest.json")).unwrap().contains("\"id\": \"greeter\""));
    }

    /// Names of the folders of templates, and of nothing else there.
    fn folders() -> Vec<String> {
        let templates = std::fs::read_dir("src/templates").unwrap().map(Result::unwrap);
        let folders = templates.filter(|entry| entry.path().is_dir());
        folders.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn each_template_is_a_plugin_that_a_server_takes_with_a_recorded_call_of_its_action() {
        let home = tempfile::tempdir().unwrap();
        let languages = Language::value_variants();
        assert_eq!(folders().len(), languages.len(), "each folder is the template of a language");
        for language in languages {
            let name = format!("{language:?}").to_lowercase();
            assert!(folders().contains(&name), "{name}");
            let root = home.path().join(&name);
            new(&root, *language, &mut Vec::new()).unwrap();
            let project = Project::open(&root).unwrap();
            assert_eq!(project.language, *language);
            let component = b"\0asm\x0d\0\x01\0".to_vec();
            let package = package::verified_as(&project, &project.manifest().unwrap(), component).unwrap();
            let written = std::fs::read_dir(root.join("src")).unwrap().count();
            let templates = std::fs::read_dir(Path::new("src/templates").join(&name)).unwrap();
            let sources =
                templates.filter(|entry| !entry.as_ref().unwrap().file_name().eq("Cargo.toml.txt")).count();
            assert_eq!(written, sources, "{name}: each source of the template is written");
            let call = std::fs::read(root.join("calls/greet.json")).unwrap();
            let call: serde_json::Value = serde_json::from_slice(&call).unwrap();
            assert!(package.manifest().action(call["action"].as_str().unwrap()).is_some(), "{call}");
        }
    }
}
