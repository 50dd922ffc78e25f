use chrono::TimeDelta;
use heddle_core::webhook::DeliveryState;
use heddle_core::{DeliveryId, DeviceId, EventId};
use serde_json::json;

use super::deliveries::{Attempt, Due, NewDelivery, Room};
use super::templates::NewTemplate;
use super::*;
use crate::Db;
use crate::testing::{World, first, on_both, page};

const ROOM: Room = Room { per_subscription: 4, per_organization: 6, in_all: 100 };

fn new(world: &World, name: &str) -> NewSubscription {
    NewSubscription {
        id: world.clock.new_id(),
        org_id: world.org,
        name: name.to_owned(),
        url: "https://hook.example/x".to_owned(),
        events: vec!["device.*".to_owned()],
        site_id: None,
        template_id: None,
        header_names: vec!["authorization".to_owned()],
        secret: b"sealed".to_vec(),
        is_enabled: true,
        after_seq: 7,
        author_id: world.user,
        now: world.clock.now(),
    }
}

fn delivery(world: &World, to: SubscriptionId, seq: i64, device: Option<DeviceId>) -> NewDelivery {
    NewDelivery {
        id: world.clock.new_id(),
        org_id: world.org,
        subscription_id: to,
        event_id: world.clock.new_id::<EventId>(),
        event_type: "device.offline".to_owned(),
        seq,
        device_id: device,
        event: json!({ "seq": seq }),
        now: world.clock.now(),
    }
}

fn attempt(world: &World, state: DeliveryState) -> Attempt {
    let now = world.clock.now();
    Attempt {
        state,
        next_at: (state == DeliveryState::Pending).then(|| now + TimeDelta::seconds(10)),
        status: Some(500),
        error: Some("status 500".to_owned()),
        response: Some("no".to_owned()),
        response_is_truncated: false,
        now,
    }
}

async fn claimed(db: &Db, world: &World, room: Room) -> Vec<Due> {
    let mut tx = db.write().await.unwrap();
    let due = deliveries::claim(&mut tx, world.process, world.clock.now(), room).await.unwrap();
    tx.commit().await.unwrap();
    due
}

async fn finished(db: &Db, world: &World, id: DeliveryId, state: DeliveryState) -> bool {
    let mut tx = db.write().await.unwrap();
    let is_ours = deliveries::finish(&mut tx, id, world.process, &attempt(world, state)).await.unwrap();
    tx.commit().await.unwrap();
    is_ours
}

fn seqs(due: &[Due]) -> Vec<i64> {
    due.iter().map(|due| due.event["seq"].as_i64().unwrap()).collect()
}

