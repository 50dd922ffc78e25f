//! What this process knows of the plugins in the database: how each stands, and what the manifest of its package says.
//!
//! It is read anew after each change. The names that plugins bring, permissions and types of events, follow from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use heddle_core::event::Priority;
use heddle_core::interned;
use heddle_core::operation::OperationTier;
use heddle_core::plugin::{PackageOrigin, PluginState};
use heddle_core::{OrgId, Role};
use heddle_fabric::operation::Template;
use heddle_fabric::provided::Provider;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_marketplace::manifest::Manifest;
use heddle_marketplace::plugin::{ConnectionTemplate, EventType, operation_id};
use heddle_store::Tx;
use heddle_store::plugins::{self, PluginRow, PluginUid, organizations};
use semver::Version;
use tokio::sync::Notify;

/// The lowest role that holds a permission of a plugin: its author cannot know who works in an organization.
const ROLE: Role = Role::OrgAdmin;

/// A plugin as the database had it.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) row: PluginRow,
    /// SHA-256 and manifest of the package that serves when the plugin is active, or waits where none ever served.
    pub(crate) current: Option<(String, Arc<Manifest>)>,
    /// Where that package comes from.
    origin: Option<PackageOrigin>,
}

impl Known {
    /// The manifest of the package that serves when the plugin is active.
    pub(crate) fn serving(&self) -> Option<&Arc<Manifest>> {
        let (sha256, manifest) = self.current.as_ref()?;
        (self.row.serving_sha256.as_ref() == Some(sha256)).then_some(manifest)
    }
}

/// The plugins that this process knows, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Index {
    all: ArcSwap<BTreeMap<String, Arc<Known>>>,
    /// As [`plugins::stamp`] of what was read last.
    stamp: ArcSwap<(i64, i64)>,
    /// This process knows what it or another one changed.
    pub(crate) caught_up: Notify,
}

impl Index {
    /// That of this process.
    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    pub(crate) fn all(&self) -> Arc<BTreeMap<String, Arc<Known>>> {
        self.all.load_full()
    }

    pub(crate) fn find(&self, plugin: &str) -> Option<Arc<Known>> {
        self.all.load().get(plugin).cloned()
    }

    /// As [`plugins::stamp`] of what was read last.
    pub(crate) fn stamp(&self) -> (i64, i64) {
        **self.stamp.load()
    }

    /// The plugin that the database knows by this uid.
    pub(crate) fn by_uid(&self, uid: PluginUid) -> Option<Arc<Known>> {
        self.all.load().values().find(|known| known.row.id == uid).cloned()
    }

    /// The uid under which the database keeps what belongs to a plugin.
    pub(crate) fn uid(&self, plugin: &str) -> Option<PluginUid> {
        self.all.load().get(plugin).map(|known| known.row.id)
    }

    /// Reads all plugins anew, and declares the names that they bring.
    pub(crate) async fn read(&self, app: &App) -> Result<(), Error> {
        let mut tx = app.db.read().await?;
        // Before the plugins: a change in between is seen as one.
        let stamp = plugins::stamp(&mut tx).await?;
        let rows = plugins::all(&mut tx).await?;
        let versions = plugins::current_versions(&mut tx).await?;
        let served = plugins::event_types_served(&mut tx).await?;
        drop(tx);
        let mut versions: BTreeMap<PluginUid, _> =
            versions.into_iter().map(|version| (version.plugin_uid, version)).collect();
        let before = self.all();
        let known = rows.into_iter().map(|row| {
            let same = before.get(&row.plugin_id).and_then(|known| known.current.clone());
            let version = versions.remove(&row.id);
            let origin = version.as_ref().map(|version| version.origin);
            let current = version.and_then(|version| match same {
                Some((sha256, manifest)) if sha256 == version.manifest_sha256 => Some((sha256, manifest)),
                _ => parsed(&version.manifest).map(|manifest| (version.manifest_sha256, Arc::new(manifest))),
            });
            (row.plugin_id.clone(), Arc::new(Known { row, current, origin }))
        });
        self.all.store(Arc::new(known.collect()));
        self.stamp.store(Arc::new(stamp));
        self.declare(app, &served);
        self.caught_up.notify_one();
        Ok(())
    }

