//! Makes what a device says of itself fit to be stored: a device is free to
//! answer anything, and a database does not take all of it.

use heddle_core::adapter::SeenDevice;
use serde_json::{Map, Value};

/// Characters of one line.
const LINE_CHARS_MAX: usize = 200;
const MESSAGE_CHARS_MAX: usize = 1000;
const IDENTITY_BYTES_MAX: usize = 300;

/// The device without what cannot be stored; `None` when that is its identity,
/// which would be another device's without it.
pub(super) fn device(mut seen: SeenDevice) -> Option<SeenDevice> {
    let identity = &seen.identity;
    if identity.is_empty() || identity.len() > IDENTITY_BYTES_MAX || identity.contains(char::is_control) {
        return None;
    }
    seen.name = line(&seen.name);
    seen.kind = line(&seen.kind);
    for field in [&mut seen.model, &mut seen.serial, &mut seen.firmware, &mut seen.mac] {
        *field = field.as_deref().map(line);
    }
    for address in &mut seen.addresses {
        *address = line(address);
    }
    drop_nul(&mut seen.attributes);
    drop_nul(&mut seen.measurements);
    Some(seen)
}

/// The text on one line, without control characters.
pub(super) fn line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect()
}

/// [`line`], for a sentence.
pub(super) fn message(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect()
}

/// Removes U+0000, the one character that JSON has and `PostgreSQL` has not, from values and names.
fn drop_nul(value: &mut Value) {
    match value {
        Value::String(text) => text.retain(|c| c != '\0'),
        Value::Array(items) => items.iter_mut().for_each(drop_nul),
        Value::Object(fields) => {
            fields.values_mut().for_each(drop_nul);
            if fields.keys().any(|name| name.contains('\0')) {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(name, value)| (name.replace('\0', ""), value))
                    .collect::<Map<_, _>>();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::adapter::DeviceStatus;
    use serde_json::json;

    use super::*;

    fn seen(identity: &str) -> SeenDevice {
        SeenDevice {
            identity: identity.to_owned(),
            name: "a\0p\u{1b}[1m".to_owned(),
            kind: "access_point".to_owned(),
            status: DeviceStatus::Online,
            model: Some("m\n1".to_owned()),
            serial: None,
            firmware: None,
            mac: None,
            addresses: vec!["192.0.2.7\0".to_owned()],
            site: None,
            attributes: json!({"a\0": ["x\0", {"b": "\0"}], "line": "1\n2"}),
            measurements: json!({"n": 1}),
        }
    }

    #[test]
    fn what_no_database_takes_is_dropped() {
        let device = device(seen("1")).unwrap();
        assert_eq!((device.name.as_str(), device.model.as_deref()), ("ap[1m", Some("m1")));
        assert_eq!(device.addresses, ["192.0.2.7"]);
        assert_eq!(device.attributes, json!({"a": ["x", {"b": ""}], "line": "1\n2"}));
        assert_eq!(device.measurements, json!({"n": 1}));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let long = SeenDevice { name: "ü".repeat(300), ..seen("1") };
        assert_eq!(device(long).unwrap().name, "ü".repeat(200));
    }

    #[test]
    fn an_identity_is_kept_whole_or_not_at_all() {
        assert!(device(seen(&"x".repeat(300))).is_some());
        assert!(device(seen(&"x".repeat(301))).is_none());
        assert!(device(seen("a\0b")).is_none());
        assert!(device(seen("")).is_none());
    }
}
