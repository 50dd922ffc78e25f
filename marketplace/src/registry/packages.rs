//! What the next catalogue will list: publishers, plugins and their versions, and what is revoked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, ensure};
use clap::{Args, ValueEnum};
use heddle_marketplace::catalog::bounds::DESCRIPTION_BYTES_MAX;
use heddle_marketplace::catalog::{
    Action, Archive, Catalog, ListedKey, Plugin, PluginVersion, Publisher, Revocation, RevokedKind, Time,
    VersionRange,
};
use heddle_marketplace::{
    ARCHIVE_BYTES_MAX, MANIFEST, Verified, inspect, judge_schemas, key_id, read_archive,
};
use sha2::{Digest as _, Sha256};

use crate::registry::Registry;
use crate::roots::later;
use crate::{files, keys, say};

/// Files of a package that are shown as its icon.
const ICONS: [(&str, &str); 2] = [("assets/icon.svg", "svg"), ("assets/icon.png", "png")];

#[derive(Args)]
pub(crate) struct AddPublisher {
    folder: PathBuf,
    /// As manifests name it
    #[arg(long)]
    id: String,
    /// For people; needed for a new publisher
    #[arg(long)]
    name: Option<String>,
    /// A public key as 64 hex digits, or a key file
    #[arg(long = "key")]
    keys: Vec<String>,
    /// A plugin that it may provide, or the beginning of ids such as `acme-*`; its own id and what begins with it by default
    #[arg(long = "may-sign")]
    ids: Vec<String>,
    /// Days for which the added keys are valid
    #[arg(long, default_value_t = 730)]
    days: u32,
    /// The id of a key that signs nothing more from now on
    #[arg(long = "retire")]
    retired: Vec<String>,
}

#[derive(Args)]
pub(crate) struct Add {
    folder: PathBuf,
    /// The ZIP archive of a package
    package: PathBuf,
    /// One line for people; needed for a new plugin
    #[arg(long)]
    summary: Option<String>,
    /// A file of plain text
    #[arg(long)]
    description: Option<PathBuf>,
    /// A word such as `switching`; once for each
    #[arg(long = "category")]
    categories: Vec<String>,
    #[arg(long)]
    homepage: Option<String>,
}

