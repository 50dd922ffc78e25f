use std::collections::BTreeMap;

use super::*;

const GOOD: &str = "Correct-Horse-7";
/// What was made before the cost was raised.
const OLD: &str = "$argon2id$v=19$m=19456,t=2,p=1$";

fn config(pairs: &[(&str, &str)]) -> Config {
    let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::from_maps(&map, &BTreeMap::new()).unwrap()
}

fn kinds(config: &Config, password: &str, names: &[&str]) -> Vec<String> {
    let found = faults(config, "password", &Secret::new(password), names);
    found.into_iter().map(|detail| detail.kind).collect()
}

#[track_caller]
fn check(password: &str, expected: &[&str]) {
    assert_eq!(kinds(&config(&[]), password, &["ada", "lovelace@example.org"]), expected, "{password}");
}

#[test]
fn every_rule_that_fails_is_named() {
    check(GOOD, &[]);
    check("Überlänge-ß-42", &[]);
    check("short", &["too_short", "missing_uppercase", "missing_digit", "missing_special"]);
    let all = ["too_short", "missing_uppercase", "missing_lowercase", "missing_digit", "missing_special"];
    check("", &all);
    check("alllowercase-1", &["missing_uppercase"]);
    check("ALLUPPERCASE-1", &["missing_lowercase"]);
    check("NoDigitsInHere!", &["missing_digit"]);
    check("NoSpecialChar123", &["missing_special"]);
    check(&format!("Aa1-{}", "x".repeat(1021)), &["too_long"]);
}

#[test]
fn each_rule_can_be_set() {
    let lax = config(&[
        ("PASSWORD_MIN_LENGTH", "8"),
        ("PASSWORD_REQUIRE_UPPERCASE", "false"),
        ("PASSWORD_REQUIRE_LOWERCASE", "false"),
        ("PASSWORD_REQUIRE_DIGIT", "false"),
        ("PASSWORD_REQUIRE_SPECIAL", "false"),
    ]);
    assert_eq!(kinds(&lax, "        ", &[]), [""; 0]);
    assert_eq!(kinds(&lax, "seven77", &[]), ["too_short"]);
    let long = config(&[("PASSWORD_MIN_LENGTH", "20")]);
    assert_eq!(kinds(&long, GOOD, &[]), ["too_short"]);
    let found = faults(&long, "new_password", &Secret::new(GOOD), &[]);
    assert_eq!(found[0].message, "password needs at least 20 characters");
    assert_eq!(found[0].field, "new_password");
    for (name, password, kind) in [
        ("PASSWORD_REQUIRE_UPPERCASE", "alllowercase-1", "missing_uppercase"),
        ("PASSWORD_REQUIRE_LOWERCASE", "ALLUPPERCASE-1", "missing_lowercase"),
        ("PASSWORD_REQUIRE_DIGIT", "NoDigitsInHere!", "missing_digit"),
        ("PASSWORD_REQUIRE_SPECIAL", "NoSpecialChar123", "missing_special"),
    ] {
        assert_eq!(kinds(&config(&[]), password, &[]), [kind]);
        assert_eq!(kinds(&config(&[(name, "false")]), password, &[]), [""; 0]);
    }
}

#[test]
fn a_password_does_not_hold_its_owners_name() {
    for password in ["Ada-Lovelace-1", "xXaDaX-123456", "1815-LOVELACE-x", "Heddle-adam-77"] {
        check(password, &["contains_name"]);
    }
    let named = |names: &[&str]| kinds(&config(&[]), GOOD, names);
    assert_eq!(named(&["correct-horse-7"]), ["contains_name"]);
    assert_eq!(named(&["x", "horse@example.org"]), ["contains_name"]);
    assert_eq!(named(&["x", "mail@horse.example"]), [""; 0], "only what is before the '@'");
    assert_eq!(named(&["co", "or@example.org", ""]), [""; 0], "two letters are in many words");
    assert_eq!(kinds(&config(&[]), "Jörgen-und-7-Zwerge", &["JÖRG"]), ["contains_name"]);
}

#[tokio::test]
async fn a_hash_is_only_its_passwords() {
    let stored = Hashing::default().hash(Secret::new(GOOD)).await.unwrap();
    assert!(Hashing::default().verify(Secret::new(GOOD), stored.clone()).await.unwrap());
    assert!(!Hashing::default().verify(Secret::new("correct-horse-7"), stored.clone()).await.unwrap());
    assert_ne!(
        stored,
        Hashing::default().hash(Secret::new(GOOD)).await.unwrap(),
        "each has a salt of its own"
    );
}

#[tokio::test]
async fn nobodys_hash_costs_the_same_and_never_fits() {
    let stored = Hashing::default().hash(Secret::new(GOOD)).await.unwrap();
    let cost = |hash: &str| hash.rsplitn(3, '$').last().unwrap().to_owned();
    assert_eq!(cost(&stored), cost(&nobody()));
    assert!(!Hashing::default().verify(Secret::new("anything"), nobody()).await.unwrap());
    assert!(!Hashing::default().verify(Secret::new(""), nobody()).await.unwrap());
}

#[tokio::test]
async fn who_has_no_password_fits_none() {
    for none in ["", "!", "sso"] {
        assert!(!is_set(none) && !needs_rehash(none));
        assert!(!Hashing::default().verify(Secret::new(none), none.to_owned()).await.unwrap());
    }
    assert!(is_set(&nobody()));
}

#[tokio::test]
async fn a_hash_of_another_cost_still_fits_and_is_to_be_made_anew() {
    let params = Params::new(19_456, 2, 1, None).unwrap();
    let older = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
    let stored = older.hash_password(GOOD.as_bytes(), &salt).unwrap().to_string();
    assert!(stored.starts_with(OLD));
    assert!(Hashing::default().verify(Secret::new(GOOD), stored.clone()).await.unwrap());
    assert!(needs_rehash(&stored));
    assert!(needs_rehash(&nobody().replace("argon2id", "argon2i")));
    assert!(needs_rehash(&nobody().replace("v=19", "v=16")));
    assert!(!needs_rehash(&nobody()));
    assert!(!needs_rehash(&Hashing::default().hash(Secret::new(GOOD)).await.unwrap()));
}

#[tokio::test(flavor = "current_thread")]
async fn hashing_does_not_hold_up_the_thread_that_serves() {
    let hashing = Hashing::default();
    let work = hashing.hash(Secret::new(GOOD));
    tokio::pin!(work);
    let mut beats = 0;
    loop {
        tokio::select! {
            done = &mut work => break drop(done.unwrap()),
            () = tokio::time::sleep(std::time::Duration::from_millis(2)) => beats += 1,
        }
    }
    assert!(beats > 3, "other work went on meanwhile: {beats}");
}

#[tokio::test]
async fn a_long_queue_is_refused_at_once_and_one_that_ends_lets_others_in() {
    let hashing = Arc::new(Hashing::with(1, 1));
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
