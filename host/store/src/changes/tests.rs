use chrono::TimeDelta;
use heddle_core::ProcessId;
use heddle_core::change::{AdapterPlan, Cancellation, HoleValues, Plan, Stage, StageSent};
use serde_json::json;

use super::*;
use crate::select::Set;
use crate::testing::{World, on_both, page};

/// A plan that touches this.
fn touching(names: &[&str]) -> Plan {
    let adapter = AdapterPlan {
        steps: Vec::new(),
        native: Vec::new(),
        holes: Vec::new(),
        danger: Danger::Normal,
        lockout_risk: false,
        warnings: Vec::new(),
        also: Vec::new(),
        base_digest: Vec::new(),
        inverse: None,
        holds: false,
        undo_takes_all: false,
        touches: names.iter().map(|name| (*name).to_owned()).collect(),
        token: Vec::new(),
    };
    Plan::of(&adapter, "test", &[])
}

async fn claim(db: &crate::db::Db, world: &World, id: ChangeId) -> Claim {
    let mut tx = db.write().await.unwrap();
    let row = hold(&mut tx, id).await.unwrap().unwrap();
    let claim = claim_apply(
        &mut tx,
        &row,
        world.process,
        &world.attempt(),
        Window { confirm_within_secs: Some(60), ..Window::default() },
        world.clock.now(),
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    claim
}

on_both! {
    async fn another_key_replaces_what_it_sealed_and_drops_the_plan_if_told(db) {
        let world = World::new(&db, "a").await;
        let id = world.staged(&db).await;
        let mut tx = db.write().await.unwrap();
        let now = world.clock.now();
        let kept = |plan_error| Rekeyed {
            secret: vec![8],
            payload: serde_json::json!({"name": "other"}),
            also: Vec::new(),
            expressed_as: None,
            plan_inverse: None,
            plan_error,
        };
        assert!(!rekey(&mut tx, id, &[1], &kept(None), now).await.unwrap(), "somebody sealed it anew");
        assert!(rekey(&mut tx, id, &[9], &kept(None), now).await.unwrap());
        let row = find(&mut tx, &world.scope(), id).await.unwrap().unwrap();
        assert_eq!((row.secret, row.plan_token), (Some(vec![8]), Some(vec![1, 2])));
        assert_eq!(row.payload["name"], "other");
        assert_eq!(row.plan_error.unwrap()["message"], "no answer");
        let dropped = kept(Some(serde_json::json!({"type": "keys_rotated"})));
        assert!(rekey(&mut tx, id, &[8], &dropped, now).await.unwrap());
        let row = find(&mut tx, &world.scope(), id).await.unwrap().unwrap();
        assert_eq!((row.plan_token, row.plan), (None, None));
        assert_eq!(row.plan_error.unwrap()["type"], "keys_rotated");
        let row = hold(&mut tx, id).await.unwrap().unwrap();
        claim_apply(&mut tx, &row, world.process, &world.attempt(), Window::default(), now).await.unwrap();
        assert!(!rekey(&mut tx, id, &[8], &dropped, now).await.unwrap(), "it is being applied");
    }
}

on_both! {
    async fn a_change_is_found_in_its_scope_only(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let id = a.staged(&db).await;
        let mut tx = db.write().await.unwrap();
        let row = find(&mut tx, &a.scope(), id).await.unwrap().unwrap();
        assert_eq!((row.secret.clone(), row.attempts.len(), row.plan.is_none()), (Some(vec![9]), 0, true));
        assert!(find(&mut tx, &b.scope(), id).await.unwrap().is_none());
        assert!(discard(&mut tx, &b.scope(), id, None, a.clock.now()).await.unwrap().is_none());
        let filter = ChangeFilter { controller_id: Some(a.controller), site_id: Some(a.site), area: Some("firewall".into()), status: Some(ChangeStatus::Pending), vendor: Some("acme".into()), ..ChangeFilter::default() };
        assert_eq!(list(&mut tx, &a.scope(), &filter, page()).await.unwrap().1, 1);
        assert_eq!(list(&mut tx, &b.scope(), &filter, page()).await.unwrap().1, 0);
        let shown = format!("{row:?}");
        assert!(!shown.contains("secret") && !shown.contains("token"), "{shown}");
    }

    async fn of_two_claims_at_once_one_wins(db) {
        let world = World::new(&db, "a").await;
        let (one, two) = (world.staged(&db).await, world.staged(&db).await);
        for (first, second) in [(one, one), (one, two)] {
            let (a, b) = tokio::join!(claim(&db, &world, first), claim(&db, &world, second));
            let won = [&a, &b].iter().filter(|c| matches!(c, Claim::Claimed(_))).count();
            assert_eq!(won, 1, "{a:?} {b:?}");
            let mut tx = db.write().await.unwrap();
            assert!(is_any_under_way(&mut tx, &world.scope(), None).await.unwrap());
            assert!(is_any_under_way(&mut tx, &Scope::everything(), Some(world.controller)).await.unwrap());
            assert!(!is_any_under_way(&mut tx, &Scope::everything(), Some(world.clock.new_id())).await.unwrap());
            let claimed = [a, b].into_iter().find_map(|claim| match claim {
                Claim::Claimed(row) => Some(row.id),
                _ => None,
            });
            advance(&mut tx, claimed.unwrap(), Some(world.process), ApplyStep::Sending, ApplyStep::Idle, &Advance::default(), world.clock.now()).await.unwrap().unwrap();
            tx.commit().await.unwrap();
        }
    }

    async fn a_change_that_is_held_to_be_applied_is_not_planned_again_meanwhile(db) {
        let world = World::new(&db, "a").await;
        let id = world.staged(&db).await;
        let again = Planned { secret: Some(vec![7]), ..world.planned() };
        let mut tx = db.write().await.unwrap();
        let judged = hold(&mut tx, id).await.unwrap().unwrap();
        let plan = async {
            let mut tx = db.write().await.unwrap();
            let planned = set_plan(&mut tx, id, None, &again, world.clock.now()).await.unwrap();
            tx.commit().await.unwrap();
            planned
        };
        let apply = async {
            let (attempt, now) = (world.attempt(), world.clock.now());
            let claim = claim_apply(&mut tx, &judged, world.process, &attempt, Window::default(), now).await.unwrap();
            let Claim::Claimed(row) = claim else { panic!("it is pending") };
            tx.commit().await.unwrap();
            row
        };
        let (planned, sent) = tokio::join!(plan, apply);
        assert_eq!((judged.secret.as_ref(), sent.secret.as_ref()), (Some(&vec![9]), Some(&vec![9])));
        assert!(planned.is_none(), "it is being applied");
        let mut tx = db.write().await.unwrap();
        assert!(hold(&mut tx, world.clock.new_id()).await.unwrap().is_none());
    }

    async fn a_claim_says_why_it_failed(db) {
        let world = World::new(&db, "a").await;
        let (one, two) = (world.staged(&db).await, world.staged(&db).await);
        let Claim::Claimed(row) = claim(&db, &world, one).await else { panic!() };
        assert_eq!((row.apply_step, row.attempts[0].number, row.confirm_within_secs), (ApplyStep::Sending, 1, Some(60)));
        assert!(matches!(claim(&db, &world, one).await, Claim::UnderWay));
        assert!(matches!(claim(&db, &world, two).await, Claim::Busy));
        let mut tx = db.write().await.unwrap();
        let now = world.clock.now();
        assert!(discard(&mut tx, &world.scope(), one, None, now).await.unwrap().is_none());
        assert!(set_plan(&mut tx, one, None, &world.planned(), now).await.unwrap().is_none());
        let done = Advance {
            outcome_state: Some(OutcomeState::Applied), status: Some(ChangeStatus::Applied), applied_by: Some(world.user), applied_at: Some(now),
            outcome_message: Set::To("done".into()), outcome_detail: Set::To(serde_json::json!({"a": 1})),
            confirm_deadline: Set::To(now), task: Set::To(heddle_core::adapter::Task { token: vec![1], poll_after_ms: 1, unreachable_for_ms: None, give_up_after_ms: 2, progress_percent: None, message: None }),
            attempts: Some(vec![]), ..Advance::default()
        };
        assert!(advance(&mut tx, one, Some(world.process), ApplyStep::Holding, ApplyStep::Idle, &done, now).await.unwrap().is_none());
        let row = advance(&mut tx, one, Some(world.process), ApplyStep::Sending, ApplyStep::Idle, &done, now).await.unwrap().unwrap();
        assert_eq!((row.status, row.outcome_message.as_deref(), row.confirm_deadline), (ChangeStatus::Applied, Some("done"), Some(now)));
        assert_eq!(row.task.unwrap().token, [1]);
        tx.commit().await.unwrap();
        assert!(matches!(claim(&db, &world, one).await, Claim::NotPending(ChangeStatus::Applied)));
        assert!(matches!(claim(&db, &world, two).await, Claim::Claimed(_)));
    }

    async fn a_new_plan_keeps_the_secret(db) {
        let world = World::new(&db, "a").await;
        let id = world.staged(&db).await;
        let mut tx = db.write().await.unwrap();
        let planned = Planned { secret: None, error: None, danger: Danger::Destructive, ..world.planned() };
        let row = set_plan(&mut tx, id, None, &planned, world.clock.now()).await.unwrap().unwrap();
        assert_eq!((row.secret, row.plan_error, row.danger), (Some(vec![9]), None, Danger::Destructive));
        let gone = discard(&mut tx, &world.scope(), id, None, world.clock.now()).await.unwrap().unwrap();
        assert_eq!((gone.status, gone.secret), (ChangeStatus::Discarded, None));
        assert!(discard(&mut tx, &world.scope(), id, None, world.clock.now()).await.unwrap().is_none());
    }

    async fn a_change_expires_unless_its_device_is_in_doubt(db) {
        let world = World::new(&db, "a").await;
        let (one, two) = (world.staged(&db).await, world.staged(&db).await);
        let Claim::Claimed(_) = claim(&db, &world, two).await else { panic!() };
        let mut tx = db.write().await.unwrap();
        let doubt = Advance { outcome_state: Some(OutcomeState::Unknown), ..Default::default() };
        advance(&mut tx, two, Some(world.process), ApplyStep::Sending, ApplyStep::Idle, &doubt, world.clock.now()).await.unwrap();
        let counts = [(OutcomeState::None, 1), (OutcomeState::Unknown, 1)];
        assert_eq!(count_pending(&mut tx).await.unwrap(), counts);
        assert!(expire_due(&mut tx, world.clock.now()).await.unwrap().is_empty());
        let expired = expire_due(&mut tx, world.clock.now() + TimeDelta::hours(2)).await.unwrap();
        assert_eq!(expired.iter().map(|row| row.id).collect::<Vec<_>>(), [one]);
    }

    async fn changes_of_one_area_know_of_each_other(db) {
        let world = World::new(&db, "a").await;
        let (one, two) = (world.staged(&db).await, world.staged(&db).await);
        let mut tx = db.write().await.unwrap();
        let first = find(&mut tx, &world.scope(), one).await.unwrap().unwrap();
        assert_eq!(conflicts(&mut tx, &first).await.unwrap(), [two]);
        let (rows, _) = list(&mut tx, &world.scope(), &ChangeFilter::default(), page()).await.unwrap();
        assert_eq!(rows[0].id, two, "the newest comes first");
        let all = conflicts_among(&mut tx, &rows).await.unwrap();
        assert_eq!((&all[&one], &all[&two]), (&vec![two], &vec![one]));
        assert!(conflicts_among(&mut tx, &[]).await.unwrap().is_empty());
        tx.commit().await.unwrap();
        for id in [one, two] {
            claim(&db, &world, id).await;
            let mut tx = db.write().await.unwrap();
            let now = world.clock.now();
            let done = Advance { status: Some(ChangeStatus::Applied), applied_at: Some(now), ..Default::default() };
            advance(&mut tx, id, Some(world.process), ApplyStep::Sending, ApplyStep::Idle, &done, now).await.unwrap();
            tx.commit().await.unwrap();
        }
        let mut tx = db.write().await.unwrap();
        let row = find(&mut tx, &world.scope(), one).await.unwrap().unwrap();
        assert_eq!(later_dependents(&mut tx, &row).await.unwrap(), [two]);
        let elsewhere = ChangeRow { site_ref: Some("branch".to_owned()), ..row.clone() };
        assert!(later_dependents(&mut tx, &elsewhere).await.unwrap().is_empty(), "at another site is another area");
        assert!(mark_reverted(&mut tx, two, one, world.clock.now()).await.unwrap());
        assert!(!mark_reverted(&mut tx, two, one, world.clock.now()).await.unwrap());
        assert!(later_dependents(&mut tx, &row).await.unwrap().is_empty());
    }

    async fn plans_that_touch_the_same_are_in_conflict_and_no_others(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let mut rows = Vec::new();
        for names in [&["rule/a"][..], &["rule/b", "zone/x"], &["zone/x"]] {
            let planned = Planned { plan: Some(touching(names)), ..world.planned() };
            let new = NewChange { planned, ..world.new_change(world.clock.new_id()) };
            rows.push(insert(&mut tx, &new).await.unwrap());
        }
        let all = conflicts_among(&mut tx, &rows).await.unwrap();
        assert_eq!(all[&rows[0].id], []);
        assert_eq!((&all[&rows[1].id][..], &all[&rows[2].id][..]), (&[rows[2].id][..], &[rows[1].id][..]));
    }

    async fn members_follow_their_set_and_go_alone_nowhere(db) {
        let world = World::new(&db, "a").await;
        let (one, two) = (world.staged(&db).await, world.staged(&db).await);
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        let new = NewChange { is_set: true, ..world.new_change(world.clock.new_id()) };
        let set = insert(&mut tx, &new).await.unwrap();
        let mut read = Vec::new();
        for id in [two, one] {
            read.push((id, find(&mut tx, &world.scope(), id).await.unwrap().unwrap().updated_at));
        }
        assert!(join(&mut tx, set.id, &read, now).await.unwrap());
        let again = [(one, find(&mut tx, &world.scope(), one).await.unwrap().unwrap().updated_at)];
        assert!(!join(&mut tx, set.id, &again, now).await.unwrap(), "it is a member already");
        tx.commit().await.unwrap();
        assert!(matches!(claim(&db, &world, one).await, Claim::Busy));
        let mut tx = db.write().await.unwrap();
        assert_eq!(members(&mut tx, set.id).await.unwrap().iter().map(|row| row.id).collect::<Vec<_>>(), [two, one]);
        assert!(discard(&mut tx, &world.scope(), one, None, now).await.unwrap().is_none());
        assert!(set_plan(&mut tx, one, None, &world.planned(), now).await.unwrap().is_none());
        assert!(expire_due(&mut tx, now + TimeDelta::hours(2)).await.unwrap().iter().all(|row| row.is_set));
        let (shown, _) = list(&mut tx, &world.scope(), &ChangeFilter { set_id: Some(set.id), ..ChangeFilter::default() }, page()).await.unwrap();
        assert_eq!(shown.len(), 2, "the row of the set is no change");
        let told = Followed {
            ids: vec![one, two], status: ChangeStatus::Discarded, state: OutcomeState::Expired,
            message: Some("over".to_owned()), applied_by: None, applied_at: None, reverted_by: None,
        };
        follow(&mut tx, set.id, &told, now).await.unwrap();
        let counted = counts(&mut tx, &world.scope(), &ChangeFilter::default()).await.unwrap();
        assert_eq!(counted, [ChangeCount { status: ChangeStatus::Discarded, outcome_state: OutcomeState::Expired, count: 2 }]);
        assert!(members(&mut tx, set.id).await.unwrap().iter().all(|row| row.secret.is_none()));
        assert_eq!(standings(&mut tx, &[set.id]).await.unwrap()[0].apply_step, ApplyStep::Idle);
        free_members(&mut tx, &set, None, now).await.unwrap();
        assert!(members(&mut tx, set.id).await.unwrap().is_empty());
    }

    async fn a_change_that_was_planned_again_since_it_was_read_joins_no_set(db) {
        let world = World::new(&db, "a").await;
        let one = world.staged(&db).await;
        let mut tx = db.write().await.unwrap();
        let read = find(&mut tx, &world.scope(), one).await.unwrap().unwrap();
        let new = NewChange { is_set: true, ..world.new_change(world.clock.new_id()) };
        let set = insert(&mut tx, &new).await.unwrap();
        let later = world.clock.now() + TimeDelta::seconds(1);
        let planned = set_plan(&mut tx, one, None, &world.planned(), later).await.unwrap().unwrap();
        assert!(!join(&mut tx, set.id, &[(one, read.updated_at)], later).await.unwrap());
        assert!(join(&mut tx, set.id, &[(one, planned.updated_at)], later).await.unwrap());
    }

    async fn a_window_is_moved_taken_back_and_given_up(db) {
        let world = World::new(&db, "a").await;
        let id = world.staged(&db).await;
        let (now, later) = (world.clock.now(), world.clock.now() + TimeDelta::seconds(60));
        claim(&db, &world, id).await;
        let mut tx = db.write().await.unwrap();
        assert!(extend_window(&mut tx, id, now, later, "m", now).await.unwrap().is_none());
        let hold = Advance { confirm_deadline: Set::To(now), ..Advance::default() };
        advance(&mut tx, id, Some(world.process), ApplyStep::Sending, ApplyStep::Holding, &hold, now).await.unwrap().unwrap();
        let moved = extend_window(&mut tx, id, now, later, "m", now).await.unwrap().unwrap();
        assert_eq!(moved.confirm_deadline, Some(later));
        assert!(extend_window(&mut tx, id, now, later, "m", now).await.unwrap().is_none(), "it was moved meanwhile");
        let back = take_back_held(&mut tx, id, world.process, "asked for", now).await.unwrap().unwrap();
        assert_eq!((back.apply_step, back.outcome_message.as_deref()), (ApplyStep::Restoring, Some("asked for")));
        assert!(give_up_unknown(&mut tx, &back, "gone", now).await.unwrap().is_none(), "it may still answer");
        let unknown = Advance { outcome_state: Some(OutcomeState::Unknown), ..Advance::default() };
        let (step, owner) = (ApplyStep::Restoring, Some(world.process));
        advance(&mut tx, id, owner, step, step, &unknown, now).await.unwrap().unwrap();
        let given_up = give_up_unknown(&mut tx, &back, "gone", now).await.unwrap().unwrap();
        assert_eq!((given_up.apply_step, given_up.attempts[0].ended_at), (ApplyStep::Idle, Some(now)));
        assert!(set_plan(&mut tx, id, None, &world.planned(), now).await.unwrap().is_none(), "it was not compared since");
        let again = take_back_unsettled(&mut tx, id, world.process, "again", &[], now).await.unwrap().unwrap();
        assert_eq!(again.apply_step, ApplyStep::Restoring);
        advance(&mut tx, id, owner, step, ApplyStep::Idle, &unknown, now).await.unwrap().unwrap();
        let seen = Advance { verified_at: Some(now), ..Advance::default() };
        advance(&mut tx, id, None, ApplyStep::Idle, ApplyStep::Idle, &seen, now).await.unwrap().unwrap();
        assert!(set_plan(&mut tx, id, None, &world.planned(), now).await.unwrap().is_some());
    }

    async fn only_the_owner_brings_an_apply_forward(db) {
        let world = World::new(&db, "a").await;
        let id = world.staged(&db).await;
        let (now, none) = (world.clock.now(), Advance::default());
        let Claim::Claimed(row) = claim(&db, &world, id).await else { panic!() };
        assert_eq!(row.apply_owner, Some(world.process));
        let other: ProcessId = world.clock.new_id();
        let mut tx = db.write().await.unwrap();
        let (from, to) = (ApplyStep::Sending, ApplyStep::ReadingBack);
        for owner in [Some(other), None] {
            assert!(advance(&mut tx, id, owner, from, to, &none, now).await.unwrap().is_none());
        }
        let sent = vec![StageSent { stage: Stage::Apply, left: 2, judged: 1 }];
        assert!(!record_sent(&mut tx, id, other, from, (&sent, None), &Set::Keep).await.unwrap(), "not its own");
        assert!(!record_sent(&mut tx, id, world.process, to, (&sent, None), &Set::Keep).await.unwrap(), "not there");
        let values = HoleValues::from([("id".to_owned(), json!("a-1"))]);
        let recorded = record_sent(&mut tx, id, world.process, from, (&sent, Some(&values)), &Set::Keep);
        assert!(recorded.await.unwrap());
        let row = find(&mut tx, &Scope::everything(), id).await.unwrap().unwrap();
        assert_eq!((row.sent.as_ref(), row.sent(Stage::Apply)), (Some(&sent), sent[0]));
        assert_eq!(row.hole_values, Some(values));
        assert_eq!(row.sent(Stage::Restore), StageSent::none(Stage::Restore));
        assert!(take_held(&mut tx, id, other, &Set::Keep, now).await.unwrap().is_none(), "it does not wait yet");
        advance(&mut tx, id, Some(world.process), from, ApplyStep::Holding, &none, now).await.unwrap().unwrap();
        let taken = take_held(&mut tx, id, other, &Set::Keep, now).await.unwrap().unwrap();
        assert_eq!((taken.apply_step, taken.apply_owner), (ApplyStep::Confirming, Some(other)));
        assert_eq!(owned(&mut tx, other).await.unwrap(), [UnderWay { id, controller_id: world.controller, apply_step: ApplyStep::Confirming }]);
        assert!(owned(&mut tx, world.process).await.unwrap().is_empty());
        let idle = advance(&mut tx, id, Some(other), ApplyStep::Confirming, ApplyStep::Idle, &none, now).await.unwrap().unwrap();
        assert_eq!(idle.apply_owner, None, "at its end it is nobody's");
        assert!(advance(&mut tx, id, None, ApplyStep::Idle, ApplyStep::Idle, &none, now).await.unwrap().is_some());
    }

    async fn a_job_is_cancelled_while_it_is_polled_and_by_any_process(db) {
        let world = World::new(&db, "a").await;
        let id = world.staged(&db).await;
        let (now, none) = (world.clock.now(), Advance::default());
        let Claim::Claimed(row) = claim(&db, &world, id).await else { panic!() };
        let other: ProcessId = world.clock.new_id();
        let mut attempts = row.attempts.clone();
        let asked = Cancellation { call: "create".to_owned(), requested_at: now, requested_by: world.user, via: None };
        attempts[0].cancellations.push(asked);
        let sent = [StageSent { stage: Stage::Apply, left: 1, judged: 1 }];
        let mut tx = db.write().await.unwrap();
        lock(&mut tx, id).await.unwrap();
        let cancelled = begin_cancel(&mut tx, id, other, (&attempts, &sent), now).await.unwrap();
        assert!(cancelled.is_none(), "no job runs yet");
        let polling = ApplyStep::Polling;
        advance(&mut tx, id, Some(world.process), ApplyStep::Sending, polling, &none, now).await.unwrap().unwrap();
        let cancelled = begin_cancel(&mut tx, id, other, (&attempts, &sent), now).await.unwrap().unwrap();
        assert_eq!((cancelled.apply_step, cancelled.apply_owner), (ApplyStep::Cancelling, Some(other)));
        assert_eq!((cancelled.attempts, cancelled.sent), (attempts.clone(), Some(sent.to_vec())));
        assert!(begin_cancel(&mut tx, id, other, (&attempts, &sent), now).await.unwrap().is_none(), "it was asked for");
        assert!(advance(&mut tx, id, Some(world.process), polling, polling, &none, now).await.unwrap().is_none());
    }

    async fn an_apply_is_taken_from_who_is_gone_and_from_nobody_else(db) {
        let world = World::new(&db, "a").await;
        let id = world.staged(&db).await;
        let Claim::Claimed(_) = claim(&db, &world, id).await else { panic!() };
        let (one, two): (ProcessId, ProcessId) = (world.clock.new_id(), world.clock.new_id());
        // The owner never registered, so it does not live.
        let mut tx = db.write().await.unwrap();
        assert_eq!(orphaned(&mut tx, one).await.unwrap(), Some(vec![world.process]));
        assert_eq!(orphaned(&mut tx, world.process).await.unwrap(), None, "one's own is not orphaned");
        assert!(take_over(&mut tx, one, &[two]).await.unwrap().is_empty());
        tx.commit().await.unwrap();
        let take = |me| {
            let (db, gone) = (db.clone(), [world.process]);
            async move {
                let mut tx = db.write().await.unwrap();
                let taken = take_over(&mut tx, me, &gone).await.unwrap().len();
                tx.commit().await.unwrap();
                taken
            }
        };
        let (a, b) = tokio::join!(take(one), take(two));
        assert_eq!(a + b, 1, "of two that try one gets it");
        let mut tx = db.write().await.unwrap();
        let owner = if a == 1 { one } else { two };
        assert!(!release(&mut tx, id, world.process).await.unwrap());
        assert!(release(&mut tx, id, owner).await.unwrap());
        assert_eq!(orphaned(&mut tx, world.process).await.unwrap(), Some(vec![]));
        assert_eq!(take_over(&mut tx, world.process, &[]).await.unwrap().len(), 1);
    }

    async fn a_step_of_a_run_stages_one_change(db) {
        let world = World::new(&db, "one").await;
        let run_id = world.clock.new_id();
        let via = StagedVia {
            kind: heddle_core::change::StagedByKind::Automation,
            connection_id: Some(world.clock.new_id()),
            run_id: Some(run_id),
            step: Some(3),
        };
        let run = RunStep { run_id, key: "run:0".to_owned(), via };
        let mut tx = db.write().await.unwrap();
        let new = NewChange { run: Some(run.clone()), ..world.new_change(world.clock.new_id()) };
        let row = insert(&mut tx, &new).await.unwrap();
        assert_eq!(row.run_id, Some(run.run_id));
        assert_eq!(find_by_run_key(&mut tx, &world.scope(), "run:0").await.unwrap().unwrap().id, row.id);
        assert!(find_by_run_key(&mut tx, &world.scope(), "run:1").await.unwrap().is_none());
        let again = NewChange { id: world.clock.new_id(), ..new };
        let error = insert(&mut tx, &again).await.unwrap_err();
        assert!(error.is_unique("change_run_key"), "{error:?}");
    }
}
