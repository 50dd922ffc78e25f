//! Installs a package: judges it, keeps it, and has it wait for a person's consent unless it may do nothing new.
//!
//! What is refused before its signature was verified leaves an audit entry and nothing else: it says nothing that can be
//! trusted. From then on the package is kept on record with the state that it reached. Everything is written in one
//! transaction, after the component was compiled: a crash before it leaves nothing, and one after it leaves what the answer
//! would have said.

use axum::Json as Answer;
use axum::body::Bytes;
use axum::response::{IntoResponse as _, Response};
use heddle_core::plugin::PluginState;
use heddle_inventory::adapters::{
    Ground, bind_in, conflict, find_binding, key_of, may_serve, opened, refused, unusable,
};
use heddle_kernel::app::App;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_marketplace::Verified;
use heddle_marketplace::grant::{self, Grant};
use heddle_marketplace::manifest::Kind;
use heddle_runtime::{CompileError, LoadError, Plugin};
use heddle_store::Tx;
use heddle_store::installed_packages::{self, NewKept};
use heddle_store::packages::{self, Binding};
use heddle_store::plugins::{self, GrantRow, PluginRow, VersionRow};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::service::apply;
use crate::transition::{Actor, Change, Subject, noted, record};
use crate::turns::Turns;
use crate::view::Outcome;

/// Installs what was sent.
pub(crate) async fn install(by: &By, creation: Creation, archive: Bytes) -> Result<Response, Error> {
    let app = &by.app;
    let turns = Turns::of(app);
    let _place = turns.place()?;
    let mut seen = turns.take().await;
    let ground = Ground::of(&app.config).map_err(|error| Error::Internal(error.into()))?;
    let package = match judged(archive.clone(), &ground).await {
        Ok(package) => package,
        Err(error) => return Err(note_refusal(by, &archive, error).await?),
    };
    let id = &package.manifest().id;
    let bound = find_binding(&app.db, id).await?;
    if let Some(bound) = &bound {
        may_serve(&package, bound, &ground).map_err(conflict)?;
    }
    let mut tx = app.db.read().await?;
    let current = plugins::find(&mut tx, id).await?;
    if installed_packages::find(&mut tx, id).await?.is_some() || app.runtime.adapter(id).is_some() {
        return Err(conflict(format!("'{id}' is the id of an adapter; give the plugin another one")));
    }
    if let Some(current) = &current
        && let Some(version) = plugins::find_version(&mut tx, package.manifest_sha256()).await?
        && is_there(app, &mut tx, current, package.manifest_sha256()).await?
    {
        return Ok(Answer(Outcome::of(current, &version)).into_response());
    }
    drop(tx);
    let prepared = match app.runtime.prepare_plugin(&package).await {
        Ok(plugin) => Ok(plugin),
        Err(error) => Err(reason_of(error)?),
    };
    let new = New {
        by,
        package: &package,
        archive: &archive,
        ground: &ground,
        key_id: key_of(&package, bound.as_ref()),
    };
    let response = new.write(creation, &prepared).await?;
    apply(app, &mut seen, id, prepared.ok()).await?;
    Ok(response)
}

/// Verifies what was sent, and requires that it is a plugin.
async fn judged(archive: Bytes, ground: &Ground) -> Result<Verified, Error> {
    let package = opened(archive, &ground.trusted).await?;
    let manifest = package.manifest();
    if manifest.kind != Kind::Plugin {
        return Err(refused(
            "the package is that of an adapter: send it to POST /adapters/packages".to_owned(),
        ));
    }
    // One of the databases cannot keep it in JSON.
    let text = serde_json::to_string(manifest).map_err(Error::internal)?;
    if text.contains("\\u0000") {
        return Err(refused("the manifest has the character U+0000".to_owned()));
    }
    Ok(package)
}

/// Writes an audit entry of a package that was refused before it could be trusted, and returns the refusal.
async fn note_refusal(by: &By, archive: &[u8], error: Error) -> Result<Error, Error> {
    let Error::BadRequest { message, .. } = &error else { return Ok(error) };
    let sha256 = hex::encode(Sha256::digest(archive));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(archive)[..16]);
    let target = uuid::Builder::from_custom_bytes(bytes).into_uuid();
    let mut tx = by.app.db.write().await?;
    let detail = json!({ "archive_sha256": sha256, "bytes": archive.len(), "reason": message });
    by.record_of(&mut tx, (by.caller.org_id, "plugin_package", target), "plugin.refused", detail).await?;
    tx.commit().await?;
    Ok(error)
}

