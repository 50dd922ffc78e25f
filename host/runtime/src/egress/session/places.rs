//! Values at declared places of an answer: in its JSON, a header or a cookie.

use std::collections::BTreeMap;

use heddle_core::secret::Secret;
use heddle_marketplace::manifest::{CaptureFrom, Refresh};
use serde_json::Value;

use super::live::take_cookies;
use crate::egress::wire::Answer;

/// Sizes of a value that replaces another one: what is shorter could not be taken out of answers.
const REPLACING_BYTES: std::ops::RangeInclusive<usize> = 8..=8_192;

/// The value there; an empty one is none.
pub(super) fn value(
    from: &CaptureFrom,
    answer: &Answer,
    body: Option<&Value>,
    cookies: &BTreeMap<String, String>,
) -> Option<String> {
    let found = match from {
        CaptureFrom::Json(pointer) => body.and_then(|body| text_at(body, pointer)),
        CaptureFrom::Header(name) => answer.header(&name.to_ascii_lowercase()).map(str::to_owned),
        CaptureFrom::Cookie(name) => cookies.get(name).cloned(),
    };
    found.filter(|found| !found.is_empty())
}

/// The values that an answer has for captures, by their names. The first entry that it has for a capture counts.
pub(in crate::egress) fn replacing(
    refreshes: &[Refresh],
    answer: &Answer,
    body: Option<&Value>,
) -> Vec<(String, Secret)> {
    let mut cookies = BTreeMap::new();
    if refreshes.iter().any(|refresh| matches!(refresh.from, CaptureFrom::Cookie(_))) {
        take_cookies(&mut cookies, answer);
    }
    let mut found: Vec<(String, Secret)> = Vec::new();
    for refresh in refreshes {
        let value = value(&refresh.from, answer, body, &cookies);
        let value = value.filter(|value| REPLACING_BYTES.contains(&value.len()));
        if let Some(value) = value.filter(|_| found.iter().all(|(name, _)| *name != refresh.name)) {
            found.push((refresh.name.clone(), Secret::new(value)));
        }
    }
    found
}

/// A text or a number; a batch answers with its first element that has it.
fn text_at(body: &Value, pointer: &str) -> Option<String> {
    let found = body
        .pointer(pointer)
        .or_else(|| body.as_array()?.iter().find_map(|element| element.pointer(pointer)))?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
