//! What is new about an object of the model, and what events say of it. Pure.

use heddle_core::{ControllerId, SiteId};
use heddle_core::{redact, storable};
use heddle_marketplace::model::ModelKind;
use heddle_store::model_objects::ModelObjectId;
use heddle_store::model_objects::record::{Known, Storable};
use serde_json::{Map, Value, json};

heddle_core::words! {
    /// What became of an object.
    pub enum Change {
        Created = "created",
        Changed = "changed",
        Removed = "removed",
    }
}

/// An object at one time, with what counts as a change in one place.
pub(super) struct Counted(Map<String, Value>);

impl Counted {
    fn of(
        kind: &ModelKind,
        fields: &Value,
        label: &str,
        origin: impl Into<Value>,
        device: Option<&String>,
    ) -> Self {
        let mut counted = Map::new();
        counted.insert("label".to_owned(), label.into());
        counted.insert("origin".to_owned(), origin.into());
        counted.insert("device_key".to_owned(), device.map_or(Value::Null, |device| device.as_str().into()));
        let of_schema = fields.as_object().into_iter().flatten().filter(|(name, _)| !kind.is_measured(name));
        counted.extend(of_schema.map(|(name, value)| (name.clone(), value.clone())));
        Self(counted)
    }

    pub(super) fn of_known(kind: &ModelKind, known: &Known) -> Self {
        Self::of(kind, &known.fields, &known.label, known.origin.as_str(), known.device_key.as_ref())
    }

    pub(super) fn of_seen(kind: &ModelKind, seen: &Storable) -> Self {
        Self::of(kind, &seen.fields, &seen.label, seen.origin.as_str(), seen.device_key.as_ref())
    }

    /// Names of the fields that differ, sorted.
    fn changed(&self, after: &Self) -> Vec<String> {
        let mut names: Vec<&String> = self.0.keys().chain(after.0.keys()).collect();
        names.sort();
        names.dedup();
        names.into_iter().filter(|name| self.0.get(*name) != after.0.get(*name)).cloned().collect()
    }

    /// Of these fields only, fit for an event.
    fn shown(self, fields: &[String]) -> Value {
        let mut shown: Value = self.0.into_iter().filter(|(name, _)| fields.contains(name)).collect();
        storable::values(&mut shown);
        shown
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.clone()).collect()
    }
}

/// Whether what counts of the object differs. A counter does not, nor where the vendor keeps the object.
pub(super) fn is_changed(kind: &ModelKind, known: &Known, seen: &Storable) -> bool {
    !Counted::of_known(kind, known).changed(&Counted::of_seen(kind, seen)).is_empty()
}

/// The object that an event is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) kind: &'static ModelKind,
    pub(super) id: ModelObjectId,
    pub(super) key: &'a str,
    pub(super) label: &'a str,
    pub(super) device_key: Option<&'a str>,
    pub(super) controller_id: ControllerId,
    pub(super) site_id: SiteId,
}

/// What an event says of one difference. `before` and `after` have the changed fields, or all where there is only one.
pub(super) fn payload(about: &About<'_>, before: Option<Counted>, after: Option<Counted>) -> Value {
    let (change, fields) = match (&before, &after) {
        (Some(before), Some(after)) => (Change::Changed, before.changed(after)),
        (None, Some(after)) => (Change::Created, after.names()),
        (before, None) => (Change::Removed, before.as_ref().map(Counted::names).unwrap_or_default()),
    };
    let mut payload = json!({
        "object_id": about.id,
        "kind": about.kind.id,
        "key": about.key,
        "label": about.label,
        "controller_id": about.controller_id,
        "site_id": about.site_id,
        "device_key": about.device_key,
        "change": change,
        "before": before.map(|before| before.shown(&fields)),
        "after": after.map(|after| after.shown(&fields)),
        "fields": fields,
    });
    redact::sanitize(&mut payload);
    payload
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_core::adapter::Origin;
    use heddle_marketplace::model;

    use super::*;

    fn seen(fields: Value) -> Storable {
        Storable {
            key: "p".to_owned(),
            label: "peer".to_owned(),
            origin: Origin::Own,
            device_key: None,
            native: None,
            fields,
            digest: String::new(),
            contents_digest: String::new(),
            searched: String::new(),
        }
    }

    fn known(clock: &Clock, fields: Value) -> Known {
        Known {
            id: clock.new_id(),
            site_id: clock.new_id(),
            key: "p".to_owned(),
            label: "peer".to_owned(),
            origin: Origin::Own,
            device_key: None,
            fields,
        }
    }

    #[test]
    fn a_difference_names_the_fields_and_shows_them_before_and_after() {
        let clock = Clock::default();
        let kind = model::find("vpn-peer").unwrap();
        let before = known(&clock, json!({ "name": "a", "rx_bytes": 1, "endpoint": "x".repeat(300) }));
        let measured = seen(json!({ "name": "a", "rx_bytes": 2, "endpoint": "x".repeat(300) }));
        assert!(!is_changed(kind, &before, &measured));
        let after = seen(json!({ "name": "b", "rx_bytes": 2, "endpoint": "x".repeat(300) }));
        assert!(is_changed(kind, &before, &after));
        let about = About {
            kind,
            id: before.id,
            key: "p",
            label: "peer",
            device_key: None,
            controller_id: clock.new_id(),
            site_id: before.site_id,
        };
        let counted = || (Counted::of_known(kind, &before), Counted::of_seen(kind, &after));
        let changed = payload(&about, Some(counted().0), Some(counted().1));
        assert_eq!(
            (&changed["change"], &changed["before"], &changed["after"], &changed["fields"]),
            (&json!("changed"), &json!({ "name": "a" }), &json!({ "name": "b" }), &json!(["name"]))
        );
        let removed = payload(&about, Some(counted().0), None);
        assert_eq!((&removed["change"], &removed["after"]), (&json!("removed"), &Value::Null));
        assert_eq!((&removed["before"]["origin"], removed["before"].get("rx_bytes")), (&json!("own"), None));
    }

    #[test]
    fn long_values_are_cut_in_events() {
        let clock = Clock::default();
        let kind = model::find("vlan").unwrap();
        let members: Vec<Value> =
            (0..900).map(|n| json!({ "port": format!("port-{n}-{}", "x".repeat(40)) })).collect();
        let after = seen(json!({ "members": members }));
        let about = About {
            kind,
            id: clock.new_id(),
            key: "p",
            label: "peer",
            device_key: None,
            controller_id: clock.new_id(),
            site_id: clock.new_id(),
        };
        let created = payload(&about, None, Some(Counted::of_seen(kind, &after)));
        assert!(created.to_string().len() < 40_000);
        assert_eq!(created["change"], "created");
    }
}
