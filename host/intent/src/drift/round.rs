//! Rounds: the lists that were read since the last one are compared with what is wanted.

use std::time::Duration;

use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::http::error::Error;
use heddle_marketplace::model::ModelKind;
use heddle_runtime::Adapter;
use heddle_store::wanted::{self, Followed};

use super::comparison;
use crate::settable;

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(5);
/// Most lists that one round compares.
const LISTS_MAX: u32 = 1_000;

/// Compares what was read, round after round.
pub(crate) async fn run(app: SharedApp) {
    let stop = app.tasks.stopping();
    loop {
        if let Err(error) = round(&app).await {
            tracing::warn!(error = %error, "readings were not compared with what is wanted; tried again later");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Compares the lists that are due. A list that fails holds up no other.
async fn round(app: &App) -> Result<(), Error> {
    let due = wanted::due(&mut app.db.single().await?, &followed(app), LISTS_MAX).await?;
    let mut failed = None;
    for due in &due {
        if app.tasks.stopping().is_cancelled() {
            break;
        }
        if let Err(error) = comparison::compare(app, due).await {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The kinds of which adapters read something that people can set. All others would wait for ever.
pub(crate) fn followed(app: &App) -> Vec<Followed> {
    let adapters = app.runtime.adapters();
    let of_adapter = |adapter: &Adapter| {
        let is_filled = |kind: &&ModelKind| settable::filled(adapter.description(), kind.id).is_some();
        let of_kind =
            |kind: &ModelKind| Followed { vendor: adapter.id().to_owned(), kind: kind.id.to_owned() };
        settable::kinds().filter(is_filled).map(of_kind).collect::<Vec<_>>()
    };
    adapters.iter().flat_map(of_adapter).collect()
}
