//! Which delivery is sent next, in which order, and what is sent again.

use std::time::Duration;

use super::*;
use crate::testing::{first, tamper};
use crate::webhooks::deliveries::{Range, Replay, Replayed};

async fn replayed(
    tx: &mut Tx,
    to: SubscriptionId,
    (from, until): (i64, i64),
    state: Option<DeliveryState>,
    now: Timestamp,
) -> Replayed {
    let range = Range { from, to: until, state, limit: 1_000 };
    deliveries::replay_range(tx, to, range, now).await.unwrap()
}

async fn subscribed(db: &Db, world: &World, name: &str) -> SubscriptionId {
    let mut tx = db.write().await.unwrap();
    let id = insert(&mut tx, &new(world, name)).await.unwrap().id;
    tx.commit().await.unwrap();
    id
}

async fn queued(db: &Db, rows: &[NewDelivery]) {
    let mut tx = db.write().await.unwrap();
    deliveries::insert(&mut tx, rows).await.unwrap();
    tx.commit().await.unwrap();
}

async fn due(db: &Db, world: &World, room: Room) -> bool {
    let mut tx = db.read().await.unwrap();
    sending::has_due(&mut tx, world.clock.now(), room).await.unwrap()
}

on_both! {
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
        assert!(sending::has_due(&mut tx, world.clock.now(), ROOM).await.unwrap());
        tx.commit().await.unwrap();
        let mut due = claimed(&db, &world, ROOM).await;
        assert_eq!(seqs(&due), [1, 2, 3, 21], "half of its organization's places each");
        due.extend(claimed(&db, &world, ROOM).await);
        assert_eq!(seqs(&due), [1, 2, 3, 21, 4], "those that the other has no use for are its");
        assert!(!self::due(&db, &world, ROOM).await, "there is no room for more");
        assert!(claimed(&db, &world, ROOM).await.is_empty());
        assert!(finished(&db, &world, due[0].id, DeliveryState::Delivered).await);
        assert!(self::due(&db, &world, ROOM).await && !self::due(&db, &world, Room { in_all: 0, ..ROOM }).await);
        assert_eq!(seqs(&claimed(&db, &world, ROOM).await), [5]);
        let mut tx = db.write().await.unwrap();
        assert_eq!(sending::owned(&mut tx, world.process).await.unwrap().len(), 5);
        assert_eq!(sending::release_some(&mut tx, world.process, &[due[1].id], world.clock.now()).await.unwrap(), 1);
        assert_eq!(sending::owned(&mut tx, world.process).await.unwrap().len(), 4);
        assert!(sending::gone_owners(&mut tx, world.process).await.unwrap().is_empty());
        let another = world.clock.new_id();
        assert_eq!(sending::gone_owners(&mut tx, another).await.unwrap(), [world.process]);
        assert_eq!(sending::release(&mut tx, world.process, world.clock.now()).await.unwrap(), 4);
        tx.commit().await.unwrap();
        let due = claimed(&db, &world, Room { in_all: 2, ..ROOM }).await;
        assert_eq!(seqs(&due), [2, 21], "and all together no more than asked for");
        let due = claimed(&db, &world, Room { per_organization: 3, ..ROOM }).await;
        assert_eq!(seqs(&due), [3], "and an organization no more than its share");
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
        let in_hand = deliveries::find(&mut tx, &scope, due[2].id).await.unwrap().unwrap();
        assert_eq!(deliveries::replay(&mut tx, &in_hand, now).await.unwrap(), Replay::InFlight);
        assert_eq!(deliveries::replay(&mut tx, &only.items[0], now).await.unwrap(), Replay::Again);
        assert_eq!(deliveries::find(&mut tx, &scope, due[1].id).await.unwrap().unwrap().attempts, 0);
        assert_eq!(replayed(&mut tx, to, (1, 3), Some(DeliveryState::Dead), now).await.count, 0);
        assert_eq!(replayed(&mut tx, to, (2, 9), None, now).await, Replayed { count: 0, next_seq: None });
        tx.commit().await.unwrap();
        let later = now + TimeDelta::days(8);
        let mut tx = db.write().await.unwrap();
        assert_eq!(deliveries::trim(&mut tx, DeliveryState::Delivered, now - TimeDelta::days(1), 10).await.unwrap(), 0);
        assert_eq!(deliveries::trim(&mut tx, DeliveryState::Dead, later, 10).await.unwrap(), 0);
        assert_eq!(replayed(&mut tx, to, (1, 1), None, now).await.count, 1);
        tx.commit().await.unwrap();
        let due = claimed(&db, &world, ROOM).await;
        finished(&db, &world, due[0].id, DeliveryState::Delivered).await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(deliveries::trim(&mut tx, DeliveryState::Delivered, later, 10).await.unwrap(), 1);
        assert_eq!(deliveries::count_pending(&mut tx).await.unwrap(), 2);
        let off = SubscriptionUpdate { is_enabled: Some(false), ..SubscriptionUpdate::default() };
        assert_eq!(deliveries::trim_abandoned(&mut tx, later, 10).await.unwrap(), 0, "they wait for their turn");
        update(&mut tx, &scope, to, &off, now).await.unwrap().unwrap();
        assert_eq!(deliveries::trim_abandoned(&mut tx, later, 10).await.unwrap(), 0, "they are in hand");
        sending::release(&mut tx, world.process, world.clock.now()).await.unwrap();
        assert_eq!(deliveries::trim_abandoned(&mut tx, now - TimeDelta::days(1), 10).await.unwrap(), 0);
        assert_eq!(deliveries::trim_abandoned(&mut tx, later, 1).await.unwrap(), 1);
        let left = deliveries::walk(&mut tx, &scope, to, None, first(10)).await.unwrap();
        assert_eq!(left.items.iter().map(|row| row.seq).collect::<Vec<_>>(), [2], "the last of them go first");
        assert_eq!(deliveries::trim_abandoned(&mut tx, later, 10).await.unwrap(), 1);
    }

    async fn what_waits_to_be_tried_again_is_hurried_and_what_waits_behind_it_is_not(db) {
        let world = World::new(&db, "a").await;
        let to = subscribed(&db, &world, "One").await;
        let device = Some(world.clock.new_id());
        queued(&db, &[delivery(&world, to, 1, device), delivery(&world, to, 2, device)]).await;
        let first = claimed(&db, &world, ROOM).await;
        finished(&db, &world, first[0].id, DeliveryState::Pending).await;
        assert!(!due(&db, &world, ROOM).await);
        let mut tx = db.write().await.unwrap();
        let both = deliveries::walk(&mut tx, &world.scope(), to, None, crate::testing::first(9)).await.unwrap().items;
        assert_eq!((both[0].seq, both[0].next_at), (2, None), "it waits for the one before it");
        assert!(both[1].next_at.is_some_and(|at| at > world.clock.now()));
        let now = world.clock.now();
        assert_eq!(deliveries::replay(&mut tx, &both[0], now).await.unwrap(), Replay::Behind);
        assert_eq!(deliveries::replay(&mut tx, &both[1], now).await.unwrap(), Replay::Hurried);
        tx.commit().await.unwrap();
        let again = claimed(&db, &world, ROOM).await;
        assert_eq!((seqs(&again), again[0].attempts), (vec![1], 1), "it keeps its attempts");
    }

    async fn an_earlier_one_that_is_sent_again_goes_first(db) {
        let world = World::new(&db, "a").await;
        let to = subscribed(&db, &world, "One").await;
        let device = Some(world.clock.new_id());
        let rows: Vec<_> = (1..=4).map(|seq| delivery(&world, to, seq, device)).collect();
        queued(&db, &rows[..3]).await;
        for expected in [1, 2] {
            let due = claimed(&db, &world, ROOM).await;
            assert_eq!(seqs(&due), [expected]);
            finished(&db, &world, due[0].id, DeliveryState::Dead).await;
        }
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        assert_eq!(replayed(&mut tx, to, (1, 9), Some(DeliveryState::Dead), now).await.count, 2);
        tx.commit().await.unwrap();
        queued(&db, &rows[3..]).await;
        for expected in [1, 2, 3, 4] {
            let due = claimed(&db, &world, ROOM).await;
            assert_eq!(seqs(&due), [expected]);
            assert!(claimed(&db, &world, ROOM).await.is_empty());
            finished(&db, &world, due[0].id, DeliveryState::Delivered).await;
        }
        // While a later one is being sent, an earlier one comes back; the later one then waits for it.
        queued(&db, &[delivery(&world, to, 5, device)]).await;
        let five = claimed(&db, &world, ROOM).await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(replayed(&mut tx, to, (4, 4), None, now).await.count, 1);
        tx.commit().await.unwrap();
        let mut tx = db.write().await.unwrap();
        assert_eq!(sending::release_some(&mut tx, world.process, &[five[0].id], world.clock.now()).await.unwrap(), 1);
        tx.commit().await.unwrap();
        assert_eq!(seqs(&claimed(&db, &world, ROOM).await), [4]);
    }

    async fn a_range_is_sent_again_in_portions(db) {
        let world = World::new(&db, "a").await;
        let to = subscribed(&db, &world, "One").await;
        let rows: Vec<_> = (1..=5).map(|seq| delivery(&world, to, seq, None)).collect();
        queued(&db, &rows).await;
        tamper(&db, "UPDATE webhook_delivery SET state = 'dead', ended_at = created_at, next_at = NULL").await;
        tamper(&db, "UPDATE webhook_delivery SET state = 'delivered' WHERE seq = 2").await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        let range = Range { from: 1, to: 9, state: Some(DeliveryState::Dead), limit: 2 };
        let answer = deliveries::replay_range(&mut tx, to, range, now).await.unwrap();
        assert_eq!(answer, Replayed { count: 2, next_seq: Some(4) });
        let range = Range { state: None, limit: 1, ..range };
        let answer = deliveries::replay_range(&mut tx, to, range, now).await.unwrap();
        assert_eq!(answer, Replayed { count: 1, next_seq: Some(4) }, "of both states, the first first");
        let answer = replayed(&mut tx, to, (4, 9), None, now).await;
        assert_eq!(answer, Replayed { count: 2, next_seq: None });
        assert_eq!(pending(&mut tx, world.org).await.unwrap(), HashMap::from([(to, 5)]));
    }

    async fn many_rows_of_one_that_hangs_are_not_looked_at(db) {
        let (bad, good) = (World::new(&db, "bad").await, World::new(&db, "good").await);
        let hanging = subscribed(&db, &bad, "Hangs").await;
        let devices: Vec<DeviceId> = (0..20).map(|_| bad.clock.new_id()).collect();
        let device = |seq: i64| (seq % 2 == 0).then(|| devices[usize::try_from(seq).unwrap() % devices.len()]);
        let rows: Vec<_> = (1..=5_000).map(|seq| delivery(&bad, hanging, seq, device(seq))).collect();
        queued(&db, &rows).await;
        let calm = subscribed(&db, &good, "Calm").await;
        queued(&db, &[delivery(&good, calm, 1, None)]).await;
        let room = Room { in_all: 3, ..ROOM };
        let due = claimed(&db, &bad, room).await;
        assert_eq!(seqs(&due), [1, 1, 2], "the other organization has its turn");
        assert!(due.iter().any(|due| due.subscription_id == calm));
        let rest = claimed(&db, &bad, ROOM).await;
        assert_eq!(seqs(&rest), [3, 4]);
        assert!(!self::due(&db, &bad, ROOM).await);
        assert!(finished(&db, &bad, rest[0].id, DeliveryState::Delivered).await);
        // The numbers of one device are far apart: the next delivery has no device, or a device with nothing in flight.
        assert_eq!(seqs(&claimed(&db, &bad, ROOM).await), [5]);
        sqlite_reads_only_what_it_takes(&db, &bad).await;
    }

    async fn who_was_served_goes_to_the_end(db) {
        let world = World::new(&db, "a").await;
        let mut order = Vec::new();
        for name in ["One", "Two", "Three"] {
            let id = subscribed(&db, &world, name).await;
            let rows: Vec<_> = (1..=3).map(|seq| delivery(&world, id, seq, None)).collect();
            queued(&db, &rows).await;
            world.clock.advance(TimeDelta::seconds(1));
        }
        for _ in 0..9 {
            let due = claimed(&db, &world, Room { in_all: 1, ..ROOM }).await;
            order.push(due[0].subscription_id);
            world.clock.advance(TimeDelta::seconds(1));
            assert!(finished(&db, &world, due[0].id, DeliveryState::Delivered).await);
        }
        assert_eq!(order[..3], order[3..6]);
        assert_eq!(order[..3], order[6..]);
        assert!(order[0] != order[1] && order[1] != order[2] && order[0] != order[2]);
        assert!(!due(&db, &world, ROOM).await);
    }

    async fn after_a_removal_nothing_is_pending_whoever_queues_meanwhile(db) {
        let world = World::new(&db, "a").await;
        let id = subscribed(&db, &world, "One").await;
        queued(&db, &[delivery(&world, id, 1, None)]).await;
        let in_hand = claimed(&db, &world, ROOM).await;
        let mut removing = db.write().await.unwrap();
        Subscription::lock(&mut removing, &world.scope(), id).await.unwrap().unwrap();
        let late = delivery(&world, id, 2, None);
        let other = db.clone();
        #[expect(clippy::disallowed_methods, reason = "a second writer that waits for the first")]
        let queueing = tokio::spawn(async move {
            let mut tx = other.write().await.unwrap();
            let there = lock_all(&mut tx, &[id]).await.unwrap();
            if there.contains_key(&id) {
                deliveries::insert(&mut tx, &[late]).await.unwrap();
            }
            tx.commit().await.unwrap();
            there.len()
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!queueing.is_finished(), "it waits for the removal");
        assert!(Subscription::remove(&mut removing, &world.scope(), id, world.clock.now()).await.unwrap());
        removing.commit().await.unwrap();
        assert_eq!(queueing.await.unwrap(), 0);
        assert!(!finished(&db, &world, in_hand[0].id, DeliveryState::Pending).await, "what was in hand is given up");
        let mut tx = db.read().await.unwrap();
        assert_eq!(deliveries::count_pending(&mut tx).await.unwrap(), 0);
        assert!(!sending::has_due(&mut tx, world.clock.now(), ROOM).await.unwrap());
    }
}

