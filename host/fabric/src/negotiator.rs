//! Which Connections an event starts, written in the transaction that advances past the event.
//!
//! Connections are found by the few patterns that cover an event's type, so what an event costs does not grow with
//! Connections of other types. A skipped firing records why. While an organization has many runs waiting, its events
//! wait, too (back-pressure): nothing is lost, and its queue does not grow without end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use heddle_core::declared::SubscriptionAccess;
use heddle_core::event::EventType;
use heddle_core::operation::{RunKind, RunState};
use heddle_core::redact::sanitize;
use heddle_core::template::{Values, fill};
use heddle_core::{ConnectionId, Declared, OrgId, RunId, Timestamp};
use heddle_kernel::app::SharedApp;
use heddle_kernel::events::consumer::{Consumer, Took};
use heddle_kernel::http::error::Error;
use heddle_store::about::About;
use heddle_store::connections::{self, Matching};
use heddle_store::runs::{self, Awaiting, RunRow};
use heddle_store::{StoredEvent, Tx};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::connections::COOLDOWN_SECS_MAX;
use super::measures::Measures;
use super::state::FabricState;

/// Most Connections in one chain.
pub const CHAIN_MAX: usize = 16;
/// Skipped firings of one Connection that are kept: the newest.
pub(crate) const SKIPPED_MAX: u32 = 1_000;

/// Number of waiting runs of an organization from which on its events wait.
pub(crate) const WAITING_MAX: u32 = 1_000;
/// A transaction takes no further event once it has written so many runs, or so many bytes of payloads.
const RUNS_MAX: usize = 1_000;
const PAYLOAD_BYTES_MAX: usize = 4 << 20;
/// Connections that are decided between two checks of how much there is to write.
const CHUNK: usize = 50;
/// A Connection's skipped firings are counted after every so many, of so many Connections at once.
const COUNTED_AFTER: u32 = 64;
const COUNTED_AT_ONCE: usize = 16;

/// Longest value of a key that is kept as it is.
const KEY_BYTES_MAX: usize = 200;

/// Most characters of why a run did not fire.
const REASON_CHARS_MAX: usize = 1000;

/// Follows the events for the Connections.
#[derive(Debug, Default)]
pub(crate) struct Negotiator {
    /// Skipped firings of each Connection since they were last counted.
    uncounted: Mutex<HashMap<ConnectionId, u32>>,
}

impl Consumer for Negotiator {
    const NAME: &'static str = "fabric";
    const BATCH: u32 = 100;

    async fn is_held_up(&self, app: &SharedApp, tx: &mut Tx, org: OrgId) -> Result<bool, Error> {
        let is_held_up = runs::are_waiting(tx, org, WAITING_MAX).await?;
        if is_held_up {
            FabricState::of(app).hold_up(org);
        }
        Ok(is_held_up)
    }

