//! `build`: from the source of a plugin to its component.

mod javascript;
mod python;
mod rust;
mod stamp;
mod world;

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use heddle_marketplace::COMPONENT_BYTES_MAX;
use stamp::Made;

use crate::project::{Language, Project};
use crate::sdk::write_schema;
use crate::tool::read_bounded;

/// Builds the component, and says how large it is and how long it took.
pub(crate) fn build(project: &Project, out: &mut dyn Write) -> anyhow::Result<()> {
    built(project, out).map(drop)
}

/// The same, and returns it.
pub(crate) fn built(project: &Project, out: &mut dyn Write) -> anyhow::Result<Vec<u8>> {
    let begun = Instant::now();
    let component = made_now(project)?;
    say(&component, begun, out)?;
    Ok(component)
}

/// Builds the component if what it is made from changed, and returns it.
pub(crate) fn fresh(project: &Project, out: &mut dyn Write) -> anyhow::Result<Vec<u8>> {
    let begun = Instant::now();
    let there = project.component();
    let there = if there.exists() { Some(read_bounded(&there, COMPONENT_BYTES_MAX)?) } else { None };
    // Cargo knows all that a crate is made from, also what is not in its folder, and builds only what changed.
    if project.language != Language::Rust
        && let Some(there) = &there
        && Made::now(project)?.gave(project, there)
    {
        return Ok(there.clone());
    }
    let component = made_now(project)?;
    if there.as_ref() != Some(&component) {
        say(&component, begun, out)?;
    }
    Ok(component)
}

fn made_now(project: &Project) -> anyhow::Result<Vec<u8>> {
    write_schema(&project.cache()?)?;
    let from = Made::now(project)?;
    let component = match project.language {
        Language::Rust => rust::build(project)?,
        Language::JavaScript => javascript::build(project)?,
        Language::Python => python::build(project)?,
    };
    replace(&project.component(), &component)?;
    from.save(project, &component)?;
    Ok(component)
}

fn say(component: &[u8], begun: Instant, out: &mut dyn Write) -> anyhow::Result<()> {
    let (bytes, seconds) = (component.len(), begun.elapsed().as_secs_f32());
    Ok(writeln!(out, "built .heddle/component.wasm: {bytes} bytes in {seconds:.1} s")?)
}

/// Writes a file that others see as the old or the new one, never a part of it.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let staging = path.with_extension(format!("{}.part", std::process::id()));
    std::fs::write(&staging, bytes)
        .and_then(|()| std::fs::rename(&staging, path))
        .with_context(|| format!("'{}' cannot be written", path.display()))
}

/// Reads what a tool wrote as a component.
fn made(path: &Path) -> anyhow::Result<Vec<u8>> {
    let component = read_bounded(path, COMPONENT_BYTES_MAX)?;
    ensure!(component.starts_with(b"\0asm"), "'{}' is no WebAssembly", path.display());
    Ok(component)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Stands in for the tool: counts its builds, and the first one finds the source saved meanwhile.
    const TOOL: &str = "#!/bin/sh
for output; do :; done
printf '\\0asm' > \"$output\"
test -e .heddle/builds || echo '// saved meanwhile' >> src/plugin.js
echo built >> .heddle/builds
";

    #[test]
    fn what_is_saved_during_a_build_is_built_next_and_a_package_always() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("greeter");
        crate::start::new(&root, Language::JavaScript, &mut Vec::new()).unwrap();
        let project = Project::open(&root).unwrap();
        let tools = project.cache().unwrap().join("tools").join(javascript::TOOL.replace('@', "-"));
        let program = tools.join("node_modules/.bin/componentize-qjs");
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        // Copied by another process: a program that this one has open for writing, and with it a child that another test
        // is starting, cannot be run.
        let script = folder.path().join("tool.sh");
        std::fs::write(&script, TOOL).unwrap();
        assert!(std::process::Command::new("cp").args([&script, &program]).status().unwrap().success());
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let builds = || std::fs::read_to_string(root.join(".heddle/builds")).unwrap().lines().count();
        for (after, reason) in
            [(1, "there was none"), (2, "it lacks what was saved"), (2, "it is of all files")]
        {
            fresh(&project, &mut Vec::new()).unwrap();
            assert_eq!(builds(), after, "{reason}");
        }
        built(&project, &mut Vec::new()).unwrap();
        assert_eq!(builds(), 3, "it was asked for");
    }
}
