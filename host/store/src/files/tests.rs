use heddle_core::Clock;

use super::*;
use crate::testing::{World, on_both, page};

/// Two pieces and a bit; no piece is like another.
fn bytes() -> Vec<u8> {
    (0..PIECE_BYTES * 2 + 7).map(|at| u8::try_from(at / 1_000 % 251).unwrap()).collect()
}

async fn begun(tx: &mut Tx, world: &World, name: &str) -> FileId {
    let now = world.clock.now();
    let new = NewFile {
        id: world.clock.new_id(),
        org_id: world.org,
        name: name.to_owned(),
        content_type: "application/octet-stream".to_owned(),
        secret: b"sealed".to_vec(),
        created_by: world.user,
        expires_at: now + TimeDelta::days(7),
        now,
        source: None,
    };
    begin(tx, &new).await.unwrap();
    for (number, piece) in (0_i64..).zip(bytes().chunks(PIECE_BYTES)) {
        assert!(add(tx, new.id, number, (piece, piece.len()), now).await.unwrap());
    }
    new.id
}

async fn kept(tx: &mut Tx, world: &World, name: &str, sha256: &str) -> File {
    let id = begun(tx, world, name).await;
    complete(tx, id, sha256, world.clock.now()).await.unwrap().unwrap()
}

async fn read(tx: &mut Tx, id: FileId) -> Vec<u8> {
    let mut all = Vec::new();
    for number in 0.. {
        let piece = piece(tx, id, number).await.unwrap();
        if piece.is_empty() {
            break;
        }
        assert!(piece.len() <= PIECE_BYTES);
        all.extend(piece);
    }
    all
}

