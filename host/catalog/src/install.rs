//! Installs packages of the catalogue: finds the version, fetches its package, and hands it on.

use std::sync::Arc;

use axum::Json as Answer;
use axum::body::Bytes;
use axum::response::{IntoResponse as _, Response};
use heddle_core::plugin::{PackageOrigin, PluginState};
use heddle_inventory::adapters::install_listed as install_adapter;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_kernel::version::VERSION;
use heddle_marketplace::SUPPORTED_API;
use heddle_marketplace::catalog::{Assurance, Catalog, Plugin, PluginVersion, Unfit};
use heddle_marketplace::manifest::Kind;
use heddle_packages::{Opened, find_binding, refused};
use heddle_plugins::{Actor, Outcome, Standing, install_listed as install_plugin, note, standing};
use semver::Version;
use serde_json::json;

use crate::shelf::{Shelf, Shelves, shelf};
use crate::sync::source;

/// What a person asks for.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The newest that fits when absent.
    pub(crate) version: Option<Version>,
    /// Why the catalogue is good enough although it has expired.
    pub(crate) override_reason: Option<String>,
}

/// A version of a plugin that is to be installed.
struct Choice<'a> {
    shelf: &'a Shelf,
    catalog: &'a Catalog,
    plugin: &'a Plugin,
    version: &'a PluginVersion,
}

/// The version of this host, as packages name the oldest that they need.
pub(crate) fn host_version() -> Version {
    Version::parse(VERSION).unwrap_or_else(|_| Version::new(0, 0, 0))
}

/// The catalogue, and what is believed of it.
///
/// # Errors
/// 409 where there is none yet.
pub(crate) async fn open(app: &App) -> Result<(Shelf, Arc<Catalog>), Error> {
    there(app).await?.ok_or_else(|| Error::Conflict {
        kind: "no_catalog",
        message: "there is no catalogue yet: POST /marketplace/plugins/sync fetches it".to_owned(),
    })
}

/// The same; `None` where there is none yet.
pub(crate) async fn there(app: &App) -> Result<Option<(Shelf, Arc<Catalog>)>, Error> {
    Ok(shelf(app)
        .await?
        .and_then(|shelf| Some((shelf.catalog.clone()?, shelf)))
        .map(|(catalog, shelf)| (shelf, catalog)))
}

/// Installs a version of a plugin, or of an adapter.
pub(crate) async fn install(
    by: &By,
    creation: Creation,
    plugin: &str,
    asked: Asked,
) -> Result<Response, Error> {
    let app = &by.app;
    let (shelf, catalog) = open(app).await?;
    let choice = choose(&shelf, &catalog, plugin, asked.version.as_ref())?;
    admit(by, &shelf, asked.override_reason).await?;
    let opened = match choice.fetched(app).await {
        Ok(opened) => opened,
        Err(error) => return Err(choice.note_refusal(by, error).await?),
    };
    match choice.plugin.kind {
        Kind::Plugin => {
            let answer = install_plugin(Actor::Person(by), opened, Some(creation)).await?;
            answer.ok_or_else(|| Error::internal("an installation that a person asked for has an answer"))
        }
        Kind::Adapter => {
            require_known_key(app, &opened).await?;
            let is_new = install_adapter(by, &opened).await?;
            let outcome = Outcome::of_adapter(&opened.package);
            if !is_new {
                return Ok(Answer(outcome).into_response());
            }
            let path = format!("/adapters/{plugin}");
            creation.finish_lasting(app.db.write().await?, app, &path, &outcome).await
        }
    }
}

/// Refuses an adapter of another key than the one that it is bound to: adapters have no consent, in which a person would see
/// the key.
async fn require_known_key(app: &App, opened: &Opened) -> Result<(), Error> {
    let (id, keys) = (&opened.package.manifest().id, opened.package.key_ids());
    match find_binding(&app.db, id).await? {
        Some(bound) if !keys.contains(&bound.key_id) => Err(conflict(
            "package_conflict",
            format!(
                "'{id}' belongs to the key {}, and this package is signed by {}: trust that key and send the package to \
                 POST /adapters/packages",
                bound.key_id,
                keys.join(", ")
            ),
        )),
        _ => Ok(()),
    }
}

