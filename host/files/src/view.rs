//! A file as clients see it.

use heddle_core::{ControllerId, Timestamp, UserId};
use heddle_store::files::{File, FileId};
use schemars::JsonSchema;
use serde::Serialize;

/// A file as clients see it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UploadedFile")]
pub struct View {
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
