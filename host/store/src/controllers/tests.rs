use chrono::TimeDelta;
use heddle_core::ProcessId;

use super::*;
use crate::organizations::Organization;
use crate::testing::{World, on_both, page, seen};

async fn found(tx: &mut Tx, world: &World) -> Controller {
    Controller::find(tx, &world.scope(), world.controller).await.unwrap().unwrap()
}

/// Changes the controller of a world.
async fn changed(tx: &mut Tx, world: &World, change: &ControllerUpdate, now: Timestamp) -> Controller {
    let current = found(tx, world).await;
    update(tx, &world.scope(), &current, change, now).await.unwrap().unwrap()
}

on_both! {
    async fn a_controller_takes_its_devices_along(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        world.see(&mut tx, &[seen("1")]).await;
        let site = crate::sites::insert(&mut tx, &world.new_site(world.clock.new_id(), "b")).await.unwrap().id;
        let change = ControllerUpdate { site_id: Some(site), name: Some("n".into()), ..Default::default() };
        let updated = changed(&mut tx, &world, &change, now).await;
        assert_eq!((updated.site_id, updated.name.as_str(), updated.tls), (site, "n", TlsPolicy::default()));
        let all = crate::devices::DeviceFilter { site_id: Some(site), ..Default::default() };
        assert_eq!(crate::devices::list(&mut tx, &scope, &all, page()).await.unwrap().1, 1);
        assert!(Controller::remove(&mut tx, &scope, world.controller, now).await.unwrap());
        assert!(!Controller::remove(&mut tx, &scope, world.controller, now).await.unwrap());
        assert_eq!(crate::devices::list(&mut tx, &scope, &all, page()).await.unwrap().1, 0);
        assert!(find_target(&mut tx, &scope, world.controller).await.unwrap().is_none());
        assert!(Controller::restore(&mut tx, &scope, world.controller, now).await.unwrap().is_some());
        assert_eq!(crate::devices::list(&mut tx, &scope, &all, page()).await.unwrap().1, 1);
        assert!(Controller::restore(&mut tx, &scope, world.controller, now).await.unwrap().is_none());
    }

    async fn another_organization_finds_nothing(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let now = a.clock.now();
        assert!(Controller::find(&mut tx, &b.scope(), a.controller).await.unwrap().is_none());
        assert!(find_target(&mut tx, &b.scope(), a.controller).await.unwrap().is_none());
        let own = found(&mut tx, &a).await;
        assert!(update(&mut tx, &b.scope(), &own, &ControllerUpdate::default(), now).await.unwrap().is_none());
        assert!(!Controller::remove(&mut tx, &b.scope(), a.controller, now).await.unwrap());
        assert!(!schedule_now(&mut tx, &b.scope(), a.controller, now).await.unwrap());
        let filter = ControllerFilter { vendor: Some("acme".into()), status: Some(DeviceStatus::Unknown), site_id: Some(a.site), credential_id: Some(a.credential), search: Some("EDGE".into()), ..ControllerFilter::default() };
        assert_eq!(list(&mut tx, &a.scope(), &filter, page()).await.unwrap().1, 1);
        assert_eq!(list(&mut tx, &b.scope(), &filter, page()).await.unwrap().1, 0);
    }

    async fn a_reading_is_due_until_it_is_recorded(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        let none = Except::default();
        assert_eq!(due(&mut tx, world.process, now, &none, 10).await.unwrap().len(), 0);
        assert!(schedule_now(&mut tx, &scope, world.controller, now).await.unwrap());
        let target = due(&mut tx, world.process, now, &none, 10).await.unwrap().remove(0);
        assert_eq!((target.id, target.credential_version), (world.controller, 1));
        for except in [
            Except { controllers: vec![world.clock.new_id(), world.controller], organizations: Vec::new() },
            Except { controllers: Vec::new(), organizations: vec![world.org] },
        ] {
            assert_eq!(due(&mut tx, world.process, now, &except, 10).await.unwrap().len(), 0);
        }
        let mut result = online(now);
        assert!(record_sync(&mut tx, world.controller, &result).await.unwrap());
        assert!(!record_sync(&mut tx, world.controller, &result).await.unwrap());
        assert_eq!(due(&mut tx, world.process, now, &none, 10).await.unwrap().len(), 0);
        result = SyncResult { status: DeviceStatus::Offline, is_read: false, error: Some("no answer".into()), firmware: None, now: now + TimeDelta::seconds(5), ..result };
        assert!(record_sync(&mut tx, world.controller, &result).await.unwrap());
        let found = Controller::find(&mut tx, &scope, world.controller).await.unwrap().unwrap();
        assert_eq!((found.last_sync_at, found.firmware.as_deref(), found.last_error.as_deref()), (Some(now), Some("2"), Some("no answer")));
    }

    async fn a_part_moves_no_time_except_of_a_controller_that_was_never_read(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (now, id) = (world.clock.now(), world.controller);
        let failed = SyncResult { is_read: false, ..online(now) };
        record_part(&mut tx, id, &failed, true).await.unwrap();
        assert_eq!(found(&mut tx, &world).await.next_sync_at, None);
        record_part(&mut tx, id, &online(now), true).await.unwrap();
        let first = found(&mut tx, &world).await;
        assert_eq!((first.next_sync_at, first.last_sync_at), (Some(now), None), "all of it is read at once");
        let whole = online(now);
        record_sync(&mut tx, id, &whole).await.unwrap();
        record_part(&mut tx, id, &online(now + TimeDelta::seconds(5)), true).await.unwrap();
        let after = found(&mut tx, &world).await;
        assert_eq!((after.next_sync_at, after.last_sync_at), (Some(whole.next_sync_at), Some(now)));
    }

    async fn a_release_is_learned_judged_and_allowed(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now, id) = (world.scope(), world.clock.now(), world.controller);
        assert_eq!(found(&mut tx, &world).await.release_state, ReleaseState::Unknown);
        assert_eq!(releases::running(&mut tx, "acme", None, 10).await.unwrap(), [], "it was never read");
        let asked = find_target(&mut tx, &scope, id).await.unwrap().unwrap();
        let held = releases::hold(&mut tx, &asked).await.unwrap().unwrap();
        assert_eq!((held.id, held.firmware, held.release_state), (id, None, ReleaseState::Unknown));
        releases::learn(&mut tx, id, ("Edge", "2"), ReleaseState::Untested, now).await.unwrap();
        let moved = ControllerTarget { url: "https://192.0.2.9".into(), ..asked };
        assert_eq!(releases::hold(&mut tx, &moved).await.unwrap(), None, "another one was asked");
        let judged = releases::running(&mut tx, "acme", None, 10).await.unwrap().remove(0);
        let known = (judged.product.as_deref(), judged.firmware.as_deref(), judged.release_state);
        assert_eq!(known, (Some("Edge"), Some("2"), ReleaseState::Untested));
        assert_eq!(releases::running(&mut tx, "acme", Some(id), 10).await.unwrap(), []);
        assert_eq!(releases::running(&mut tx, "other", None, 10).await.unwrap(), []);
        let allowed = releases::allow(&mut tx, &scope, id, Some("2"), ReleaseState::Allowed, now).await.unwrap().unwrap();
        assert_eq!((allowed.allowed_release.as_deref(), allowed.release_state), (Some("2"), ReleaseState::Allowed));
        let target = find_target(&mut tx, &scope, id).await.unwrap().unwrap();
        assert_eq!((target.firmware.as_deref(), target.allowed_release.as_deref()), (Some("2"), Some("2")));
        assert!(!releases::judge(&mut tx, &judged, ReleaseState::Tested, now).await.unwrap(), "it was allowed meanwhile");
        let judged = releases::running(&mut tx, "acme", None, 10).await.unwrap().remove(0);
        assert!(releases::judge(&mut tx, &judged, ReleaseState::Tested, now).await.unwrap());
        let of = |state| ControllerFilter { release_state: Some(state), ..Default::default() };
        assert_eq!(list(&mut tx, &scope, &of(ReleaseState::Tested), page()).await.unwrap().1, 1);
        assert_eq!(list(&mut tx, &scope, &of(ReleaseState::Allowed), page()).await.unwrap().1, 0);
        let read = SyncResult { release_state: Some(ReleaseState::Untested), ..online(now) };
        record_sync(&mut tx, id, &read).await.unwrap();
        record_sync(&mut tx, id, &online(now)).await.unwrap();
        assert_eq!(found(&mut tx, &world).await.release_state, ReleaseState::Untested, "nothing was said of it");
        let taken = releases::allow(&mut tx, &scope, id, None, ReleaseState::Untested, now).await.unwrap().unwrap();
        assert_eq!(taken.allowed_release, None);
    }

    async fn a_reading_of_a_controller_that_is_another_by_now_is_dropped(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        let read = find_target(&mut tx, &scope, world.controller).await.unwrap().unwrap();
        let site = crate::sites::insert(&mut tx, &world.new_site(world.clock.new_id(), "b")).await.unwrap().id;
        let moved = ControllerUpdate { site_id: Some(site), ..Default::default() };
        changed(&mut tx, &world, &moved, now).await;
        take(&mut tx, &world).await;
        let held = hold(&mut tx, &read, world.process).await.unwrap().unwrap();
        assert_eq!((held.site_id, held.last_sync_at), (site, None), "it is recorded where it is now");
        assert!(Controller::remove(&mut tx, &scope, world.controller, now).await.unwrap());
        take(&mut tx, &world).await;
        assert_eq!(hold(&mut tx, &read, world.process).await.unwrap(), None);
        Controller::restore(&mut tx, &scope, world.controller, now).await.unwrap().unwrap();
        take(&mut tx, &world).await;
        assert!(hold(&mut tx, &read, world.process).await.unwrap().is_some());
        let elsewhere = ControllerUpdate { url: Some("https://192.0.2.2".into()), ..Default::default() };
        let updated = changed(&mut tx, &world, &elsewhere, now).await;
        assert_eq!(updated.next_sync_at, Some(now), "it is read there at once");
        take(&mut tx, &world).await;
        assert_eq!(hold(&mut tx, &read, world.process).await.unwrap(), None);
        let settings = json!({ "node": "b", "rates": [1e5, 0.1, 7], "a": { "z": null, "ü": true } });
        for settings in [settings, json!({ "node": "c" })] {
            let with = ControllerUpdate { settings: Some(settings), ..Default::default() };
            let before = find_target(&mut tx, &scope, world.controller).await.unwrap().unwrap();
            changed(&mut tx, &world, &with, now).await;
            let after = find_target(&mut tx, &scope, world.controller).await.unwrap().unwrap();
            take(&mut tx, &world).await;
            assert_eq!(hold(&mut tx, &before, world.process).await.unwrap(), None, "{with:?}");
            assert!(hold(&mut tx, &after, world.process).await.unwrap().is_some(), "{with:?}");
        }
    }

    async fn a_controller_is_read_by_the_process_that_claimed_it(db) {
        let world = World::new(&db, "one").await;
        let (scope, now) = (world.scope(), world.clock.now());
        let mut tx = db.write().await.unwrap();
        assert!(claim(&mut tx, &[world.controller], world.process, now).await.unwrap().is_empty(), "it is not due");
        schedule_now(&mut tx, &scope, world.controller, now).await.unwrap();
        let read = find_target(&mut tx, &scope, world.controller).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        let (one, two): (ProcessId, ProcessId) = (world.process, world.clock.new_id());
        let try_it = |owner| {
            let (db, id) = (db.clone(), world.controller);
            async move {
                let mut tx = db.write().await.unwrap();
                let claimed = claim(&mut tx, &[id], owner, now).await.unwrap().len();
                tx.commit().await.unwrap();
                claimed
            }
        };
        let (a, b) = tokio::join!(try_it(one), try_it(two));
        assert_eq!(a + b, 1, "of two that try one gets it");
        let (owner, other) = if a == 1 { (one, two) } else { (two, one) };
        let mut tx = db.write().await.unwrap();
        assert_eq!(due(&mut tx, other, now, &Except::default(), 10).await.unwrap().len(), 0);
        assert_eq!(due(&mut tx, owner, now, &Except::default(), 10).await.unwrap().len(), 1, "its own, again");
        assert_eq!(hold(&mut tx, &read, other).await.unwrap(), None, "who lost it records nothing");
        assert!(hold(&mut tx, &read, owner).await.unwrap().is_some());
        assert_eq!(abandoned(&mut tx, other).await.unwrap(), [owner], "it never registered");
        assert!(abandoned(&mut tx, owner).await.unwrap().is_empty());
        release(&mut tx, world.controller, other).await.unwrap();
        assert_eq!(due(&mut tx, other, now, &Except::default(), 10).await.unwrap().len(), 0);
        release(&mut tx, world.controller, owner).await.unwrap();
        assert_eq!(claim(&mut tx, &[world.controller], other, now).await.unwrap().len(), 1);
        release_all(&mut tx, other).await.unwrap();
        assert_eq!(claim(&mut tx, &[world.controller], owner, now).await.unwrap().len(), 1);
        record_sync(&mut tx, world.controller, &online(now)).await.unwrap();
        assert_eq!(hold(&mut tx, &read, owner).await.unwrap(), None, "it is free when it was recorded");
        assert!(claim(&mut tx, &[], owner, now).await.unwrap().is_empty());
    }

    async fn only_another_way_to_reach_it_makes_a_controller_due(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (_scope, now) = (world.scope(), world.clock.now());
        let same = ControllerUpdate { url: Some("https://192.0.2.1".into()), tls: Some(TlsPolicy::default()), credential_id: Some(world.credential), name: Some("n".into()), ..Default::default() };
        let updated = changed(&mut tx, &world, &same, now).await;
        assert_eq!(updated.next_sync_at, None);
        let tls = TlsPolicy { mode: heddle_core::tls::TlsMode::Insecure, ..TlsPolicy::default() };
        let other = ControllerUpdate { tls: Some(tls), ..Default::default() };
        let updated = changed(&mut tx, &world, &other, now).await;
        assert_eq!(updated.next_sync_at, Some(now));
    }

    async fn what_is_known_of_a_release_is_forgotten_when_the_controller_is_reached_otherwise(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now, id) = (world.scope(), world.clock.now(), world.controller);
        let credential = world.new_credential(world.clock.new_id(), "another");
        let credential = crate::credentials::insert(&mut tx, &credential).await.unwrap().id;
        let known = |controller: Controller| {
            (controller.product, controller.firmware, controller.allowed_release, controller.release_state)
        };
        let renamed = ControllerUpdate { name: Some("n".into()), sync_interval_secs: Some(90), ..Default::default() };
        for (update, is_kept) in [
            (renamed, true),
            (ControllerUpdate { url: Some("https://192.0.2.7".into()), ..Default::default() }, false),
            (ControllerUpdate { credential_id: Some(credential), ..Default::default() }, false),
            (ControllerUpdate { settings: Some(json!({"node": "b"})), ..Default::default() }, false),
        ] {
            releases::learn(&mut tx, id, ("Edge", "2"), ReleaseState::Untested, now).await.unwrap();
            releases::allow(&mut tx, &scope, id, Some("2"), ReleaseState::Allowed, now).await.unwrap().unwrap();
            let updated = changed(&mut tx, &world, &update, now).await;
            let two = Some("2".to_owned());
            let expected = if is_kept {
                (Some("Edge".to_owned()), two.clone(), two, ReleaseState::Allowed)
            } else {
                (None, None, None, ReleaseState::Unknown)
            };
            assert_eq!(known(updated), expected, "{update:?}");
        }
    }

    async fn a_reading_that_is_asked_for_during_another_is_not_lost(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, started_at) = (world.scope(), world.clock.now());
        let read = find_target(&mut tx, &scope, world.controller).await.unwrap().unwrap();
        let asked_at = started_at + TimeDelta::seconds(1);
        assert!(schedule_now(&mut tx, &scope, world.controller, asked_at).await.unwrap());
        take(&mut tx, &world).await;
        let held = hold(&mut tx, &read, world.process).await.unwrap().unwrap();
        assert!(!held.was_requested(started_at));
        record_sync(&mut tx, world.controller, &online(started_at)).await.unwrap();
        let found = Controller::find(&mut tx, &scope, world.controller).await.unwrap().unwrap();
        assert_eq!(found.next_sync_at, Some(asked_at));
        let again = asked_at + TimeDelta::seconds(1);
        take(&mut tx, &world).await;
        assert!(hold(&mut tx, &read, world.process).await.unwrap().unwrap().was_requested(again));
        record_sync(&mut tx, world.controller, &online(again)).await.unwrap();
        take(&mut tx, &world).await;
        assert!(!hold(&mut tx, &read, world.process).await.unwrap().unwrap().was_requested(again + TimeDelta::hours(1)));
        let found = Controller::find(&mut tx, &scope, world.controller).await.unwrap().unwrap();
        assert_eq!(found.next_sync_at, Some(again + TimeDelta::minutes(1)));
    }

    async fn an_offline_controller_says_nothing_of_its_devices(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        world.see(&mut tx, &[seen("1"), seen("2")]).await;
        world.see(&mut tx, &[seen("1")]).await;
        record_sync(&mut tx, world.controller, &online(now)).await.unwrap();
        let failed = SyncResult { status: DeviceStatus::Offline, is_read: false, error: Some("no answer".into()), ..online(now) };
        assert!(record_sync(&mut tx, world.controller, &failed).await.unwrap());
        let lost = crate::devices::lose_sight(&mut tx, world.controller, None, now).await.unwrap();
        let lost: Vec<_> = lost.iter().map(|sighting| (sighting.name.as_str(), sighting.status)).collect();
        assert_eq!(lost, [("ap 1", Some(DeviceStatus::Unknown))], "each that changed is told, and no other");
        let again = crate::devices::lose_sight(&mut tx, world.controller, None, now).await.unwrap();
        assert!(again.is_empty(), "{again:?}");
        let all = crate::devices::DeviceFilter::default();
        let (devices, _) = crate::devices::list(&mut tx, &scope, &all, page()).await.unwrap();
        let mut statuses: Vec<(&str, DeviceStatus)> = devices.iter().map(|d| (d.identity.as_str(), d.status)).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [("1", DeviceStatus::Unknown), ("2", DeviceStatus::Offline)]);
    }

    async fn a_moved_controller_takes_its_pending_changes_along(db) {
        let world = World::new(&db, "one").await;
        let (scope, now) = (world.scope(), world.clock.now());
        let (pending, discarded) = (world.staged(&db).await, world.staged(&db).await);
        let mut tx = db.write().await.unwrap();
        crate::changes::discard(&mut tx, &scope, discarded, None, now).await.unwrap().unwrap();
        let site = crate::sites::insert(&mut tx, &world.new_site(world.clock.new_id(), "b")).await.unwrap().id;
        let moved = ControllerUpdate { site_id: Some(site), ..Default::default() };
        changed(&mut tx, &world, &moved, now).await;
        assert_eq!(crate::changes::find(&mut tx, &scope, pending).await.unwrap().unwrap().site_id, site);
        let kept = crate::changes::find(&mut tx, &scope, discarded).await.unwrap().unwrap();
        assert_eq!(kept.site_id, world.site, "what is past stays where it was");
    }

    async fn a_locked_controller_tells_its_site_and_the_settings_of_its_organization(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        let defaults = Some((world.site, OrganizationSettings::default()));
        assert_eq!(lock_at_site(&mut tx, world.org, world.controller).await.unwrap(), defaults);
        let settings = crate::organizations::OrganizationUpdate {
            settings: Some(json!({ "change_ttl_hours": 5 })),
            ..Default::default()
        };
        crate::organizations::update(&mut tx, &scope, world.org, &settings, now).await.unwrap().unwrap();
        let (_, stored) = lock_at_site(&mut tx, world.org, world.controller).await.unwrap().unwrap();
        assert_eq!(stored.change_ttl_hours, Some(5));
        assert_eq!(lock_at_site(&mut tx, other.org, world.controller).await.unwrap(), None);
        Organization::remove(&mut tx, &scope, world.org, now).await.unwrap();
        assert_eq!(lock_at_site(&mut tx, world.org, world.controller).await.unwrap(), defaults);
        assert!(Controller::remove(&mut tx, &scope, world.controller, now).await.unwrap());
        assert_eq!(lock_at_site(&mut tx, world.org, world.controller).await.unwrap(), None);
    }

    async fn a_locked_controller_is_not_changed_by_others(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        lock_at_site(&mut tx, world.org, world.controller).await.unwrap().unwrap();
        let change = async {
            let mut tx = db.write().await.unwrap();
            Controller::remove(&mut tx, &world.scope(), world.controller, world.clock.now()).await.unwrap();
            tx.commit().await.unwrap();
        };
        let ended = tokio::time::timeout(std::time::Duration::from_millis(200), change).await;
        assert!(ended.is_err(), "it waits for the transaction");
    }

    async fn a_removed_organizations_controllers_are_not_called(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        schedule_now(&mut tx, &scope, world.controller, now).await.unwrap();
        let read = find_target(&mut tx, &scope, world.controller).await.unwrap().unwrap();
        Organization::remove(&mut tx, &scope, world.org, now).await.unwrap();
        assert!(due(&mut tx, world.process, now, &Except::default(), 10).await.unwrap().is_empty());
        assert!(find_target(&mut tx, &Scope::everything(), world.controller).await.unwrap().is_none());
        take(&mut tx, &world).await;
        assert_eq!(hold(&mut tx, &read, world.process).await.unwrap(), None);
        Organization::restore(&mut tx, &scope, world.org, now).await.unwrap().unwrap();
        assert_eq!(due(&mut tx, world.process, now, &Except::default(), 10).await.unwrap().len(), 1);
    }

    async fn several_are_found_and_made_due_at_once(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (a.scope(), a.clock.now());
        let second = insert(&mut tx, &a.new_controller(a.clock.new_id(), "two")).await.unwrap().id;
        let gone = insert(&mut tx, &a.new_controller(a.clock.new_id(), "gone")).await.unwrap().id;
        assert!(Controller::remove(&mut tx, &scope, gone, now).await.unwrap());
        let found = find_targets(&mut tx, &scope, &[second, b.controller, a.controller, gone]).await.unwrap();
        let ids: Vec<ControllerId> = found.iter().map(|target| target.id).collect();
        assert_eq!(ids, [a.controller, second]);
        assert!(find_targets(&mut tx, &scope, &[]).await.unwrap().is_empty());
        assert_eq!(schedule_all_now(&mut tx, &[a.controller, second, gone], now).await.unwrap(), 2);
        assert_eq!(schedule_all_now(&mut tx, &[], now).await.unwrap(), 0);
        let due: Vec<ControllerId> = due(&mut tx, a.process, now, &Except::default(), 10).await.unwrap().iter().map(|target| target.id).collect();
        assert_eq!(due, [a.controller, second]);
        let other = ControllerFilter { credential_id: Some(b.credential), ..Default::default() };
        assert_eq!(list(&mut tx, &scope, &other, page()).await.unwrap().1, 0);
    }
}

/// Takes the reading, whether it is due or not.
async fn take(tx: &mut Tx, world: &World) {
    let done: sqlx::Result<()> = on!(tx, conn => sqlx::query("UPDATE controller SET sync_owner = $1 WHERE id = $2")
        .bind(world.process).bind(world.controller)
        .execute(conn)
        .await
        .map(|_| ()));
    done.unwrap();
}

/// How a reading ended that began then.
fn online(started_at: Timestamp) -> SyncResult {
    SyncResult {
        status: DeviceStatus::Online,
        is_read: true,
        error: None,
        firmware: Some("2".into()),
        product: None,
        release_state: None,
        started_at,
        next_sync_at: started_at + TimeDelta::minutes(1),
        owner: None,
        now: started_at,
    }
}
