//! Files that people upload, for changes whose calls send them: images, templates, firmware, configurations. And files that
//! people fetch from devices: backups, exports, support bundles ([`crate::fetch`]).
//!
//! They belong to an organization and are kept in the database, so that every process and every backup has them, sealed by
//! a key of the file. Their bytes come and go piece by piece; no file is ever whole in memory. They are kept for some days
//! only, and as long as a pending change needs them.

mod download;
mod fetches;
pub(super) mod named;
mod pieces;
mod places;
mod routes;
mod sink;
mod upload;
mod uploads;

use futures::FutureExt as _;
use heddle_core::change::Danger;
use heddle_core::{ControllerId, SiteLevel, Timestamp, UserId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::feature::Forget;
use heddle_kernel::http::error::Error;
use heddle_kernel::keys::DataKey;
use heddle_store::files::{self, File, FileId};
use heddle_store::{Scope, SiteScope, Tx, controllers};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) use self::download::{content, key_of};
pub(super) use self::fetches::Fetches;
pub(super) use self::routes::{FILE_NAME_CHARS_MAX, checked_name, routes};
pub(super) use self::sink::Sink;
pub(super) use self::upload::{completed, gone};
pub(super) use self::uploads::Uploads;

use crate::vendors::for_feature;

/// Media type of bytes of which nothing more is known.
const BYTES: &str = "application/octet-stream";
/// Most files of an organization.
const FILES_MAX: i64 = 1_000;
/// Bytes of a piece before it is sealed.
const PLAIN_BYTES: usize = files::PIECE_BYTES - DataKey::TAG_BYTES;
/// Parts that one transaction removes of a file: other writers do not wait long.
const CLEARED_AT_ONCE: u32 = 64;

/// Ended files go out of use first; the bytes of those follow, and what broken uploads left.
pub(super) const FORGETS: &[Forget] = &[
    Forget { days: 0, batch: |tx, now, rows| files::expire(tx, now, rows).boxed() },
    Forget { days: 0, batch: |tx, now, rows| files::sweep(tx, now, rows).boxed() },
];

/// A file as clients see it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UploadedFile")]
pub(super) struct View {
    id: FileId,
    name: String,
    /// Number of bytes.
    size_bytes: i64,
    /// SHA-256 of the bytes, in hex.
    sha256: String,
    /// Media type that the upload, or the device, gave.
    content_type: String,
    /// User who uploaded or fetched it.
    created_by: UserId,
    created_at: Timestamp,
    /// The file is removed after this, unless a pending change needs it.
    expires_at: Timestamp,
    /// The controller that gave it; null where it was uploaded.
    controller_id: Option<ControllerId>,
    /// What it is at that controller, such as `system.backup`; null where it was uploaded.
    kind: Option<String>,
}

impl From<File> for View {
    fn from(file: File) -> Self {
        Self {
            id: file.id,
            name: file.name,
            size_bytes: file.size_bytes,
            sha256: file.sha256,
            content_type: file.content_type,
            created_by: file.created_by,
            created_at: file.created_at,
            expires_at: file.expires_at,
            controller_id: file.controller_id,
            kind: file.kind,
        }
    }
}

/// What the key of a file is sealed for.
fn context(id: FileId) -> String {
    format!("file:{}", id.0)
}

/// Of which user the caller sees files: of everybody in the organization, unless they are limited to some sites.
fn of_user(caller: &Caller) -> Option<UserId> {
    matches!(caller.scope().sites, SiteScope::Only(_)).then_some(caller.user_id)
}

/// The file, if the caller sees it.
async fn find(tx: &mut Tx, caller: &Caller, id: FileId) -> Result<File, Error> {
    let found = files::find(tx, &caller.scope(), of_user(caller), id).await?;
    found.ok_or(Error::NotFound("file"))
}

/// Refuses what a device gave to a caller who may not change that device: it can hold every secret of it.
async fn may_have(app: &App, caller: &Caller, file: &File) -> Result<(), Error> {
    let Some(controller) = file.controller_id else { return Ok(()) };
    let site = file.site_id.ok_or_else(|| Error::internal("the file of a device has no site"))?;
    caller.require_level(site, SiteLevel::Write)?;
    let mut tx = app.db.single().await?;
    let found = controllers::find_target(&mut tx, &Scope::organization(file.org_id), controller).await?;
    // Of a controller that is gone, the vendor is not known: what most vendors need is needed then.
    let vendor = found.map(|controller| controller.vendor).unwrap_or_default();
    caller.require(for_feature(&vendor, Danger::Normal))
}

/// Removes the bytes of a file that is out of use. What is left after a crash is removed by the retention.
async fn clear(app: &App, id: FileId) -> Result<(), Error> {
    loop {
        let mut tx = app.db.write().await?;
        let is_gone = files::clear(&mut tx, id, CLEARED_AT_ONCE).await?;
        tx.commit().await?;
        if is_gone {
            return Ok(());
        }
    }
}
