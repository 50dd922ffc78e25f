use super::*;
use crate::testing::{World, on_both, page};

fn said(vlan_id: i64, name: &str) -> SaidVlan {
    SaidVlan {
        vlan_id,
        name: Some(name.to_owned()),
        subnets: vec![format!("10.0.{vlan_id}.0/24")],
        gateway: None,
        dhcp: Some("server".to_owned()),
    }
}

on_both! {
    async fn what_a_brain_says_is_stored_changed_and_hidden(db) {
        let world = World::new(&db, "one").await;
        let place = Place { org_id: world.org, site_id: world.site, controller_id: world.controller, now: world.clock.now() };
        let mut tx = db.write().await.unwrap();
        let (staff, guests) = (said(10, "Staff"), said(20, "Guests"));
        let ids: [CanonicalVlanId; 2] = [world.clock.new_id(), world.clock.new_id()];
        insert(&mut tx, &place, &[(ids[0], &staff), (ids[1], &guests)]).await.unwrap();
        let stored = of_site(&mut tx, world.site).await.unwrap();
        assert_eq!(stored.iter().map(|vlan| vlan.vlan_id).collect::<Vec<_>>(), [10, 20]);
        assert!(staff.is_as(&stored[0]) && !staff.is_as(&stored[1]));
        let renamed = said(10, "Employees");
        let unnamed = SaidVlan { name: None, ..said(20, "") };
        update(&mut tx, &place, &[(ids[1], &unnamed), (ids[0], &renamed)]).await.unwrap();
        assert!(unnamed.is_as(&of_site(&mut tx, world.site).await.unwrap()[1]));
        remove(&mut tx, &ids[1..], world.clock.now()).await.unwrap();
        let stored = of_site(&mut tx, world.site).await.unwrap();
        assert!(stored.len() == 1 && renamed.is_as(&stored[0]) && stored[0].revision == 2, "{stored:?}");
        // The number is free again.
        insert(&mut tx, &place, &[(world.clock.new_id(), &guests)]).await.unwrap();
        let (listed, total) = list(&mut tx, &world.scope(), (Some(world.site), None), Some("GUEST"), page()).await.unwrap();
        assert_eq!((listed[0].vlan_id, total), (20, 1));
        let (none, _) = list(&mut tx, &world.scope(), (None, Some(11)), None, page()).await.unwrap();
        assert!(none.is_empty());
    }
}
