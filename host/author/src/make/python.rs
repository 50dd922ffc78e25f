//! A plugin in Python: `componentize-py` puts the source and an interpreter into one component.

use std::process::Command;

use anyhow::Context as _;

use crate::make::{made, world};
use crate::project::Project;
use crate::tool::{BUILD_LIMIT, INSTALL_LIMIT, run};

/// The tool and its version: another one makes another component.
pub(super) const TOOL: &str = "componentize-py==0.25.1";
/// The folder of the source, and its module.
const SOURCE: (&str, &str) = ("src", "plugin");
const NO_PYTHON: &str = "Python 3.10 or later is missing; https://www.python.org has it, and so has the package 'python3' of most \
                         distributions, which need 'python3-venv', too";

pub(super) fn build(project: &Project) -> anyhow::Result<Vec<u8>> {
    let (cache, wit) = (project.cache()?, world::write(project)?);
    let tools = cache.join("tools").join(TOOL.replace("==", "-"));
    let program = tools.join("bin/componentize-py");
    if !program.exists() {
        std::fs::create_dir_all(tools.parent().context("the tools have a folder")?)?;
        run(Command::new("python3").args(["-m", "venv"]).arg(&tools), INSTALL_LIMIT, NO_PYTHON)?;
        let mut pip = Command::new(tools.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", TOOL]);
        run(&mut pip, INSTALL_LIMIT, NO_PYTHON)?;
    }
    let output = cache.join("output.wasm");
    let mut tool = Command::new(&program);
    tool.current_dir(project.root.join(SOURCE.0))
        .arg("--wit-path")
        .arg(&wit)
        .args(["--world", world::WORLD, "componentize", "--stub-wasi", SOURCE.1, "--output"])
        .arg(&output);
    run(&mut tool, BUILD_LIMIT, NO_PYTHON)?;
    made(&output)
}
