//! Changes of an installed plugin by a person: switched off and on, rolled back, released, removed.

use heddle_core::plugin::PluginState;
use heddle_kernel::app::App;
use heddle_kernel::http::conditional::IfMatch;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_marketplace::Verified;
use heddle_packages::{Ground, NotLoaded, conflict, open_kept, unusable};
use heddle_runtime::Plugin;
use heddle_store::plugins::{self, PluginRow, VersionRow};
use heddle_store::{Tx, catalogs, installed_packages};
use serde_json::json;

use crate::install::{forget_others, supersede, take_place};
use crate::revoke::judge;
use crate::service::{apply, load};
use crate::transition::{Actor, Change, Subject, record};
use crate::turns::Turns;
use crate::view::Outcome;

/// A plugin that is there: a removed one is not.
pub(crate) fn live(row: Option<PluginRow>) -> Result<PluginRow, Error> {
    row.filter(|row| row.state != PluginState::Removed).ok_or(Error::NotFound("plugin"))
}

/// The error where the database has no package of a plugin that it names.
pub(crate) fn missing() -> Error {
    Error::Unavailable("the record of the package is gone; install the package again".to_owned())
}

/// Begins the change of a plugin as a person saw it. Until the end of the transaction the plugin is locked, and a catalogue
/// revokes nothing.
pub(crate) async fn begin(app: &App, plugin: &str, if_match: &IfMatch) -> Result<(Tx, PluginRow), Error> {
    let mut tx = app.db.write().await?;
    catalogs::hold_gate(&mut tx).await?;
    let row = live(plugins::lock(&mut tx, plugin).await?)?;
    if_match.check(&row)?;
    Ok((tx, row))
}

/// Prepares a package that is kept, for which a person is about to agree.
pub(crate) async fn prepared(
    app: &App,
    row: &PluginRow,
    manifest: &str,
    ground: &Ground,
) -> Result<(Verified, Plugin), Error> {
    let package = open_kept(app, manifest, &ground.keys()).await.map_err(|problem| match problem {
        NotLoaded::Refused(why) => {
            conflict(format!("the package of '{}' cannot serve: {why}", row.plugin_id))
        }
        other => other.into(),
    })?;
    let plugin = app.runtime.prepare_plugin(&package).await.map_err(unusable)?;
    Ok((package, plugin))
}

/// Takes the plugin out of service. What it keeps stays.
pub(crate) async fn disable(by: &By, plugin: &str, if_match: &IfMatch) -> Result<Outcome, Error> {
    let from = &[PluginState::Active, PluginState::Quarantined];
    switch(by, plugin, if_match, (from, PluginState::Disabled), "only an active plugin can be disabled").await
}

/// Puts a plugin that was disabled back into service.
pub(crate) async fn enable(by: &By, plugin: &str, if_match: &IfMatch) -> Result<Outcome, Error> {
    let hint =
        "only a disabled plugin can be enabled: POST /plugins/{id}/consent or /release may be what it needs";
    switch(by, plugin, if_match, (&[PluginState::Disabled], PluginState::Active), hint).await
}

/// Lets a plugin that failed too often take calls again.
pub(crate) async fn release(by: &By, plugin: &str, if_match: &IfMatch) -> Result<Outcome, Error> {
    let hint = "only a plugin in quarantine can be released";
    switch(by, plugin, if_match, (&[PluginState::Quarantined], PluginState::Active), hint).await
}

/// Changes the state of a plugin that is in one of these.
async fn switch(
    by: &By,
    plugin: &str,
    if_match: &IfMatch,
    (from, to): (&[PluginState], PluginState),
    hint: &str,
) -> Result<Outcome, Error> {
    let app = &by.app;
    let turns = Turns::of(app);
    // What is taken out of service holds no package in memory: that is never refused because others wait.
    let _place = if to == PluginState::Active { Some(turns.place()?) } else { None };
    let row = live(plugins::find(&mut app.db.single().await?, plugin).await?)?;
    let serving = row.serving_sha256.clone();
    let ready = match &serving {
        Some(serving) if to == PluginState::Active && from.contains(&row.state) => {
            let _one = turns.prepare().await;
            Some(load(app, &row, serving).await?)
        }
        _ => None,
    };
    let mut seen = turns.take().await;

    let (mut tx, mut row) = begin(app, plugin, if_match).await?;
    if !from.contains(&row.state) || row.serving_sha256 != serving {
        return Err(Error::Conflict {
            kind: "plugin_state",
            message: format!("'{plugin}' is {}: {hint}", row.state),
        });
    }
    let version = serving_version(&mut tx, &row).await?;
    if to == PluginState::Active {
        judge(&mut tx, &version, true).await?;
    }
    let before = row.state;
    (row.state, row.reason) = (to, None);
    let row = plugins::update(&mut tx, &row, app.clock.now()).await?;
    plugins::set_version_state(&mut tx, &version.manifest_sha256, to, None).await?;
    tell(&mut tx, by, &row, &version, &Change::between(Some(before), to)).await?;
    tx.commit().await?;
    let outcome = Outcome::of(&row, &VersionRow { state: to, reason: None, ..version });
    apply(app, &mut seen, plugin, ready).await?;
    Ok(outcome)
}

async fn serving_version(tx: &mut Tx, row: &PluginRow) -> Result<VersionRow, Error> {
    let serving = row.serving_sha256.as_deref().ok_or_else(missing)?;
    plugins::find_version(tx, serving).await?.ok_or_else(missing)
}

