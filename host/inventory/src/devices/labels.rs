//! The rules of what people write on a device.

use std::collections::HashSet;

use heddle_core::name::has_hidden;
use heddle_kernel::checks::Checks;
use heddle_kernel::http::error::Error;
use heddle_store::devices::Labels;

pub(super) const NOTES_CHARS_MAX: usize = 2_000;
pub(super) const TAG_CHARS_MAX: usize = 64;
/// Most tags of one device.
pub(super) const TAGS_MAX: usize = 32;

pub(super) fn check_notes(checks: &mut Checks, field: &str, notes: &str) {
    checks.chars(field, notes, NOTES_CHARS_MAX);
}

/// Tags without the space around them, in their order.
pub(super) fn check_tags(checks: &mut Checks, field: &str, tags: &[String]) -> Vec<String> {
    let tags: Vec<String> = tags.iter().map(|tag| tag.trim().to_owned()).collect();
    checks.require(tags.len() <= TAGS_MAX, field, &format!("must not hold more than {TAGS_MAX} tags"));
    for (at, tag) in tags.iter().enumerate() {
        let fits = (1..=TAG_CHARS_MAX).contains(&tag.chars().count()) && !has_hidden(tag);
        checks.require(
            fits,
            &format!("{field}[{at}]"),
            &format!(
                "must have 1 to {TAG_CHARS_MAX} characters, none of them a control character, a direction mark or \
                 without width"
            ),
        );
    }
    let unique: HashSet<&String> = tags.iter().collect();
    checks.require(unique.len() == tags.len(), field, "must hold each tag once");
    tags
}

/// The tags with some taken off and then some put on at the end, unless they are there.
pub(super) fn retagged(tags: &[String], add: &[String], remove: &[String]) -> Result<Vec<String>, Error> {
    let mut tags: Vec<String> = tags.iter().filter(|tag| !remove.contains(tag)).cloned().collect();
    for tag in add {
        if !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
    if tags.len() > TAGS_MAX {
        return Err(Error::field(
            "tags",
            format!("device would have {} tags, {TAGS_MAX} at most", tags.len()),
        ));
    }
    Ok(tags)
}

/// Returns the names of the fields that changed.
pub(super) fn changed(before: &Labels, after: &Labels) -> Vec<&'static str> {
    let differs = [
        ("display_name", before.display_name != after.display_name),
        ("notes", before.notes != after.notes),
        ("tags", before.tags != after.tags),
        ("state", before.state != after.state),
    ];
    differs.into_iter().filter_map(|(field, differs)| differs.then_some(field)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(tags: &[&str]) -> Vec<String> {
        tags.iter().map(|tag| (*tag).to_owned()).collect()
    }

    #[track_caller]
    fn check(tags: &[&str], wrong: &[&str]) {
        let mut checks = Checks::default();
        check_tags(&mut checks, "tags", &texts(tags));
        let fields: Vec<String> = match checks.done() {
            Err(Error::Validation(details)) => details.into_iter().map(|detail| detail.field).collect(),
            _ => Vec::new(),
        };
        assert_eq!(fields, wrong, "{tags:?}");
    }

    #[test]
    fn tags_are_few_short_and_different() {
        check(&[], &[]);
        check(&["roof", "a, b", "größe"], &[]);
        check(&["roof", "", "a\tb"], &["tags[1]", "tags[2]"]);
        check(&["roof", " roof "], &["tags"]);
        check(&[&"ä".repeat(64)], &[]);
        check(&[&"ä".repeat(65)], &["tags[0]"]);
        let many: Vec<String> = (0..33).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        check(&many[..32], &[]);
        check(&many, &["tags"]);
    }

    #[test]
    fn retagging_keeps_the_order_and_the_limit() {
        let tags = texts(&["a", "b", "c"]);
        let result = retagged(&tags, &texts(&["d", "a"]), &texts(&["b", "x"])).unwrap();
        assert_eq!(result, ["a", "c", "d"]);
        let moved = retagged(&tags, &texts(&["a"]), &texts(&["a"])).unwrap();
        assert_eq!(moved, ["b", "c", "a"], "taken off, then put on");
        let full: Vec<String> = (0..32).map(|n| n.to_string()).collect();
        assert!(retagged(&full, &texts(&["x"]), &[]).is_err());
        assert!(retagged(&full, &texts(&["x"]), &texts(&["0"])).is_ok());
    }
}
