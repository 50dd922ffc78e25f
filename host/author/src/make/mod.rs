//! `build`: from the source of a plugin to its component.

mod javascript;
mod python;
mod rust;
mod world;

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use heddle_marketplace::COMPONENT_BYTES_MAX;

use crate::project::{Language, Project};
use crate::tool::read_bounded;

/// Builds the component, and says how large it is and how long it took.
pub(crate) fn build(project: &Project, out: &mut dyn Write) -> anyhow::Result<()> {
    let begun = Instant::now();
    let component = match project.language {
        Language::Rust => rust::build(project)?,
        Language::JavaScript => javascript::build(project)?,
        Language::Python => python::build(project)?,
    };
    replace(&project.component(), &component)?;
    writeln!(
        out,
        "built .heddle/component.wasm: {} bytes in {:.1} s",
        component.len(),
        begun.elapsed().as_secs_f32()
    )?;
    Ok(())
}

/// Builds the component if a file changed since it was built, and returns it.
pub(crate) fn fresh(project: &Project, out: &mut dyn Write) -> anyhow::Result<Vec<u8>> {
    if project.is_stale()? {
        build(project, out)?;
    }
    read_bounded(&project.component(), COMPONENT_BYTES_MAX)
}

/// Writes a file that others see as the old or the new one, never a part of it.
fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
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
