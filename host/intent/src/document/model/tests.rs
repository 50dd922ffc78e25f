use heddle_core::Clock;
use serde_json::json;

use super::*;
use crate::document::{json as json_text, yaml};

fn problems(value: &Value) -> Vec<(String, &'static str)> {
    let problems = parse(value).err().unwrap_or_default();
    problems.into_iter().map(|problem| (problem.path, problem.kind)).collect()
}

fn of(controller: ControllerId, objects: Value) -> Value {
    json!({ "heddle_intent": 1, "controllers": { controller.to_string(): { "objects": objects } } })
}

#[test]
fn each_problem_names_its_place() {
    let id: ControllerId = Clock::default().new_id();
    let at = |rest: &str| format!("/controllers/{id}{rest}");
    for (value, path, kind) in [
        (json!([]), String::new(), "type_error"),
        (json!({}), "/heddle_intent".to_owned(), "missing"),
        (json!({ "heddle_intent": 2 }), "/heddle_intent".to_owned(), "value_error"),
        (json!({ "heddle_intent": 1, "controler": {} }), "/controler".to_owned(), "unknown_field"),
        (json!({ "heddle_intent": 1, "site": { "id": "x" } }), "/site/id".to_owned(), "uuid"),
        (
            json!({ "heddle_intent": 1, "controllers": { "edge": {} } }),
            "/controllers/edge".to_owned(),
            "uuid",
        ),
        (of(id, json!({ "vlans": {} })), at("/objects/vlans"), "unknown_field"),
        (of(id, json!({ "client": {} })), at("/objects/client"), "unknown_field"),
        (
            of(id, json!({ "vlan": { "a/b": { "vlan_id": 5000 } } })),
            at("/objects/vlan/a~1b/vlan_id"),
            "value_error",
        ),
        (of(id, json!({ "vlan": { "v": { "colour": 1 } } })), at("/objects/vlan/v"), "value_error"),
        (of(id, json!({ "vlan": { "v": [] } })), at("/objects/vlan/v"), "type_error"),
        (of(id, json!({ "vlan": { "v": { "key": "v" } } })), at("/objects/vlan/v/key"), "unknown_field"),
        (
            of(id, json!({ "ssid": { "s": { "passphrase": 5 } } })),
            at("/objects/ssid/s/passphrase"),
            "type_error",
        ),
        (
            of(id, json!({ "firewall-rule": { "r": { "position": 1 } } })),
            at("/objects/firewall-rule/r/position"),
            "unknown_field",
        ),
    ] {
        assert_eq!(problems(&value), [(path, kind)], "{value}");
    }
    let several = of(id, json!({ "vlan": { "a": { "vlan_id": 0 }, "b": 1 }, "wlan": {} }));
    assert_eq!(problems(&several).len(), 3, "independent problems are told together");
}

#[test]
fn a_document_is_read_as_it_was_written_in_both_formats() {
    let clock = Clock::default();
    let (site, one, two): (SiteId, ControllerId, ControllerId) =
        (clock.new_id(), clock.new_id(), clock.new_id());
    let object = |fields: Value, secrets: &[&str]| Wanted {
        fields: fields.as_object().unwrap().clone().into_iter().collect(),
        secrets: secrets.iter().map(|secret| ((*secret).to_owned(), None)).collect(),
    };
    let place = |controller_id, site_ref: &str| Place { controller_id, site_ref: site_ref.to_owned() };
    let kinds = |kind: &str, objects: Vec<(&str, Wanted)>| -> BTreeMap<String, Objects> {
        let objects = objects.into_iter().map(|(key, wanted)| (key.to_owned(), wanted)).collect();
        [(kind.to_owned(), objects)].into()
    };
    let places: BTreeMap<Place, BTreeMap<String, Objects>> = [
        (
            place(one, ""),
            kinds(
                "vlan",
                vec![
                    ("20", object(json!({ "vlan_id": 20, "name": "no: \"guests\" #1" }), &[])),
                    (
                        "0a",
                        object(
                            json!({ "vlan_id": 30, "members": [{ "port": "lan1", "tagged": true }] }),
                            &[],
                        ),
                    ),
                ],
            ),
        ),
        (
            place(two, "Default"),
            kinds("ssid", vec![("s/1", object(json!({ "name": "x" }), &["passphrase"]))]),
        ),
        (
            place(two, "~x"),
            kinds("port", vec![("1", object(json!({ "poe.enabled": false, "name": "up" }), &[]))]),
        ),
    ]
    .into();
    let named = |name: &str| Named { name: name.to_owned(), vendor: "acme".to_owned() };
    let controllers = [(one, named("edge")), (two, named("wifi"))].into();
    let value = write((site, "HQ"), &controllers, &places);
    let document = parse(&value).unwrap();
    assert_eq!((document.site_id, &document.places), (Some(site), &places));
    let text = yaml::write(&value);
    assert_eq!(parse(&yaml::read(&text).unwrap()).unwrap(), document);
    assert_eq!(parse(&json_text::read(&value.to_string()).unwrap()).unwrap(), document);
    assert_eq!(
        text,
        yaml::write(&write((site, "HQ"), &controllers, &places)),
        "the order is always the same"
    );
    assert!(!text.contains("***") && text.contains("secret: kept"), "{text}");
}

#[test]
fn problems_and_keys_have_bounds() {
    let kinds: serde_json::Map<String, Value> = (0..1_000).map(|n| (format!("a{n}"), json!(0))).collect();
    let clock = Clock::default();
    let problems = parse(&of(clock.new_id(), Value::Object(kinds))).unwrap_err();
    assert_eq!(problems.len(), PROBLEMS_MAX);
    let long = "k".repeat(1_025);
    // A key without a question mark is refused by the reader itself from 1,024 characters on.
    let told = yaml::read(&format!("? {long}\n: 1")).unwrap_err();
    assert_eq!(told.kind, "too_large", "{told:?}");
    assert!(yaml::read(&format!("{long}: 1")).is_err());
    assert!(json_text::read(&format!("{{\"{long}\": 1}}")).is_err());
}