on_both! {
    async fn a_subscription_is_kept_changed_and_removed_within_its_organization(db) {
        let (world, other) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let (scope, foreign, now) = (world.scope(), other.scope(), world.clock.now());
        let mut tx = db.write().await.unwrap();
        let made = insert(&mut tx, &new(&world, "One")).await.unwrap();
        assert_eq!((made.events.len(), made.after_seq, made.is_enabled), (1, 7, true));
        assert_eq!(find(&mut tx, &scope, made.id).await.unwrap().as_ref(), Some(&made));
        assert_eq!(lock(&mut tx, &scope, made.id).await.unwrap().as_ref(), Some(&made));
        assert_eq!(find(&mut tx, &foreign, made.id).await.unwrap(), None);
        assert_eq!(find_sealed(&mut tx, made.id).await.unwrap().as_deref(), Some(b"sealed".as_slice()));
        assert_eq!(list(&mut tx, &scope, Some("on"), page()).await.unwrap().1, 1);
        assert_eq!(list(&mut tx, &foreign, None, page()).await.unwrap().1, 0);
        assert_eq!(count(&mut tx, world.org).await.unwrap(), 1);
        let change = SubscriptionUpdate {
            name: Some("Two".to_owned()),
            events: Some(vec!["user.*".to_owned()]),
            site_id: Set::To(world.site),
            is_enabled: Some(false),
            secret: Some(b"other".to_vec()),
            ..SubscriptionUpdate::default()
        };
        assert_eq!(update(&mut tx, &foreign, made.id, &change, now).await.unwrap(), None);
        let changed = update(&mut tx, &scope, made.id, &change, now).await.unwrap().unwrap();
        assert_eq!((changed.name.as_str(), changed.site_id, changed.is_enabled), ("Two", Some(world.site), false));
        assert_eq!(changed.url, made.url);
        let cleared = SubscriptionUpdate { site_id: Set::Clear, ..SubscriptionUpdate::default() };
        assert_eq!(update(&mut tx, &scope, made.id, &cleared, now).await.unwrap().unwrap().site_id, None);
        deliveries::insert(&mut tx, &[delivery(&world, made.id, 8, None)]).await.unwrap();
        assert!(!remove(&mut tx, &foreign, made.id, now).await.unwrap());
        assert!(remove(&mut tx, &scope, made.id, now).await.unwrap());
        assert_eq!(find(&mut tx, &scope, made.id).await.unwrap(), None);
        assert_eq!(find_sealed(&mut tx, made.id).await.unwrap(), None);
        assert_eq!(deliveries::count_pending(&mut tx).await.unwrap(), 0);
    }

    async fn only_enabled_subscriptions_of_authors_with_all_sites_listen(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let made = insert(&mut tx, &new(&world, "One")).await.unwrap();
        insert(&mut tx, &NewSubscription { is_enabled: false, ..new(&world, "Off") }).await.unwrap();
        let found = listening(&mut tx, world.org).await.unwrap();
        assert_eq!(found, [Listening {
            id: made.id, events: made.events.clone(), site_id: None, after_seq: 7, role: Role::OrgAdmin,
        }]);
        let now = world.clock.now();
        note(&mut tx, made.id, Some("no"), now).await.unwrap();
        note(&mut tx, made.id, Some("no again"), now).await.unwrap();
        let failing = find(&mut tx, &world.scope(), made.id).await.unwrap().unwrap();
        assert_eq!((failing.consecutive_failures, failing.last_error.as_deref()), (2, Some("no again")));
        note(&mut tx, made.id, None, now).await.unwrap();
        let fine = find(&mut tx, &world.scope(), made.id).await.unwrap().unwrap();
        assert_eq!((fine.consecutive_failures, fine.last_error, fine.last_delivered_at), (0, None, Some(now)));
        tx.commit().await.unwrap();
        crate::testing::tamper(&db, "UPDATE app_user SET is_active = FALSE").await;
        let mut tx = db.read().await.unwrap();
        assert!(listening(&mut tx, world.org).await.unwrap().is_empty());
    }

    async fn a_template_has_a_name_of_its_own_and_knows_its_uses(db) {
        let (world, other) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let (scope, now) = (world.scope(), world.clock.now());
        let mut tx = db.write().await.unwrap();
        let new_template = |name: &str| NewTemplate {
            id: world.clock.new_id(),
            org_id: world.org,
            name: name.to_owned(),
            payload: json!("{{trigger.id}}"),
            now,
        };
        let made = templates::insert(&mut tx, &new_template("Chat")).await.unwrap();
        assert_eq!(made.payload(), &json!("{{trigger.id}}"));
        assert_eq!(templates::find(&mut tx, &other.scope(), made.id).await.unwrap(), None);
        assert_eq!(templates::lock(&mut tx, &scope, made.id).await.unwrap().as_ref(), Some(&made));
        assert_eq!(templates::list(&mut tx, &scope, Some("cha"), page()).await.unwrap().1, 1);
        let payload = json!({ "text": 1 });
        let change = (Some("Chats"), Some(&payload));
        let changed = templates::update(&mut tx, &scope, made.id, change, now).await.unwrap().unwrap();
        assert_eq!((changed.name.as_str(), changed.payload()), ("Chats", &payload));
        assert_eq!(templates::uses(&mut tx, made.id).await.unwrap(), 0);
        let with = NewSubscription { template_id: Some(made.id), ..new(&world, "One") };
        let with = insert(&mut tx, &with).await.unwrap();
        assert_eq!(templates::uses(&mut tx, made.id).await.unwrap(), 1);
        remove(&mut tx, &scope, with.id, now).await.unwrap();
        assert!(templates::remove(&mut tx, &scope, made.id, now).await.unwrap());
        assert_eq!(templates::find(&mut tx, &scope, made.id).await.unwrap(), None);
        templates::insert(&mut tx, &new_template("chats")).await.unwrap();
        let taken = templates::insert(&mut tx, &new_template("CHATS")).await.unwrap_err();
        assert!(taken.is_unique(templates::NAME_INDEX), "{taken}");
    }

    async fn a_device_keeps_its_order_and_others_go_on(db) {
        let world = World::new(&db, "a").await;
        let (one, two): (DeviceId, DeviceId) = (world.clock.new_id(), world.clock.new_id());
        let mut tx = db.write().await.unwrap();
        let to = insert(&mut tx, &new(&world, "One")).await.unwrap().id;
        let rows = [(1, Some(one)), (2, Some(one)), (3, Some(two)), (4, None), (5, None), (6, Some(two))]
            .map(|(seq, device)| delivery(&world, to, seq, device));
        deliveries::insert(&mut tx, &rows).await.unwrap();
        let again = NewDelivery { id: world.clock.new_id(), ..rows[0].clone() };
        deliveries::insert(&mut tx, &[again]).await.unwrap();
        assert_eq!(deliveries::count_pending(&mut tx).await.unwrap(), 6, "an event comes once");
        tx.commit().await.unwrap();

        let due = claimed(&db, &world, ROOM).await;
        assert_eq!(seqs(&due), [1, 3, 4, 5], "of a device only the first");
        assert!(claimed(&db, &world, ROOM).await.is_empty(), "nothing is sent twice");
        assert!(finished(&db, &world, due[0].id, DeliveryState::Pending).await);
        assert!(!finished(&db, &world, due[0].id, DeliveryState::Delivered).await, "it was given up");
        assert!(claimed(&db, &world, ROOM).await.is_empty(), "the second waits while the first is to be tried again");
        assert!(finished(&db, &world, due[1].id, DeliveryState::Delivered).await);
        assert_eq!(seqs(&claimed(&db, &world, ROOM).await), [6], "the other device goes on");
        world.clock.advance(TimeDelta::seconds(10));
        let due = claimed(&db, &world, ROOM).await;
        assert_eq!((seqs(&due), due[0].attempts), (vec![1], 1));
        assert!(finished(&db, &world, due[0].id, DeliveryState::Dead).await);
        assert_eq!(seqs(&claimed(&db, &world, ROOM).await), [2], "a dead one lets the next through");
    }

    async fn a_subscription_takes_no_more_than_its_room(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let busy = insert(&mut tx, &new(&world, "Busy")).await.unwrap().id;
        let calm = insert(&mut tx, &new(&world, "Calm")).await.unwrap().id;
        let rows: Vec<_> = (1..=20).map(|seq| delivery(&world, busy, seq, None)).collect();
        deliveries::insert(&mut tx, &rows).await.unwrap();
        deliveries::insert(&mut tx, &[delivery(&world, calm, 21, None)]).await.unwrap();
        assert!(deliveries::has_due(&mut tx, world.clock.now()).await.unwrap());
        tx.commit().await.unwrap();
        let due = claimed(&db, &world, ROOM).await;
        assert_eq!(seqs(&due), [1, 2, 3, 4, 21]);
        assert!(claimed(&db, &world, ROOM).await.is_empty());
        assert!(finished(&db, &world, due[0].id, DeliveryState::Delivered).await);
        assert_eq!(seqs(&claimed(&db, &world, ROOM).await), [5]);
        let mut tx = db.write().await.unwrap();
        assert_eq!(deliveries::owned(&mut tx, world.process).await.unwrap().len(), 5);
        deliveries::release_one(&mut tx, due[1].id, world.process).await.unwrap();
        assert_eq!(deliveries::owned(&mut tx, world.process).await.unwrap().len(), 4);
        assert!(deliveries::gone_owners(&mut tx, world.process).await.unwrap().is_empty());
        let another = world.clock.new_id();
        assert_eq!(deliveries::gone_owners(&mut tx, another).await.unwrap(), [world.process]);
        assert_eq!(deliveries::release(&mut tx, world.process).await.unwrap(), 4);
        tx.commit().await.unwrap();
        let due = claimed(&db, &world, Room { in_all: 2, ..ROOM }).await;
        assert_eq!(seqs(&due), [2, 3], "and all together no more than asked for");
        let due = claimed(&db, &world, Room { per_organization: 3, ..ROOM }).await;
        assert_eq!(seqs(&due), [4], "and an organization no more than its share");
    }

    async fn what_ended_is_listed_sent_again_and_forgotten(db) {
        let (world, other) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let scope = world.scope();
        let mut tx = db.write().await.unwrap();
        let to = insert(&mut tx, &new(&world, "One")).await.unwrap().id;
        let rows: Vec<_> = (1..=3).map(|seq| delivery(&world, to, seq, None)).collect();
        deliveries::insert(&mut tx, &rows).await.unwrap();
        tx.commit().await.unwrap();
        let due = claimed(&db, &world, ROOM).await;
        finished(&db, &world, due[0].id, DeliveryState::Delivered).await;
        finished(&db, &world, due[1].id, DeliveryState::Dead).await;
        let mut tx = db.write().await.unwrap();
        let dead = deliveries::find(&mut tx, &scope, due[1].id).await.unwrap().unwrap();
        assert_eq!((dead.state, dead.attempts, dead.last_status), (DeliveryState::Dead, 1, Some(500)));
        assert_eq!(deliveries::find(&mut tx, &other.scope(), due[1].id).await.unwrap(), None);
        let all = deliveries::walk(&mut tx, &scope, to, None, first(10)).await.unwrap();
        assert_eq!(all.items.iter().map(|row| row.seq).collect::<Vec<_>>(), [3, 2, 1]);
        let only = deliveries::walk(&mut tx, &scope, to, Some(DeliveryState::Dead), first(10)).await.unwrap();
        assert_eq!(only.items, [dead]);
        let now = world.clock.now();
        assert!(!deliveries::replay(&mut tx, due[2].id, now).await.unwrap(), "it is on its way");
        assert!(deliveries::replay(&mut tx, due[1].id, now).await.unwrap());
        assert_eq!(deliveries::find(&mut tx, &scope, due[1].id).await.unwrap().unwrap().attempts, 0);
        let replayed = deliveries::replay_range(&mut tx, to, (1, 3), Some(DeliveryState::Dead), now).await.unwrap();
        assert_eq!(replayed, 0);
        assert_eq!(deliveries::replay_range(&mut tx, to, (2, 9), None, now).await.unwrap(), 0);
        tx.commit().await.unwrap();
        let later = now + TimeDelta::days(8);
        let mut tx = db.write().await.unwrap();
        assert_eq!(deliveries::trim(&mut tx, DeliveryState::Delivered, now - TimeDelta::days(1), 10).await.unwrap(), 0);
        assert_eq!(deliveries::trim(&mut tx, DeliveryState::Dead, later, 10).await.unwrap(), 0);
        assert_eq!(deliveries::replay_range(&mut tx, to, (1, 1), None, now).await.unwrap(), 1);
        tx.commit().await.unwrap();
        let due = claimed(&db, &world, ROOM).await;
        finished(&db, &world, due[0].id, DeliveryState::Delivered).await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(deliveries::trim(&mut tx, DeliveryState::Delivered, later, 10).await.unwrap(), 1);
        assert_eq!(deliveries::count_pending(&mut tx).await.unwrap(), 2);
        let state = DeliveryState::Pending;
        assert_eq!(deliveries::trim(&mut tx, state, later, 10).await.unwrap(), 0, "they are in hand");
        deliveries::release(&mut tx, world.process).await.unwrap();
        assert_eq!(deliveries::trim(&mut tx, state, now - TimeDelta::days(1), 10).await.unwrap(), 0);
        assert_eq!(deliveries::trim(&mut tx, state, later, 10).await.unwrap(), 0, "they wait for their turn");
        let off = SubscriptionUpdate { is_enabled: Some(false), ..SubscriptionUpdate::default() };
        update(&mut tx, &scope, to, &off, now).await.unwrap().unwrap();
        assert_eq!(deliveries::trim(&mut tx, state, later, 10).await.unwrap(), 2);
    }
}
