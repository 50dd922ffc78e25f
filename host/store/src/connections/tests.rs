use heddle_core::operation::{RunKind, RunState};
use serde_json::json;

use super::*;
use crate::runs::{self, RunRow};
use crate::testing::{World, on_both, page};

/// An enabled Connection that is not written yet.
pub(crate) fn connection(world: &World, pattern: &str) -> ConnectionRow {
    let (id, kind) = (world.clock.new_id(), ConnectionKind::Connection);
    ConnectionRow {
        name: "Tell".to_owned(),
        source_event: pattern.to_owned(),
        steps: vec![StepOutline {
            operation_id: "fabric.log".to_owned(),
            continue_on_error: true,
            when: None,
            for_each: None,
            on_error: false,
        }],
        secret: vec![1, 2, 255],
        cooldown_secs: 5,
        after_seq: 7,
        ..ConnectionRow::draft(id, kind, world.org, world.user, world.clock.now())
    }
}

const KIND: ConnectionKind = ConnectionKind::Connection;

fn filter() -> ConnectionFilter {
    ConnectionFilter { kind: KIND, state: None, search: None }
}

/// A run that has not begun.
fn waiting(world: &World, connection: ConnectionId) -> RunRow {
    let (id, now) = (world.clock.new_id(), world.clock.now());
    RunRow {
        connection_id: Some(connection),
        event_id: Some(world.clock.new_id()),
        event_type: Some("device.offline".to_owned()),
        event_seq: 3,
        chain: vec![connection],
        ..RunRow::queued(id, RunKind::Event, world.org, world.user, now)
    }
}

