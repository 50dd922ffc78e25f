//! Staged changes: what is asked for, what will be sent, who may send it, how it ended.
//!
//! Nothing reaches a device outside [`apply`]. Staging and planning read only;
//! the runtime enforces it.

mod apply;
mod drive;
mod gates;
mod new_key;
mod outcome;
mod payload;
mod plan;
mod routes;
mod view;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use heddle_core::ChangeId;

use crate::app::SharedApp;
use crate::http::error::Error;

pub(crate) use drive::recover;
pub(crate) use new_key::{Rekey, rekey};
pub(crate) use routes::routes;

/// How often pending changes are looked at for their expiry.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(30);

/// Changes that this process is bringing forward right now.
#[derive(Debug, Default, Clone)]
pub struct Drivers {
    under_way: Claims,
    holding: Claims,
}

type Claims = Arc<Mutex<HashSet<ChangeId>>>;

impl Drivers {
    /// A claim on one change, or `None` while another task has it.
    fn claim(&self, change: ChangeId) -> Option<DriverClaim> {
        DriverClaim::new(&self.under_way, change)
    }

    /// A claim on the confirm window of one change.
    fn claim_hold(&self, change: ChangeId) -> Option<DriverClaim> {
        DriverClaim::new(&self.holding, change)
    }
}

/// Who holds it, and nobody else, brings the change forward.
#[derive(Debug)]
struct DriverClaim {
    claims: Claims,
    change: ChangeId,
}

impl DriverClaim {
    fn new(claims: &Claims, change: ChangeId) -> Option<Self> {
        let is_new = claims.lock().expect("no holder of this lock panics").insert(change);
        is_new.then(|| Self { claims: claims.clone(), change })
    }
}

impl Drop for DriverClaim {
    fn drop(&mut self) {
        self.claims.lock().expect("no holder of this lock panics").remove(&self.change);
    }
}

/// Discards pending changes whose time has run out, and takes up applies that
/// nobody drives: a database that was away may have ended their drive.
pub(crate) async fn expire_loop(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        if let Err(error) = expire(&app).await {
            tracing::warn!(error = %error, "expired changes were not discarded; tried again later");
        }
        if let Err(error) = recover(&app).await {
            tracing::warn!(error = %error, "applies under way cannot be read; tried again later");
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
