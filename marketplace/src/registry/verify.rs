//! Goes through a catalogue as a server does, and says what a server would find.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use heddle_marketplace::COMPONENT_BYTES_MAX;
use heddle_marketplace::catalog::bounds::ROOT_BYTES_MAX;
use heddle_marketplace::catalog::{
    Catalog, Next, PluginVersion, State, Time, Update, root_name, time_to_text,
};

use crate::packages::sha256;
use crate::{files, say};

#[derive(Args)]
pub(crate) struct Verify {
    /// A registry, or a folder with what is served of one
    folder: PathBuf,
    /// The root that the server was given; the first one of the folder by default
    #[arg(long)]
    root: Option<PathBuf>,
}

impl Verify {
    pub(crate) fn execute(self, now: Time) -> anyhow::Result<()> {
        let public = self.folder.join("public");
        let folder = if public.is_dir() { public } else { self.folder };
        let root = self.root.unwrap_or_else(|| folder.join(root_name(1)));
        let state = State::with_root(&files::get(&root, ROOT_BYTES_MAX)?, now)?;
        let mut update = Update::begin(state, now)?;
        while let Next::Fetch { name, bytes_max } = update.next() {
            update = update.give(files::read(&folder.join(name), bytes_max)?)?;
        }
        let updated = update.finish().context("the update did not end")?;
        let catalog = updated.catalog.context("no catalogue was found")?.catalog;
        report(&updated.state, &catalog)?;
        check_files(&folder, &catalog)?;
        updated.state.may_install(now)?;
        say("a server accepts this catalogue")
    }
}

fn report(state: &State, catalog: &Catalog) -> anyhow::Result<()> {
    let version = |version: Option<u64>| version.map_or("none".to_owned(), |version| version.to_string());
    say(&format!("root {}", version(state.root_version())))?;
    let expires = state.timestamp_expires().map(|at| time_to_text(&at)).unwrap_or_default();
    say(&format!("timestamp {}, expires at {expires}", version(state.timestamp_version())))?;
    say(&format!("catalogue {}, expires at {}", catalog.version, time_to_text(&catalog.expires)))?;
    let versions: usize = catalog.plugins.iter().map(|plugin| plugin.versions.len()).sum();
    say(&format!(
        "  {} publishers, {} plugins with {versions} versions",
        catalog.publishers.len(),
        catalog.plugins.len()
    ))?;
    for plugin in &catalog.plugins {
        for version in &plugin.versions {
            let yanked = if version.yanked { ", yanked" } else { "" };
            let revoked =
                plugin.revoked(version, state.revocations()).map(|one| format!(", revoked: {}", one.reason));
            say(&format!("  {} {}{yanked}{}", plugin.id, version.version, revoked.unwrap_or_default()))?;
        }
    }
    say(&format!("{} revocations", state.revocations().len()))
}

/// Packages and icons that lie beside the catalogue are those that it names.
fn check_files(folder: &Path, catalog: &Catalog) -> anyhow::Result<()> {
    for plugin in &catalog.plugins {
        for version in &plugin.versions {
            check_package(folder, version).with_context(|| format!("'{}' {}", plugin.id, version.version))?;
        }
        if let Some(icon) = &plugin.icon {
            let content = files::get(&folder.join(icon), COMPONENT_BYTES_MAX)?;
            ensure!(icon.contains(&sha256(&content)), "'{icon}' is not the icon of '{}'", plugin.id);
        }
    }
    Ok(())
}

fn check_package(folder: &Path, version: &PluginVersion) -> anyhow::Result<()> {
    let package = &version.package;
    if package.url.contains(':') {
        return say(&format!("  {} is elsewhere and was not looked at", package.url));
    }
    let content = files::get(&folder.join(&package.url), package.length)?;
    if u64::try_from(content.len())? != package.length || sha256(&content) != package.sha256 {
        bail!("'{}' is not the package that the catalogue names", package.url);
    }
    Ok(())
}
