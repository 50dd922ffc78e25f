//! Documents in JSON: keys that are there twice are refused, which the usual reader takes. Pure.

use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::bounds::{Meter, Problem, below, key_is_short};

/// Begins the messages of refusals, with the place behind it.
const MARK: &str = "\u{1}";

/// Reads one document.
pub(crate) fn read(text: &str) -> Result<Value, Problem> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut meter = Meter::default();
    let seed = Seed { meter: &mut meter, depth: 1, path: String::new() };
    let value = seed.deserialize(&mut reader).map_err(|error| problem(&error))?;
    reader.end().map_err(|error| problem(&error))?;
    Ok(value)
}

/// A problem of ours comes through the library as a text: its place, kind and message.
fn problem(error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let mut parts = text.split(MARK).skip(1);
    let (Some(path), Some(kind), Some(message)) = (parts.next(), parts.next(), parts.next()) else {
        return Problem::at("", format!("is no JSON: {text}"), "json_invalid");
    };
    let kind =
        ["duplicate_key", "too_large", "too_deep", "value_error"].into_iter().find(|known| *known == kind);
    let message = format!("{message} (line {})", error.line());
    Problem::at(path, message, kind.unwrap_or("value_error"))
}

fn told<E: de::Error>(problem: &Problem) -> E {
    E::custom(format!("{MARK}{}{MARK}{}{MARK}{}{MARK}", problem.path, problem.kind, problem.message))
}

struct Seed<'m> {
    meter: &'m mut Meter,
    depth: usize,
    path: String,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.meter.count(self.depth, &self.path).map_err(|problem| told(&problem))?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("is no number that can be kept"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        if value.contains('\0') {
            let message = "the character U+0000 is not accepted";
            return Err(told(&Problem::at(self.path, message, "value_error")));
        }
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = below(&self.path, &items.len().to_string());
            let seed = Seed { meter: &mut *self.meter, depth: self.depth + 1, path };
            let Some(item) = access.next_element_seed(seed)? else { return Ok(Value::Array(items)) };
            items.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = access.next_key_seed(KeySeed)? {
            let path = below(&self.path, &key);
            if fields.contains_key(&key) {
                let problem = Problem::at(path, format!("'{key}' is there twice"), "duplicate_key");
                return Err(told(&problem));
            }
            let seed = Seed { meter: &mut *self.meter, depth: self.depth + 1, path };
            let value = access.next_value_seed(seed)?;
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let key = String::deserialize(deserializer)?;
        if key.contains(['\0', '\u{1}']) {
            return Err(de::Error::custom("a key has a control character"));
        }
        key_is_short(&key).map_err(de::Error::custom)?;
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_is_there_twice_is_named_with_its_place() {
        let problem = read("{\"a\": {\"b/c\": 1,\n \"b/c\": 2}}").unwrap_err();
        assert_eq!((problem.path.as_str(), problem.kind), ("/a/b~1c", "duplicate_key"));
        assert!(problem.message.contains("twice") && problem.message.contains("line 2"), "{problem:?}");
    }

    #[test]
    fn what_is_too_deep_or_no_json_is_refused() {
        let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
        assert_eq!(read(&deep).unwrap_err().kind, "too_deep");
        assert_eq!(read(&format!("[{}1]", "1,".repeat(100_000))).unwrap_err().kind, "too_large");
        for text in ["", "{", "{} {}", "[1,]"] {
            assert_eq!(read(text).unwrap_err().kind, "json_invalid", "{text}");
        }
        assert_eq!(read("\"a\\u0000\"").unwrap_err().kind, "value_error");
    }

    #[test]
    fn every_other_value_is_as_it_was_written() {
        let value = json!({ "a": [1, -2, 2.5, true, null, "é😀"], "b": {} });
        assert_eq!(read(&value.to_string()).unwrap(), value);
    }
}
