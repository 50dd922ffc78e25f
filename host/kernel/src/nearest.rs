//! The known word that a mistyped one is nearest to.

/// Longer words are not compared: users do not type them by hand.
const CHARS_MAX: usize = 100;

/// The candidate with the fewest differing letters, when it is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near_enough = (word.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(word, candidate)?, candidate)))
        .filter(|(distance, _)| *distance <= near_enough)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, taken out or replaced; `None` for words that are too long.
fn distance(one: &str, other: &str) -> Option<usize> {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len() > CHARS_MAX || other.len() > CHARS_MAX {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (to, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[to + 1];
            row[to + 1] = replaced.min(diagonal + 1).min(row[to] + 1);
        }
    }
    row.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant_is_found() {
        let known = ["acme.firewall.rule", "acme.firewall.zone", "acme.dhcp.pool"];
        for (typed, meant) in [
            ("acme.firewall.rul", Some("acme.firewall.rule")),
            ("acme.firewal.zones", Some("acme.firewall.zone")),
            ("frobnicate", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), known), None);
    }
}