/// Installs the newest version that fits, where that is newer than the installed one.
pub(crate) async fn update(
    by: &By,
    creation: Creation,
    plugin: &str,
    asked: Asked,
) -> Result<Response, Error> {
    let app = &by.app;
    let (shelf, catalog) = open(app).await?;
    let listed = find(&catalog, plugin)?;
    let Some(installed) = installed_version(app, listed) else {
        return Err(Error::Conflict {
            kind: "not_installed",
            message: format!(
                "'{plugin}' is not installed: POST /marketplace/plugins/{plugin}/install installs it"
            ),
        });
    };
    let newest = listed.newest_installable(&host_version(), SUPPORTED_API, shelf.state.revocations());
    let Some(newest) = newest.filter(|newest| newest.version.cmp_precedence(&installed).is_gt()) else {
        return Err(Error::Conflict {
            kind: "no_update",
            message: format!(
                "the catalogue has no version of '{plugin}' that is newer than {installed} and runs on this host"
            ),
        });
    };
    install(by, creation, plugin, Asked { version: Some(newest.version.clone()), ..asked }).await
}

/// The version of a plugin or adapter that serves or is to serve here.
pub(crate) fn installed_version(app: &App, plugin: &Plugin) -> Option<Version> {
    match plugin.kind {
        Kind::Plugin => standing(app, &plugin.id)?.version,
        Kind::Adapter => app.runtime.adapter(&plugin.id).map(|adapter| adapter.manifest().version.clone()),
    }
}

/// Installs what is newer of the plugins that came from the catalogue. One that needs consent waits for it.
pub(crate) async fn update_all(app: &SharedApp) -> Result<(), Error> {
    let Ok((shelf, catalog)) = open(app).await else { return Ok(()) };
    if shelf.state.may_install(app.clock.now()).is_err() {
        return Ok(());
    }
    let retries = &Shelves::of(app).retries;
    for listed in catalog.plugins.iter().filter(|plugin| plugin.kind == Kind::Plugin) {
        // What a person or the catalogue took out of service stays so until a person has looked.
        let is_followed =
            |here: &Standing| here.origin == PackageOrigin::Catalog && here.state == PluginState::Active;
        let Some(here) = standing(app, &listed.id).filter(is_followed) else { continue };
        let newest = listed.newest_installable(&host_version(), SUPPORTED_API, shelf.state.revocations());
        let Some(newest) = newest else { continue };
        let is_newer = here.version.is_none_or(|version| newest.version.cmp_precedence(&version).is_gt());
        // One that was refused, or waits, is not fetched again and again. Of a fault of this machine, nothing is on record.
        let manifest = &newest.manifest_sha256;
        if !is_newer
            || retries.last(manifest, app.clock.now())
            || heddle_plugins::was_sent(app, manifest).await?
        {
            continue;
        }
        let choice = Choice { shelf: &shelf, catalog: &catalog, plugin: listed, version: newest };
        let installed = async { install_plugin(Actor::Host(app), choice.fetched(app).await?, None).await };
        match installed.await {
            Ok(_) => retries.end(manifest),
            Err(error) => {
                retries.prolong(manifest, app.clock.now());
                tracing::warn!(
                    component = %listed.id, error = %error,
                    "version {} was not installed; it is tried again after a pause", newest.version
                );
            }
        }
    }
    Ok(())
}

/// A plugin of the catalogue.
pub(crate) fn find<'a>(catalog: &'a Catalog, plugin: &str) -> Result<&'a Plugin, Error> {
    catalog.plugin(plugin).ok_or_else(unlisted)
}

pub(crate) fn unlisted() -> Error {
    Error::NotFound("plugin of the catalogue")
}

fn conflict(kind: &'static str, message: String) -> Error {
    Error::Conflict { kind, message }
}

/// The version that is asked for, or the newest one, unless something speaks against it.
fn choose<'a>(
    shelf: &'a Shelf,
    catalog: &'a Catalog,
    plugin: &str,
    version: Option<&Version>,
) -> Result<Choice<'a>, Error> {
    let listed = find(catalog, plugin)?;
    let revocations = shelf.state.revocations();
    let chosen = match version {
        Some(version) => listed.version(version).ok_or_else(|| {
            conflict("no_such_version", format!("the catalogue has no version {version} of '{plugin}'"))
        })?,
        None => catalog.newest_installable(plugin, &host_version(), SUPPORTED_API, revocations).ok_or_else(
            || {
                let message = format!(
                    "the catalogue has no version of '{plugin}' that runs on this host: look at its versions"
                );
                conflict("no_such_version", message)
            },
        )?,
    };
    let number = &chosen.version;
    if let Some(revocation) = listed.revoked(chosen, revocations) {
        let message =
            format!("version {number} of '{plugin}' is revoked by the catalogue: {}", revocation.reason);
        return Err(conflict("package_revoked", message));
    }
    if chosen.yanked {
        let message = format!("version {number} of '{plugin}' is no longer offered: choose another one");
        return Err(conflict("package_yanked", message));
    }
    if let Some(misfit) = chosen.misfit(&host_version(), SUPPORTED_API) {
        return Err(conflict(
            "package_misfit",
            format!("version {number} of '{plugin}' does not run here: {misfit}"),
        ));
    }
    Ok(Choice { shelf, catalog, plugin: listed, version: chosen })
}

