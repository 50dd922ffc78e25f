use heddle_core::adapter::Origin;
use serde_json::json;

use super::*;
use crate::model_objects::record::{self, List, Place, Storable};
use crate::model_readings::{self, Row};
use crate::testing::{World, on_both, seen};

fn port(key: &str) -> Storable {
    Storable {
        key: key.to_owned(),
        label: format!("Port {key}"),
        origin: Origin::Own,
        device_key: Some("switch".to_owned()),
        native: Some(json!({ "kind": "lan.port", "key": key, "locators": [] })),
        fields: json!({ "number": 1, "enabled": true }),
        digest: String::new(),
        contents_digest: String::new(),
        searched: String::new(),
    }
}

async fn write(tx: &mut Tx, world: &World, kind: &str, object: Storable) {
    let list = List { controller_id: world.controller, kind, site_ref: "" };
    let now = world.clock.now();
    let place = Place { org_id: world.org, site_id: world.site, reading_id: world.clock.new_id(), now };
    record::write(tx, &list, &place, &[(world.clock.new_id(), &object)]).await.unwrap();
}

on_both! {
    async fn a_site_has_its_own_objects_of_the_kinds_that_are_asked_for(db) {
        let (one, two) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        write(&mut tx, &one, "port", port("1")).await;
        write(&mut tx, &one, "vlan", Storable { native: None, ..port("2") }).await;
        write(&mut tx, &one, "service", port("3")).await;
        write(&mut tx, &two, "port", port("4")).await;
        let found = objects(&mut tx, one.org, one.site, (&["port", "vlan"], 10)).await.unwrap();
        assert_eq!(found.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        let fields: serde_json::Value = serde_json::from_str(found[0].fields.get()).unwrap();
        assert_eq!(fields, json!({ "number": 1, "enabled": true }));
        assert_eq!(found[0].native, Some(NativeName { kind: "lan.port".to_owned(), key: "1".to_owned() }));
        assert_eq!((found[1].native.as_ref(), found[1].device_key.as_deref()), (None, Some("switch")));
        assert_eq!(objects(&mut tx, one.org, one.site, (&["port", "vlan"], 1)).await.unwrap().len(), 1);
        assert!(objects(&mut tx, two.org, one.site, (&["port"], 10)).await.unwrap().is_empty());
        let place = ObjectPlace { org_id: one.org, site_id: one.site };
        assert_eq!(place_of(&mut tx, &one.scope(), found[0].id).await.unwrap(), Some(place));
        assert_eq!(place_of(&mut tx, &two.scope(), found[0].id).await.unwrap(), None);
    }

    async fn a_controller_is_there_with_each_of_its_lists_and_without_any(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let bare = sources(&mut tx, world.org, world.site).await.unwrap();
        assert_eq!((bare.len(), bare[0].controller_id, bare[0].kind.as_deref()), (1, world.controller, None));
        for kind in ["port", "client"] {
            let read = Row { read_at: Some(world.clock.now()), objects: 7, ..Row::new(kind, "") };
            model_readings::save(&mut tx, world.controller, &read).await.unwrap();
        }
        let known = sources(&mut tx, world.org, world.site).await.unwrap();
        let kinds: Vec<_> = known.iter().filter_map(|source| source.kind.as_deref()).collect();
        assert_eq!((kinds, known[0].objects), (vec!["client", "port"], Some(7)));
        assert!(sources(&mut tx, world.org, world.clock.new_id()).await.unwrap().is_empty());
    }

    async fn only_devices_with_objects_of_their_own_are_there(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        world.see(&mut tx, &[seen("switch"), seen("phone")]).await;
        assert!(devices(&mut tx, world.org, world.site, 10).await.unwrap().is_empty());
        write(&mut tx, &world, "port", port("1")).await;
        let found = devices(&mut tx, world.org, world.site, 10).await.unwrap();
        assert_eq!(found.iter().map(|one| one.identity.as_str()).collect::<Vec<_>>(), ["switch"]);
    }
}
