use serde_json::json;

use super::*;
use crate::testing::{World, on_both, page};

fn found(value: &str) -> Found {
    Found {
        change: DriftChange::Changed,
        label: DriftLabel::Unknown,
        differences: vec![FieldDrift {
            field: "name".to_owned(),
            wanted: Some(json!("guests")),
            observed: Some(json!(value)),
            label: DriftLabel::Unknown,
            reasons: vec!["no change fits".to_owned()],
        }],
    }
}

fn list(world: &World) -> List<'static> {
    List { controller_id: world.controller, kind: "vlan", site_ref: "" }
}

async fn opened(tx: &mut Tx, world: &World, key: &str) -> Result<Drift> {
    let found = found("lobby");
    let new = NewDrift {
        id: world.clock.new_id(),
        org_id: world.org,
        site_id: world.site,
        list: list(world),
        key,
        object_label: key,
        device_key: Some("ap"),
        basis: WantedBasis::Applied,
        wanted_change_id: None,
        found: &found,
        now: world.clock.now(),
    };
    insert(tx, &new).await
}

on_both! {
    async fn a_difference_is_open_until_it_is_closed_and_then_kept_for_a_while(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let first = opened(&mut tx, &world, "v20").await.unwrap();
        assert_eq!((first.status, first.revision, first.site_ref.clone()), (DriftStatus::Open, 1, None));
        assert_eq!(first.differences, found("lobby").differences);
        let change = world.clock.new_id();
        assert!(put_back(&mut tx, first.id, change, &Said::default(), world.clock.now()).await.unwrap());
        refind(&mut tx, first.id, &found("hall"), world.clock.now()).await.unwrap();
        let again = Drift::find(&mut tx, &world.scope(), first.id).await.unwrap().unwrap();
        assert_eq!((again.revision, again.put_back_id), (3, None), "another difference needs another change");
        let said = Said { user: Some(world.user), label: Some(DriftLabel::Person), notes: Some("Ada did") };
        let now = world.clock.now();
        assert!(close(&mut tx, first.id, DriftStatus::Adopted, &said, now).await.unwrap());
        assert!(!close(&mut tx, first.id, DriftStatus::Resolved, &said, now).await.unwrap(), "once");
        let closed = Drift::find(&mut tx, &world.scope(), first.id).await.unwrap().unwrap();
        assert_eq!((closed.label, closed.said_by, closed.closed_by), (DriftLabel::Person, Some(world.user), Some(world.user)));
        assert_eq!(closed.notes.as_deref(), Some("Ada did"));
        assert_eq!(open_at(&mut tx, world.controller).await.unwrap(), 0);
        opened(&mut tx, &world, "v20").await.unwrap();
        assert_eq!(open_of(&mut tx, &list(&world)).await.unwrap().len(), 1);
        assert_eq!(trim(&mut tx, now, 10).await.unwrap(), 0);
        assert_eq!(trim(&mut tx, world.clock.now(), 10).await.unwrap(), 1);
        assert_eq!(open_at(&mut tx, world.controller).await.unwrap(), 1, "what is open is not forgotten");
    }

    async fn differences_of_lists_that_are_read_no_more_are_closed(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let row = crate::model_readings::Row::new("vlan", "");
        crate::model_readings::save(&mut tx, world.controller, &row).await.unwrap();
        opened(&mut tx, &world, "v20").await.unwrap();
        assert_eq!(resolve_unread(&mut tx, world.clock.now(), 10).await.unwrap(), 0);
        crate::model_readings::remove(&mut tx, &list(&world)).await.unwrap();
        assert_eq!(resolve_unread(&mut tx, world.clock.now(), 10).await.unwrap(), 1);
        assert_eq!(open_at(&mut tx, world.controller).await.unwrap(), 0);
    }

    async fn an_object_has_one_open_difference(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        opened(&mut tx, &world, "v20").await.unwrap();
        assert!(opened(&mut tx, &world, "v20").await.is_err());
    }

    async fn differences_are_seen_within_the_scope_and_by_their_filters(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        let first = opened(&mut tx, &world, "v20").await.unwrap();
        opened(&mut tx, &world, "v30").await.unwrap();
        opened(&mut tx, &other, "v40").await.unwrap();
        close(&mut tx, first.id, DriftStatus::Resolved, &Said::default(), world.clock.now()).await.unwrap();
        for (filter, keys) in [
            (DriftFilter::default(), vec!["v20", "v30"]),
            (DriftFilter { status: Some(DriftStatus::Open), ..DriftFilter::default() }, vec!["v30"]),
            (DriftFilter { label: Some(DriftLabel::Vendor), ..DriftFilter::default() }, vec![]),
            (DriftFilter { kind: Some("ssid".to_owned()), ..DriftFilter::default() }, vec![]),
            (DriftFilter { search: Some("V3".to_owned()), ..DriftFilter::default() }, vec!["v30"]),
            (DriftFilter { controller_id: Some(other.controller), ..DriftFilter::default() }, vec![]),
            (DriftFilter { site_id: Some(world.site), kind: Some("vlan".to_owned()), ..DriftFilter::default() }, vec!["v20", "v30"]),
        ] {
            let (rows, total) = super::list(&mut tx, &world.scope(), &filter, page()).await.unwrap();
            let mut found: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
            found.sort_unstable();
            assert_eq!((found, total), (keys.clone(), i64::try_from(keys.len()).unwrap()), "{filter:?}");
        }
        assert!(Drift::find(&mut tx, &other.scope(), first.id).await.unwrap().is_none());
        follow_controller(&mut tx, world.controller, other.site).await.unwrap();
        assert_eq!(Drift::find(&mut tx, &Scope::everything(), first.id).await.unwrap().unwrap().site_id, other.site);
    }
}
