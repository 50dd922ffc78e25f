//! Which packages are installed, as the database has it.

use heddle_kernel::app::App;
use heddle_marketplace::TrustedKey;
use heddle_packages::{NotLoaded, open_kept};
use heddle_runtime::Adapter;
use heddle_store::Db;
use heddle_store::installed_packages::{self, Installed};
use semver::Version;

use super::Seen;
use crate::adapters::packages::{Candidate, Origin};

/// How messages call an installed package.
pub(in crate::adapters) fn name_of(installed: &Installed) -> String {
    format!("{} {} (installed)", installed.adapter_id, installed.version)
}

/// What is installed now.
pub(in crate::adapters) async fn seen(db: &Db) -> heddle_store::Result<Seen> {
    let installed = installed_packages::all(&mut db.single().await?).await?;
    Ok(installed.into_iter().map(|one| (one.adapter_id.clone(), one)).collect())
}

/// The installed package of an adapter.
pub(super) async fn find(app: &App, id: &str) -> heddle_store::Result<Option<Installed>> {
    installed_packages::find(&mut app.db.single().await?, id).await
}

/// Whether a package of this process's folder serves, which is newer than the installed one.
pub(super) fn is_outdone(installed: &Installed, serving: &Adapter) -> bool {
    Version::parse(&installed.version).is_ok_and(|version| serving.manifest().version > version)
}

/// Whether this process serves the installed package, or one of its folder that goes before it.
pub(super) fn is_met(installed: &Installed, serving: &Adapter) -> bool {
    let gives_way = !installed.is_pinned && is_outdone(installed, serving);
    gives_way || serving.manifest_sha256() == installed.manifest_sha256
}

/// Opens an installed package, and verifies it with the keys that are trusted now.
pub(in crate::adapters) async fn candidate(
    app: &App,
    installed: &Installed,
    trusted: &[TrustedKey],
) -> Result<Candidate, NotLoaded> {
    let package = open_kept(app, &installed.manifest_sha256, trusted).await?;
    Ok(Candidate { name: name_of(installed), origin: Origin::Installed, package })
}
