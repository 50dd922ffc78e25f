//! How rpcd turns JSON into option values, and which names it accepts.

use serde_json::Value;

use super::{Change, Config, UciValue};
use crate::status::Status;

/// The text that rpcd stores for one JSON value. A negative number wraps, because it is printed as unsigned;
/// fractions, null, lists and objects have no text.
pub(super) fn text(value: &Value) -> Result<String, Status> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(flag) => Ok(if *flag { "1" } else { "0" }.to_owned()),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(positive), _) => Ok(positive.to_string()),
            (None, Some(negative)) => Ok(match i32::try_from(negative) {
                Ok(small) => u32::from_ne_bytes(small.to_ne_bytes()).to_string(),
                Err(_) => u64::from_ne_bytes(negative.to_ne_bytes()).to_string(),
            }),
            (None, None) => Err(Status::InvalidArgument),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => Err(Status::InvalidArgument),
    }
}

/// The option value for one JSON value; an empty list is refused.
pub(super) fn value(json: &Value) -> Result<UciValue, Status> {
    match json {
        Value::Array(items) if items.is_empty() => Err(Status::InvalidArgument),
        Value::Array(items) => items.iter().map(text).collect::<Result<_, _>>().map(UciValue::List),
        single => text(single).map(UciValue::Text),
    }
}

/// Section and option names: letters, digits, underscore.
pub(super) fn name(text: &str) -> Result<&str, Status> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_valid { Ok(text) } else { Err(Status::InvalidArgument) }
}

/// Section types: any visible character.
pub(super) fn kind(text: &str) -> Result<&str, Status> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid { Ok(text) } else { Err(Status::InvalidArgument) }
}

/// The changes that bring one option of a section to `new`: none when it is there already.
pub(super) fn changes(config: &Config, section: &str, option: &str, new: &UciValue) -> Vec<Change> {
    let old = config.section(section).and_then(|found| found.option(option));
    if old == Some(new) {
        return Vec::new();
    }
    let remove = Change::Remove { section: section.to_owned(), option: Some(option.to_owned()) };
    match new {
        UciValue::Text(text) if text.is_empty() => old.map(|_| remove).into_iter().collect(),
        UciValue::Text(text) => {
            let from_list = matches!(old, Some(UciValue::List(_))).then_some(remove);
            from_list.into_iter().chain([Change::set(section, option, text)]).collect()
        }
        UciValue::List(list) => {
            let adds = list.iter().map(|value| Change::ListAdd {
                section: section.to_owned(),
                option: option.to_owned(),
                value: value.clone(),
            });
            old.map(|_| remove).into_iter().chain(adds).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(json: &Value, expected: Result<UciValue, Status>) {
        assert_eq!(value(json), expected, "{json}");
    }

    #[test]
    fn json_becomes_text_as_on_the_device() {
        let text = |text: &str| Ok(UciValue::Text(text.to_owned()));
        check(&json!(true), text("1"));
        check(&json!(false), text("0"));
        check(&json!(5), text("5"));
        check(&json!(-1), text("4294967295"));
        check(&json!(-5_000_000_000_i64), text("18446744068709551616"));
        check(&json!(["a", 1, true]), Ok(UciValue::List(vec!["a".into(), "1".into(), "1".into()])));
        for bad in [json!(1.5), json!(null), json!({}), json!([]), json!([null]), json!([["a"]])] {
            check(&bad, Err(Status::InvalidArgument));
        }
    }

    #[test]
    fn names_hold_letters_digits_and_underscore() {
        assert!(name("v20_guest").is_ok());
        for bad in ["", "a-b", "a.b", "a b", "ä"] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
