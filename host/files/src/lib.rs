//! Files that people upload, for changes whose calls send them: images, templates, firmware, configurations. And files that
//! devices gave: backups, exports, support bundles. The room of the changes, which stands above, asks devices for them.
//!
//! They belong to an organization and are kept in the database, so that every process and every backup has them, sealed by
//! a key of the file. Their bytes come and go piece by piece; no file is ever whole in memory. They are kept for some days
//! only, and as long as a pending change needs them.

pub mod declarations;
mod download;
mod fetches;
mod glossary;
pub mod named;
mod pieces;
mod places;
mod rights;
mod routes;
mod sink;
mod upload;
mod uploads;
mod view;

use futures::FutureExt as _;
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::{Feature, Forget, Names, Sealing};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::keys::DataKey;
use heddle_store::files::{self, FileId};
use heddle_store::sealed::SealedColumn;

pub use self::fetches::Fetches;
pub use self::places::Held;
pub use self::routes::{FILE_NAME_CHARS_MAX, checked_name};
pub use self::sink::Sink;
pub use self::upload::{completed, gone};
pub use self::view::View;

use self::uploads::Uploads;

/// Media type of bytes of which nothing more is known.
const BYTES: &str = "application/octet-stream";
/// Most files of an organization.
const FILES_MAX: i64 = 1_000;
/// Bytes of a piece before it is sealed.
const PLAIN_BYTES: usize = files::PIECE_BYTES - DataKey::TAG_BYTES;
/// Parts that one transaction removes of a file: other writers do not wait long.
const CLEARED_AT_ONCE: u32 = 64;

/// Ended files go out of use first; the bytes of those follow, and what broken uploads left.
const FORGETS: &[Forget] = &[
    Forget { days: 0, batch: |tx, now, rows| files::expire(tx, now, rows).boxed() },
    Forget { days: 0, batch: |tx, now, rows| files::sweep(tx, now, rows).boxed() },
];

/// Files of organizations. It needs [`Fetches`], which the room opens that has devices give files.
pub struct Files;

#[async_trait::async_trait]
impl Feature for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn declares(&self) -> &'static Names {
        const {
            &Names {
                permissions: declarations::PERMISSIONS,
                settings: &[SettingsOf::the::<declarations::FilesSettings>()],
                ..Names::NONE
            }
        }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::FILES
    }

    fn sealed(&self) -> &'static [Sealing] {
        const { &[Sealing::of(SealedColumn::of("file"))] }
    }

    async fn open(&self, _: &App, parts: &mut Parts) {
        parts.add(Uploads::default());
    }

    fn routes(&self, app: &SharedApp) -> Routes {
        routes::routes(app)
    }

    fn forgets(&self) -> &'static [Forget] {
        FORGETS
    }
}

/// What the key of a file is sealed for.
fn context(id: FileId) -> String {
    format!("file:{}", id.0)
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
