//! Puts plugins into service and out of it, as the database says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use heddle_core::plugin::PluginState;
use heddle_fabric::provided::{provide, settle};
use heddle_inventory::adapters::shown;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_marketplace::grant;
use heddle_packages::{Ground, NotLoaded, Pauses, find_binding, open_kept};
use heddle_runtime::Plugin;
use heddle_store::installed_packages::Installed;
use heddle_store::plugins::{self, PluginRow};

use crate::index::{Index, Known};
use crate::install::granted;
use crate::operations;
use crate::revoke::is_killed;
use crate::turns::{Seen, Turns};

/// What the ids of a plugin's operations begin with.
pub(crate) fn prefix(plugin: &str) -> String {
    format!("plugin.{plugin}.")
}

/// Packages that were prepared, or why not, by the ids of their plugins.
pub(crate) type Prepared = BTreeMap<String, Result<Plugin, NotLoaded>>;

/// Prepares the packages that this process should serve and does not serve yet. Changes of plugins do not wait for this.
pub(crate) async fn prepare(app: &SharedApp, pauses: &mut Pauses) -> Result<Prepared, Error> {
    let _one = Turns::of(app).prepare().await;
    let rows = plugins::all(&mut app.db.single().await?).await?;
    let mut prepared = Prepared::new();
    for row in rows {
        let Some(manifest) = wanted(&row) else { continue };
        if is_met(app, &row) || pauses.last(&as_installed(&row), Instant::now()) {
            continue;
        }
        let loaded = load(app, &row, manifest).await;
        prepared.insert(row.plugin_id.clone(), loaded);
    }
    Ok(prepared)
}

