//! Staged changes: the request, the calls that will be sent, the users that may send them, the outcome.
//!
//! Nothing reaches a device outside [`apply`]. Staging and planning only read; the runtime enforces it.

pub mod acts;
pub mod apply;
mod asking;
pub mod cancel;
mod cause;
mod change_routes;
pub mod declarations;
mod detail;
mod diagnostics;
mod drive;
mod drivers;
mod ending;
mod expressed;
mod fetch;
mod gates;
mod glossary;
mod job;
mod live;
mod measures;
mod model_routes;
mod new_key;
mod outcome;
pub mod parts;
mod payload;
mod place;
pub mod plan;
pub mod revert;
mod routes;
pub mod seam;
mod set;
pub mod settle;
pub mod vendors;
pub mod view;
pub mod window;

use heddle_kernel::feature::Names;
use std::time::Duration;

pub use cause::{Cause, step_of};
use futures::FutureExt as _;
use heddle_core::ChangeId;
use heddle_core::change::Danger;
use heddle_files::Fetches;
use heddle_kernel::app::{App, Parts, SharedApp};
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::{Diagnostic, Feature, Sealing, Worker};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::Routes;
use heddle_store::sealed::SealedColumn;
pub use place::{Asked, Place, Seen, controller_on_path};
pub use plan::Request;
pub use view::ChangeView;

use self::drivers::Drivers;
use self::measures::Measures;

/// How often pending changes are checked for their expiry.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(30);

/// How often orphaned applies are looked for: a process that drove one may be gone.
const TAKE_UP_INTERVAL: Duration = Duration::from_secs(1);

const SEALED: &[Sealing] = &[Sealing {
    column: SealedColumn::of("change"),
    rekey: Some(|tx, keys, clock, id| new_key::rekey(tx, keys, clock, ChangeId(id)).boxed()),
}];

/// Staged changes.
pub struct Changes;

#[async_trait::async_trait]
impl Feature for Changes {
    fn name(&self) -> &'static str {
        "staging"
    }

    fn declares(&self) -> &'static Names {
        const {
            &Names {
                permissions: declarations::PERMISSIONS,
                events: declarations::EVENTS,
                settings: &[SettingsOf::the::<declarations::ChangesSettings>()],
                ..Names::NONE
            }
        }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::CHANGES
    }

    fn diagnostics(&self) -> &'static [Diagnostic] {
        diagnostics::DIAGNOSTICS
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    async fn open(&self, app: &App, parts: &mut Parts) {
        parts.add(Drivers::default());
        // A file that a device gave can hold all secrets of the device. Reading it needs the permission to change the device.
        parts.add(Fetches::new(|vendor| vendors::for_feature(vendor, Danger::Normal)));
        parts.add(Measures::new(&app.metrics.families()));
    }

    async fn measure(&self, app: &SharedApp) {
        Measures::of(app).measure(app).await;
    }

    fn routes(&self, app: &SharedApp) -> Routes {
        routes::routes(app)
    }

    fn workers(&self, app: &SharedApp) -> Vec<Worker> {
        vec![
            Worker::new("staging.expire", expire_loop(app.clone())),
            Worker::new("staging.take_up", take_up_loop(app.clone())),
        ]
    }

    async fn term_begun(&self, app: &SharedApp) -> Result<(), Error> {
        drive::recover(app).await
    }
}

/// Takes up orphaned applies: their process is gone or has released them, or a database outage ended their drive.
async fn take_up_loop(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(TAKE_UP_INTERVAL) => {}
        }
        if let Err(error) = drive::recover(&app).await {
            tracing::warn!(error = %error, "applies under way cannot be read; tried again later");
        }
    }
}

/// Discards pending changes that have expired.
async fn expire_loop(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        if let Err(error) = expire(&app).await {
            tracing::warn!(error = %error, "expired changes were not discarded; tried again later");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EXPIRY_INTERVAL) => {}
        }
    }
}

async fn expire(app: &SharedApp) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    let now = app.clock.now();
    let expired = heddle_store::changes::expire_due(&mut tx, now).await?;
    for change in &expired {
        set::follow(&mut tx, change, now).await?;
        outcome::record(&mut tx, app, change, &outcome::Step::expired()).await?;
    }
    tx.commit().await?;
    Ok(())
}
