//! Passwords: what a good one is, and argon2id behind two slots.
//!
//! Every hash costs 19 MiB and some tens of milliseconds on purpose; the slots
//! keep a burst of logins from taking the machine.

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use heddle_core::secret::{Secret, random_bytes};
use tokio::sync::Semaphore;

use crate::http::error::{Detail, Error};

/// Fewest characters of a password.
const LENGTH_MIN: usize = 12;
/// Most bytes of a password.
const BYTES_MAX: usize = 1024;

static SLOTS: Semaphore = Semaphore::const_new(2);

/// A hash that no password has, of the same cost as real ones: for logins of users who do not exist.
pub(super) fn nobody() -> String {
    "$argon2id$v=19$m=19456,t=2,p=1$aGVkZGxlZHVtbXlzYWx0MQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        .to_owned()
}

/// Whether the hash was made at another cost than today's.
pub(super) fn needs_rehash(hash: &str) -> bool {
    !hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$")
}

/// Every rule that a new password does not meet.
pub(crate) fn faults(field: &str, password: &Secret) -> Vec<Detail> {
    let text = password.expose();
    let rules = [
        (text.chars().count() >= LENGTH_MIN, "password needs at least 12 characters", "too_short"),
        (text.len() <= BYTES_MAX, "password must not be longer than 1024 bytes", "too_long"),
        (text.chars().any(char::is_uppercase), "password needs an upper-case letter", "missing_uppercase"),
        (text.chars().any(char::is_lowercase), "password needs a lower-case letter", "missing_lowercase"),
        (text.chars().any(|c| c.is_ascii_digit()), "password needs a digit", "missing_digit"),
        (text.chars().any(|c| !c.is_alphanumeric()), "password needs a special character", "missing_special"),
    ];
    let failed = rules.into_iter().filter(|(holds, ..)| !holds);
    failed.map(|(_, message, kind)| Detail::new(field, message, kind)).collect()
}

/// The argon2id hash of a password, with its parameters and a new salt.
pub(crate) async fn hash(password: Secret) -> Result<String, Error> {
    in_slot(move || {
        let salt = SaltString::encode_b64(random_bytes::<16>().as_slice())?;
        let hash = Argon2::default().hash_password(password.expose().as_bytes(), &salt)?;
        Ok(hash.to_string())
    })
    .await
}

/// Whether `hash` is the password's.
pub(super) async fn verify(password: Secret, hash: String) -> Result<bool, Error> {
    in_slot(move || {
        let hash = PasswordHash::new(&hash)?;
        match Argon2::default().verify_password(password.expose().as_bytes(), &hash) {
            Ok(()) => Ok(true),
            Err(argon2::password_hash::Error::Password) => Ok(false),
            Err(error) => Err(error),
        }
    })
    .await
}

async fn in_slot<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, argon2::password_hash::Error> + Send + 'static,
) -> Result<T, Error> {
    let slot = SLOTS.acquire().await.expect("the slots are never closed");
    let done = tokio::task::spawn_blocking(move || {
        // Held until the work ends, also when the request is gone by then.
        let _slot = slot;
        work()
    });
    done.await.map_err(Error::internal)?.map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(password: &str, expected: &[&str]) {
        let kinds: Vec<String> =
            faults("password", &Secret::new(password)).into_iter().map(|detail| detail.kind).collect();
        assert_eq!(kinds, expected, "{password}");
    }

    #[test]
    fn every_rule_that_fails_is_named() {
        check("Correct-Horse-7", &[]);
        check("Überlänge-ß-42", &[]);
        check("short", &["too_short", "missing_uppercase", "missing_digit", "missing_special"]);
        check(
            "",
            &["too_short", "missing_uppercase", "missing_lowercase", "missing_digit", "missing_special"],
        );
        check("alllowercase-1", &["missing_uppercase"]);
        check("ALLUPPERCASE-1", &["missing_lowercase"]);
        check("NoDigitsInHere!", &["missing_digit"]);
        check("NoSpecialChar123", &["missing_special"]);
        check(&format!("Aa1-{}", "x".repeat(1021)), &["too_long"]);
    }

    #[tokio::test]
    async fn a_hash_is_only_its_passwords() {
        let stored = hash(Secret::new("Correct-Horse-7")).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify(Secret::new("Correct-Horse-7"), stored.clone()).await.unwrap());
        assert!(!verify(Secret::new("correct-horse-7"), stored).await.unwrap());
    }

    #[tokio::test]
    async fn nobodys_hash_can_be_verified_and_never_fits() {
        assert!(!verify(Secret::new("anything"), nobody()).await.unwrap());
    }
}
