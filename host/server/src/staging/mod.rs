//! Staged changes: what is asked for, what will be sent, who may send it, how it ended.
//!
//! Nothing reaches a device outside [`apply`]. Staging and planning read only;
//! the runtime enforces it.

mod apply;
mod drive;
mod gates;
mod outcome;
mod payload;
mod plan;
mod routes;
mod view;

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use heddle_core::ChangeId;

use crate::app::SharedApp;
use crate::http::error::Error;

pub(crate) use drive::recover;
pub(crate) use routes::routes;

/// How often pending changes are looked at for their expiry.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(30);

/// Changes that this process is bringing forward right now.
#[derive(Debug, Default)]
pub struct Drivers {
    under_way: Mutex<HashSet<ChangeId>>,
}

impl Drivers {
    /// A claim on one change, or `None` while another task has it.
    fn claim(&self, change: ChangeId) -> Option<DriverClaim<'_>> {
        let mut under_way = self.under_way.lock().expect("no holder of this lock panics");
        under_way.insert(change).then_some(DriverClaim { drivers: self, change })
    }
}

struct DriverClaim<'a> {
    drivers: &'a Drivers,
    change: ChangeId,
}

impl Drop for DriverClaim<'_> {
    fn drop(&mut self) {
        self.drivers.under_way.lock().expect("no holder of this lock panics").remove(&self.change);
    }
}

/// Discards pending changes whose time has run out.
pub(crate) async fn expire_loop(app: SharedApp) {
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
    let expired = heddle_store::changes::expire_due(&mut tx, app.clock.now()).await?;
    for change in &expired {
        outcome::record(&mut tx, app, change, &outcome::Step::expired()).await?;
    }
    tx.commit().await?;
    if !expired.is_empty() {
        app.hub.wake();
    }
    Ok(())
}