/// Whether a package serves here, or its bytes are kept while it waits or is switched off: sent again, it changes nothing.
async fn is_there(app: &App, tx: &mut Tx, row: &PluginRow, manifest: &str) -> Result<bool, Error> {
    let serves =
        app.runtime.plugin(&row.plugin_id).is_some_and(|plugin| plugin.manifest_sha256() == manifest);
    if serves && row.serving_sha256.as_deref() == Some(manifest) {
        return Ok(true);
    }
    let waits = row.waiting_sha256.as_deref() == Some(manifest);
    let is_off = row.serving_sha256.as_deref() == Some(manifest)
        && matches!(row.state, PluginState::Disabled | PluginState::Quarantined);
    let stands = !matches!(row.state, PluginState::Removed | PluginState::Rejected);
    if !stands || !(waits || is_off) {
        return Ok(false);
    }
    let kept = installed_packages::kept_of(tx, &row.plugin_id).await?;
    Ok(kept.iter().any(|one| one == manifest))
}

/// The step at which a component failed, and why. A fault of this machine is no fault of the package.
fn reason_of(error: LoadError) -> Result<(PluginState, String), Error> {
    let step = match &error {
        LoadError::Cache(_) | LoadError::Compile(CompileError::Process(_)) => return Err(unusable(error)),
        LoadError::NotComponent | LoadError::Invalid(_) | LoadError::Compile(_) | LoadError::Code(_) => {
            PluginState::Compiled
        }
        LoadError::Kind { .. } | LoadError::Schema(_) => PluginState::Checked,
        LoadError::Import { .. } | LoadError::Export(_) | LoadError::Link(_) => PluginState::Linked,
    };
    Ok((step, error.to_string()))
}

/// The states that a package goes through before it serves, in their order.
const STEPS: [PluginState; 5] = [
    PluginState::Received,
    PluginState::Verified,
    PluginState::Compiled,
    PluginState::Linked,
    PluginState::Checked,
];

/// A package that is about to be written.
struct New<'a> {
    by: &'a By,
    package: &'a Verified,
    archive: &'a [u8],
    ground: &'a Ground,
    key_id: String,
}

