//! Judges the releases of all controllers again when a package comes or goes: at a start, too.
//!
//! What is stored is what lists show. An apply judges by the package of its own process.

use std::collections::BTreeMap;
use std::time::Duration;

use heddle_core::event::NewEvent;
use heddle_core::release::ReleaseState;
use heddle_core::{ControllerId, OrgId};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_runtime::Adapter;
use heddle_store::controllers::releases::{self, Running};
use heddle_store::events;

use super::{Place, changed, judge};

/// Controllers that are looked at together.
const PART: u32 = 200;
/// Pause before another try.
const RETRY: Duration = Duration::from_secs(5);

/// Judges at the start and after each change of what is installed, until the service stops.
pub(crate) async fn follow(app: SharedApp) {
    let (stop, mut installed) = (app.tasks.stopping(), app.runtime.installed());
    loop {
        installed.borrow_and_update();
        let judged = judge_all(&app).await;
        if let Err(error) = &judged {
            tracing::warn!(error = %error, "releases of controllers were not judged; tried again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RETRY), if judged.is_err() => {}
            changed = installed.changed() => if changed.is_err() { return },
        }
    }
}

async fn judge_all(app: &App) -> Result<(), Error> {
    for adapter in app.runtime.adapters() {
        let mut behind: Option<ControllerId> = None;
        loop {
            let part = releases::running(&mut app.db.single().await?, adapter.id(), behind, PART).await?;
            behind = part.last().map(|running| running.id);
            if behind.is_none() {
                break;
            }
            write(app, &differing(&adapter, part)).await?;
        }
    }
    Ok(())
}

/// Those that the adapter judges otherwise than what is stored.
fn differing(adapter: &Adapter, part: Vec<Running>) -> Vec<(Running, ReleaseState)> {
    let judged = part.into_iter().map(|one| {
        let (product, version) = (one.product.as_deref(), one.firmware.as_deref());
        let state = judge(adapter.releases(), product, version, one.allowed_release.as_deref());
        (one, state)
    });
    judged.filter(|(one, state)| one.release_state != *state).collect()
}

/// Writes the new states with their events. What another process has judged meanwhile, or a person has allowed, stays.
async fn write(app: &App, judged: &[(Running, ReleaseState)]) -> Result<(), Error> {
    if judged.is_empty() {
        return Ok(());
    }
    let mut tx = app.db.write().await?;
    let mut news: BTreeMap<OrgId, Vec<NewEvent>> = BTreeMap::new();
    for (running, state) in judged {
        if !releases::judge(&mut tx, running, *state, app.clock.now()).await? {
            continue;
        }
        let place = Place { org: running.org_id, site: running.site_id, controller: running.id };
        let version = running.firmware.as_deref().unwrap_or_default();
        news.entry(place.org).or_default().extend(changed(place, version, (running.release_state, *state)));
    }
    // A reading holds its controller before it writes events. Events come last here too, and those of all organizations in
    // one order: so no two transactions wait for each other.
    for (org, of_org) in news {
        events::append_all(&mut tx, org, &of_org, &app.clock).await?;
    }
    tx.commit().await?;
    Ok(())
}
