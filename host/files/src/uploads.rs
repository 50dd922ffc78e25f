//! The uploads that this process receives now: few at a time, so that slow clients keep places free for others.

use heddle_core::OrgId;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::files::FileId;

use crate::places::{Held, Places};

/// Uploads of an organization at once.
const UPLOADS_OF_ORG_MAX: usize = 4;
/// Uploads to a process at once.
const UPLOADS_MAX: usize = 32;

/// The files that are being uploaded, and whose they are.
#[derive(Debug, Default, Clone)]
pub(crate) struct Uploads(Places<FileId>);

impl Uploads {
    /// Returns the uploads of this process.
    pub(super) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Begins one, if there is a place for it.
    pub(super) fn begin(&self, org: OrgId, id: FileId) -> Result<Held<FileId>, Error> {
        self.0.take(id, org, (UPLOADS_OF_ORG_MAX, UPLOADS_MAX)).map_err(|_| Error::Conflict {
            kind: "limit_reached",
            message: "other uploads are under way; try again when one has ended".to_owned(),
        })
    }
}