impl New<'_> {
    /// Writes package, states, events and audit entries in one transaction, and commits.
    async fn write(
        &self,
        creation: Creation,
        prepared: &Result<Plugin, (PluginState, String)>,
    ) -> Result<Response, Error> {
        let app = &self.by.app;
        let (manifest, now) = (self.package.manifest(), app.clock.now());
        let mut tx = app.db.write().await?;
        let mut row = self.locked(&mut tx).await?;
        let mut version = self.version(&row)?;
        match prepared {
            Ok(_) => {
                let asked = grant::of(manifest);
                version.reason = self.needs_consent(&mut tx, &row, &asked).await?;
                version.state = if version.reason.is_some() {
                    PluginState::AwaitingConsent
                } else {
                    bind(&mut tx, app, self.package, self.ground).await?;
                    PluginState::Active
                };
                self.keep(&mut tx).await?;
            }
            Err((step, reason)) => {
                version.state = PluginState::Rejected;
                version.step = Some(*step);
                version.reason = Some(reason.clone());
            }
        }
        let before = row.clone();
        stand(&mut row, &version);
        let is_agreed = version.state == PluginState::Active;
        if is_agreed {
            // One that is switched off stays so with its new package.
            version.state = row.state;
        }
        plugins::put_version(&mut tx, &version).await?;
        let row = plugins::update(&mut tx, &row, now).await?;
        supersede(&mut tx, &before, &row, PluginState::Checked).await?;
        if is_agreed {
            agree(&mut tx, self.by, &row, &version, &grant::of(manifest)).await?;
        }
        forget_others(&mut tx, &row).await?;
        self.tell(&mut tx, &row, &version).await?;
        let outcome = Outcome::of(&row, &version);
        creation.finish(tx, app, &format!("/plugins/{}", row.plugin_id), &outcome).await
    }

    /// The plugin's row, locked; a new one where there is none.
    async fn locked(&self, tx: &mut Tx) -> Result<PluginRow, Error> {
        let (app, id) = (&self.by.app, &self.package.manifest().id);
        if let Some(row) = plugins::lock(tx, id).await? {
            return Ok(row);
        }
        let now = app.clock.now();
        let row = PluginRow {
            id: app.clock.new_id(),
            plugin_id: id.clone(),
            state: PluginState::Received,
            reason: None,
            serving_sha256: None,
            before_sha256: None,
            waiting_sha256: None,
            revision: 0,
            created_at: now,
            updated_at: now,
            removed_at: None,
        };
        plugins::insert(tx, &row).await.map_err(|error| {
            if error.is_unique("plugin_name") {
                conflict(format!("'{id}' is being installed by another process; try again"))
            } else {
                error.into()
            }
        })?;
        Ok(row)
    }

    fn version(&self, row: &PluginRow) -> Result<VersionRow, Error> {
        let manifest = self.package.manifest();
        Ok(VersionRow {
            manifest_sha256: self.package.manifest_sha256().to_owned(),
            plugin_uid: row.id,
            version: manifest.version.to_string(),
            component_sha256: self.package.component_sha256().to_owned(),
            publisher: manifest.publisher.clone(),
            key_id: self.key_id.clone(),
            manifest: serde_json::to_value(manifest).map_err(Error::internal)?,
            state: PluginState::Checked,
            reason: None,
            step: None,
            installed_at: self.by.app.clock.now(),
            installed_by: self.by.caller.username.clone(),
        })
    }

    /// Why a person has to agree first; `None` where the package may do nothing that was not agreed to, and is of the same
    /// key and major version.
    async fn needs_consent(
        &self,
        tx: &mut Tx,
        row: &PluginRow,
        asked: &Grant,
    ) -> Result<Option<String>, Error> {
        let because = |why: &str| Ok(Some(why.to_owned()));
        let serving = row.serving_sha256.as_deref().filter(|_| row.state != PluginState::Removed);
        let Some(serving) = serving else { return because("nobody has agreed to what it may do yet") };
        let Some(agreed) = plugins::grant_of(tx, row.id, serving).await? else {
            return because("nobody has agreed to what it may do yet");
        };
        let agreed = granted(&agreed)?;
        if !grant::difference(&agreed, asked, |_| false).added.is_empty() {
            return because("it may do more than was agreed to");
        }
        let before = plugins::find_version(tx, serving).await?;
        let before = before.and_then(|row| Some((row.key_id, crate::index::parsed(&row.manifest)?)));
        let Some((key_id, before)) = before else {
            return because("the manifest of the package that serves cannot be read");
        };
        if self.key_id != key_id {
            return because("another key has signed it");
        }
        if before.version.major != self.package.manifest().version.major {
            return because("it is a new major version");
        }
        Ok(None)
    }

    /// Keeps the bytes.
    async fn keep(&self, tx: &mut Tx) -> Result<(), Error> {
        let manifest = self.package.manifest();
        let kept = NewKept {
            manifest_sha256: self.package.manifest_sha256(),
            adapter_id: &manifest.id,
            version: &manifest.version.to_string(),
            archive: self.archive,
            installed_at: self.by.app.clock.now(),
            installed_by: Some(&self.by.caller.username),
        };
        Ok(installed_packages::keep(tx, &kept).await?)
    }

    /// Records each state that the package came through.
    async fn tell(&self, tx: &mut Tx, row: &PluginRow, version: &VersionRow) -> Result<(), Error> {
        let subject = Subject {
            uid: row.id,
            plugin: &row.plugin_id,
            version: &version.version,
            manifest_sha256: &version.manifest_sha256,
        };
        let actor = Actor::Person(self.by);
        let mut from = None;
        // Of a package that failed it is known that it was sent and verified, and what it failed at.
        let reached = if version.step.is_some() { &STEPS[..2] } else { &STEPS[..] };
        for to in reached.iter().copied() {
            record(tx, actor, &subject, &Change::between(from, to)).await?;
            from = Some(to);
        }
        let change = Change {
            from,
            to: version.state,
            reason: version.reason.as_deref(),
            detail: json!({
                "publisher": version.publisher,
                "signed_by": self.package.key_ids(),
                "component_sha256": version.component_sha256,
                "failed_at": version.step,
            }),
        };
        record(tx, actor, &subject, &change).await
    }
}

