//! Plugins of the catalogue as clients see them.

use std::collections::BTreeMap;

use heddle_core::Timestamp;
use heddle_kernel::app::App;
use heddle_marketplace::SUPPORTED_API;
use heddle_marketplace::catalog::{Catalog, Plugin, PluginVersion, Revocation};
use heddle_marketplace::manifest::Kind;
use heddle_plugins::{ItemView, in_words};
use heddle_store::plugins::ratings::Tally;
use heddle_store::{Key, Sort, Sorted};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::install::{host_version, installed_version};

/// What lists of the catalogue are sorted by.
#[derive(Debug)]
pub(crate) struct Listed;

impl Sorted for Listed {
    const KEYS: &'static [Key] = &[Key::in_memory("name"), Key::in_memory(RELEASED)];
    const DEFAULT: &'static str = "name";
    const LAST: &'static [&'static str] = &[];
}

/// By the release of the version that can be installed.
const RELEASED: &str = "released";

/// What is looked for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Part of the id, the name, the summary or the publisher.
    pub(crate) search: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) kind: Option<Kind>,
    pub(crate) installed: Option<bool>,
}

/// Something that can be installed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MarketplacePlugin", example = item_example())]
pub(crate) struct Item {
    id: String,
    /// `adapter` or `plugin`.
    kind: &'static str,
    /// Name for people.
    name: String,
    publisher: PublisherView,
    /// One line.
    summary: String,
    categories: Vec<String>,
    /// The newest version that this service can run; null where there is none.
    version: Option<String>,
    /// When that version was released.
    released: Option<Timestamp>,
    /// The version that is installed; null where none is.
    installed_version: Option<String>,
    /// `version` is newer than the installed one.
    has_update: bool,
    /// Mean of the stars, from 1 to 5; null without ratings.
    rating: Option<f64>,
    /// Number of ratings.
    ratings: i64,
}

/// The publisher of a plugin.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MarketplacePublisher")]
struct PublisherView {
    id: String,
    /// Name for people.
    name: String,
}

/// Something that can be installed, with all of its versions.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MarketplacePluginDetail", example = detail_example())]
pub(crate) struct Detail {
    #[serde(flatten)]
    item: Item,
    /// Several lines of plain text.
    description: String,
    license: String,
    /// An address of the web.
    homepage: Option<String>,
    /// What `version` asks for, in words, high risks first, as far as the catalogue says; null where it says nothing.
    asks_for: Option<Vec<ItemView>>,
    /// Ids of plugins of other publishers that could be taken for this one.
    lookalikes: Vec<String>,
    /// The newest first.
    versions: Vec<VersionView>,
}

/// A version of a plugin.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MarketplaceVersion")]
struct VersionView {
    version: String,
    released: Timestamp,
    /// Version of the interface that it is for.
    api: String,
    /// Bytes of its package.
    size_bytes: u64,
    /// SHA-256 of its manifest, hexadecimal: names this very package.
    manifest_sha256: String,
    /// It can be installed here.
    is_installable: bool,
    /// Why it cannot; null where it can.
    reason: Option<String>,
}

fn item_example() -> Value {
    json!({
        "id": "acme-tickets", "kind": "plugin", "name": "Tickets", "publisher": { "id": "acme", "name": "ACME" },
        "summary": "Opens tickets", "categories": ["tickets"], "version": "1.0.0", "released": "2026-01-05T08:00:00Z",
        "installed_version": null, "has_update": false, "rating": 4.5, "ratings": 2,
    })
}

fn detail_example() -> Value {
    let mut example = item_example();
    let more = json!({
        "description": "", "license": "Apache-2.0", "homepage": null,
        "asks_for": [{ "text": "sends GET requests to 'api' (https://api.example.net:443)", "risk": "low" }],
        "lookalikes": [],
        "versions": [{
            "version": "1.0.0", "released": "2026-01-05T08:00:00Z", "api": "1.0", "size_bytes": 231_904,
            "manifest_sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
            "is_installable": true, "reason": null,
        }],
    });
    if let (Some(example), Value::Object(more)) = (example.as_object_mut(), more) {
        example.extend(more);
    }
    example
}

/// The catalogue, and what is revoked of it.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) app: &'a App,
    pub(crate) catalog: &'a Catalog,
    pub(crate) revocations: &'a [Revocation],
}

