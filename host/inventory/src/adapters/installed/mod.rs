//! Packages that are installed, replaced and put back over the API, while the server runs.
//!
//! They are kept in the database, so every process of it serves the same ones. A package is written there before it
//! serves: after a crash between the two, the start loads what was written.

mod before;
mod changes;
mod follow;
mod install;
mod kept;
mod roll_back;
mod routes;
mod turns;
mod view;

use std::collections::BTreeMap;

use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::installed_packages::Installed;

pub(super) use self::follow::follow;
pub use self::install::install_listed;
pub(super) use self::kept::{candidate, name_of, seen};
pub(super) use self::routes::routes;
pub(super) use self::turns::Turns;

/// What this process has last seen in the database, by the id of the adapter.
pub(super) type Seen = BTreeMap<String, Installed>;

/// Carries a change out to its end, although its client goes away.
pub async fn to_its_end<T: Send + 'static>(
    app: &App,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    app.tasks.spawn("adapters.install", work).await.map_err(Error::internal)?
}

/// Waits until routes and the API document show what serves. A server that stops does not get there.
pub async fn shown(app: &App) {
    let stop = app.tasks.stopping();
    tokio::select! {
        () = stop.cancelled() => {}
        () = app.all_installed_shown() => {}
    }
}
