use std::collections::BTreeMap;

use heddle_core::adapter::{Completeness, Origin};
use serde_json::json;

use super::*;
use crate::model_objects::record::{self, Place, Storable};
use crate::model_readings::{self, Row};
use crate::testing::{World, on_both};

fn list(world: &World) -> List<'static> {
    List { controller_id: world.controller, kind: "vlan", site_ref: "" }
}

fn object(key: &str, digest: &str, origin: Origin) -> Storable {
    Storable {
        key: key.to_owned(),
        label: key.to_owned(),
        origin,
        device_key: None,
        native: None,
        fields: json!({ "name": digest }),
        digest: digest.to_owned(),
        contents_digest: digest.to_owned(),
        searched: key.to_owned(),
    }
}

async fn read(tx: &mut Tx, world: &World, objects: &[Storable]) {
    let place = Place {
        org_id: world.org,
        site_id: world.site,
        reading_id: world.clock.new_id(),
        now: world.clock.now(),
    };
    let rows: Vec<_> = objects.iter().map(|object| (world.clock.new_id(), object)).collect();
    record::write(tx, &list(world), &place, &rows).await.unwrap();
}

fn row(key: &str, digest: &str) -> WantedObject {
    WantedObject {
        key: key.to_owned(),
        label: key.to_owned(),
        device_key: None,
        basis: WantedBasis::Observed,
        change_id: None,
        fields: json!({ "name": digest }),
        seen_digest: digest.to_owned(),
    }
}

on_both! {
    async fn what_moved_since_the_comparison_before_is_found(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let list = list(&world);
        read(&mut tx, &world, &[object("a", "1", Origin::Own), object("b", "1", Origin::Own), object("v", "1", Origin::Vendor)]).await;
        let keys = |found: &[Listed]| found.iter().map(|one| one.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&differing(&mut tx, &list, "").await.unwrap()), ["a", "b"], "what people made");
        assert_eq!(keys(&differing(&mut tx, &list, "a").await.unwrap()), ["b"]);
        write(&mut tx, &list, &[row("a", "1"), row("b", "0"), row("gone", "1"), row("v", "1")], world.clock.now()).await.unwrap();
        assert_eq!(keys(&differing(&mut tx, &list, "").await.unwrap()), ["b"]);
        assert_eq!(keys(&listed(&mut tx, &list, &["a", "v"]).await.unwrap()), ["a"]);
        let unlisted = unlisted(&mut tx, &list).await.unwrap();
        let unlisted: Vec<_> = unlisted.iter().map(|one| (one.wanted.key.as_str(), one.is_listed)).collect();
        assert_eq!(unlisted, [("gone", false), ("v", true)]);
        assert_eq!((count(&mut tx, world.controller).await.unwrap(), all_of(&mut tx, &list, "b").await.unwrap().len()), (4, 2));
        let change = world.clock.new_id();
        let applied = WantedObject { basis: WantedBasis::Applied, change_id: Some(change), ..row("b", "1") };
        write(&mut tx, &list, std::slice::from_ref(&applied), world.clock.now()).await.unwrap();
        assert_eq!(wanted(&mut tx, &list, &["b", "none"]).await.unwrap()["b"], applied);
        remove(&mut tx, &list, "gone").await.unwrap();
        assert_eq!(count(&mut tx, world.controller).await.unwrap(), 3);
        let state = Row::new("vlan", "");
        model_readings::save(&mut tx, world.controller, &state).await.unwrap();
        assert_eq!(sweep(&mut tx, 2).await.unwrap(), 0);
        model_readings::remove(&mut tx, &list).await.unwrap();
        assert_eq!((sweep(&mut tx, 2).await.unwrap(), sweep(&mut tx, 2).await.unwrap()), (2, 1), "as many as were asked for");
        write(&mut tx, &list, &[row("a", "1")], world.clock.now()).await.unwrap();
        forget_list(&mut tx, &list).await.unwrap();
        assert_eq!(count(&mut tx, world.controller).await.unwrap(), 0);
    }

    async fn a_list_is_due_once_for_each_reading_that_came_to_its_end(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let list = list(&world);
        let begun = world.clock.now();
        let mut state = Row { begun_at: Some(begun), complete: Completeness::Complete, ..Row::new("vlan", "") };
        model_readings::save(&mut tx, world.controller, &state).await.unwrap();
        let followed = |vendor: &str, kind: &str| [Followed { vendor: vendor.to_owned(), kind: kind.to_owned() }];
        let vlans = followed("acme", "vlan");
        assert!(due(&mut tx, &vlans, 10).await.unwrap().is_empty(), "it was never read to its end");
        state.read_at = Some(world.clock.now());
        model_readings::save(&mut tx, world.controller, &state).await.unwrap();
        let found = due(&mut tx, &vlans, 10).await.unwrap();
        assert_eq!((found.len(), found[0].site_id, found[0].begun_at), (1, world.site, begun));
        assert!(due(&mut tx, &followed("acme", "ssid"), 10).await.unwrap().is_empty());
        assert!(due(&mut tx, &followed("other", "vlan"), 10).await.unwrap().is_empty(), "nothing reads it");
        assert!(due(&mut tx, &[], 10).await.unwrap().is_empty());
        assert!(hold(&mut tx, &list).await.unwrap().is_none());
        let compared = Compared {
            begun_at: begun,
            read_at: state.read_at.unwrap(),
            adapter: "acme@1".to_owned(),
            versions: BTreeMap::from([("controller".to_owned(), "1".to_owned())]),
            left_out: 0,
        };
        save(&mut tx, &list, &compared).await.unwrap();
        assert_eq!(hold(&mut tx, &list).await.unwrap(), Some(compared));
        assert!(due(&mut tx, &vlans, 10).await.unwrap().is_empty());
        (state.begun_at, state.read_at) = (Some(world.clock.now()), Some(world.clock.now()));
        model_readings::save(&mut tx, world.controller, &state).await.unwrap();
        assert_eq!(due(&mut tx, &vlans, 10).await.unwrap().len(), 1);
    }

    async fn what_a_vendor_makes_of_a_value_is_kept(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let list = list(&world);
        let rewrite = Rewrite {
            field: "name".to_owned(),
            digest: "d".to_owned(),
            wanted: Some(json!("A")),
            observed: Some(json!("a")),
            change_id: world.clock.new_id(),
        };
        learn(&mut tx, &list, &rewrite, world.clock.now()).await.unwrap();
        learn(&mut tx, &list, &rewrite, world.clock.now()).await.unwrap();
        assert_eq!(rewrites(&mut tx, world.controller, "vlan").await.unwrap(), [rewrite]);
        assert!(rewrites(&mut tx, world.controller, "ssid").await.unwrap().is_empty());
        let since = world.clock.now();
        assert!(attempted_since(&mut tx, world.controller, since, world.clock.now()).await.unwrap().is_empty());
        assert!(versions(&mut tx, world.controller).await.unwrap().is_empty());
    }
}
