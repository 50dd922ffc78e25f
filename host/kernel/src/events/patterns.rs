//! Patterns of event types as people write them: those that cover nothing are refused with the nearest right one.

use heddle_core::event::{EventType, EventTypes};
use heddle_core::nearest::{nearest, suggestion};

/// Longest pattern, in characters.
pub const PATTERN_CHARS_MAX: usize = 200;

/// What is wrong with a type or a pattern; `None` when it covers at least one declared type.
pub fn fault(types: &EventTypes, pattern: &str) -> Option<String> {
    if pattern.is_empty()
        || pattern.chars().count() > PATTERN_CHARS_MAX
        || pattern.chars().any(char::is_control)
    {
        return Some(format!("must have 1 to {PATTERN_CHARS_MAX} characters, such as 'device.*'"));
    }
    if types.covered(pattern).next().is_some() {
        return None;
    }
    let groups = groups(types);
    let near = || nearest(pattern, groups.iter().map(String::as_str));
    let hint = match begun(pattern, &groups) {
        Some(hint) => hint,
        None => match near() {
            Some(group) => format!("did you mean '{group}'?"),
            None => suggestion(pattern, types.iter().map(EventType::as_str)),
        },
    };
    Some(format!("'{pattern}' covers no event type: {hint}"))
}

/// For `dev*`: a wildcard stands behind a dot.
fn begun(pattern: &str, groups: &[String]) -> Option<String> {
    let stem = pattern.strip_suffix('*').filter(|stem| !stem.is_empty())?;
    let found = groups.iter().find(|group| group.starts_with(stem))?;
    Some(format!("'*' stands alone or behind a dot, did you mean '{found}'?"))
}

/// Every pattern with a wildcard that covers something: `device.*`, `device.status.*`; the short ones first.
fn groups(types: &EventTypes) -> Vec<String> {
    let names = types.iter().map(EventType::as_str);
    let mut groups: Vec<String> = names
        .flat_map(|name| name.match_indices('.').map(move |(at, _)| format!("{}*", &name[..=at])))
        .collect();
    groups.sort_unstable_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    groups.dedup();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_covers_nothing_is_told_the_nearest_that_does() {
        let types = crate::testing::declared().events;
        for right in ["device.*", "*", "device.offline", "device.status.*"] {
            assert_eq!(fault(&types, right), None, "{right}");
        }
        for (wrong, said) in [
            ("devise.*", "'device.*'"),
            ("device.ofline", "'device.offline'"),
            ("dev*", "'device.*'"),
            ("controller.ch*", "'controller.change.*'"),
            ("camera.motion_detected", "ingest.external"),
        ] {
            let found = fault(&types, wrong).unwrap();
            assert!(found.contains(wrong) && found.contains(said), "{wrong}: {found}");
        }
        for wrong in ["", "a\nb", &"x".repeat(201)] {
            assert!(fault(&types, wrong).is_some(), "{wrong}");
        }
    }
}
