//! An upload: the bytes are written piece by piece, each in a short transaction of its own.
//!
//! A file is not complete, and so not to be seen, before its last piece is written. What a broken upload wrote is removed
//! at once; what a crash left is removed by the retention.

use chrono::TimeDelta;
use heddle_core::OrgId;
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::incoming::Incoming;
use heddle_kernel::keys::DataKey;
use heddle_kernel::resource::By;
use heddle_store::files::{self, File, FileId, NewFile, Source};
use heddle_store::object::Object as _;
use heddle_store::{Organization, Scope, Tx};

use crate::declarations::FilesSettings;
use crate::pieces::Pieces;
use crate::routes::detail;
use crate::uploads::Uploads;
use crate::{FILES_MAX, clear, context};

/// Reads the body to its end and keeps it as a file of the caller's organization.
pub(super) async fn receive(
    by: &By,
    (name, content_type): (String, String),
    incoming: Incoming,
) -> Result<File, Error> {
    let app = &by.app;
    let id = app.clock.new_id();
    let _under_way = Uploads::of(app).begin(by.caller.org_id, id)?;
    let key = begin(by, (by.caller.org_id, id), (name, content_type), None).await?;
    let stop = app.tasks.stopping();
    let received = tokio::select! {
        received = rest(by, (id, key), incoming) => received,
        () = stop.cancelled() => Err(Error::Unavailable("service stops; send the file again".to_owned())),
    };
    if received.is_err()
        && let Err(error) = clear(app, id).await
    {
        tracing::warn!(file.id = %id, error = %error, "a broken upload was not removed; it is removed later");
    }
    received
}

/// Begins a file of the organization, if there is room for one; returns the key of its bytes.
pub(super) async fn begin(
    by: &By,
    (org, id): (OrgId, FileId),
    (name, content_type): (String, String),
    source: Option<Source>,
) -> Result<DataKey, Error> {
    let (app, now) = (&by.app, by.app.clock.now());
    let (key, secret) = app.keys.new_data_key(&context(id));
    let new = NewFile {
        id,
        org_id: org,
        name,
        content_type,
        secret,
        created_by: by.caller.user_id,
        expires_at: now + TimeDelta::days(i64::from(app.config.of::<FilesSettings>().file_ttl_days)),
        now,
        source,
    };
    let mut tx = app.db.write().await?;
    has_room(&mut tx, app, org, 0).await?;
    files::begin(&mut tx, &new).await?;
    tx.commit().await?;
    Ok(key)
}

/// Makes a file complete that came whole, with its audit entry.
pub async fn completed(
    tx: &mut Tx,
    by: &By,
    (id, sha256): (FileId, &str),
    action: &'static str,
) -> Result<File, Error> {
    let By { app, caller, origin } = by;
    let file = files::complete(tx, id, sha256, app.clock.now()).await?.ok_or_else(gone)?;
    let entry = NewEntry {
        org: file.org_id,
        actor: caller.actor(),
        action,
        target: ("file", id.0),
        detail: detail(&file),
    };
    entry::record(tx, app, origin, entry).await?;
    tracing::info!(file.id = %id, user.id = %caller.user_id, body.bytes = file.size_bytes, "{action}: {id}");
    Ok(file)
}

/// Writes all pieces, and makes the file complete.
async fn rest(by: &By, (id, key): (FileId, DataKey), mut incoming: Incoming) -> Result<File, Error> {
    let mut pieces = Pieces::of(by.app.clone(), by.caller.org_id, (id, key));
    while let Some(chunk) = incoming.chunk().await? {
        pieces.take(&chunk).await?;
    }
    let (size, sha256) = pieces.end().await?;
    if size == 0 {
        return Err(Error::field("body", "is empty; send the bytes of the file as the body"));
    }
    let mut tx = by.app.db.write().await?;
    let file = completed(&mut tx, by, (id, &sha256), "file.uploaded").await?;
    tx.commit().await?;
    Ok(file)
}

/// Seals one piece and writes it.
pub(super) async fn add(
    app: &App,
    org: OrgId,
    (id, key): (FileId, &DataKey),
    number: i64,
    piece: &[u8],
) -> Result<(), Error> {
    let sealed = key.seal(number.unsigned_abs(), piece);
    let mut tx = app.db.write().await?;
    has_room(&mut tx, app, org, piece.len()).await?;
    if !files::add(&mut tx, id, number, (&sealed, piece.len()), app.clock.now()).await? {
        return Err(gone());
    }
    Ok(tx.commit().await?)
}

/// Returns the error for a file to which nothing was added for an hour: the retention removed it.
pub fn gone() -> Error {
    Error::conflict("the file took too long to come and was removed; send or fetch it again")
}

/// Refuses what would be too much for the organization. Its row is locked, so that uploads count one after the other.
async fn has_room(tx: &mut Tx, app: &App, org: OrgId, more: usize) -> Result<(), Error> {
    Organization::lock(tx, &Scope::organization(org), org).await?.ok_or(Error::NotFound("organization"))?;
    let used = files::usage(tx, org).await?;
    let most = app.config.of::<FilesSettings>().files_bytes_max;
    let wanted = u64::try_from(used.bytes).unwrap_or(u64::MAX).saturating_add(more as u64);
    let message = if wanted > most {
        format!("files of the organization may take {most} bytes together; remove some first")
    } else if used.files >= FILES_MAX && more == 0 {
        format!("there are {FILES_MAX} files already; remove some first")
    } else {
        return Ok(());
    };
    Err(Error::Conflict { kind: "limit_reached", message })
}
