use heddle_core::Clock;
use heddle_core::adapter::Completeness;
use serde_json::json;

use super::record::{self, Known, List, ModelReadingId, Place, Storable};
use super::*;
use crate::model_readings::{self, Row};
use crate::object::Object as _;
use crate::testing::{World, on_both, page};

fn object(key: &str, digest: &str) -> Storable {
    Storable {
        key: key.to_owned(),
        label: format!("Label {key}"),
        origin: Origin::Own,
        device_key: None,
        native: Some(json!({ "kind": "k", "key": key })),
        fields: json!({ "name": key, "rate": 1.5 }),
        digest: digest.to_owned(),
        contents_digest: format!("contents {digest}"),
        searched: format!("label {key}"),
    }
}

fn list(world: &World) -> List<'static> {
    List { controller_id: world.controller, kind: "vlan", site_ref: "" }
}

fn place(world: &World, clock: &Clock, reading_id: ModelReadingId) -> Place {
    Place { org_id: world.org, site_id: world.site, reading_id, now: clock.now() }
}

async fn write(tx: &mut Tx, world: &World, reading: ModelReadingId, objects: &[Storable]) {
    let rows: Vec<(ModelObjectId, &Storable)> =
        objects.iter().map(|object| (world.clock.new_id(), object)).collect();
    record::write(tx, &list(world), &place(world, &world.clock, reading), &rows).await.unwrap();
}

async fn all(tx: &mut Tx, scope: &Scope) -> Vec<ModelObject> {
    super::list(tx, scope, "vlan", &ModelFilter::default(), page()).await.unwrap().0
}

