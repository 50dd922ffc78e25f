//! Installs a package: judges it, keeps it, and has it wait for a person's consent unless it may do nothing new.
//!
//! What is refused before its signature was verified leaves an audit entry and nothing else: it says nothing that can be
//! trusted. From then on the package is kept on record with the state that it reached. Everything is written in one
//! transaction, after the component was compiled: a crash before it leaves nothing, and one after it leaves what the answer
//! would have said.

use axum::Json as Answer;
use axum::body::Bytes;
use axum::response::{IntoResponse as _, Response};
use heddle_core::plugin::{PackageOrigin, PluginState};
use heddle_fabric::templates;
use heddle_inventory::adapters::package_id;
use heddle_kernel::app::App;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_marketplace::Verified;
use heddle_marketplace::grant::{self, Grant};
use heddle_marketplace::manifest::Kind;
use heddle_packages::{
    Ground, Opened, bind_in, conflict, find_binding, key_of, may_serve, refused, unusable,
};
use heddle_runtime::{LoadError, Plugin};
use heddle_store::installed_packages::{self, NewKept};
use heddle_store::packages::{self, Binding};
use heddle_store::plugins::{self, GrantRow, PluginRow, VersionRow};
use heddle_store::{Tx, catalogs};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::revoke::{is_withdrawn, judge};
use crate::service::apply;
use crate::transition::{Actor, Change, Subject, noted, record};
use crate::turns::Turns;
use crate::view::Outcome;

/// Installs what was sent.
pub(crate) async fn install(by: &By, creation: Creation, archive: Bytes) -> Result<Response, Error> {
    let turns = Turns::of(&by.app);
    let _place = turns.place()?;
    let opened = match Opened::sent(&by.app, archive.clone()).await.and_then(judged) {
        Ok(opened) => opened,
        Err(error) => return Err(note_refusal(by, &archive, error).await?),
    };
    install_opened(Actor::Person(by), &opened, Some(creation))
        .await?
        .ok_or_else(|| Error::internal("an installation that a person asked for has an answer"))
}

/// Installs a package of a catalogue. Returns the answer to the client where one asked for it.
pub async fn install_listed(
    actor: Actor<'_>,
    opened: Opened,
    creation: Option<Creation>,
) -> Result<Option<Response>, Error> {
    let turns = Turns::of(actor.app());
    let _place = turns.place()?;
    let opened = judged(opened)?;
    install_opened(actor, &opened, creation).await
}

/// Whether a package is there already, or may be installed.
enum Before {
    /// As it is shown.
    There(Response),
    /// It may be. The keys that sign the plugin, where it has any already.
    May(Option<Binding>),
}

async fn before(actor: Actor<'_>, opened: &Opened) -> Result<Before, Error> {
    let app = actor.app();
    let Opened { package, ground, .. } = opened;
    let id = &package.manifest().id;
    let bound = find_binding(&app.db, id).await?;
    if let Some(bound) = &bound {
        may_serve(package, bound, ground).map_err(conflict)?;
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
        let answer = Answer(Outcome::of(current, &version)).into_response();
        drop(tx);
        vouch(actor, opened, &version).await?;
        return Ok(Before::There(answer));
    }
    Ok(Before::May(bound))
}

async fn install_opened(
    actor: Actor<'_>,
    opened: &Opened,
    creation: Option<Creation>,
) -> Result<Option<Response>, Error> {
    let app = actor.app();
    let turns = Turns::of(app);
    let package = &opened.package;
    let id = &package.manifest().id;
    if let Before::There(answer) = before(actor, opened).await? {
        return Ok(Some(answer));
    }
    let one = turns.prepare().await;
    let prepared = match app.runtime.prepare_plugin(package).await {
        Ok(plugin) => checked(app, plugin),
        Err(error) => Err(reason_of(error)?),
    };
    drop(one);
    let mut seen = turns.take().await;
    // What was true before it was prepared may have changed since.
    let bound = match before(actor, opened).await? {
        Before::There(answer) => return Ok(Some(answer)),
        Before::May(bound) => bound,
    };
    let new = New { actor, opened, key_id: key_of(package, bound.as_ref()) };
    let (tx, outcome) = new.write(&prepared).await?;
    let answer = if let Some(creation) = creation {
        Some(creation.finish(tx, app, &format!("/plugins/{id}"), &outcome).await?)
    } else {
        tx.commit().await?;
        None
    };
    apply(app, &mut seen, id, prepared.ok()).await?;
    Ok(answer)
}