on_both! {
    async fn a_connection_is_kept_edited_and_removed(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let (scope, foreign) = (world.scope(), other.scope());
        let mut tx = db.write().await.unwrap();
        let new = connection(&world, "device.*");
        let kept = insert(&mut tx, &new).await.unwrap();
        assert_eq!((kept.steps.clone(), kept.secret.clone()), (new.steps, new.secret));
        assert_eq!((kept.after_seq, kept.revision, kept.missed), (7, 1, None));
        assert!(find(&mut tx, &foreign, KIND, kept.id).await.unwrap().is_none());
        assert!(find(&mut tx, &scope, ConnectionKind::Rule, kept.id).await.unwrap().is_none());
        let mut edited = lock(&mut tx, &scope, KIND, kept.id).await.unwrap().unwrap();
        edited.name = "Tell all".to_owned();
        edited.conditions = serde_json::from_value(json!({
            "logic": "or", "conditions": [{ "field": "a", "operator": "eq", "value": 1 }],
        })).unwrap();
        edited.missed = Some(MissedPolicy::RunOnce);
        edited.next_due_at = Some(world.clock.now());
        let updated = update(&mut tx, &edited, world.clock.now()).await.unwrap().unwrap();
        assert_eq!((updated.name.as_str(), updated.revision), ("Tell all", 2));
        assert_eq!((&updated.conditions, updated.missed), (&edited.conditions, edited.missed));
        assert_eq!((list(&mut tx, &scope, &filter(), page()).await.unwrap().1, count(&mut tx, world.org).await.unwrap()), (1, 1));
        let draft = ConnectionFilter { state: Some(ConnectionState::Draft), ..filter() };
        assert_eq!(list(&mut tx, &scope, &draft, page()).await.unwrap().1, 0);
        let named = ConnectionFilter { search: Some("all".to_owned()), ..filter() };
        assert_eq!(list(&mut tx, &scope, &named, page()).await.unwrap().1, 1);
        assert!(remove(&mut tx, kept.id, world.clock.now()).await.unwrap());
        assert!(!remove(&mut tx, kept.id, world.clock.now()).await.unwrap());
        assert!(find(&mut tx, &scope, KIND, kept.id).await.unwrap().is_none());
        assert!(update(&mut tx, &edited, world.clock.now()).await.unwrap().is_none());
        assert!(find_any(&mut tx, &scope, kept.id).await.unwrap().unwrap().next_due_at.is_none());
    }

    async fn a_removed_connection_comes_back_as_it_is_told_and_what_waited_of_it_does_not(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        let kept = insert(&mut tx, &connection(&world, "device.*")).await.unwrap();
        let waits = waiting(&world, kept.id);
        let others = waiting(&world, insert(&mut tx, &connection(&world, "user.*")).await.unwrap().id);
        runs::insert_all(&mut tx, &[waits.clone(), others.clone()]).await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        assert!(lock_removed(&mut tx, &scope, KIND, kept.id).await.unwrap().is_none(), "it is there");
        assert!(restore(&mut tx, &kept, now).await.unwrap().is_none());
        assert!(remove(&mut tx, kept.id, now).await.unwrap());
        assert!(lock_removed(&mut tx, &other.scope(), KIND, kept.id).await.unwrap().is_none());
        assert!(lock_removed(&mut tx, &scope, ConnectionKind::Rule, kept.id).await.unwrap().is_none());
        let mut row = lock_removed(&mut tx, &scope, KIND, kept.id).await.unwrap().unwrap();
        row.after_seq = 99;
        (row.state, row.state_reason) = (ConnectionState::Broken, Some("why".to_owned()));
        row.next_due_at = Some(now);
        let back = restore(&mut tx, &row, now).await.unwrap().unwrap();
        assert_eq!((back.deleted_at, back.after_seq, back.revision), (None, 99, kept.revision + 1));
        assert_eq!((back.state, back.state_reason.as_deref()), (ConnectionState::Broken, Some("why")));
        assert_eq!((back.next_due_at, &back.secret), (Some(now), &kept.secret));
        assert!(find(&mut tx, &scope, KIND, kept.id).await.unwrap().is_some());
        assert_eq!(skip_waiting(&mut tx, kept.id, "removed", now).await.unwrap(), 1);
        assert_eq!(skip_waiting(&mut tx, kept.id, "removed", now).await.unwrap(), 0);
        let ended = runs::find(&mut tx, &scope, waits.id).await.unwrap().unwrap();
        assert_eq!((ended.state, ended.reason.as_deref(), ended.ended_at), (RunState::Skipped, Some("removed"), Some(now)));
        assert_eq!(runs::find(&mut tx, &scope, others.id).await.unwrap().unwrap().state, RunState::Queued);
    }

    async fn only_what_is_enabled_and_covers_matches(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        let wanted = connection(&world, "device.*");
        insert(&mut tx, &wanted).await.unwrap();
        insert(&mut tx, &connection(&world, "user.*")).await.unwrap();
        insert(&mut tx, &connection(&other, "device.*")).await.unwrap();
        let paused = ConnectionRow { state: ConnectionState::Paused, ..connection(&world, "device.*") };
        insert(&mut tx, &paused).await.unwrap();
        let patterns = ["*".to_owned(), "device.*".to_owned()];
        let found = matching(&mut tx, world.org, &patterns).await.unwrap();
        assert_eq!(found.iter().map(|row| row.id).collect::<Vec<_>>(), [wanted.id]);
        assert!(is_any_matching(&mut tx, world.org, &patterns).await.unwrap());
        assert!(!is_any_matching(&mut tx, world.org, &patterns[..1]).await.unwrap());
        let now = world.clock.now();
        fired(&mut tx, &BTreeMap::from([(wanted.id, now)])).await.unwrap();
        assert!(break_off(&mut tx, wanted.id, 9, "why", now).await.unwrap().is_none());
        let broken = break_off(&mut tx, wanted.id, 1, "why", now).await.unwrap().unwrap();
        assert_eq!((broken.state, broken.state_reason.as_deref()), (ConnectionState::Broken, Some("why")));
        assert_eq!(broken.last_fired_at, Some(now));
        assert!(break_off(&mut tx, wanted.id, 2, "again", now).await.unwrap().is_none());
        assert!(matching(&mut tx, world.org, &patterns).await.unwrap().is_empty());
    }
}
