//! Puts the package that served before back in service. It stays there, also over restarts, until another one is
//! installed, or the folder has one that is newer than all that served.

use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_marketplace::Verified;
use heddle_packages::{
    Ground, NotLoaded, bind_in, check, conflict, find_binding, key_of, open_kept, unusable,
};
use heddle_runtime::Adapter;
use heddle_store::installed_packages::{self, Installed};
use heddle_store::packages::Binding;

use super::changes::Replaced;
use super::install::{is_older, record, served};
use super::view::{Judged, Outcome};
use super::{Turns, kept, shown};
use crate::adapters::revoked::serve;

/// Puts the package before the one that serves back in service.
pub(super) async fn roll_back(by: &By, id: &str) -> Result<Judged, Error> {
    let app = &by.app;
    let turns = app.part::<Turns>();
    let _place = turns.place()?;
    let mut seen = turns.take().await;
    let serving = app.runtime.adapter(id);
    let installed = kept::find(app, id).await?;
    if serving.is_none() && installed.is_none() {
        return Err(Error::NotFound("adapter"));
    }
    let target = target(id, serving.as_ref(), installed.as_ref())?;
    let ground = Ground::of(app).await?;
    let package = opened(app, &target, &ground).await?;
    ground.may_install(&package).map_err(conflict)?;
    let bound = find_binding(&app.db, id).await?;
    let turn =
        Turn { package: &package, serving: serving.as_ref(), from: installed.as_ref(), target: &target };
    let ground = ground.with_pin(&turn.pinned());
    if let Some(bound) = &bound {
        check(&package, bound, &ground).map_err(conflict)?;
    }
    let adapter = app.runtime.prepared(&package).await.map_err(unusable)?;
    let replaces = serving.as_ref().map(|serving| Replaced::of(serving, package.manifest()));
    let written = turn.write(by, &ground).await?;
    serve(app, &adapter).await;
    tracing::warn!(
        component = id, version = adapter.version(), user.id = %by.caller.user_id,
        request.id = by.origin.request_id, "adapter {id} was rolled back to {}", adapter.version()
    );
    turns.note(app, &mut seen, written, None);
    shown(app).await;
    Ok(Judged::of(&package, key_of(&package, bound.as_ref()), replaces, Outcome::RolledBack))
}

/// The SHA-256 of the manifest of the package before the one that serves.
fn target(id: &str, serving: Option<&Adapter>, installed: Option<&Installed>) -> Result<String, Error> {
    let none = |message: String| Error::Conflict { kind: "no_earlier_package", message };
    let Some(installed) = installed else {
        return Err(none(format!(
            "no earlier package of '{id}' is kept: it comes from ADAPTER_PACKAGES, where files are replaced by hand; \
             packages that are installed over the API replace each other, and can be rolled back"
        )));
    };
    if serving.is_some_and(|serving| kept::is_outdone(installed, serving)) {
        return Ok(installed.manifest_sha256.clone());
    }
    installed.before_sha256.clone().ok_or_else(|| {
        none(format!(
            "no package of '{id}' from before version {} is kept; to serve another version, install its package",
            installed.version
        ))
    })
}

async fn opened(app: &App, target: &str, ground: &Ground) -> Result<Verified, Error> {
    open_kept(app, target, &ground.keys()).await.map_err(|not_loaded| match not_loaded {
        NotLoaded::Refused(reason) => conflict(format!("the package before cannot serve: {reason}")),
        other => other.into(),
    })
}

/// A package that is about to be put back.
struct Turn<'a> {
    package: &'a Verified,
    serving: Option<&'a Adapter>,
    from: Option<&'a Installed>,
    target: &'a str,
}

impl Turn<'_> {
    /// The choice that is written; whether it is pinned depends on what served.
    fn pinned(&self) -> Installed {
        let manifest = self.package.manifest();
        // The installed one gives way to itself where a newer one of a folder serves: then its own before stays.
        let before = self.from.filter(|from| from.manifest_sha256 == self.target);
        Installed {
            adapter_id: manifest.id.clone(),
            manifest_sha256: self.target.to_owned(),
            version: manifest.version.to_string(),
            before_sha256: before.and_then(|from| from.before_sha256.clone()),
            is_pinned: true,
            changed_at: heddle_core::Timestamp::default(),
        }
    }

    /// Writes choice and audit entry in one transaction.
    async fn write(&self, by: &By, ground: &Ground) -> Result<Installed, Error> {
        let (app, now) = (&by.app, by.app.clock.now());
        let mut tx = app.db.write().await?;
        let may_serve = |held: &Binding| check(self.package, held, ground);
        let held = bind_in(&mut tx, self.package, ground, now, may_serve).await?;
        let found = installed_packages::find(&mut tx, &self.package.manifest().id).await?;
        if found.as_ref() != self.from {
            return Err(Error::Conflict {
                kind: "state_moved",
                message: "another package was installed meanwhile; look at the packages again".to_owned(),
            });
        }
        let pinned = self.pinned();
        let installed = Installed { is_pinned: is_older(&pinned.version, &held), changed_at: now, ..pinned };
        installed_packages::choose(&mut tx, &installed).await?;
        record(&mut tx, by, "adapter.rolled_back", self.package, self.serving.map(served)).await?;
        tx.commit().await?;
        Ok(installed)
    }
}
