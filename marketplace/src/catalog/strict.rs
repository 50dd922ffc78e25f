//! Reading JSON of which the signature was verified: one meaning, bounded texts.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, SeqAccess, Visitor};

use super::bounds::{DEPTH_MAX, VERSION_MAX};
use super::error::Refusal;
use crate::json::{self, StrictError};
use crate::verify::length;

/// Parses a file that is not too large, of which no key occurs twice and no member is unknown.
pub(crate) fn parse<T: DeserializeOwned>(file: &str, content: &[u8], bytes_max: u64) -> Result<T, Refusal> {
    if length(content) > bytes_max {
        return Err(Refusal::TooLarge { file: file.to_owned(), max: bytes_max });
    }
    let refused = |problem: String| Refusal::Format { file: file.to_owned(), problem };
    json::check_strict(content, DEPTH_MAX).map_err(|error| {
        refused(match error {
            StrictError::Duplicate(key) => format!("the key '{}' occurs twice in one object", shown(&key)),
            StrictError::TooDeep => format!("it is nested deeper than {DEPTH_MAX} levels"),
            StrictError::Syntax(problem) => problem,
        })
    })?;
    serde_json::from_slice(content).map_err(|error| refused(error.to_string()))
}

/// Parses a list of at most `MAX` entries. What comes after them is not read, so that it takes no memory.
pub(crate) fn list<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(List::<T, MAX>(PhantomData))
}

struct List<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for List<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::custom(format!("a list has more than {MAX} entries")));
            }
            list.push(entry);
        }
        Ok(list)
    }
}

/// Says what is wrong with the version of a file.
pub(crate) fn version(version: u64) -> Result<(), String> {
    if (1..=VERSION_MAX).contains(&version) {
        Ok(())
    } else {
        Err(format!("the version is {version}; 1 to {VERSION_MAX} is accepted"))
    }
}

/// Says what is wrong with a number of entries.
pub(crate) fn count(what: &str, found: usize, max: usize) -> Result<(), String> {
    if found <= max { Ok(()) } else { Err(format!("it has {found} {what}; {max} are accepted")) }
}

/// Says what is wrong with a text of one line that people read.
pub(crate) fn line(what: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > bytes_max || text.chars().any(is_hidden) {
        let shown = shown(text);
        return Err(format!(
            "{what} '{shown}' needs 1 to {bytes_max} bytes without control and direction characters"
        ));
    }
    Ok(())
}

/// Says what is wrong with a text of several lines, which may be empty.
pub(crate) fn lines(what: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    let is_strange = |c: char| is_hidden(c) && c != '\n';
    if text.len() > bytes_max || text.chars().any(is_strange) {
        return Err(format!("{what} may have {bytes_max} bytes without control and direction characters"));
    }
    Ok(())
}

/// The beginning of a refused text, with what is not printed escaped.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

/// Whether a character is not seen, or changes where others are seen: such a text could pass for another one.
fn is_hidden(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    c.is_control() || is_format
}
