//! The bytes of a file on their way into the database: they come in any portions and are written in pieces.

use heddle_core::OrgId;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::keys::DataKey;
use heddle_store::files::FileId;
use sha2::{Digest as _, Sha256};

use crate::PLAIN_BYTES;
use crate::upload::add;

/// A file that is being written.
pub(super) struct Pieces {
    app: SharedApp,
    org: OrgId,
    id: FileId,
    /// What seals the bytes.
    key: DataKey,
    digest: Sha256,
    size: u64,
    /// How many pieces are written.
    number: i64,
    /// What is not written yet.
    piece: Vec<u8>,
}

impl Pieces {
    /// Nothing of the file is there yet.
    pub(super) fn of(app: SharedApp, org: OrgId, (id, key): (FileId, DataKey)) -> Self {
        let piece = Vec::with_capacity(PLAIN_BYTES);
        Self { app, org, id, key, digest: Sha256::new(), size: 0, number: 0, piece }
    }

    /// How many bytes came so far.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes that came next.
    pub(super) async fn take(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.digest.update(bytes);
        self.size += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PLAIN_BYTES - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
            if self.piece.len() == PLAIN_BYTES {
                self.write().await?;
            }
        }
        Ok(())
    }

    /// Writes the last piece. Returns how many bytes there are, and their SHA-256 in hex.
    pub(super) async fn end(mut self) -> Result<(u64, String), Error> {
        if !self.piece.is_empty() {
            self.write().await?;
        }
        Ok((self.size, format!("{:x}", self.digest.finalize())))
    }

    async fn write(&mut self) -> Result<(), Error> {
        add(&self.app, self.org, (self.id, &self.key), self.number, &self.piece).await?;
        self.number += 1;
        self.piece.clear();
        Ok(())
    }
}
