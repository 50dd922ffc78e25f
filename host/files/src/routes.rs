//! Routes of files.

use std::sync::Arc;

use axum::Json as Answer;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use heddle_core::name::has_hidden;
use heddle_core::page::Page;
use heddle_kernel::app::SharedApp;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::PREFIX;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Params};
use heddle_kernel::http::incoming::Incoming;
use heddle_kernel::http::list_query::{ListQuery as _, Listing};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::By;
use heddle_runtime::is_media_type;
use heddle_store::files::{self, File, FileId};
use heddle_store::{Tx, changes};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::declarations::{FILE_READ, FILE_WRITE, FilesSettings};
use crate::download::{content, key_of};
use crate::rights::{find, may_have, of_user};
use crate::view::View;
use crate::{BYTES, clear, upload};

/// Most characters of a name, as most file systems have it.
pub const FILE_NAME_CHARS_MAX: usize = 255;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Name of the file: 1 to 255 characters, without a path.
    #[schemars(length(min = 1, max = FILE_NAME_CHARS_MAX))]
    name: String,
}

list_query! {
    /// Part of the name.
    struct ListQuery of File {}
}

fn bytes_max(app: &SharedApp) -> usize {
    usize::try_from(app.config.of::<FilesSettings>().file_bytes_max).unwrap_or(usize::MAX)
}

