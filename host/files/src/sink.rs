//! Where the bytes go that a device answers as a file: into the database, as an upload's do.
//!
//! The file is complete, and to be seen, only when the adapter has taken it for what was asked for.

use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use heddle_core::OrgId;
use heddle_core::adapter::KindFile;
use heddle_core::fault::{Fault, FaultKind};
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_runtime::{FileHead, FileSink};
use heddle_store::files::{FileId, Source};

use crate::declarations::FilesSettings;
use crate::pieces::Pieces;
use crate::routes::{checked_name, checked_type};
use crate::upload::begin;
use crate::{BYTES, clear};

/// Takes one file.
pub struct Sink {
    by: By,
    org: OrgId,
    /// What a person calls it.
    name: Option<String>,
    file: KindFile,
    source: Source,
    taken: tokio::sync::Mutex<Taken>,
    /// Why the sink did not take it, in the words of the API.
    refused: Mutex<Option<Error>>,
}

#[derive(Default)]
struct Taken {
    pieces: Option<Pieces>,
    /// The row of the file that was begun last.
    id: Option<FileId>,
    /// SHA-256 of what came, once it came whole.
    sha256: Option<String>,
}

impl Sink {
    /// Takes a file for this organization, on behalf of a caller. `name` is what a person calls it, `file` what its kind is
    /// said to be, and `source` where it comes from.
    pub fn new((by, org): (By, OrgId), name: Option<String>, file: KindFile, source: Source) -> Self {
        Self { by, org, name, file, source, taken: tokio::sync::Mutex::default(), refused: Mutex::default() }
    }

    /// Why it refused what came, if it did.
    pub fn refusal(&self) -> Option<Error> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The file that came whole, with its SHA-256.
    pub async fn whole(&self) -> Option<(FileId, String)> {
        let taken = self.taken.lock().await;
        taken.id.zip(taken.sha256.clone())
    }

    /// Removes what came.
    pub async fn clear(&self) -> Result<(), Error> {
        let taken = std::mem::take(&mut *self.taken.lock().await);
        match taken.id {
            Some(id) => clear(&self.by.app, id).await,
            None => Ok(()),
        }
    }

    fn note(&self, error: Error) -> Fault {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        Fault::new(FaultKind::Generic, "the host does not keep the file").with_code("file-refused")
    }

    fn too_large(&self) -> Error {
        let most = self.bytes_max();
        let message = format!("the file has more than {most} bytes, which FILE_BYTES_MAX allows");
        Error::Conflict { kind: "limit_reached", message }
    }

    async fn open(&self, head: FileHead) -> Result<(), Error> {
        // Why an earlier file was refused says nothing of this one.
        drop(self.refusal());
        self.clear().await?;
        if head.size_bytes.is_some_and(|size| size > self.bytes_max()) {
            return Err(self.too_large());
        }
        let app = &self.by.app;
        let told = head.name.and_then(|name| checked_name(name).ok());
        // What says only that it is bytes says less than the description.
        let kind = head.content_type.filter(|kind| kind != BYTES).and_then(|kind| checked_type(&kind).ok());
        let name = self.name.clone().or(told).unwrap_or_else(|| self.file.name.clone());
        let kind = kind.or_else(|| self.file.content_type.clone()).unwrap_or_else(|| BYTES.to_owned());
        let id = app.clock.new_id();
        let key = begin(&self.by, (self.org, id), (name, kind), Some(self.source.clone())).await?;
        *self.taken.lock().await =
            Taken { pieces: Some(Pieces::of(app.clone(), self.org, (id, key))), id: Some(id), sha256: None };
        Ok(())
    }

    async fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let mut taken = self.taken.lock().await;
        let pieces = taken.pieces.as_mut().ok_or_else(|| Error::internal("no file was begun"))?;
        if pieces.size() + bytes.len() as u64 > self.bytes_max() {
            return Err(self.too_large());
        }
        pieces.take(bytes).await
    }

    async fn close(&self) -> Result<(u64, String), Error> {
        let mut taken = self.taken.lock().await;
        let pieces = taken.pieces.take().ok_or_else(|| Error::internal("no file was begun"))?;
        let (size_bytes, sha256) = pieces.end().await?;
        taken.sha256 = Some(sha256.clone());
        Ok((size_bytes, sha256))
    }
}

#[async_trait::async_trait]
impl FileSink for Sink {
    fn takes_json(&self) -> bool {
        let kind = self.file.content_type.as_deref().unwrap_or_default();
        kind == "application/json" || kind.ends_with("+json")
    }

    fn bytes_max(&self) -> u64 {
        self.by.app.config.of::<FilesSettings>().file_bytes_max
    }

    async fn begin(&self, head: FileHead) -> Result<(), Fault> {
        self.open(head).await.map_err(|error| self.note(error))
    }

    async fn take(&self, bytes: Bytes) -> Result<(), Fault> {
        self.write(&bytes).await.map_err(|error| self.note(error))
    }

    async fn end(&self) -> Result<(u64, String), Fault> {
        self.close().await.map_err(|error| self.note(error))
    }
}
