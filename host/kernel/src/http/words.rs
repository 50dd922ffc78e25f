//! Translates serde's messages about a body into the words of the interface: without Rust types, and without values
//! that may be secrets.

use super::nulls;

/// Translates the message of a value of the wrong type; other messages only lose their back-ticks.
pub(super) fn in_api_words(message: &str) -> String {
    let mismatch = ["invalid type: ", "invalid value: "].iter().find_map(|start| message.strip_prefix(start));
    let Some((found, expected)) = mismatch.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return message.replace('`', "'");
    };
    if found == "null" {
        return nulls::REFUSED.to_owned();
    }
    format!("must be {}, not {}", expectation(expected), finding(found))
}

fn expectation(expected: &str) -> String {
    let known = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" => "an object",
        "a borrowed string" | "string or map" | "variant identifier" => "a string",
        other if other.starts_with("struct ") || other.contains("tagged enum ") => "an object",
        other if other.starts_with("enum ") => "a string",
        other => other,
    };
    known.replace('`', "'")
}

fn finding(found: &str) -> String {
    let value = |kind: &str| found.strip_prefix(kind).map(|rest| rest.replace('`', ""));
    if let Some(number) = value("integer ").or_else(|| value("floating point ")) {
        return format!("the number {number}");
    }
    if let Some(word) = value("boolean ") {
        return word;
    }
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "an array".to_owned(),
        other if other.starts_with("string ") => "a string".to_owned(),
        other => other.replace('`', "'"),
    }
}
