//! The change that brings back what is wanted of an object. Pure.

use heddle_changes::declarations::NOTES_CHARS_MAX;
use heddle_core::adapter::{Description, Written};
use heddle_core::change::Operation;
use heddle_core::drift::{DriftChange, FieldDrift};
use heddle_marketplace::model;
use heddle_store::drift::Drift;
use serde_json::{Map, Value, json};

use crate::settable::{self, has, put};

/// How what is wanted comes back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Way {
    /// A change in the words of the model: a verb, its payload, and the fields that stay as they are.
    Model { verb: &'static str, payload: Value, left: Vec<String> },
    /// The change that was applied last is staged again, if it did this.
    Again(Operation),
}

/// Chooses the way, or says why there is none.
pub(crate) fn way(drift: &Drift, description: &Description) -> Result<Way, String> {
    let written = |verb: &str| description.written(&drift.kind, verb);
    let found = match drift.change {
        DriftChange::Changed => update(drift, written("update")),
        DriftChange::Created => match written("delete") {
            Some(_) => {
                Ok(Way::Model { verb: "delete", payload: json!({ "key": drift.key }), left: Vec::new() })
            }
            None => Err(format!("the vendor has nothing that removes a {}", drift.kind)),
        },
        DriftChange::Removed => create(drift, written("create")),
    };
    // What was applied natively can be applied once more.
    match (found, drift.change) {
        (Err(_), DriftChange::Changed) if drift.wanted_change_id.is_some() => {
            Ok(Way::Again(Operation::Update))
        }
        (Err(_), DriftChange::Removed) if drift.wanted_change_id.is_some() => {
            Ok(Way::Again(Operation::Create))
        }
        (found, _) => found,
    }
}

fn update(drift: &Drift, written: Option<&Written>) -> Result<Way, String> {
    let Some(written) = written else {
        return Err(format!("the vendor has nothing that changes a {}", drift.kind));
    };
    let foreign: Vec<&str> = names(&drift.differences, |field| !has(&written.fields, field));
    if !foreign.is_empty() {
        return Err(format!("the vendor has nothing for these fields: {}", foreign.join(", ")));
    }
    let mut payload = Map::new();
    payload.insert("key".to_owned(), json!(drift.key));
    for one in &drift.differences {
        put(&mut payload, &one.field, one.wanted.clone().unwrap_or_default());
    }
    Ok(Way::Model { verb: "update", payload: Value::Object(payload), left: Vec::new() })
}

fn create(drift: &Drift, written: Option<&Written>) -> Result<Way, String> {
    let Some(written) = written else {
        return Err(format!("the vendor has nothing that creates a {}", drift.kind));
    };
    let can_be_asked = |one: &FieldDrift| has(&written.fields, &one.field) && !is_unknown(&drift.kind, one);
    let mut payload = Map::new();
    for one in drift.differences.iter().filter(|one| can_be_asked(one)) {
        put(&mut payload, &one.field, one.wanted.clone().unwrap_or_default());
    }
    if payload.is_empty() {
        return Err(format!("nothing is known of the {} that the vendor could create", drift.kind));
    }
    let left =
        drift.differences.iter().filter(|one| !can_be_asked(one)).map(|one| one.field.clone()).collect();
    Ok(Way::Model { verb: "create", payload: Value::Object(payload), left })
}

/// Whether what is wanted was not known when it was read.
fn is_unknown(kind: &str, one: &FieldDrift) -> bool {
    let kind = model::find(kind);
    let wanted = one.wanted.as_ref();
    kind.zip(wanted).is_some_and(|(kind, wanted)| settable::is_unknown(kind, &one.field, wanted))
}

fn names(differences: &[FieldDrift], is_meant: impl Fn(&str) -> bool) -> Vec<&str> {
    differences.iter().map(|one| one.field.as_str()).filter(|field| is_meant(field)).collect()
}