    async fn wants(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> Result<bool, Error> {
        let patterns = patterns_of(&app.declared(), events);
        Ok(connections::is_any_matching(tx, org, &patterns).await?
            || runs::is_any_awaiting(tx, org, &patterns).await?)
    }

    async fn take(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> Result<Took, Error> {
        let patterns = patterns_of(&app.declared(), events);
        let mut awaiting = runs::awaiting(tx, org, &patterns).await?;
        let connections = connections::matching(tx, org, &patterns).await?;
        let causes: HashSet<RunId> = events.iter().filter_map(|stored| stored.run_id).collect();
        let chains = runs::chains(tx, &causes.into_iter().collect::<Vec<_>>()).await?;
        let joins = connections.iter().any(|connection| connection.conditions.join())
            || awaiting.iter().any(|run| run.wait.conditions.join());
        let about = if joins { About::read(tx, org, events).await? } else { About::default() };
        let mut round = Round::new(app, &connections, &chains, &about);
        round.read_pauses(tx, events).await?;
        let mut took = Took::All;
        let mut met = Vec::new();
        for stored in events {
            awaiting.retain_mut(|run| {
                let is_met = is_met(&app.declared(), run, stored, &about);
                if is_met {
                    met.push((run.id, run.wait.clone()));
                }
                !is_met
            });
            for some in round.listening(stored).chunks(CHUNK) {
                round.negotiate(stored, some);
                if round.has_much_in_memory() {
                    round.write(tx).await?;
                }
            }
            if round.is_full() {
                took = Took::UpTo(stored.event.seq);
                break;
            }
        }
        round.write(tx).await?;
        runs::resume_by(tx, &met, app.clock.now()).await?;
        connections::fired(tx, &round.fired).await?;
        for connection in self.to_count(&round.skipped) {
            runs::trim_skipped(tx, connection, SKIPPED_MAX).await?;
        }
        Measures::of(app).runs_ended(RunState::Skipped, round.skipped.values().sum::<u32>() as usize);
        Ok(took)
    }

    fn taken(&self, app: &SharedApp) {
        FabricState::of(app).wake.notify_one();
    }

    fn looked(&self, app: &SharedApp) {
        FabricState::of(app).looked(app.clock.now());
    }

    async fn called(&self, app: &SharedApp) {
        FabricState::of(app).room.notified().await;
    }
}

impl Negotiator {
    /// Returns the Connections whose skipped firings are worth counting now: few at a time.
    fn to_count(&self, skipped: &HashMap<ConnectionId, u32>) -> Vec<ConnectionId> {
        let mut uncounted = self.uncounted.lock().unwrap_or_else(PoisonError::into_inner);
        for (connection, count) in skipped {
            *uncounted.entry(*connection).or_default() += count;
        }
        let many = uncounted.iter().filter(|(_, count)| **count >= COUNTED_AFTER);
        let many: Vec<ConnectionId> = many.map(|(connection, _)| *connection).take(COUNTED_AT_ONCE).collect();
        for connection in &many {
            uncounted.remove(connection);
        }
        many
    }
}

/// Every pattern that covers one of these events.
fn patterns_of(declared: &Declared, events: &[StoredEvent]) -> Vec<String> {
    let types: BTreeSet<EventType> = events.iter().map(|stored| stored.event.event_type).collect();
    let patterns: BTreeSet<String> = types.into_iter().flat_map(|one| covering(declared, one)).collect();
    patterns.into_iter().collect()
}

/// The patterns that cover a type: `*`, `device.*`, `device.status.*`, `device.status.changed`.
///
/// A bare `*` does not cover what only a `super_admin` may read: an administrator of an organization may have written
/// the pattern.
fn covering(declared: &Declared, event: EventType) -> Vec<String> {
    let name = event.as_str();
    let mut patterns = vec![name.to_owned()];
    patterns.extend(name.match_indices('.').map(|(at, _)| format!("{}*", &name[..=at])));
    if declared.for_subscription(name) != SubscriptionAccess::SuperAdmin {
        patterns.push("*".to_owned());
    }
    patterns
}

/// Whether an event is what a run waits for. If so, the wait stores its payload.
fn is_met(declared: &Declared, run: &mut Awaiting, stored: &StoredEvent, about: &About) -> bool {
    let event = &stored.event;
    let is_met = event.seq > run.wait.after_seq
        && covering(declared, event.event_type).contains(&run.wait_event)
        && run.wait.conditions.check(event, &about.of(stored)).is_ok();
    if is_met {
        let mut payload = event.payload.clone();
        sanitize(&mut payload);
        run.wait.event = Some(payload);
    }
    is_met
}

/// Returns the value that an event's pause counts for, where the Connection has pauses by a key.
///
/// Events that do not have what the key names share one pause. A long value is replaced by its digest.
fn key_of(connection: &Matching, stored: &StoredEvent) -> Option<String> {
    let template = connection.cooldown_key.as_ref().filter(|_| connection.cooldown_secs > 0)?;
    let event = json!(stored.event);
    let values = Values { trigger: &stored.event.payload, event: Some(&event), outputs: &[], own: None };
    let key = match fill(&Value::String(template.clone()), &values) {
        Ok(Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_nothing) => String::new(),
    };
    let is_short = key.len() <= KEY_BYTES_MAX && !key.contains('\0');
    Some(if is_short { key } else { hex::encode(Sha256::digest(key.as_bytes())) })
}

/// What a stretch of events starts.
struct Round<'a> {
    app: &'a SharedApp,
    now: Timestamp,
    by_pattern: HashMap<&'a str, Vec<&'a Matching>>,
    chains: &'a HashMap<RunId, Vec<ConnectionId>>,
    about: &'a About,
    /// Time of the last event that started each Connection with pauses by a key, for each value of the key.
    fired_by_key: HashMap<(ConnectionId, String), Timestamp>,
    /// Not written yet.
    runs: Vec<RunRow>,
    unwritten_bytes: usize,
    written: usize,
    written_bytes: usize,
    /// Time of the last event that started each Connection.
    fired: BTreeMap<ConnectionId, Timestamp>,
    skipped: HashMap<ConnectionId, u32>,
}

impl<'a> Round<'a> {
    fn new(
        app: &'a SharedApp,
        connections: &'a [Matching],
        chains: &'a HashMap<RunId, Vec<ConnectionId>>,
        about: &'a About,
    ) -> Self {
        let mut by_pattern: HashMap<&str, Vec<&Matching>> = HashMap::new();
        for connection in connections {
            by_pattern.entry(&connection.source_event).or_default().push(connection);
        }
        Self {
            app,
            now: app.clock.now(),
            by_pattern,
            chains,
            about,
            fired_by_key: HashMap::new(),
            runs: Vec::new(),
            unwritten_bytes: 0,
            written: 0,
            written_bytes: 0,
            fired: BTreeMap::new(),
            skipped: HashMap::new(),
        }
    }

