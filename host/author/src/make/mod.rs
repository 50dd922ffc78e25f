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