on_both! {
    async fn a_file_is_found_once_it_is_complete_and_comes_back_piece_by_piece(db) {
        let world = World::new(&db, "files").await;
        let mut tx = db.write().await.unwrap();
        let id = begun(&mut tx, &world, "debian.iso").await;
        let scope = world.scope();
        assert_eq!(find(&mut tx, &scope, None, id).await.unwrap(), None, "its bytes are still coming");
        assert!(read(&mut tx, id).await.is_empty());
        let usage_before = usage(&mut tx, world.org).await.unwrap();
        assert_eq!((usage_before.files, usage_before.bytes), (1, 2 * 1_048_576 + 7), "it takes its room already");

        let file = complete(&mut tx, id, "abc", world.clock.now()).await.unwrap().unwrap();
        assert_eq!(find(&mut tx, &scope, None, id).await.unwrap(), Some(file.clone()));
        assert_eq!(lock_copies(&mut tx, world.org, "abc").await.unwrap(), std::slice::from_ref(&file));
        assert_eq!(file.secret, b"sealed");
        let found = find_by_digests(&mut tx, world.org, &["abc", "none"].into()).await.unwrap();
        assert_eq!(found, [("abc".to_owned(), file.clone())].into());
        assert_eq!(lock_by_digest(&mut tx, world.org, "abc").await.unwrap(), Some(file.clone()));
        assert!(read(&mut tx, id).await == bytes());
        assert!(!add(&mut tx, id, 3, (b"more", 4), world.clock.now()).await.unwrap(), "nothing is added to it");
        let (found, total) = list(&mut tx, &scope, None, Some("DEBIAN"), page()).await.unwrap();
        assert_eq!((found, total), (vec![file], 1));
        let other = Some(world.clock.new_id());
        assert_eq!(find(&mut tx, &scope, other, id).await.unwrap(), None, "another user uploaded it");
        let elsewhere = Scope::organization(Clock::default().new_id());
        assert_eq!(find(&mut tx, &elsewhere, None, id).await.unwrap(), None);
    }

    async fn a_file_that_a_pending_change_needs_does_not_expire(db) {
        let world = World::new(&db, "files").await;
        let change = world.staged(&db).await;
        let mut tx = db.write().await.unwrap();
        let (held, free) = (kept(&mut tx, &world, "held", "aa").await, kept(&mut tx, &world, "free", "bb").await);
        hold(&mut tx, change, world.org, "aa").await.unwrap();
        hold(&mut tx, change, world.org, "aa").await.unwrap();
        assert_eq!(holders(&mut tx, world.org, "aa").await.unwrap(), [change]);
        assert!(holders(&mut tx, world.org, "bb").await.unwrap().is_empty());
        let now = world.clock.now();
        assert_eq!(expire(&mut tx, now, 10).await.unwrap(), 0, "both are young");
        let later = now + TimeDelta::days(8);
        assert_eq!(expire(&mut tx, later, 10).await.unwrap(), 1);
        assert_eq!(find(&mut tx, &world.scope(), None, free.id).await.unwrap(), None);
        assert_eq!(find(&mut tx, &world.scope(), None, held.id).await.unwrap(), Some(held));
        while sweep(&mut tx, later, 5).await.unwrap() > 0 {}
        assert_eq!(usage(&mut tx, world.org).await.unwrap().files, 1, "the bytes of the other one are gone");
    }

    async fn what_an_upload_left_is_swept_after_an_hour(db) {
        let world = World::new(&db, "files").await;
        let mut tx = db.write().await.unwrap();
        begun(&mut tx, &world, "left").await;
        let now = world.clock.now();
        assert_eq!(sweep(&mut tx, now + TimeDelta::minutes(50), 100).await.unwrap(), 0, "it may still come");
        while sweep(&mut tx, now + TimeDelta::minutes(61), 5).await.unwrap() > 0 {}
        assert_eq!(usage(&mut tx, world.org).await.unwrap(), Usage { files: 0, bytes: 0 });
    }

    async fn of_copies_the_one_that_lasts_longest_is_used(db) {
        let world = World::new(&db, "files").await;
        let mut tx = db.write().await.unwrap();
        let expired = kept(&mut tx, &world, "first", "aa").await;
        world.clock.advance(TimeDelta::days(8));
        let lasting = kept(&mut tx, &world, "second", "aa").await;
        assert!(expired.id.0 < lasting.id.0 && expired.expires_at < world.clock.now());
        assert_eq!(lock_by_digest(&mut tx, world.org, "aa").await.unwrap(), Some(lasting.clone()));
        let found = find_by_digests(&mut tx, world.org, &["aa"].into()).await.unwrap();
        assert_eq!(found, [("aa".to_owned(), lasting.clone())].into());
        assert_eq!(lock_copies(&mut tx, world.org, "aa").await.unwrap(), [expired, lasting]);
    }

    async fn nothing_comes_to_an_upload_that_is_taken_for_abandoned(db) {
        let world = World::new(&db, "files").await;
        let mut tx = db.write().await.unwrap();
        let id = begun(&mut tx, &world, "slow").await;
        let late = world.clock.now() + ABANDONED_AFTER;
        assert!(!add(&mut tx, id, 3, (b"more", 4), late).await.unwrap());
        assert_eq!(complete(&mut tx, id, "aa", late).await.unwrap(), None);
        let in_time = late - TimeDelta::seconds(1);
        assert!(add(&mut tx, id, 3, (b"more", 4), in_time).await.unwrap());
        assert!(complete(&mut tx, id, "aa", late).await.unwrap().is_some(), "what came extends the time");
    }

    async fn a_sweep_removes_few_parts_at_once(db) {
        let world = World::new(&db, "files").await;
        let mut tx = db.write().await.unwrap();
        // Five uploads of seventeen parts each.
        for name in ["a", "b", "c", "d", "e"] {
            begun(&mut tx, &world, name).await;
        }
        let later = world.clock.now() + TimeDelta::minutes(61);
        assert_eq!(sweep(&mut tx, later, 1_000).await.unwrap(), 64);
        assert_eq!(sweep(&mut tx, later, 1_000).await.unwrap(), 21);
        assert_eq!(sweep(&mut tx, later, 1_000).await.unwrap(), 0);
        assert_eq!(usage(&mut tx, world.org).await.unwrap().files, 0);
    }

    async fn a_file_that_is_removed_is_gone_at_once_and_its_bytes_part_by_part(db) {
        let world = World::new(&db, "files").await;
        let mut tx = db.write().await.unwrap();
        let file = kept(&mut tx, &world, "old", "aa").await;
        assert!(clear(&mut tx, file.id, 100).await.unwrap());
        assert!(read(&mut tx, file.id).await == bytes(), "nothing is cleared of a file in use");
        withdraw(&mut tx, file.id, world.clock.now()).await.unwrap();
        assert_eq!(find(&mut tx, &world.scope(), None, file.id).await.unwrap(), None);
        assert!(!clear(&mut tx, file.id, 10).await.unwrap());
        assert!(clear(&mut tx, file.id, 10).await.unwrap());
        assert_eq!(usage(&mut tx, world.org).await.unwrap().files, 0);
    }
}