    /// Declares the permissions of plugins that are installed and were agreed to, and the types of events of every package
    /// that ever served, `served` as [`plugins::event_types_served`]. What was emitted can be read as long as it is kept: after
    /// a version that declares the type no more, and after a removal.
    fn declare(&self, app: &App, served: &[String]) {
        let all = self.all();
        let (mut permissions, mut events) = (Vec::new(), BTreeMap::new());
        let mut add = |one: &EventType| {
            let declared =
                || interned::event_type(&one.event_type, "plugin", Priority::Normal, &one.payload_schema);
            // The first one stays.
            events.entry(one.event_type.clone()).or_insert_with(declared);
        };
        for known in all.values() {
            let Some(manifest) = known.serving() else { continue };
            if known.row.state != PluginState::Removed {
                let brought = &manifest.permissions;
                permissions.extend(brought.iter().map(|one| interned::permission(&one.id, ROLE, &one.title)));
            }
            for one in &manifest.event_types {
                add(one);
            }
        }
        for one in served.iter().flat_map(|types| event_types(types)) {
            add(&one);
        }
        app.declare(&permissions, &events.into_values().collect::<Vec<_>>());
    }
}

/// The types of events as they were kept. Those that this version cannot read are left out.
fn event_types(kept: &str) -> Vec<EventType> {
    serde_json::from_str(kept)
        .inspect_err(|error| tracing::error!(error = %error, "types of events of a plugin cannot be read"))
        .unwrap_or_default()
}

/// The manifest as it was kept. One that this version cannot read is as good as none.
pub(crate) fn parsed(manifest: &serde_json::Value) -> Option<Manifest> {
    use serde::Deserialize as _;
    Manifest::deserialize(manifest)
        .inspect_err(|error| tracing::error!(error = %error, "the manifest of a plugin cannot be read"))
        .ok()
}

/// How a plugin stands that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub state: PluginState,
    /// Of the package that serves when the plugin is active, or waits where none ever served.
    pub version: Option<Version>,
    /// Where that package comes from.
    pub origin: PackageOrigin,
}

/// How a plugin stands; `None` where it is not installed.
#[must_use]
pub fn standing(app: &App, plugin: &str) -> Option<Standing> {
    let known = Index::of(app).find(plugin).filter(|known| known.row.state != PluginState::Removed)?;
    Some(Standing {
        state: known.row.state,
        version: known.current.as_ref().map(|(_, manifest)| manifest.version.clone()),
        origin: known.origin.unwrap_or(PackageOrigin::Upload),
    })
}

/// Whether a package was sent before, whatever became of it.
pub async fn was_sent(app: &App, manifest_sha256: &str) -> Result<bool, Error> {
    Ok(plugins::find_version(&mut app.db.single().await?, manifest_sha256).await?.is_some())
}

fn template(manifest: &Manifest, one: &ConnectionTemplate) -> Template {
    Template {
        id: operation_id(&manifest.id, &one.id),
        tier: OperationTier::Plugin,
        owner: manifest.id.clone(),
        title: one.title.clone(),
        description: one.description.clone(),
        connection: one.connection.as_object().cloned().unwrap_or_default(),
    }
}

/// Operations of active plugins are offered where an organization has switched the plugin on.
pub(crate) struct Switched;

#[async_trait::async_trait]
impl Provider for Switched {
    async fn offered_in(&self, app: &App, tx: &mut Tx, org: OrgId) -> Result<BTreeSet<String>, Error> {
        let switched_on = organizations::switched_on(tx, org).await?;
        let all = Index::of(app).all();
        let manifests = switched_on.iter().filter_map(|plugin| all.get(plugin)?.serving());
        let operations = manifests.flat_map(|manifest| {
            let tools = manifest.tools.iter().map(|tool| &tool.id);
            let ids = manifest.actions.iter().map(|action| &action.id).chain(tools);
            ids.map(|id| operation_id(&manifest.id, id)).collect::<Vec<_>>()
        });
        Ok(operations.collect())
    }

    async fn templates(&self, app: &App, tx: &mut Tx, org: OrgId) -> Result<Vec<Template>, Error> {
        let switched_on = organizations::switched_on(tx, org).await?;
        let all = Index::of(app).all();
        let manifests = switched_on.iter().filter_map(|plugin| all.get(plugin)?.serving());
        let of = |manifest: &Arc<Manifest>| {
            manifest.templates.iter().map(|one| template(manifest, one)).collect::<Vec<_>>()
        };
        Ok(manifests.flat_map(of).collect())
    }

    fn owner_of<'a>(&self, operation: &'a str) -> Option<&'a str> {
        operation.strip_prefix("plugin.")?.split('.').next()
    }
}
