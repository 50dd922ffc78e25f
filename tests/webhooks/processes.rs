//! Processes are killed while they send: nothing is lost, and what comes twice has one id.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use heddle_core::{Clock, DeviceId};
use heddle_store::{Db, PoolSettings};
use tempfile::TempDir;

use super::receiver::{Got, Receiver};
use super::{offline, options, organization, subscribe, until, write};
use crate::processes::set_up;
use crate::support::{Database, Options, Process};

const ROUNDS: usize = 6;
const EVENTS_PER_ROUND: usize = 40;

fn quick() -> Options {
    options().with("SYNC_INTERVAL_SECS", "3600")
}

/// Kills the process with this number in the middle of sending, and starts another in its place.
async fn replace(
    processes: &mut [Process],
    folders: &[TempDir],
    at: usize,
    (database, token, receiver): (&Database, &str, &Receiver),
) {
    until("a delivery under way", || async { (receiver.under_way() > 0).then_some(()) }).await;
    processes[at].kill();
    processes[at] = Process::start(folders[at].path(), database, &quick()).await.with_token(token);
}

async fn kill_in_a_loop(database: Database, count: usize) {
    let folders: Vec<TempDir> = (0..count).map(|_| tempfile::tempdir().unwrap()).collect();
    let first = Process::start(folders[0].path(), &database, &quick()).await;
    let token = set_up(&first).await;
    let mut processes = vec![first.with_token(&token)];
    for folder in &folders[1..] {
        processes.push(Process::start(folder.path(), &database, &quick()).await.with_token(&token));
    }
    let receiver = Receiver::start().await;
    let hook = subscribe(&processes[0].api, &receiver.url("/slow")).await;
    let org = organization(&processes[0].api).await;
    let url = match &database {
        Database::Postgres(url) => url.clone(),
        Database::Sqlite => format!("sqlite://{}", folders[0].path().join("data/heddle.db").display()),
    };
    let pool = PoolSettings { connections_max: 2, acquire_timeout: Duration::from_secs(10) };
    let db = Db::open(&url, &pool).await.unwrap();
    let clock = Clock::default();
    let devices: Vec<DeviceId> = (0..8).map(|_| clock.new_id()).collect();
    let mut expected = BTreeSet::new();
    for round in 0..ROUNDS {
        for n in 0..EVENTS_PER_ROUND {
            let name = format!("{round}-{n:03}");
            write(&db, &clock, &offline(org, Some(devices[n % devices.len()]), &name)).await;
            expected.insert(name);
            if n == EVENTS_PER_ROUND / 2 {
                // In the middle of it: some are on their way.
                replace(&mut processes, &folders, round % count, (&database, &token, &receiver)).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(u64::try_from(round).unwrap() * 150)).await;
        replace(&mut processes, &folders, (round + 1) % count, (&database, &token, &receiver)).await;
    }
    until("every event", || async {
        let names: BTreeSet<String> = receiver.got("/slow").iter().map(Got::name).collect();
        (names == expected).then_some(())
    })
    .await;
    let api = &processes[0].api;
    until("the end of all deliveries", || async {
        let pending = format!("/webhooks/{hook}/deliveries?state=pending");
        (api.get(&pending).await.expect_status(200).body["total"] == 0).then_some(())
    })
    .await;
    let delivered = format!("/webhooks/{hook}/deliveries?state=delivered");
    assert_eq!(api.get(&delivered).await.expect_status(200).body["total"], expected.len());
    let all = format!("/webhooks/{hook}/deliveries");
    assert_eq!(
        api.get(&all).await.expect_status(200).body["total"],
        expected.len(),
        "one delivery of each event"
    );
    check(&receiver.got("/slow"), &expected, devices.len());
    db.close().await;
}

/// Nothing is lost, what came twice has one id, and each device's events came in their order.
fn check(got: &[Got], expected: &BTreeSet<String>, devices: usize) {
    let mut ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in got {
        ids.entry(one.name()).or_default().insert(one.delivery().to_owned());
    }
    assert!(ids.values().all(|ids| ids.len() == 1), "what comes twice has one id: {ids:?}");
    let distinct: BTreeSet<&String> = ids.values().flatten().collect();
    assert_eq!(distinct.len(), expected.len(), "and no other has it");
    // The process that sent it died before the answer came: some must have come again, or nothing was in flight.
    assert!(got.len() > expected.len(), "{} requests for {} events", got.len(), expected.len());
    // The first time that each came is in the order of its device.
    let mut last: BTreeMap<usize, String> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for one in got.iter().filter(|one| seen.insert(one.name())) {
        let number: usize = one.name()[2..].parse().unwrap();
        let before = last.insert(number % devices, one.name());
        assert!(
            before.as_ref().is_none_or(|before| *before < one.name()),
            "{before:?} before {}",
            one.name()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_are_killed_lose_nothing() {
    if let Some(database) = Database::postgres().await {
        kill_in_a_loop(database, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_process_that_is_killed_loses_nothing() {
    kill_in_a_loop(Database::sqlite(), 1).await;
}