/// Makes a package the one that serves. A plugin that was switched off stays so; one that failed too often may try again.
pub(crate) fn replace(row: &mut PluginRow, manifest: String) {
    if row.serving_sha256.as_ref() != Some(&manifest) {
        row.before_sha256 = row.serving_sha256.take();
    }
    // A package that waited is dropped: a person must not agree to an older one than the one that serves.
    row.waiting_sha256 = None;
    row.serving_sha256 = Some(manifest);
    if row.state != PluginState::Disabled {
        (row.state, row.reason) = (PluginState::Active, None);
    }
}

/// How the plugin stands with this package.
fn stand(row: &mut PluginRow, version: &VersionRow) {
    let manifest = version.manifest_sha256.clone();
    let is_new = matches!(row.state, PluginState::Received | PluginState::Rejected | PluginState::Removed);
    if is_new {
        (row.serving_sha256, row.before_sha256, row.waiting_sha256) = (None, None, None);
        row.removed_at = None;
    }
    match version.state {
        PluginState::AwaitingConsent => {
            row.waiting_sha256 = Some(manifest);
            if row.serving_sha256.is_none() {
                (row.state, row.reason) = (version.state, version.reason.clone());
            }
        }
        PluginState::Active => replace(row, manifest),
        _ if row.serving_sha256.is_none() && row.waiting_sha256.is_none() => {
            (row.state, row.reason) = (version.state, version.reason.clone());
        }
        _ => {}
    }
}

/// Notes of the package that served, and of the one that waited, that they do so no longer.
pub(crate) async fn supersede(
    tx: &mut Tx,
    before: &PluginRow,
    after: &PluginRow,
    state: PluginState,
) -> Result<(), Error> {
    let stays = [&after.serving_sha256, &after.waiting_sha256];
    let left =
        [&before.serving_sha256, &before.waiting_sha256].into_iter().filter(|one| !stays.contains(one));
    for manifest in left.flatten().collect::<Vec<_>>() {
        plugins::set_version_state(tx, manifest, state, None).await?;
    }
    Ok(())
}

/// Keeps the bytes of the packages that serve, served before, or wait, and of no others.
pub(crate) async fn forget_others(tx: &mut Tx, row: &PluginRow) -> Result<(), Error> {
    let wanted = [&row.serving_sha256, &row.before_sha256, &row.waiting_sha256];
    let wanted: Vec<&str> = wanted.into_iter().filter_map(Option::as_deref).collect();
    Ok(installed_packages::keep_only(tx, &row.plugin_id, &wanted).await?)
}

/// Binds the id to the key of a package that a person agreed to. Its own entries are in the audit log.
pub(crate) async fn bind(tx: &mut Tx, app: &App, package: &Verified, ground: &Ground) -> Result<(), Error> {
    let now = app.clock.now();
    bind_in(tx, package, ground, now, |held: &Binding| may_serve(package, held, ground)).await?;
    packages::mark_audited(tx, package.manifest_sha256(), now).await?;
    Ok(())
}

/// Names what is agreed to: this package, and everything that it may do.
pub(crate) fn hash_of(version: &VersionRow, asked: &Grant) -> String {
    hex::encode(Sha256::digest(format!("{} {}", version.manifest_sha256, asked.hash())))
}

/// Writes that a person agrees to what a package may do.
pub(crate) async fn agree(
    tx: &mut Tx,
    by: &By,
    row: &PluginRow,
    version: &VersionRow,
    asked: &Grant,
) -> Result<(), Error> {
    let app = &by.app;
    let agreed = GrantRow {
        id: app.clock.new_id(),
        plugin_uid: row.id,
        manifest_sha256: version.manifest_sha256.clone(),
        version: version.version.clone(),
        grant_hash: hash_of(version, asked),
        granted: serde_json::to_value(asked).map_err(Error::internal)?,
        granted_by: Some(by.caller.user_id),
        granted_by_name: by.caller.username.clone(),
        granted_at: app.clock.now(),
    };
    plugins::put_grant(tx, &agreed).await?;
    let detail: Value = json!({
        "plugin": row.plugin_id, "version": version.version, "grant_hash": agreed.grant_hash, "granted": agreed.granted,
    });
    noted(tx, Actor::Person(by), row.id, "plugin.granted", detail).await?;
    Ok(())
}

/// What was agreed to.
pub(crate) fn granted(agreed: &GrantRow) -> Result<Grant, Error> {
    use serde::Deserialize as _;
    Grant::deserialize(&agreed.granted).map_err(Error::internal)
}
