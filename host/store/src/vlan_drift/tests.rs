use super::*;
use crate::testing::{World, on_both};

on_both! {
    async fn differences_are_replaced_and_noted_as_staged(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let now = world.clock.now();
        let of = |vlan_id: i64, class: VlanFault| VlanDrift {
            controller_id: world.controller,
            site_ref: String::new(),
            class,
            vlan_id,
            place: String::new(),
            expected: Some("Guests".to_owned()),
            found: None,
            since: now,
            staged_at: None,
        };
        replace(&mut tx, world.site, &[of(20, VlanFault::Missing), of(10, VlanFault::NameDiffers)]).await.unwrap();
        let known = of_site(&mut tx, world.site).await.unwrap();
        assert_eq!(known.iter().map(|drift| drift.vlan_id).collect::<Vec<_>>(), [20, 10], "by class, then by number");
        assert_eq!(known[0].identity(), of(20, VlanFault::Missing).identity());
        note_staged(&mut tx, world.site, &known[..1], now).await.unwrap();
        let staged: Vec<_> = of_site(&mut tx, world.site).await.unwrap().iter().map(|drift| drift.staged_at).collect();
        assert_eq!(staged, [Some(now), None], "the other one waits");
        replace(&mut tx, world.site, &[]).await.unwrap();
        assert!(of_site(&mut tx, world.site).await.unwrap().is_empty());
    }
}
