//! JSON that means the same to every reader: no key twice in one object, and
//! bounded nesting. Checks only; the typed parse comes after.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What a strict reader found wrong.
#[derive(Debug)]
pub(crate) enum StrictError {
    Duplicate(String),
    TooDeep,
    Syntax(String),
}

/// Refuses text that is no JSON object, has a key twice at any level, or nests
/// deeper than `depth_max` levels.
pub(crate) fn check_strict(text: &[u8], depth_max: usize) -> Result<(), StrictError> {
    let mut finding = None;
    let mut reader = serde_json::Deserializer::from_slice(text);
    let walk = Walk { left: depth_max, top: true, finding: &mut finding };
    let result = walk.deserialize(&mut reader).and_then(|()| reader.end());
    match (finding, result) {
        (Some(finding), _) => Err(finding),
        (None, Err(error)) => Err(StrictError::Syntax(error.to_string())),
        (None, Ok(())) => Ok(()),
    }
}

/// JSON without the space outside its texts.
pub(crate) fn compact(json: &RawValue) -> Box<RawValue> {
    let (mut in_text, mut is_escaped) = (false, false);
    let mut keeps = |c: char| {
        match (in_text, is_escaped, c) {
            (true, true, _) => is_escaped = false,
            (true, false, '\\') => is_escaped = true,
            (_, _, '"') => in_text = !in_text,
            _ => {}
        }
        in_text || !matches!(c, ' ' | '\n' | '\r' | '\t')
    };
    let text = json.get().chars().filter(|c| keeps(*c)).collect();
    RawValue::from_string(text).expect("it was JSON")
}

/// Levels of arrays and objects in a value; a plain value has none.
pub(crate) fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

struct Walk<'a> {
    left: usize,
    top: bool,
    finding: &'a mut Option<StrictError>,
}

impl Walk<'_> {
    fn enter<E: serde::de::Error>(&mut self) -> Result<usize, E> {
        self.left.checked_sub(1).ok_or_else(|| {
            *self.finding = Some(StrictError::TooDeep);
            E::custom("too deep")
        })
    }

    fn plain<E: serde::de::Error>(self) -> Result<(), E> {
        if self.top { Err(E::custom("it must be one JSON object")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.plain()
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.plain()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.plain()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.plain()
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        self.plain()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.plain()
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        if self.top {
            return self.plain();
        }
        let left = self.enter()?;
        while items.next_element_seed(Walk { left, top: false, finding: self.finding })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        let left = self.enter()?;
        let mut seen = HashSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            // The JSON library gives such keys a meaning of its own: their value
            // would be parsed once more, past this check.
            if key.starts_with("$serde_json::") {
                return Err(A::Error::custom(format!("key '{key}' is not accepted")));
            }
            if seen.contains(&key) {
                *self.finding = Some(StrictError::Duplicate(key));
                return Err(A::Error::custom("duplicate key"));
            }
            fields.next_value_seed(Walk { left, top: false, finding: self.finding })?;
            seen.insert(key);
        }
        Ok(())
    }
}
