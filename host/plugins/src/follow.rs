//! Follows what other processes of the same database change, and moves plugins into quarantine that fail too often here.

use std::time::Duration;

use heddle_core::plugin::PluginState;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_packages::Pauses;
use heddle_store::plugins;

use crate::index::Known;
use crate::service::{Prepared, apply, prepare, serving, take_over};
use crate::transition::{Actor, Change, Subject, record};
use crate::turns::{Seen, Turns};

/// How often a process looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Follows until the service stops.
pub(crate) async fn follow(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut pauses = Pauses::default();
    loop {
        let round = async {
            tokio::time::sleep(INTERVAL).await;
            look(&app, &mut pauses).await
        };
        // A stop does not wait for a compilation: what is not in service yet is loaded at the next start.
        let looked = tokio::select! {
            () = stop.cancelled() => return,
            looked = round => looked,
        };
        if let Err(error) = looked {
            tracing::warn!(error = %error, "plugins cannot be read; tried again");
        }
    }
}

async fn look(app: &SharedApp, pauses: &mut Pauses) -> Result<(), Error> {
    // What was switched off goes out of service before anything is compiled, which can take minutes.
    take_over(app, &mut *Turns::of(app).take().await, pauses, Prepared::new()).await?;
    let prepared = prepare(app, pauses).await?;
    let mut seen = Turns::of(app).take().await;
    if !prepared.is_empty() {
        take_over(app, &mut seen, pauses, prepared).await?;
    }
    for (plugin, known) in serving(app) {
        if plugin.is_quarantined() && known.row.state == PluginState::Active {
            quarantine(app, &mut seen, &known, plugin.manifest_sha256()).await?;
        }
    }
    Ok(())
}

/// Takes a plugin out of service in every process that failed too often in this one.
async fn quarantine(app: &SharedApp, seen: &mut Seen, known: &Known, manifest: &str) -> Result<(), Error> {
    const REASON: &str = "it failed so often that it takes no calls until it is released";
    let id = &known.row.plugin_id;
    let mut tx = app.db.write().await?;
    let Some(mut row) = plugins::lock(&mut tx, id).await? else { return Ok(()) };
    let is_it = row.state == PluginState::Active && row.serving_sha256.as_deref() == Some(manifest);
    let Some((_, current)) = known.current.as_ref().filter(|_| is_it) else { return Ok(()) };
    (row.state, row.reason) = (PluginState::Quarantined, Some(REASON.to_owned()));
    plugins::update(&mut tx, &row, app.clock.now()).await?;
    plugins::set_version_state(&mut tx, manifest, PluginState::Quarantined, Some(REASON)).await?;
    let version = current.version.to_string();
    let subject = Subject { uid: row.id, plugin: id, version: &version, manifest_sha256: manifest };
    let change = Change { reason: Some(REASON), ..Change::between(Some(PluginState::Active), row.state) };
    record(&mut tx, Actor::Host(app), &subject, &change).await?;
    tx.commit().await?;
    tracing::error!(component = %id, "plugin {id} is in quarantine: {REASON}");
    apply(app, seen, id, None).await
}
