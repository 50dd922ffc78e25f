//! Installs a package: judges it as one of the folder is judged, writes it, and puts it into service.
//!
//! A refusal changes nothing of what serves. Two installations follow each other; what one of them has changed, the other
//! is judged by.

use axum::body::Bytes;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_marketplace::manifest::Kind;
use heddle_marketplace::{Verified, in_words};
use heddle_packages::{
    Opened, bind_in, conflict, find_binding, kept_rules, key_of, may_serve, refused, unusable,
};
use heddle_runtime::Adapter;
use heddle_store::Tx;
use heddle_store::installed_packages::{self, Installed, NewKept};
use heddle_store::packages::{self, Binding};
use heddle_store::plugins;
use semver::Version;
use serde_json::{Value, json};

use super::before::{self, Before};
use super::changes::Replaced;
use super::view::{Judged, Outcome};
use super::{Seen, Turns, kept, shown};
use crate::adapters::named::id_of;
use crate::adapters::revoked::serve;

/// Judges what was sent, and installs it unless it is a dry run.
pub(super) async fn install(by: &By, archive: Bytes, is_dry_run: bool) -> Result<Judged, Error> {
    let turns = by.app.part::<Turns>();
    let _place = turns.place()?;
    let mut seen = turns.take().await;
    let opened = Opened::sent(&by.app, archive).await?;
    install_opened(by, &mut seen, &opened, is_dry_run).await
}

/// Installs a package of a catalogue. False where it served already.
pub async fn install_listed(by: &By, opened: &Opened) -> Result<bool, Error> {
    let turns = by.app.part::<Turns>();
    let _place = turns.place()?;
    let mut seen = turns.take().await;
    let judged = install_opened(by, &mut seen, opened, false).await?;
    Ok(judged.outcome() == Outcome::Installed)
}

async fn install_opened(
    by: &By,
    seen: &mut Seen,
    opened: &Opened,
    is_dry_run: bool,
) -> Result<Judged, Error> {
    let app = &by.app;
    let Opened { package, ground, .. } = opened;
    if package.manifest().kind != Kind::Adapter {
        return Err(refused("the package is that of a plugin: send it to POST /plugins/install".to_owned()));
    }
    let id = &package.manifest().id;
    if plugins::find(&mut app.db.single().await?, id).await?.is_some() {
        return Err(conflict(format!("'{id}' is the id of a plugin; give the adapter another one")));
    }
    let serving = app.runtime.adapter(id);
    let installed = kept::find(app, id).await?;
    let is_it = |manifest: &str| manifest == package.manifest_sha256();
    if installed.as_ref().is_some_and(|one| is_it(&one.manifest_sha256))
        && serving.as_ref().is_some_and(|adapter| is_it(adapter.manifest_sha256()))
    {
        return Ok(Judged::of(package, key_of(package, None), None, Outcome::Unchanged));
    }
    let bound = find_binding(&app.db, id).await?;
    if let Some(bound) = &bound {
        may_serve(package, bound, ground).map_err(conflict)?;
    }
    let adapter = app.runtime.prepared(package).await.map_err(unusable)?;
    let replaces = serving.as_ref().filter(|serving| !is_it(serving.manifest_sha256()));
    let replaces = replaces.map(|serving| Replaced::of(serving, package.manifest()));
    let key = key_of(package, bound.as_ref());
    if is_dry_run {
        return Ok(Judged::of(package, key, replaces, Outcome::Judged));
    }
    let before = before::find(app, package, installed.as_ref(), &ground.keys()).await;
    let followed = seen.get(id);
    let new = New { opened, before, followed, serving: serving.as_ref() };
    let written = new.write(by).await?;
    serve(app, &adapter).await;
    tracing::warn!(
        component = adapter.id(), version = adapter.version(), user.id = %by.caller.user_id,
        request.id = by.origin.request_id, "adapter {} {} was installed", adapter.id(), adapter.version()
    );
    app.part::<Turns>().note(app, seen, written, None);
    shown(app).await;
    Ok(Judged::of(package, key, replaces, Outcome::Installed))
}

