//! Slugs: short names for addresses, unique where they live.

/// Most characters of a slug.
pub const SLUG_CHARS_MAX: usize = 63;
/// What [`check`] accepts, as a pattern for the document.
pub const SLUG_PATTERN: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";

/// The slug that was given, checked, or else the one that the name gives.
pub fn given_or_derived(given: Option<&str>, name: &str) -> Result<String, String> {
    match given {
        Some(slug) => check(slug).map(|()| slug.to_owned()),
        None => derive(name).ok_or_else(|| "no slug can be made of this name: give one".to_owned()),
    }
}

/// Lower-case letters and digits of the name, with hyphens between its parts.
fn derive(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let parts = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let mut slug = parts.collect::<Vec<_>>().join("-");
    slug.truncate(SLUG_CHARS_MAX);
    let slug = slug.trim_end_matches('-');
    (!slug.is_empty()).then(|| slug.to_owned())
}

/// Refuses what is not 1 to 63 lower-case ASCII letters, digits and hyphens, with no hyphen at an end. The
/// error is a message for the client. Whether the slug is free shows when it is stored.
pub fn check(slug: &str) -> Result<(), String> {
    let shape = slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let ends = !slug.starts_with('-') && !slug.ends_with('-');
    if shape && ends && (1..=SLUG_CHARS_MAX).contains(&slug.len()) {
        return Ok(());
    }
    let shown: String = slug.chars().take(SLUG_CHARS_MAX).collect();
    Err(format!(
        "slug '{shown}' is not accepted: use 1 to {SLUG_CHARS_MAX} lower-case letters, digits and hyphens, with no hyphen at an end"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_derived(name: &str, expected: Option<&str>) {
        assert_eq!(given_or_derived(None, name).ok().as_deref(), expected, "{name}");
    }

    #[test]
    fn a_name_gives_its_slug() {
        check_derived("Head Office", Some("head-office"));
        check_derived("  Plant 7 / West -- roof ", Some("plant-7-west-roof"));
        check_derived("ACME", Some("acme"));
        check_derived("東京", None);
        check_derived("", None);
        check_derived(&"a".repeat(80), Some(&"a".repeat(63)));
        check_derived(&format!("{} b", "a".repeat(62)), Some(&"a".repeat(62)));
    }

    #[test]
    fn only_a_well_formed_slug_is_taken_as_given() {
        assert_eq!(given_or_derived(Some("west-2"), "Other").as_deref(), Ok("west-2"));
        for slug in ["", "-a", "a-", "West", "a b", "a_b", "ä", &"a".repeat(64)] {
            assert!(given_or_derived(Some(slug), "Other").is_err(), "{slug}");
        }
    }
}
