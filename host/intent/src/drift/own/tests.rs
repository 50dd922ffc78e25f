use heddle_core::Clock;
use heddle_core::adapter::{Locator, ObjectRef, Stability};
use heddle_core::change::PlanStep;
use heddle_marketplace::model;
use serde_json::json;

use super::*;
use crate::drift::testing::{description, own, row};

fn native(key: &str) -> ObjectRef {
    ObjectRef {
        kind: "lan.vlan".to_owned(),
        site: None,
        key: key.to_owned(),
        locators: vec![Locator {
            surface: "api".to_owned(),
            value: "*7".to_owned(),
            stability: Stability::UntilRecreate,
        }],
    }
}

fn subject<'a>(key: &'a str, native: Option<&'a ObjectRef>, fields: Option<&'a Value>) -> Subject<'a> {
    Subject { kind: model::find("vlan").unwrap(), key, label: "guests", native, fields }
}

#[test]
fn a_change_in_the_words_of_the_model_names_its_object() {
    let clock = Clock::default();
    let update =
        own(&row(&clock, "acme.model.vlan", Operation::Update, json!({ "key": "v20", "name": "x" })));
    assert!(matches!(update.touch(&subject("v20", None, None)), Some(Touch::Fields(_))));
    assert_eq!(update.touch(&subject("v30", None, None)), None);
    assert_eq!(update.keys("vlan").collect::<Vec<_>>(), ["v20"]);
    let delete = own(&row(&clock, "acme.model.vlan", Operation::Delete, json!({ "key": "v20" })));
    assert_eq!(delete.touch(&subject("v20", None, None)), Some(Touch::Gone));
}

#[test]
fn a_created_object_is_known_by_what_a_create_needs() {
    let clock = Clock::default();
    let create =
        own(&row(&clock, "acme.model.vlan", Operation::Create, json!({ "vlan_id": 20, "name": "guests" })));
    for (fields, is_it) in [
        (json!({ "vlan_id": 20, "name": "guests" }), true),
        (json!({ "vlan_id": 20 }), false),
        (json!({ "vlan_id": 21, "name": "guests" }), false),
        (json!({ "vlan_id": 20, "name": "other" }), false),
    ] {
        assert_eq!(create.touch(&subject("k", None, Some(&fields))).is_some(), is_it, "{fields}");
    }
    assert_eq!(create.touch(&subject("k", None, None)), None, "what is gone was not created");
}

#[test]
fn a_native_change_is_known_by_the_vendors_own_names() {
    let clock = Clock::default();
    let object = native("20");
    for (payload, is_it) in [
        (json!({ "tag": 20, "mtu": 1400 }), true),
        (json!({ "key": "*7", "mtu": 1400 }), true),
        (json!({ "tag": 30, "mtu": 20 }), false),
    ] {
        let change = own(&row(&clock, "acme.lan.vlan", Operation::Update, payload.clone()));
        let touch = change.touch(&subject("v20", Some(&object), None));
        assert_eq!(touch, is_it.then_some(Touch::Whole), "{payload}");
    }
    let other = ObjectRef { kind: "lan.port".to_owned(), ..native("20") };
    let change = own(&row(&clock, "acme.lan.vlan", Operation::Delete, json!({ "tag": 20 })));
    assert_eq!(change.touch(&subject("v20", Some(&other), None)), None);
    assert_eq!(change.touch(&subject("v20", Some(&object), None)), Some(Touch::Gone));
}

#[test]
fn what_follows_from_a_change_is_explained_by_its_values_and_by_its_review() {
    let clock = Clock::default();
    let mut change =
        row(&clock, "acme.model.vlan", Operation::Create, json!({ "vlan_id": 20, "dhcp": "none" }));
    let moved = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<BTreeSet<_>>();
    let port = subject("lan1", None, None);
    assert!(own(&change).explains(&moved(&["20"])));
    assert!(own(&change).explains(&moved(&["20", "true"])));
    assert!(!own(&change).explains(&moved(&["20", "30"])));
    assert!(!own(&change).explains(&moved(&["true", "1"])), "such values are in everything");
    assert!(!own(&change).names(&port) && !own(&change).takes_away());
    let step = PlanStep { summary: "Takes 'lan1' out of the bridge".to_owned(), before: None, after: None };
    let mut plan = heddle_core::change::Plan::of(&planned(), "acme@1", &[]);
    plan.steps = vec![step];
    change.plan = Some(plan);
    assert!(own(&change).names(&port));
    change.operation = Operation::Delete;
    assert!(own(&change).takes_away());
}

fn planned() -> heddle_core::change::AdapterPlan {
    heddle_core::change::AdapterPlan {
        steps: Vec::new(),
        native: Vec::new(),
        holes: Vec::new(),
        danger: heddle_core::change::Danger::Normal,
        lockout_risk: false,
        warnings: Vec::new(),
        also: Vec::new(),
        base_digest: Vec::new(),
        inverse: None,
        holds: false,
        undo_takes_all: false,
        touches: Vec::new(),
        token: Vec::new(),
    }
}

#[test]
fn what_became_of_a_change_decides_what_it_proves() {
    use {ChangeStatus as S, OutcomeState as O};

    let clock = Clock::default();
    let of = |status, state, detail: Option<Value>| {
        let mut change =
            row(&clock, "acme.model.vlan", Operation::Update, json!({ "key": "v20", "name": "x" }));
        (change.status, change.outcome_state, change.outcome_detail) = (status, state, detail);
        OwnChange::of(&change, None, &description()).map(|own| own.ended)
    };
    assert_eq!(of(S::Applied, O::Applied, None), Some(Ended::Applied));
    assert_eq!(of(S::Applied, O::Applied, Some(json!({ "difference": [{}] }))), Some(Ended::Adjusted));
    assert_eq!(of(S::Pending, O::Partial, None), Some(Ended::InDoubt(O::Partial)));
    assert_eq!(of(S::Pending, O::Failed, None), None, "the device is proved unchanged");
    assert_eq!(of(S::Applied, O::Reverted, None), None, "its inverse is a change of its own");
    let member = row(&clock, "acme.model.vlan", Operation::Update, json!({ "key": "v20", "name": "x" }));
    let mut set = member.clone();
    set.outcome_detail = Some(json!({ "difference": [{}], "items": ["adjusted"] }));
    assert_eq!(OwnChange::of(&member, Some(&set), &description()).unwrap().ended, Ended::Adjusted);
}

#[test]
fn fields_that_are_never_observed_are_not_wanted() {
    let clock = Clock::default();
    let payload = json!({ "key": "v20", "name": "x", "passphrase": "reference", "poe": { "enabled": true, "mode": "a" } });
    let own =
        OwnChange::of(&row(&clock, "acme.model.vlan", Operation::Update, payload), None, &description());
    let own = own.unwrap().only("vlan", &["name", "poe.enabled"].into());
    let [Part::Model { payload, .. }] = own.parts.as_slice() else { panic!("{own:?}") };
    assert_eq!(
        Value::Object(payload.clone()),
        json!({ "key": "v20", "name": "x", "poe": { "enabled": true } })
    );
}