/// Refuses to install while the catalogue cannot be relied on. An expired catalogue, and one whose successor has not come, is
/// accepted with a person's reason.
async fn admit(by: &By, shelf: &Shelf, override_reason: Option<String>) -> Result<(), Error> {
    let Err(unfit) = shelf.state.may_install(by.app.clock.now()) else { return Ok(()) };
    let may_override = matches!(unfit, Unfit::Expired { .. } | Unfit::Behind { .. });
    let Some(reason) = override_reason.filter(|_| may_override) else {
        let hint = if may_override { "; sync, or say in override_reason why it is good enough" } else { "" };
        let message = format!("nothing is installed from the catalogue now: {unfit}{hint}");
        return Err(conflict("catalog_unfit", message));
    };
    let mut tx = by.app.db.write().await?;
    let detail = json!({ "problem": unfit.to_string(), "reason": reason });
    let target = ("catalog", shelf.row.id.0);
    note(&mut tx, Actor::Person(by), target, "marketplace.overridden", detail).await?;
    Ok(tx.commit().await?)
}

impl Choice<'_> {
    /// Writes an audit entry of a package that was refused, and returns the refusal.
    async fn note_refusal(&self, by: &By, error: Error) -> Result<Error, Error> {
        // A server that is away says nothing of the package.
        if !matches!(error, Error::BadRequest { .. } | Error::Conflict { .. }) {
            return Ok(error);
        }
        let mut tx = by.app.db.write().await?;
        let detail = json!({
            "plugin": self.plugin.id, "version": self.version.version, "archive_sha256": self.version.package.sha256,
            "reason": error.to_string(),
        });
        let target = ("catalog", self.shelf.row.id.0);
        note(&mut tx, Actor::Person(by), target, "plugin.refused", detail).await?;
        tx.commit().await?;
        Ok(error)
    }

    /// Fetches the package, and opens it as the one that the catalogue lists.
    async fn fetched(&self, app: &App) -> Result<Opened, Error> {
        let _turn = Shelves::of(app).fetches.acquire().await.map_err(Error::internal)?;
        let archive = self.archive(app).await?;
        let keys = match self.shelf.state.assurance() {
            Assurance::Full | Assurance::Lower => {
                // Keys that signed a version when it was released may have ended since.
                let at = self.version.released;
                Some(self.catalog.signing_keys(&self.plugin.id, at, self.shelf.state.revocations()))
            }
            Assurance::None => None,
        };
        let opened = Opened::listed(app, archive, keys).await?;
        let package = &opened.package;
        let is_it = package.manifest().id == self.plugin.id
            && package.manifest().kind == self.plugin.kind
            && package.manifest().version == self.version.version
            && package.manifest_sha256() == self.version.manifest_sha256
            && package.component_sha256() == self.version.component_sha256;
        if !is_it {
            return Err(refused("the package is another one than the catalogue lists".to_owned()));
        }
        Ok(opened)
    }

    async fn archive(&self, app: &App) -> Result<Bytes, Error> {
        let listed = &self.version.package;
        let source = source(app)?;
        let failed = |reason: String| Error::Unavailable(format!("the package cannot be fetched: {reason}"));
        let fetched = source.package(app, listed).await.map_err(failed)?;
        let archive = fetched.ok_or_else(|| failed(format!("there is no '{}'", listed.url)))?;
        let found = heddle_kernel::task::block(move || {
            use sha2::Digest as _;
            (hex::encode(sha2::Sha256::digest(&archive)), archive)
        });
        let (sha256, archive) = found.await;
        if sha256 != listed.sha256 {
            let message = format!(
                "what was fetched has {} bytes and is not the package that the catalogue lists ({} bytes)",
                archive.len(),
                listed.length
            );
            return Err(refused(message));
        }
        Ok(Bytes::from(archive))
    }
}
