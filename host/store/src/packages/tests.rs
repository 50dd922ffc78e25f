use heddle_core::Clock;
use serde_json::json;

use super::*;
use crate::testing::{World, on_both};
use crate::users::NewUser;

fn package(version: &str, key: &str, clock: &Clock) -> Package {
    Package {
        manifest_sha256: format!("{version}-{key}"),
        adapter_id: "acme-switch".into(),
        version: version.into(),
        component_sha256: "ab".into(),
        publisher: "acme".into(),
        key_id: key.into(),
        rules: json!(["counts as a read: POST /rpc"]),
        first_served_at: clock.now(),
    }
}

on_both! {
    async fn the_first_key_of_an_adapter_stays_until_it_is_bound_anew(db) {
        let clock = Clock::default();
        let mut tx = db.write().await.unwrap();
        assert_eq!(find_binding(&mut tx, "acme-switch").await.unwrap(), None);
        let first = package("1.0.0", "k1", &clock);
        assert_eq!(hold_binding(&mut tx, &first).await.unwrap().key_id, "k1");
        let held = hold_binding(&mut tx, &package("2.0.0", "k2", &clock)).await.unwrap();
        assert_eq!((held.key_id.as_str(), held.version.as_str()), ("k1", "1.0.0"));
        let new = Binding { key_id: "k2".into(), version: "2.0.0".into(), ..held };
        rebind(&mut tx, &new, clock.now()).await.unwrap();
        assert_eq!(find_binding(&mut tx, "acme-switch").await.unwrap(), Some(new));
    }

    async fn a_package_is_new_once_and_audited_once(db) {
        let clock = Clock::default();
        let mut tx = db.write().await.unwrap();
        let (first, second) = (package("1.0.0", "k1", &clock), package("2.0.0", "k1", &clock));
        assert!(record(&mut tx, &first).await.unwrap());
        assert!(!record(&mut tx, &first).await.unwrap());
        assert!(record(&mut tx, &second).await.unwrap());
        assert_eq!(take_unaudited(&mut tx, clock.now()).await.unwrap(), [first, second]);
        assert!(take_unaudited(&mut tx, clock.now()).await.unwrap().is_empty());
        let third = package("3.0.0", "k1", &clock);
        assert!(record(&mut tx, &third).await.unwrap());
        mark_audited(&mut tx, &third.manifest_sha256, clock.now()).await.unwrap();
        assert!(take_unaudited(&mut tx, clock.now()).await.unwrap().is_empty());
    }

    async fn the_platform_belongs_to_the_first_super_admin(db) {
        let mut tx = db.write().await.unwrap();
        assert_eq!(platform_organization(&mut tx).await.unwrap(), None);
        tx.commit().await.unwrap();
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(platform_organization(&mut tx).await.unwrap(), None, "an org_admin is not enough");
        let root = NewUser { role: Role::SuperAdmin, ..world.new_user(world.clock.new_id(), "root") };
        crate::users::insert(&mut tx, &root).await.unwrap();
        assert_eq!(platform_organization(&mut tx).await.unwrap(), Some(world.org));
    }
}