#[derive(Args)]
pub(crate) struct Yank {
    folder: PathBuf,
    plugin: String,
    version: semver::Version,
    /// Offer it again
    #[arg(long)]
    undo: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindArgument {
    Package,
    Component,
    Key,
    Plugin,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ActionArgument {
    Block,
    Disable,
    Kill,
}

#[derive(Args)]
pub(crate) struct Revoke {
    folder: PathBuf,
    #[arg(long, value_enum)]
    kind: KindArgument,
    /// SHA-256 as hex; for a plugin its id
    #[arg(long)]
    value: String,
    /// Which versions of a plugin, such as `<1.4.1`; all of them by default
    #[arg(long)]
    versions: Option<VersionRange>,
    #[arg(long, value_enum)]
    action: ActionArgument,
    /// One line for people
    #[arg(long)]
    reason: String,
}

impl AddPublisher {
    pub(crate) fn execute(self, now: Time) -> anyhow::Result<()> {
        let registry = Registry::open(&self.folder)?;
        let mut catalog = registry.catalog()?;
        let at = catalog.publishers.iter().position(|publisher| publisher.id == self.id);
        let mut publisher = match at {
            Some(at) => catalog.publishers.remove(at),
            None => Publisher {
                id: self.id.clone(),
                name: self.name.clone().context("'--name' says what a new publisher is called")?,
                keys: Vec::new(),
                ids: Vec::new(),
            },
        };
        publisher.name = self.name.unwrap_or(publisher.name);
        publisher
            .ids
            .extend(self.ids.into_iter().filter(|id| !publisher.ids.contains(id)).collect::<Vec<_>>());
        if publisher.ids.is_empty() {
            publisher.ids = vec![self.id.clone(), format!("{}-*", self.id)];
        }
        for id in &self.retired {
            let key = publisher.keys.iter_mut().find(|key| key.keyid == *id);
            let key = key.with_context(|| format!("the publisher has no key '{id}'"))?;
            key.not_after = key.not_after.min(now);
        }
        // What was never valid leaves no trace.
        publisher.keys.retain(|key| key.not_before < key.not_after);
        for text in &self.keys {
            let public = keys::public(text)?;
            publisher.keys.push(ListedKey {
                keyid: key_id(&public),
                public: hex::encode(public),
                not_before: now,
                not_after: later(now, self.days)?,
            });
        }
        let line = format!(
            "publisher '{}' has {} keys and may sign {}",
            publisher.id,
            publisher.keys.len(),
            publisher.ids.join(", ")
        );
        catalog.publishers.push(publisher);
        registry.keep_catalog(&catalog)?;
        say(&line)
    }
}

impl Add {
    pub(crate) fn execute(self, now: Time) -> anyhow::Result<()> {
        let registry = Registry::open(&self.folder)?;
        let mut catalog = registry.catalog()?;
        let archive = files::get(&self.package, u64::try_from(ARCHIVE_BYTES_MAX)?)?;
        let contents = read_archive(&archive)?;
        let id = inspect(contents.get(MANIFEST).context("the package has no manifest")?)?.id;
        let trusted = catalog.signing_keys(&id, now, &registry.revocations()?);
        ensure!(!trusted.is_empty(), "no publisher has a valid key for '{id}'; 'publisher' adds one");
        let package = Verified::open_archive(&archive, &trusted)?;
        judge_schemas(package.manifest(), package.description())
            .map_err(|problem| anyhow!("a schema is not accepted: {problem}"))?;

        let version = listed(&package, &archive, now)?;
        let (number, url) = (version.version.clone(), version.package.url.clone());
        let mut plugin = self.plugin(&catalog, &package)?;
        ensure!(
            plugin.version(&number).is_none(),
            "version {number} of '{id}' is listed; a version is never replaced, add a higher one"
        );
        plugin.versions.push(version);
        if let Some((name, icon)) = icon(&contents) {
            files::write(&registry.public(&name), icon)?;
            plugin.icon = Some(name);
        }
        for other in catalog.lookalikes(&id, &plugin.publisher) {
            say(&format!("warning: '{id}' looks like '{}' by '{}'", other.id, other.publisher))?;
        }
        catalog.plugins.retain(|known| known.id != id);
        catalog.plugins.push(plugin);
        // Bytes come before the entry that names them.
        files::write(&registry.public(&url), &archive)?;
        registry.keep_catalog(&catalog)?;
        say(&format!("'{id}' {number} is in the draft; its package is {url}"))
    }

    /// The entry of the package's plugin, with what this version and the arguments say anew.
    fn plugin(&self, catalog: &Catalog, package: &Verified) -> anyhow::Result<Plugin> {
        let manifest = package.manifest();
        let known = catalog.plugin(&manifest.id);
        let summary = self.summary.clone().or_else(|| known.map(|plugin| plugin.summary.clone()));
        let description = match &self.description {
            Some(path) => Some(String::from_utf8(files::get(path, u64::try_from(DESCRIPTION_BYTES_MAX)?)?)?),
            None => known.map(|plugin| plugin.description.clone()),
        };
        let categories = match (self.categories.is_empty(), known) {
            (true, Some(plugin)) => plugin.categories.clone(),
            _ => self.categories.clone(),
        };
        Ok(Plugin {
            id: manifest.id.clone(),
            publisher: manifest.publisher.clone(),
            kind: manifest.kind,
            name: manifest.name.clone(),
            summary: summary.context("'--summary' says what a new plugin is")?,
            description: description.unwrap_or_default(),
            categories,
            license: manifest.license.clone(),
            homepage: self.homepage.clone().or_else(|| known.and_then(|plugin| plugin.homepage.clone())),
            icon: known.and_then(|plugin| plugin.icon.clone()),
            versions: known.map(|plugin| plugin.versions.clone()).unwrap_or_default(),
        })
    }
}

fn listed(package: &Verified, archive: &[u8], now: Time) -> anyhow::Result<PluginVersion> {
    let manifest = package.manifest();
    let sha256 = sha256(archive);
    let permissions = &manifest.permissions;
    let permissions =
        (!permissions.is_empty()).then(|| serde_json::value::to_raw_value(permissions)).transpose()?;
    Ok(PluginVersion {
        version: manifest.version.clone(),
        package: Archive {
            url: format!("packages/{sha256}.zip"),
            length: u64::try_from(archive.len())?,
            sha256,
        },
        manifest_sha256: package.manifest_sha256().to_owned(),
        component_sha256: package.component_sha256().to_owned(),
        api: manifest.api.clone(),
        min_host: manifest.min_host.as_deref().map(semver::Version::parse).transpose()?,
        released: now,
        yanked: false,
        signed_by: package.key_ids(),
        capabilities: Some(serde_json::value::to_raw_value(&manifest.capabilities)?),
        permissions,
    })
}

/// The icon of a package, and the name under which it is served.
fn icon(contents: &BTreeMap<String, Vec<u8>>) -> Option<(String, &[u8])> {
    ICONS.iter().find_map(|(name, ending)| {
        let icon = contents.get(*name)?;
        Some((format!("icons/{}.{ending}", sha256(icon)), icon.as_slice()))
    })
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

impl Yank {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let registry = Registry::open(&self.folder)?;
        let mut catalog = registry.catalog()?;
        let plugin = catalog.plugins.iter_mut().find(|plugin| plugin.id == self.plugin);
        let versions = plugin
            .map(|plugin| &mut plugin.versions)
            .with_context(|| format!("'{}' is not listed", self.plugin))?;
        let version = versions.iter_mut().find(|one| one.version == self.version);
        let version =
            version.with_context(|| format!("'{}' has no version {}", self.plugin, self.version))?;
        version.yanked = !self.undo;
        registry.keep_catalog(&catalog)?;
        let what = if self.undo { "offered again" } else { "not offered any more" };
        say(&format!("'{}' {} is {what} in the draft", self.plugin, self.version))
    }
}

impl Revoke {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let registry = Registry::open(&self.folder)?;
        let mut revocations = registry.revocations()?;
        let revocation = Revocation {
            kind: match self.kind {
                KindArgument::Package => RevokedKind::Package,
                KindArgument::Component => RevokedKind::Component,
                KindArgument::Key => RevokedKind::Key,
                KindArgument::Plugin => RevokedKind::Plugin,
            },
            value: self.value,
            versions: self.versions,
            action: match self.action {
                ActionArgument::Block => Action::Block,
                ActionArgument::Disable => Action::Disable,
                ActionArgument::Kill => Action::Kill,
            },
            reason: self.reason,
        };
        revocation.check().map_err(|problem| anyhow!(problem))?;
        ensure!(!revocations.iter().any(|one| one.is_same(&revocation)), "this is revoked already");
        revocations.push(revocation);
        registry.keep_revocations(&revocations)?;
        say(&format!("{} revocations are in the draft; 'timestamp' publishes them", revocations.len()))
    }
}
