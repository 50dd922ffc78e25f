//! How much of what a device or a component says is taken: lengths of texts, and the size of JSON before it is parsed.
//!
//! Every function here is one pass over its input.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::work;

/// Bytes of a text for people that a device or a component gives: a name, a message, a warning. Longer ones are cut.
pub const TEXT_BYTES_MAX: usize = 4 << 10;
/// Bytes of one text inside an object's JSON. Longer ones are cut.
pub const OBJECT_TEXT_BYTES_MAX: usize = 64 << 10;
/// Bytes of a field's name in JSON of a device. Longer ones are cut.
pub const FIELD_NAME_BYTES_MAX: usize = 256;
/// Bytes of what names something: a key, a kind, a cursor. A longer one is refused: cut, it would name another thing.
pub const KEY_BYTES_MAX: usize = 4 << 10;
/// Values of one JSON text, or of all texts of one result.
pub const JSON_NODES_MAX: usize = 200_000;
/// How deep JSON may be nested.
pub const JSON_DEPTH_MAX: usize = 64;

const ELLIPSIS: char = '…';

/// Cuts a text to so many bytes, between two characters; what was cut ends with an ellipsis.
pub fn cut(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let mut end = most.saturating_sub(ELLIPSIS.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push(ELLIPSIS);
}

/// [`cut`], for a text that was given.
#[must_use]
pub fn cut_to(mut text: String, most: usize) -> String {
    cut(&mut text, most);
    text
}

/// Cuts every text and every field's name inside JSON. Of two names that become the same the later stays.
pub fn cut_json(value: &mut Value, text_bytes_max: usize) {
    match value {
        Value::String(text) => cut(text, text_bytes_max),
        Value::Array(items) => items.iter_mut().for_each(|item| cut_json(item, text_bytes_max)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| cut_json(field, text_bytes_max));
            if fields.keys().any(|name| name.len() > FIELD_NAME_BYTES_MAX) {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(name, value)| (cut_to(name, FIELD_NAME_BYTES_MAX), value))
                    .collect::<Map<_, _>>();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// JSON that is not parsed because of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMuch {
    #[error("has more than {JSON_NODES_MAX} values")]
    Nodes,
    #[error("is nested deeper than {JSON_DEPTH_MAX}")]
    Depth,
}

/// Values that may still be parsed.
#[derive(Debug)]
pub struct JsonRoom {
    nodes: usize,
    depth_max: usize,
}

impl Default for JsonRoom {
    fn default() -> Self {
        Self::of(JSON_NODES_MAX, JSON_DEPTH_MAX)
    }
}

impl JsonRoom {
    /// Room for so many values, nested so deep.
    #[must_use]
    pub const fn of(nodes: usize, depth_max: usize) -> Self {
        Self { nodes, depth_max }
    }

    /// Takes the room of a JSON text, which is looked through and not parsed.
    ///
    /// Signs that begin a value are counted: there are at least as many as a parser makes values. A text that is no
    /// JSON is judged all the same; the parser says what is wrong with it.
    ///
    /// # Errors
    /// The text has more values than there is room for, or is nested too deep.
    pub fn take(&mut self, text: &[u8]) -> Result<(), TooMuch> {
        let (mut left, mut depth) = (self.nodes.checked_sub(1).ok_or(TooMuch::Nodes)?, 0_usize);
        let mut bytes = text.iter();
        while let Some(byte) = bytes.next() {
            work::count(1);
            match byte {
                b'"' => skip_text(&mut bytes),
                b'{' | b'[' => {
                    depth += 1;
                    if depth > self.depth_max {
                        return Err(TooMuch::Depth);
                    }
                    left = left.checked_sub(1).ok_or(TooMuch::Nodes)?;
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' => left = left.checked_sub(1).ok_or(TooMuch::Nodes)?,
                _ => {}
            }
        }
        self.nodes = left;
        Ok(())
    }
}

/// Moves behind the quotation mark that ends a text.
fn skip_text(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        work::count(1);
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// Whether a value has no more than so many bytes as JSON; writes no more of it than that to find out.
#[must_use]
pub fn is_small(value: &impl Serialize, bytes: usize) -> bool {
    serde_json::to_writer(Room(bytes), value).is_ok()
}

/// Bytes that a JSON value has as a text, counted without making it.
#[must_use]
pub fn json_bytes(value: &Value) -> usize {
    let mut room = Room(usize::MAX);
    serde_json::to_writer(&mut room, value).expect("no text has as many bytes as there is room for");
    usize::MAX - room.0
}

/// Takes so many bytes and no more.
struct Room(usize);

impl std::io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        assert_eq!(cut_to("ü".repeat(4), 8), "ü".repeat(4));
        assert_eq!(cut_to("ü".repeat(5), 8), "üü…");
        assert_eq!(cut_to("abcdefghi".to_owned(), 8), "abcde…");
        assert!(cut_to("ü".repeat(9_000), TEXT_BYTES_MAX).len() <= TEXT_BYTES_MAX);
    }

    #[test]
    fn texts_and_names_inside_json_are_cut() {
        let mut value = json!({ "n".repeat(300): [{ "a": "x".repeat(20) }, 1], "b": "y" });
        cut_json(&mut value, 10);
        let name = format!("{}…", "n".repeat(253));
        assert_eq!(value, json!({ name: [{ "a": format!("{}…", "x".repeat(7)) }, 1], "b": "y" }));
    }

    #[test]
    fn values_are_counted_before_they_are_parsed() {
        let take = |text: &str| JsonRoom::default().take(text.as_bytes());
        assert_eq!(take(&format!("[{}0]", "0,".repeat(JSON_NODES_MAX - 3))), Ok(()));
        assert_eq!(take(&format!("[{}0]", "0,".repeat(JSON_NODES_MAX))), Err(TooMuch::Nodes));
        assert_eq!(take(&format!("[{}0]", "{\"a\":0},".repeat(JSON_NODES_MAX / 2))), Err(TooMuch::Nodes));
        assert_eq!(take(&"[".repeat(JSON_DEPTH_MAX)), Ok(()));
        assert_eq!(take(&"[".repeat(JSON_DEPTH_MAX + 1)), Err(TooMuch::Depth));
        assert_eq!(take(&format!("[\"{}\"]", "[\\\",".repeat(JSON_NODES_MAX))), Ok(()));
        let mut room = JsonRoom::default();
        let half = format!("[{}0]", "0,".repeat(JSON_NODES_MAX / 2));
        assert_eq!(room.take(half.as_bytes()), Ok(()));
        assert_eq!(room.take(half.as_bytes()), Err(TooMuch::Nodes));
    }

    #[test]
    fn looking_for_size_is_one_step_for_each_byte() {
        for text in ["[", "\"", "\\\"", "\"a\",", "{\"a\":0},"] {
            let text = text.repeat(20_000);
            let steps = work::counted(|| {
                let _ = JsonRoom::default().take(text.as_bytes());
            });
            assert!(steps <= text.len(), "{steps} steps for {} bytes", text.len());
        }
    }

    #[test]
    fn the_bytes_of_json_are_those_of_its_text() {
        let value = json!({ "ü": [1, -2.5, null, "a\n\"b"] });
        assert_eq!(json_bytes(&value), value.to_string().len());
    }

    #[test]
    fn a_small_value_is_told_from_a_large_one() {
        assert!(is_small(&json!({ "a": [1, "text"] }), 100));
        assert!(!is_small(&json!({ "a": "x".repeat(100) }), 100));
        assert!(!is_small(&json!({ "x".repeat(100): 1 }), 100));
        assert!(!is_small(&vec![0; 100], 100));
    }
}
