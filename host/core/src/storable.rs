//! Makes a device's data fit to be stored: a device may answer anything, and a database cannot store all of it.

use serde_json::{Map, Value};

use crate::adapter::{SeenDevice, VendorSite};
use crate::bounds::{FIELD_NAME_BYTES_MAX, cut, cut_to};

/// Most characters of one line.
const LINE_CHARS_MAX: usize = 200;
/// Most characters of a version.
pub const VERSION_CHARS_MAX: usize = LINE_CHARS_MAX;
const MESSAGE_CHARS_MAX: usize = 1000;
const IDENTITY_BYTES_MAX: usize = 300;
/// Most addresses of one device; more are left out.
const ADDRESSES_MAX: usize = 64;
/// Most bytes of one text among a device's attributes or measurements; a longer text is cut.
const VALUE_BYTES_MAX: usize = 1 << 10;
/// Most fields or items of one object or list there; more are left out.
const ENTRIES_MAX: usize = 200;
/// Most bytes of a device's attributes, and of its measurements; the rest is left out.
const VALUES_BYTES_MAX: usize = 32 << 10;
/// Marks attributes, and a version, of which something was left out.
const LEFT_OUT: &str = "…";

/// Returns the device without what cannot be stored. `None` when its identity cannot be stored: a changed one could be
/// another device's.
pub fn device(mut seen: SeenDevice) -> Option<SeenDevice> {
    if !is_identity(&seen.identity) {
        return None;
    }
    seen.name = line(&seen.name);
    seen.kind = line(&seen.kind);
    for field in [&mut seen.model, &mut seen.serial, &mut seen.firmware, &mut seen.mac] {
        *field = field.as_deref().map(line);
    }
    seen.addresses.truncate(ADDRESSES_MAX);
    for address in &mut seen.addresses {
        *address = line(address);
    }
    values(&mut seen.attributes);
    values(&mut seen.measurements);
    Some(seen)
}

/// Cuts what one object says to what is stored of it, and marks it where something was left out.
pub fn values(values: &mut Value) {
    let mut room = VALUES_BYTES_MAX;
    let has_room = bound(values, &mut room);
    drop_nul(values);
    if let (false, Value::Object(fields)) = (has_room, values) {
        fields.insert(LEFT_OUT.to_owned(), Value::Bool(true));
    }
}

/// Whether what names something can be stored. It is never changed: a changed one could be another's.
pub fn is_identity(text: &str) -> bool {
    !text.is_empty() && text.len() <= IDENTITY_BYTES_MAX && !text.contains(char::is_control)
}

/// Returns the site with a name that can be stored. `None` when its id cannot be.
pub fn site(seen: VendorSite) -> Option<VendorSite> {
    if !is_identity(&seen.id) {
        return None;
    }
    let name = line(&seen.name);
    Some(VendorSite { name: if name.is_empty() { seen.id.clone() } else { name }, id: seen.id })
}

/// Cuts texts and names, and leaves out what exceeds the limits; false when something was left out.
fn bound(value: &mut Value, room: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => {
            cut(text, VALUE_BYTES_MAX);
            text.len() + 2
        }
        _ => 8,
    };
    let Some(left) = room.checked_sub(own) else {
        *room = 0;
        *value = Value::Null;
        return false;
    };
    *room = left;
    match value {
        Value::Array(items) => {
            let mut is_whole = items.len() <= ENTRIES_MAX;
            items.truncate(ENTRIES_MAX);
            let kept = items.iter_mut().position(|item| !keep(item, room, &mut is_whole));
            items.truncate(kept.unwrap_or(items.len()));
            is_whole
        }
        Value::Object(fields) => {
            let mut is_whole = fields.len() <= ENTRIES_MAX;
            let mut kept = Map::new();
            for (name, mut field) in std::mem::take(fields).into_iter().take(ENTRIES_MAX) {
                let name = cut_to(name, FIELD_NAME_BYTES_MAX);
                let Some(left) = room.checked_sub(name.len()) else {
                    is_whole = false;
                    break;
                };
                *room = left;
                if !keep(&mut field, room, &mut is_whole) {
                    break;
                }
                kept.insert(name, field);
            }
            *fields = kept;
            is_whole
        }
        _ => true,
    }
}

