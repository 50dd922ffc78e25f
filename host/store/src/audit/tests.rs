use super::*;
use crate::testing::{World, on_both, page, tamper};

async fn write(db: &crate::Db, world: &World, count: usize) {
    let mut tx = db.write().await.unwrap();
    for _ in 0..count {
        let new = NewAudit {
            org_id: world.org,
            actor_id: Some(world.user),
            actor_name: "ann".into(),
            action: "site.update".into(),
            target_type: "site".into(),
            target_id: Some(world.site.0),
            detail: json!({"zebra": 1, "a": {"y": 1e5, "b": [1.0, 0.25, 1e300, -3]}, "text": "ü\n"}),
            request_id: None,
            ip: Some("192.0.2.1".into()),
        };
        append(&mut tx, &new, &world.clock).await.unwrap();
    }
    tx.commit().await.unwrap();
}

on_both! {
    async fn an_untouched_chain_is_valid(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 5).await;
        let mut tx = db.read().await.unwrap();
        let valid = Validation { valid: true, entries: 5, first_invalid_seq: None, head_matches: true };
        assert_eq!(validate(&mut tx, world.org).await.unwrap(), valid);
        assert_eq!(validate(&mut tx, world.clock.new_id()).await.unwrap().entries, 0);
        let filter = AuditFilter { action: Some("site.update".into()), actor_id: Some(world.user), target_type: Some("site".into()), target_id: Some(world.site.0), since: None, until: Some(world.clock.now()) };
        let (entries, total) = list(&mut tx, &world.scope(), &filter, page()).await.unwrap();
        assert_eq!((entries[0].seq, total), (5, 5));
        assert_eq!(list(&mut tx, &Scope::organization(world.clock.new_id()), &filter, page()).await.unwrap().1, 0);
    }

    async fn a_changed_entry_shows(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 4).await;
        tamper(&db, "UPDATE audit SET actor_name = 'bob' WHERE seq = 3").await;
        let found = validate(&mut db.read().await.unwrap(), world.org).await.unwrap();
        assert_eq!((found.valid, found.first_invalid_seq, found.head_matches), (false, Some(3), true));
    }

    async fn a_missing_entry_shows(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 4).await;
        tamper(&db, "DELETE FROM audit WHERE seq = 2").await;
        let found = validate(&mut db.read().await.unwrap(), world.org).await.unwrap();
        assert_eq!((found.valid, found.first_invalid_seq), (false, Some(2)));
    }

    async fn a_cut_end_shows(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 4).await;
        tamper(&db, "DELETE FROM audit WHERE seq = 4").await;
        let found = validate(&mut db.read().await.unwrap(), world.org).await.unwrap();
        assert_eq!((found.valid, found.first_invalid_seq, found.head_matches), (false, None, false));
    }
}
