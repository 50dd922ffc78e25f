use heddle_core::page::PageRequest;

use super::*;
use crate::testing::{World, on_both, page, seen};

on_both! {
    async fn a_reading_tells_what_is_new(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let first = world.see(&mut tx, &[seen("1"), seen("2"), seen("2")]).await;
        assert_eq!(first.len(), 2);
        assert!(first.iter().all(|s| s.novelty == Novelty::Created && s.status == Some(DeviceStatus::Online)));
        let again = world.see(&mut tx, &[seen("1"), seen("2")]).await;
        assert!(again.iter().all(|s| s.novelty == Novelty::Known && s.changed.is_empty() && s.status.is_none()), "{again:?}");
        let mut changed = seen("1");
        changed.firmware = Some("2".into());
        let third = world.see(&mut tx, &[changed]).await;
        assert_eq!((third[0].changed.as_slice(), third[0].device_id), (&["firmware"][..], first[0].device_id));
        assert_eq!((third[1].device_id, third[1].status), (first[1].device_id, Some(DeviceStatus::Offline)));
        let back = world.see(&mut tx, &[seen("1"), seen("2")]).await;
        assert_eq!((back[1].status, back[1].changed.len()), (Some(DeviceStatus::Online), 0));
        let found = Device::find(&mut tx, &world.scope(), first[0].device_id).await.unwrap().unwrap();
        assert_eq!((found.identity.as_str(), found.addresses), ("1", vec!["192.0.2.7".to_owned()]));
    }

    async fn a_partial_list_sends_nothing_offline(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        world.see(&mut tx, &[seen("1")]).await;
        let reading = Seen { org_id: world.org, site_id: world.site, controller_id: world.controller, devices: &[], sites: &HashMap::new(), unread: &HashSet::new(), complete: Completeness::Partial };
        assert!(upsert_seen(&mut tx, &reading, &world.clock).await.unwrap().is_empty());
    }

    async fn a_device_that_several_sites_list_is_where_it_is_online_or_where_it_was(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let at = |site: &str, status| SeenDevice { site: Some(site.to_owned()), status, ..seen("phone") };
        let (on, off) = (DeviceStatus::Online, DeviceStatus::Offline);
        for (listed, place, why) in [
            ([("a", off), ("b", off)], "b", "of two that are alike and new the later one"),
            ([("a", on), ("b", off)], "a", "the one that is online"),
            ([("a", off), ("b", off)], "a", "the one that is stored"),
            ([("b", on), ("a", on)], "a", "the one that is stored"),
            ([("a", on), ("b", on)], "a", "the one that is stored"),
            ([("a", off), ("b", on)], "b", "the one that is online"),
        ] {
            let listed = listed.map(|(site, status)| at(site, status));
            let told = world.see(&mut tx, &listed).await;
            let found = Device::find(&mut tx, &world.scope(), told[0].device_id).await.unwrap().unwrap();
            assert_eq!((found.site_ref.as_deref(), told.len()), (Some(place), 1), "{why}");
        }
    }

    async fn nothing_is_said_of_a_site_that_was_not_read(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let at = |identity: &str, site: &str| SeenDevice { site: Some(site.to_owned()), ..seen(identity) };
        world.see(&mut tx, &[at("1", "a"), at("2", "b")]).await;
        let reading = Seen { org_id: world.org, site_id: world.site, controller_id: world.controller, devices: &[], sites: &HashMap::new(), unread: &HashSet::from(["b".to_owned()]), complete: Completeness::Complete };
        let told = upsert_seen(&mut tx, &reading, &world.clock).await.unwrap();
        assert_eq!(told.iter().map(|sighting| (sighting.name.as_str(), sighting.status)).collect::<Vec<_>>(), [("ap 1", Some(DeviceStatus::Offline))]);
    }

    async fn some_sites_say_nothing_of_a_device_that_is_stored_at_another(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let at = |site: &str, status| SeenDevice { site: Some(site.to_owned()), status, ..seen("phone") };
        let (on, off) = (DeviceStatus::Online, DeviceStatus::Offline);
        let (left_out, unread) = (BTreeSet::from(["a".to_owned()]), HashSet::from(["a".to_owned()]));
        let (missing, elsewhere) = (Open { is_any_missing: true, ..Open::default() }, Open { is_any_elsewhere: true, ..Open::default() });
        let sites = HashMap::from(["a", "b"].map(|site| (site.to_owned(), world.site)));
        for (stored, listed, open, why) in [
            (at("a", on), vec![at("b", off)], Open::default(), "it is online where it is stored"),
            (at("a", on), vec![at("b", on)], Open::default(), "it stays where it is stored"),
            (at("a", off), vec![at("b", off)], Open::default(), "both say the same"),
            (at("a", off), vec![at("b", on)], elsewhere, "it may have moved"),
            (at("a", on), vec![], Open::default(), "site b never had it"),
            (at("b", on), vec![], missing, "it may be at site a"),
            (at("b", off), vec![], Open::default(), "it was gone before"),
        ] {
            let device = world.see(&mut tx, std::slice::from_ref(&stored)).await[0].device_id;
            let reading = Seen { org_id: world.org, site_id: world.site, controller_id: world.controller, devices: &listed, sites: &sites, unread: &unread, complete: Completeness::Complete };
            assert_eq!(upsert_some(&mut tx, &reading, &left_out, &world.clock).await.unwrap(), (vec![], open), "{why}");
            let found = Device::find(&mut tx, &world.scope(), device).await.unwrap().unwrap();
            assert_eq!((found.site_ref, found.status), (stored.site, stored.status), "{why}");
        }
        let new = SeenDevice { site: Some("b".to_owned()), ..seen("new") };
        let reading = Seen { org_id: world.org, site_id: world.site, controller_id: world.controller, devices: &[new], sites: &sites, unread: &unread, complete: Completeness::Complete };
        assert_eq!(upsert_some(&mut tx, &reading, &left_out, &world.clock).await.unwrap().0.len(), 1);
    }

    async fn a_reading_of_some_sites_loads_no_devices_of_the_others(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let at = |site: &str, identity: String| SeenDevice { site: Some(site.to_owned()), ..seen(&identity) };
        let mut all: Vec<SeenDevice> = (0..2_500).map(|n| at("a", format!("a{n:04}"))).collect();
        all.extend([at("b", "b1".to_owned()), at("failed", "f1".to_owned()), seen("none")]);
        world.see(&mut tx, &all).await;
        let sites = HashMap::from(["a", "b", "failed"].map(|site| (site.to_owned(), world.site)));
        let (left_out, unread) = (BTreeSet::from(["a".to_owned()]), HashSet::from(["a".to_owned(), "failed".to_owned()]));
        let loaded = async |tx: &mut Tx, listed: &[SeenDevice], left_out: &BTreeSet<String>| {
            let reading = Seen { org_id: world.org, site_id: world.site, controller_id: world.controller, devices: listed, sites: &sites, unread: &unread, complete: Completeness::Complete };
            let stored = stored_of(tx, &reading, left_out).await.unwrap();
            stored.into_iter().map(|device| device.identity).collect::<BTreeSet<_>>()
        };
        let set = |identities: &[&str]| identities.iter().map(|identity| (*identity).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(loaded(&mut tx, &[], &left_out).await, set(&["b1", "none"]));
        let listed = [at("b", "b1".to_owned()), at("b", "a0007".to_owned()), at("b", "new".to_owned())];
        assert_eq!(loaded(&mut tx, &listed, &left_out).await, set(&["b1", "none", "a0007"]), "one that may have moved");
        let moved: Vec<SeenDevice> = (0..2_500).map(|n| at("b", format!("a{n:04}"))).collect();
        assert_eq!(loaded(&mut tx, &moved, &left_out).await.len(), 2_502, "in several pieces");
        assert_eq!(loaded(&mut tx, &[], &BTreeSet::new()).await.len(), 2_503, "a reading of all sites");
    }

    async fn a_silent_controller_takes_its_own_device_along(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        let of_kind = |identity: &str, kind: &str| SeenDevice { kind: kind.to_owned(), ..seen(identity) };
        let at = |device: SeenDevice, address: &str| SeenDevice { addresses: vec![address.to_owned()], ..device };
        let router = at(of_kind("own", "router"), "192.0.2.1/24");
        let clients: Vec<SeenDevice> = (0..10_000).map(|n| of_kind(&n.to_string(), "client")).collect();
        let all: Vec<SeenDevice> = clients.into_iter().chain([router.clone()]).collect();
        world.see(&mut tx, &all).await;
        let lost = lose_sight(&mut tx, world.controller, None, now).await.unwrap();
        assert_eq!(lost.len(), 10_001);
        assert_eq!((lost[0].name.as_str(), lost[0].status), ("ap own", Some(DeviceStatus::Offline)));
        assert!(lost[1..].iter().all(|sighting| sighting.status == Some(DeviceStatus::Unknown)));
        assert!(lose_sight(&mut tx, world.controller, None, now).await.unwrap().is_empty());
        let back = world.see(&mut tx, &all).await;
        assert!(back.iter().all(|sighting| sighting.status == Some(DeviceStatus::Online)));

        // With a second device that carries others, only the address can tell.
        world.see(&mut tx, &[router.clone(), at(of_kind("other", "gateway"), "192.0.2.2")]).await;
        let unknown = lose_sight(&mut tx, world.controller, Some("192.0.2.9"), now).await.unwrap();
        assert!(unknown.iter().all(|sighting| sighting.status == Some(DeviceStatus::Unknown)), "{unknown:?}");
        let found = lose_sight(&mut tx, world.controller, Some("192.0.2.1"), now).await.unwrap();
        let found: Vec<_> = found.iter().map(|sighting| (sighting.name.as_str(), sighting.status)).collect();
        assert_eq!(found, [("ap own", Some(DeviceStatus::Offline))], "also one that was unknown by then");
    }

    async fn thousands_are_written_at_once(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let many: Vec<SeenDevice> = (0..2_500).map(|n| seen(&n.to_string())).collect();
        assert_eq!(world.see(&mut tx, &many).await.len(), 2_500);
        assert_eq!(world.see(&mut tx, &many).await.len(), 2_500);
        assert_eq!(world.see(&mut tx, &[]).await.len(), 2_500);
        let offline = DeviceFilter { status: Some(DeviceStatus::Offline), kind: Some("access_point".into()), controller_id: Some(world.controller), ..Default::default() };
        let (rows, total) = list(&mut tx, &world.scope(), &offline, PageRequest { page: 1, per_page: 9_999 }).await.unwrap();
        assert_eq!((rows.len(), total), (200, 2_500));
    }

    async fn devices_outside_the_scope_are_not_found(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let id = a.see(&mut tx, &[seen("1")]).await[0].device_id;
        assert!(Device::find(&mut tx, &b.scope(), id).await.unwrap().is_none());
        let search = DeviceFilter { search: Some("AP 1".into()), ..Default::default() };
        assert_eq!(list(&mut tx, &b.scope(), &search, page()).await.unwrap().1, 0);
        assert_eq!(list(&mut tx, &a.scope(), &search, page()).await.unwrap().1, 1);
    }

    async fn what_people_write_outlives_readings_and_removal(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        let ids: Vec<DeviceId> = world.see(&mut tx, &[seen("1"), seen("2")]).await.iter().map(|s| s.device_id).collect();
        let plain = Device::find(&mut tx, &scope, ids[1]).await.unwrap().unwrap().labels();
        assert_eq!(plain, Labels { display_name: None, notes: None, tags: vec![], state: DeviceState::Active });
        let written = Labels { display_name: Some("Lobby".into()), notes: Some("under the stairs".into()), tags: vec!["b".into(), "a".into()], state: DeviceState::Maintenance };
        set_labels(&mut tx, &[(ids[0], written.clone()), (ids[1], Labels { tags: vec!["a".into()], ..plain })], now).await.unwrap();
        let mut changed = seen("1");
        changed.name = "renamed".into();
        let sightings = world.see(&mut tx, &[changed.clone()]).await;
        assert_eq!((sightings[0].state, sightings[0].changed.as_slice()), (DeviceState::Maintenance, &["name"][..]));
        assert_eq!((sightings[1].state, sightings[1].status), (DeviceState::Active, Some(DeviceStatus::Offline)));
        let found = Device::find(&mut tx, &scope, ids[0]).await.unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.labels()), ("renamed", written.clone()));

        remove_all(&mut tx, &ids, now).await.unwrap();
        assert!(Device::find(&mut tx, &scope, ids[0]).await.unwrap().is_none());
        let back = world.see(&mut tx, &[changed]).await;
        assert_eq!((back[0].device_id, back[0].novelty, back[0].state), (ids[0], Novelty::Created, DeviceState::Maintenance));
        assert_eq!(Device::find(&mut tx, &scope, ids[0]).await.unwrap().unwrap().labels(), written);
        assert!(Device::find(&mut tx, &scope, ids[1]).await.unwrap().is_none(), "what is not reported stays away");
        assert!(Device::restore(&mut tx, &scope, ids[0], now).await.unwrap().is_none(), "it is there");
        assert_eq!(Device::restore(&mut tx, &scope, ids[1], now).await.unwrap().unwrap().tags, ["a"]);
    }

    async fn a_tag_is_found_as_it_is_written_and_never_in_part(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        let tricky = ["a", "A", "ab", "x\"a", "a\"", "a, b", "[a]", "\\", "a\\", "%", "_", "größe", "\", \"a"];
        let names: Vec<String> = (0..tricky.len()).map(|at| at.to_string()).collect();
        let devices: Vec<SeenDevice> = names.iter().map(|name| seen(name)).collect();
        let sightings = world.see(&mut tx, &devices).await;
        let tags = |tag: &str| vec!["first".to_owned(), tag.to_owned(), "last".to_owned()];
        let rows: Vec<(DeviceId, Labels)> = sightings.iter().zip(tricky).map(|(sighting, tag)| {
            (sighting.device_id, Labels { display_name: None, notes: None, tags: tags(tag), state: DeviceState::Active })
        }).collect();
        set_labels(&mut tx, &rows, world.clock.now()).await.unwrap();
        for (sighting, tag) in sightings.iter().zip(tricky) {
            let filter = DeviceFilter { tag: Some(tag.into()), ..Default::default() };
            let (found, _) = list(&mut tx, &world.scope(), &filter, page()).await.unwrap();
            let ids: Vec<DeviceId> = found.iter().map(|device| device.id).collect();
            assert_eq!(ids, [sighting.device_id], "{tag}");
            assert_eq!(list(&mut tx, &other.scope(), &filter, page()).await.unwrap().1, 0);
        }
        for (tag, total) in [("first", tricky.len()), ("last", tricky.len()), ("firs", 0), ("", 0)] {
            let filter = DeviceFilter { tag: Some(tag.into()), state: Some(DeviceState::Active), ..Default::default() };
            assert_eq!(list(&mut tx, &world.scope(), &filter, page()).await.unwrap().1, i64::try_from(total).unwrap(), "{tag}");
        }
        for (vendor, total) in [("acme", tricky.len()), ("acm", 0)] {
            let filter = DeviceFilter { vendor: Some(vendor.into()), ..Default::default() };
            assert_eq!(list(&mut tx, &world.scope(), &filter, page()).await.unwrap().1, i64::try_from(total).unwrap(), "{vendor}");
        }
        let resting = DeviceFilter { state: Some(DeviceState::Maintenance), ..Default::default() };
        assert_eq!(list(&mut tx, &world.scope(), &resting, page()).await.unwrap().1, 0);
    }

    async fn several_are_locked_removed_and_written_at_once(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let own: Vec<DeviceId> = a.see(&mut tx, &[seen("1"), seen("2"), seen("3")]).await.iter().map(|s| s.device_id).collect();
        let foreign = b.see(&mut tx, &[seen("1")]).await[0].device_id;
        remove_all(&mut tx, &own[2..], a.clock.now()).await.unwrap();
        let locked = lock_all(&mut tx, &a.scope(), &[own[1], foreign, own[0], own[2]]).await.unwrap();
        let mut expected = own[..2].to_vec();
        expected.sort_unstable();
        assert_eq!(locked.iter().map(|device| device.id).collect::<Vec<_>>(), expected);
        assert!(lock_all(&mut tx, &a.scope(), &[]).await.unwrap().is_empty());
        set_labels(&mut tx, &[], a.clock.now()).await.unwrap();
        let many: Vec<SeenDevice> = (0..1_200).map(|n| seen(&n.to_string())).collect();
        let labels = Labels { display_name: None, notes: Some("n".into()), tags: vec![], state: DeviceState::Active };
        let rows: Vec<(DeviceId, Labels)> = a.see(&mut tx, &many).await.iter().map(|s| (s.device_id, labels.clone())).collect();
        set_labels(&mut tx, &rows, a.clock.now()).await.unwrap();
        let last = rows.last().unwrap().0;
        assert_eq!(Device::find(&mut tx, &a.scope(), last).await.unwrap().unwrap().notes.as_deref(), Some("n"));
    }
}
