//! The bytes of a file, read piece by piece as fast as they are taken.

use std::sync::Arc;

use axum::body::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::keys::DataKey;
use heddle_store::Db;
use heddle_store::files::{self, File, FileId};

use crate::context;

/// What opens the bytes of a complete file.
pub(crate) fn key_of(app: &App, file: &File) -> Result<DataKey, Error> {
    app.keys.open_data_key(&context(file.id), &file.secret).map_err(Error::internal)
}

/// The bytes of a complete file, in order. Ends with an error when the file is removed meanwhile.
pub(crate) fn content(
    db: Db,
    (id, key): (FileId, Arc<DataKey>),
    size_bytes: i64,
) -> BoxStream<'static, Result<Bytes, std::io::Error>> {
    let size = u64::try_from(size_bytes).unwrap_or(0);
    stream::try_unfold((0_i64, size), move |(number, left)| {
        let (db, key) = (db.clone(), Arc::clone(&key));
        async move {
            if left == 0 {
                return Ok(None);
            }
            let sealed = piece(&db, id, number).await.map_err(std::io::Error::other)?;
            if sealed.is_empty() {
                return Err(std::io::Error::other("the file was removed while it was read"));
            }
            let plain = key.open(number.unsigned_abs(), &sealed).map_err(std::io::Error::other)?;
            let left = left.checked_sub(plain.len() as u64);
            let left = left.ok_or_else(|| std::io::Error::other("the file is longer than it was"))?;
            Ok(Some((Bytes::from(plain), (number + 1, left))))
        }
    })
    .boxed()
}

async fn piece(db: &Db, id: FileId, number: i64) -> heddle_store::Result<Vec<u8>> {
    files::piece(&mut db.single().await?, id, number).await
}
