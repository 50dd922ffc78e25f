use heddle_core::adapter::{Filled, Written};
use heddle_core::change::Operation;
use heddle_marketplace::model;
use serde_json::json;

use super::*;

fn can(kind: &str, verbs: &[(&str, &[&str])], read: &[&str]) -> Can {
    let texts = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
    let written = |(verb, fields): &(&str, &[&str])| Written {
        verb: (*verb).to_owned(),
        feature: format!("acme.model.{kind}"),
        operation: Operation::Update,
        fields: texts(fields),
        uses: Vec::new(),
    };
    let description = Description {
        vendor: "acme".to_owned(),
        title: "Acme".to_owned(),
        areas: Vec::new(),
        kinds: Vec::new(),
        features: Vec::new(),
        model: vec![Filled {
            kind: kind.to_owned(),
            fields: texts(read),
            is_of_site: false,
            writes: verbs.iter().map(written).collect(),
            releases: None,
        }],
    };
    Can::of(&description, model::find(kind).unwrap())
}

const FIELDS: &[&str] = &["vlan_id", "name", "gateway"];

fn vlans() -> Can {
    can("vlan", &[("create", FIELDS), ("update", FIELDS), ("delete", &[])], FIELDS)
}

fn objects(all: Value) -> Objects {
    let of_one = |fields: &Value| Wanted {
        fields: fields.as_object().unwrap().clone().into_iter().collect(),
        secrets: BTreeMap::new(),
    };
    all.as_object().unwrap().iter().map(|(key, fields)| (key.clone(), of_one(fields))).collect()
}

fn live(all: Value) -> Vec<LiveObject> {
    let of_one = |(key, fields): (&String, &Value)| LiveObject {
        key: key.clone(),
        label: key.clone(),
        content: Content::from_value(fields),
    };
    all.as_object().unwrap().iter().map(of_one).collect()
}

fn compare(
    kind: &str,
    can: &Can,
    wanted: &Objects,
    live: &[LiveObject],
    removes: bool,
) -> Result<Vec<Difference>, Vec<Problem>> {
    let kind = model::find(kind).unwrap();
    diff(&Compared { kind, can, path: "/k", wanted, live, removes })
}

fn told(found: &[Difference]) -> Vec<(&str, &str, Value)> {
    found.iter().map(|one| (one.action.as_str(), one.key.as_str(), one.payload.clone())).collect()
}

#[test]
fn an_export_that_nobody_edited_differs_in_nothing() {
    let all = json!({ "a": { "vlan_id": 1, "name": "x" }, "b": { "vlan_id": 2 } });
    assert_eq!(compare("vlan", &vlans(), &objects(all.clone()), &live(all), true), Ok(Vec::new()));
}

#[test]
fn what_is_new_changed_or_gone_becomes_its_verb() {
    let wanted = objects(
        json!({ "a": { "vlan_id": 1, "name": "y", "gateway": null }, "new": { "vlan_id": 3, "name": "z" } }),
    );
    let seen =
        live(json!({ "a": { "vlan_id": 1, "name": "x", "gateway": "10.0.0.1" }, "b": { "vlan_id": 2 } }));
    let found = compare("vlan", &vlans(), &wanted, &seen, true).unwrap();
    assert_eq!(
        told(&found),
        [
            ("update", "a", json!({ "key": "a", "gateway": null, "name": "y" })),
            ("create", "new", json!({ "name": "z", "vlan_id": 3 })),
            ("delete", "b", json!({ "key": "b" })),
        ]
    );
    assert_eq!(compare("vlan", &vlans(), &wanted, &seen, false).unwrap().len(), 2, "unlisted objects stay");
}

#[test]
fn an_object_that_was_created_is_found_again_under_the_vendors_key() {
    let wanted = objects(json!({ "guests": { "vlan_id": 3, "name": "z" } }));
    let seen = live(json!({ "vlan.3": { "vlan_id": 3, "name": "z" } }));
    assert_eq!(
        compare("vlan", &vlans(), &wanted, &seen, true),
        Ok(Vec::new()),
        "a second plan stages nothing"
    );
    let edited = objects(json!({ "guests": { "vlan_id": 3, "name": "other" } }));
    let found = compare("vlan", &vlans(), &edited, &seen, true).unwrap();
    assert_eq!(told(&found), [("update", "vlan.3", json!({ "key": "vlan.3", "name": "other" }))]);
}