/// Whether there was room for any part of a value.
fn keep(value: &mut Value, room: &mut usize, is_whole: &mut bool) -> bool {
    let had_room = *room > 0;
    *is_whole &= had_room && bound(value, room);
    had_room && !(value.is_null() && *room == 0)
}

/// Returns the text on one line, without control characters.
pub fn line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect()
}

/// Returns a version on one line. One that lost something ends with `…`: other versions may be stored as the same text.
pub fn version(text: &str) -> String {
    let text = text.trim();
    let kept = line(text);
    if kept == text {
        return kept;
    }
    kept.chars().take(VERSION_CHARS_MAX - 1).chain(LEFT_OUT.chars()).collect()
}

/// Whether a stored version is all that the controller said.
pub fn is_whole(version: &str) -> bool {
    !version.ends_with(LEFT_OUT)
}

/// Does the same as [`line`], for a sentence.
pub fn message(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect()
}

/// Removes U+0000, the one character that JSON has and `PostgreSQL` has not, from values and names.
pub fn drop_nul(value: &mut Value) {
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
    use serde_json::json;

    use super::*;
    use crate::adapter::DeviceStatus;

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
    fn what_a_device_is_like_is_bounded_by_value_by_object_and_altogether() {
        let keep = |attributes: Value| device(SeenDevice { attributes, ..seen("1") }).unwrap().attributes;
        let cut = keep(json!({ "host": "x".repeat(1_200_000), "n".repeat(9_000): 1 }));
        assert!(
            cut["host"].as_str().is_some_and(|host| host.len() <= VALUE_BYTES_MAX && host.ends_with('…'))
        );
        assert!(cut.to_string().len() < 2_000);
        let list = keep(json!({ "list": vec![1; 5_000] }));
        assert_eq!((list["list"].as_array().unwrap().len(), &list[LEFT_OUT]), (ENTRIES_MAX, &json!(true)));
        let fields: Map<String, Value> = (0..5_000).map(|n| (n.to_string(), json!(n))).collect();
        assert_eq!(keep(Value::Object(fields)).as_object().unwrap().len(), ENTRIES_MAX + 1);
        let texts = vec![json!({ "a": "x".repeat(1_000), "b": ["y".repeat(1_000)] }); 150];
        let kept = keep(json!({ "one": texts, "two": 1 }));
        assert!(kept.to_string().len() <= VALUES_BYTES_MAX + 2_000, "{}", kept.to_string().len());
        assert_eq!((&kept[LEFT_OUT], kept.get("two")), (&json!(true), None));
        let small = json!({ "a": { "b": [null, 1, "c"] } });
        assert_eq!(keep(small.clone()), small);
    }

    #[test]
    fn a_version_that_lost_something_says_so() {
        for (said, kept, whole) in [
            ("24.10.2", "24.10.2".to_owned(), true),
            (" 24.10.2\n", "24.10.2".to_owned(), true),
            ("24.10\u{1b}.2", "24.10.2…".to_owned(), false),
            (&"9".repeat(200), "9".repeat(200), true),
            (&"9".repeat(201), format!("{}…", "9".repeat(199)), false),
            ("", String::new(), true),
        ] {
            let stored = version(said);
            assert_eq!((is_whole(&stored), stored), (whole, kept), "{said}");
        }
    }

    #[test]
    fn an_identity_is_kept_whole_or_not_at_all() {
        assert!(device(seen(&"x".repeat(300))).is_some());
        assert!(device(seen(&"x".repeat(301))).is_none());
        assert!(device(seen("a\0b")).is_none());
        assert!(device(seen("")).is_none());
    }
}
