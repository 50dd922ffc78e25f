//! A text that a pattern matches, where no word of the field does.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Longest text that is made.
const BYTES_MAX: usize = 256;
/// Most parts of a pattern that are looked at.
const PARTS_MAX: usize = 2_000;
/// Characters that are taken first, where the pattern allows them.
const LIKED: [char; 3] = ['a', '1', 'A'];

/// Texts that the pattern may match, from the shortest: the rest of the schema decides.
pub(super) fn texts(pattern: &str) -> Vec<String> {
    let Ok(parsed) = regex_syntax::parse(pattern) else { return Vec::new() };
    let made = [0, 1].into_iter().filter_map(|least| {
        let mut maker = Maker { least, text: String::new(), parts: 0 };
        maker.push(&parsed).map(|()| maker.text)
    });
    made.collect()
}

struct Maker {
    /// How often a part that may be left out is repeated.
    least: u32,
    text: String,
    /// Parts that were looked at: repeats of repeats may be many, and add nothing.
    parts: usize,
}

impl Maker {
    /// Adds what matches this part. `None` where that takes too much, or no text matches.
    fn push(&mut self, part: &Hir) -> Option<()> {
        self.parts += 1;
        if self.parts > PARTS_MAX || self.text.len() > BYTES_MAX {
            return None;
        }
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => self.text.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(class) => self.text.push(character(class)?),
            HirKind::Capture(capture) => self.push(&capture.sub)?,
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.push(part))?,
            HirKind::Alternation(parts) => self.push(parts.first()?)?,
            HirKind::Repetition(repeated) => {
                let most = repeated.max.unwrap_or(u32::MAX);
                for _ in 0..repeated.min.max(self.least.min(most)) {
                    self.push(&repeated.sub)?;
                }
            }
        }
        Some(())
    }
}

fn character(class: &Class) -> Option<char> {
    let Class::Unicode(class) = class else { return None };
    let has =
        |wanted: &char| class.ranges().iter().any(|range| (range.start()..=range.end()).contains(wanted));
    LIKED.into_iter().find(has).or_else(|| Some(class.ranges().first()?.start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_texts_match_their_patterns() {
        for pattern in [
            r"^([\-\+\~=]){1,2}$",
            "^x{7}$",
            "^[0-9a-f]{8}(-[0-9]+)?$",
            r"^(\d{1,3}\.){3}\d{1,3}/(24|32)$",
            "^[^ ]+@acme$",
            "^a*$",
        ] {
            let texts = texts(pattern);
            let matches = regex::Regex::new(pattern).unwrap();
            assert!(
                !texts.is_empty() && texts.iter().all(|text| matches.is_match(text)),
                "{pattern}: {texts:?}"
            );
        }
        assert_eq!(texts("^a*$"), ["", "a"]);
    }

    #[test]
    fn a_pattern_that_asks_for_too_much_gives_nothing() {
        assert_eq!(texts("^(a{100}){100}$"), [""; 0]);
        assert_eq!(texts("((a?){1000}){1000}").first().map(String::as_str), None);
        assert_eq!(texts("("), [""; 0]);
    }
}