impl<'a> Shown<'a> {
    /// The plugins that are wanted, in their order.
    pub(crate) fn wanted(self, wanted: &Wanted, order: Sort<Listed>) -> Vec<&'a Plugin> {
        let search = wanted.search.as_ref().map(|text| text.to_lowercase());
        let has =
            |text: &str| search.as_ref().is_none_or(|search| text.to_lowercase().contains(search.as_str()));
        let names: BTreeMap<&str, &str> = self
            .catalog
            .publishers
            .iter()
            .map(|publisher| (publisher.id.as_str(), publisher.name.as_str()))
            .collect();
        let is_wanted = |plugin: &&'a Plugin| {
            let publisher = names.get(plugin.publisher.as_str()).copied().unwrap_or_default();
            [plugin.id.as_str(), &plugin.name, &plugin.summary, &plugin.publisher, publisher]
                .into_iter()
                .any(has)
                && wanted.category.as_ref().is_none_or(|category| plugin.categories.contains(category))
                && wanted.kind.is_none_or(|kind| plugin.kind == kind)
                && wanted
                    .installed
                    .is_none_or(|installed| installed_version(self.app, plugin).is_some() == installed)
        };
        let found = self.catalog.plugins.iter().filter(is_wanted);
        if order.word() == RELEASED {
            let by_release = |plugin: &Plugin| self.newest(plugin).map(|version| version.released);
            // What cannot be installed stands at the end in both directions.
            let (mut there, absent): (Vec<_>, Vec<_>) = found
                .map(|plugin| (by_release(plugin), plugin))
                .partition(|(released, _)| released.is_some());
            there.sort_by_key(|(released, plugin)| (*released, plugin.id.clone()));
            if !order.is_ascending() {
                there.reverse();
            }
            return there.into_iter().chain(absent).map(|(_, plugin)| plugin).collect();
        }
        let mut found: Vec<&'a Plugin> = found.collect();
        found.sort_by_cached_key(|plugin| (plugin.name.to_lowercase(), plugin.id.clone()));
        if !order.is_ascending() {
            found.reverse();
        }
        found
    }

    fn newest(self, plugin: &Plugin) -> Option<&PluginVersion> {
        plugin.newest_installable(&host_version(), SUPPORTED_API, self.revocations)
    }

    /// A plugin in a list. `tallies` are the ratings of those of the list.
    pub(crate) fn item(self, plugin: &Plugin, tallies: &[Tally]) -> Item {
        let newest = self.newest(plugin);
        let installed = installed_version(self.app, plugin);
        let tally = tallies.iter().find(|tally| tally.plugin_id == plugin.id);
        let publisher = self.catalog.publisher(&plugin.publisher);
        let is_newer = |newest: &PluginVersion| {
            installed.as_ref().is_some_and(|installed| newest.version.cmp_precedence(installed).is_gt())
        };
        Item {
            id: plugin.id.clone(),
            kind: plugin.kind.as_str(),
            name: plugin.name.clone(),
            publisher: PublisherView {
                id: plugin.publisher.clone(),
                name: publisher.map_or_else(|| plugin.publisher.clone(), |publisher| publisher.name.clone()),
            },
            summary: plugin.summary.clone(),
            categories: plugin.categories.clone(),
            version: newest.map(|version| version.version.to_string()),
            released: newest.map(|version| version.released),
            has_update: newest.is_some_and(is_newer),
            installed_version: installed.map(|version| version.to_string()),
            rating: tally.and_then(mean),
            ratings: tally.map_or(0, |tally| tally.count),
        }
    }

    /// A plugin with all of its versions.
    pub(crate) fn detail(self, plugin: &Plugin, tallies: &[Tally]) -> Detail {
        let asked =
            self.newest(plugin).filter(|_| plugin.kind == Kind::Plugin).and_then(PluginVersion::asks_for);
        let lookalikes = self.catalog.lookalikes(&plugin.id, &plugin.publisher);
        let mut versions: Vec<&PluginVersion> = plugin.versions.iter().collect();
        versions.sort_by(|one, other| other.version.cmp_precedence(&one.version));
        Detail {
            item: self.item(plugin, tallies),
            description: plugin.description.clone(),
            license: plugin.license.clone(),
            homepage: plugin.homepage.clone(),
            asks_for: asked.map(|asked| in_words(self.app, &asked)),
            lookalikes: lookalikes.into_iter().map(|plugin| plugin.id.clone()).collect(),
            versions: versions.into_iter().map(|version| self.version(plugin, version)).collect(),
        }
    }

    fn version(self, plugin: &Plugin, version: &PluginVersion) -> VersionView {
        let revoked = plugin.revoked(version, self.revocations);
        let reason = revoked.map(|revocation| format!("revoked: {}", revocation.reason));
        let reason = reason
            .or_else(|| version.yanked.then(|| "no longer offered".to_owned()))
            .or_else(|| version.misfit(&host_version(), SUPPORTED_API));
        VersionView {
            version: version.version.to_string(),
            released: version.released,
            api: version.api.clone(),
            size_bytes: version.package.length,
            manifest_sha256: version.manifest_sha256.clone(),
            is_installable: reason.is_none(),
            reason,
        }
    }
}

/// Two digits behind the point are enough for a mean of stars.
fn mean(tally: &Tally) -> Option<f64> {
    let hundredths = tally.stars.saturating_mul(100).checked_div(tally.count)?;
    Some(f64::from(i32::try_from(hundredths).ok()?) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_of_all_stars() {
        let tally = |count, stars| Tally { plugin_id: String::new(), count, stars };
        assert_eq!(mean(&tally(3, 11)), Some(3.66));
        assert_eq!(mean(&tally(1, 5)), Some(5.0));
        assert_eq!(mean(&tally(0, 0)), None);
    }
}
