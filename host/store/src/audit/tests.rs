use heddle_core::page::{Cursor, Place};

use super::*;
use crate::testing::{World, first, on_both, tamper};

fn key() -> AuditKey {
    AuditKey::new([7; 32])
}

async fn write(db: &crate::db::Db, world: &World, count: usize) {
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
        append(&mut tx, &new, &world.clock, &key()).await.unwrap();
    }
    tx.commit().await.unwrap();
}

async fn validate(tx: &mut Tx, org: OrgId) -> Result<Validation> {
    validate_knowing(tx, org, None).await
}

async fn validate_knowing(tx: &mut Tx, org: OrgId, known: Option<Known>) -> Result<Validation> {
    let mut walk = ChainWalk::begin(tx, org, 0, &key(), known).await?.unwrap();
    while walk.step(tx).await? {}
    Ok(walk.result())
}

on_both! {
    async fn an_untouched_chain_is_valid(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 5).await;
        let mut tx = db.read().await.unwrap();
        let valid = Validation { valid: true, entries: 5, first_invalid_seq: None, head_matches: Some(true), kept_head_matches: Some(true), checked_to_seq: 5, is_complete: true };
        assert_eq!(validate(&mut tx, world.org).await.unwrap(), valid);
        assert_eq!(validate(&mut tx, world.clock.new_id()).await.unwrap().entries, 0);
        let filter = AuditFilter { action: Some("site.update".into()), actor_id: Some(world.user), target_type: Some("site".into()), target_id: Some(world.site.0), since: None, until: Some(world.clock.now()) };
        let walked = walk(&mut tx, &world.scope(), &filter, first(2)).await.unwrap();
        assert_eq!((walked.items[0].seq, walked.items.len(), walked.total, walked.has_more), (5, 2, 5, true));
        assert_eq!(walk(&mut tx, &Scope::organization(world.clock.new_id()), &filter, first(2)).await.unwrap().total, 0);
    }

    async fn a_changed_entry_shows(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 4).await;
        tamper(&db, "UPDATE audit SET actor_name = 'bob' WHERE seq = 3").await;
        let found = validate(&mut db.read().await.unwrap(), world.org).await.unwrap();
        assert_eq!((found.valid, found.first_invalid_seq, found.head_matches), (false, Some(3), Some(true)));
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
        assert_eq!((found.valid, found.first_invalid_seq, found.head_matches), (false, None, Some(false)));
    }

    // The head is moved back to what the last remaining entry says.
    async fn a_cut_end_shows_although_the_head_was_moved_back(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 4).await;
        tamper(&db, "DELETE FROM audit WHERE seq = 4").await;
        tamper(&db, "UPDATE audit_head SET seq = 3, hash = (SELECT hash FROM audit WHERE seq = 3)").await;
        let found = validate(&mut db.read().await.unwrap(), world.org).await.unwrap();
        assert_eq!((found.valid, found.first_invalid_seq, found.head_matches), (false, None, Some(false)));
        // What is written behind it does not make it right.
        write(&db, &world, 3).await;
        let found = validate(&mut db.read().await.unwrap(), world.org).await.unwrap();
        assert_eq!((found.valid, found.first_invalid_seq, found.head_matches), (false, None, Some(false)));
    }

    // An old head, with the code that it had, is right by itself; only what is known from outside shows it.
    async fn an_old_head_with_its_code_shows_by_what_is_known_from_outside(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 3).await;
        let old = head(&mut db.read().await.unwrap(), world.org).await.unwrap().unwrap();
        write(&db, &world, 2).await;
        let new = head(&mut db.read().await.unwrap(), world.org).await.unwrap().unwrap();
        assert!(old.is_authentic(&key()) && new.is_authentic(&key()) && !new.is_authentic(&AuditKey::new([8; 32])));
        let known = |head: &Head| Some(Known { seq: head.seq, hash: head.hash.clone() });
        let mut tx = db.read().await.unwrap();
        for known in [known(&old), known(&new)] {
            assert_eq!(validate_knowing(&mut tx, world.org, known).await.unwrap().kept_head_matches, Some(true));
        }
        drop(tx);
        tamper(&db, "DELETE FROM audit WHERE seq > 3").await;
        let mut tx = db.write().await.unwrap();
        on!(&mut tx, conn => sqlx::query("UPDATE audit_head SET seq = $1, hash = $2, code = $3").bind(old.seq).bind(&old.hash).bind(&old.code).execute(conn).await.map(|_| ())).unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.read().await.unwrap();
        assert!(validate(&mut tx, world.org).await.unwrap().valid);
        let found = validate_knowing(&mut tx, world.org, known(&new)).await.unwrap();
        assert_eq!((found.valid, found.head_matches, found.kept_head_matches), (false, Some(true), Some(false)));
        drop(tx);
        // Other entries in place of those that were cut.
        write(&db, &world, 4).await;
        let mut tx = db.read().await.unwrap();
        let found = validate_knowing(&mut tx, world.org, known(&new)).await.unwrap();
        assert_eq!((found.valid, found.head_matches, found.kept_head_matches), (false, Some(true), Some(false)));
    }

    // A chain that was written before there was a key goes on with keyed entries, and cannot fall back.
    async fn entries_from_before_the_key_stay_valid_and_none_follows_a_keyed_one(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 3).await;
        let mut tx = db.write().await.unwrap();
        let mut previous = String::new();
        let entries: Vec<AuditEntry> = Select::new(SELECT, FROM).all(&mut tx, "a.seq", 10).await.unwrap();
        for mut entry in entries {
            (entry.hash_version, entry.previous_hash) = (PLAIN, previous);
            entry.hash = hash_of(&entry, &key());
            on!(&mut tx, conn => sqlx::query("UPDATE audit SET hash_version = 1, previous_hash = $2, hash = $3 WHERE id = $1").bind(entry.id).bind(&entry.previous_hash).bind(&entry.hash).execute(conn).await.map(|_| ())).unwrap();
            previous = entry.hash;
        }
        on!(&mut tx, conn => sqlx::query("UPDATE audit_head SET hash = $1, keyed_from_seq = NULL, code = NULL").bind(&previous).execute(conn).await.map(|_| ())).unwrap();
        tx.commit().await.unwrap();
        assert!(validate(&mut db.read().await.unwrap(), world.org).await.unwrap().valid);
        write(&db, &world, 2).await;
        let mut tx = db.read().await.unwrap();
        let found = validate(&mut tx, world.org).await.unwrap();
        assert_eq!((found.valid, found.entries), (true, 5));
        assert_eq!(head(&mut tx, world.org).await.unwrap().unwrap().keyed_from_seq, Some(4));
        drop(tx);
        tamper(&db, "UPDATE audit_head SET keyed_from_seq = NULL, code = NULL").await;
        assert_eq!(validate(&mut db.read().await.unwrap(), world.org).await.unwrap().head_matches, Some(false));
        tamper(&db, "UPDATE audit SET hash_version = 1 WHERE seq = 5").await;
        assert_eq!(validate(&mut db.read().await.unwrap(), world.org).await.unwrap().first_invalid_seq, Some(5));
    }

    async fn a_long_chain_is_checked_step_by_step_while_it_grows(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 1_500).await;
        let mut walk = ChainWalk::begin(&mut db.read().await.unwrap(), world.org, 0, &key(), None).await.unwrap().unwrap();
        assert!(walk.step(&mut db.read().await.unwrap()).await.unwrap());
        let so_far = walk.result();
        assert_eq!((so_far.valid, so_far.is_complete, so_far.checked_to_seq, so_far.head_matches), (true, false, 1_000, None));
        write(&db, &world, 2).await;
        assert!(!walk.step(&mut db.read().await.unwrap()).await.unwrap());
        let done = walk.result();
        assert_eq!((done.valid, done.is_complete, done.entries, done.checked_to_seq), (true, true, 1_502, 1_502));
        let mut tx = db.read().await.unwrap();
        let mut rest = ChainWalk::begin(&mut tx, world.org, 1_000, &key(), None).await.unwrap().unwrap();
        assert!(!rest.step(&mut tx).await.unwrap());
        assert_eq!((rest.result().valid, rest.result().entries), (true, 502));
        assert!(ChainWalk::begin(&mut tx, world.org, 9_999, &key(), None).await.unwrap().is_none());
    }

    // Page sizes that divide the rows and that do not; entries of one instant too.
    async fn a_walk_by_cursor_sees_each_entry_once_while_others_are_written(db) {
        let world = World::new(&db, "a").await;
        write(&db, &world, 23).await;
        tamper(&db, "UPDATE audit SET occurred_at = (SELECT MAX(occurred_at) FROM audit WHERE seq <= 7) WHERE seq <= 7").await;
        let mut written = 23;
        for per_page in [1, 2, 5, 7, 23, 50] {
            let existing: Vec<i64> = (1..=written).rev().collect();
            let mut seen: Vec<i64> = Vec::new();
            let mut request = first(per_page);
            loop {
                let mut tx = db.read().await.unwrap();
                let walked = walk(&mut tx, &world.scope(), &AuditFilter::default(), request).await.unwrap();
                drop(tx);
                seen.extend(walked.items.iter().map(|entry| entry.seq));
                write(&db, &world, 1).await;
                written += 1;
                let Some(last) = walked.items.last().filter(|_| walked.has_more) else { break };
                let cursor = Cursor { occurred_at: last.occurred_at, seq: last.seq, id: last.id.0 };
                request = WalkRequest { per_page, place: Place::Behind(Cursor::decode(&cursor.encode(false)).unwrap().0), is_ascending: false };
            }
            assert_eq!(seen, existing, "{per_page} per page");
        }
    }

    async fn what_was_done_behind_a_number_is_told_in_order(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        write(&db, &a, 5).await;
        let mut tx = db.read().await.unwrap();
        assert_eq!(heads(&mut tx, &[a.org, b.org]).await.unwrap(), [(a.org, 5)]);
        assert!(heads(&mut tx, &[]).await.unwrap().is_empty());
        let numbers = |done: Vec<Done>| done.iter().map(|done| done.seq).collect::<Vec<_>>();
        assert_eq!(numbers(done_behind(&mut tx, a.org, 2, 2).await.unwrap()), [3, 4]);
        assert_eq!(numbers(done_behind(&mut tx, a.org, 5, 2).await.unwrap()), Vec::<i64>::new());
        assert!(done_behind(&mut tx, b.org, 0, 2).await.unwrap().is_empty());
    }
}
