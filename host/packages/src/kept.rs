//! Packages as the database keeps them: opened and verified like any other.

use heddle_kernel::app::App;
use heddle_kernel::task;
use heddle_marketplace::{TrustedKey, Verified};
use heddle_store::installed_packages;

use crate::not_loaded::NotLoaded;

/// Opens a package that is kept under this SHA-256 of its manifest.
pub async fn open_kept(app: &App, manifest: &str, trusted: &[TrustedKey]) -> Result<Verified, NotLoaded> {
    let archive = installed_packages::archive(&mut app.db.single().await?, manifest).await?;
    let gone = || NotLoaded::Refused("its bytes are no longer kept; install it again".to_owned());
    let archive = archive.ok_or_else(gone)?;
    let keys = trusted.to_vec();
    let opened = task::block(move || Verified::open_archive(&archive, &keys)).await;
    let package = opened.map_err(|error| NotLoaded::Refused(error.to_string()))?;
    if package.manifest_sha256() != manifest {
        return Err(NotLoaded::Refused("what is kept is another package than was installed".to_owned()));
    }
    Ok(package)
}