    /// Reads when Connections with pauses by a key last fired with the keys that these events have.
    async fn read_pauses(&mut self, tx: &mut Tx, events: &[StoredEvent]) -> Result<(), Error> {
        if !self.by_pattern.values().flatten().any(|connection| connection.cooldown_key.is_some()) {
            return Ok(());
        }
        let (mut ids, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for stored in events {
            for connection in self.listening(stored) {
                if let Some(key) = key_of(connection, stored) {
                    ids.insert(connection.id);
                    keys.insert(key);
                }
            }
        }
        let Some(first) = events.iter().map(|stored| stored.event.occurred_at).min() else { return Ok(()) };
        if ids.is_empty() {
            return Ok(());
        }
        let (ids, keys): (Vec<_>, Vec<_>) = (ids.into_iter().collect(), keys.into_iter().collect());
        let since = first - TimeDelta::seconds(COOLDOWN_SECS_MAX);
        for (connection, key, at) in runs::fired_by_key(tx, &ids, &keys, since).await? {
            self.fired_by_key.insert((connection, key), at);
        }
        Ok(())
    }

    /// Whether this transaction takes no further event.
    fn is_full(&self) -> bool {
        self.written + self.runs.len() >= RUNS_MAX
            || self.written_bytes + self.unwritten_bytes >= PAYLOAD_BYTES_MAX
    }

    fn has_much_in_memory(&self) -> bool {
        self.unwritten_bytes >= PAYLOAD_BYTES_MAX
    }

    async fn write(&mut self, tx: &mut Tx) -> Result<(), Error> {
        runs::insert_all(tx, &self.runs).await?;
        self.written += self.runs.len();
        self.written_bytes += std::mem::take(&mut self.unwritten_bytes);
        self.runs.clear();
        Ok(())
    }

    /// The Connections that an event may start, in the order in which they were made.
    fn listening(&self, stored: &StoredEvent) -> Vec<&'a Matching> {
        let mut found: Vec<&Matching> = covering(&self.app.declared(), stored.event.event_type)
            .iter()
            .filter_map(|pattern| self.by_pattern.get(pattern.as_str()))
            .flatten()
            .copied()
            .filter(|connection| stored.event.seq > connection.after_seq)
            .collect();
        found.sort_by_key(|connection| (connection.created_at, connection.id));
        found
    }

