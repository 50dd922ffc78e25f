//! Takes over what other processes of the same database have installed or rolled back.

use std::time::{Duration, Instant};

use heddle_kernel::app::{App, SharedApp};
use heddle_packages::{Ground, NotLoaded, Pauses, check, find_binding};
use heddle_store::installed_packages::Installed;

use super::{Turns, kept};
use crate::adapters::packages::load;

/// How often a process looks for what others have installed.
const INTERVAL: Duration = Duration::from_secs(1);

/// Takes over what was installed elsewhere, until the service stops.
pub(in crate::adapters) async fn follow(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut pauses = Pauses::default();
    loop {
        let round = async {
            tokio::time::sleep(INTERVAL).await;
            take_over(&app, &mut pauses).await
        };
        // A stop does not wait for a compilation: what is not in service yet is loaded at the next start.
        let taken = tokio::select! {
            () = stop.cancelled() => return,
            taken = round => taken,
        };
        if let Err(error) = taken {
            tracing::warn!(error = %error, "installed packages cannot be read; tried again");
        }
    }
}

async fn take_over(app: &App, pauses: &mut Pauses) -> heddle_store::Result<()> {
    let turns = app.part::<Turns>();
    let mut seen = turns.take().await;
    for (id, installed) in kept::seen(&app.db).await? {
        if seen.get(&id) == Some(&installed) || pauses.last(&installed, Instant::now()) {
            continue;
        }
        let reason = match renew(app, &installed).await {
            Ok(()) => None,
            // Not tried again: compiling what cannot be compiled would take a core of every process.
            Err(NotLoaded::Refused(reason)) => Some(reason),
            Err(NotLoaded::Passing(reason)) => {
                pauses.prolong(&installed, Instant::now());
                turns.falls_behind(app, &installed, &reason);
                continue;
            }
            Err(NotLoaded::Unknown(error)) => return Err(error),
        };
        pauses.end(&id);
        turns.note(app, &mut seen, installed, reason.as_deref());
    }
    Ok(())
}

/// Serves an installed package, unless this process's folder has a newer one.
async fn renew(app: &App, installed: &Installed) -> Result<(), NotLoaded> {
    if app.runtime.adapter(&installed.adapter_id).is_some_and(|serving| kept::is_met(installed, &serving)) {
        return Ok(());
    }
    let ground = Ground::of(app).await?;
    let ground = ground.with_pin(installed);
    let candidate = kept::candidate(app, installed, &ground.keys()).await?;
    if let Some(bound) = find_binding(&app.db, &installed.adapter_id).await? {
        check(&candidate.package, &bound, &ground).map_err(NotLoaded::Refused)?;
    }
    load(app, &candidate, &ground).await
}
