use chrono::TimeDelta;
use heddle_core::webhook::DeliveryState;
use heddle_core::{DeviceId, EventId};
use serde_json::json;

use super::deliveries::NewDelivery;
use super::sending::{Attempt, Due, Room};
use super::templates::NewTemplate;
use super::*;
use crate::db::Db;
use crate::testing::{World, on_both, page};
use crate::webhooks::deliveries::DeliveryId;
use crate::webhooks::templates::Template;

mod turns;

const ROOM: Room = Room { per_subscription: 4, per_organization: 6, in_all: 100, reserved: 0 };

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
        site_id: None,
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
    let due = sending::claim(&mut tx, world.process, world.clock.now(), room).await.unwrap();
    tx.commit().await.unwrap();
    due
}

async fn finished(db: &Db, world: &World, id: DeliveryId, state: DeliveryState) -> bool {
    let mut tx = db.write().await.unwrap();
    let is_ours = sending::finish(&mut tx, id, world.process, &attempt(world, state)).await.unwrap();
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
        assert_eq!(Subscription::find(&mut tx, &scope, made.id).await.unwrap().as_ref(), Some(&made));
        assert_eq!(Subscription::lock(&mut tx, &scope, made.id).await.unwrap().as_ref(), Some(&made));
        assert_eq!(Subscription::find(&mut tx, &foreign, made.id).await.unwrap(), None);
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
        assert!(!Subscription::remove(&mut tx, &foreign, made.id, now).await.unwrap());
        assert!(Subscription::remove(&mut tx, &scope, made.id, now).await.unwrap());
        assert_eq!(Subscription::find(&mut tx, &scope, made.id).await.unwrap(), None);
        assert_eq!(find_sealed(&mut tx, made.id).await.unwrap(), None);
        assert_eq!(deliveries::count_pending(&mut tx).await.unwrap(), 0);
    }

    async fn enabled_subscriptions_listen_by_the_rights_that_their_authors_have_now(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let made = insert(&mut tx, &new(&world, "One")).await.unwrap();
        insert(&mut tx, &NewSubscription { is_enabled: false, ..new(&world, "Off") }).await.unwrap();
        let author = Author {
            username: "a".to_owned(), role: Role::OrgAdmin, is_active: true, is_member: true, has_all_sites: true,
        };
        assert_eq!(made.author, author);
        let expected = Listening {
            id: made.id, name: "One".to_owned(), events: made.events.clone(), site_id: None, after_seq: 7, unqueued: 0,
            told_problem: None, author: author.clone(),
        };
        assert_eq!(listening(&mut tx, world.org).await.unwrap(), [expected]);
        let now = world.clock.now();
        note(&mut tx, made.id, Some("no"), now).await.unwrap();
        note(&mut tx, made.id, Some("no again"), now).await.unwrap();
        let failing = Subscription::find(&mut tx, &world.scope(), made.id).await.unwrap().unwrap();
        assert_eq!((failing.consecutive_failures, failing.last_error.as_deref()), (2, Some("no again")));
        note(&mut tx, made.id, None, now).await.unwrap();
        let fine = Subscription::find(&mut tx, &world.scope(), made.id).await.unwrap().unwrap();
        assert_eq!((fine.consecutive_failures, fine.last_error, fine.last_delivered_at), (0, None, Some(now)));
        note_told(&mut tx, made.id, Some("lost")).await.unwrap();
        tx.commit().await.unwrap();
        let grant = crate::grants::NewGrant {
            user_id: world.user, site_id: world.site, level: heddle_core::SiteLevel::Read, granted_by: world.user, now,
        };
        let mut tx = db.write().await.unwrap();
        crate::grants::insert(&mut tx, &grant).await.unwrap();
        tx.commit().await.unwrap();
        crate::testing::tamper(&db, "UPDATE app_user SET is_active = FALSE").await;
        let mut tx = db.read().await.unwrap();
        let found = listening(&mut tx, world.org).await.unwrap();
        assert_eq!(found[0].author, Author { is_active: false, has_all_sites: false, ..author });
        assert_eq!(found[0].told_problem.as_deref(), Some("lost"));
    }

    async fn what_was_not_queued_is_counted_until_it_is_caught_up_with(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let id = insert(&mut tx, &new(&world, "One")).await.unwrap().id;
        let seen = async |tx: &mut Tx| {
            let row = Subscription::find(tx, &world.scope(), id).await.unwrap().unwrap();
            (row.unqueued, row.unqueued_from, row.unqueued_to)
        };
        note_unqueued(&mut tx, id, Unqueued { count: 2, from: 10, to: 12 }).await.unwrap();
        note_unqueued(&mut tx, id, Unqueued { count: 3, from: 20, to: 30 }).await.unwrap();
        assert_eq!(seen(&mut tx).await, (5, Some(10), Some(30)));
        note_caught_up(&mut tx, id, (11, 40), 9).await.unwrap();
        assert_eq!(seen(&mut tx).await, (5, Some(10), Some(30)), "the first of them is not among these");
        note_caught_up(&mut tx, id, (1, 12), 2).await.unwrap();
        assert_eq!(seen(&mut tx).await, (3, Some(13), Some(30)));
        note_caught_up(&mut tx, id, (13, 29), 3).await.unwrap();
        assert_eq!(seen(&mut tx).await, (1, Some(30), Some(30)), "one may be left");
        note_caught_up(&mut tx, id, (30, 30), 1).await.unwrap();
        assert_eq!(seen(&mut tx).await, (0, None, None));
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
        assert_eq!(Template::find(&mut tx, &other.scope(), made.id).await.unwrap(), None);
        assert_eq!(Template::lock(&mut tx, &scope, made.id).await.unwrap().as_ref(), Some(&made));
        assert_eq!(templates::list(&mut tx, &scope, Some("cha"), page()).await.unwrap().1, 1);
        let payload = json!({ "text": 1 });
        let change = (Some("Chats"), Some(&payload));
        let changed = templates::update(&mut tx, &scope, made.id, change, now).await.unwrap().unwrap();
        assert_eq!((changed.name.as_str(), changed.payload()), ("Chats", &payload));
        assert_eq!(templates::uses(&mut tx, made.id).await.unwrap(), 0);
        let with = NewSubscription { template_id: Some(made.id), ..new(&world, "One") };
        let with = insert(&mut tx, &with).await.unwrap();
        assert_eq!(templates::uses(&mut tx, made.id).await.unwrap(), 1);
        Subscription::remove(&mut tx, &scope, with.id, now).await.unwrap();
        assert!(Template::remove(&mut tx, &scope, made.id, now).await.unwrap());
        assert_eq!(Template::find(&mut tx, &scope, made.id).await.unwrap(), None);
        templates::insert(&mut tx, &new_template("chats")).await.unwrap();
        let taken = templates::insert(&mut tx, &new_template("CHATS")).await.unwrap_err();
        assert!(taken.is_unique(templates::NAME_INDEX), "{taken}");
    }
}