on_both! {
    async fn an_object_keeps_its_id_and_says_when_it_changed(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let readings: [ModelReadingId; 3] = [world.clock.new_id(), world.clock.new_id(), world.clock.new_id()];
        write(&mut tx, &world, readings[0], &[object("a", "1"), object("b", "1")]).await;
        let first = all(&mut tx, &world.scope()).await;
        assert_eq!(first.iter().map(|found| found.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let known = record::known(&mut tx, &list(&world), &["a", "none"]).await.unwrap();
        assert_eq!(known.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(known["a"].fields, object("a", "1").fields);
        let digests = record::digests(&mut tx, &list(&world), &["a", "none"]).await.unwrap();
        assert_eq!(digests.keys().collect::<Vec<_>>(), ["a"]);
        let found = &digests["a"];
        assert_eq!((&*found.digest, &*found.contents_digest, found.reading_id), ("1", "contents 1", readings[0]));
        write(&mut tx, &world, readings[1], &[object("a", "2"), Storable { fields: json!({}), ..object("b", "1") }]).await;
        let second = all(&mut tx, &world.scope()).await;
        assert_eq!((second[0].id, second[0].first_seen_at), (first[0].id, first[0].first_seen_at));
        assert!(second[0].changed_at > first[0].changed_at && second[1].changed_at == first[1].changed_at);
        assert_eq!(second[1].fields, json!({}));
        record::touch(&mut tx, &place(&world, &world.clock, readings[2]), &[second[0].id]).await.unwrap();
        let unseen: Vec<Known> = record::unseen(&mut tx, &list(&world), readings[2], 10).await.unwrap();
        assert_eq!(unseen.iter().map(|known| known.key.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(record::remove_unseen(&mut tx, &list(&world), readings[2], i64::MAX).await.unwrap(), 1);
        assert_eq!(record::stored(&mut tx, &list(&world)).await.unwrap(), 1);
        let third = all(&mut tx, &world.scope()).await;
        assert!(third[0].observed_at > second[0].observed_at && third[0].changed_at == second[0].changed_at);
    }

    async fn what_was_seen_longest_ago_is_removed_first(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let readings: [ModelReadingId; 3] = [world.clock.new_id(), world.clock.new_id(), world.clock.new_id()];
        write(&mut tx, &world, readings[0], &[object("c", "1"), object("b", "1")]).await;
        let between = world.clock.now();
        write(&mut tx, &world, readings[1], &[object("a", "1")]).await;
        write(&mut tx, &world, readings[2], &[object("d", "1")]).await;
        let (own, elsewhere) = (list(&world), List { site_ref: "x", ..list(&world) });
        let ended = Row { objects: 4, ..Row::new(own.kind, own.site_ref) };
        crate::model_readings::save(&mut tx, own.controller_id, &ended).await.unwrap();
        assert_eq!(record::stored_elsewhere(&mut tx, &elsewhere).await.unwrap(), 4);
        assert_eq!(record::stored_elsewhere(&mut tx, &own).await.unwrap(), 0);
        assert_eq!(record::unseen_since(&mut tx, &list(&world), readings[2], between).await.unwrap(), 2);
        let unseen: Vec<Known> = record::unseen(&mut tx, &list(&world), readings[2], 2).await.unwrap();
        assert_eq!(unseen.iter().map(|known| known.key.as_str()).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(record::remove_unseen(&mut tx, &list(&world), readings[2], 1).await.unwrap(), 1);
        let left = all(&mut tx, &world.scope()).await;
        assert_eq!(left.iter().map(|found| found.key.as_str()).collect::<Vec<_>>(), ["a", "c", "d"]);
    }

    async fn objects_are_seen_within_the_scope_alone(db) {
        let (one, two) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        write(&mut tx, &one, one.clock.new_id(), &[object("a", "1")]).await;
        write(&mut tx, &two, two.clock.new_id(), &[object("b", "1"), object("c", "1")]).await;
        let mine = all(&mut tx, &one.scope()).await;
        assert_eq!(mine.len(), 1);
        assert_eq!(counts(&mut tx, &two.scope()).await.unwrap(), [KindCount { kind: "vlan".to_owned(), objects: 2 }]);
        assert_eq!(counts(&mut tx, &Scope::everything()).await.unwrap()[0].objects, 3);
        assert!(find(&mut tx, &two.scope(), "vlan", mine[0].id).await.unwrap().is_none());
        assert!(find(&mut tx, &one.scope(), "port", mine[0].id).await.unwrap().is_none());
        assert!(find(&mut tx, &one.scope(), "vlan", mine[0].id).await.unwrap().is_some());
        let nowhere = Scope { org: Some(one.org), sites: crate::SiteScope::Only(Vec::new()) };
        assert!(all(&mut tx, &nowhere).await.is_empty());
        crate::Controller::remove(&mut tx, &two.scope(), two.controller, two.clock.now()).await.unwrap();
        assert!(all(&mut tx, &two.scope()).await.is_empty());
    }

    async fn each_filter_narrows_a_list(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let of_device = Storable { device_key: Some("ap".to_owned()), origin: Origin::Vendor, ..object("a", "1") };
        write(&mut tx, &world, world.clock.new_id(), &[of_device, object("b_", "1")]).await;
        for (filter, keys) in [
            (ModelFilter { device: Some("ap".to_owned()), ..ModelFilter::default() }, vec!["a"]),
            (ModelFilter { origin: Some(Origin::Own), ..ModelFilter::default() }, vec!["b_"]),
            (ModelFilter { search: Some("LABEL B_".to_owned()), ..ModelFilter::default() }, vec!["b_"]),
            (ModelFilter { search: Some("%".to_owned()), ..ModelFilter::default() }, vec![]),
            (ModelFilter { vendor: Some("other".to_owned()), ..ModelFilter::default() }, vec![]),
            (ModelFilter { site_id: Some(world.site), controller_id: Some(world.controller), ..ModelFilter::default() }, vec!["a", "b_"]),
            (ModelFilter { site_id: Some(world.clock.new_id()), ..ModelFilter::default() }, vec![]),
        ] {
            let (found, total) = super::list(&mut tx, &world.scope(), "vlan", &filter, page()).await.unwrap();
            let found: Vec<&str> = found.iter().map(|found| found.key.as_str()).collect();
            assert_eq!((found, total), (keys.clone(), i64::try_from(keys.len()).unwrap()), "{filter:?}");
        }
    }

    async fn what_a_reading_found_is_kept_until_it_is_told(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let list = list(&world);
        assert_eq!(model_readings::find(&mut tx, &list).await.unwrap(), None);
        let row = Row { created: 2, complete: Completeness::Partial, begun_at: Some(world.clock.now()), ..Row::new("vlan", "") };
        model_readings::save(&mut tx, world.controller, &row).await.unwrap();
        model_readings::save(&mut tx, world.controller, &Row { changed: 1, ..row.clone() }).await.unwrap();
        let kept = model_readings::find(&mut tx, &list).await.unwrap().unwrap();
        assert_eq!((kept.differences(), kept.complete, kept.begun_at), (3, Completeness::Partial, row.begun_at));
        let payloads = |range: std::ops::Range<i64>| range.map(|n| json!({ "n": n })).collect::<Vec<_>>();
        model_readings::keep_differences(&mut tx, &list, 0, &payloads(0..2)).await.unwrap();
        model_readings::keep_differences(&mut tx, &list, 2, &payloads(2..12)).await.unwrap();
        assert_eq!(model_readings::take_differences(&mut tx, &list).await.unwrap(), payloads(0..12));
        assert!(model_readings::take_differences(&mut tx, &list).await.unwrap().is_empty());
        let begun = row.begun_at.unwrap();
        model_readings::make_due(&mut tx, world.controller, begun).await.unwrap();
        assert_eq!(model_readings::of_controller(&mut tx, world.controller).await.unwrap()[0].begun_at, row.begun_at);
        model_readings::make_due(&mut tx, world.controller, world.clock.now()).await.unwrap();
        assert_eq!(model_readings::of_controller(&mut tx, world.controller).await.unwrap()[0].begun_at, None);
        let (shown, total) = model_readings::page(&mut tx, &world.scope(), world.controller, page()).await.unwrap();
        assert_eq!((shown[0].site_id, total), (world.site, 1));
        model_readings::remove(&mut tx, &list).await.unwrap();
        assert!(model_readings::of_controller(&mut tx, world.controller).await.unwrap().is_empty());
    }
}

on_both! {
    async fn a_site_has_what_all_of_its_controllers_have(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        write(&mut tx, &world, world.clock.new_id(), &[object("a", "1"), object("b", "1")]).await;
        let row = Row { read_at: Some(world.clock.now()), complete: Completeness::Complete, ..Row::new("vlan", "") };
        model_readings::save(&mut tx, world.controller, &row).await.unwrap();
        let silent: heddle_core::ControllerId = world.clock.new_id();
        crate::controllers::insert(&mut tx, &world.new_controller(silent, "silent")).await.unwrap();
        let (found, are_all) = of_site::objects(&mut tx, &world.scope(), world.site, &["vlan", "port"]).await.unwrap();
        assert_eq!(found.iter().map(|found| found.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(are_all && found[0].fields == object("a", "1").fields);
        let (none, _) = of_site::objects(&mut tx, &world.scope(), world.site, &["port"]).await.unwrap();
        assert!(none.is_empty());
        let lists = of_site::lists(&mut tx, &world.scope(), world.site).await.unwrap();
        let told: Vec<_> = lists.iter().map(|list| (list.name.as_str(), list.kind.as_deref(), list.is_whole())).collect();
        assert_eq!(told, [("edge", Some("vlan"), true), ("silent", None, false)]);
        let elsewhere = of_site::lists(&mut tx, &world.scope(), world.clock.new_id()).await.unwrap();
        assert!(elsewhere.is_empty());
    }
}