    fn negotiate(&mut self, stored: &StoredEvent, listening: &[&Matching]) {
        let bytes = stored.event.payload.to_string().len();
        let about = self.about.of(stored);
        for connection in listening {
            let before = stored.run_id.and_then(|run| self.chains.get(&run)).cloned().unwrap_or_default();
            let key = key_of(connection, stored);
            let decision = self.decide(connection, (stored, &about), &before, key.as_deref());
            match &decision {
                Ok(()) => {
                    self.fired.insert(connection.id, stored.event.occurred_at);
                    if let Some(key) = &key {
                        self.fired_by_key.insert((connection.id, key.clone()), stored.event.occurred_at);
                    }
                    self.unwritten_bytes += bytes;
                }
                Err(_) => *self.skipped.entry(connection.id).or_default() += 1,
            }
            let mut run = self.run(connection, stored, before, decision.err());
            run.cooldown_key = key.filter(|_| run.state == RunState::Queued);
            self.runs.push(run);
        }
    }

    /// Whether it fires; if not, why.
    fn decide(
        &self,
        connection: &Matching,
        (stored, about): (&StoredEvent, &Value),
        chain: &[ConnectionId],
        key: Option<&str>,
    ) -> Result<(), String> {
        connection.conditions.check(&stored.event, about)?;
        if chain.contains(&connection.id) {
            return Err("loop: it has fired in the chain that led to this event".to_owned());
        }
        if chain.len() >= CHAIN_MAX {
            return Err(format!("loop: {CHAIN_MAX} Connections have led to this event"));
        }
        let last = match key {
            Some(key) => self.fired_by_key.get(&(connection.id, key.to_owned())).copied(),
            None => self.fired.get(&connection.id).copied().or(connection.last_fired_at),
        };
        let ready = last.map(|last| last + TimeDelta::seconds(connection.cooldown_secs));
        match ready {
            // Decided by the times of the events: one that had to wait fires as it would have fired at once.
            Some(ready) if connection.cooldown_secs > 0 && ready > stored.event.occurred_at => {
                let left = (ready - stored.event.occurred_at).num_seconds().max(1);
                let of_key = if key.is_some() { " with the same cooldown_key" } else { "" };
                Err(format!("cooldown: it fires again{of_key} {left} s later"))
            }
            _ => Ok(()),
        }
    }

    fn run(
        &self,
        connection: &Matching,
        stored: &StoredEvent,
        mut chain: Vec<ConnectionId>,
        refusal: Option<String>,
    ) -> RunRow {
        let is_skipped = refusal.is_some();
        let mut payload: Value = if is_skipped { json!({}) } else { stored.event.payload.clone() };
        sanitize(&mut payload);
        if !is_skipped {
            chain.push(connection.id);
        }
        RunRow {
            connection_id: Some(connection.id),
            event_id: Some(stored.event.id),
            event_type: Some(stored.event.event_type.to_string()),
            event_seq: stored.event.seq,
            chain,
            payload,
            state: if is_skipped { RunState::Skipped } else { RunState::Queued },
            reason: refusal.map(|reason| reason.chars().take(REASON_CHARS_MAX).collect()),
            ended_at: is_skipped.then_some(self.now),
            ..RunRow::queued(
                self.app.clock.new_id(),
                RunKind::Event,
                connection.org_id,
                connection.author_id,
                self.now,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::event::matches;
    use heddle_inventory::devices::declarations::DEVICE_STATUS_CHANGED;

    use super::*;

    #[test]
    fn the_patterns_that_cover_a_type_are_all_that_match_it() {
        let declared = crate::testing::FEATURES.declared();
        assert_eq!(
            covering(&declared, DEVICE_STATUS_CHANGED),
            ["device.status.changed", "device.*", "device.status.*", "*"]
        );
        for event in declared.events.iter() {
            for pattern in covering(&declared, event) {
                assert!(matches(&pattern, event.as_str()), "{pattern} {event}");
            }
        }
    }
}
