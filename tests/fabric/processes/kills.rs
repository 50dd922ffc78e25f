//! Processes are killed in turns while events come: what was under way is interrupted, nothing is lost, and nothing is
//! run twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use heddle_core::OrgId;
use heddle_core::event::EventType;
use serde_json::{Value, json};

use super::receiver::{Receiver, held};
use super::{Ground, connect, quiet, until};
use crate::fabric::{event, organization};
use crate::processes::{Pair, quick};
use crate::support::{Random, event_type};

const ROUNDS: usize = 8;
/// Events of one tick: so many are sent, and one stages a change.
const SENT_PER_TICK: usize = 4;
const TICK: Duration = Duration::from_millis(120);
/// More than a process carries out at once: both hold some.
const HELD_PER_ROUND: usize = 24;
const PATIENCE: Duration = Duration::from_mins(2);

/// Runs with their events.
type Ends = BTreeMap<String, String>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_leave_runs_interrupted_and_none_runs_twice() {
    let options = quick().with("FABRIC_WEBHOOK_ALLOWED_HOSTS", "127.0.0.1");
    let Some(mut pair) = Pair::start(options).await else { return };
    let mut random = Random::new();
    let seed = random.seed;
    let receiver = Receiver::start().await;
    let ground = Arc::new(Ground::of(&pair).await);
    let org = organization(&pair.a.api).await;
    quiet(&pair).await;
    connect(&pair.a.api, sending(receiver.url())).await;
    connect(&pair.a.api, staging(&pair.controller)).await;
    let load = Load::start(ground.clone(), org);
    let mut certain = BTreeSet::new();
    for round in 0..ROUNDS {
        if round % 2 == 0 {
            // Some hang in the middle of a step of the process that dies, and some of the other.
            let names: Vec<String> = (0..HELD_PER_ROUND).map(|number| held(round, number)).collect();
            load.tell(&ground, org, event_type("device.offline"), &names).await;
            certain.extend(hanging(&ground, &receiver, process_of(&pair, round)).await);
            kill(&mut pair, round);
            receiver.release(round);
        } else {
            tokio::time::sleep(Duration::from_millis(random.next(1_500))).await;
            kill(&mut pair, round);
            if random.next(3) == 0 {
                kill(&mut pair, round + 2);
                restart(&mut pair, round + 2).await;
            }
        }
        restart(&mut pair, round).await;
        interrupted(&ground, &certain, seed).await;
    }
    let told = load.stop().await;
    // In this order: a run that begins between the two questions would be in neither.
    until("every event has its run, and none is open", PATIENCE, async || {
        ground.runs().await == told && ground.open_runs().await == 0
    })
    .await;
    assert!(certain.len() >= ROUNDS / 2, "{certain:?}");
    let (sent, staged) = (ends(&ground, "device.offline").await, ends(&ground, "ingest.external").await);
    assert_eq!(sent.len() + staged.len(), told, "seed {seed}: one run of each event");
    let lost: Vec<_> =
        [&sent, &staged].into_iter().flatten().filter(|(_, state)| *state == "interrupted").collect();
    assert!(lost.len() >= certain.len() && lost.len() < told / 2, "seed {seed}: {lost:?}");
    done_at_most_once(&sent, &receiver.got(), seed);
    done_at_most_once(&staged, &changes(&ground).await, seed);
}

fn sending(url: &str) -> Value {
    json!({ "name": "Send", "steps": [{ "operation_id": "fabric.webhook", "params": { "url": url } }] })
}

fn staging(controller: &str) -> Value {
    let payload = json!({
        "name": "{{trigger.name}}", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
    });
    let params = json!({ "controller_id": controller, "payload": payload });
    json!({
        "name": "Stage",
        "source_event": "ingest.external",
        "steps": [{ "operation_id": "openwrt.firewall.rule.create", "params": params }],
    })
}

/// Events that keep coming, whichever process is alive.
struct Load {
    told: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    writing: tokio::task::JoinHandle<()>,
}

impl Load {
    fn start(ground: Arc<Ground>, org: OrgId) -> Self {
        let (told, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, over) = (told.clone(), is_over.clone());
        let write = async move {
            for tick in 0.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let sent: Vec<String> = (0..SENT_PER_TICK).map(|n| format!("sent-{tick}-{n}")).collect();
                tell(&ground, org, event_type("device.offline"), &sent).await;
                tell(&ground, org, event_type("ingest.external"), &[format!("staged-{tick}")]).await;
                count.fetch_add(SENT_PER_TICK + 1, Ordering::Relaxed);
                tokio::time::sleep(TICK).await;
            }
        };
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        let writing = tokio::spawn(write);
        Self { told, is_over, writing }
    }

    async fn tell(&self, ground: &Ground, org: OrgId, event_type: EventType, names: &[String]) {
        tell(ground, org, event_type, names).await;
        self.told.fetch_add(names.len(), Ordering::Relaxed);
    }

    /// How many events there were.
    async fn stop(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.writing.await.unwrap();
        self.told.load(Ordering::Relaxed)
    }
}

