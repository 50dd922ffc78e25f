//! Makes an object of the model fit to be stored, or says why it is left out. Pure.

use heddle_core::adapter::ModelObject;
use heddle_core::bounds::{cut, is_small};
use heddle_core::{redact, storable};
use heddle_marketplace::model::ModelKind;
use heddle_store::model_objects::record::Storable;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Most bytes of an object's fields and its native reference together.
const OBJECT_BYTES_MAX: usize = 64 << 10;
/// Most bytes that a search looks at.
const SEARCHED_BYTES_MAX: usize = 4 << 10;

/// An object that cannot be stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    /// Its key, where that could be stored: what is known under it stays.
    pub(super) key: Option<String>,
    pub(super) problem: String,
}

pub(super) fn storable(kind: &ModelKind, seen: ModelObject) -> Result<Storable, Unfit> {
    let key = seen.key;
    if !storable::is_identity(&key) || key.contains(redact::REFERENCE) {
        let problem =
            "the key of an object is empty, longer than 300 bytes, or has control characters or a secret";
        return Err(Unfit { key: None, problem: problem.to_owned() });
    }
    let unfit = |problem: &str| {
        let problem = storable::message(&format!("object '{key}': {problem}"));
        Err(Unfit { key: Some(key.clone()), problem })
    };
    if !is_small(&(&seen.fields, &seen.native), OBJECT_BYTES_MAX) {
        return unfit("it is larger than 64 KiB");
    }
    let device_key = seen.device.filter(|device| !device.is_empty());
    let is_fit = |device: &str| storable::is_identity(device) && !device.contains(redact::REFERENCE);
    if device_key.as_deref().is_some_and(|device| !is_fit(device)) {
        return unfit(
            "the identity of its device is longer than 300 bytes, or has control characters or a secret",
        );
    }
    let Value::Object(fields) = clean(seen.fields) else { return unfit("its fields are no JSON object") };
    if let Some(problem) = kind.problem(&fields) {
        let mut problem = problem;
        redact::mask_text(&mut problem);
        return unfit(&problem);
    }
    let mut label = storable::line(&seen.label);
    redact::mask_text(&mut label);
    if label.is_empty() {
        label.clone_from(&key);
    }
    let searched = searched(&label, &key, &fields);
    let counted: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| !kind.is_measured(name))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    let digest = digest_of(&json!([label, seen.origin, device_key, counted]));
    let native = seen.native.and_then(|native| serde_json::to_value(native).ok()).map(clean);
    let fields = Value::Object(fields);
    let contents_digest = digest_of(&(&fields, &native));
    Ok(Storable {
        key,
        label,
        origin: seen.origin,
        device_key,
        native,
        fields,
        digest,
        contents_digest,
        searched,
    })
}

/// The value without secrets and without what one of the databases cannot store, or writes in another way.
fn clean(mut value: Value) -> Value {
    storable::drop_nul(&mut value);
    redact::mask(&mut value);
    heddle_store::audit::canonical(&value)
}

fn digest_of(value: &impl Serialize) -> String {
    let text = serde_json::to_vec(value).unwrap_or_default();
    hex::encode(Sha256::digest(text))
}

/// What people may search for: the label, the key, and the texts among the fields.
fn searched(label: &str, key: &str, fields: &Map<String, Value>) -> String {
    let mut text = format!("{label}\n{key}");
    let texts = fields.values().flat_map(|value| match value {
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    });
    for value in texts.filter_map(Value::as_str) {
        if text.len() > SEARCHED_BYTES_MAX {
            break;
        }
        text.push('\n');
        text.push_str(value);
    }
    let mut text = text.to_lowercase();
    cut(&mut text, SEARCHED_BYTES_MAX);
    text
}

#[cfg(test)]
mod tests {
    use heddle_core::adapter::Origin;
    use heddle_marketplace::model;

    use super::*;

    fn seen(key: &str, fields: Value) -> ModelObject {
        ModelObject {
            key: key.to_owned(),
            label: "Guests\n".to_owned(),
            origin: Origin::Own,
            device: None,
            native: None,
            fields,
        }
    }

    fn of(kind: &str, object: ModelObject) -> Result<Storable, Unfit> {
        storable(model::find(kind).unwrap(), object)
    }

    #[test]
    fn what_people_call_it_and_its_texts_can_be_searched() {
        let fields = json!({ "vlan_id": 20.0, "name": "GÄSTE", "subnets": ["10.0.20.0/24"] });
        let stored = of("vlan", seen("v20", fields)).unwrap();
        assert_eq!(stored.searched, "guests\nv20\ngäste\n10.0.20.0/24");
        assert_eq!((stored.label.as_str(), &stored.fields["vlan_id"]), ("Guests", &json!(20)));
    }

    #[test]
    fn measured_fields_do_not_count() {
        let peer = |rx, name| of("vpn-peer", seen("p", json!({ "name": name, "rx_bytes": rx }))).unwrap();
        assert_eq!(peer(1, "a").digest, peer(2, "a").digest);
        assert_ne!(peer(1, "a").digest, peer(1, "b").digest);
        assert_ne!(peer(1, "a").contents_digest, peer(2, "a").contents_digest);
        assert_eq!(peer(1, "a").contents_digest, peer(1, "a").contents_digest);
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_key() {
        let problem = |object| of("ssid", object).unwrap_err();
        for (fields, said) in [
            (json!({ "passphrase": "x" }), "secret"),
            (json!({ "colour": "red" }), "colour"),
            (json!({ "enabled": "yes" }), "/enabled"),
            (json!({ "name": "x".repeat(70_000) }), "64 KiB"),
        ] {
            let unfit = problem(seen("s1", fields));
            assert!(unfit.problem.contains(said) && unfit.problem.starts_with("object 's1'"), "{unfit:?}");
            assert_eq!(unfit.key.as_deref(), Some("s1"));
        }
        for key in ["", "a\nb", &"x".repeat(301), "hdl-secret:00"] {
            assert_eq!(problem(seen(key, json!({}))).key, None);
        }
        for device in ["x".repeat(301), format!("{}00", redact::REFERENCE)] {
            let unfit = problem(ModelObject { device: Some(device), ..seen("s1", json!({})) });
            assert!(
                unfit.problem.contains("device") && !unfit.problem.contains(redact::REFERENCE),
                "{unfit:?}"
            );
        }
    }

    #[test]
    fn secrets_of_the_device_are_masked() {
        let secret = format!("{}{}", redact::REFERENCE, "0".repeat(redact::REFERENCE_DIGITS));
        let object = ModelObject { label: secret.clone(), ..seen("s", json!({ "name": secret })) };
        let stored = of("ssid", object).unwrap();
        assert_eq!((stored.label.as_str(), &stored.fields["name"]), (redact::MASK, &json!(redact::MASK)));
    }
}