/// What the notes of the change say.
pub(crate) fn notes(drift: &Drift, given: Option<&str>, left: &[String]) -> String {
    let mut notes = match given {
        Some(given) if !given.is_empty() => given.to_owned(),
        _ => format!("Brings back what is wanted of {} '{}'", drift.kind, drift.object_label),
    };
    if !left.is_empty() {
        let lost = left.join(", ");
        notes.push_str(&format!(". Not brought back, because the vendor has nothing for it: {lost}"));
    }
    notes.chars().take(NOTES_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use heddle_core::adapter::Filled;
    use heddle_core::drift::{DriftLabel, DriftStatus, WantedBasis};

    use super::*;

    fn drift(change: DriftChange, differences: &[(&str, Value)]) -> Drift {
        let clock = Clock::default();
        let field = |(field, wanted): &(&str, Value)| FieldDrift {
            field: (*field).to_owned(),
            wanted: Some(wanted.clone()).filter(|wanted| !wanted.is_null()),
            observed: None,
            label: DriftLabel::Unknown,
            reasons: Vec::new(),
        };
        Drift {
            id: clock.new_id(),
            revision: 1,
            org_id: clock.new_id(),
            site_id: clock.new_id(),
            site_ref: None,
            controller_id: clock.new_id(),
            kind: "vlan".to_owned(),
            key: "v20".to_owned(),
            object_label: "guests".to_owned(),
            device_key: None,
            change,
            label: DriftLabel::Unknown,
            differences: differences.iter().map(field).collect(),
            basis: WantedBasis::Observed,
            wanted_change_id: None,
            status: DriftStatus::Open,
            put_back_id: None,
            said_by: None,
            notes: None,
            closed_by: None,
            closed_at: None,
            created_at: clock.now(),
            updated_at: clock.now(),
        }
    }

    fn description(verbs: &[(&str, &[&str])]) -> Description {
        let written = |(verb, fields): &(&str, &[&str])| Written {
            verb: (*verb).to_owned(),
            feature: "acme.model.vlan".to_owned(),
            operation: Operation::Update,
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            uses: Vec::new(),
        };
        Description {
            vendor: "acme".to_owned(),
            title: "Acme".to_owned(),
            areas: Vec::new(),
            kinds: Vec::new(),
            features: Vec::new(),
            model: vec![Filled {
                kind: "vlan".to_owned(),
                fields: Vec::new(),
                is_of_site: false,
                writes: verbs.iter().map(written).collect(),
                releases: None,
            }],
        }
    }

    #[test]
    fn what_differs_is_written_back_and_what_was_empty_is_emptied() {
        let vendor = description(&[("update", &["name", "gateway"])]);
        let changed = drift(DriftChange::Changed, &[("name", json!("guests")), ("gateway", Value::Null)]);
        let payload = json!({ "key": "v20", "name": "guests", "gateway": null });
        assert_eq!(way(&changed, &vendor), Ok(Way::Model { verb: "update", payload, left: Vec::new() }));
    }

    #[test]
    fn what_came_is_removed_and_what_went_is_created_as_far_as_the_vendor_can() {
        let vendor = description(&[("create", &["vlan_id"]), ("delete", &[])]);
        let created = drift(DriftChange::Created, &[]);
        let payload = json!({ "key": "v20" });
        assert_eq!(way(&created, &vendor), Ok(Way::Model { verb: "delete", payload, left: Vec::new() }));
        let removed = drift(DriftChange::Removed, &[("vlan_id", json!(20)), ("name", json!("guests"))]);
        let Ok(Way::Model { verb, payload, left }) = way(&removed, &vendor) else { panic!("there is a way") };
        assert_eq!((verb, payload, &left), ("create", json!({ "vlan_id": 20 }), &vec!["name".to_owned()]));
        assert!(notes(&removed, None, &left).ends_with("nothing for it: name"));
    }

    #[test]
    fn a_native_change_is_staged_again_where_the_model_cannot_say_it() {
        let vendor = description(&[("update", &["name"])]);
        let mut changed = drift(DriftChange::Changed, &[("gateway", json!("10.0.0.1"))]);
        assert!(way(&changed, &vendor).unwrap_err().contains("these fields: gateway"));
        changed.wanted_change_id = Some(Clock::default().new_id());
        assert_eq!(way(&changed, &vendor), Ok(Way::Again(Operation::Update)));
        let mut created = drift(DriftChange::Created, &[]);
        created.wanted_change_id = changed.wanted_change_id;
        assert!(way(&created, &vendor).is_err(), "no change of ours removes it");
    }
}