/// The statements that choose the next delivery read by indexes that hold nothing else.
async fn sqlite_reads_only_what_it_takes(db: &Db, world: &World) {
    let Tx::Sqlite(mut tx) = db.read().await.unwrap() else { return };
    let plan = async |tx: &mut crate::db::Held<sqlx::Sqlite>, sql: String| {
        let sql = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let rows: Vec<(i64, i64, i64, String)> = sqlx::query_as(sql)
            .bind(world.clock.now())
            .bind(4_i64)
            .bind(6_i64)
            .bind(10_i64)
            .fetch_all(&mut **tx)
            .await
            .unwrap();
        rows.into_iter().map(|row| row.3).collect::<Vec<_>>()
    };
    let waiting = plan(&mut tx, sending::WAITING.to_owned()).await;
    assert!(waiting.iter().any(|step| step.contains("webhook_subscription_due")), "{waiting:?}");
    for step in waiting.iter().filter(|step| step.contains("webhook_delivery")) {
        assert!(step.contains("webhook_delivery_owner"), "{waiting:?}");
    }
    let ready = format!("{} x'00' {}", sending::READY[0], sending::READY[1]);
    let ready = plan(&mut tx, format!("{ready} $1 {} $2 {}", sending::READY[2], sending::READY[3])).await;
    assert!(
        ready.iter().all(|step| step.contains("SEARCH") && step.contains("webhook_delivery_ready")),
        "{ready:?}"
    );
}

on_both! {
    async fn what_waits_for_nothing_is_put_in_its_place(db) {
        let world = World::new(&db, "a").await;
        let device: DeviceId = world.clock.new_id();
        let to = subscribed(&db, &world, "One").await;
        queued(&db, &[delivery(&world, to, 1, Some(device)), delivery(&world, to, 2, Some(device))]).await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(deliveries::mend(&mut tx, world.clock.now(), 10).await.unwrap(), 0, "all is in its place");
        tx.commit().await.unwrap();
        // As a process leaves it that does not know of turns.
        for stray in ["UPDATE webhook_delivery SET next_at = NULL", "UPDATE webhook_subscription SET due_at = NULL"] {
            tamper(&db, stray).await;
            assert!(claimed(&db, &world, ROOM).await.is_empty());
            let mut tx = db.write().await.unwrap();
            assert_eq!(deliveries::mend(&mut tx, world.clock.now(), 10).await.unwrap(), 1);
            assert_eq!(deliveries::mend(&mut tx, world.clock.now(), 10).await.unwrap(), 0);
            tx.commit().await.unwrap();
        }
        assert_eq!(seqs(&claimed(&db, &world, ROOM).await), [1]);
    }
}
