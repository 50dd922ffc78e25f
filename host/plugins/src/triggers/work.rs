//! Takes what is due, and calls the plugins for it.

use std::time::Duration;

use heddle_core::Timestamp;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_store::plugins::organizations::{self, OrganizationRow};
use heddle_store::plugins::timers::{self, TimerRow};
use heddle_store::plugins::triggers::{self, TriggerRow};

use super::order::in_turns;
use super::{Item, Key, Occasions, Place, configure, events, timers as own_timers};

/// Time to the next look without a call.
const INTERVAL: Duration = Duration::from_secs(1);
/// What one look reads of each kind.
const BATCH: u32 = 64;

/// Works until the service stops.
pub(crate) async fn work(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        if let Err(error) = start_due(&app).await {
            tracing::warn!(error = %error, "what calls plugins cannot be read; tried again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = Occasions::of(&app).wake.notified() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Starts what is due and has a place. A place that becomes free wakes the next look.
async fn start_due(app: &SharedApp) -> Result<(), Error> {
    if app.tasks.stopping().is_cancelled() {
        return Ok(());
    }
    let now = app.clock.now();
    take_back(app).await?;
    let mut tx = app.db.read().await?;
    let settings = organizations::to_configure(&mut tx, now, BATCH).await?;
    let wanted = triggers::due(&mut tx, now, BATCH).await?;
    let times = timers::due(&mut tx, now, BATCH).await?;
    drop(tx);
    let settings = settings.into_iter().map(Due::Settings);
    let due = settings.chain(wanted.into_iter().map(Due::Events)).chain(times.into_iter().map(Due::Timer));
    let due = due.map(|due| (due.key(), due.since().unwrap_or(now), due)).collect();
    let occasions = Occasions::of(app);
    for (key, due) in in_turns(due, |key| occasions.like(key)) {
        if let Some(place) = occasions.place(key) {
            start(app, place, |app| async move { due.done(&app).await });
        }
    }
    Ok(())
}

/// What a plugin is to be called for.
enum Due {
    Settings(OrganizationRow),
    Events(TriggerRow),
    Timer(TimerRow),
}

impl Due {
    fn key(&self) -> Key {
        let (org, plugin, item) = match self {
            Self::Settings(set) => (set.org_id, set.plugin_uid, Item::Settings),
            Self::Events(row) => (row.org_id, row.plugin_uid, Item::Trigger(row.trigger_id.clone())),
            Self::Timer(row) => (row.org_id, row.plugin_uid, Item::Timer(row.name.clone())),
        };
        Key { org, plugin, item }
    }

    /// Since when it waits.
    fn since(&self) -> Option<Timestamp> {
        match self {
            Self::Settings(set) => set.configure_at,
            Self::Events(row) => row.due_at,
            Self::Timer(row) => Some(row.due_at),
        }
    }

    /// Calls the plugin for it, and writes how that ended.
    async fn done(self, app: &SharedApp) -> Result<(), Error> {
        match self {
            Self::Settings(set) => configure::configure(app, set).await,
            Self::Events(row) => events::hand_over(app, row).await,
            Self::Timer(row) => own_timers::fire(app, row).await,
        }
    }
}

/// Takes up what processes that are gone were calling plugins for.
async fn take_back(app: &SharedApp) -> Result<(), Error> {
    let term = app.membership.term()?;
    let gone = triggers::gone(&mut app.db.read().await?, term.id).await?;
    if gone.is_empty() {
        return Ok(());
    }
    let mut tx = app.db.write().await?;
    triggers::take_back(&mut tx, &gone, app.clock.now()).await?;
    Ok(tx.commit().await?)
}

/// Does it in a task of its own. What fails in between comes again once its time has passed.
fn start<F>(app: &SharedApp, place: Place, call: impl FnOnce(SharedApp) -> F + Send + 'static)
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let inner = app.clone();
    app.tasks.spawn("plugins.trigger", async move {
        if let Err(error) = call(inner.clone()).await {
            tracing::warn!(error = %error, "a plugin was not called, or how that ended is not written; it comes again");
        }
        drop(place);
        Occasions::of(&inner).wake.notify_one();
    });
}
