//! Which versions run at a controller and its devices, and which of them an object depends on. Pure.

use std::collections::BTreeMap;

use heddle_store::wanted::Versioned;
use serde_json::Value;

/// The controller's own version among those of its devices.
const CONTROLLER: &str = "controller";
/// Most characters of a version.
const VERSION_CHARS_MAX: usize = 200;

/// Versions by what runs them.
pub(crate) type Versions = BTreeMap<String, String>;

/// Collects what objects of the model say, and what the reading of the controller said.
pub(crate) fn collect(firmware: Option<&str>, objects: &[Versioned]) -> Versions {
    let mut versions = Versions::new();
    let mut add = |name: String, version: &str| {
        versions.insert(name, version.chars().take(VERSION_CHARS_MAX).collect());
    };
    for object in objects {
        let field = if object.kind == "system" { "version" } else { "current" };
        if let Some(version) = object.fields.get(field).and_then(Value::as_str) {
            let device = object.device_key.as_deref().unwrap_or(&object.key);
            add(named(&object.kind, device), version);
        }
    }
    firmware.into_iter().for_each(|version| add(CONTROLLER.to_owned(), version));
    versions
}

fn named(kind: &str, device: &str) -> String {
    format!("{kind} {device}")
}

/// The version that an object depends on, before and now, where they differ.
///
/// It is that of its device; where that says none, that of the controller, and else that of any machine there.
pub(crate) fn upgrade(before: &Versions, now: &Versions, device: Option<&str>) -> Option<(String, String)> {
    let both = |name: &str| Some((before.get(name)?.clone(), now.get(name)?.clone()));
    let of_device: Vec<(String, String)> = device
        .into_iter()
        .flat_map(|device| ["system", "firmware"].map(|kind| both(&named(kind, device))))
        .flatten()
        .collect();
    let moved = |pair: &(String, String)| pair.0 != pair.1;
    if !of_device.is_empty() {
        return of_device.into_iter().find(moved);
    }
    match both(CONTROLLER) {
        Some(pair) => Some(pair).filter(moved),
        None => now.keys().filter_map(|name| both(name)).find(moved),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(firmware: Option<&str>, devices: &[(&str, &str)]) -> Versions {
        let object = |(device, version): &(&str, &str)| Versioned {
            kind: "firmware".to_owned(),
            key: (*device).to_owned(),
            device_key: Some((*device).to_owned()),
            fields: json!({ "current": version }),
        };
        collect(firmware, &devices.iter().map(object).collect::<Vec<_>>())
    }

    #[test]
    fn an_object_depends_on_its_device_first() {
        let before = of(Some("6.0"), &[("ap1", "1"), ("ap2", "1")]);
        let now = of(Some("6.1"), &[("ap1", "1"), ("ap2", "2")]);
        let moved = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
        assert_eq!(upgrade(&before, &now, Some("ap1")), None);
        assert_eq!(upgrade(&before, &now, Some("ap2")), moved("1", "2"));
        assert_eq!(upgrade(&before, &now, Some("unknown")), moved("6.0", "6.1"));
        assert_eq!(upgrade(&before, &now, None), moved("6.0", "6.1"));
        assert_eq!(upgrade(&of(None, &[("r", "1")]), &of(None, &[("r", "2")]), None), moved("1", "2"));
        assert_eq!(
            upgrade(&of(None, &[]), &of(Some("1"), &[]), None),
            None,
            "what was not known did not move"
        );
    }
}
