use chrono::TimeDelta;
use heddle_core::operation::StepErrorCode;
use serde_json::json;

use super::*;
use crate::connections;
use crate::connections::tests::connection;
use crate::testing::{World, first, on_both};

fn run(world: &World, connection: Option<ConnectionId>, state: RunState) -> RunRow {
    let now = world.clock.now();
    RunRow {
        connection_id: connection,
        event_id: Some(world.clock.new_id()),
        event_type: Some("device.offline".to_owned()),
        event_seq: 3,
        chain: connection.into_iter().collect(),
        payload: json!({ "a": 1 }),
        state,
        ended_at: (state == RunState::Skipped).then_some(now),
        ..RunRow::queued(world.clock.new_id(), RunKind::Event, world.org, world.user, now)
    }
}

async fn connected(tx: &mut Tx, world: &World) -> ConnectionId {
    connections::insert(tx, &connection(world, "device.*")).await.unwrap().id
}

/// A run of a new Connection, claimed by the process.
async fn one_claimed(tx: &mut Tx, world: &World) -> RunRow {
    let id = connected(tx, world).await;
    insert_all(tx, &[run(world, Some(id), RunState::Queued)]).await.unwrap();
    claim(tx, world.process, world.org, 1, world.clock.now()).await.unwrap().remove(0)
}

