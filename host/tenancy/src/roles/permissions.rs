//! The words of a stored role: each is a permission or a wildcard that its author holds.

use heddle_core::permission::{KeyScope, Permissions};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, SCOPE_CHARS_MAX, SCOPES_MAX};
use heddle_kernel::http::error::Error;

/// Checks that every word is known and occurs once.
pub(super) fn check(words: &[String], all: &Permissions, checks: &mut Checks) {
    if words.len() > SCOPES_MAX {
        checks.require(false, "permissions", &format!("must not have more than {SCOPES_MAX} entries"));
        return;
    }
    for (at, word) in words.iter().enumerate() {
        let field = format!("permissions[{at}]");
        if word.chars().count() > SCOPE_CHARS_MAX {
            checks.chars(&field, word, SCOPE_CHARS_MAX);
        } else if let Err(unknown) = KeyScope::parse(word, all) {
            checks.require(false, &field, &unknown.to_string());
        }
        checks.require(!words[..at].contains(word), &field, "is named twice");
    }
}

/// Refuses words that the author does not hold, so that a reader of the role finds no more than its author had.
pub(super) fn require_held(caller: &Caller, all: &Permissions, words: &[String]) -> Result<(), Error> {
    let held = |word: &str| KeyScope::parse(word, all).is_ok_and(|pattern| pattern.is_held_by(caller.role));
    match words.iter().find(|word| !held(word)) {
        None => Ok(()),
        Some(word) => Err(Error::Refused {
            kind: "permission_denied",
            message: format!("permission '{word}' is required to store it in a role"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declarations::PERMISSIONS;

    #[track_caller]
    fn expect(words: &[&str], faulty: &[&str]) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut checks = Checks::default();
        check(&words, &Permissions::new(PERMISSIONS.iter().copied()), &mut checks);
        let fields: Vec<String> = match checks.done() {
            Ok(()) => Vec::new(),
            Err(Error::Validation(details)) => details.into_iter().map(|detail| detail.field).collect(),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(fields, faulty, "{words:?}");
    }

    #[test]
    fn each_word_that_is_not_a_permission_is_named() {
        expect(&[], &[]);
        expect(&["site:read", "site:*", "*"], &[]);
        expect(&["site:read", "sites:*", "site"], &["permissions[1]", "permissions[2]"]);
        expect(&["site:read", "user:read", "site:read"], &["permissions[2]"]);
        expect(&["site:read"; 33], &["permissions"]);
        expect(&["x".repeat(101).as_str()], &["permissions[0]"]);
    }
}
