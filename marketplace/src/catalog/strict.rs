//! Reading JSON of which the signature was verified: one meaning, bounded texts.

use serde::de::DeserializeOwned;

use super::bounds::{DEPTH_MAX, VERSION_MAX};
use super::error::Refusal;
use crate::json::{self, StrictError};

/// Parses a file of which no key occurs twice, and no member is unknown.
pub(crate) fn parse<T: DeserializeOwned>(file: &str, content: &[u8]) -> Result<T, Refusal> {
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
