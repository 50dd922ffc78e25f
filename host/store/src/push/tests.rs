use std::time::Duration;

use heddle_core::adapter::VendorSite;

use super::*;
use crate::controllers::{self, Controller, ControllerFilter, ControllerUpdate};
use crate::object::Object as _;
use crate::testing::{World, on_both, page, tamper};

fn stands(state: PushState, at: Timestamp) -> Push {
    Push {
        state: Some(state),
        since: Some(at),
        reason: Some("why".to_owned()).filter(|_| state != PushState::Live),
    }
}

async fn found(tx: &mut Tx, world: &World) -> Controller {
    Controller::find(tx, &world.scope(), world.controller).await.unwrap().unwrap()
}

async fn free_of(tx: &mut Tx, vendor: &str, which: Free) -> usize {
    free(tx, &[vendor.to_owned()], which, &[], 10).await.unwrap().len()
}

on_both! {
    async fn one_process_holds_the_channels_of_a_controller(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (id, other) = (world.controller, world.clock.new_id());
        assert_eq!((free_of(&mut tx, "acme", Free::All).await, free_of(&mut tx, "other", Free::All).await), (1, 0));
        assert!(free(&mut tx, &[], Free::All, &[], 10).await.unwrap().is_empty());
        let vendors = ["acme".to_owned()];
        assert!(free(&mut tx, &vendors, Free::All, &[world.org], 10).await.unwrap().is_empty());
        assert_eq!(free(&mut tx, &vendors, Free::All, &[world.clock.new_id()], 10).await.unwrap(), [id]);
        assert_eq!(claim(&mut tx, &[id], world.process).await.unwrap().len(), 1);
        assert!(claim(&mut tx, &[id], other).await.unwrap().is_empty());
        assert!(claim(&mut tx, &[], other).await.unwrap().is_empty());
        assert_eq!(free_of(&mut tx, "acme", Free::All).await, 0);
        let held_by = held(&mut tx, world.process).await.unwrap();
        assert_eq!((held_by[0].target.id, held_by[0].push_enabled, &held_by[0].push), (id, true, &Push::default()));
        assert!(held(&mut tx, other).await.unwrap().is_empty());
        release(&mut tx, id, other).await.unwrap();
        assert_eq!(held(&mut tx, world.process).await.unwrap().len(), 1, "it is not the other one's to give up");
        release(&mut tx, id, world.process).await.unwrap();
        assert_eq!(free_of(&mut tx, "acme", Free::All).await, 1);
        let listed = ["b", "a"].map(|id| VendorSite { id: id.to_owned(), name: format!("Site {id}") });
        crate::vendor_sites::record(&mut tx, id, &listed, world.clock.now()).await.unwrap();
        let named = sites(&mut tx, id).await.unwrap().into_iter().map(|site| site.name).collect::<Vec<_>>();
        assert_eq!(named, ["Site a", "Site b"]);
        tx.commit().await.unwrap();
        let gone = world.clock.new_id();
        let mut tx = db.write().await.unwrap();
        claim(&mut tx, &[id], gone).await.unwrap();
        assert_eq!(abandoned(&mut tx, world.process).await.unwrap(), [gone]);
        assert!(abandoned(&mut tx, gone).await.unwrap().is_empty());
        let now = world.clock.now();
        set_state(&mut tx, id, gone, &stands(PushState::Live, now)).await.unwrap();
        release_all(&mut tx, gone, now).await.unwrap();
        assert_eq!(found(&mut tx, &world).await.push.state, Some(PushState::Connecting));
        assert_eq!(free_of(&mut tx, "acme", Free::All).await, 1);
        tx.commit().await.unwrap();
        tamper(&db, "UPDATE organization SET revision = revision + 1, deleted_at = created_at").await;
        let mut tx = db.read().await.unwrap();
        assert_eq!(free_of(&mut tx, "acme", Free::All).await, 0, "of a removed organization");
    }

    async fn a_claim_waits_for_nobody(db) {
        let world = World::new(&db, "one").await;
        let (id, now) = (world.controller, world.clock.now());
        let mut tx = db.write().await.unwrap();
        controllers::schedule_now(&mut tx, &world.scope(), id, now).await.unwrap();
        tx.commit().await.unwrap();
        // On SQLite a transaction that writes is alone.
        if db.kind() == "postgres" {
            let mut other = db.write().await.unwrap();
            hooks::set_secret(&mut other, id, Some(b"one")).await.unwrap();
            let mut tx = db.write().await.unwrap();
            let claims = async {
                let channels = claim(&mut tx, &[id], world.process).await.unwrap();
                let readings = controllers::claim(&mut tx, &[id], world.process, now).await.unwrap();
                (channels.len(), readings.len())
            };
            assert_eq!(tokio::time::timeout(Duration::from_secs(5), claims).await.unwrap(), (0, 0));
            other.commit().await.unwrap();
            assert_eq!(claim(&mut tx, &[id], world.process).await.unwrap().len(), 1);
        }
    }

    async fn giving_up_all_channels_waits_in_the_order_of_controllers(db) {
        let world = World::new(&db, "one").await;
        let (first, second, now) = (world.controller, world.clock.new_id(), world.clock.now());
        let mut tx = db.write().await.unwrap();
        controllers::insert(&mut tx, &world.new_controller(second, "core")).await.unwrap();
        claim(&mut tx, &[second], world.process).await.unwrap();
        // Written last, it lies behind the other one.
        claim(&mut tx, &[first], world.process).await.unwrap();
        tx.commit().await.unwrap();
        let mut other = db.write().await.unwrap();
        hooks::set_secret(&mut other, first, Some(b"one")).await.unwrap();
        let releasing = async {
            let mut tx = db.write().await.unwrap();
            release_all(&mut tx, world.process, now).await.unwrap();
            tx.commit().await.unwrap();
        };
        let writing = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            hooks::set_secret(&mut other, second, Some(b"one")).await.unwrap();
            other.commit().await.unwrap();
        };
        tokio::join!(releasing, writing);
        assert!(held(&mut db.read().await.unwrap(), world.process).await.unwrap().is_empty());
    }

    async fn an_event_tells_of_live_and_polling_in_turn(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (id, me, now) = (world.controller, world.process, world.clock.now());
        let place = Some(Told { org_id: world.org, site_id: world.site });
        assert_eq!(set_state(&mut tx, id, me, &stands(PushState::Live, now)).await.unwrap(), None, "it is not its own");
        claim(&mut tx, &[id], me).await.unwrap();
        for (state, told) in [
            (PushState::Connecting, None),
            (PushState::Live, place),
            (PushState::Connecting, None),
            (PushState::Live, None),
            (PushState::Polling, place),
            (PushState::Polling, None),
            (PushState::Connecting, None),
            (PushState::Live, place),
        ] {
            assert_eq!(set_state(&mut tx, id, me, &stands(state, now)).await.unwrap(), told, "{state}");
            let known = found(&mut tx, &world).await;
            assert_eq!((known.push.state, known.push.since, known.revision), (Some(state), Some(now), 1));
        }
        let of = |state| ControllerFilter { push_state: Some(state), ..ControllerFilter::default() };
        let scope = world.scope();
        assert_eq!(controllers::list(&mut tx, &scope, &of(PushState::Live), page()).await.unwrap().1, 1);
        assert_eq!(controllers::list(&mut tx, &scope, &of(PushState::Polling), page()).await.unwrap().1, 0);
        assert_eq!(set_state(&mut tx, id, me, &Push::default()).await.unwrap(), None);
        assert_eq!(set_state(&mut tx, id, me, &stands(PushState::Live, now)).await.unwrap(), place, "all is forgotten");
    }

    async fn what_a_person_switched_off_is_looked_for_until_it_says_so(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (id, me, now) = (world.controller, world.process, world.clock.now());
        let current = found(&mut tx, &world).await;
        assert!(current.push_enabled);
        let off = ControllerUpdate { push_enabled: Some(false), ..ControllerUpdate::default() };
        let updated = controllers::update(&mut tx, &world.scope(), &current, &off, now).await.unwrap().unwrap();
        assert_eq!((updated.push_enabled, updated.revision, updated.next_sync_at), (false, 2, None));
        assert_eq!(free_of(&mut tx, "acme", Free::All).await, 1);
        claim(&mut tx, &[id], me).await.unwrap();
        set_state(&mut tx, id, me, &stands(PushState::Polling, now)).await.unwrap();
        release(&mut tx, id, me).await.unwrap();
        assert_eq!((free_of(&mut tx, "acme", Free::All).await, free_of(&mut tx, "acme", Free::Telling).await), (0, 0));
        assert_eq!(forget(&mut tx, &["acme".to_owned()]).await.unwrap(), 0);
        assert_eq!(forget(&mut tx, &["other".to_owned()]).await.unwrap(), 1);
        assert_eq!(found(&mut tx, &world).await.push, Push::default());
        assert_eq!(forget(&mut tx, &[]).await.unwrap(), 0);
    }
}

#[test]
fn a_controller_without_channels_shows_none() {
    assert_eq!(serde_json::json!(Push::default()), serde_json::Value::Null);
    let shown = serde_json::json!(Push { state: Some(PushState::Live), since: None, reason: None });
    assert_eq!(shown, serde_json::json!({ "state": "live", "since": null, "reason": null }));
}
