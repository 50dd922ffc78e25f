//! Takes up what this process or another one of the same database has found to be revoked. Plugins have a follower of their own.
//!
//! Two workers watch the same number, which counts changes of what is revoked. One takes adapters out of service and waits for
//! nothing but the database; the other has packages stand in for them, and waits for installations. Neither updates a
//! catalogue, which can take minutes.

use std::time::Duration;

use heddle_inventory::adapters::{take_up_revocations, withdraw_revoked};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_store::catalogs;

/// How often a process looks.
const INTERVAL: Duration = Duration::from_secs(2);

/// What a worker does once more was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Takes adapters out of service. It waits for no turn.
    Withdraw,
    /// Reads the packages again, so that another one may stand in.
    StandIn,
}

/// Follows until the service stops.
pub(crate) async fn follow(app: SharedApp, part: Part) {
    let stop = app.tasks.stopping();
    // Before its first look a process knows nothing of what came after it began to load.
    let mut seen = 0;
    loop {
        // A stop does not wait for a turn: packages are read at the next start.
        let looked = tokio::select! {
            () = stop.cancelled() => return,
            looked = look(&app, part, &mut seen) => looked,
        };
        if let Err(error) = looked {
            tracing::warn!(error = %error, "what is revoked cannot be taken up; tried again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

async fn look(app: &SharedApp, part: Part, seen: &mut i64) -> Result<(), Error> {
    let gate = catalogs::gate(&mut app.db.single().await?).await?;
    if gate == *seen {
        return Ok(());
    }
    match part {
        Part::Withdraw => withdraw_revoked(app).await?,
        Part::StandIn => take_up_revocations(app).await?,
    }
    *seen = gate;
    Ok(())
}
