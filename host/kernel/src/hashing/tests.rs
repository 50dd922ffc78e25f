use super::*;

const GOOD: &str = "Correct-Horse-7";
/// A hash that was made before the cost was raised.
const OLD: &str = "$argon2id$v=19$m=19456,t=2,p=1$";

fn hashing() -> Hashing {
    Hashing::new(COST)
}

#[tokio::test]
async fn a_hash_is_only_its_passwords() {
    let stored = hashing().hash(Secret::new(GOOD)).await.unwrap();
    assert!(hashing().verify(Secret::new(GOOD), stored.clone()).await.unwrap());
    assert!(!hashing().verify(Secret::new("correct-horse-7"), stored.clone()).await.unwrap());
    assert_ne!(stored, hashing().hash(Secret::new(GOOD)).await.unwrap(), "each has a salt of its own");
}

#[tokio::test]
async fn nobodys_hash_costs_the_same_and_never_fits() {
    let stored = hashing().hash(Secret::new(GOOD)).await.unwrap();
    let cost = |hash: &str| hash.rsplitn(3, '$').last().unwrap().to_owned();
    assert_eq!(cost(&stored), cost(&hashing().decoy()));
    assert!(!hashing().verify(Secret::new("anything"), hashing().decoy()).await.unwrap());
    assert!(!hashing().verify(Secret::new(""), hashing().decoy()).await.unwrap());
}

#[tokio::test]
async fn who_has_no_password_fits_none() {
    for none in ["", "!", "sso"] {
        assert!(!is_set(none) && !hashing().needs_rehash(none));
        assert!(!hashing().verify(Secret::new(none), none.to_owned()).await.unwrap());
    }
    assert!(is_set(&hashing().decoy()));
}

#[tokio::test]
async fn a_hash_of_another_cost_still_fits_and_is_to_be_made_anew() {
    let params = Params::new(19_456, 2, 1, None).unwrap();
    let older = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
    let stored = older.hash_password(GOOD.as_bytes(), &salt).unwrap().to_string();
    assert!(stored.starts_with(OLD));
    assert!(hashing().verify(Secret::new(GOOD), stored.clone()).await.unwrap());
    assert!(hashing().needs_rehash(&stored));
    assert!(hashing().needs_rehash(&hashing().decoy().replace("argon2id", "argon2i")));
    assert!(hashing().needs_rehash(&hashing().decoy().replace("v=19", "v=16")));
    assert!(!hashing().needs_rehash(&hashing().decoy()));
    assert!(!hashing().needs_rehash(&hashing().hash(Secret::new(GOOD)).await.unwrap()));
}

#[tokio::test(flavor = "current_thread")]
async fn hashing_does_not_hold_up_the_thread_that_serves() {
    let hashing = hashing();
    let work = hashing.hash(Secret::new(GOOD));
    tokio::pin!(work);
    let mut beats = 0;
    loop {
        tokio::select! {
            done = &mut work => break drop(done.unwrap()),
            () = tokio::task::yield_now() => beats += 1,
        }
    }
    assert!(beats > 0, "other work went on meanwhile: {beats}");
}

#[tokio::test]
async fn a_long_queue_is_refused_at_once_and_one_that_ends_lets_others_in() {
    let hashing = Arc::new(Hashing::with(COST, 1, 1));
    let first = hashing.place().await.unwrap();
    let waiting = hashing.clone();
    #[expect(clippy::disallowed_methods, reason = "it is awaited below")]
    let second = tokio::spawn(async move { waiting.place().await });
    while hashing.admitted.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let refused = hashing.place().await.unwrap_err();
    assert!(matches!(refused, Error::RateLimited(RateExceeded::AtOnce)), "{refused:?}");
    drop(first);
    drop(second.await.unwrap().unwrap());
    hashing.place().await.unwrap();
}

#[test]
fn hashes_leave_a_core_and_memory_to_the_rest() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    assert!((1..=PLACES_MAX).contains(&places()) && (cores == 1 || places() < cores));
    assert!(PLACES_MAX * (COST.memory_kib as usize) <= 512 * 1024, "KiB at once");
}
