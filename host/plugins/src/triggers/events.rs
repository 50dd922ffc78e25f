//! Hands events to a trigger.

use std::collections::HashMap;

use heddle_core::event::matches;
use heddle_core::redact::sanitize;
use heddle_core::{ConnectionId, RunId, Timestamp};
use heddle_fabric::occasion::{self, Begun, CHAIN_MAX, Occasion};
use heddle_fabric::operation::StepError;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_marketplace::plugin::ActionEffect;
use heddle_runtime::{CallError, GivenEvent};
use heddle_store::plugins::triggers::{self, TriggerRow};
use heddle_store::plugins::values::Keeper;
use heddle_store::{StoredEvent, Tx, events, runs};

use super::ready::{Callee, Ready, SOON, What, ready};
use super::{ATTEMPTS_MAX, LEASE, RATE_PAUSE, id_in_chains, is_final, is_unmade, pause, take_call};
use crate::left_out;
use crate::operations::Behalf;

/// Events of one call, and bytes of their payloads.
const BATCH: u32 = 100;
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// What a trigger is handed next.
struct Batch {
    /// They have one chain.
    events: Vec<StoredEvent>,
    chain: Vec<ConnectionId>,
    /// The trigger is done up to here after them.
    seq: i64,
}

/// Hands over what is due, and writes how that ended.
pub(super) async fn hand_over(app: &SharedApp, row: TriggerRow) -> Result<(), Error> {
    let (until, term) = (app.clock.now() + LEASE, app.membership.term()?);
    let mut tx = app.db.write().await?;
    if !triggers::claim(&mut tx, &row, term.id, until).await? {
        return Ok(());
    }
    tx.commit().await?;
    let row = TriggerRow { due_at: Some(until), ..row };
    let keeper = Keeper { org: row.org_id, plugin: row.plugin_uid };
    let mut tx = app.db.read().await?;
    let callee = match ready(app, &mut tx, keeper, What::Other).await? {
        Ready::Yes(callee) => callee,
        Ready::Off => {
            drop(tx);
            let mut tx = app.db.write().await?;
            triggers::drop_claimed(&mut tx, &row).await?;
            return Ok(tx.commit().await?);
        }
        Ready::Later(problem, after) => {
            drop(tx);
            return later(app, &row, app.clock.now() + after, &problem).await;
        }
        Ready::Elsewhere(problem) => {
            drop(tx);
            return later(app, &row, app.clock.now() + SOON, &problem).await;
        }
    };
    // As it is now: it may want more by then than when it was found due.
    let row = triggers::find(&mut tx, keeper, &row.trigger_id).await?.filter(|row| row.due_at == Some(until));
    let Some(row) = row else { return Ok(()) };
    let batch = next(app, &mut tx, &row, &callee).await?;
    drop(tx);
    if batch.events.is_empty() {
        let (mut tx, now) = (app.db.write().await?, app.clock.now());
        if has_gap(&row, &callee) && batch.seq >= row.wanted_seq {
            triggers::pass_over(&mut tx, &row, callee.set.after_seq, now).await?;
        } else {
            triggers::done(&mut tx, &row, batch.seq, (row.problem.as_deref(), None), now).await?;
        }
        return Ok(tx.commit().await?);
    }
    call(app, &row, &callee, batch).await
}

/// Whether the plugin was inactive after the last event that the trigger wants: what came in that time does not call it.
fn has_gap(row: &TriggerRow, callee: &Callee) -> bool {
    row.wanted_seq <= callee.set.after_seq
}

/// Puts off what was not tried.
async fn later(app: &SharedApp, row: &TriggerRow, due_at: Timestamp, problem: &str) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    triggers::failed(&mut tx, row, (due_at, row.single_seq), (row.attempts, Some(problem))).await?;
    Ok(tx.commit().await?)
}

/// Reads what the trigger is handed next. It is one event where several failed together, so that what fails by itself takes no
/// others with it; and where it stages, so that each event has its own changes however often it comes.
async fn next(app: &SharedApp, tx: &mut Tx, row: &TriggerRow, callee: &Callee) -> Result<Batch, Error> {
    let trigger = callee.plugin.manifest().trigger(&row.trigger_id);
    let patterns = trigger.map(|trigger| &trigger.events);
    let stages = trigger.is_some_and(|trigger| trigger.effect == ActionEffect::Stage);
    let declared = app.declared();
    let is_wanted = |name: &str| patterns.is_some_and(|all| all.iter().any(|one| matches(one, name)));
    let types =
        declared.events.only(|one| is_wanted(one.as_str()) && occasion::may_read(app, &callee.author, one));
    let limit = if stages || row.seq < row.single_seq { 1 } else { BATCH };
    let mut stretch = events::list(tx, &declared.events, row.org_id, row.seq, Some(&types), limit).await?;
    if has_gap(row, callee) {
        let read = stretch.events.len();
        stretch.events.retain(|stored| stored.event.seq <= row.wanted_seq);
        stretch.is_full &= stretch.events.len() == read;
    }
    let causes: Vec<RunId> = stretch.events.iter().filter_map(|stored| stored.run_id).collect();
    let chains = runs::chains(tx, &causes).await?;
    let me = id_in_chains(row.org_id, row.plugin_uid);
    let mut batch = batch_of(stretch.events, &chains, me, row.seq);
    if !stretch.is_full && batch.1 {
        batch.0.seq = batch.0.seq.max(row.wanted_seq);
    }
    Ok(batch.0)
}

