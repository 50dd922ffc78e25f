//! Which files a caller sees, and whose bytes they may have.

use heddle_core::{SiteLevel, UserId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_store::files::{self, File, FileId};
use heddle_store::{Scope, SiteScope, Tx, controllers};

use crate::fetches::Fetches;

/// Of which user the caller sees files: of everybody in the organization, unless they are limited to some sites.
pub(crate) fn of_user(caller: &Caller) -> Option<UserId> {
    matches!(caller.scope().sites, SiteScope::Only(_)).then_some(caller.user_id)
}

/// The file, if the caller sees it.
pub(crate) async fn find(tx: &mut Tx, caller: &Caller, id: FileId) -> Result<File, Error> {
    let found = files::find(tx, &caller.scope(), of_user(caller), id).await?;
    found.ok_or(Error::NotFound("file"))
}

/// Refuses what a device gave to a caller who may not change that device: it can hold every secret of it.
pub(crate) async fn may_have(app: &App, caller: &Caller, file: &File) -> Result<(), Error> {
    let Some(controller) = file.controller_id else { return Ok(()) };
    let site = file.site_id.ok_or_else(|| Error::internal("the file of a device has no site"))?;
    caller.require_level(site, SiteLevel::Write)?;
    let mut tx = app.db.single().await?;
    let found = controllers::find_target(&mut tx, &Scope::organization(file.org_id), controller).await?;
    // Of a controller that is gone, the vendor is not known: what most vendors need is needed then.
    let vendor = found.map(|controller| controller.vendor).unwrap_or_default();
    caller.require(Fetches::of(app).needed(&vendor))
}
