//! The tutorial of plugins does what it says, in each language: its files are written, its commands are run, and what it shows is
//! shown.
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::{Path, PathBuf};
use std::process::Command;

const TUTORIAL: &str = include_str!("../../../plugins-sdk/TUTORIAL.md");
/// Between the outputs of two blocks.
const NEXT: &str = "--- next block";

/// A block of the page.
enum Block {
    /// A file, with its path in the folder of the plugin.
    File(String, String),
    /// Commands; of one language where it is named.
    Commands(Option<String>, String),
    /// Lines of what the commands before it show.
    Shown(String),
}

fn blocks() -> Vec<Block> {
    let (mut blocks, mut file, mut is_run) = (Vec::new(), None, true);
    let mut lines = TUTORIAL.lines();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("<!-- file: ") {
            file = rest.strip_suffix(" -->").map(str::to_owned);
        } else if line.starts_with("<!-- not run: ") {
            is_run = false;
        } else if let Some(kind) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let text = text.join("\n");
            match (file.take(), kind.split_once(' ').unwrap_or((kind, ""))) {
                (Some(path), _) => blocks.push(Block::File(path, text)),
                (None, ("sh", language)) if is_run => {
                    let language = (!language.is_empty()).then(|| language.to_owned());
                    blocks.push(Block::Commands(language, text));
                }
                (None, ("sh", _)) => is_run = true,
                (None, ("text", _)) => blocks.push(Block::Shown(text)),
                (None, other) => panic!("a block {other:?} is neither a file nor run"),
            }
        }
    }
    blocks
}

/// The page as one script that ends at the first failure, and what each of its blocks shows.
fn script(language: &str, source: &str, tools: &Path) -> (String, Vec<String>) {
    let mut script = "set -euo pipefail\n".to_owned();
    let mut shown: Vec<String> = Vec::new();
    for block in blocks() {
        match block {
            Block::File(path, _) if path.starts_with("src/") && path != source => {}
            Block::File(path, text) => {
                script.push_str(&format!("cat > {path} <<'END_OF_FILE'\n{text}\nEND_OF_FILE\n"));
            }
            Block::Commands(Some(of), _) if of != language => {}
            Block::Commands(_, text) => {
                script.push_str(&format!(
                    "echo '{NEXT}'\n{}\n",
                    text.replace("--lang rust", &format!("--lang {language}"))
                ));
                if shown.is_empty() && tools.is_dir() {
                    // What the examples were built with: it is not installed twice.
                    script.push_str(&format!("ln -s {} .heddle/tools\n", tools.display()));
                }
                shown.push(String::new());
            }
            Block::Shown(text) => shown.last_mut().unwrap().push_str(&text),
        }
    }
    (script, shown)
}

/// Follows the page in a language whose examples were built with the tools of this one.
fn follow(language: &str, source: &str, example: &str) {
    let this = std::env::current_exe().unwrap();
    let program = this.parent().and_then(Path::parent).unwrap().join("examples/heddle-plugin");
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let heddle = format!("#!/bin/sh\nshift\nexec {} \"$@\"\n", program.display());
    std::fs::write(bin.join("heddle.sh"), heddle).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test has no configuration of its own")]
    let tools = std::env::var_os("HEDDLE_PLUGINS").map(PathBuf::from).unwrap_or_default();
    let (script, shown) = script(language, source, &tools.join(example).join(".heddle/tools"));
    let script = format!("heddle() {{ sh {}/heddle.sh \"$@\"; }}\n{script}", bin.display());
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("exec 2>&1\n{script}")])
        .current_dir(folder.path())
        .env_remove("CARGO_TARGET_DIR");
    let output = bash.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{language}: {text}");
    let outputs: Vec<&str> = text.split(NEXT).skip(1).collect();
    assert_eq!(outputs.len(), shown.len(), "{language}: {text}");
    for (output, shown) in outputs.iter().zip(shown) {
        for line in shown.lines() {
            assert!(output.contains(line), "{language}: '{line}' is shown: {output}");
        }
    }
}

#[test]
fn it_works_in_rust() {
    follow("rust", "src/lib.rs", "none");
}

#[test]
fn it_works_in_javascript() {
    follow("js", "src/plugin.js", "slack-notices");
}

#[test]
fn it_works_in_python() {
    follow("python", "src/plugin.py", "ticket-desk");
}
