//! A plugin in JavaScript: `componentize-qjs` puts the source and an interpreter into one component.

use std::process::Command;

use crate::make::{made, world};
use crate::project::{Language, Project};
use crate::tool::{BUILD_LIMIT, INSTALL_LIMIT, run};

/// The tool and its version: another one makes another component.
pub(super) const TOOL: &str = "componentize-qjs@0.4.5";
const NO_NPM: &str =
    "npm is missing; https://nodejs.org has it, and so has the package 'npm' of most distributions";

pub(super) fn build(project: &Project) -> anyhow::Result<Vec<u8>> {
    let (cache, wit) = (project.cache()?, world::write(project)?);
    let tools = cache.join("tools").join(TOOL.replace('@', "-"));
    let program = tools.join("node_modules/.bin/componentize-qjs");
    if !program.exists() {
        std::fs::create_dir_all(&tools)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact", "--prefix"]);
        run(npm.arg(&tools).arg(TOOL), INSTALL_LIMIT, NO_NPM)?;
    }
    let output = cache.join("output.wasm");
    let mut tool = Command::new(&program);
    tool.current_dir(&project.root)
        .args(["--sync", "--stub-wasi", "--world", world::WORLD, "--wit"])
        .arg(&wit)
        .args(["--js", Language::JavaScript.source(), "--output"])
        .arg(&output);
    run(&mut tool, BUILD_LIMIT, NO_NPM)?;
    made(&output)
}
