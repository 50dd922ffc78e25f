use chrono::TimeDelta;

use super::*;
use crate::object::Object as _;
use crate::sites::{self, Site};
use crate::testing::{World, on_both};

fn named(ids: &[&str]) -> Vec<VendorSite> {
    ids.iter().map(|id| VendorSite { id: (*id).to_owned(), name: format!("Site {id}") }).collect()
}

fn refs(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.site_ref.as_str()).collect()
}

const NOTHING: Choice = Choice { site_id: None, is_ignored: false };

on_both! {
    async fn sites_that_are_gone_are_kept_only_where_a_person_chose_something(db) {
        let world = World::new(&db, "one").await;
        let (mut tx, id, now) = (db.write().await.unwrap(), world.controller, world.clock.now());
        let branch = sites::insert(&mut tx, &world.new_site(world.clock.new_id(), "branch")).await.unwrap().id;
        record(&mut tx, id, &named(&["a", "b", "c", "d"]), now).await.unwrap();
        assert!(choose(&mut tx, id, "b", &Choice { site_id: Some(branch), is_ignored: false }, branch, now).await.unwrap());
        assert!(choose(&mut tx, id, "c", &Choice { site_id: None, is_ignored: true }, world.site, now).await.unwrap());
        let later = now + TimeDelta::seconds(1);
        record(&mut tx, id, &named(&["d"]), later).await.unwrap();
        assert_eq!(refs(&list(&mut tx, id).await.unwrap()), ["b", "c", "d"]);
        let there = present(&mut tx, id).await.unwrap();
        assert_eq!((refs(&there), there[0].first_seen_at, there[0].last_seen_at), (vec!["d"], now, later));
        let gone = find(&mut tx, id, "b").await.unwrap().unwrap();
        assert_eq!((gone.is_present, gone.site_id), (false, branch));
        assert_eq!(find(&mut tx, id, "a").await.unwrap(), None);
        // What was chosen holds when it comes back, and what is chosen no more is forgotten.
        assert!(choose(&mut tx, id, "c", &NOTHING, world.site, now).await.unwrap());
        record(&mut tx, id, &named(&["a", "b"]), later + TimeDelta::seconds(1)).await.unwrap();
        let known = list(&mut tx, id).await.unwrap();
        assert_eq!(refs(&known), ["a", "b"]);
        assert_eq!(known[1].mapped_to, Some(branch));
    }

    async fn few_choices_are_kept_for_sites_that_are_gone(db) {
        let world = World::new(&db, "one").await;
        let (mut tx, id, mut now) = (db.write().await.unwrap(), world.controller, world.clock.now());
        let all: Vec<String> = (0..=VENDOR_SITES_MAX).map(|n| format!("{n:04}")).collect();
        let (first, others) = all.split_first().unwrap();
        for ids in [std::slice::from_ref(first), others] {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            record(&mut tx, id, &named(&ids), now).await.unwrap();
            let all = "UPDATE vendor_site SET is_ignored = TRUE WHERE controller_id = $1";
            on!(&mut tx, conn => sqlx::query(all).bind(id).execute(conn).await.map(drop)).unwrap();
            now += TimeDelta::seconds(1);
        }
        assert_eq!(list(&mut tx, id).await.unwrap().len(), VENDOR_SITES_MAX + 1);
        record(&mut tx, id, &[], now).await.unwrap();
        let kept = list(&mut tx, id).await.unwrap();
        assert_eq!((kept.len(), kept[0].site_ref.as_str()), (VENDOR_SITES_MAX, "0001"), "the one seen longest ago is forgotten");
    }

    async fn a_site_of_ours_knows_the_controllers_that_are_mapped_to_it(db) {
        let world = World::new(&db, "one").await;
        let (mut tx, id, now) = (db.write().await.unwrap(), world.controller, world.clock.now());
        let branch = sites::insert(&mut tx, &world.new_site(world.clock.new_id(), "branch")).await.unwrap().id;
        record(&mut tx, id, &named(&["a", "b"]), now).await.unwrap();
        assert!(mapped_to(&mut tx, branch).await.unwrap().is_empty());
        for site_ref in ["a", "b"] {
            choose(&mut tx, id, site_ref, &Choice { site_id: Some(branch), is_ignored: false }, branch, now).await.unwrap();
        }
        let found = MappedFrom { name: "edge".to_owned(), site_id: world.site };
        assert_eq!(mapped_to(&mut tx, branch).await.unwrap(), [found]);
        assert!(mapped_to(&mut tx, world.site).await.unwrap().is_empty());
        assert!(crate::Controller::remove(&mut tx, &world.scope(), id, now).await.unwrap());
        assert!(mapped_to(&mut tx, branch).await.unwrap().is_empty(), "a removed controller has none");
        // A site that was removed then counts as none.
        assert!(Site::remove(&mut tx, &world.scope(), branch, now).await.unwrap());
        assert_eq!(find(&mut tx, id, "a").await.unwrap().unwrap().site_id, world.site);
    }

    async fn a_controller_is_found_with_the_sites_that_were_read_last(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let (mut tx, id, now) = (db.write().await.unwrap(), world.controller, world.clock.now());
        let scope = world.scope();
        let (target, none) = target_with_sites(&mut tx, &scope, id).await.unwrap().unwrap();
        let alone = crate::controllers::find_target(&mut tx, &scope, id).await.unwrap().unwrap();
        assert_eq!((target.name, target.url, target.credential_version), (alone.name, alone.url, alone.credential_version));
        assert!(none.is_empty());

        let branch = sites::insert(&mut tx, &world.new_site(world.clock.new_id(), "branch")).await.unwrap().id;
        record(&mut tx, id, &named(&["c", "a", "b"]), now).await.unwrap();
        record(&mut tx, other.controller, &named(&["of another"]), now).await.unwrap();
        choose(&mut tx, id, "a", &Choice { site_id: Some(branch), is_ignored: false }, branch, now).await.unwrap();
        choose(&mut tx, id, "b", &Choice { site_id: None, is_ignored: true }, world.site, now).await.unwrap();
        let (_, there) = target_with_sites(&mut tx, &scope, id).await.unwrap().unwrap();
        let as_listed = present(&mut tx, id).await.unwrap().into_iter().map(|row| Place {
            site_ref: row.site_ref,
            name: row.name,
            site_id: row.site_id,
            is_ignored: row.is_ignored,
        });
        assert_eq!(there, as_listed.collect::<Vec<_>>());
        assert_eq!((there[0].site_id, there[1].is_ignored, there[2].site_id), (branch, true, world.site));

        record(&mut tx, id, &named(&["c"]), now + TimeDelta::seconds(1)).await.unwrap();
        let (_, left) = target_with_sites(&mut tx, &scope, id).await.unwrap().unwrap();
        assert_eq!(left.iter().map(|site| site.site_ref.as_str()).collect::<Vec<_>>(), ["c"]);
        assert!(target_with_sites(&mut tx, &other.scope(), id).await.unwrap().is_none());
        assert!(crate::Controller::remove(&mut tx, &scope, id, now).await.unwrap());
        assert!(target_with_sites(&mut tx, &scope, id).await.unwrap().is_none());
    }
}
