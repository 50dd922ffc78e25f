//! The nearest right word to one that was mistyped: what errors name.

/// Longest word that is compared, in characters; bounds the work that a stranger's word costs.
const CHARS_MAX: usize = 100;
/// Candidates that are listed where none is near.
const LISTED_MAX: usize = 40;

/// The candidate that differs from the word by the fewest letters added, left out, replaced or swapped with their
/// neighbour, whatever their case; `None` where every candidate differs by more than a third of the word.
///
/// Of equally near candidates the first counts.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = letters(word)?;
    let most = (letters.len() / 3).max(1);
    let near = candidates.into_iter().filter_map(|candidate| {
        let other = self::letters(candidate)?;
        // Each letter more or less is one difference.
        let differs =
            if other.len().abs_diff(letters.len()) > most { most + 1 } else { distance(&letters, &other) };
        (differs <= most).then_some((differs, candidate))
    });
    near.reduce(|best, found| if found.0 < best.0 { found } else { best }).map(|(_, candidate)| candidate)
}

/// Returns a hint for a word that is not among the candidates: the nearest one, or a list of them.
pub fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let mut candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(near) = nearest(word, candidates.iter().copied()) {
        return format!("did you mean '{near}'?");
    }
    let others = candidates.len().saturating_sub(LISTED_MAX);
    candidates.truncate(LISTED_MAX);
    match (candidates.is_empty(), others) {
        (true, _) => "there are none".to_owned(),
        (false, 0) => format!("there are: {}", candidates.join(", ")),
        (false, others) => format!("there are: {} and {others} more", candidates.join(", ")),
    }
}

fn letters(word: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).take(CHARS_MAX + 1).collect();
    (letters.len() <= CHARS_MAX).then_some(letters)
}

/// How many edits lead from one word to the other, where two neighbours swapped are one edit (optimal string
/// alignment).
fn distance(one: &[char], other: &[char]) -> usize {
    let width = other.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut above: Vec<usize> = (0..width).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1; width];
        for (column, with) in other.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != with);
            let mut least = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            let is_swapped = row > 0 && column > 0 && one[row - 1] == *with && *letter == other[column - 1];
            if is_swapped {
                least = least.min(before[column - 1] + 1);
            }
            current[column + 1] = least;
        }
        before = std::mem::replace(&mut above, current);
    }
    above[width - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        let candidates = ["device_id", "name", "new_status", "device.offline", "device.*", "SiteId"];
        assert_eq!(nearest(word, candidates), expected, "{word}");
    }

    #[test]
    fn a_slip_of_the_finger_finds_its_word() {
        check("devcie_id", Some("device_id"));
        check("nmae", Some("name"));
        check("device.ofline", Some("device.offline"));
        check("devise.*", Some("device.*"));
        check("siteid", Some("SiteId"));
        check("NAME", Some("name"));
        check("n\u{e4}me", Some("name"));
        check("serial", None);
        check("", None);
        check(&"n".repeat(CHARS_MAX + 1), None);
    }

    #[test]
    fn where_none_is_near_all_are_named_up_to_a_bound() {
        assert_eq!(suggestion("nmae", ["name", "id"]), "did you mean 'name'?");
        assert_eq!(suggestion("serial", ["name", "id"]), "there are: name, id");
        assert_eq!(suggestion("serial", []), "there are none");
        let many: Vec<String> = (0..50).map(|n| format!("field-number-{n}")).collect();
        let said = suggestion("serial", many.iter().map(String::as_str));
        assert!(said.ends_with("field-number-39 and 10 more"), "{said}");
    }
}
