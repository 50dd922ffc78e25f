use super::*;
use crate::testing::{World, on_both};

const NEW: &[u8] = b"new-key-9-and-the-rest";

const CREDENTIAL: SealedColumn = SealedColumn { key_id: Some("key_id"), ..SealedColumn::of("credential") };
const CHANGE: SealedColumn = SealedColumn::of("change");

on_both! {
    async fn only_what_another_key_sealed_is_listed_and_replaced(db) {
        let (one, two) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mark = &NEW[..MARK_BYTES];
        let mut tx = db.write().await.unwrap();
        let found = under_others(&mut tx, CREDENTIAL, mark, None, 10).await.unwrap();
        // Two of one millisecond are in any order.
        let (one, two) = if one.credential.0 < two.credential.0 { (one, two) } else { (two, one) };
        assert_eq!(found.iter().map(|row| row.id).collect::<Vec<_>>(), [one.credential.0, two.credential.0]);
        let behind = under_others(&mut tx, CREDENTIAL, mark, Some(one.credential.0), 10).await.unwrap();
        assert_eq!(behind.len(), 1);
        assert_eq!(under_others(&mut tx, CREDENTIAL, mark, None, 1).await.unwrap().len(), 1);

        assert!(replace(&mut tx, CREDENTIAL, &found[0], NEW, "k9").await.unwrap());
        assert!(!replace(&mut tx, CREDENTIAL, &found[0], NEW, "k9").await.unwrap(), "somebody was faster");
        let stored = crate::credentials::find_sealed(&mut tx, one.org, one.credential).await.unwrap().unwrap();
        assert_eq!((stored.secret.as_slice(), stored.key_id.as_str(), stored.version), (NEW, "k9", 1));
        assert_eq!(under_others(&mut tx, CREDENTIAL, mark, None, 10).await.unwrap().len(), 1);
        let shares = shares(&mut tx, CREDENTIAL).await.unwrap();
        assert_eq!(shares.iter().map(|share| share.rows).collect::<Vec<_>>(), [1, 1]);
        assert!(shares.iter().any(|share| share.mark == mark), "{shares:?}");
    }

    async fn a_change_without_a_secret_is_not_listed(db) {
        let world = World::new(&db, "a").await;
        let id = world.staged(&db).await;
        let mut tx = db.write().await.unwrap();
        let found = under_others(&mut tx, CHANGE, b"123456789", None, 10).await.unwrap();
        assert_eq!(found.iter().map(|row| row.id).collect::<Vec<_>>(), [id.0]);
        assert!(replace(&mut tx, CHANGE, &found[0], b"1234567890", "k").await.unwrap());
        crate::changes::discard(&mut tx, &world.scope(), id, None, world.clock.now()).await.unwrap();
        assert!(under_others(&mut tx, CHANGE, b"x", None, 10).await.unwrap().is_empty());
        assert!(shares(&mut tx, CHANGE).await.unwrap().is_empty());
    }
}