/// A package that is about to be written.
struct New<'a> {
    opened: &'a Opened,
    /// What it takes the place of, as far as this process has followed the others.
    before: Before,
    /// The installed package that this process has taken over last.
    followed: Option<&'a Installed>,
    serving: Option<&'a Adapter>,
}

impl New<'_> {
    /// Writes package, choice and audit entry in one transaction.
    async fn write(&self, by: &By) -> Result<Installed, Error> {
        let (app, now) = (&by.app, by.app.clock.now());
        let Opened { package, archive, ground, .. } = self.opened;
        let manifest = package.manifest();
        let mut tx = app.db.write().await?;
        let may_serve = |held: &Binding| may_serve(package, held, ground);
        let held = bind_in(&mut tx, package, ground, now, may_serve).await?;
        let found = installed_packages::find(&mut tx, &manifest.id).await?;
        let overtaken = found.as_ref().filter(|found| !is_same(found, self.followed));
        let latest = overtaken.map(|found| Before::latest(package, Some(found)));
        let before_sha256 = latest.as_ref().unwrap_or(&self.before).keep(&mut tx, &manifest.id, now).await?;
        let version = manifest.version.to_string();
        let kept = NewKept {
            manifest_sha256: package.manifest_sha256(),
            adapter_id: &manifest.id,
            version: &version,
            archive,
            installed_at: now,
            installed_by: Some(&by.caller.username),
        };
        installed_packages::keep(&mut tx, &kept).await?;
        self.opened.keep_keys(&mut tx, app, &by.caller.username).await?;
        let installed = Installed {
            adapter_id: manifest.id.clone(),
            manifest_sha256: package.manifest_sha256().to_owned(),
            is_pinned: is_older(&version, &held),
            version,
            before_sha256,
            changed_at: now,
        };
        installed_packages::choose(&mut tx, &installed).await?;
        installed_packages::trim(&mut tx, &manifest.id).await?;
        packages::mark_audited(&mut tx, &installed.manifest_sha256, now).await?;
        let replaced = overtaken
            .map(|found| json!({ "version": found.version, "manifest_sha256": found.manifest_sha256 }));
        let replaced = replaced.or_else(|| self.serving.map(served));
        record(&mut tx, by, "adapter.installed", package, replaced).await?;
        tx.commit().await?;
        Ok(installed)
    }
}

/// Whether the packages are the same; another process may have installed others that do not serve here yet.
fn is_same(found: &Installed, followed: Option<&Installed>) -> bool {
    let packages = |one: &Installed| (one.manifest_sha256.clone(), one.before_sha256.clone());
    followed.map(packages) == Some(packages(found))
}

/// What the audit log says of a package that served.
pub(super) fn served(serving: &Adapter) -> Value {
    json!({
        "version": serving.version(),
        "manifest_sha256": serving.manifest_sha256(),
        "component_sha256": serving.component_sha256(),
    })
}

/// Whether a version is older than the highest that served.
pub(super) fn is_older(version: &str, bound: &Binding) -> bool {
    match (Version::parse(version), Version::parse(&bound.version)) {
        (Ok(version), Ok(highest)) => version < highest,
        _ => false,
    }
}

/// Appends the entry of the audit log, with what served before and what serves after.
pub(super) async fn record(
    tx: &mut Tx,
    by: &By,
    action: &'static str,
    package: &Verified,
    before: Option<Value>,
) -> Result<(), Error> {
    let By { app, caller, origin } = by;
    let manifest = package.manifest();
    let detail = json!({
        "adapter": manifest.id,
        "version": manifest.version,
        "publisher": manifest.publisher,
        "signed_by": package.key_ids(),
        "manifest_sha256": package.manifest_sha256(),
        "component_sha256": package.component_sha256(),
        "rules": kept_rules(&in_words(manifest)),
        "before": before,
        "after": {
            "version": manifest.version,
            "manifest_sha256": package.manifest_sha256(),
            "component_sha256": package.component_sha256(),
        },
    });
    let entry = NewEntry {
        org: caller.org_id,
        actor: caller.actor(),
        action,
        target: ("adapter_package", id_of(package.manifest_sha256())),
        detail,
    };
    entry::record(tx, app, origin, entry).await
}