async fn tell(ground: &Ground, org: OrgId, event_type: EventType, names: &[String]) {
    let events: Vec<_> =
        names.iter().map(|name| event(event_type, org, crate::fabric::device(name))).collect();
    ground.tell(&events).await;
}

/// Whether it is the first process's turn: it dies in two rounds, then the other does.
fn is_first(turn: usize) -> bool {
    (turn / 2).is_multiple_of(2)
}

fn process_of(pair: &Pair, turn: usize) -> u32 {
    if is_first(turn) { pair.a.id() } else { pair.b.id() }
}

fn kill(pair: &mut Pair, turn: usize) {
    if is_first(turn) { pair.a.kill() } else { pair.b.kill() }
}

async fn restart(pair: &mut Pair, turn: usize) {
    if is_first(turn) { pair.restart_a().await } else { pair.restart_b().await }
}

/// Waits until the process is in the middle of steps that do not end, and answers their runs.
async fn hanging(ground: &Ground, receiver: &Receiver, process: u32) -> Vec<uuid::Uuid> {
    let mut found = Vec::new();
    until("the process is in the middle of steps", PATIENCE, async || {
        let running: Vec<(uuid::Uuid, String)> = sqlx::query_as(
            "SELECT r.id, r.payload ->> 'name' FROM connection_run r JOIN process p ON p.id = r.owner
             WHERE r.state = 'running' AND p.pid = $1 AND p.ended_at IS NULL",
        )
        .bind(i64::from(process))
        .fetch_all(&mut ground.connection().await)
        .await
        .unwrap();
        let waiting = receiver.waiting();
        found = running.into_iter().filter(|(_, name)| waiting.contains(name)).map(|(id, _)| id).collect();
        !found.is_empty()
    })
    .await;
    found
}

/// Waits until these are known to be interrupted; they are nothing else.
async fn interrupted(ground: &Ground, ids: &BTreeSet<uuid::Uuid>, seed: u64) {
    let ids: Vec<uuid::Uuid> = ids.iter().copied().collect();
    until(&format!("what was in the middle of a step is interrupted; seed {seed}"), PATIENCE, async || {
        let states: Vec<(String, Option<String>)> =
            sqlx::query_as("SELECT state, reason FROM connection_run WHERE id = ANY($1)")
                .bind(&ids)
                .fetch_all(&mut ground.connection().await)
                .await
                .unwrap();
        assert_eq!(states.len(), ids.len());
        let is_known = |state: &str| matches!(state, "running" | "interrupted");
        assert!(states.iter().all(|(state, _)| is_known(state)), "seed {seed}: {states:?}");
        states.iter().all(|(state, reason)| {
            let reason = reason.as_deref().unwrap_or_default();
            state == "interrupted" && reason.contains("ended in the middle of a step")
        })
    })
    .await;
}

/// How the runs by events of a type ended, by the events' names.
async fn ends(ground: &Ground, event_type: &str) -> Ends {
    let rows: Vec<(String, String)> =
        sqlx::query_as("SELECT payload ->> 'name', state FROM connection_run WHERE event_type = $1")
            .bind(event_type)
            .fetch_all(&mut ground.connection().await)
            .await
            .unwrap();
    let count = rows.len();
    let ends: Ends = rows.into_iter().collect();
    assert_eq!(ends.len(), count, "no event has two runs");
    ends
}

async fn changes(ground: &Ground) -> BTreeMap<String, usize> {
    let names: Vec<String> = sqlx::query_scalar("SELECT payload ->> 'name' FROM change")
        .fetch_all(&mut ground.connection().await)
        .await
        .unwrap();
    let mut changes = BTreeMap::new();
    for name in names {
        *changes.entry(name).or_default() += 1;
    }
    changes
}

/// A run that succeeded was done once; one that was interrupted once or not at all.
fn done_at_most_once(ends: &Ends, done: &BTreeMap<String, usize>, seed: u64) {
    for (name, state) in ends {
        let times = done.get(name).copied().unwrap_or_default();
        let fits = match state.as_str() {
            "success" => times == 1,
            "interrupted" => times <= 1,
            _ => false,
        };
        assert!(fits, "seed {seed}: {name} is {state} and was done {times} times");
    }
    assert!(done.keys().all(|name| ends.contains_key(name)), "seed {seed}: nothing else was done");
}