/// The first events of one chain, without those that the plugin itself led to, and whether these are all.
fn batch_of(
    stretch: Vec<StoredEvent>,
    chains: &HashMap<RunId, Vec<ConnectionId>>,
    me: ConnectionId,
    seq: i64,
) -> (Batch, bool) {
    let mut batch = Batch { events: Vec::new(), chain: Vec::new(), seq };
    let mut bytes = 0;
    for stored in stretch {
        let chain = stored.run_id.and_then(|run| chains.get(&run)).cloned().unwrap_or_default();
        let is_loop = chain.contains(&me) || chain.len() >= CHAIN_MAX;
        if !is_loop {
            bytes += stored.event.payload.to_string().len();
            let is_other = !batch.events.is_empty() && (chain != batch.chain || bytes > PAYLOAD_BYTES_MAX);
            if is_other {
                return (batch, false);
            }
        }
        batch.seq = stored.event.seq;
        if !is_loop {
            batch.chain = chain;
            batch.events.push(stored);
        }
    }
    (batch, true)
}

async fn call(app: &SharedApp, row: &TriggerRow, callee: &Callee, batch: Batch) -> Result<(), Error> {
    if !take_call(app, callee).await {
        return later(app, row, app.clock.now() + RATE_PAUSE, "it was called too often in this minute").await;
    }
    let id = id_in_chains(row.org_id, row.plugin_uid);
    let first = batch.events.first().map(|stored| stored.event.clone());
    let key = format!("{id}:{}:{}", row.trigger_id, first.as_ref().map_or(0, |event| event.seq));
    let occasion = Occasion { chain: batch.chain, event: first, ..callee.occasion(&row.trigger_id, key) };
    let begun = occasion::begin(app, callee.author.clone(), occasion).await?;
    let count = batch.events.len();
    let given = batch.events.into_iter().map(given).collect();
    let call = callee.call(Behalf::of(&begun.step(app), callee.generation()), begun.request_id());
    let calling = callee.plugin.on_events(&call, &row.trigger_id, given);
    let Some(outcome) = begun.during(calling).await else { return Ok(()) };
    ended(app, row, callee, &begun, (count, batch.seq), outcome).await
}

async fn ended(
    app: &SharedApp,
    row: &TriggerRow,
    callee: &Callee,
    begun: &Begun,
    (count, seq): (usize, i64),
    outcome: Result<(), CallError>,
) -> Result<(), Error> {
    let now = app.clock.now();
    let is_made = !outcome.as_ref().is_err_and(is_unmade);
    let attempts = row.attempts + i64::from(is_made);
    let fails_again = outcome.as_ref().is_err_and(is_final);
    let is_over = (count == 1 && fails_again) || attempts >= ATTEMPTS_MAX;
    // What failed together is tried apart, at once where each would fail again.
    let single_seq = if count > 1 && is_made { seq } else { row.single_seq };
    let is_split = count > 1 && fails_again;
    let result = outcome.map_err(|error| StepError::from(Error::from(error)));
    let mut tx = app.db.write().await?;
    if !begun.end(&mut tx, app, &result).await? {
        return Ok(());
    }
    match &result {
        Ok(()) => {
            triggers::done(&mut tx, row, seq, (None, Some(now)), now).await?;
        }
        Err(error) if is_over => {
            triggers::done(&mut tx, row, seq, (Some(&error.message), None), now).await?;
            let what = format!("{count} {}", if count == 1 { "event" } else { "events" });
            left_out::tell(&mut tx, app, callee, &row.trigger_id, (&what, &error.message)).await?;
        }
        Err(error) => {
            let (due_at, attempts) = if is_split { (now, 0) } else { (now + pause(attempts), attempts) };
            triggers::failed(&mut tx, row, (due_at, single_seq), (attempts, Some(&error.message))).await?;
        }
    }
    Ok(tx.commit().await?)
}

fn given(stored: StoredEvent) -> GivenEvent {
    let event = stored.event;
    let mut payload = event.payload;
    sanitize(&mut payload);
    GivenEvent {
        id: event.id.to_string(),
        seq: u64::try_from(event.seq).unwrap_or_default(),
        event_type: event.event_type.as_str().to_owned(),
        occurred_at_ms: u64::try_from(event.occurred_at.timestamp_millis()).unwrap_or_default(),
        payload,
    }
}
