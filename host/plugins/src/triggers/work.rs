//! Takes what is due, and calls the plugins for it.

use std::time::Duration;

use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_store::plugins::{organizations, timers, triggers};

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
    let events = triggers::due(&mut tx, now, BATCH).await?;
    let times = timers::due(&mut tx, now, BATCH).await?;
    drop(tx);
    let occasions = Occasions::of(app);
    for set in settings {
        let key = Key { org: set.org_id, plugin: set.plugin_uid, item: Item::Settings };
        if let Some(place) = occasions.place(key) {
            start(app, place, |app| async move { configure::configure(&app, set).await });
        }
    }
    for row in times {
        let key = Key { org: row.org_id, plugin: row.plugin_uid, item: Item::Timer(row.name.clone()) };
        if let Some(place) = occasions.place(key) {
            start(app, place, |app| async move { own_timers::fire(&app, row).await });
        }
    }
    for row in events {
        let key =
            Key { org: row.org_id, plugin: row.plugin_uid, item: Item::Trigger(row.trigger_id.clone()) };
        if let Some(place) = occasions.place(key) {
            start(app, place, |app| async move { events::hand_over(&app, row).await });
        }
    }
    Ok(())
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