/// Files stay as they are, so none has an `ETag`.
pub(crate) fn routes(app: &SharedApp) -> Routes {
    Routes::default()
        .get(
            "/files",
            Access::Permission(FILE_READ),
            list,
            doc(
                "Files of the organization, uploaded and fetched, newest first; callers that are limited to some sites \
                 see their own",
            )
                .query::<ListQuery>()
                .answers::<Page<View>>(200),
        )
        .post(
            "/files",
            Access::Permission(FILE_WRITE),
            create,
            doc("Upload a file for changes that send it; the body is its bytes, of any content type")
                .named("upload_file")
                .takes(BYTES, bytes_max(app))
                .streams()
                .query::<Asked>()
                .answers::<View>(201),
        )
        .get("/files/{file_id}", Access::Permission(FILE_READ), get, doc("A file").answers::<View>(200))
        .get(
            "/files/{file_id}/content",
            Access::Permission(FILE_READ),
            download,
            doc("The bytes of a file. Those that a device gave need the rights of a fetch, and are audited")
                .named("download_file")
                .answers_text(BYTES),
        )
        .delete(
            "/files/{file_id}",
            Access::Permission(FILE_WRITE),
            remove,
            doc("Remove a file that no pending change needs").empty(204).untagged(),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(mut query): Params<ListQuery>,
) -> Result<Answer<Page<View>>, Error> {
    let Listing { page, search, order } = query.listing()?;
    let mut tx = app.db.read().await?;
    let (scope, user) = (caller.scope(), of_user(&caller));
    let (found, total) = files::list(&mut tx, &scope, user, search.as_deref(), order).await?;
    Ok(Answer(page.of(found.into_iter().map(View::from).collect(), total)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<FileId>,
) -> Result<Answer<View>, Error> {
    let file = find(&mut app.db.single().await?, &caller, id).await?;
    Ok(Answer(file.into()))
}

/// The upload goes on in a task of its own: when the client breaks off, that task removes what came.
async fn create(by: By, Params(asked): Params<Asked>, incoming: Incoming) -> Result<Response, Error> {
    let name = checked_name(asked.name)?;
    let content_type = checked_type(incoming.content_type().unwrap_or(BYTES))?;
    let tasks = by.app.tasks.clone();
    let work = async move { upload::receive(&by, (name, content_type), incoming).await };
    let file = tasks.spawn("files.upload", work).await.map_err(Error::internal)??;
    let location = format!("{PREFIX}/files/{}", file.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Answer(View::from(file))).into_response())
}

/// Returns the name of a file as it is kept.
///
/// # Errors
/// Naming the field, where it is none: it has to be one segment of a path that people can read.
pub fn checked_name(name: String) -> Result<String, Error> {
    let length = name.chars().count();
    if !(1..=FILE_NAME_CHARS_MAX).contains(&length) {
        let message = format!("must have 1 to {FILE_NAME_CHARS_MAX} characters");
        return Err(Error::field("name", message));
    }
    let is_path = name.contains(['/', '\\']) || name == "." || name == "..";
    if is_path || name.chars().any(char::is_control) || has_hidden(&name) || name.trim() != name {
        let message = "must be a plain file name such as 'debian-13.iso': without '/', '\\', control characters, and \
                       spaces around it";
        return Err(Error::field("name", message));
    }
    Ok(name)
}

pub(super) fn checked_type(content_type: &str) -> Result<String, Error> {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "multipart/form-data" {
        let message =
            "body must be the bytes of the file, not a form: send 'content-type: application/octet-stream'";
        return Err(Error::field("content-type", message));
    }
    if is_media_type(&essence) {
        return Ok(essence);
    }
    Err(Error::field("content-type", "must be a media type such as 'application/octet-stream'"))
}

/// The media type is always that of plain bytes: no browser shows what a stranger uploaded.
async fn download(by: By, At(id): At<FileId>) -> Result<Response, Error> {
    let By { app, caller, origin } = &by;
    let file = find(&mut app.db.single().await?, caller, id).await?;
    if file.controller_id.is_some() {
        may_have(app, caller, &file).await?;
        let entry = NewEntry {
            org: file.org_id,
            actor: caller.actor(),
            action: "file.downloaded",
            target: ("file", id.0),
            detail: detail(&file),
        };
        let mut tx = app.db.write().await?;
        entry::record(&mut tx, app, origin, entry).await?;
        tx.commit().await?;
    }
    let key = key_of(app, &file)?;
    let disposition = HeaderValue::from_str(&disposition(&file.name)).map_err(Error::internal)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(BYTES)),
        (header::CONTENT_LENGTH, HeaderValue::from(file.size_bytes)),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    let bytes = content(app.db.clone(), (file.id, Arc::new(key)), file.size_bytes);
    Ok((headers, Body::from_stream(bytes)).into_response())
}

/// `attachment` with the name: in ASCII for old readers, and as it is (RFC 6266, RFC 8187).
fn disposition(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii() && !matches!(c, '"' | '\\' | '%') { c } else { '_' }).collect();
    let encoded: String = name
        .bytes()
        .map(|byte| {
            let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
        })
        .collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

async fn remove(by: By, At(id): At<FileId>) -> Result<StatusCode, Error> {
    let By { app, caller, origin } = &by;
    let mut tx = app.db.write().await?;
    let file = find(&mut tx, caller, id).await?;
    // All of them: of two requests that remove copies, the later one sees what the other left.
    let copies = files::lock_copies(&mut tx, file.org_id, &file.sha256).await?;
    let file = copies.iter().find(|copy| copy.id == id).ok_or(Error::NotFound("file"))?;
    if !copies.iter().any(|copy| copy.id != id && copy.expires_at >= file.expires_at) {
        refuse_in_use(&mut tx, caller, file).await?;
    }
    files::withdraw(&mut tx, id, app.clock.now()).await?;
    let entry = NewEntry {
        org: file.org_id,
        actor: caller.actor(),
        action: "file.removed",
        target: ("file", id.0),
        detail: detail(file),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    let cleared = app.clone();
    let work = async move { clear(&cleared, id).await };
    // The file is gone already; what is left of its bytes now, the retention removes.
    if let Err(error) = app.tasks.spawn("files.clear", work).await.map_err(Error::internal).flatten() {
        tracing::warn!(file.id = %id, error = %error, "bytes of a removed file are left; they are removed later");
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses a file that pending changes send. One of them is named, if the caller sees it.
async fn refuse_in_use(tx: &mut Tx, caller: &Caller, file: &File) -> Result<(), Error> {
    let holders = files::holders(tx, file.org_id, &file.sha256).await?;
    if holders.is_empty() {
        return Ok(());
    }
    let seen = changes::find_many(tx, &caller.scope(), &holders).await?;
    let message = match seen.first() {
        Some(change) => format!("pending change {} sends this file; apply or discard it first", change.id),
        None => "a pending change that you do not see sends this file".to_owned(),
    };
    Err(Error::Conflict { kind: "in_use", message })
}

/// What the audit log says of a file.
pub(super) fn detail(file: &File) -> Value {
    let mut detail = json!({ "name": file.name, "size_bytes": file.size_bytes, "sha256": file.sha256 });
    if let (Some(controller), Some(kind)) = (file.controller_id, &file.kind) {
        detail["controller_id"] = json!(controller);
        detail["kind"] = json!(kind);
    }
    detail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_that_people_can_read() {
        for good in ["debian-13.iso", "Übung 1.tar.gz", ".hidden", "a"] {
            assert!(checked_name(good.to_owned()).is_ok(), "{good}");
        }
        let long = "a".repeat(256);
        for bad in ["", "a/b", "..", ".", "a\\b", "a\nb", " a", "a\u{202e}b", &long] {
            assert!(checked_name(bad.to_owned()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_content_type_is_kept_without_its_parameters() {
        assert_eq!(checked_type("Application/X-Tar; charset=utf-8").unwrap(), "application/x-tar");
        for bad in ["", "text", "a/b/c", "multipart/form-data; boundary=x", "a/ b"] {
            assert!(checked_type(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_name_cannot_end_its_header() {
        let header = disposition("a\"b%é.iso");
        assert_eq!(header, "attachment; filename=\"a_b__.iso\"; filename*=UTF-8''a%22b%25%C3%A9.iso");
    }
}