#[test]
fn what_cannot_be_told_apart_or_written_is_refused_with_its_place() {
    let place = |found: Result<Vec<Difference>, Vec<Problem>>| {
        let problem = found.unwrap_err().remove(0);
        (problem.path, problem.kind)
    };
    let twins = live(json!({ "x": { "vlan_id": 3 }, "y": { "vlan_id": 3 } }));
    let wanted = objects(json!({ "n": { "vlan_id": 3 } }));
    assert_eq!(place(compare("vlan", &vlans(), &wanted, &twins, false)), ("/k/n".to_owned(), "ambiguous"));
    let reads = can("vlan", &[("update", &["gateway"])], FIELDS);
    let wanted = objects(json!({ "a": { "name": "y" } }));
    let seen = live(json!({ "a": { "name": "x" }, "b": { "name": "b" } }));
    assert_eq!(
        place(compare("vlan", &reads, &wanted, &seen, false)),
        ("/k/a/name".to_owned(), "not_writable")
    );
    let none = objects(json!({ "a": { "name": "x" } }));
    assert_eq!(place(compare("vlan", &reads, &none, &seen, true)), ("/k".to_owned(), "not_writable"));
    let new = objects(json!({ "c": { "vlan_id": 9 } }));
    assert_eq!(place(compare("vlan", &reads, &new, &seen, false)), ("/k/c".to_owned(), "not_writable"));
}

#[test]
fn a_secret_stays_unless_it_is_written_and_a_new_object_needs_one() {
    let fields: &[&str] = &["name", "passphrase"];
    let can = can("ssid", &[("create", fields), ("update", fields)], &["name"]);
    let wanted = |value: Option<Value>, key: &str| -> Objects {
        let secrets = [("passphrase".to_owned(), value)].into();
        let fields = [("name".to_owned(), json!(key))].into();
        [(key.to_owned(), Wanted { fields, secrets })].into()
    };
    let seen = live(json!({ "guests": { "name": "guests" } }));
    assert_eq!(compare("ssid", &can, &wanted(None, "guests"), &seen, false), Ok(Vec::new()));
    let found = compare("ssid", &can, &wanted(Some(json!("hunter22")), "guests"), &seen, false).unwrap();
    assert!(found[0].sets_secret && found[0].fields.is_empty());
    assert_eq!(found[0].payload, json!({ "key": "guests", "passphrase": "hunter22" }));
    let problem = compare("ssid", &can, &wanted(None, "new"), &seen, false).unwrap_err().remove(0);
    assert_eq!((problem.path.as_str(), problem.kind), ("/k/new/passphrase", "missing"));
}

#[test]
fn what_readings_do_not_say_is_taken_for_what_was_set() {
    let can = can("vlan", &[("create", FIELDS), ("update", FIELDS)], &["vlan_id"]);
    let wanted = objects(json!({ "guests": { "vlan_id": 3, "name": "z" } }));
    let seen = live(json!({ "v3": { "vlan_id": 3 } }));
    assert_eq!(compare("vlan", &can, &wanted, &seen, false), Ok(Vec::new()));
}

#[test]
fn what_others_name_is_staged_first() {
    assert!(rank("vlan") < rank("ssid") && rank("address-group") < rank("firewall-rule"));
    assert!(rank("something new") > rank("nat-rule"));
    assert!(settable::kinds().all(|kind| rank(kind.id) < rank("something new")), "each kind has a rank");
}

#[test]
fn objects_without_a_known_key_are_not_compared_each_with_each_without_a_bound() {
    let can = vlans();
    let all = |name: &str, count: usize| -> Value {
        let of_one = |at: usize| (format!("{name}{at}"), json!({ "vlan_id": at }));
        Value::Object((0..count).map(of_one).collect())
    };
    let (wanted, known) = (objects(all("new", 2_000)), live(all("old", 1_001)));
    let refused = compare("vlan", &can, &wanted, &known, false).unwrap_err();
    assert_eq!((refused.len(), refused[0].kind), (1, "too_large"), "{refused:?}");
    // Keys that an export shows need no search.
    let wanted = objects(all("old", 2_000));
    assert!(compare("vlan", &can, &wanted, &known, false).is_ok());
}