on_both! {
    async fn a_connection_runs_once_by_an_event_and_a_run_is_claimed_once(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        let id = connected(&mut tx, &world).await;
        let new = run(&world, Some(id), RunState::Queued);
        let again = RunRow { id: world.clock.new_id(), ..new.clone() };
        assert_eq!(insert_all(&mut tx, &[new.clone(), again]).await.unwrap(), 1);
        assert_eq!(insert_all(&mut tx, &[]).await.unwrap(), 0);
        let waiting = backlog(&mut tx).await.unwrap();
        assert_eq!(waiting, Backlog { queued: 1, oldest: Some(new.created_at) });
        let now = world.clock.now();
        assert!(claim(&mut tx, world.process, other.org, 9, now).await.unwrap().is_empty());
        let claimed = claim(&mut tx, world.process, world.org, 9, now).await.unwrap().remove(0);
        assert_eq!((claimed.id, claimed.state, claimed.owner), (new.id, RunState::Running, Some(world.process)));
        assert_eq!((claimed.chain, claimed.payload), (vec![id], json!({ "a": 1 })));
        assert!(claim(&mut tx, world.process, world.org, 9, now).await.unwrap().is_empty());
        let step = StepRecord {
            operation_id: "x.y".to_owned(), output: Some(json!([1])), success: false,
            error_code: Some(StepErrorCode::Timeout), message: Some("late".to_owned()), duration_ms: 12, skipped: false,
        };
        let steps = [step];
        let progress = Progress {
            state: RunState::Running, reason: None, steps: &steps, secret: Some(&[7]), ended_at: None,
        };
        assert!(!record(&mut tx, new.id, other.process, &progress).await.unwrap());
        assert!(record(&mut tx, new.id, world.process, &progress).await.unwrap());
        let end = Progress { state: RunState::Failed, reason: Some("why"), secret: None, ended_at: Some(now), ..progress };
        assert!(record(&mut tx, new.id, world.process, &end).await.unwrap());
        assert!(!record(&mut tx, new.id, world.process, &end).await.unwrap(), "it has ended");
        let found = find(&mut tx, &world.scope(), new.id).await.unwrap().unwrap();
        assert_eq!((found.steps.as_slice(), found.secret.as_deref()), (&steps[..], Some(&[7][..])));
        assert_eq!((found.reason.as_deref(), found.ended_at), (Some("why"), Some(now)));
        assert!(find(&mut tx, &other.scope(), new.id).await.unwrap().is_none());
    }

    async fn what_a_gone_process_ran_is_interrupted(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let claimed = one_claimed(&mut tx, &world).await;
        let now = world.clock.now();
        assert!(gone(&mut tx, world.process).await.unwrap().is_empty());
        assert_eq!(gone(&mut tx, world.clock.new_id()).await.unwrap(), [world.process]);
        assert_eq!(interrupt(&mut tx, world.process, now).await.unwrap().len(), 1);
        assert_eq!(interrupt(&mut tx, world.process, now).await.unwrap().len(), 0);
        let found = find(&mut tx, &world.scope(), claimed.id).await.unwrap().unwrap();
        assert_eq!((found.state, found.ended_at), (RunState::Interrupted, Some(now)));
        assert!(found.reason.unwrap().contains("not run again"));
    }

    async fn organizations_wait_beside_each_other(db) {
        let worlds = [World::new(&db, "one").await, World::new(&db, "two").await, World::new(&db, "three").await];
        let mut tx = db.write().await.unwrap();
        assert!(waiting(&mut tx).await.unwrap().is_empty());
        for (world, count) in worlds.iter().zip([3, 0, 1]) {
            let id = connected(&mut tx, world).await;
            let rows: Vec<RunRow> = (0..count).map(|_| run(world, Some(id), RunState::Queued)).collect();
            insert_all(&mut tx, &rows).await.unwrap();
        }
        let mut orgs: Vec<OrgId> = waiting(&mut tx).await.unwrap().iter().map(|one| one.org_id).collect();
        orgs.sort_unstable();
        let mut expected = [worlds[0].org, worlds[2].org];
        expected.sort_unstable();
        assert_eq!(orgs, expected);
        assert!(are_waiting(&mut tx, worlds[0].org, 3).await.unwrap());
        assert!(!are_waiting(&mut tx, worlds[0].org, 4).await.unwrap());
        assert!(!are_waiting(&mut tx, worlds[1].org, 1).await.unwrap());
        let (world, now) = (&worlds[0], worlds[0].clock.now());
        let first = claim(&mut tx, world.process, world.org, 2, now).await.unwrap();
        let second = claim(&mut tx, world.process, world.org, 2, now).await.unwrap();
        assert_eq!((first.len(), second.len()), (2, 1));
        assert!(first.iter().all(|run| run.created_at <= second[0].created_at));
        let found = waiting(&mut tx).await.unwrap();
        assert_eq!((found.len(), found[0].org_id), (1, worlds[2].org));
    }

    async fn what_its_own_process_lost_is_interrupted(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let claimed = one_claimed(&mut tx, &world).await;
        let now = world.clock.now();
        assert_eq!(running(&mut tx, world.process).await.unwrap(), [claimed.id]);
        let stranger = world.clock.new_id();
        assert!(running(&mut tx, stranger).await.unwrap().is_empty());
        give_back(&mut tx, &[claimed.id], stranger).await.unwrap();
        assert_eq!(running(&mut tx, world.process).await.unwrap(), [claimed.id]);
        give_back(&mut tx, &[claimed.id], world.process).await.unwrap();
        let again = claim(&mut tx, world.process, world.org, 1, now).await.unwrap().remove(0);
        assert_eq!(again.id, claimed.id);
        assert_eq!(interrupt_lost(&mut tx, &[claimed.id], stranger, now).await.unwrap().len(), 0);
        assert_eq!(interrupt_lost(&mut tx, &[claimed.id], world.process, now).await.unwrap().len(), 1);
        assert_eq!(interrupt_lost(&mut tx, &[claimed.id], world.process, now).await.unwrap().len(), 0);
        let found = find(&mut tx, &world.scope(), claimed.id).await.unwrap().unwrap();
        assert_eq!((found.state, found.ended_at), (RunState::Interrupted, Some(now)));
    }

    async fn the_key_of_a_run_that_was_interrupted_is_free_and_no_other_is(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let keyed = |state| RunRow {
            run_key: Some("k".to_owned()), kind: RunKind::Trigger, event_id: None, owner: Some(world.process), ..run(&world, None, state)
        };
        let first = keyed(RunState::Running);
        assert_eq!(insert_all(&mut tx, std::slice::from_ref(&first)).await.unwrap(), 1);
        forget_interrupted_key(&mut tx, "k").await.unwrap();
        assert_eq!(insert_all(&mut tx, &[keyed(RunState::Running)]).await.unwrap(), 0, "it is under way");
        assert_eq!(state_by_key(&mut tx, "k").await.unwrap(), Some(RunState::Running));
        assert_eq!(interrupt_lost(&mut tx, &[first.id], world.process, world.clock.now()).await.unwrap().len(), 1);
        forget_interrupted_key(&mut tx, "k").await.unwrap();
        assert_eq!(state_by_key(&mut tx, "k").await.unwrap(), None);
        let second = keyed(RunState::Success);
        assert_eq!(insert_all(&mut tx, std::slice::from_ref(&second)).await.unwrap(), 1);
        forget_interrupted_key(&mut tx, "k").await.unwrap();
        assert_eq!(state_by_key(&mut tx, "k").await.unwrap(), Some(RunState::Success), "it has ended");
        give_key_up(&mut tx, second.id).await.unwrap();
        assert_eq!(state_by_key(&mut tx, "k").await.unwrap(), None);
    }

    async fn lists_chains_and_trims(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (id, other) = (connected(&mut tx, &world).await, connected(&mut tx, &world).await);
        let mut skipped: Vec<RunRow> = (0..5).map(|_| run(&world, Some(id), RunState::Skipped)).collect();
        // Ids of one millisecond are in no order.
        skipped.sort_by_key(|row| row.id.0);
        insert_all(&mut tx, &skipped).await.unwrap();
        let keyed = RunRow { run_key: Some("k".to_owned()), kind: RunKind::Action, event_id: None, ..run(&world, None, RunState::Queued) };
        assert_eq!(insert_all(&mut tx, &[keyed.clone(), run(&world, Some(other), RunState::Skipped)]).await.unwrap(), 2);
        let twin = RunRow { id: world.clock.new_id(), ..keyed.clone() };
        assert_eq!(insert_all(&mut tx, &[twin]).await.unwrap(), 0);
        let scope = world.scope();
        let key_of = async |tx: &mut Tx| find(tx, &scope, keyed.id).await.unwrap().unwrap().run_key;
        forget_key(&mut tx, "k", keyed.created_at).await.unwrap();
        assert_eq!(key_of(&mut tx).await.as_deref(), Some("k"), "it is not old enough");
        forget_key(&mut tx, "k", keyed.created_at + TimeDelta::seconds(1)).await.unwrap();
        assert_eq!(key_of(&mut tx).await, None);
        let of = |filter: RunFilter| filter;
        let walked = walk(&mut tx, &scope, &of(RunFilter { connection_id: Some(id), ..RunFilter::default() }), first(3)).await.unwrap();
        assert_eq!((walked.total, walked.items.len(), walked.has_more), (5, 3, true));
        let actions = RunFilter { kind: Some(RunKind::Action), state: Some(RunState::Queued), ..RunFilter::default() };
        assert_eq!(walk(&mut tx, &scope, &actions, first(3)).await.unwrap().items[0].id, keyed.id);
        let chains = chains(&mut tx, &[skipped[0].id, keyed.id]).await.unwrap();
        assert_eq!((chains[&skipped[0].id].clone(), chains[&keyed.id].clone()), (vec![id], vec![]));
        assert_eq!(trim_skipped(&mut tx, id, 5).await.unwrap(), 0);
        assert_eq!(trim_skipped(&mut tx, id, 2).await.unwrap(), 3);
        assert!(find(&mut tx, &scope, skipped[4].id).await.unwrap().is_some());
        assert!(find(&mut tx, &scope, skipped[0].id).await.unwrap().is_none());
        let later = world.clock.now() + TimeDelta::hours(1);
        assert_eq!(trim(&mut tx, later, 2).await.unwrap(), 2);
        assert_eq!(trim(&mut tx, later, 10).await.unwrap(), 1);
        assert!(find(&mut tx, &scope, keyed.id).await.unwrap().is_some(), "it has not ended");
    }
}
