//! The folder of a plugin: what its author writes, and the cache `.heddle` beside it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::ValueEnum;
use heddle_marketplace::manifest::Capabilities;
use heddle_marketplace::{MANIFEST, MANIFEST_BYTES_MAX, PublisherKey};
use serde_json::Value;

use crate::tool::read_bounded;

/// What a plugin is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    Rust,
    #[value(name = "js")]
    JavaScript,
    Python,
}

impl Language {
    const ALL: [Self; 3] = [Self::Rust, Self::JavaScript, Self::Python];

    /// The file by which a folder is seen to be of this language, which holds or leads to the source.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs",
            Self::JavaScript => "src/plugin.js",
            Self::Python => "src/plugin.py",
        }
    }
}

/// An import that needs a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Import {
    /// Name of the feature of the SDK.
    pub(crate) feature: &'static str,
    pub(crate) interface: &'static str,
}

impl Import {
    pub(crate) fn of(asked: &Capabilities) -> Vec<Self> {
        let all = [
            ("http", "heddle:host/http", !asked.http.is_empty()),
            ("secrets", "heddle:host/secrets", asked.secrets.is_any()),
            ("kv", "heddle:plugin/kv", asked.kv.is_some()),
            ("fabric", "heddle:plugin/fabric", !asked.called().is_empty()),
            ("events", "heddle:plugin/events", !asked.emitted().is_empty()),
            ("schedule", "heddle:plugin/schedule", asked.schedule.is_some()),
        ];
        let wanted = all.into_iter().filter(|(_, _, is_wanted)| *is_wanted);
        wanted.map(|(feature, interface, _)| Self { feature, interface }).collect()
    }
}

/// A plugin of its author.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) language: Language,
}

impl Project {
    pub(crate) fn open(root: &Path) -> anyhow::Result<Self> {
        let root = root.canonicalize().with_context(|| format!("there is no folder '{}'", root.display()))?;
        if !root.join(MANIFEST).is_file() {
            bail!(
                "'{}' has no {MANIFEST}; 'heddle plugin new NAME' makes a plugin, and --project names its folder",
                root.display()
            );
        }
        let is_there = |language: &Language| root.join(language.source()).is_file();
        let Some(language) = Language::ALL.into_iter().find(is_there) else {
            let sources = Language::ALL.map(Language::source);
            bail!("'{}' has none of the sources {}", root.display(), sources.join(", "));
        };
        Ok(Self { root, language })
    }

    /// The folder of what can be made again, made when it is missing.
    pub(crate) fn cache(&self) -> anyhow::Result<PathBuf> {
        let cache = self.root.join(".heddle");
        std::fs::create_dir_all(&cache).with_context(|| format!("'{}' cannot be made", cache.display()))?;
        Ok(cache)
    }

    /// Where the component is, once it was built.
    pub(crate) fn component(&self) -> PathBuf {
        self.root.join(".heddle/component.wasm")
    }

    /// The text of the manifest as its author wrote it.
    pub(crate) fn manifest(&self) -> anyhow::Result<Vec<u8>> {
        read_bounded(&self.root.join(MANIFEST), MANIFEST_BYTES_MAX)
    }

    /// The same as a value. What it says is judged when it is packed.
    pub(crate) fn manifest_value(&self) -> anyhow::Result<Value> {
        let value: Value =
            serde_json::from_slice(&self.manifest()?).with_context(|| format!("{MANIFEST} is not JSON"))?;
        ensure!(value.is_object(), "{MANIFEST} is no JSON object; it begins with {{");
        Ok(value)
    }

    /// What the plugin imports beyond what every component may.
    pub(crate) fn imports(&self) -> anyhow::Result<Vec<Import>> {
        let Some(asked) = self.manifest_value()?.get("capabilities").cloned() else { return Ok(Vec::new()) };
        let asked = serde_json::from_value(asked).with_context(|| format!("'capabilities' of {MANIFEST}"))?;
        Ok(Import::of(&asked))
    }

    /// The interfaces that a component without an SDK exports: those for which the manifest declares something. Settings are
    /// told to a plugin that sets timers.
    pub(crate) fn exports(&self) -> anyhow::Result<Vec<&'static str>> {
        let manifest = self.manifest_value()?;
        let has = |key: &str| manifest[key].as_array().is_some_and(|list| !list.is_empty());
        let all = [
            ("lifecycle", true),
            ("configuration", manifest["capabilities"].get("schedule").is_some()),
            ("migration", manifest["capabilities"]["kv"]["migrates"] == true),
            ("actions", has("actions")),
            ("triggers", has("triggers")),
            ("tools", has("tools")),
            ("inbound", has("hooks")),
        ];
        Ok(all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect())
    }

    /// The id that the manifest gives.
    pub(crate) fn id(&self) -> anyhow::Result<String> {
        let manifest = self.manifest_value()?;
        manifest["id"].as_str().map(str::to_owned).with_context(|| format!("{MANIFEST} has no 'id'"))
    }

    /// The key for development, made when it is first needed. It signs in the name of the manifest's `publisher`, since
    /// a package is accepted from no other; without one, in that of the plugin's id.
    pub(crate) fn key(&self) -> anyhow::Result<PublisherKey> {
        let path = self.cache()?.join("development.key");
        let manifest = self.manifest_value()?;
        let publisher =
            manifest["publisher"].as_str().map_or_else(|| self.id(), |name| Ok(name.to_owned()))?;
        if !path.exists() {
            PublisherKey::generate(&self.id()?)?.save(&path)?;
        }
        let key = PublisherKey::load(&path)
            .with_context(|| format!("'{}' is not accepted; remove it to get a new one", path.display()))?;
        Ok(PublisherKey::new(&publisher, key.signing().clone())?)
    }
}