/// Takes over what the database says now: of all plugins that this process has not taken up as they stand.
///
/// A plugin that cannot be loaded is absent, and its reason is shown. What is read wrong or not at all stays as it is. A
/// package that is not among the prepared ones is left to a later call.
pub(crate) async fn take_over(
    app: &SharedApp,
    seen: &mut Seen,
    pauses: &mut Pauses,
    mut prepared: Prepared,
) -> Result<(), Error> {
    let rows = plugins::all(&mut app.db.single().await?).await?;
    let is_new = |id: &str, revision: i64| seen.get(id) != Some(&revision);
    let changed: Vec<String> = rows
        .iter()
        .filter(|row| is_new(&row.plugin_id, row.revision))
        .map(|row| row.plugin_id.clone())
        .collect();
    let index = Index::of(app);
    if !changed.is_empty() {
        index.read(app).await?;
    }
    let all = index.all();
    let (mut taken, mut failed) = (Vec::new(), None);
    for (id, known) in all.iter() {
        let is_changed = changed.contains(id);
        if !is_changed && is_met(app, &known.row) {
            continue;
        }
        let tried = as_installed(&known.row);
        let renewed = match (wanted(&known.row), prepared.remove(id)) {
            (Some(manifest), Some(Ok(plugin))) if plugin.manifest_sha256() == manifest => {
                app.runtime.serve_plugin(&plugin);
                Ok(())
            }
            (Some(_), Some(Err(problem))) => without(app, id, problem),
            (Some(_), _) if !is_met(app, &known.row) => continue,
            _ => renew(app, known).await,
        };
        match renewed {
            Ok(()) => {
                Turns::of(app).note(id, None);
                pauses.end(id);
            }
            Err(NotLoaded::Unknown(error)) => {
                failed = Some(error);
                break;
            }
            Err(problem) => {
                // What cannot be compiled is tried again seldom: a compilation takes a core.
                pauses.prolong(&tried, Instant::now());
                Turns::of(app).note(id, Some(problem.to_string()));
                if !is_changed {
                    continue;
                }
            }
        }
        // Until it is settled, this counts as a change that is to be taken over.
        seen.remove(id);
        taken.push((id, known.row.revision));
    }
    // All of them serve before anything is settled: a Connection may use operations of several.
    if !taken.is_empty() {
        provide(app, operations::all(app));
    }
    for (id, revision) in taken {
        settle(app, id, &prefix(id), None).await?;
        seen.insert(id.clone(), revision);
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// The same for one plugin that this process has just changed; returns when everything shows it.
pub(crate) async fn apply(
    app: &SharedApp,
    seen: &mut Seen,
    plugin: &str,
    prepared: Option<Plugin>,
) -> Result<(), Error> {
    let index = Index::of(app);
    index.read(app).await?;
    let Some(known) = index.find(plugin) else { return Ok(()) };
    let done = match prepared {
        Some(prepared) if wanted(&known.row) == Some(prepared.manifest_sha256()) => {
            app.runtime.serve_plugin(&prepared);
            Ok(())
        }
        _ => renew(app, &known).await,
    };
    Turns::of(app).note(plugin, done.err().map(|problem| problem.to_string()));
    provide(app, operations::all(app));
    settle(app, plugin, &prefix(plugin), None).await?;
    seen.insert(plugin.to_owned(), known.row.revision);
    shown(app).await;
    Ok(())
}

/// SHA-256 of the manifest of the package that should serve; `None` where none should.
fn wanted(row: &PluginRow) -> Option<&str> {
    if row.state == PluginState::Active { row.serving_sha256.as_deref() } else { None }
}

/// Whether this process serves what it should.
fn is_met(app: &App, row: &PluginRow) -> bool {
    let serving = app.runtime.plugin(&row.plugin_id);
    serving.as_ref().map(Plugin::manifest_sha256) == wanted(row)
}

/// Has a plugin absent whose package cannot be loaded: another one than was agreed to last does not stand in for it.
fn without(app: &App, id: &str, problem: NotLoaded) -> Result<(), NotLoaded> {
    if !matches!(problem, NotLoaded::Unknown(_)) {
        app.runtime.withdraw_plugin(id);
    }
    Err(problem)
}

/// Serves the package that should serve, or none.
async fn renew(app: &App, known: &Known) -> Result<(), NotLoaded> {
    if is_met(app, &known.row) {
        return Ok(());
    }
    let id = &known.row.plugin_id;
    let Some(manifest) = wanted(&known.row) else {
        let serving = app.runtime.plugin(id).filter(|_| known.row.state == PluginState::Quarantined);
        if let Some(serving) = serving
            && is_killed(&mut app.db.read().await?, serving.manifest_sha256()).await?
        {
            serving.cut();
        }
        app.runtime.withdraw_plugin(id);
        return Ok(());
    };
    match load(app, &known.row, manifest).await {
        Ok(plugin) => {
            app.runtime.serve_plugin(&plugin);
            Ok(())
        }
        Err(problem) => without(app, id, problem),
    }
}

/// Prepares a package that is kept. It must be of a key that may sign this id, and may do nothing that was not agreed to.
pub(crate) async fn load(app: &App, row: &PluginRow, manifest: &str) -> Result<Plugin, NotLoaded> {
    let ground = Ground::of(app).await?;
    let package = open_kept(app, manifest, &ground.keys()).await?;
    let allowed = format!("{}@{}", package.manifest().id, package.manifest().version);
    let ground = ground.allowing(allowed);
    if let Some(bound) = find_binding(&app.db, &row.plugin_id).await? {
        heddle_packages::check(&package, &bound, &ground).map_err(NotLoaded::Refused)?;
    }
    let mut tx = app.db.single().await?;
    let agreed = plugins::grant_of(&mut tx, row.id, manifest).await?;
    drop(tx);
    let asked = grant::of(package.manifest());
    let agreed = agreed.and_then(|agreed| granted(&agreed).ok());
    if agreed.is_none_or(|agreed| !grant::difference(&agreed, &asked, |_| false).added.is_empty()) {
        let problem = "what it may do is not what was agreed to; install its package again and consent";
        return Err(NotLoaded::Refused(problem.to_owned()));
    }
    Ok(app.runtime.prepare_plugin(&package).await?)
}

/// The package that is tried, as pauses know it.
fn as_installed(row: &PluginRow) -> Installed {
    Installed {
        adapter_id: row.plugin_id.clone(),
        manifest_sha256: row.serving_sha256.clone().unwrap_or_default(),
        version: String::new(),
        before_sha256: None,
        is_pinned: false,
        changed_at: row.updated_at,
    }
}

/// The plugins that serve in this process.
pub(crate) fn serving(app: &App) -> Vec<(Plugin, Arc<Known>)> {
    let index = Index::of(app);
    let known = |plugin: Plugin| index.find(plugin.id()).map(|known| (plugin, known));
    app.runtime.plugins().into_iter().filter_map(known).collect()
}
