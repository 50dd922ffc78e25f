//! Updates the catalogue by itself, and installs what is newer where the operator wants that.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_plugins::Actor;
use heddle_store::catalogs::{self, Pulse};

use crate::install;
use crate::settings::CatalogSettings;
use crate::shelf::Shelves;
use crate::sync::{Outcome, sync};

/// How often a process looks.
const INTERVAL: Duration = Duration::from_secs(5);
/// Pause before a failed update is tried again, where updates are not more frequent anyway.
const RETRY_MINUTES: i64 = 10;
/// Pause of this process after an error that was not written.
const PAUSE: Duration = Duration::from_mins(1);

/// Follows until the service stops.
pub(crate) async fn follow(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut pause = None;
    loop {
        let looked = tokio::select! {
            () = stop.cancelled() => return,
            looked = look(&app, &mut pause) => looked,
        };
        if let Err(error) = looked {
            tracing::warn!(error = %error, "the catalogue cannot be followed; tried again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Updates where it is time. No update is tried before `pause`.
async fn look(app: &SharedApp, pause: &mut Option<Instant>) -> Result<(), Error> {
    if pause.is_some_and(|until| Instant::now() < until) || !is_due(app).await? {
        return Ok(());
    }
    *pause = Some(Instant::now() + PAUSE);
    sync(app, Actor::Host(app)).await?;
    if app.config.of::<CatalogSettings>().auto_update {
        install::update_all(app).await?;
    }
    *pause = None;
    Ok(())
}

/// Whether an update is to be made now.
async fn is_due(app: &SharedApp) -> Result<bool, Error> {
    let settings = app.config.of::<CatalogSettings>();
    if settings.sync_minutes == 0 || settings.url.is_none() {
        return Ok(false);
    }
    let Some(trust) = Shelves::trust(app)? else { return Ok(false) };
    let pulse = catalogs::pulse(&mut app.db.single().await?, &trust.name()).await?;
    let Some(Pulse { tried_at: Some(tried_at), outcome }) = pulse else { return Ok(true) };
    let minutes = i64::from(settings.sync_minutes);
    let has_failed = outcome.as_deref() == Some(Outcome::Failed.as_str());
    let minutes = if has_failed { minutes.min(RETRY_MINUTES) } else { minutes };
    Ok(is_past(app.clock.now(), tried_at, TimeDelta::minutes(minutes)))
}

/// Whether so much time has gone by. A clock that was set back does not put the next update off for long.
fn is_past(now: Timestamp, tried_at: Timestamp, pause: TimeDelta) -> bool {
    let age = now.signed_duration_since(tried_at);
    age >= pause || age < TimeDelta::zero()
}
