use chrono::TimeDelta;
use heddle_core::change::{ApplyStep, OutcomeState, StageSent};

use super::*;
use crate::changes::{self, Advance, Claim, Window};
use crate::db::Db;
use crate::testing::{World, on_both};

/// A world with a second controller, and a set of one change at each.
struct Two {
    world: World,
    saga: ChangeId,
    changes: [ChangeId; 2],
}

impl Two {
    async fn new(db: &Db) -> Self {
        let world = World::new(db, "a").await;
        let other: ControllerId = world.clock.new_id();
        let changes = [world.staged(db).await, world.clock.new_id()];
        let saga = world.clock.new_id();
        let mut tx = db.write().await.unwrap();
        crate::controllers::insert(&mut tx, &world.new_controller(other, "far")).await.unwrap();
        let of_other = changes::NewChange { controller_id: other, ..world.new_change(changes[1]) };
        changes::insert(&mut tx, &of_other).await.unwrap();
        let now = world.clock.now();
        let new = NewSaga {
            id: saga,
            org_id: world.org,
            created_by: world.user,
            expires_at: now + TimeDelta::hours(1),
            reverts: None,
            now,
        };
        let parts = [(changes[1], other, Some(2)), (changes[0], world.controller, None)];
        let parts = parts.map(|(change_id, controller_id, hops)| NewPart { change_id, controller_id, hops });
        insert(&mut tx, &new, &parts).await.unwrap();
        let mut read = Vec::new();
        for id in changes {
            let row = changes::find(&mut tx, &Scope::everything(), id).await.unwrap().unwrap();
            read.push((id, row.updated_at));
        }
        assert!(join(&mut tx, saga, &read, now).await.unwrap());
        assert!(!join(&mut tx, saga, &read, now).await.unwrap(), "they belong to it already");
        tx.commit().await.unwrap();
        Self { world, saga, changes }
    }
}

/// Begins the apply of a change; its controller may be kept by a set.
async fn claim(tx: &mut Tx, world: &World, id: ChangeId) -> Claim {
    let row = changes::hold(tx, id).await.unwrap().unwrap();
    let attempt = world.attempt();
    changes::claim_apply(tx, &row, world.process, &attempt, Window::default(), world.clock.now())
        .await
        .unwrap()
}