/// Requires that the Connections that the plugin proposes are such as can be created.
fn checked(app: &App, plugin: Plugin) -> Result<Plugin, (PluginState, String)> {
    for template in &plugin.manifest().templates {
        if let Some(problem) = templates::fault(app, &template.connection) {
            let reason = format!("the connection of template '{}' is not accepted: {problem}", template.id);
            return Err((PluginState::Checked, reason));
        }
    }
    Ok(plugin)
}

/// Notes that the catalogue vouches for a package that a person had sent before.
async fn vouch(actor: Actor<'_>, opened: &Opened, version: &VersionRow) -> Result<(), Error> {
    if opened.origin != PackageOrigin::Catalog || version.origin == PackageOrigin::Catalog {
        return Ok(());
    }
    let mut tx = actor.app().db.write().await?;
    // The rest of the row may have changed since it was read.
    plugins::set_version_origin(&mut tx, &version.manifest_sha256, opened.origin).await?;
    opened.keep_keys(&mut tx, actor.app(), actor.name()).await?;
    Ok(tx.commit().await?)
}

/// Requires that it is a plugin that can be kept.
fn judged(opened: Opened) -> Result<Opened, Error> {
    let manifest = opened.package.manifest();
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
    Ok(opened)
}

/// Writes an audit entry of a package that was refused before it could be trusted, and returns the refusal.
async fn note_refusal(by: &By, archive: &[u8], error: Error) -> Result<Error, Error> {
    let Error::BadRequest { message, .. } = &error else { return Ok(error) };
    let sha256 = hex::encode(Sha256::digest(archive));
    let target = package_id(&sha256);
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

/// The step at which a component failed, and why.
///
/// # Errors
/// It is a fault of this machine and none of the package: nothing is recorded, and it may be sent again.
fn reason_of(error: LoadError) -> Result<(PluginState, String), Error> {
    if error.is_passing() {
        return Err(unusable(error));
    }
    // Faults of this machine have no step; they were answered above.
    let step = match &error {
        LoadError::NotComponent
        | LoadError::Invalid(_)
        | LoadError::Cache(_)
        | LoadError::Compile(_)
        | LoadError::Code(_) => PluginState::Compiled,
        LoadError::Kind { .. } | LoadError::Schema(_) => PluginState::Checked,
        LoadError::Import { .. }
        | LoadError::Export(_)
        | LoadError::Link(_)
        | LoadError::NotReady { .. }
        | LoadError::Untried(_) => PluginState::Linked,
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
    actor: Actor<'a>,
    opened: &'a Opened,
    key_id: String,
}

impl New<'_> {
    /// Writes package, states, events and audit entries in one transaction, which the caller commits.
    async fn write(&self, prepared: &Result<Plugin, (PluginState, String)>) -> Result<(Tx, Outcome), Error> {
        let app = self.actor.app();
        let Opened { package, ground, .. } = self.opened;
        let (manifest, now) = (package.manifest(), app.clock.now());
        let mut tx = app.db.write().await?;
        catalogs::hold_gate(&mut tx).await?;
        let mut row = self.locked(&mut tx).await?;
        let mut version = self.version(&row)?;
        judge(&mut tx, &version, false).await?;
        match prepared {
            Ok(_) => {
                let asked = grant::of(manifest);
                version.reason = self.needs_consent(&mut tx, &row, &asked).await?;
                version.state = if version.reason.is_some() {
                    PluginState::AwaitingConsent
                } else {
                    bind(&mut tx, app, package, ground).await?;
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
            (version.state, version.reason) = (row.state, row.reason.clone());
        }
        plugins::put_version(&mut tx, &version).await?;
        let row = plugins::update(&mut tx, &row, now).await?;
        supersede(&mut tx, &before, &row, PluginState::Checked).await?;
        if is_agreed {
            agree(&mut tx, self.actor, &row, &version, &grant::of(manifest)).await?;
        }
        forget_others(&mut tx, &row).await?;
        self.tell(&mut tx, &row, &version).await?;
        let outcome = Outcome::of(&row, &version);
        Ok((tx, outcome))
    }

    /// The plugin's row, locked; a new one where there is none.
    async fn locked(&self, tx: &mut Tx) -> Result<PluginRow, Error> {
        let (app, id) = (self.actor.app(), &self.opened.package.manifest().id);
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
        let Opened { package, origin, .. } = self.opened;
        let manifest = package.manifest();
        Ok(VersionRow {
            manifest_sha256: package.manifest_sha256().to_owned(),
            plugin_uid: row.id,
            version: manifest.version.to_string(),
            component_sha256: package.component_sha256().to_owned(),
            publisher: manifest.publisher.clone(),
            key_id: self.key_id.clone(),
            signed_by: json!(package.key_ids()),
            archive_sha256: package.archive_sha256().unwrap_or_default().to_owned(),
            origin: *origin,
            manifest: serde_json::to_value(manifest).map_err(Error::internal)?,
            state: PluginState::Checked,
            reason: None,
            step: None,
            installed_at: self.actor.app().clock.now(),
            installed_by: self.actor.name().to_owned(),
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
        let before = plugins::find_version(tx, serving).await?;
        let before = before.and_then(|row| Some((crate::index::parsed(&row.manifest)?, row)));
        let Some((manifest, before)) = before else {
            return because("the manifest of the package that serves cannot be read");
        };
        let new = self.opened.package.manifest();
        let reasons = [
            (
                before.publisher != new.publisher,
                "it is of another publisher: what the plugin kept and was given is forgotten with it",
            ),
            (self.key_id != before.key_id, "another key has signed it"),
            (
                !grant::difference(&agreed, asked, |_| false).added.is_empty(),
                "it may do more than was agreed to",
            ),
            (manifest.version.major != new.version.major, "it is a new major version"),
        ];
        let reasons: Vec<&str> =
            reasons.into_iter().filter(|(applies, _)| *applies).map(|(_, reason)| reason).collect();
        Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
    }

    /// Keeps the bytes.
    async fn keep(&self, tx: &mut Tx) -> Result<(), Error> {
        let package = &self.opened.package;
        let manifest = package.manifest();
        let kept = NewKept {
            manifest_sha256: package.manifest_sha256(),
            adapter_id: &manifest.id,
            version: &manifest.version.to_string(),
            archive: &self.opened.archive,
            installed_at: self.actor.app().clock.now(),
            installed_by: Some(self.actor.name()),
        };
        installed_packages::keep(tx, &kept).await?;
        Ok(self.opened.keep_keys(tx, self.actor.app(), self.actor.name()).await?)
    }

    /// Records each state that the package came through.
    async fn tell(&self, tx: &mut Tx, row: &PluginRow, version: &VersionRow) -> Result<(), Error> {
        let subject = Subject {
            uid: row.id,
            plugin: &row.plugin_id,
            version: &version.version,
            manifest_sha256: &version.manifest_sha256,
        };
        let actor = self.actor;
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
                "signed_by": version.signed_by,
                "origin": version.origin,
                "component_sha256": version.component_sha256,
                "failed_at": version.step,
            }),
        };
        record(tx, actor, &subject, &change).await
    }
}

/// Makes a package the one that serves when the plugin is active.
pub(crate) fn replace(row: &mut PluginRow, manifest: String) {
    if row.serving_sha256.as_ref() != Some(&manifest) {
        row.before_sha256 = row.serving_sha256.take();
    }
    // A package that waited is dropped: a person must not agree to an older one than the one that serves.
    row.waiting_sha256 = None;
    // Not before: what a removed plugin kept is forgotten in time, also when packages are only sent.
    row.removed_at = None;
    row.serving_sha256 = Some(manifest);
    take_place(row, "it was switched off before this version was installed; enable it to use it");
}

/// How a plugin stands with a package that takes the place of another: off, for this reason, where a person switched the plugin
/// off or a catalogue revoked what served, until a person enables it. One that failed too often may try again.
pub(crate) fn take_place(row: &mut PluginRow, reason: &str) {
    let is_off = row.state == PluginState::Disabled || is_withdrawn(row);
    (row.state, row.reason) =
        if is_off { (PluginState::Disabled, Some(reason.to_owned())) } else { (PluginState::Active, None) };
}

/// How the plugin stands with this package.
fn stand(row: &mut PluginRow, version: &VersionRow) {
    let manifest = version.manifest_sha256.clone();
    let is_new = matches!(row.state, PluginState::Received | PluginState::Rejected | PluginState::Removed);
    if is_new {
        (row.serving_sha256, row.before_sha256, row.waiting_sha256) = (None, None, None);
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

/// Binds the id to the key of a package that a person agreed to. Its own entries are in the audit log. Returns what the id was
/// bound to before.
pub(crate) async fn bind(
    tx: &mut Tx,
    app: &App,
    package: &Verified,
    ground: &Ground,
) -> Result<Binding, Error> {
    let now = app.clock.now();
    let held = bind_in(tx, package, ground, now, |held: &Binding| may_serve(package, held, ground)).await?;
    packages::mark_audited(tx, package.manifest_sha256(), now).await?;
    Ok(held)
}

/// Forgets what a plugin kept and was given where the package that serves from now on is of another publisher than the one
/// that served last: organizations gave it to that publisher. Its packages are not put back.
pub(crate) async fn hand_over(
    tx: &mut Tx,
    row: &mut PluginRow,
    held: &Binding,
    version: &VersionRow,
) -> Result<(), Error> {
    if held.publisher == version.publisher {
        return Ok(());
    }
    row.before_sha256 = None;
    Ok(plugins::begin_anew(tx, row.id, &version.version).await?)
}

/// Names what is agreed to: this package, and everything that it may do.
pub(crate) fn hash_of(version: &VersionRow, asked: &Grant) -> String {
    hex::encode(Sha256::digest(format!("{} {}", version.manifest_sha256, asked.hash())))
}

/// Writes that a person agrees to what a package may do.
pub(crate) async fn agree(
    tx: &mut Tx,
    actor: Actor<'_>,
    row: &PluginRow,
    version: &VersionRow,
    asked: &Grant,
) -> Result<(), Error> {
    let app = actor.app();
    let agreed = GrantRow {
        id: app.clock.new_id(),
        plugin_uid: row.id,
        manifest_sha256: version.manifest_sha256.clone(),
        version: version.version.clone(),
        grant_hash: hash_of(version, asked),
        granted: serde_json::to_value(asked).map_err(Error::internal)?,
        granted_by: actor.user(),
        granted_by_name: actor.name().to_owned(),
        granted_at: app.clock.now(),
    };
    plugins::put_grant(tx, &agreed).await?;
    let detail: Value = json!({
        "plugin": row.plugin_id, "version": version.version, "grant_hash": agreed.grant_hash, "granted": agreed.granted,
    });
    noted(tx, actor, row.id, "plugin.granted", detail).await?;
    Ok(())
}

/// What was agreed to.
pub(crate) fn granted(agreed: &GrantRow) -> Result<Grant, Error> {
    use serde::Deserialize as _;
    Grant::deserialize(&agreed.granted).map_err(Error::internal)
}
