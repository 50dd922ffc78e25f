//! Changes in the words of the model become changes of the vendor's features, or are refused: nothing is dropped.

use heddle_sdk::ModelChange;

use super::*;

/// The description, with a kind of the model that profiles and snapshots fill and that is written.
fn with_model() -> Value {
    let mut whole = description();
    whole["model"] = json!([{ "kind": "thing", "fields": [], "binding": { "sources": [
        {
            "from": "net.profile", "key": ["id"],
            "fields": { "name": "name", "size": { "at": "mtu", "as": "integer" } },
            "writes": {
                "feature": "rig.profile", "verbs": ["create", "update", "delete"], "when": { "scope.kind": "net" },
                "fields": {
                    "name": "name", "scope.key": { "to": "note" },
                    "mode": { "to": "mode", "values": { "fast": "f", "slow": "s" } },
                },
                "by-code": ["size"], "cannot": { "colour": "is painted at the factory" },
                "with": { "kept": true },
            },
        },
        {
            "from": "host.snapshot",
            "fields": { "name": "name" },
            "writes": { "feature": "rig.snapshot", "verbs": ["create", "delete"], "when": { "scope.kind": "host" },
                        "fields": { "name": "name", "scope.key": "vmid" } },
            "actions": { "roll-back": {
                "feature": "rig.drop", "names": { "vmid": "$.vmid", "snapname": "name" }, "with": { "start": true },
            } },
        },
        { "from": "log.numbered", "key": ["id"] },
    ] } }]);
    whole
}

fn asked(device: &Device, verb: &str, payload: &Value) -> Result<Vec<Change>, Fault> {
    let description = with_model();
    let host = device.host(&description);
    let change = ModelChange {
        kind: "thing".into(),
        verb: verb.into(),
        site: Some("s1".into()),
        payload: payload.to_string(),
    };
    let expressed = Json::express(&host, &[change.clone(), change])?;
    assert_eq!(expressed.len(), 2, "one for each that was asked for");
    assert!(device.writes.borrow().is_empty(), "nothing is written");
    Ok(expressed.into_iter().next().unwrap())
}

#[track_caller]
fn is(changes: &[Change], feature: &str, operation: Operation, payload: &Value) {
    let [change] = changes else { panic!("{changes:?}") };
    let found: Value = serde_json::from_str(&change.payload).unwrap();
    assert_eq!((change.feature.as_str(), change.operation, &found), (feature, operation, payload));
    assert_eq!(change.site.as_deref(), Some("s1"));
}

/// The profiles of a device that has two.
fn device() -> Device {
    let device = Device::new();
    let rows =
        [("p1", "one"), ("p2", "two")].map(|(id, name)| device::fields(&json!({ "id": id, "name": name })));
    let table = device::Table { ids: device::Ids::Field("id"), rows: rows.into() };
    device.state.borrow_mut().tables.insert("/profiles".to_owned(), table);
    device
}

#[test]
fn a_new_object_goes_to_the_source_that_it_fits() {
    let payload = json!({ "name": "n", "scope": { "kind": "net", "key": "k" }, "mode": "slow", "size": 9 });
    let made = json!({ "kept": true, "name": "n", "note": "k", "mode": "s", "mtu": 90 });
    is(&asked(&device(), "create", &payload).unwrap(), "rig.profile", Operation::Create, &made);
    let fault = asked(&device(), "create", &json!({ "name": "n" })).unwrap_err();
    assert!(matches!(fault, Fault::Invalid(_)));
    let field = &fault.info().fields[0];
    assert_eq!((field.pointer.as_str(), field.message.as_str()), ("/scope/kind", "can be net, host"));
}

#[test]
fn an_object_is_found_by_its_key_and_named_as_the_vendor_names_it() {
    let device = device();
    let expressed = asked(&device, "update", &json!({ "key": "p2", "mode": "fast", "size": null })).unwrap();
    is(&expressed, "rig.profile", Operation::Update, &json!({ "name": "two", "mode": "f", "mtu": null }));
    let expressed = asked(&device, "delete", &json!({ "key": "p1" })).unwrap();
    is(&expressed, "rig.profile", Operation::Delete, &json!({ "name": "one" }));
    let expressed = asked(&device, "roll-back", &json!({ "key": "100:base" })).unwrap();
    let base = json!({ "vmid": "100", "snapname": "base", "start": true });
    is(&expressed, "rig.drop", Operation::Create, &base);
    let same = json!({ "key": "p2", "name": "two", "scope": { "kind": "net" }, "mode": "fast" });
    is(
        &asked(&device, "update", &same).unwrap(),
        "rig.profile",
        Operation::Update,
        &json!({ "name": "two", "mode": "f" }),
    );
}

#[test]
fn what_the_vendor_has_no_word_for_is_refused_with_its_field() {
    let device = device();
    device.state.borrow_mut().tables.insert(
        "/log".to_owned(),
        device::Table { ids: device::Ids::Field("id"), rows: vec![device::fields(&json!({ "id": "e1" }))] },
    );
    for (verb, payload, field, said) in [
        (
            "update",
            json!({ "key": "p2", "colour": "red" }),
            "/colour",
            "'colour' is painted at the factory; it takes: ",
        ),
        ("update", json!({ "key": "p2", "weight": 1 }), "/weight", "has no counterpart there"),
        (
            "update",
            json!({ "key": "p2", "mode": "odd" }),
            "/mode",
            "cannot be 'odd' there; it can be fast, slow",
        ),
        (
            "update",
            json!({ "key": "p2", "scope": { "kind": "host" } }),
            "/scope/kind",
            "cannot be 'host' there; it can be net",
        ),
        ("update", json!({ "key": "p2", "name": "three" }), "/name", "make a new one"),
        ("update", json!({ "key": "p9", "mode": "fast" }), "/key", "no thing with the key 'p9'"),
        ("roll-back", json!({ "key": "p2" }), "", "has no 'roll-back' there"),
        ("update", json!({ "key": "100:base", "name": "base" }), "", "has no 'update' there"),
        ("delete", json!({ "key": "e1" }), "", "or only shows it"),
    ] {
        let fault = asked(&device, verb, &payload).unwrap_err();
        let info = fault.info();
        assert!(info.message.contains(said), "{payload}: {}", info.message);
        assert_eq!(info.fields.first().map_or("", |one| one.pointer.as_str()), field, "{payload}");
    }
}