on_both! {
    async fn a_set_keeps_its_parts_in_their_order_and_its_changes_for_itself(db) {
        let two = Two::new(&db).await;
        let (world, now) = (&two.world, two.world.clock.now());
        let other = World::new(&db, "b").await;
        let mut tx = db.write().await.unwrap();
        let found = find(&mut tx, &world.scope(), two.saga).await.unwrap().unwrap();
        assert_eq!((found.step, found.state, found.attempts.len()), (SagaStep::Idle, SagaState::None, 0));
        assert!(find(&mut tx, &other.scope(), two.saga).await.unwrap().is_none());
        let ordered = parts(&mut tx, two.saga).await.unwrap();
        let order: Vec<_> = ordered.iter().map(|part| (part.change_id, part.hops)).collect();
        assert_eq!(order, [(two.changes[1], Some(2)), (two.changes[0], None)]);
        let turned = [ordered[1].clone(), ordered[0].clone()]
            .map(|part| NewPart { change_id: part.change_id, controller_id: part.controller_id, hops: Some(1) });
        set_order(&mut tx, two.saga, &turned).await.unwrap();
        assert_eq!(parts(&mut tx, two.saga).await.unwrap()[0].change_id, two.changes[0]);
        // Nothing else moves them.
        let one = two.changes[0];
        assert!(changes::discard(&mut tx, &world.scope(), one, None, now).await.unwrap().is_none());
        assert!(changes::set_plan(&mut tx, one, None, &world.planned(), now).await.unwrap().is_none());
        assert!(changes::set_plan(&mut tx, one, Some(two.saga), &world.planned(), now).await.unwrap().is_some());
        assert!(changes::expire_due(&mut tx, now + TimeDelta::hours(2)).await.unwrap().is_empty());
        assert_eq!(expired(&mut tx, now + TimeDelta::hours(2)).await.unwrap(), [two.saga]);
        let filter = changes::ChangeFilter { set_id: Some(two.saga), ..changes::ChangeFilter::default() };
        let listed = changes::list(&mut tx, &world.scope(), &filter, crate::testing::page()).await.unwrap();
        assert_eq!((listed.1, super::changes(&mut tx, two.saga).await.unwrap().len()), (2, 2));
        let gone = changes::discard_part(&mut tx, one, Some(two.saga), Some("expired"), now).await.unwrap();
        assert_eq!(gone.unwrap().status, ChangeStatus::Discarded);
        for (statuses, belonging) in [(Some(ChangeStatus::Applied), 2), (None, 0)] {
            free(&mut tx, two.saga, statuses, now).await.unwrap();
            let left = super::changes(&mut tx, two.saga).await.unwrap();
            assert_eq!(left.iter().filter(|row| row.saga_id.is_some()).count(), belonging);
            assert_eq!(left.len(), 2, "they are shown with it all the same");
        }
    }

    async fn a_controller_that_a_set_keeps_takes_no_other_change(db) {
        let two = Two::new(&db).await;
        let world = &two.world;
        let single = world.staged(&db).await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(lock_controllers(&mut tx, two.saga).await.unwrap(), None);
        assert_eq!(lock_controllers(&mut tx, two.saga).await.unwrap(), None, "its own");
        assert!(parts(&mut tx, two.saga).await.unwrap().iter().all(|part| part.is_locked));
        assert!(changes::is_any_under_way(&mut tx, &world.scope(), Some(world.controller)).await.unwrap());
        assert!(matches!(claim(&mut tx, world, single).await, Claim::Busy));
        assert!(matches!(claim(&mut tx, world, two.changes[0]).await, Claim::Claimed(_)), "its own part");
        unlock(&mut tx, two.saga, Some(two.changes[1])).await.unwrap();
        let kept: Vec<_> = parts(&mut tx, two.saga).await.unwrap().iter().map(|part| part.is_locked).collect();
        assert_eq!(kept, [false, true]);
        unlock(&mut tx, two.saga, None).await.unwrap();
        let none = Advance::default();
        let (owner, now) = (Some(world.process), world.clock.now());
        let (from, to) = (ApplyStep::Sending, ApplyStep::Idle);
        changes::advance(&mut tx, two.changes[0], owner, from, to, &none, now).await.unwrap().unwrap();
        assert!(!changes::is_any_under_way(&mut tx, &world.scope(), Some(world.controller)).await.unwrap());
        assert!(matches!(claim(&mut tx, world, single).await, Claim::Claimed(_)));
        assert_eq!(lock_controllers(&mut tx, two.saga).await.unwrap(), Some(world.controller), "another is applied there");
    }

    async fn a_transition_is_kept_with_all_that_it_changes(db) {
        let two = Two::new(&db).await;
        let (world, now) = (&two.world, two.world.clock.now());
        let mut tx = db.write().await.unwrap();
        let locked = lock(&mut tx, two.saga).await.unwrap().unwrap();
        assert_eq!(locked.status, ChangeStatus::Pending);
        let to = Transition {
            state: Some(SagaState::Applying),
            message: Set::To("part 1 of 2".to_owned()),
            started_at: Some(now),
            confirm_within_secs: Set::To(60),
            confirm_deadline: Set::To(now + TimeDelta::seconds(60)),
            ..Transition::default()
        };
        let begun = advance(&mut tx, two.saga, SagaStep::Applying, &to, now).await.unwrap();
        assert_eq!((begun.step, begun.started_at), (SagaStep::Applying, Some(now)));
        set_phase(&mut tx, two.saga, two.changes[1], PartPhase::Begun).await.unwrap();
        assert_eq!(parts(&mut tx, two.saga).await.unwrap()[0].phase, PartPhase::Begun);
        assert_eq!(under_way(&mut tx).await.unwrap(), [two.saga]);
        assert!(expired(&mut tx, now + TimeDelta::hours(2)).await.unwrap().is_empty(), "it is under way");
        let to = Transition {
            state: Some(SagaState::Stuck),
            applied_by: Set::To(world.user),
            confirm_deadline: Set::Clear,
            reason: Some("given up".to_owned()),
            ..Transition::default()
        };
        let rests = advance(&mut tx, two.saga, SagaStep::Idle, &to, now).await.unwrap();
        assert_eq!((rests.confirm_deadline, rests.confirm_within_secs), (None, Some(60)));
        assert_eq!((rests.message.as_deref(), rests.reason.as_deref()), (Some("part 1 of 2"), Some("given up")));
        assert_eq!(stuck(&mut tx).await.unwrap(), (vec![two.saga], 1));
        assert!(expired(&mut tx, now + TimeDelta::hours(2)).await.unwrap().is_empty(), "a person has to look");
    }

    async fn what_is_permanent_is_taken_back_by_its_own_plan(db) {
        let two = Two::new(&db).await;
        let (world, now, one) = (&two.world, two.world.clock.now(), two.changes[0]);
        let mut tx = db.write().await.unwrap();
        let sent = [StageSent::none(heddle_core::change::Stage::Apply)];
        let back = changes::take_back_applied(&mut tx, one, world.process, "m", &sent, now).await.unwrap();
        assert!(back.is_none(), "it is not applied");
        assert!(matches!(claim(&mut tx, world, one).await, Claim::Claimed(_)));
        let applied = Advance {
            outcome_state: Some(OutcomeState::Applied),
            status: Some(ChangeStatus::Applied),
            applied_by: Some(world.user),
            applied_at: Some(now),
            ..Advance::default()
        };
        let (from, to) = (ApplyStep::Sending, ApplyStep::Idle);
        changes::advance(&mut tx, one, Some(world.process), from, to, &applied, now).await.unwrap().unwrap();
        let back = changes::take_back_applied(&mut tx, one, world.process, "m", &sent, now).await.unwrap().unwrap();
        assert_eq!((back.apply_step, back.status), (ApplyStep::WritingBack, ChangeStatus::Pending));
        assert_eq!((back.applied_by, back.applied_at, back.outcome_state), (None, None, OutcomeState::Applying));
        assert!(changes::mark_reverted(&mut tx, two.changes[1], one, now).await.unwrap());
        assert!(changes::unmark_reverted(&mut tx, two.changes[1], one, now).await.unwrap());
        assert!(!changes::unmark_reverted(&mut tx, two.changes[1], one, now).await.unwrap());
    }
}