/// Records what a person did with a package of a plugin.
pub(crate) async fn tell(
    tx: &mut Tx,
    by: &By,
    row: &PluginRow,
    version: &VersionRow,
    change: &Change<'_>,
) -> Result<(), Error> {
    let subject = Subject {
        uid: row.id,
        plugin: &row.plugin_id,
        version: &version.version,
        manifest_sha256: &version.manifest_sha256,
    };
    record(tx, Actor::Person(by), &subject, change).await
}

/// Puts the package that served before back: the one of this version, or the last one.
pub(crate) async fn roll_back(
    by: &By,
    plugin: &str,
    version: Option<&str>,
    if_match: &IfMatch,
) -> Result<Outcome, Error> {
    let app = &by.app;
    let turns = Turns::of(app);
    let _place = turns.place()?;
    let mut tx = app.db.read().await?;
    let row = live(plugins::find(&mut tx, plugin).await?)?;
    let target = target(&mut tx, &row, version).await?;
    drop(tx);
    let one = turns.prepare().await;
    let ready = load(app, &row, &target.manifest_sha256).await?;
    drop(one);
    let mut seen = turns.take().await;

    let (mut tx, mut row) = begin(app, plugin, if_match).await?;
    if row.before_sha256.as_ref() != Some(&target.manifest_sha256) {
        return Err(Error::Conflict {
            kind: "state_moved",
            message: "another package was installed meanwhile; look at the plugin again".to_owned(),
        });
    }
    judge(&mut tx, &target, false).await?;
    let from = serving_version(&mut tx, &row).await?;
    let before = row.clone();
    row.serving_sha256 = row.before_sha256.take();
    take_place(&mut row, "it was switched off before this version was put back; enable it to use it");
    let row = plugins::update(&mut tx, &row, app.clock.now()).await?;
    supersede(&mut tx, &before, &row, PluginState::RolledBack).await?;
    plugins::set_version_state(&mut tx, &target.manifest_sha256, row.state, row.reason.as_deref()).await?;
    forget_others(&mut tx, &row).await?;
    tell(&mut tx, by, &row, &from, &Change::between(Some(before.state), PluginState::RolledBack)).await?;
    let change = Change {
        reason: row.reason.as_deref(),
        detail: json!({ "replaces_version": from.version, "replaces_manifest_sha256": from.manifest_sha256 }),
        ..Change::between(Some(target.state), row.state)
    };
    tell(&mut tx, by, &row, &target, &change).await?;
    tx.commit().await?;
    let outcome = Outcome::of(&row, &VersionRow { state: row.state, reason: row.reason.clone(), ..target });
    apply(app, &mut seen, plugin, Some(ready)).await?;
    Ok(outcome)
}

/// The package that a rollback puts back.
async fn target(tx: &mut Tx, row: &PluginRow, version: Option<&str>) -> Result<VersionRow, Error> {
    let none = |message: String| Error::Conflict { kind: "no_earlier_package", message };
    let id = &row.plugin_id;
    let kept = match &row.before_sha256 {
        Some(before) => plugins::find_version(tx, before).await?,
        None => None,
    };
    match (kept, version) {
        (None, _) => Err(none(format!(
            "no package of '{id}' from before is kept; to serve another version, install its package"
        ))),
        (Some(kept), Some(version)) if kept.version != version => Err(none(format!(
            "version '{version}' of '{id}' is not kept, version {} is; install the package of '{version}' again",
            kept.version
        ))),
        (Some(kept), _) => Ok(kept),
    }
}

/// Removes the plugin, what was agreed to, and what organizations gave it, at once. What it kept is forgotten later.
pub(crate) async fn remove(by: &By, plugin: &str, if_match: &IfMatch) -> Result<(), Error> {
    let app = &by.app;
    let mut seen = Turns::of(app).take().await;
    let mut tx = app.db.write().await?;
    let mut row = live(plugins::lock(&mut tx, plugin).await?)?;
    if_match.check(&row)?;
    let before = row.clone();
    let manifest = row.serving_sha256.clone().or(row.waiting_sha256.take());
    let version = match &manifest {
        Some(manifest) => plugins::find_version(&mut tx, manifest).await?,
        None => plugins::versions(&mut tx, row.id).await?.into_iter().next(),
    };
    let now = app.clock.now();
    (row.state, row.reason) = (PluginState::Removed, None);
    // Where no package was agreed to since an earlier removal, that one counts.
    row.removed_at = row.removed_at.or(Some(now));
    (row.before_sha256, row.waiting_sha256) = (None, None);
    let row = plugins::update(&mut tx, &row, now).await?;
    plugins::forget_bindings(&mut tx, row.id).await?;
    installed_packages::keep_only(&mut tx, plugin, &[]).await?;
    if let Some(waiting) = &before.waiting_sha256 {
        plugins::set_version_state(&mut tx, waiting, PluginState::Removed, None).await?;
    }
    let version = version.ok_or_else(missing)?;
    plugins::set_version_state(&mut tx, &version.manifest_sha256, PluginState::Removed, None).await?;
    tell(&mut tx, by, &row, &version, &Change::between(Some(before.state), PluginState::Removed)).await?;
    tx.commit().await?;
    apply(app, &mut seen, plugin, None).await
}
